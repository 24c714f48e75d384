//! The data of a figure as rows, for other plotting programs.

use crate::base::error::Result;
use crate::report::cells::shown;
use crate::report::csv;
use crate::report::plot::{Figure, LeftOut, Origin, Points, Series};

/// Columns of the rows with their meaning.
pub const COLUMNS: &[(&str, &str)] = &[
    ("figure", "title of the figure"),
    ("panel", "title of the panel; empty for a single panel"),
    ("series", "name in the legend"),
    (
        "origin",
        "measured, published, limit (a bound of the machine, or the tolerance), or left out (a series that is \
         not drawn because there are too many; it has no values)",
    ),
    ("category", "name on the category axis, if any"),
    ("label", "text beside the point"),
    ("x", "value on the axis that x-label names, or index of the category; empty: holds for all x"),
    ("y", "value on the axis that y-label names"),
    ("low", "lower end of the 95 % confidence interval of y, if known"),
    ("high", "upper end of the interval"),
    ("x-label", "horizontal axis with its unit; for stacked bars the length of a segment"),
    ("y-label", "vertical axis with its unit"),
];

impl Origin {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Published => "published",
            Self::Limit => "limit",
        }
    }
}

/// A point of a figure with what it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Number<'a> {
    pub(crate) panel: &'a str,
    pub(crate) series: &'a str,
    pub(crate) origin: Origin,
    /// Name of its category; empty where there is none.
    pub(crate) category: &'a str,
    pub(crate) label: &'a str,
    /// `None` where the value holds for all x.
    pub(crate) x: Option<f64>,
    pub(crate) y: f64,
    pub(crate) spread: Option<(f64, f64)>,
    axes: (&'a str, &'a str),
}

/// All points of `figure`.
pub(crate) fn numbers_of(figure: &Figure) -> Vec<Number<'_>> {
    let mut numbers = Vec::new();
    for panel in &figure.panels {
        let names =
            if panel.y.categories.is_empty() { &panel.x.categories } else { &panel.y.categories };
        for series in &panel.series {
            for (i, (x, y)) in pairs(series).into_iter().enumerate() {
                let category = x.and_then(|x| names.get(x as usize));
                numbers.push(Number {
                    panel: &panel.title,
                    series: &series.name,
                    origin: series.origin,
                    category: category.map_or("", String::as_str),
                    label: series.labels.get(i).map_or("", String::as_str),
                    x,
                    y,
                    spread: series.spread.get(i).copied(),
                    axes: (&panel.x.label, &panel.y.label),
                });
            }
        }
    }
    numbers
}

/// All points of `figures` as CSV under [`COLUMNS`].
///
/// # Errors
/// Never for text in memory; what the writer reports.
pub fn numbers<'a>(figures: impl IntoIterator<Item = &'a Figure>) -> Result<String> {
    let text = |v: Option<f64>| shown(v.filter(|v| v.is_finite()), |v| v.to_string());
    let mut lines = vec![COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>()];
    for figure in figures {
        lines.extend(numbers_of(figure).iter().map(|number| {
            let names = [figure.title.as_str(), number.panel, number.series, number.origin.name()];
            let names = names.into_iter().chain([number.category, number.label]).map(str::to_owned);
            let spread = number.spread.unzip();
            let values = [number.x, Some(number.y), spread.0, spread.1].map(text);
            let axes = [number.axes.0, number.axes.1].map(str::to_owned);
            names.chain(values).chain(axes).collect()
        }));
        lines.extend(figure.left_out.iter().map(|LeftOut { panel, series }| {
            let mut row = vec![String::new(); COLUMNS.len()];
            let names = [&*figure.title, panel, series, "left out"].map(str::to_owned);
            row[..names.len()].clone_from_slice(&names);
            row
        }));
    }
    csv::text(lines)
}

fn pairs(series: &Series) -> Vec<(Option<f64>, f64)> {
    match &series.points {
        Points::Pairs(pairs) => pairs.iter().map(|(x, y)| (Some(*x), *y)).collect(),
        Points::Level(y) => vec![(None, *y)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::plot::{Axis, Panel};

    #[test]
    fn every_point_is_a_row() {
        let series = |name: &str, points| Series { name: name.into(), points, ..Series::default() };
        let axis = |label: &str| Axis { label: label.into(), ..Axis::default() };
        let categories = vec!["a".into(), "b, c".into()];
        let figure = Figure {
            title: "t".into(),
            panels: vec![Panel {
                title: "p".into(),
                x: Axis { categories, ..axis("system") },
                y: axis("time (s)"),
                series: vec![
                    Series {
                        spread: vec![(1.0, 2.0), (2.5, 3.5)],
                        ..series("one", Points::Pairs(vec![(0.0, 1.5), (1.0, 3.0)]))
                    },
                    Series { origin: Origin::Limit, ..series("roof", Points::Level(9.0)) },
                ],
            }],
            ..Figure::default()
        };
        let header = COLUMNS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(",");
        let wanted = [
            header.as_str(),
            "t,p,one,measured,a,,0,1.5,1,2,system,time (s)",
            "t,p,one,measured,\"b, c\",,1,3,2.5,3.5,system,time (s)",
            "t,p,roof,limit,,,,9,,,system,time (s)",
            "",
        ];
        assert_eq!(numbers([&figure]).unwrap(), wanted.join("\n"));
    }
}
