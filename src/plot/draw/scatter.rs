//! Labels beside the markers of a scatter, where there is room.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::layout::{Entry, width};
use super::{Area, Chart, Drawn, place};
use crate::plot::style::{GRID, INK, size, text, units};
use crate::plot::{Points, Series};

/// A rectangle that is taken: left, top, right, bottom.
type Taken = (i32, i32, i32, i32);

fn overlap(a: &Taken, b: &Taken) -> bool {
    a.0 < b.2 && b.0 < a.2 && a.1 < b.3 && b.1 < a.3
}

/// Writes the labels to the right of their points, else to the left, above or below; those without
/// room are left out.
pub(super) fn labels(chart: &Chart<'_, '_>, root: &Area<'_>, shown: &[(&Series, &Entry)]) -> Drawn {
    let mut points: Vec<((i32, i32), &str)> = Vec::new();
    for (series, _) in shown {
        let Points::Pairs(pairs) = &series.points else { continue };
        let labelled = pairs.iter().zip(&series.labels);
        points.extend(labelled.map(|(pair, label)| (place(chart, pair), label.as_str())));
    }
    let reach = units(size::MARKER + 1.5);
    let around = |(x, y): (i32, i32)| (x - reach, y - reach, x + reach, y + reach);
    let mut taken: Vec<Taken> = points.iter().map(|(point, _)| around(*point)).collect();
    let (across, down) = chart.plotting_area().get_pixel_range();
    let style = text(size::LABEL, FontStyle::Normal, INK);
    for ((x, y), label) in points {
        let (wide, high) = (GRID * width(label, size::LABEL), units(1.1 * size::LABEL));
        let gap = reach + units(1.5);
        let places = [
            (HPos::Left, x + gap, y - high / 2),
            (HPos::Right, x - gap - wide, y - high / 2),
            (HPos::Center, x - wide / 2, y - gap - high),
            (HPos::Center, x - wide / 2, y + gap),
        ];
        for (align, left, top) in places {
            let own = (left, top, left + wide, top + high);
            let inside = across.contains(&own.0)
                && across.contains(&own.2)
                && down.contains(&own.1)
                && down.contains(&own.3);
            if !inside || taken.iter().any(|other| overlap(&own, other)) {
                continue;
            }
            let anchor = match align {
                HPos::Left => left,
                HPos::Right => left + wide,
                HPos::Center => left + wide / 2,
            };
            let style = style.pos(Pos::new(align, VPos::Center));
            root.draw_text(label, &style, (anchor, top + high / 2))?;
            taken.push(own);
            break;
        }
    }
    Ok(())
}
