//! Lines with markers, markers alone, and steps.

use super::shapes::{marker, path, whisker};
use super::{Area, Chart, Drawn, place};
use crate::config::marks::Marks;
use crate::report::plot::style::Look;
use crate::report::plot::{Origin, Series};

/// Markers that a stepped line has about: it has many points, and they only tell it from others.
const MARKED_STEPS: usize = 6;

/// Points up to which each has a marker.
const MARKED_POINTS: usize = 60;

pub(super) fn draw(
    chart: &Chart<'_, '_>,
    root: &Area<'_>,
    (series, points): (&Series, &[(f64, f64)]),
    holds: &dyn Fn(&(f64, f64)) -> bool,
    marks: Marks,
    look: Look,
) -> Drawn {
    if look.origin == Origin::Measured {
        for (i, (low, high)) in series.spread.iter().enumerate() {
            let Some((x, _)) = points.get(i) else { break };
            if holds(&(*x, *low)) && holds(&(*x, *high)) {
                whisker(root, place(chart, &(*x, *low)), place(chart, &(*x, *high)), look.colour)?;
            }
        }
    }
    let shown: Vec<(i32, i32)> =
        points.iter().filter(|p| holds(p)).map(|point| place(chart, point)).collect();
    let corners = if marks == Marks::Steps { steps(&shown) } else { shown.clone() };
    let joined = marks != Marks::Scatter || look.origin == Origin::Limit;
    if joined && corners.len() > 1 {
        path(root, &corners, look)?;
    }
    if look.origin == Origin::Limit {
        return Ok(());
    }
    let every = match marks {
        Marks::Steps => shown.len().div_ceil(MARKED_STEPS),
        Marks::Lines => shown.len().div_ceil(MARKED_POINTS),
        _ => 1,
    };
    for point in shown.iter().step_by(every.max(1)) {
        marker(root, *point, look)?;
    }
    Ok(())
}

/// Each value holds up to the next point.
fn steps(points: &[(i32, i32)]) -> Vec<(i32, i32)> {
    let mut corners: Vec<(i32, i32)> = Vec::with_capacity(2 * points.len());
    for point in points {
        if let Some((_, y)) = corners.last().copied() {
            corners.push((point.0, y));
        }
        corners.push(*point);
    }
    corners
}
