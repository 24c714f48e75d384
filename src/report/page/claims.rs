//! What was found: sentences of the first screen, and a section with the verdicts of each paper.

use itertools::Itertools as _;
use maud::html;

use super::{Content, Part, Section, html as parts};
use crate::base::error::Result;
use crate::config::claims::{self, Claims};
use crate::config::library::Library;
use crate::report::Sheet;
use crate::report::batch::{Batch, Batches};
use crate::report::claims::{Files, Judged, judge, sheet};
use crate::report::plot::kinds;

/// Anchor of the findings, which stand above the contents.
pub(super) const FINDINGS: &str = "findings";

/// What a performance profile compares, and on the systems of which files.
type Compared = (&'static str, &'static [&'static str]);

/// Claims of this program itself, with their performance profiles: of backends with the vendor's library and with the
/// peers, of variants of triangular solves.
const OWN: [(&str, &[Compared]); 2] = [
    (
        "trisolve",
        &[
            ("backends", &["block-grids", "general", "point-grids", "reservoirs"]),
            ("triangular solves", &["real"]),
        ],
    ),
    ("peers", &[("backends", &["same"])]),
];

/// Most findings: one screen.
const MOST: usize = 8;

/// The findings and a section per paper; nothing where the results are not those that claims rest on.
pub(super) fn sections(content: &Content<'_>, library: &Library) -> Result<Vec<Section>> {
    let Some(root) = content.gathered.root() else { return Ok(Vec::new()) };
    let there = |file: &&str| content.gathered.paths.contains(&root.join(file));
    let files = Files::below(&root, library);
    let mut papers = Vec::new();
    for own in claims::of(library, None)? {
        let mut known = own.claims.iter().filter(|claim| !claim.files().is_empty());
        if known.clone().next().is_none() || !known.all(|claim| claim.files().iter().all(there)) {
            continue;
        }
        papers.push(own);
    }
    papers.sort_by_key(|own| OWN.iter().position(|(name, _)| *name == own.paper));
    let mut found = Vec::new();
    for own in &papers {
        // what cannot be judged is said in the section of the paper
        let judged = own.claims.iter().filter_map(|claim| judge(claim, &files).ok());
        found.extend(judged.filter(|judged| !judged.claim.finding.is_empty()).enumerate());
    }
    if found.is_empty() {
        return Ok(Vec::new());
    }
    // one of each paper, then the second ones
    found.sort_by_key(|(place, _)| *place);
    found.truncate(MOST);
    let mut sections = vec![findings(content, &papers, &found)?];
    for own in &papers {
        sections.push(match sheet(own, &files) {
            Ok(verdicts) => paper(content, own, verdicts)?,
            Err(e) => {
                let why = html! { p.note { "These results do not fit the claims: " (e) } };
                section(&own.paper, &own.title, vec![Part::Text(why)])
            }
        });
    }
    Ok(sections)
}

fn section(id: &str, title: &str, parts: Vec<Part>) -> Section {
    Section { id: id.to_owned(), title: title.to_owned(), parts, folded: false }
}

/// The states of the tables that a claim rests on, if they are not current.
fn state(content: &Content<'_>, judged: &Judged<'_>) -> Option<String> {
    let states = judged.files().into_iter().filter_map(|file| content.gathered.state(file));
    let states = states.filter(|state| *state != "current").unique().join("; ");
    (!states.is_empty()).then_some(states)
}

fn findings(
    content: &Content<'_>,
    papers: &[Claims],
    found: &[(usize, Judged<'_>)],
) -> Result<Section> {
    let of = |judged: &Judged<'_>| {
        let own =
            |claims: &&Claims| claims.claims.iter().any(|own| std::ptr::eq(own, judged.claim));
        papers.iter().find(own).map_or("", |claims| claims.paper.as_str())
    };
    let sentence = |(_, judged): &(usize, Judged<'_>)| {
        Ok((of(judged).to_owned(), judged.finding()?.unwrap_or_default()))
    };
    let sentences = found.iter().map(sentence).collect::<Result<Vec<_>>>()?;
    let list = html! {
        ol.findings {
            @for ((paper, sentence), (_, judged)) in sentences.iter().zip(found) {
                li {
                    b { (sentence) ". " }
                    span.note {
                        (judged.claim.caveat.replace('`', ""))
                        @if let Some(state) = state(content, judged) { " (records: " (state) ")" }
                        ". "
                        a href={ "#" (paper) } { (judged.claim.source) ": " (judged.verdict.name()) }
                    }
                }
            }
        }
    };
    Ok(section(FINDINGS, "Findings", vec![Part::Text(list)]))
}

fn paper(content: &Content<'_>, own: &Claims, verdicts: Sheet) -> Result<Section> {
    let counts = verdicts.rows.iter().map(|row| row[2].as_str()).counts();
    let counts =
        counts.into_iter().sorted().map(|(name, count)| format!("{count} {name}")).join(", ");
    let files = own.claims.iter().flat_map(|claim| claim.files()).unique();
    let tables =
        files.filter_map(|file| Some(format!("{file}: {}", content.gathered.state(file)?)));
    let profiled = OWN.iter().find(|(name, _)| *name == own.paper);
    let how = html! {
        p.how { (counts) ". " @if profiled.is_some() { "The claims are this program's own." } }
    };
    let notes = tables.collect_vec();
    let verdicts = Sheet { title: None, notes: Vec::new(), ..verdicts };
    let mut all = vec![Part::Text(how), Part::Table(verdicts)];
    if let Some((paper, profiles)) = profiled {
        for (what, names) in *profiles {
            all.extend(profile(content, (paper, what), names)?);
        }
    }
    all.push(Part::Text(html! {
        details { summary { "State of its tables" } ul.below { @for line in &notes { li { (line) } } } }
    }));
    Ok(section(&own.paper, &own.title, all))
}

/// The performance profile of what is compared over the systems of these files of a paper.
fn profile(
    content: &Content<'_>,
    (paper, what): (&str, &str),
    names: &[&str],
) -> Result<Option<Part>> {
    let of_paper = |batch: &&Batch| {
        let mut words = batch.name.split('/').rev();
        words.next().is_some_and(|name| names.contains(&name)) && words.any(|word| word == paper)
    };
    let own = content.batches.runs.iter().filter(of_paper);
    let records = own.flat_map(|batch| batch.records.clone()).collect();
    let merged = Batch { name: paper.to_owned(), records, ..Batch::default() };
    let plots =
        kinds::kind("profile")?.figures(&Batches { runs: vec![merged], obstacle: Vec::new() });
    let title = format!("of {what}:");
    let plot = plots.into_iter().find(|plot| plot.figure.title.contains(&title));
    let part = |plot: kinds::Plot| {
        let id = format!("{paper}-profile-{}", what.replace(' ', "-"));
        parts::figure(&id, &format!("of {paper}"), &plot.figure, &plot.caption).map(Part::Text)
    };
    plot.map(part).transpose()
}
