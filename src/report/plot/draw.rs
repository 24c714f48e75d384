//! The renderer: one place for the look of every figure.

mod bars;
mod horizontal;
mod inline;
mod layout;
mod lines;
mod scatter;
mod shapes;

use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::base::error::{Error, Result};
use crate::config::marks::{Marks, Spacing};
use crate::report::plot::scale::Scale;
use crate::report::plot::style::{FAINT_INK, FINE_RULE, GRID, INK, PAPER, RULE, size, text, units};
use crate::report::plot::{Figure, Panel, Points, Series};
pub(crate) use layout::too_wide;
use layout::{Entry, Layout};
use shapes::swatch;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Scale, Scale>>;

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

/// The panels and the legend as an element of a page, whose style sheet gives the colours: title and
/// source stand in the page.
pub(crate) fn inline_svg(figure: &Figure) -> Result<String> {
    let bare =
        Figure { title: String::new(), source: Vec::new(), left_out: Vec::new(), ..figure.clone() };
    let text = svg(&bare)?;
    let title = format!("<title>{}</title>", escaped(&figure.title));
    Ok(inline::inline(&text.replacen("<title></title>", &title, 1)))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw(figure: &Figure, layout: &Layout, root: &Area<'_>) -> Drawn {
    root.fill(&PAPER)?;
    let left = GRID * size::MARGIN;
    for (i, line) in layout.title.iter().enumerate() {
        let y = GRID * (size::MARGIN + 22 * i as i32);
        root.draw_text(line, &text(size::TITLE, FontStyle::Bold, INK), (left, y))?;
    }
    // of bars that are all drawn as dots
    let log = |panel: &Panel| [&panel.x, &panel.y].iter().any(|axis| axis.spacing == Spacing::Log);
    let bars = matches!(figure.marks, Marks::Bars | Marks::Rows);
    let dots = bars && figure.panels.iter().all(log);
    let marks = if dots { Marks::Scatter } else { figure.marks };
    let legend = size::MARGIN + 22 * layout.title.len() as i32 + 6;
    for (entry, x, line) in &layout.legend {
        let y = GRID * (legend + line * size::LEGEND_LINE + size::LEGEND_LINE / 2);
        swatch(root, marks, entry, (left + GRID * x, y))?;
    }
    let looks = layout::entries(figure);
    for (i, panel) in figure.panels.iter().enumerate() {
        let of_row = figure.panels.chunks(layout.columns).nth(i / layout.columns);
        let scales = scales(panel, figure.marks, of_row.unwrap_or_default());
        let (x, y, width, height) = layout.place(i);
        let area = root.clone().shrink((GRID * x, GRID * y), (GRID * width, GRID * height));
        let body = draw_head(panel, &scales.1, &layout.heads[i], &area)?;
        draw_panel(panel, figure.marks, &scales, &looks, &body, root)?;
    }
    for (i, line) in layout.source.iter().enumerate() {
        let y = layout.below_panels() + 8 + size::SOURCE_LINE * i as i32;
        let style = text(size::SOURCE, FontStyle::Normal, FAINT_INK);
        root.draw_text(line, &style, (left, GRID * y))?;
    }
    root.present()?;
    Ok(())
}

/// Writes the title of a panel above the middle of its axes; the area below it is left.
fn draw_head<'a>(
    panel: &Panel,
    y: &Scale,
    (lines, room): &(Vec<String>, i32),
    area: &Area<'a>,
) -> Result<Area<'a>, Box<dyn std::error::Error>> {
    let title = text(size::PANEL_TITLE, FontStyle::Bold, INK);
    let title = title.pos(Pos::new(HPos::Center, VPos::Bottom));
    let (head, body) = area.split_vertically(GRID * room);
    let (left, right) = (GRID * layout::left(panel, y), GRID * size::PANEL_RIGHT);
    let middle = i32::midpoint(left, head.dim_in_pixel().0 as i32 - right);
    for (i, line) in lines.iter().rev().enumerate() {
        let bottom = GRID * (room - 7 - size::PANEL_TITLE_LINE * i as i32);
        head.draw_text(line, &title, (middle, bottom))?;
    }
    Ok(body)
}

fn draw_panel(
    panel: &Panel,
    marks: Marks,
    (x, y): &(Scale, Scale),
    looks: &[Entry],
    body: &Area<'_>,
    root: &Area<'_>,
) -> Drawn {
    let label = text(size::TEXT, FontStyle::Normal, INK);
    let mut chart = ChartBuilder::on(body)
        .margin_right(GRID * size::PANEL_RIGHT)
        .margin_bottom(units(10.0))
        .x_label_area_size(units(36.0))
        .y_label_area_size(GRID * layout::left(panel, y))
        .build_cartesian_2d(x.clone(), y.clone())?;
    let mut mesh = chart.configure_mesh();
    mesh.x_labels(size::MOST_LABELS)
        .y_labels(size::MOST_LABELS)
        .bold_line_style(RULE.stroke_width(GRID as u32))
        .light_line_style(FINE_RULE.stroke_width(GRID as u32))
        .axis_style(INK.stroke_width(GRID as u32))
        .set_all_tick_mark_size(units(4.0))
        .label_style(label.clone())
        .axis_desc_style(label)
        .x_desc(&panel.x.label)
        .y_desc(&panel.y.label);
    match marks {
        Marks::Bars => mesh.disable_x_mesh(),
        Marks::Rows | Marks::Stacked => mesh.disable_y_mesh(),
        Marks::Lines | Marks::Scatter | Marks::Steps => &mut mesh,
    }
    .draw()?;
    if marks.horizontal() {
        return horizontal::draw(&chart, root, panel, (x, marks), looks);
    }
    let shown = shown(panel, looks);
    for (series, entry) in &shown {
        match (marks, &series.points) {
            (_, Points::Level(value)) if y.holds(*value) => {
                let ends = [x.low(), x.high()].map(|end| place(&chart, &(end, *value)));
                shapes::path(root, &ends, entry.look)?;
            }
            (_, Points::Level(_)) => {}
            (Marks::Bars, Points::Pairs(points)) => {
                // a series has its place in every group, also where others are missing
                let with_bars: Vec<&Entry> = looks.iter().filter(|e| e.points).collect();
                let slot = with_bars.iter().position(|e| std::ptr::eq(*e, *entry)).unwrap_or(0);
                let dots = panel.y.spacing == Spacing::Log;
                let group = bars::Group { slot, slots: with_bars.len(), dots };
                bars::draw(&chart, root, (series, points), y, entry.look, &group)?;
            }
            (_, Points::Pairs(points)) => {
                let holds = |(px, py): &(f64, f64)| x.holds(*px) && y.holds(*py);
                lines::draw(&chart, root, (series, points), &holds, marks, entry.look)?;
            }
        }
    }
    if marks == Marks::Scatter { scatter::labels(&chart, root, &shown) } else { Ok(()) }
}

/// The series of a panel with their looks.
fn shown<'a>(panel: &'a Panel, looks: &'a [Entry]) -> Vec<(&'a Series, &'a Entry)> {
    let entry = |series: &'a Series| {
        let own = |e: &&Entry| e.name == series.name && e.look.origin == series.origin;
        Some((series, looks.iter().find(own)?))
    };
    panel.series.iter().filter_map(entry).collect()
}

/// The axes of a panel: room for everything that it shows, and up and down for what the panels of
/// its row show of the same kind, so that they compare.
fn scales(panel: &Panel, marks: Marks, row: &[Panel]) -> (Scale, Scale) {
    if marks.horizontal() {
        let names: Vec<String> = panel.y.categories.iter().rev().cloned().collect();
        let lengths = horizontal::lengths(panel, marks).into_iter();
        return (Scale::of(panel.x.spacing, lengths), Scale::of_names(&names));
    }
    let x = if marks == Marks::Bars {
        Scale::of_names(&panel.x.categories)
    } else {
        let values = panel.series.iter().flat_map(|series| series.pairs().iter().map(|p| p.0));
        Scale::of(panel.x.spacing, values)
    };
    let alike = row.iter().filter(|other| other.y == panel.y).flat_map(|other| &other.series);
    (x, Scale::of(panel.y.spacing, alike.flat_map(Series::heights)))
}

/// Where a point lies in the whole drawing.
fn place(chart: &Chart<'_, '_>, point: &(f64, f64)) -> (i32, i32) {
    chart.plotting_area().map_coordinate(point)
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
