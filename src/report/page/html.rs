//! Tables and figures as HTML. All text is escaped by the macros; what is not, is made here.

use std::collections::HashMap;

use itertools::Itertools as _;
use maud::{Markup, PreEscaped, html};

use super::Part;
use crate::base::error::Result;
use crate::base::units::{plural, significant};
use crate::report::Sheet;
use crate::report::build::Columns;
use crate::report::cells::{by_key, shown};
use crate::report::plot::{Figure, Number, Origin, inline_svg, numbers_of};

/// Rows up to which a table is open.
const OPEN: usize = 24;

/// Lines up to which what is above a table is open.
const ABOVE: usize = 5;

/// Points up to which a figure has its numbers as a table below.
const LISTED: usize = 160;

/// A unique anchor.
pub(super) fn anchor(name: &str, seen: &mut HashMap<String, usize>) -> String {
    let count = seen.entry(name.to_owned()).or_insert(0);
    *count += 1;
    format!("{name}-{count}")
}

/// A part of a section, of tables `rows` rows at most.
pub(super) fn part(part: &Part, rows: usize) -> Markup {
    match part {
        Part::Heading(text) => html! { h3 { (text) } },
        Part::Text(markup) => markup.clone(),
        Part::Table(own) => sheet(own, rows),
    }
}

/// A figure with its number, its caption and its numbers.
pub(super) fn figure(id: &str, number: &str, figure: &Figure, caption: &str) -> Result<Markup> {
    let svg = inline_svg(figure)?;
    let sheet = listing(figure);
    Ok(html! {
        figure id=(id) {
            h3 { (figure.title) }
            div.drawing tabindex="0" role="region" aria-label={ "Figure " (number) } { (PreEscaped(svg)) }
            figcaption {
                b { "Figure " (number) ". " } (caption)
                @if let Some(line) = figure.left_out_line() { " (" (line) ")" }
            }
            @if let Some(sheet) = &sheet {
                details { summary { "Numbers of figure " (number) } (table(sheet, sheet.rows.len())) }
            }
        }
    })
}

/// The points of a figure, but for very many: of categories a row each with a column for each series.
fn listing(figure: &Figure) -> Option<Sheet> {
    let mut points = numbers_of(figure);
    points.retain(|point| point.origin != Origin::Limit);
    if points.is_empty() || points.len() > LISTED {
        return None;
    }
    let mut sheet = if points.iter().all(|point| !point.category.is_empty()) {
        by_category(&points)
    } else {
        one_by_one(&points)
    };
    sheet.drop_empty_columns();
    Some(sheet)
}

fn number(value: Option<f64>) -> String {
    shown(value.filter(|v| v.is_finite()), |v| significant(v, 4))
}

fn by_category(points: &[Number<'_>]) -> Sheet {
    type Row<'a> = ((&'a str, &'a str), Vec<&'a Number<'a>>);
    let cell = |point: &&Number<'_>| {
        let spread = point.spread.filter(|(low, high)| low.is_finite() && high.is_finite());
        let spread = shown(spread, |(low, high)| {
            format!(" ({} to {})", number(Some(low)), number(Some(high)))
        });
        number(Some(point.y)) + &spread
    };
    let mut columns = Columns::new()
        .words("panel", |((panel, _), _): &Row<'_>| (*panel).to_owned())
        .words("", |((_, category), _)| (*category).to_owned());
    for series in points.iter().map(|point| point.series).unique() {
        columns = columns.number(series, move |(_, own)| {
            let mut own = own.iter().filter(|point| point.series == series);
            own.next_back().map(cell).unwrap_or_default()
        });
    }
    columns.whole(by_key(points, |point| (point.panel, point.category)))
}

fn one_by_one(points: &[Number<'_>]) -> Sheet {
    Columns::new()
        .words("panel", |point: &&Number<'_>| point.panel.to_owned())
        .words("series", |point| point.series.to_owned())
        .words("label", |point| point.label.to_owned())
        .number("x", |point| number(point.x))
        .number("y", |point| number(Some(point.y)))
        .number("low", |point| number(point.spread.map(|s| s.0)))
        .number("high", |point| number(point.spread.map(|s| s.1)))
        .whole(points)
}

/// A table with what stands above and below it; long ones are closed.
fn sheet(sheet: &Sheet, most: usize) -> Markup {
    let rows = sheet.rows.len();
    let shown = rows.min(most);
    let summary = match &sheet.title {
        Some(title) => format!("{title}: {}", plural(rows, "row")),
        None => plural(rows, "row"),
    };
    html! {
        div.sheet {
            @if let Some(title) = &sheet.title { h4 { (title) } }
            @if sheet.preamble.len() > ABOVE {
                details {
                    summary { "Settings, devices and what was inferred" }
                    ul.above { @for line in &sheet.preamble { li { (line) } } }
                }
            } @else if !sheet.preamble.is_empty() {
                ul.above { @for line in &sheet.preamble { li { (line) } } }
            }
            @if rows > OPEN {
                details { summary { (summary) } (table(sheet, shown)) }
            } @else if rows > 0 {
                (table(sheet, shown))
            }
            @if shown < rows {
                p.note { "The first " (shown) " of " (rows) " rows; the files have all of them." }
            }
            @if !sheet.notes.is_empty() {
                ul.below { @for line in &sheet.notes { li { (line) } } }
            }
        }
    }
}

/// The cells.
fn table(sheet: &Sheet, most: usize) -> Markup {
    let prose = sheet.columns.iter().any(|head| head.text == "claim");
    let verdicts: Vec<bool> = sheet.columns.iter().map(|head| is_verdict(&head.text)).collect();
    html! {
        div.scroll tabindex="0" role="region" aria-label=(sheet.title.as_deref().unwrap_or("Table")) {
            table class=[prose.then_some("prose")] {
                thead {
                    tr { @for head in &sheet.columns { th scope="col" class=[head.words.then_some("w")] { (head.text) } } }
                }
                tbody {
                    @for row in sheet.rows.iter().take(most) {
                        tr {
                            @for (i, cell) in row.iter().enumerate() {
                                @let words = sheet.columns.get(i).is_some_and(|head| head.words);
                                @let judged = verdicts.get(i).copied().unwrap_or(false);
                                td class=[class(cell, words, judged)] { (cell) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Columns of verdicts.
fn is_verdict(head: &str) -> bool {
    head.contains("verdict") || head.contains(" against ") || head == "status"
}

/// The class of a cell; what a verdict's colour says stands in its text, too.
fn class(cell: &str, words: bool, judged: bool) -> Option<&'static str> {
    let first = cell.split_whitespace().next().unwrap_or_default();
    if judged && ["ok", "reproduced", "exceeded"].contains(&first) {
        Some("ok")
    } else if judged
        && (["!", "failed", "contradicted"].contains(&first) || first.starts_with(['+', '-']))
    {
        Some("off")
    } else {
        words.then_some("w")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Head;

    #[test]
    fn verdicts_have_a_class_and_text_is_escaped() {
        let sheet = Sheet {
            columns: vec![Head::words("<i>"), Head::number("verdict"), Head::number("n")],
            rows: vec![
                vec!["<script>alert(1)</script>".into(), "ok".into(), "-5".into()],
                vec!["&\"'".into(), "-7.3 %".into(), "ok".into()],
                vec![String::new(), "failed".into(), String::new()],
            ],
            ..Sheet::default()
        };
        assert_eq!(
            table(&sheet, 2).into_string().split_once("<table>").unwrap().1,
            "<thead><tr><th scope=\"col\" class=\"w\">&lt;i&gt;</th><th scope=\"col\">verdict</th>\
             <th scope=\"col\">n</th></tr></thead><tbody><tr><td class=\"w\">&lt;script&gt;alert(1)\
             &lt;/script&gt;</td><td class=\"ok\">ok</td><td>-5</td></tr><tr><td class=\"w\">&amp;\
             &quot;'</td><td class=\"off\">-7.3 %</td><td>ok</td></tr></tbody></table></div>"
        );
    }
}
