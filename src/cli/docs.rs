//! `docs`: references made from the lists that the program itself uses.

use std::fmt::Write;

use crate::base::error::Result;
use crate::cli::output;
use crate::config::keys::TABLES;
use crate::config::measure::SETTINGS;
use crate::config::quantity::QUANTITIES;
use crate::config::sweep::AXES;
use crate::record::Record;
use crate::record::columns::{ADDED, COLUMNS, DERIVED, TUNING};
use crate::record::table::{Column, Row};
use crate::report::page;
use crate::report::plot;

/// Arguments of `docs`.
#[derive(Debug, clap::Args)]
pub struct DocsArgs {
    /// What to print
    #[arg(value_enum)]
    what: Reference,
}

/// A reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Reference {
    /// Columns of every CSV file, docs/csv.md
    Csv,
    /// Keys of experiments, docs/toml.md
    Toml,
}

/// Prints it.
pub fn run(args: &DocsArgs) -> Result<()> {
    output::print(&match args.what {
        Reference::Csv => csv(),
        Reference::Toml => toml(),
    })
}

/// A heading, a paragraph, and a table.
fn section<const N: usize>(
    heading: &str,
    text: &str,
    head: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head = head.map(str::to_owned);
    let mut out = format!("{heading}\n\n{text}\n\n{}", line(&head));
    out.push_str(&line(&head.map(|_| "---".to_owned())));
    for row in rows {
        // a bar is no border
        out.push_str(&line(&row.map(|cell| cell.replace('|', "\\|"))));
    }
    out
}

fn described(columns: &[Column], meaning: impl Fn(&str) -> String) -> Vec<[String; 3]> {
    let row = |column: &Column| {
        let kind = if column.can_be_empty() { ", or empty" } else { "" };
        [format!("`{}`", column.name), format!("{}{kind}", column.kind()), meaning(&column.name)]
    };
    columns.iter().map(row).collect()
}

fn of_command(list: &[(&str, &str, &str)], command: &str) -> Vec<[String; 2]> {
    let own = list.iter().filter(|(of, ..)| *of == command);
    own.map(|(_, name, meaning)| [format!("`{name}`"), (*meaning).to_owned()]).collect()
}

fn pairs(list: &[(&str, &str)]) -> Vec<[String; 2]> {
    list.iter().map(|(name, meaning)| [format!("`{name}`"), (*meaning).to_owned()]).collect()
}

/// Columns of every CSV file.
fn csv() -> String {
    let find = |list: &[(&str, &str)], name: &str| {
        list.iter().find(|(own, _)| *own == name).map(|(_, meaning)| (*meaning).to_owned())
    };
    let of_obstacle = |name: &str| {
        let setting = crate::config::obstacle::axes::AXES.iter().find(|axis| axis.name == name);
        let setting = setting.map(|axis| axis.help.to_owned());
        let own = find(crate::record::obstacle::COLUMNS, name);
        setting.or(own).or_else(|| find(COLUMNS, name)).unwrap_or_default()
    };
    let head = ["column", "cells", "meaning"];
    let two = ["column", "meaning"];
    let parts = [
        "# Columns of CSV files\n\nMade by `bilu-bench docs csv`. The first line of a file names its \
         columns; cells are separated by commas and quoted where they need it (RFC 4180), text is \
         UTF-8, numbers have a point and no unit. A cell without a value is empty. JSON objects have \
         the same names as keys.\n"
            .to_owned(),
        section(
            "## Records of `run` and `reproduce`",
            "One row for each case, appended when it is done (`-o FILE.csv`).",
            head,
            described(Record::schema(), |name| find(COLUMNS, name).unwrap_or_default()).into_iter(),
        ),
        section(
            "## What `reproduce --format csv` adds",
            "In front or behind the columns of a record, as far as the experiment has them.",
            two,
            of_command(ADDED, "reproduce").into_iter(),
        ),
        section(
            "## Records of `obstacle`",
            "One row for each run (`-o FILE.csv`).",
            head,
            described(crate::record::obstacle::Record::schema(), of_obstacle).into_iter(),
        ),
        section(
            "## Rows of `compare --format csv`",
            "Behind the settings that the files were joined on.",
            two,
            of_command(DERIVED, "compare").into_iter(),
        ),
        section(
            "## Rows of `versus --format csv`",
            "Behind the settings of a system; `n`, levels and percentages are those of a record.",
            two,
            of_command(DERIVED, "versus").into_iter(),
        ),
        section("## Rows of `tune --format csv`", "One row for each trial.", two, pairs(TUNING).into_iter()),
        section(
            "## Tables of `report --tables FOLDER`",
            "A file for each table of the page, `<section>-<number>.csv`, with all its rows as they are \
             shown there, numbers with their units. `tables.csv` lists them:",
            two,
            pairs(page::tables::COLUMNS).into_iter(),
        ),
        section(
            "### Columns of these tables",
            "Settings have their names. `(way)` stands for a backend, an execution, or several of them.",
            two,
            pairs(page::heads::HEADS).into_iter(),
        ),
        section(
            "## Numbers of figures",
            "Of `plot -o FILE.csv`: one row for each point of a figure, in the order of its panels and \
             series.",
            two,
            pairs(plot::COLUMNS).into_iter(),
        ),
    ];
    parts.join("\n")
}

/// Keys of experiments.
fn toml() -> String {
    let mut out = String::from(
        "# Keys of experiments\n\nMade by `bilu-bench docs toml`. An experiment is a TOML file for \
         `bilu-bench run FILE.toml`, or one in the folder of a paper for `reproduce`. A wrong key or \
         value is refused with file, line and column before anything runs.\n\n```toml\ntitle = \"Block \
         sizes\"\n\n[[sweep]]\nmatrix = \"poisson3d:60\"\nblock-size = [1, 2, 4]\nfill = \"0..3\"\n\
         \n[measure]\nmin-repetitions = 3\n```\n\n",
    );
    let default = crate::case::Case::default();
    let axes = AXES.iter().map(|axis| {
        let choices = (axis.choices)();
        let choices = match choices.as_slice() {
            [] => String::new(),
            names => format!(": `{}`", names.join("`, `")),
        };
        let text = (axis.text)(&default);
        [format!("`{}`", axis.name), format!("{}{choices}", axis.help), format!("`{text}`")]
    });
    out.push_str(&section(
        "## `[[sweep]]`",
        "Each key takes one value or a list of them; the cases are all combinations, the first key of \
         this table being the outermost loop. Whole numbers may be inclusive ranges, `\"0..3\"`. Flags \
         of the same names replace them. Relative paths of matrices and of right-hand sides count from the \
         folder of the file.",
        ["key", "meaning", "default"],
        axes,
    ));
    let settings = SETTINGS.iter().map(|s| [format!("`{}`", s.name), s.help.to_owned()]);
    out.push('\n');
    out.push_str(&section(
        "## `[measure]`",
        "How each case is measured.",
        ["key", "meaning"],
        settings,
    ));
    for table in TABLES {
        let heading = match table.name {
            "" => "## The file".to_owned(),
            name => format!("## `[{}]`", name.replace(", ", "]`, `[")),
        };
        let keys = table.keys.iter();
        let keys = keys.map(|k| [format!("`{}`", k.name), k.value.to_owned(), k.help.to_owned()]);
        out.push('\n');
        out.push_str(&section(&heading, table.help, ["key", "value", "meaning"], keys));
    }
    let quantities = QUANTITIES.iter().map(|q| [format!("`{}`", q.name), q.label.to_owned()]);
    let text = "What `x` and `y` of `[figure]` and `plot --show` can be.";
    // writing to a string cannot fail
    let _ = write!(out, "\n{}", section("## Quantities", text, ["name", "axis"], quantities));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the file, or writes it where `BILU_BENCH_WRITE_DOCS` is set.
    fn is_current(name: &str, text: &str) {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name);
        if std::env::var_os("BILU_BENCH_WRITE_DOCS").is_some() {
            std::fs::write(&path, text).unwrap();
        }
        let file = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            file == text,
            "docs/{name} is not current: `bilu-bench docs {} > docs/{name}`",
            name.trim_end_matches(".md")
        );
    }

    #[test]
    fn the_references_are_current() {
        is_current("csv.md", &csv());
        is_current("toml.md", &toml());
    }

    #[test]
    fn every_column_has_a_meaning() {
        for line in csv().lines().chain(toml().lines()).filter(|line| line.starts_with("| `")) {
            assert!(!line.contains("|  |"), "{line}");
        }
    }
}
