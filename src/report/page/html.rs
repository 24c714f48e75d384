//! Tables and figures as HTML. All text is escaped by the macros; what is not, is made here.

use std::collections::HashMap;

use maud::{Markup, PreEscaped, html};

use crate::error::Result;
use crate::plot::{Figure, inline_svg, numbers_of};
use crate::report::units::{plural, significant};
use crate::report::{Head, Sheet};

/// Rows up to which a table is open.
const OPEN: usize = 24;

/// Lines up to which what is above a table is open.
const ABOVE: usize = 5;

/// Points up to which a figure has its numbers as a table below.
const LISTED: usize = 160;

/// An anchor that no other has.
pub(super) fn anchor(name: &str, seen: &mut HashMap<String, usize>) -> String {
    let count = seen.entry(name.to_owned()).or_insert(0);
    *count += 1;
    format!("{name}-{count}")
}

/// A figure with its number, its caption and its numbers.
pub(super) fn figure(id: &str, number: usize, figure: &Figure, caption: &str) -> Result<Markup> {
    let svg = inline_svg(figure)?;
    let sheet = listing(figure);
    Ok(html! {
        figure id=(id) {
            h3 { (figure.title) }
            div.drawing tabindex="0" role="region" aria-label={ "Figure " (number) } { (PreEscaped(svg)) }
            figcaption { b { "Figure " (number) ". " } (caption) }
            @if let Some(sheet) = &sheet {
                details { summary { "Numbers of figure " (number) } (table(sheet, sheet.rows.len())) }
            }
        }
    })
}

/// The points of a figure, but for very many.
fn listing(figure: &Figure) -> Option<Sheet> {
    let points = numbers_of(figure);
    if points.is_empty() || points.len() > LISTED {
        return None;
    }
    let number = |v: Option<f64>| v.filter(|v| v.is_finite()).map(|v| significant(v, 4)).unwrap_or_default();
    let mut sheet = Sheet {
        columns: ["panel", "series", "origin", "category", "label"].map(Head::words).to_vec(),
        ..Sheet::default()
    };
    sheet.columns.extend(["x", "y", "low", "high"].map(Head::number));
    for point in points {
        sheet.rows.push(vec![
            point.panel.to_owned(),
            point.series.to_owned(),
            point.origin.name().to_owned(),
            point.category.to_owned(),
            point.label.to_owned(),
            // the category says it
            if point.category.is_empty() { number(point.x) } else { String::new() },
            number(Some(point.y)),
            number(point.spread.map(|s| s.0)),
            number(point.spread.map(|s| s.1)),
        ]);
    }
    sheet.drop_empty_columns();
    Some(sheet)
}

/// A table with what stands above and below it; long ones are closed.
pub(super) fn sheet(sheet: &Sheet, most: usize) -> Markup {
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

/// The cells alone.
pub(super) fn table(sheet: &Sheet, most: usize) -> Markup {
    let judges: Vec<bool> = sheet.columns.iter().map(|head| is_verdict(&head.text)).collect();
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
                                @let judged = judges.get(i).copied().unwrap_or(false);
                                td class=[class(cell, words, judged)] { (cell) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Columns whose cells say whether something is as it should be.
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
            "<thead><tr><th class=\"w\" scope=\"col\">&lt;i&gt;</th><th scope=\"col\">verdict</th>\
             <th scope=\"col\">n</th></tr></thead><tbody><tr><td class=\"w\">&lt;script&gt;alert(1)\
             &lt;/script&gt;</td><td class=\"ok\">ok</td><td>-5</td></tr><tr><td class=\"w\">&amp;\
             &quot;'</td><td class=\"off\">-7.3 %</td><td>ok</td></tr></tbody></table></div>"
        );
    }
}
