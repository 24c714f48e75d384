//! Tables and figures as HTML. All text is escaped by the macros; what is not, is made here.

use std::collections::HashMap;

use maud::{Markup, PreEscaped, html};

use super::Part;
use crate::base::error::Result;
use crate::base::units::{plural, significant};
use crate::report::plot::{Figure, Number, Origin, inline_svg, numbers_of};
use crate::report::{Head, Sheet};

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
pub(super) fn figure(id: &str, number: usize, figure: &Figure, caption: &str) -> Result<Markup> {
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
    value.filter(|v| v.is_finite()).map(|v| significant(v, 4)).unwrap_or_default()
}

fn by_category(points: &[Number<'_>]) -> Sheet {
    let mut series: Vec<&str> = Vec::new();
    for point in points {
        if !series.contains(&point.series) {
            series.push(point.series);
        }
    }
    let mut sheet =
        Sheet { columns: vec![Head::words("panel"), Head::words("")], ..Sheet::default() };
    sheet.columns.extend(series.iter().map(|name| Head::number(*name)));
    for point in points {
        let own = |row: &Vec<String>| row[0] == point.panel && row[1] == point.category;
        let at = sheet.rows.iter().position(own).unwrap_or_else(|| {
            let mut row = vec![String::new(); 2 + series.len()];
            (row[0], row[1]) = (point.panel.to_owned(), point.category.to_owned());
            sheet.rows.push(row);
            sheet.rows.len() - 1
        });
        let spread = point.spread.filter(|(low, high)| low.is_finite() && high.is_finite());
        let spread =
            spread.map(|(low, high)| format!(" ({} to {})", number(Some(low)), number(Some(high))));
        let column = series.iter().position(|name| *name == point.series).unwrap_or(0);
        sheet.rows[at][2 + column] = number(Some(point.y)) + &spread.unwrap_or_default();
    }
    sheet
}

fn one_by_one(points: &[Number<'_>]) -> Sheet {
    let mut sheet = Sheet {
        columns: ["panel", "series", "label"].map(Head::words).to_vec(),
        ..Sheet::default()
    };
    sheet.columns.extend(["x", "y", "low", "high"].map(Head::number));
    for point in points {
        sheet.rows.push(vec![
            point.panel.to_owned(),
            point.series.to_owned(),
            point.label.to_owned(),
            number(point.x),
            number(Some(point.y)),
            number(point.spread.map(|s| s.0)),
            number(point.spread.map(|s| s.1)),
        ]);
    }
    sheet
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
    let verdicts: Vec<bool> = sheet.columns.iter().map(|head| is_verdict(&head.text)).collect();
    html! {
        div.scroll tabindex="0" role="region" aria-label=(sheet.title.as_deref().unwrap_or("Table")) {
            table {
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
    if judged && first == "ok" {
        Some("ok")
    } else if judged && (first == "!" || first == "failed" || first.starts_with(['+', '-'])) {
        Some("off")
    } else {
        words.then_some("w")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
