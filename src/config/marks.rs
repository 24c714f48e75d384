//! Marks and scales of figures that an experiment can choose.

/// How the points of a series are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Marks {
    /// Markers joined by lines.
    #[default]
    Lines,
    /// Bars side by side at each category of the x axis.
    Bars,
    /// Markers, with the labels of their points.
    Scatter,
    /// Lines that keep their value up to the next point, as of distribution functions.
    Steps,
    /// Horizontal bars below each other at each category of the y axis. The x of a point is the number
    /// of the category, its y the length of the bar; the axis of lengths is that of x.
    Rows,
    /// A horizontal bar for each category, in which series follow each other; points as in rows.
    Stacked,
}

impl Marks {
    /// Those of an experiment's figure, by name.
    pub const NAMES: [(&'static str, Self); 2] = [("lines", Self::Lines), ("bars", Self::Bars)];

    /// Whether the categories are those of the vertical axis.
    pub(crate) fn horizontal(self) -> bool {
        matches!(self, Self::Rows | Self::Stacked)
    }
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spacing {
    /// Equal steps, from zero on where no value is negative.
    #[default]
    Linear,
    /// Equal factors.
    Log,
}

impl Spacing {
    /// By name.
    pub const NAMES: [(&'static str, Self); 2] = [("linear", Self::Linear), ("log", Self::Log)];
}
