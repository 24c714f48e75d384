//! A drawing as an element of a page: colours by class, equal neighbours in one path.

use std::fmt::Write;

use crate::report::plot::style::INKS;

/// What the style sheet of the page says once, or what is the default.
const SAID: [&str; 5] = [
    "opacity=\"1\"",
    "font-family=\"sans-serif\"",
    "font-size=\"115\"",
    "stroke=\"none\"",
    "stroke-width=\"10\"",
];

/// The text of a drawing for a page.
pub(super) fn inline(svg: &str) -> String {
    let mut text = svg.to_owned();
    for ink in INKS {
        for attribute in ["fill", "stroke"] {
            // a colour stands once in an element: the other attribute of it is `none`
            let fixed = format!("{attribute}=\"{}\"", ink.light());
            text = text.replace(&fixed, &format!("class=\"{}-{}\"", &attribute[..1], ink.name));
        }
    }
    for attribute in SAID {
        text = text.replace(&format!(" {attribute}"), "");
    }
    joined(&text)
}

/// Lines and filled shapes of one look that follow each other, but for texts between them, as one path; texts without
/// words go.
fn joined(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut open, mut texts) = (None::<String>, String::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some((look, data)) = stroke(line).or_else(|| shape(line)) {
            if open.as_ref() != Some(&look) {
                close(&mut out, &mut open, &mut texts);
                let _ = write!(out, "<path{look} d=\"");
                open = Some(look);
            }
            out.push_str(&data);
        } else if line.starts_with("<text") {
            let words = lines.next().unwrap_or_default();
            let end = lines.next().unwrap_or_default();
            if !words.trim().is_empty() {
                texts.push_str(&line.replace(" class=\"f-ink\"", ""));
                texts.extend([words, end]);
            }
        } else {
            close(&mut out, &mut open, &mut texts);
            out.push_str(line);
        }
    }
    close(&mut out, &mut open, &mut texts);
    out
}

fn close(out: &mut String, open: &mut Option<String>, texts: &mut String) {
    if open.take().is_some() {
        out.push_str("\"/>");
    }
    out.push_str(texts);
    texts.clear();
}

/// Look and path data of a line or polyline: its attributes but for the places, and the places.
fn stroke(line: &str) -> Option<(String, String)> {
    let body = line.strip_suffix("/>")?;
    if let Some(rest) = body.strip_prefix("<polyline fill=\"none\"") {
        let (look, points) = rest.split_once(" points=\"")?;
        let mut data = String::new();
        for (i, point) in points.trim_end_matches('"').split_whitespace().enumerate() {
            let (x, y) = point.split_once(',')?;
            let _ = write!(data, "{}{x} {y}", if i == 0 { 'M' } else { 'L' });
        }
        return Some((look.to_owned(), data));
    }
    let (look, places) = body.strip_prefix("<line")?.split_once(" x1=\"")?;
    let mut numbers = places.split('"').step_by(2);
    let mut next = || numbers.next();
    let data = format!("M{} {}L{} {}", next()?, next()?, next()?, next()?);
    Some((look.to_owned(), data))
}

/// Look and path data of a filled polygon, its corners relative to each other. Shapes of one look have no
/// outline and are opaque, so that it is the same whether they are drawn at once.
fn shape(line: &str) -> Option<(String, String)> {
    let (look, corners) = line.strip_prefix("<polygon")?.split_once(" points=\"")?;
    let mut data = String::new();
    let mut last: Option<(i32, i32)> = None;
    for corner in corners.strip_suffix("\"/>")?.split_whitespace() {
        let (x, y) = corner.split_once(',')?;
        let (x, y): (i32, i32) = (x.parse().ok()?, y.parse().ok()?);
        let _ = match last {
            None => write!(data, "M{x} {y}l"),
            Some((left, above)) => write!(data, "{} {} ", x - left, y - above),
        };
        last = Some((x, y));
    }
    Some((look.to_owned(), data.trim_end().to_owned() + "z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_look_are_one_path() {
        let line = |x: u32| {
            format!(
                "<line opacity=\"1\" stroke=\"#D6D6D6\" stroke-width=\"10\" x1=\"{x}\" y1=\"2\" x2=\"3\" \
                 y2=\"4\"/>\n"
            )
        };
        let text = |words: &str| {
            format!(
                "<text x=\"2\" opacity=\"1\" font-size=\"115\" fill=\"#222222\">\n{words}\n</text>\n"
            )
        };
        let shape = |points: &str| {
            format!("<polygon opacity=\"1\" fill=\"#0072B2\" points=\"{points}\"/>\n")
        };
        let svg = format!(
            "<svg>\n{}{}{}{}<polyline fill=\"none\" opacity=\"1\" stroke=\"#0072B2\" \
             stroke-width=\"20\" points=\"1,2 3,4 5,6 \"/>\n{}{}</svg>\n",
            line(1),
            text("a &lt; b"),
            line(5),
            text(""),
            shape("1,2 7,2 7,9 "),
            shape("3,4 9,4 9,11 ")
        );
        assert_eq!(
            inline(&svg),
            "<svg><path class=\"s-rule\" d=\"M1 2L3 4M5 2L3 4\"/><text x=\"2\">a &lt; b</text>\
             <path class=\"s-blue\" stroke-width=\"20\" d=\"M1 2L3 4L5 6\"/>\
             <path class=\"f-blue\" d=\"M1 2l6 0 0 7zM3 4l6 0 0 7z\"/></svg>"
        );
    }
}
