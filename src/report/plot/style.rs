//! Colours, markers, sizes and fonts of every figure.

use std::sync::{LazyLock, Once};

use plotters::style::{
    Color, FontStyle, IntoFont, IntoTextStyle, RGBColor, ShapeStyle, TextStyle, register_font,
};

use crate::base::embedded::unpack;
use crate::report::plot::Origin;

/// Units of the drawing per pixel: shapes are placed at whole units, pixels would be too coarse.
pub(super) const GRID: i32 = 10;

/// Widths and heights of the parts, in pixels.
pub(super) mod size {
    /// A panel where there are two or fewer in a row.
    pub(crate) const PANEL: (i32, i32) = (440, 310);
    /// A panel where there are three in a row.
    pub(crate) const NARROW_PANEL: (i32, i32) = (350, 290);
    /// Width of a panel of horizontal bars.
    pub(crate) const ROWS: i32 = 880;
    /// Height of a horizontal bar with the gap behind it, and of one of several.
    pub(crate) const ROW: i32 = 20;
    pub(crate) const THIN_ROW: i32 = 10;
    /// Widest panel of bars beside each other.
    pub(crate) const WIDEST: i32 = 1000;
    /// Room above a panel for its title, and for each further line of it.
    pub(crate) const PANEL_HEAD: i32 = 26;
    pub(crate) const PANEL_TITLE_LINE: i32 = 16;
    /// Room to the right of a panel's axes.
    pub(crate) const PANEL_RIGHT: i32 = 18;
    /// Most labels of an axis.
    pub(crate) const MOST_LABELS: usize = 80;
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
    /// Label of a point.
    pub(crate) const LABEL: f64 = 10.0;
    /// Title of a panel.
    pub(crate) const PANEL_TITLE: f64 = 12.5;
    /// Title of the figure.
    pub(crate) const TITLE: f64 = 15.0;
    /// Text of the source.
    pub(crate) const SOURCE: f64 = 10.0;
}

/// A colour with what stands for it on a dark page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ink {
    /// Name of the variable in style sheets.
    pub(crate) name: &'static str,
    light: (u8, u8, u8),
    dark: (u8, u8, u8),
}

impl Ink {
    const fn new(name: &'static str, light: u32, dark: u32) -> Self {
        Self { name, light: bytes(light), dark: bytes(dark) }
    }

    /// In figures.
    pub(super) const fn colour(self) -> RGBColor {
        RGBColor(self.light.0, self.light.1, self.light.2)
    }

    /// `#0072B2`, as figures name it.
    pub(crate) fn light(self) -> String {
        hex(self.light)
    }

    /// The same on a dark page.
    pub(crate) fn dark(self) -> String {
        hex(self.dark)
    }
}

const fn bytes(rgb: u32) -> (u8, u8, u8) {
    ((rgb >> 16) as u8, (rgb >> 8) as u8, rgb as u8)
}

fn hex((r, g, b): (u8, u8, u8)) -> String {
    format!("#{r:02X}{g:02X}{b:02X}")
}

/// Every colour of figures and pages, once. The coloured ones are told apart with any colour vision
/// (Okabe and Ito 2008, without the yellow, which is too light for lines).
pub(crate) const INKS: [Ink; 15] = [
    Ink::new("paper", 0xFF_FFFF, 0x14_181E),
    Ink::new("ink", 0x22_2222, 0xE4_E6EA),
    Ink::new("faint", 0x5F_5F5F, 0xA6_ADB8),
    Ink::new("rule", 0xD6_D6D6, 0x3B_434E),
    Ink::new("fine", 0xF0_F0F0, 0x23_2932),
    Ink::new("blue", 0x00_72B2, 0x3F_97E8),
    Ink::new("vermilion", 0xD5_5E00, 0xFF_8A3D),
    Ink::new("green", 0x00_9E73, 0x2C_CB9B),
    Ink::new("purple", 0xCC_79A7, 0xE7_9AC6),
    Ink::new("orange", 0xE6_9F00, 0xF2_BC4B),
    Ink::new("sky", 0x56_B4E9, 0xA9_DEFF),
    Ink::new("brown", 0x78_5E3C, 0xC9_AA7C),
    Ink::new("black", 0x00_0000, 0xFF_FFFF),
    Ink::new("grey", 0x6E_6E6E, 0x9C_9C9C),
    Ink::new("dim", 0x3C_3C3C, 0xC8_C8C8),
];

/// Behind everything, so that a figure reads the same on dark pages.
pub(super) const PAPER: RGBColor = INKS[0].colour();
/// Text and axes.
pub(super) const INK: RGBColor = INKS[1].colour();
/// Text of the source, and lines of what a machine allows.
pub(super) const FAINT_INK: RGBColor = INKS[2].colour();
/// Lines of labelled ticks.
pub(super) const RULE: RGBColor = INKS[3].colour();
/// Lines between them.
pub(super) const FINE_RULE: RGBColor = INKS[4].colour();

/// Colours of what was measured, among [`INKS`].
const COLOURS: std::ops::Range<usize> = 5..12;

/// Greys of what was published, among [`INKS`].
const GREYS: std::ops::Range<usize> = 12..15;

/// Names that look the same in every figure, where all series of it are of one of these families.
const FAMILIES: [&[(&str, usize, Marker)]; 3] = [
    // backends
    &[
        ("cpu", 5, Marker::Circle),
        ("cpu-mt", 10, Marker::Down),
        ("cuda", 6, Marker::Square),
        ("cusparse", 7, Marker::Triangle),
        ("mpi", 8, Marker::Diamond),
        ("mpi-cuda", 9, Marker::Circle),
    ],
    // phases
    &[
        ("matrix", 11, Marker::Circle),
        ("symbolic", 8, Marker::Circle),
        ("analysis", 9, Marker::Circle),
        ("numeric", 7, Marker::Circle),
        ("deflation", 10, Marker::Circle),
        ("solve", 5, Marker::Circle),
    ],
    // formats
    &[
        ("csr", 5, Marker::Circle),
        ("bsr", 6, Marker::Square),
        ("hyb", 7, Marker::Triangle),
        ("sell", 8, Marker::Diamond),
        ("dia", 9, Marker::Down),
        ("bdia", 10, Marker::Circle),
    ],
];

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

/// Lengths of dashes and of the gaps behind them, in pixels; none of a solid line.
pub(super) type Dash = &'static [f64];

/// Those of series whose colours are used up; plain dashes are for what was published.
const DASHES: [Dash; 4] =
    [&[], &[10.0, 3.0, 2.0, 3.0], &[2.0, 3.0], &[10.0, 3.0, 2.0, 3.0, 2.0, 3.0]];

/// Those of what was published.
const PUBLISHED_DASHES: [Dash; 3] = [&[7.0, 4.0], &[3.0, 2.0], &[12.0, 4.0, 4.0, 4.0]];

/// Those of what a machine allows.
const LIMIT_DASHES: [Dash; 4] = [&[], &[6.0, 3.0], &[2.0, 2.0], &[6.0, 2.0, 2.0, 2.0]];

/// Distances of the stripes of bars whose colours are used up, in pixels.
const STRIPES: [f64; 4] = [0.0, 5.0, 3.0, 9.0];

/// How a series looks. Lines are told apart by colour, dash and marker, bars by colour and stripes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    pub(super) colour: RGBColor,
    pub(super) marker: Marker,
    pub(super) dash: Dash,
    /// Stripes across a bar, in pixels from one to the next; none where it is 0.
    pub(super) stripes: f64,
    pub(super) origin: Origin,
}

impl Look {
    /// The look of the series number `index` of its origin: another one for each of 140 measured, 45
    /// published and 4 limits; bars and points of a scatter have fewer, 28 and 35.
    pub(super) fn of(index: usize, origin: Origin) -> Self {
        let (inks, dashes): (_, &[Dash]) = match origin {
            Origin::Measured => (&INKS[COLOURS], &DASHES),
            Origin::Published => (&INKS[GREYS], &PUBLISHED_DASHES),
            Origin::Limit => (&INKS[2..3], &LIMIT_DASHES),
        };
        let turn = index / inks.len();
        Self {
            colour: inks[index % inks.len()].colour(),
            marker: Marker::ALL[index % Marker::ALL.len()],
            dash: dashes[turn % dashes.len()],
            stripes: STRIPES[turn % STRIPES.len()],
            origin,
        }
    }

    /// The looks of measured series of these names: those of a family where each is another member.
    pub(super) fn of_names(names: &[&str]) -> Vec<Self> {
        let origin = Origin::Measured;
        for family in FAMILIES {
            let member = |name: &&str| {
                let word = name.split([' ', ',']).next().unwrap_or_default();
                family.iter().position(|(own, ..)| *own == word)
            };
            let Some(places) = names.iter().map(member).collect::<Option<Vec<usize>>>() else {
                continue;
            };
            if (1..places.len()).all(|i| !places[..i].contains(&places[i])) {
                let look = |i: usize| {
                    let (_, ink, marker) = family[i];
                    Self { colour: INKS[ink].colour(), marker, ..Self::of(0, origin) }
                };
                return places.into_iter().map(look).collect();
            }
        }
        (0..names.len()).map(|i| Self::of(i, origin)).collect()
    }

    /// Its line.
    pub(super) fn line(self) -> ShapeStyle {
        let width = if self.origin == Origin::Limit { GRID as u32 } else { 2 * GRID as u32 };
        self.colour.stroke_width(width)
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

/// The fonts that the program carries.
pub(super) fn embedded_fonts() -> impl Iterator<Item = (FontStyle, &'static [u8])> {
    static FONTS: LazyLock<Vec<(&str, &[u8])>> =
        LazyLock::new(|| unpack(include_bytes!(concat!(env!("OUT_DIR"), "/fonts"))));
    let style = |name| if name == "bold" { FontStyle::Bold } else { FontStyle::Normal };
    FONTS.iter().map(move |&(name, bytes)| (style(name), bytes))
}

/// Gives the font to the layout of text, which knows no fonts of the system.
fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for (style, bytes) in embedded_fonts() {
            // without it text has no width, and a test of the layout fails
            let _ = register_font("sans-serif", style, bytes);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_two_series_of_a_figure_look_different() {
        let looks: Vec<Look> = (0..140)
            .map(|i| Look::of(i, Origin::Measured))
            .chain((0..45).map(|i| Look::of(i, Origin::Published)))
            .chain((0..4).map(|i| Look::of(i, Origin::Limit)))
            .collect();
        for (i, a) in looks.iter().enumerate() {
            for b in &looks[..i] {
                assert!((a.colour, a.dash, a.marker) != (b.colour, b.dash, b.marker), "{a:?}");
            }
        }
        // bars have stripes, points of a scatter neither these nor dashes
        for (i, a) in looks[..28].iter().enumerate() {
            for b in &looks[..i] {
                assert!((a.colour, a.stripes) != (b.colour, b.stripes), "{a:?}");
                assert!((a.colour, a.marker) != (b.colour, b.marker), "{a:?}");
            }
        }
        for family in FAMILIES {
            let names: Vec<&str> = family.iter().map(|(name, ..)| *name).collect();
            let own = Look::of_names(&names);
            assert!((1..own.len()).all(|i| own[..i].iter().all(|a| a.colour != own[i].colour)));
        }
    }
}
