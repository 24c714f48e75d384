//! The figure of an experiment: its quantities and published points.

use toml::Spanned;
use toml::de::DeValue;

use crate::base::error::{Error, Result};
use crate::config::marks::{Marks, Spacing};
use crate::config::quantity::{QUANTITIES, Quantity, quantity};
use crate::config::source::Source;
use crate::config::sweep::{Axis, axis};
use crate::config::{csv, keys};

/// Description of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureSpec {
    /// Lines or bars.
    pub marks: Marks,
    /// Quantity on the horizontal axis.
    pub x: &'static Quantity,
    /// Scale of that axis.
    pub x_spacing: Spacing,
    /// Quantities on the vertical axes, one panel each.
    pub y: Vec<&'static Quantity>,
    /// Scale of those axes.
    pub y_spacing: Spacing,
    /// Settings whose values have panels of their own. `matrix` stands for the parameters of generated
    /// matrices beside their grid, and for the names of others. Series are made of the other settings that vary.
    pub panels: Vec<&'static Axis>,
    /// Source of the published points.
    pub citation: String,
    /// Published points.
    pub published: Vec<PublishedPoint>,
}

/// A point that a paper publishes.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedPoint {
    /// Its quantity.
    pub quantity: &'static Quantity,
    /// Series that it belongs to.
    pub series: String,
    /// Where on the horizontal axis; `None` for all of it.
    pub x: Option<f64>,
    /// The value.
    pub y: f64,
}

/// Reads `[figure]`.
pub(super) fn figure(source: &Source<'_>, value: Spanned<DeValue<'_>>) -> Result<FigureSpec> {
    let span = value.span();
    let (mut x, mut csv) = (None, None);
    let mut spec = FigureSpec {
        marks: Marks::default(),
        x: &QUANTITIES[0],
        x_spacing: Spacing::default(),
        y: Vec::new(),
        y_spacing: Spacing::default(),
        panels: Vec::new(),
        citation: String::new(),
        published: Vec::new(),
    };
    for (key, value) in source.table(value, "a table")? {
        match &**key.get_ref() {
            "marks" => spec.marks = source.choice(&value, "kind of marks", &Marks::NAMES)?,
            "x" => x = names(source, &value, quantity)?.first().copied(),
            "x-axis" => spec.x_spacing = source.choice(&value, "axis", &Spacing::NAMES)?,
            "y" => spec.y = names(source, &value, quantity)?,
            "y-axis" => spec.y_spacing = source.choice(&value, "axis", &Spacing::NAMES)?,
            "panels" => spec.panels = names(source, &value, axis)?,
            "citation" => spec.citation = source.string(&value)?,
            "csv" => csv = Some(source.beside(&value)?),
            _ => return Err(source.unknown(&key, "key", &keys::FIGURE.names())),
        }
    }
    let lacks = |name: &str| {
        let names: Vec<&str> = QUANTITIES.iter().map(|q| q.name).collect();
        let error = Error::input(format!("[figure] lacks `{name}`"));
        source.error(span.clone(), error.hint(format!("quantities: {}", names.join(", "))))
    };
    spec.x = x.ok_or_else(|| lacks("x"))?;
    if spec.y.is_empty() {
        return Err(lacks("y"));
    }
    if let Some((name, text)) = csv {
        spec.published = points(&name, &text)?;
    }
    Ok(spec)
}

/// What the words of a value name.
fn names<T>(
    source: &Source<'_>,
    value: &Spanned<DeValue<'_>>,
    find: fn(&str) -> Result<T>,
) -> Result<Vec<T>> {
    let words = source.words(value)?;
    let found =
        words.iter().map(|(word, span)| find(word).map_err(|e| source.error(span.clone(), e)));
    found.collect()
}

/// Columns of a file of published points.
const COLUMNS: [&str; 4] = ["quantity", "series", "x", "y"];

/// Points from CSV text, one per row; without an x the value holds for all. `file` is the name for
/// errors.
fn points(file: &str, text: &str) -> Result<Vec<PublishedPoint>> {
    let (header, rows) = csv::read(file, text)?;
    if !header.iter().eq(COLUMNS) {
        let found = header.iter().collect::<Vec<_>>().join(",");
        return Err(Error::input(format!("the columns are `{found}`"))
            .at(file, 1, None)
            .hint(format!("columns of published points: {}", COLUMNS.join(","))));
    }
    let point = |(line, record): (usize, ::csv::StringRecord)| {
        let x = Some(&record[2]).filter(|text| !text.is_empty());
        let read = || {
            Ok(PublishedPoint {
                quantity: quantity(&record[0])?,
                series: record[1].to_owned(),
                x: x.map(csv::positive).transpose()?,
                y: csv::positive(&record[3])?,
            })
        };
        read().map_err(|e: Error| e.at(file, line, None))
    };
    rows.into_iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Experiment;
    use crate::config::file::parse;
    use crate::config::library::experiment;
    use crate::config::phases::{TASKS, Task};

    fn read(text: &str) -> Result<Experiment> {
        let beside = |name: &str| match name {
            "p.csv" => Ok("quantity,series,x,y\nsolve,a GPU,1e3,0.5\nsolve,a CPU,,2\n".to_owned()),
            "bad.csv" => Ok("quantity,series,x,y\nsolve,a GPU,1e3,-1\n".to_owned()),
            "columns.csv" => Ok("x,y\n1,2\n".to_owned()),
            _ => Err(Error::input(format!("no such file `{name}`"))),
        };
        parse(&Source { name: "x.toml", text, folder: None, beside: &beside })
    }

    #[test]
    fn figures_are_read_with_their_published_points() {
        let text = "[[sweep]]\n[figure]\nmarks = 'bars'\nx = 'edge'\ny = ['solve', 'residual']\n\
                    y-axis = 'log'\npanels = ['block-size', 'backend']\ncsv = 'p.csv'\n";
        let spec = read(text).unwrap().figure.unwrap();
        assert_eq!((spec.marks, spec.x.name, spec.y.len()), (Marks::Bars, "edge", 2));
        assert_eq!((spec.x_spacing, spec.y_spacing), (Spacing::Linear, Spacing::Log));
        assert_eq!(spec.panels, [axis("block-size").unwrap(), axis("backend").unwrap()]);
        let points: Vec<_> =
            spec.published.iter().map(|p| (p.quantity.name, p.series.as_str(), p.x, p.y)).collect();
        assert_eq!(points, [("solve", "a GPU", Some(1e3), 0.5), ("solve", "a CPU", None, 2.0)]);
    }

    #[test]
    fn errors_name_line_and_column() {
        let message =
            |lines: &str| read(&format!("[[sweep]]\n[figure]\n{lines}\n")).unwrap_err().to_string();
        assert_eq!(message("x = 'pionts'"), "x.toml:3:5: unknown quantity `pionts`");
        assert_eq!(message("y = ['solve', 'slove']"), "x.toml:3:15: unknown quantity `slove`");
        assert_eq!(message("y-axis = 'lin'"), "x.toml:3:10: unknown axis `lin`");
        assert_eq!(message("marks = 'dots'"), "x.toml:3:9: unknown kind of marks `dots`");
        assert_eq!(message("panels = 'k'"), "x.toml:3:10: unknown setting `k`");
        assert_eq!(message("title = 'k'"), "x.toml:3:1: unknown key `title`");
        assert_eq!(message("y = 'solve'"), "x.toml:2:1: [figure] lacks `x`");
        assert_eq!(message("x = 'edge'"), "x.toml:2:1: [figure] lacks `y`");
        let of_csv = |name: &str| message(&format!("x = 'edge'\ny = 'solve'\ncsv = '{name}'"));
        assert_eq!(of_csv("q.csv"), "x.toml:5:7: no such file `q.csv`");
        assert_eq!(of_csv("bad.csv"), "bad.csv:2: `-1` is outside the range: above 0");
        assert_eq!(of_csv("columns.csv"), "columns.csv:1: the columns are `x,y`");
    }

    #[test]
    fn the_largest_grid_of_figure_9_has_the_numbers_of_table_3() {
        let figure = experiment("luo/figure9").figure.unwrap();
        let table = experiment("luo/table3").phases.unwrap();
        for (task, name) in TASKS {
            let published = table.tasks[&task];
            let points: Vec<_> =
                figure.published.iter().filter(|p| p.quantity.name == name).collect();
            let values: Vec<_> = points.iter().map(|p| p.y).collect();
            assert_eq!(values, [published.slow_us.unwrap(), published.fast_us.unwrap()], "{name}");
            assert!(points.iter().all(|p| p.x == Some(65f64.powi(3))));
        }
        assert_eq!(figure.published.len(), 2 * TASKS.len());
        assert!(table.tasks.contains_key(&Task::Solve));
    }
}
