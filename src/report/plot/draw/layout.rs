//! Where the parts of a figure go.

use plotters::prelude::*;

use crate::config::marks::Marks;
use crate::report::plot::scale::Scale;
use crate::report::plot::style::{GRID, INK, Look, size, text};
use crate::report::plot::{Figure, Origin, Panel, Points};

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
    /// Lines of each panel's title, and the room for those of its row.
    pub(super) heads: Vec<(Vec<String>, i32)>,
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
        let (mut legend, mut left, mut line) = (Vec::new(), 0, 0);
        // a series may have no name where there is one
        for mut entry in entries.into_iter().filter(|entry| !entry.name.is_empty()) {
            let around = size::SWATCH + 6 + 18;
            entry.name = fitted(&entry.name, size::TEXT, FontStyle::Normal, inner - around);
            let width = around + width(&entry.name, size::TEXT);
            if left > 0 && left + width > inner {
                (left, line) = (0, line + 1);
            }
            legend.push((entry, left, line));
            left += width;
        }
        let lines = if legend.is_empty() { 0 } else { line + 1 };
        let title = wrapped(&figure.title, size::TITLE, FontStyle::Bold, inner);
        let heads = heads(figure, columns, inner / columns as i32);
        let mut top = size::MARGIN + 22 * title.len() as i32 + 6 + lines * size::LEGEND_LINE + 6;
        let mut rows = vec![top];
        let bars = points as i32;
        for (i, row) in figure.panels.chunks(columns).enumerate() {
            let extra = heads[i * columns].1 - size::PANEL_HEAD;
            let tallest = row.iter().map(|p| height(figure.marks, p, bars, panel.1)).max();
            top += tallest.unwrap_or(0) + extra;
            rows.push(top);
        }
        let source: Vec<String> = figure
            .source
            .iter()
            .cloned()
            .chain(figure.left_out_line())
            .flat_map(|line| wrapped(&line, size::SOURCE, FontStyle::Normal, inner))
            .collect();
        let below = 8 + size::SOURCE_LINE * source.len() as i32 + size::MARGIN;
        Self {
            width: inner + 2 * size::MARGIN,
            height: top + below,
            columns,
            panel: inner / columns as i32,
            rows,
            title,
            heads,
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
    size::PANEL_HEAD + 46 + category * panel.y.categories.len() as i32
}

/// Whether bars beside each other need more width than a page has.
pub(crate) fn too_wide(figure: &Figure) -> bool {
    let points = entries(figure).iter().filter(|e| e.points).count();
    wide(figure, points as i32) > size::WIDEST
}

/// What the legend shows, with the look of each series.
pub(super) fn entries(figure: &Figure) -> Vec<Entry> {
    let names = figure.names();
    let measured = names.iter().filter(|(_, origin)| *origin == Origin::Measured);
    let looks = Look::of_names(&measured.map(|(name, _)| *name).collect::<Vec<_>>());
    let look = |i: usize, origin| {
        let before = names[..i].iter().filter(|(_, other)| *other == origin).count();
        if origin == Origin::Measured { looks[before] } else { Look::of(before, origin) }
    };
    let entry = |(i, &(name, origin)): (usize, &(&str, Origin))| {
        let mut all = figure.panels.iter().flat_map(|panel| &panel.series);
        let points = all
            .any(|s| s.name == name && s.origin == origin && matches!(s.points, Points::Pairs(_)));
        Entry { name: name.to_owned(), look: look(i, origin), points }
    };
    names.iter().enumerate().map(entry).collect()
}

/// Most lines of a panel's title.
const TITLE_LINES: usize = 2;

/// The lines of each panel's title, above its axes, and the room for the most of its row.
fn heads(figure: &Figure, columns: usize, panel: i32) -> Vec<(Vec<String>, i32)> {
    let mut heads = Vec::new();
    for row in figure.panels.chunks(columns) {
        let lines = row.iter().map(|own| {
            let (_, y) = super::scales(own, figure.marks, row);
            // as far over the right end of the axes as over the left one, short of the next panel
            let limit = panel - left(own, &y) - size::PANEL_RIGHT + 2 * (size::PANEL_RIGHT - 4);
            title_lines(&own.title, limit)
        });
        let lines: Vec<Vec<String>> = lines.collect();
        let most = lines.iter().map(Vec::len).max().unwrap_or(0).max(1) as i32;
        let room = size::PANEL_HEAD + (most - 1) * size::PANEL_TITLE_LINE;
        heads.extend(lines.into_iter().map(|own| (own, room)));
    }
    heads
}

/// A panel's title in lines of `limit` pixels; what is left for the last one is cut in its middle.
fn title_lines(title: &str, limit: i32) -> Vec<String> {
    let (pixels, bold) = (size::PANEL_TITLE, FontStyle::Bold);
    let mut lines = wrapped(title, pixels, bold, limit);
    if lines.len() > TITLE_LINES {
        let rest = lines.split_off(TITLE_LINES - 1).join(" ");
        lines.push(fitted(&rest, pixels, bold, limit));
    }
    lines
}

/// Pixels to the left of a panel's axes: labels of the ticks and of the axis.
pub(super) fn left(panel: &Panel, y: &Scale) -> i32 {
    let labels = y.labels().map(|label| width(&label, size::TEXT)).max().unwrap_or(0);
    labels + if panel.y.label.is_empty() { 14 } else { 32 }
}

/// Width of a text in pixels.
pub(super) fn width(words: &str, pixels: f64) -> i32 {
    width_in(words, pixels, FontStyle::Normal)
}

fn width_in(words: &str, pixels: f64, weight: FontStyle) -> i32 {
    let font = text(pixels, weight, INK).font;
    font.box_size(words).map_or(0, |(width, _)| (width as i32 + GRID - 1) / GRID)
}

/// `words`, cut in their middle where they are wider than `limit` pixels.
fn fitted(words: &str, pixels: f64, weight: FontStyle, limit: i32) -> String {
    let fits = |text: &str| width_in(text, pixels, weight) <= limit;
    if fits(words) {
        return words.to_owned();
    }
    let all: Vec<char> = words.chars().collect();
    let cut = |kept: usize| {
        let (front, back) = (kept.div_ceil(2), kept / 2);
        all[..front].iter().chain(&['…']).chain(&all[all.len() - back..]).collect::<String>()
    };
    // the most characters that fit
    let (mut low, mut high) = (0, all.len());
    while low + 1 < high {
        let middle = usize::midpoint(low, high);
        if fits(&cut(middle)) { low = middle } else { high = middle }
    }
    cut(low)
}

/// `line` in as many lines as fit `limit` pixels; a word that is wider is cut in its middle.
fn wrapped(line: &str, pixels: f64, weight: FontStyle, limit: i32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        match lines.last_mut() {
            Some(last) if width_in(&format!("{last} {word}"), pixels, weight) <= limit => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(fitted(word, pixels, weight, limit)),
        }
    }
    lines
}
