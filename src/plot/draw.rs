//! The renderer: one place for the look of every figure.

use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::error::{Error, Result};
use crate::plot::scale::{Scale, Spacing};
use crate::plot::style::{FAINT_INK, FINE_RULE, GRID, INK, Look, PAPER, RULE, size, text, units};
use crate::plot::{Figure, Marks, Origin, Panel, Points, Series};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Scale, Scale>>;

/// Length of a dash and of the gap behind it, in pixels.
const DASH: (f64, f64) = (7.0, 4.0);

/// The figure as an SVG document.
pub fn svg(figure: &Figure) -> Result<String> {
    let layout = Layout::of(figure);
    let (width, height) = (layout.width as u32, layout.height as u32);
    let grid = GRID as u32;
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (grid * width, grid * height));
        let root = root.into_drawing_area();
        // text in memory: only a font that is missing could fail
        draw(figure, &layout, &root).map_err(|e| Error::run(format!("cannot draw: {e}")))?;
    }
    // whole units of a fine grid, shown at the size of the figure
    let fine = format!(r#"width="{}" height="{}""#, grid * width, grid * height);
    let shown = format!(r#"width="{width}" height="{height}" role="img""#);
    let title = format!("<title>{}</title>\n<rect", escaped(&figure.title));
    Ok(text.replacen(&fine, &shown, 1).replacen("<rect", &title, 1))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

/// Where the parts go, in pixels.
struct Layout {
    width: i32,
    height: i32,
    /// Panels in a row.
    columns: usize,
    panel: (i32, i32),
    /// Lines of the title.
    title: Vec<String>,
    /// Entries of the legend with their left edge and line.
    legend: Vec<(Entry, i32, i32)>,
    /// Top of the first row of panels.
    top: i32,
    /// Lines of the source.
    source: Vec<String>,
}

/// A line of the legend.
struct Entry {
    name: String,
    look: Look,
    /// Whether it has points and no level alone.
    points: bool,
}

impl Layout {
    fn of(figure: &Figure) -> Self {
        let columns = columns(figure.panels.len());
        let panel = if columns > 2 { size::NARROW_PANEL } else { size::PANEL };
        let rows = figure.panels.len().div_ceil(columns) as i32;
        let inner = (columns as i32 * panel.0).max(size::PANEL.0 * 3 / 2);
        let entries = entries(figure);
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
        let top = size::MARGIN + 22 * title.len() as i32 + 6 + lines * size::LEGEND_LINE + 6;
        let source: Vec<String> =
            figure.source.iter().flat_map(|line| wrapped(line, size::SOURCE, inner)).collect();
        let below = 8 + size::SOURCE_LINE * source.len() as i32 + size::MARGIN;
        Self {
            width: inner + 2 * size::MARGIN,
            height: top + rows * panel.1 + below,
            columns,
            panel: (inner / columns as i32, panel.1),
            title,
            legend,
            top,
            source,
        }
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

/// What the legend shows, with the look of each series.
fn entries(figure: &Figure) -> Vec<Entry> {
    let names = figure.names();
    let look = |i: usize, origin| {
        let before = names[..i].iter().filter(|(_, other)| *other == origin).count();
        Look::of(before, origin)
    };
    let entry = |(i, &(name, origin)): (usize, &(&str, Origin))| {
        let mut all = figure.panels.iter().flat_map(|panel| &panel.series);
        let points = all.any(|s| s.name == name && s.origin == origin && s.points.are_pairs());
        Entry { name: name.to_owned(), look: look(i, origin), points }
    };
    names.iter().enumerate().map(entry).collect()
}

/// Width of a text in pixels.
fn width(words: &str, pixels: f64) -> i32 {
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

fn draw(figure: &Figure, layout: &Layout, root: &Area<'_>) -> Drawn {
    root.fill(&PAPER)?;
    let left = GRID * size::MARGIN;
    for (i, line) in layout.title.iter().enumerate() {
        let y = GRID * (size::MARGIN + 22 * i as i32);
        root.draw_text(line, &text(size::TITLE, FontStyle::Bold, INK), (left, y))?;
    }
    let legend = size::MARGIN + 22 * layout.title.len() as i32 + 6;
    for (entry, x, line) in &layout.legend {
        let y = GRID * (legend + line * size::LEGEND_LINE + size::LEGEND_LINE / 2);
        swatch(root, figure.marks, entry, (left + GRID * x, y))?;
    }
    let (width, height) = layout.panel;
    let looks = entries(figure);
    for (i, panel) in figure.panels.iter().enumerate() {
        let of_row = figure.panels.chunks(layout.columns).nth(i / layout.columns);
        let scales = scales(panel, figure.marks, of_row.unwrap_or_default());
        let (row, column) = ((i / layout.columns) as i32, (i % layout.columns) as i32);
        let x = left + GRID * column * width;
        let y = GRID * (layout.top + row * height);
        let area = root.clone().shrink((x, y), (GRID * width, GRID * height));
        draw_panel(panel, figure.marks, &scales, &looks, &area, root)?;
    }
    let rows = figure.panels.len().div_ceil(layout.columns) as i32;
    for (i, line) in layout.source.iter().enumerate() {
        let y = layout.top + rows * height + 8 + size::SOURCE_LINE * i as i32;
        let style = text(size::SOURCE, FontStyle::Normal, FAINT_INK);
        root.draw_text(line, &style, (left, GRID * y))?;
    }
    root.present()?;
    Ok(())
}

/// A sample of the series and its name.
fn swatch(root: &Area<'_>, marks: Marks, entry: &Entry, (x, y): (i32, i32)) -> Drawn {
    let end = x + GRID * size::SWATCH;
    match marks {
        Marks::Lines => {
            path(root, &[(x, y), (end, y)], entry.look)?;
            if entry.points {
                marker(root, (i32::midpoint(x, end), y), entry.look)?;
            }
        }
        Marks::Bars if entry.points => {
            let half = units(5.0);
            root.draw(&bar([(x + units(4.0), y - half), (end, y + half)], entry.look))?;
        }
        Marks::Bars => path(root, &[(x, y), (end, y)], entry.look)?,
    }
    let style = text(size::TEXT, FontStyle::Normal, INK).pos(Pos::new(HPos::Left, VPos::Center));
    root.draw_text(&entry.name, &style, (end + units(6.0), y))?;
    Ok(())
}

fn draw_panel(
    panel: &Panel,
    marks: Marks,
    (x, y): &(Scale, Scale),
    looks: &[Entry],
    area: &Area<'_>,
    root: &Area<'_>,
) -> Drawn {
    let labels = y.labels().map(|label| width(&label, size::TEXT)).max().unwrap_or(0);
    let label = text(size::TEXT, FontStyle::Normal, INK);
    let title = text(size::PANEL_TITLE, FontStyle::Bold, INK);
    let (head, body) = area.split_vertically(units(26.0));
    let left = GRID * (labels + 32);
    let (width, height) = head.dim_in_pixel();
    let middle = (left + (width as i32 - left - units(18.0)) / 2, height as i32 - units(7.0));
    head.draw_text(&panel.title, &title.pos(Pos::new(HPos::Center, VPos::Bottom)), middle)?;
    let mut chart = ChartBuilder::on(&body)
        .margin_right(units(18.0))
        .margin_bottom(units(10.0))
        .x_label_area_size(units(36.0))
        .y_label_area_size(left)
        .build_cartesian_2d(x.clone(), y.clone())?;
    let mut mesh = chart.configure_mesh();
    mesh.x_labels(40)
        .y_labels(40)
        .bold_line_style(RULE.stroke_width(GRID as u32))
        .light_line_style(FINE_RULE.stroke_width(GRID as u32))
        .axis_style(INK.stroke_width(GRID as u32))
        .set_all_tick_mark_size(units(4.0))
        .label_style(label.clone())
        .axis_desc_style(label)
        .x_desc(&panel.x.label)
        .y_desc(&panel.y.label);
    if marks == Marks::Bars {
        mesh.disable_x_mesh();
    }
    mesh.draw()?;
    for series in &panel.series {
        let is_own = |e: &&Entry| e.name == series.name && e.look.origin == series.origin;
        let Some(entry) = looks.iter().find(is_own) else { continue };
        match (marks, &series.points) {
            (_, Points::Level(value)) => {
                if y.holds(*value) {
                    let ends = [x.low(), x.high()].map(|end| place(&chart, &(end, *value)));
                    path(root, &ends, entry.look)?;
                }
            }
            (Marks::Lines, Points::Pairs(points)) => {
                let points = points.iter().filter(|(px, py)| x.holds(*px) && y.holds(*py));
                line(&chart, root, points, entry.look)?;
            }
            (Marks::Bars, Points::Pairs(points)) => {
                // a series has its place in every group, also where others are missing
                let with_bars: Vec<&Entry> = looks.iter().filter(|e| e.points).collect();
                let slot = with_bars.iter().position(is_own).unwrap_or(0);
                // bars of a logarithmic axis start at its end
                let foot = if panel.y.spacing == Spacing::Log { y.low() } else { 0.0 };
                let group = Group { slot, slots: with_bars.len(), foot };
                let points = points.iter().filter(|(_, py)| y.holds(*py));
                bars(&chart, points, entry.look, &group)?;
            }
        }
    }
    Ok(())
}

/// The axes of a panel: room for everything that it shows, and up and down for what the panels of
/// its row show of the same kind, so that they compare.
fn scales(panel: &Panel, marks: Marks, row: &[Panel]) -> (Scale, Scale) {
    let pairs = |series: &Series, pick: fn(&(f64, f64)) -> f64| match &series.points {
        Points::Pairs(points) => points.iter().map(pick).collect(),
        Points::Level(_) => Vec::new(),
    };
    let x = match marks {
        Marks::Bars => Scale::of_names(&panel.x.categories),
        Marks::Lines => {
            let values = panel.series.iter().flat_map(|series| pairs(series, |p| p.0));
            Scale::of(panel.x.spacing, values)
        }
    };
    let alike = row.iter().filter(|other| other.y == panel.y).flat_map(|other| &other.series);
    let values = alike.flat_map(|series| match series.points {
        Points::Level(value) => vec![value],
        Points::Pairs(_) => pairs(series, |p| p.1),
    });
    (x, Scale::of(panel.y.spacing, values))
}

/// Where a point lies in the whole drawing.
fn place(chart: &Chart<'_, '_>, point: &(f64, f64)) -> (i32, i32) {
    chart.plotting_area().map_coordinate(point)
}

fn line<'p>(
    chart: &Chart<'_, '_>,
    root: &Area<'_>,
    points: impl Iterator<Item = &'p (f64, f64)>,
    look: Look,
) -> Drawn {
    let points: Vec<(i32, i32)> = points.map(|point| place(chart, point)).collect();
    if points.len() > 1 {
        path(root, &points, look)?;
    }
    for point in points {
        marker(root, point, look)?;
    }
    Ok(())
}

/// Where the bars of a series stand among those of a category.
struct Group {
    slot: usize,
    slots: usize,
    /// Value that they start from.
    foot: f64,
}

fn bars<'p>(
    chart: &Chart<'_, '_>,
    points: impl Iterator<Item = &'p (f64, f64)>,
    look: Look,
    group: &Group,
) -> Drawn {
    const FILLED: f64 = 0.82;
    let width = FILLED / group.slots as f64;
    for &(category, value) in points {
        let left = category - FILLED / 2.0 + width * (group.slot as f64 + 0.06);
        let corners = [(left, group.foot), (left + 0.88 * width, value)];
        chart.plotting_area().draw(&bar(corners, look))?;
    }
    Ok(())
}

/// Filled where it was measured, hollow where it was published.
fn bar<C>(corners: [C; 2], look: Look) -> Rectangle<C> {
    Rectangle::new(
        corners,
        match look.origin {
            Origin::Measured => look.colour.filled(),
            Origin::Published => look.colour.stroke_width(2 * GRID as u32),
        },
    )
}

/// A line through points of the drawing.
fn path(root: &Area<'_>, points: &[(i32, i32)], look: Look) -> Drawn {
    let points = points.to_vec();
    match look.origin {
        Origin::Measured => root.draw(&PathElement::new(points, look.line()))?,
        Origin::Published => {
            let (dash, gap) = (units(DASH.0), units(DASH.1));
            root.draw(&DashedPathElement::new(points, dash, gap, look.line()))?;
        }
    }
    Ok(())
}

/// The marker of a series at a point of the drawing.
fn marker(root: &Area<'_>, (x, y): (i32, i32), look: Look) -> Drawn {
    let radius = size::MARKER;
    let hollow = look.origin == Origin::Published;
    let fill = if hollow { PAPER } else { look.colour };
    let edge = look.colour.stroke_width(units(1.5) as u32);
    let corners = look.marker.corners();
    if corners.is_empty() {
        root.draw(&Circle::new((x, y), units(radius), fill.filled()))?;
        if hollow {
            root.draw(&Circle::new((x, y), units(radius), edge))?;
        }
        return Ok(());
    }
    let corner = |(dx, dy): &(f64, f64)| (x + units(radius * dx), y + units(radius * dy));
    let mut outline: Vec<(i32, i32)> = corners.iter().map(corner).collect();
    root.draw(&Polygon::new(outline.clone(), fill.filled()))?;
    if hollow {
        outline.push(outline[0]);
        root.draw(&PathElement::new(outline, edge))?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
