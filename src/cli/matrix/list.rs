//! `matrix list`: generators and known matrices.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};
use tabled::Table;
use tabled::builder::Builder;
use tabled::settings::peaker::Priority;
use tabled::settings::{Alignment, Style, Width, object::Columns};

use super::{ListArgs, to_json};
use crate::cli::output;
use crate::problem::generator::Generator;
use crate::problem::generators::GENERATORS;
use crate::problem::{Folders, catalogue};

fn as_json(g: &Generator) -> Value {
    let parameter = |key, default: Value, summary| json!({ "key": key, "default": default, "summary": summary });
    let numbers = g.parameters.iter().map(|p| parameter(p.key, p.default.into(), p.summary));
    let words = g.words.iter().map(|w| parameter(w.key, w.default.into(), w.summary));
    json!({
        "name": g.name,
        "size": g.size_form(),
        "parameters": numbers.collect::<Vec<_>>(),
        "words": words.collect::<Vec<_>>(),
        "presets": g.presets.iter().map(|p| p.name).collect::<Vec<_>>(),
        "summary": g.summary,
    })
}

/// A known matrix as `list --json` shows it.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct CatalogueRow {
    #[serde(flatten)]
    entry: &'static catalogue::Entry,
    /// Its file, if it is on this machine.
    file: Option<PathBuf>,
}

/// The text of `matrix list`.
pub(super) fn text(args: &ListArgs, folders: &Folders) -> String {
    let known: Vec<CatalogueRow> = catalogue::entries()
        .iter()
        .map(|entry| CatalogueRow { entry, file: folders.find(&entry.name) })
        .collect();
    if args.json {
        let generators: Vec<Value> = GENERATORS.iter().map(|g| as_json(g)).collect();
        return to_json(&json!({ "generators": generators, "catalogue": known }));
    }
    let mut table = Builder::default();
    table.push_record(["generator", "size", "parameters", "presets", "summary"]);
    for g in GENERATORS {
        let numbers = g.parameters.iter().map(|p| p.key);
        let keys: Vec<_> = numbers.chain(g.words.iter().map(|w| w.key)).collect();
        let presets: Vec<_> = g.presets.iter().map(|p| p.name).collect();
        let (name, size, summary) = (g.name.into(), g.size_form(), g.summary.into());
        table.push_record([name, size, keys.join(" "), presets.join(" "), summary]);
    }
    let width = output::width();
    let generators = fitted(table.build().with(Style::psql()), width);
    let mut table = Builder::default();
    table.push_record(["matrix", "n", "nnz", "sym", "block", "here", "twin", "kind"]);
    for CatalogueRow { entry: e, file } in &known {
        let here = match (file, &e.group) {
            (Some(_), _) => "yes",
            (None, Some(_)) => "get",
            (None, None) => "no",
        };
        table.push_record([
            e.name.clone(),
            e.n.to_string(),
            (e.nnz + e.explicit_zeros).to_string(),
            if e.symmetric { "yes" } else { "no" }.into(),
            e.block.map(|b| b.to_string()).unwrap_or_default(),
            here.into(),
            e.twin.clone().unwrap_or_default(),
            e.kind.clone(),
        ]);
    }
    let mut table = table.build();
    table.with(Style::psql());
    for column in [1, 2, 4] {
        table.modify(Columns::one(column), Alignment::right());
    }
    let known = fitted(&mut table, width);
    format!(
        "{generators}\n\n{known}\n\nhere: yes, on this machine; get, to be fetched with \
         `bilu-bench matrix get`\n"
    )
}

/// A table as text; the longest cells are wrapped where a terminal of `width` columns requires it.
fn fitted(table: &mut Table, width: Option<usize>) -> String {
    if let Some(width) = width {
        table.with(Width::wrap(width).priority(Priority::max(true)).keep_words(true));
    }
    table.to_string()
}
