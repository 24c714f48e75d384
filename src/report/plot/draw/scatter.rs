//! Labels of the markers of a scatter.

use std::ops::Range;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::layout::{Entry, width};
use super::{Area, Chart, Drawn, place};
use crate::report::plot::style::{FAINT_INK, GRID, INK, size, text, units};
use crate::report::plot::{Origin, Series};

/// A rectangle that is taken: left, top, right, bottom.
type Taken = (i32, i32, i32, i32);

fn overlap(a: &Taken, b: &Taken) -> bool {
    a.0 < b.2 && b.0 < a.2 && a.1 < b.3 && b.1 < a.3
}

/// Distance from ring to ring, in pixels, and how many are looked at.
const RING: f64 = 9.0;
const RINGS: usize = 24;

/// Writes the labels to the right of their points, else to the left, above or below. One without room
/// there is written further away, at the end of a thin line; that of a limit is left out.
pub(super) fn labels(chart: &Chart<'_, '_>, root: &Area<'_>, shown: &[(&Series, &Entry)]) -> Drawn {
    let mut points: Vec<((i32, i32), &str, bool)> = Vec::new();
    for (series, _) in shown {
        let limit = series.origin == Origin::Limit;
        let labelled =
            series.pairs().iter().zip(&series.labels).filter(|(_, label)| !label.is_empty());
        points.extend(labelled.map(|(pair, label)| (place(chart, pair), label.as_str(), limit)));
    }
    let reach = units(size::MARKER + 1.5);
    let around = |(x, y): (i32, i32)| (x - reach, y - reach, x + reach, y + reach);
    let mut taken: Vec<Taken> = points.iter().map(|(point, ..)| around(*point)).collect();
    let area = chart.plotting_area().get_pixel_range();
    let style = text(size::LABEL, FontStyle::Normal, INK).pos(Pos::new(HPos::Center, VPos::Center));
    for (point, label, limit) in points {
        let extent = (GRID * width(label, size::LABEL), units(1.1 * size::LABEL));
        let Some((own, near)) = room(point, extent, reach, &taken, &area, limit) else { continue };
        let (left, top, right, bottom) = own;
        if !near {
            // to the nearest point of the label's box
            let end = (point.0.clamp(left, right), point.1.clamp(top, bottom));
            let line = FAINT_INK.stroke_width(units(0.7) as u32);
            root.draw(&PathElement::new(vec![point, end], line))?;
        }
        let middle = (i32::midpoint(left, right), i32::midpoint(top, bottom));
        root.draw_text(label, &style, middle)?;
        taken.push(own);
    }
    Ok(())
}

/// Where a label of some extent goes, and whether that is beside its point. Where everything is taken,
/// it covers what is there; not that of a limit.
fn room(
    (x, y): (i32, i32),
    (wide, high): (i32, i32),
    reach: i32,
    taken: &[Taken],
    (across, down): &(Range<i32>, Range<i32>),
    limit: bool,
) -> Option<(Taken, bool)> {
    let at = |left: i32, top: i32| (left, top, left + wide, top + high);
    let inside = |own: &Taken| {
        own.0 >= across.start && own.2 <= across.end && own.1 >= down.start && own.3 <= down.end
    };
    let free = |own: &Taken| inside(own) && !taken.iter().any(|other| overlap(own, other));
    let gap = reach + units(1.5);
    let near = [
        at(x + gap, y - high / 2),
        at(x - gap - wide, y - high / 2),
        at(x - wide / 2, y - gap - high),
        at(x - wide / 2, y + gap),
    ];
    if let Some(own) = near.iter().find(|own| free(own)) {
        return Some((*own, true));
    }
    if limit {
        return None;
    }
    let rings = (1..=RINGS).flat_map(|ring| (0..24).map(move |turn| (ring, turn)));
    let far = rings.map(|(ring, turn)| {
        let (sin, cos) = (std::f64::consts::TAU * f64::from(turn) / 24.0).sin_cos();
        let away = f64::from(gap) + f64::from(units(RING * ring as f64));
        let middle = (x + (away * cos) as i32, y + (away * sin) as i32);
        // the side of the box that faces the point lies on the ring
        let left = middle.0 - wide / 2 + (cos * f64::from(wide / 2)) as i32;
        at(left, middle.1 - high / 2)
    });
    let found = far.into_iter().find(|own| free(own)).map(|own| (own, false));
    found.or_else(|| near.into_iter().find(|own| inside(own)).map(|own| (own, true)))
}
