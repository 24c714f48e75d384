//! Lines, markers and bars of a series.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::layout::Entry;
use super::{Area, Drawn};
use crate::config::marks::Marks;
use crate::report::plot::Origin;
use crate::report::plot::style::{Dash, GRID, INK, Look, PAPER, size, text, units};

/// A sample of the series and its name.
pub(super) fn swatch(root: &Area<'_>, marks: Marks, entry: &Entry, (x, y): (i32, i32)) -> Drawn {
    let end = x + GRID * size::SWATCH;
    match marks {
        Marks::Bars | Marks::Rows | Marks::Stacked if entry.points => {
            let half = units(5.0);
            bar(root, [(x + units(4.0), y - half), (end, y + half)], entry.look)?;
        }
        Marks::Scatter if entry.look.origin != Origin::Limit => {
            marker(root, (i32::midpoint(x, end), y), entry.look)?;
        }
        _ => {
            path(root, &[(x, y), (end, y)], entry.look)?;
            let marked = matches!(marks, Marks::Lines | Marks::Steps) && entry.points;
            if marked && entry.look.origin != Origin::Limit {
                marker(root, (i32::midpoint(x, end), y), entry.look)?;
            }
        }
    }
    let style = text(size::TEXT, FontStyle::Normal, INK).pos(Pos::new(HPos::Left, VPos::Center));
    root.draw_text(&entry.name, &style, (end + units(6.0), y))?;
    Ok(())
}

/// A bar between two corners of the drawing: filled where it was measured, hollow where it was
/// published.
pub(super) fn bar(root: &Area<'_>, corners: [(i32, i32); 2], look: Look) -> Drawn {
    let [(left, top), (right, bottom)] = corners;
    if look.origin == Origin::Published {
        // inside the corners, so that it is as large as a filled one
        let half = units(0.75) * (right - left).signum();
        let high = units(0.75) * (bottom - top).signum();
        let (left, right, top, bottom) = (left + half, right - half, top + high, bottom - high);
        let outline = vec![(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        root.draw(&PathElement::new(outline, look.colour.stroke_width(units(1.5) as u32)))?;
    } else {
        root.draw(&Rectangle::new(corners, look.colour.filled()))?;
        stripes(root, corners, units(look.stripes))?;
    }
    Ok(())
}

/// Stripes of paper across a filled bar, `step` units from one to the next.
fn stripes(root: &Area<'_>, corners: [(i32, i32); 2], step: i32) -> Drawn {
    let [(x0, y0), (x1, y1)] = corners;
    let (left, right, top, bottom) = (x0.min(x1), x0.max(x1), y0.min(y1), y0.max(y1));
    if step == 0 {
        return Ok(());
    }
    let style = PAPER.stroke_width(GRID as u32);
    // across the bar: down a horizontal one
    if right - left > bottom - top {
        for x in (left + step..right).step_by(step as usize) {
            root.draw(&PathElement::new(vec![(x, top), (x, bottom)], style))?;
        }
    } else {
        for y in (top + step..bottom).step_by(step as usize) {
            root.draw(&PathElement::new(vec![(left, y), (right, y)], style))?;
        }
    }
    Ok(())
}

/// A confidence interval: a line with ends.
pub(super) fn whisker(
    root: &Area<'_>,
    low: (i32, i32),
    high: (i32, i32),
    colour: RGBColor,
) -> Drawn {
    let style = colour.stroke_width(GRID as u32);
    root.draw(&PathElement::new(vec![low, high], style))?;
    let half = units(2.5);
    // across the line
    let (dx, dy) = if low.1 == high.1 { (0, half) } else { (half, 0) };
    for (x, y) in [low, high] {
        root.draw(&PathElement::new(vec![(x - dx, y - dy), (x + dx, y + dy)], style))?;
    }
    Ok(())
}

/// A line through points of the drawing.
pub(super) fn path(root: &Area<'_>, points: &[(i32, i32)], look: Look) -> Drawn {
    if look.dash.is_empty() {
        root.draw(&PathElement::new(points.to_vec(), look.line()))?;
        return Ok(());
    }
    for dash in dashes(points, look.dash) {
        root.draw(&PathElement::new(dash, look.line()))?;
    }
    Ok(())
}

/// The pieces of a line through `points` that a dash of some lengths and gaps in pixels draws, with the
/// corners inside them.
fn dashes(points: &[(i32, i32)], dash: Dash) -> Vec<Vec<(i32, i32)>> {
    let (mut pieces, mut piece) = (Vec::new(), Vec::new());
    let (mut at, mut left) = (0, f64::from(GRID) * dash[0]);
    let rounded = |(x, y): (f64, f64)| (x.round() as i32, y.round() as i32);
    for ends in points.windows(2) {
        let [from, to] = [ends[0], ends[1]].map(|(x, y)| (f64::from(x), f64::from(y)));
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let point = |along: f64| {
            let part = along / length;
            rounded((from.0 + part * (to.0 - from.0), from.1 + part * (to.1 - from.1)))
        };
        let mut along = 0.0;
        while along < length {
            let step = left.min(length - along);
            // dashes and gaps in turn
            if at % 2 == 0 {
                if piece.is_empty() {
                    piece.push(point(along));
                }
                piece.push(point(along + step));
            }
            along += step;
            left -= step;
            if left <= 0.0 {
                at = (at + 1) % dash.len();
                left = f64::from(GRID) * dash[at];
                pieces.extend((!piece.is_empty()).then(|| std::mem::take(&mut piece)));
            }
        }
    }
    pieces.extend((piece.len() > 1).then_some(piece));
    pieces
}

/// The marker of a series at a point of the drawing.
pub(super) fn marker(root: &Area<'_>, (x, y): (i32, i32), look: Look) -> Drawn {
    let radius = size::MARKER;
    let hollow = look.origin == Origin::Published;
    let fill = if hollow { PAPER } else { look.colour };
    let edge = look.colour.stroke_width(units(1.5) as u32);
    let corners = look.marker.corners();
    if corners.is_empty() {
        root.draw(&Circle::new((x, y), units(radius), fill.filled()))?;
        if hollow {
            root.draw(&Circle::new((x, y), units(radius), edge))?;
        }
        return Ok(());
    }
    let corner = |(dx, dy): &(f64, f64)| (x + units(radius * dx), y + units(radius * dy));
    let mut outline: Vec<(i32, i32)> = corners.iter().map(corner).collect();
    root.draw(&Polygon::new(outline.clone(), fill.filled()))?;
    if hollow {
        outline.push(outline[0]);
        root.draw(&PathElement::new(outline, edge))?;
    }
    Ok(())
}
