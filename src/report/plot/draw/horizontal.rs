//! Horizontal bars, below each other or following each other.

use super::layout::Entry;
use super::shapes::{bar, marker, whisker};
use super::{Area, Chart, Drawn, place};
use crate::config::marks::{Marks, Spacing};
use crate::report::plot::scale::Scale;
use crate::report::plot::style::INK;
use crate::report::plot::{Origin, Panel, Points, Series};

/// Part of its place that a category fills.
const FILLED: f64 = 0.76;

/// What a series has for a category, and the number of that point.
fn piece(series: &Series, category: usize) -> Option<(usize, f64)> {
    let mut own = series.pairs().iter().enumerate();
    let found = own.find(|(_, (at, length))| *at == category as f64 && length.is_finite());
    found.map(|(i, (_, length))| (i, *length))
}

/// Lengths that the axis has room for.
pub(super) fn lengths(panel: &Panel, marks: Marks) -> Vec<f64> {
    if marks == Marks::Stacked {
        // a sum of shares is 100 but for rounding
        let sum = |category| -> f64 {
            panel.series.iter().filter_map(|s| Some(piece(s, category)?.1)).sum()
        };
        return (0..panel.y.categories.len()).map(|i| (sum(i) * 1e6).round() / 1e6).collect();
    }
    panel.series.iter().flat_map(Series::heights).collect()
}

pub(super) fn draw(
    chart: &Chart<'_, '_>,
    root: &Area<'_>,
    panel: &Panel,
    (x, marks): (&Scale, Marks),
    looks: &[Entry],
) -> Drawn {
    let shown = super::shown(panel, looks);
    let with_bars: Vec<_> = looks.iter().filter(|e| e.points).collect();
    let last = panel.y.categories.len() as f64 - 1.0;
    // a bar of a logarithmic axis has no foot: dots stand in their place
    let dots = marks == Marks::Rows && panel.x.spacing == Spacing::Log;
    for category in 0..panel.y.categories.len() {
        let (mut from, middle) = (0.0, last - category as f64);
        for (series, entry) in &shown {
            let piece = piece(series, category).filter(|(_, length)| x.holds(*length));
            let Some((point, length)) = piece else { continue };
            let (ends, top, bottom) = if marks == Marks::Stacked {
                (from, middle + FILLED / 2.0, middle - FILLED / 2.0)
            } else {
                let width = FILLED / with_bars.len() as f64;
                let slot = with_bars.iter().position(|e| std::ptr::eq(*e, *entry)).unwrap_or(0);
                let top = middle + FILLED / 2.0 - width * slot as f64;
                (x.low().max(0.0), top, top - 0.88 * width)
            };
            let to = if marks == Marks::Stacked { from + length } else { length };
            if to > ends && !dots {
                let corners = [(ends, top), (to, bottom)].map(|corner| place(chart, &corner));
                bar(root, corners, entry.look)?;
            }
            from = to;
            let spread = series.spread.get(point);
            let spread = spread.filter(|(low, high)| x.holds(*low) && x.holds(*high));
            if let Some((low, high)) = spread.filter(|_| entry.look.origin == Origin::Measured) {
                let height = f64::midpoint(top, bottom);
                let ends = [low, high].map(|end| place(chart, &(*end, height)));
                whisker(root, ends[0], ends[1], INK)?;
            }
            if dots {
                marker(root, place(chart, &(length, f64::midpoint(top, bottom))), entry.look)?;
            }
        }
    }
    for (series, entry) in shown {
        if let Points::Level(value) = series.points
            && x.holds(value)
        {
            let ends = [-0.5, last + 0.5].map(|end| place(chart, &(value, end)));
            super::shapes::path(root, &ends, entry.look)?;
        }
    }
    Ok(())
}
