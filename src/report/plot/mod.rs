//! Figures: a small description of what is shown, drawn by one renderer to SVG, and PNG from that.
//!
//! An experiment declares its figure in its TOML file ([`crate::config::figure`]); [`from_records`]
//! turns records into the description.

mod draw;
mod file;
pub mod from_records;
pub mod kinds;
mod names;
mod numbers;
pub mod obstacle;
mod png;
mod scale;
pub(crate) mod style;

use std::fmt::Write as _;

use itertools::Itertools as _;

use crate::config::marks::{Marks, Spacing};

pub(crate) use draw::inline_svg;
pub use draw::svg;
pub(crate) use draw::too_wide;
pub use file::{Form, check, write};
pub(crate) use names::Names;
pub use numbers::{COLUMNS, numbers};
pub(crate) use numbers::{Number, numbers_of};
pub use png::png;

/// What is drawn: a title, panels that share a legend, and where the numbers come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Its title.
    pub title: String,
    /// What its panels show, lines or bars.
    pub marks: Marks,
    /// Panels, row by row.
    pub panels: Vec<Panel>,
    /// Panels per row; 0 leaves the choice to the renderer.
    pub columns: usize,
    /// Lines below: machines, revision, citation.
    pub source: Vec<String>,
    /// Requested series that do not fit.
    pub left_out: Vec<LeftOut>,
}

/// A series that is not drawn because there are too many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Title of its panel, which may be left out too.
    pub panel: String,
    /// Its name.
    pub series: String,
}

impl LeftOut {
    /// A series of the only panel.
    pub(crate) fn alone(series: String) -> Self {
        Self { panel: String::new(), series }
    }
}

/// One pair of axes with its series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Its title; empty for a single panel.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Series, drawn in this order.
    pub series: Vec<Series>,
}

impl Panel {
    pub(crate) fn new(title: impl Into<String>, x: Axis, y: Axis, series: Vec<Series>) -> Self {
        Self { title: title.into(), x, y, series }
    }
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Axis {
    /// Its label, with the unit in brackets.
    pub label: String,
    /// Linear or logarithmic; no part in bars' horizontal axis.
    pub spacing: Spacing,
    /// Names of the categories 0, 1, ... below bars, and from the top beside stacked ones.
    pub categories: Vec<String>,
}

impl Axis {
    /// An axis of numbers.
    pub(crate) fn of(label: impl Into<String>, spacing: Spacing) -> Self {
        Self { label: label.into(), spacing, categories: Vec::new() }
    }
}

/// Points of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name in the legend; series of the same name look the same in every panel.
    pub name: String,
    /// Origin of the values.
    pub origin: Origin,
    /// The numbers, by increasing x. In bars, x is the number of the category.
    pub points: Points,
    /// Lower and upper end of the confidence interval of each pair's y; none, or one for each.
    pub spread: Vec<(f64, f64)>,
    /// What is written beside each pair of a scatter; none, or one for each.
    pub labels: Vec<String>,
}

impl Series {
    /// Measured pairs.
    pub(crate) fn of(name: impl Into<String>, pairs: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points: Points::Pairs(pairs), ..Self::default() }
    }

    /// A bound at one y for all x.
    pub(crate) fn limit(name: impl Into<String>, level: f64) -> Self {
        let (name, points) = (name.into(), Points::Level(level));
        Self { name, origin: Origin::Limit, points, ..Self::default() }
    }

    /// Its pairs; none of a level.
    pub(crate) fn pairs(&self) -> &[(f64, f64)] {
        match &self.points {
            Points::Pairs(pairs) => pairs,
            Points::Level(_) => &[],
        }
    }

    /// Every y that is to have a place on its axis, the ends of intervals included.
    fn heights(&self) -> impl Iterator<Item = f64> {
        let level = match self.points {
            Points::Level(value) => Some(value),
            Points::Pairs(_) => None,
        };
        let ends = self.spread.iter().filter(move |_| level.is_none());
        let ends = ends.flat_map(|(low, high)| [*low, *high]);
        level.into_iter().chain(self.pairs().iter().map(|p| p.1)).chain(ends)
    }
}

/// The numbers of a series.
#[derive(Clone, Debug, PartialEq)]
pub enum Points {
    /// Pairs of x and y.
    Pairs(Vec<(f64, f64)>),
    /// One y for all x.
    Level(f64),
}

impl Default for Points {
    fn default() -> Self {
        Self::Pairs(Vec::new())
    }
}

/// Origin of the values of a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Ours: solid lines, filled markers.
    #[default]
    Measured,
    /// A paper's: dashed lines, hollow markers.
    Published,
    /// A bound of the machine: thin lines without markers.
    Limit,
}

/// Series that are left out which a figure names; its CSV names all.
const NAMED: usize = 12;

impl Figure {
    /// What is left out, in a sentence; `None` where everything is drawn.
    pub(crate) fn left_out_line(&self) -> Option<String> {
        let name = |LeftOut { panel, series }: &LeftOut| {
            // a panel that is not there is named once
            let drawn = self.panels.iter().any(|p| p.title == *panel);
            if panel.is_empty() || drawn && self.panels.len() == 1 {
                series.clone()
            } else if drawn {
                format!("{series} of {panel}")
            } else {
                format!("all of {panel}")
            }
        };
        let mut names = self.left_out.iter().map(name).unique().collect_vec();
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        let mut line = format!("not drawn: {}", names.join("; "));
        if more > 0 {
            _ = write!(line, "; and {more} more, which the CSV of this figure names");
        }
        (!self.left_out.is_empty()).then_some(line)
    }

    /// Names of all series with their origin, each once, measured ones first.
    fn names(&self) -> Vec<(&str, Origin)> {
        let all = self.panels.iter().flat_map(|panel| &panel.series);
        let names = all.map(|series| (series.name.as_str(), series.origin)).unique();
        names.sorted_by_key(|(_, origin)| *origin as usize).collect()
    }
}
