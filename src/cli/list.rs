//! `list`: every name that a sweep accepts.

use serde_json::{Map, Value, json};

use crate::base::error::{Error, Result};
use crate::base::external::PREFIX;
use crate::base::units::aligned;
use crate::cli::flags::PeerFlags;
use crate::cli::{complete, output};
use crate::config::library::Library;
use crate::config::peer::{self, Peer};
use crate::config::sweep::AXES;
use crate::methods::precond::options::Parameter;
use crate::methods::{precond, registry};
use crate::problem::generators::GENERATORS;
use crate::record::table::COLUMNS;
use crate::report::plot::kinds::KINDS;

#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// List only this section
    #[arg(value_name = "SECTION", add = complete::one_of(names))]
    section: Option<String>,

    /// As JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    peers: PeerFlags,
}

struct Section {
    name: &'static str,
    items: Vec<(String, String)>,
}

pub(super) fn run(args: &ListArgs) -> Result<()> {
    args.peers.apply()?;
    let mut sections = sections()?;
    if let Some(name) = &args.section {
        let known: Vec<&str> = sections.iter().map(|s| s.name).collect();
        if !known.contains(&name.as_str()) {
            return Err(Error::unknown("section", name, &known));
        }
        sections.retain(|s| s.name == name);
    }
    output::print(&if args.json { as_json(&sections) } else { as_text(&sections) })
}

fn names() -> Vec<String> {
    sections().unwrap_or_default().iter().map(|section| section.name.to_owned()).collect()
}

fn sections() -> Result<Vec<Section>> {
    let named = |name, list: registry::Names| Section {
        name,
        items: list.iter().map(|(n, s)| ((*n).to_owned(), (*s).to_owned())).collect(),
    };
    let library = Library::Embedded;
    let mut experiments = Vec::new();
    for entry in library.entries()? {
        let title = library.open(&entry)?.title.unwrap_or_default();
        experiments.push((format!("{}/{}", entry.paper, entry.table), title));
    }
    let generators = GENERATORS
        .iter()
        .map(|g| (g.name.to_owned(), format!("{}; {}", g.summary, g.usage())))
        .collect();
    // the first sentence of what it shows
    let figures = KINDS.iter().map(|kind| {
        let summary = kind.summary.split_once(". ").map_or(kind.summary, |(first, _)| first);
        (kind.name.to_owned(), format!("{}: {}", kind.title, summary.trim_end_matches('.')))
    });
    let figures = figures.collect();
    let settings = AXES.iter().map(|a| (a.name.to_owned(), a.help.to_owned())).collect();
    Ok(vec![
        named("solvers", registry::SOLVERS),
        named("preconditioners", registry::PRECONDITIONERS),
        Section { name: "parameters", items: parameters() },
        named("backends", registry::BACKENDS),
        Section { name: "peers", items: peers() },
        named("orderings", registry::ORDERINGS),
        named("formats", registry::FORMATS),
        named("trisolves", registry::TRISOLVES),
        named("fgbilu-styles", registry::FGBILU_STYLES),
        named("executions", registry::EXECUTIONS),
        Section { name: "generators", items: generators },
        Section { name: "experiments", items: experiments },
        Section { name: "figures", items: figures },
        Section { name: "settings", items: settings },
        named("columns", &COLUMNS),
    ])
}

/// Peers, and what they can do or what is wrong with their descriptions.
fn peers() -> Vec<(String, String)> {
    let peers = peer::all().into_iter();
    let described = |found: Result<Peer>| match found {
        Ok(peer) => peer.described(),
        Err(why) => why.to_string(),
    };
    peers.map(|(name, found)| (format!("{PREFIX}{name}"), described(found))).collect()
}

/// Parameters of the preconditioners, given after a colon.
fn parameters() -> Vec<(String, String)> {
    let of = |(name, all): (&str, &'static [Parameter])| {
        let name = name.to_owned();
        all.iter().map(move |p| {
            (format!("{name}:{}={}", p.key, p.default), format!("{}; {}", p.summary, p.range))
        })
    };
    precond::described().flat_map(of).collect()
}

fn as_text(sections: &[Section]) -> String {
    let text = sections.iter().map(|s| format!("{}\n{}", s.name, aligned(2, &s.items)));
    text.collect::<Vec<_>>().join("\n")
}

fn as_json(sections: &[Section]) -> String {
    let map: Map<String, Value> = sections
        .iter()
        .map(|section| {
            let items = section.items.iter().map(|(n, s)| json!({ "name": n, "summary": s }));
            (section.name.to_owned(), items.collect())
        })
        .collect();
    format!("{:#}\n", Value::Object(map))
}
