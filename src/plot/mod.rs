//! Figures: a small description of what is shown, drawn by one renderer to SVG, and PNG from that.
//!
//! An experiment declares its figure in its TOML file ([`crate::config::figure`]); [`from_records`]
//! turns records into the description.

mod draw;
mod file;
pub mod from_records;
mod png;
pub mod quantity;
mod scale;
mod style;

pub use draw::svg;
pub use file::{Form, write};
pub use png::png;
pub use scale::Spacing;

/// What is drawn: a title, panels that share a legend, and where the numbers come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Its title.
    pub title: String,
    /// What its panels show, lines or bars.
    pub marks: Marks,
    /// Panels, row by row.
    pub panels: Vec<Panel>,
    /// Lines below: machines, revision, citation.
    pub source: Vec<String>,
}

/// How the points of a series are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Marks {
    /// Markers joined by lines.
    #[default]
    Lines,
    /// Bars side by side at each category of the x axis.
    Bars,
}

impl Marks {
    /// By name.
    pub const NAMES: [(&'static str, Self); 2] = [("lines", Self::Lines), ("bars", Self::Bars)];
}

/// One pair of axes with its series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// What tells it from the other panels; empty for the only one.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Series, drawn in this order.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Axis {
    /// What it shows, with the unit in brackets.
    pub label: String,
    /// Linear or logarithmic; no part in bars' horizontal axis.
    pub spacing: Spacing,
    /// Names of the categories 0, 1, ... below bars.
    pub categories: Vec<String>,
}

/// Points of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name in the legend; series of the same name look the same in every panel.
    pub name: String,
    /// Whose numbers they are.
    pub origin: Origin,
    /// The numbers, by increasing x. In bars, x is the number of the category.
    pub points: Points,
}

/// The numbers of a series.
#[derive(Clone, Debug, PartialEq)]
pub enum Points {
    /// Pairs of x and y.
    Pairs(Vec<(f64, f64)>),
    /// One y for all x.
    Level(f64),
}

impl Points {
    /// Whether they are pairs and no level.
    fn are_pairs(&self) -> bool {
        matches!(self, Self::Pairs(_))
    }
}

impl Default for Points {
    fn default() -> Self {
        Self::Pairs(Vec::new())
    }
}

/// Whose numbers a series shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Ours: solid lines, filled markers.
    #[default]
    Measured,
    /// A paper's: dashed lines, hollow markers.
    Published,
}

impl Figure {
    /// Names of all series with their origin, each once, measured ones first.
    fn names(&self) -> Vec<(&str, Origin)> {
        let mut names: Vec<(&str, Origin)> = Vec::new();
        for series in self.panels.iter().flat_map(|panel| &panel.series) {
            let name = (series.name.as_str(), series.origin);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.sort_by_key(|(_, origin)| *origin == Origin::Published);
        names
    }
}
