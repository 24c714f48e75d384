//! Where the parts of a figure go.

use plotters::prelude::*;

use crate::plot::style::{GRID, INK, Look, size, text};
use crate::plot::{Figure, Marks, Origin, Panel};

/// Where the parts go, in pixels.
pub(super) struct Layout {
    pub(super) width: i32,
    pub(super) height: i32,
    /// Panels in a row.
    pub(super) columns: usize,
    /// Width of a panel.
    panel: i32,
    /// Top of each row of panels, and the end of the last.
    rows: Vec<i32>,
    /// Lines of the title.
    pub(super) title: Vec<String>,
    /// Entries of the legend with their left edge and line.
    pub(super) legend: Vec<(Entry, i32, i32)>,
    /// Lines of the source.
    pub(super) source: Vec<String>,
}

/// A line of the legend.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) look: Look,
    /// Whether it has points and no level alone.
    pub(super) points: bool,
}

impl Layout {
    pub(super) fn of(figure: &Figure) -> Self {
        let entries = entries(figure);
        let points = entries.iter().filter(|e| e.points).count();
        let wide = wide(figure, points as i32);
        let columns = match figure.columns {
            _ if wide > size::PANEL.0 => 1,
            0 => columns(figure.panels.len()),
            wanted => wanted.min(figure.panels.len()).max(1),
        };
        let panel = if columns > 2 { size::NARROW_PANEL } else { (wide, size::PANEL.1) };
        let inner = (columns as i32 * panel.0).max(size::PANEL.0 * 3 / 2);
        // one series needs no name
        let entries = if entries.len() > 1 { entries } else { Vec::new() };
        let (mut legend, mut left, mut line) = (Vec::new(), 0, 0);
        for entry in entries {
            let width = size::SWATCH + 6 + width(&entry.name, size::TEXT) + 18;
            if left > 0 && left + width > inner {
                (left, line) = (0, line + 1);
            }
            legend.push((entry, left, line));
            left += width;
        }
        let lines = if legend.is_empty() { 0 } else { line + 1 };
        let title = wrapped(&figure.title, size::TITLE, inner);
        let mut top = size::MARGIN + 22 * title.len() as i32 + 6 + lines * size::LEGEND_LINE + 6;
        let mut rows = vec![top];
        let bars = points as i32;
        for row in figure.panels.chunks(columns) {
            top += row.iter().map(|p| height(figure.marks, p, bars, panel.1)).max().unwrap_or(0);
            rows.push(top);
        }
        let source: Vec<String> =
            figure.source.iter().flat_map(|line| wrapped(line, size::SOURCE, inner)).collect();
        let below = 8 + size::SOURCE_LINE * source.len() as i32 + size::MARGIN;
        Self {
            width: inner + 2 * size::MARGIN,
            height: top + below,
            columns,
            panel: inner / columns as i32,
            rows,
            title,
            legend,
            source,
        }
    }

    /// Left edge, top, width and height of a panel.
    pub(super) fn place(&self, number: usize) -> (i32, i32, i32, i32) {
        let (row, column) = (number / self.columns, (number % self.columns) as i32);
        let top = self.rows[row];
        (size::MARGIN + column * self.panel, top, self.panel, self.rows[row + 1] - top)
    }

    /// Where the panels end.
    pub(super) fn below_panels(&self) -> i32 {
        self.rows.last().copied().unwrap_or(0)
    }
}

/// Panels in a row: as square as it gets, rows of three where they come out even.
fn columns(panels: usize) -> usize {
    match panels {
        0..=3 => panels.max(1),
        count if count.is_multiple_of(3) => 3,
        _ => 2,
    }
}

/// Width that the panels want: many bars and names of categories need more than others.
fn wide(figure: &Figure, series: i32) -> i32 {
    let bars = |panel: &Panel| {
        let names = panel.x.categories.iter().map(|name| width(name, size::TEXT) + 10);
        let slot = names.max().unwrap_or(0).max(9 * series + 8);
        96 + slot * panel.x.categories.len() as i32
    };
    match figure.marks {
        Marks::Bars => figure.panels.iter().map(bars).max().unwrap_or(0).max(size::PANEL.0),
        Marks::Rows | Marks::Stacked => size::ROWS,
        Marks::Scatter | Marks::Lines | Marks::Steps => size::PANEL.0,
    }
}

fn height(marks: Marks, panel: &Panel, series: i32, usual: i32) -> i32 {
    let category = match marks {
        Marks::Stacked => size::ROW,
        Marks::Rows => (size::THIN_ROW * series + 6).max(size::ROW),
        Marks::Lines | Marks::Bars | Marks::Scatter | Marks::Steps => return usual,
    };
    size::PANEL_HEAD as i32 + 46 + category * panel.y.categories.len() as i32
}

/// Whether bars beside each other need more width than a page has.
pub(crate) fn too_wide(figure: &Figure) -> bool {
    let points = entries(figure).iter().filter(|e| e.points).count();
    wide(figure, points as i32) > size::WIDEST
}

/// What the legend shows, with the look of each series.
pub(super) fn entries(figure: &Figure) -> Vec<Entry> {
    let names = figure.names();
    let measured: Vec<&str> = names
        .iter()
        .filter(|(_, origin)| *origin == Origin::Measured)
        .map(|(name, _)| *name)
        .collect();
    let looks = Look::of_names(&measured);
    let look = |i: usize, origin| {
        let before = names[..i].iter().filter(|(_, other)| *other == origin).count();
        if origin == Origin::Measured { looks[before] } else { Look::of(before, origin) }
    };
    let entry = |(i, &(name, origin)): (usize, &(&str, Origin))| {
        let mut all = figure.panels.iter().flat_map(|panel| &panel.series);
        let points = all.any(|s| s.name == name && s.origin == origin && s.points.are_pairs());
        Entry { name: name.to_owned(), look: look(i, origin), points }
    };
    names.iter().enumerate().map(entry).collect()
}

/// Width of a text in pixels.
pub(super) fn width(words: &str, pixels: f64) -> i32 {
    let font = text(pixels, FontStyle::Normal, INK).font;
    font.box_size(words).map_or(0, |(width, _)| width as i32 / GRID)
}

/// `line` in as many lines as fit `limit` pixels.
fn wrapped(line: &str, pixels: f64, limit: i32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        match lines.last_mut() {
            Some(last) if width(&format!("{last} {word}"), 1.04 * pixels) <= limit => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
