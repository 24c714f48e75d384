//! Colours, markers, sizes and fonts of every figure.

use std::sync::Once;

use plotters::style::{
    Color, FontStyle, IntoFont, IntoTextStyle, RGBColor, ShapeStyle, TextStyle, register_font,
};

use crate::plot::Origin;

/// Units of the drawing per pixel: shapes are placed at whole units, pixels would be too coarse.
pub(super) const GRID: i32 = 10;

/// Widths and heights of the parts, in pixels.
pub(super) mod size {
    /// A panel where there are two or fewer in a row.
    pub(crate) const PANEL: (i32, i32) = (440, 310);
    /// A panel where there are three in a row.
    pub(crate) const NARROW_PANEL: (i32, i32) = (350, 290);
    /// Around everything.
    pub(crate) const MARGIN: i32 = 16;
    /// Line of the legend.
    pub(crate) const LEGEND_LINE: i32 = 20;
    /// Line with marker before a name of the legend.
    pub(crate) const SWATCH: i32 = 28;
    /// Radius of a marker.
    pub(crate) const MARKER: f64 = 3.6;
    /// Line of the source.
    pub(crate) const SOURCE_LINE: i32 = 14;
    /// Text of axes and legend.
    pub(crate) const TEXT: f64 = 11.5;
    /// Title of a panel.
    pub(crate) const PANEL_TITLE: f64 = 12.5;
    /// Title of the figure.
    pub(crate) const TITLE: f64 = 15.0;
    /// Text of the source.
    pub(crate) const SOURCE: f64 = 10.0;
}

/// Behind everything, so that a figure reads the same on dark pages.
pub(super) const PAPER: RGBColor = RGBColor(255, 255, 255);
/// Text and axes.
pub(super) const INK: RGBColor = RGBColor(34, 34, 34);
/// Text of the source.
pub(super) const FAINT_INK: RGBColor = RGBColor(95, 95, 95);
/// Lines of labelled ticks.
pub(super) const RULE: RGBColor = RGBColor(214, 214, 214);
/// Lines between them.
pub(super) const FINE_RULE: RGBColor = RGBColor(240, 240, 240);

/// Colours that are told apart with any colour vision (Okabe and Ito 2008, without the yellow, which
/// is too light for lines).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(120, 94, 60),
];

/// Greys of what was published.
const GREYS: [RGBColor; 3] = [RGBColor(0, 0, 0), RGBColor(110, 110, 110), RGBColor(60, 60, 60)];

/// Form of a marker, so that colour never carries the meaning alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Down,
}

impl Marker {
    const ALL: [Self; 5] = [Self::Circle, Self::Square, Self::Triangle, Self::Diamond, Self::Down];

    /// Corners about the origin for a marker of radius 1; none of a circle.
    pub(super) fn corners(self) -> &'static [(f64, f64)] {
        match self {
            Self::Circle => &[],
            Self::Square => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            Self::Triangle => &[(0.0, -1.25), (1.1, 0.75), (-1.1, 0.75)],
            Self::Diamond => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
            Self::Down => &[(0.0, 1.25), (1.1, -0.75), (-1.1, -0.75)],
        }
    }
}

/// How a series looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    pub(super) colour: RGBColor,
    pub(super) marker: Marker,
    pub(super) origin: Origin,
}

impl Look {
    /// The look of the series number `index` of its origin.
    pub(super) fn of(index: usize, origin: Origin) -> Self {
        let colours: &[RGBColor] = match origin {
            Origin::Measured => &COLOURS,
            Origin::Published => &GREYS,
        };
        let colour = colours[index % colours.len()];
        Self { colour, marker: Marker::ALL[index % Marker::ALL.len()], origin }
    }

    /// Its line.
    pub(super) fn line(self) -> ShapeStyle {
        self.colour.stroke_width(2 * GRID as u32)
    }
}

/// Pixels as units of the drawing.
pub(super) fn units(pixels: f64) -> i32 {
    (pixels * f64::from(GRID)).round() as i32
}

/// Text of `pixels` per em.
pub(super) fn text(pixels: f64, weight: FontStyle, colour: RGBColor) -> TextStyle<'static> {
    register();
    // the SVG backend takes a size for that of a line of 1.24 em
    let font = ("sans-serif", 1.24 * pixels * f64::from(GRID)).into_font().style(weight);
    let mut style = font.into_text_style(&(1u32, 1u32));
    style.color = colour.to_backend_color();
    style
}

/// Gives the font to the layout of text, which knows no fonts of the system.
fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (style, bytes) in
            [(FontStyle::Normal, dejavu::sans::regular()), (FontStyle::Bold, dejavu::sans::bold())]
        {
            // without it text has no width, and a test of the layout fails
            let _ = register_font("sans-serif", style, bytes);
        }
    });
}
