//! Bars, or dots, side by side.

use super::shapes::{bar, marker, whisker};
use super::{Area, Chart, Drawn, place};
use crate::report::plot::scale::Scale;
use crate::report::plot::style::{INK, Look};
use crate::report::plot::{Origin, Series};

/// Where the bars of a series stand among those of a category.
pub(super) struct Group {
    pub(super) slot: usize,
    pub(super) slots: usize,
    /// Whether dots stand in their place: a bar of a logarithmic axis has no foot.
    pub(super) dots: bool,
}

pub(super) fn draw(
    chart: &Chart<'_, '_>,
    root: &Area<'_>,
    (series, points): (&Series, &[(f64, f64)]),
    y: &Scale,
    look: Look,
    group: &Group,
) -> Drawn {
    const FILLED: f64 = 0.82;
    let width = FILLED / group.slots as f64;
    for (i, &(category, value)) in points.iter().enumerate() {
        if !y.holds(value) {
            continue;
        }
        let left = category - FILLED / 2.0 + width * (group.slot as f64 + 0.06);
        if !group.dots {
            let corners = [(left, 0.0), (left + 0.88 * width, value)];
            bar(root, corners.map(|corner| place(chart, &corner)), look)?;
        }
        let ends = series.spread.get(i).filter(|(low, high)| y.holds(*low) && y.holds(*high));
        if let Some((low, high)) = ends.filter(|_| look.origin == Origin::Measured) {
            let middle = left + 0.44 * width;
            whisker(root, place(chart, &(middle, *low)), place(chart, &(middle, *high)), INK)?;
        }
        if group.dots {
            marker(root, place(chart, &(left + 0.44 * width, value)), look)?;
        }
    }
    Ok(())
}
