//! One page of results: figures, tables and their origin, in a single file without scripts or network access; and
//! its tables as separate files.

mod claims;
pub mod heads;
mod html;
mod sections;
mod style;
pub mod tables;

use std::collections::HashMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::base::error::Result;
use crate::config::library::Library;
use crate::record::environment::REVISION;
use crate::record::gather::Gathered;
use crate::report::Sheet;
use crate::report::batch::Batches;
use crate::report::plot::kinds::{KINDS, Plot};

/// What the page shows, gathered once.
struct Content<'a> {
    gathered: &'a Gathered,
    batches: Batches,
}

/// A part of the page.
struct Section {
    /// Its anchor.
    id: String,
    /// Its heading.
    title: String,
    /// Its contents.
    parts: Vec<Part>,
    /// Whether only its heading is shown at first.
    folded: bool,
}

/// A part of a section.
enum Part {
    /// A heading below that of the section.
    Heading(String),
    /// Text and figures.
    Text(Markup),
    /// A table.
    Table(Sheet),
}

impl Section {
    /// A section of `parts` below a paragraph that says how they are read; none without parts.
    fn below(id: &str, title: &str, how: Markup, parts: Vec<Part>) -> Option<Self> {
        if parts.is_empty() {
            return None;
        }
        let parts = std::iter::once(Part::Text(how)).chain(parts).collect();
        Some(Self { id: id.to_owned(), title: title.to_owned(), parts, folded: false })
    }
}

/// Options of a page.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// Its title.
    pub title: &'a str,
    /// Largest number of rows of a table; omitted rows are noted.
    pub rows: usize,
    /// Source of the experiments.
    pub library: &'a Library,
}

/// A page that was made from results.
pub struct Page {
    title: String,
    lead: String,
    rows: usize,
    files: usize,
    sections: Vec<Section>,
}

impl Page {
    /// The page of `gathered`.
    ///
    /// # Errors
    /// When an experiment of the library is not valid, or a figure cannot be drawn.
    pub fn of(gathered: &Gathered, options: &Options<'_>) -> Result<Self> {
        let batches = Batches::of(gathered, options.library)?;
        let content = Content { gathered, batches };
        let mut rest = sections::before(&content);
        rest.extend(figures(&content.batches)?);
        rest.extend(sections::after(&content));
        let mut sections = claims::sections(&content, options.library)?;
        // the page begins with what was found, and holds everything else below its heading
        let folded = !sections.is_empty();
        sections.extend(rest.into_iter().map(|own| Section { folded, ..own }));
        Ok(Self {
            title: options.title.to_owned(),
            lead: sections::lead(&content),
            rows: options.rows,
            files: gathered.sets.iter().map(|set| set.files.len()).sum(),
            sections,
        })
    }

    /// Its tables as CSV: names of files and what is in them, `tables.csv` being the list of all.
    ///
    /// # Errors
    /// When a table cannot be written as CSV.
    pub fn tables(&self) -> Result<Vec<(String, String)>> {
        tables::all(&self.sections)
    }

    /// The sections below the first screen.
    fn below(&self) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(|section| section.id != claims::FINDINGS)
    }

    /// The page as HTML.
    pub fn html(&self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="generator" content={ "bilu-bench " (REVISION) };
                    meta http-equiv="Content-Security-Policy"
                        content="default-src 'none'; style-src 'unsafe-inline'";
                    title { (self.title) }
                    style { (PreEscaped(style::sheet())) }
                }
                body {
                    a.skip href="#content" { "Skip to the content" }
                    header {
                        h1 { (self.title) }
                        p.lead { (self.lead) }
                    }
                    @let findings = self.sections.first().filter(|first| first.id == claims::FINDINGS);
                    @for part in findings.into_iter().flat_map(|first| &first.parts) {
                        (html::part(part, self.rows))
                    }
                    nav aria-label="Contents" {
                        h2 { "Contents" }
                        ol {
                            @for section in self.below() { li { a href={ "#" (section.id) } { (section.title) } } }
                        }
                    }
                    main #content {
                        @for section in self.below() {
                            section aria-labelledby=(section.id) {
                                @if section.folded {
                                    details {
                                        summary { h2 id=(section.id) { (section.title) } }
                                        @for part in &section.parts { (html::part(part, self.rows)) }
                                    }
                                } @else {
                                    h2 id=(section.id) { (section.title) }
                                    @for part in &section.parts { (html::part(part, self.rows)) }
                                }
                            }
                        }
                    }
                    footer {
                        p { "Made by bilu-bench " (REVISION) " from "
                            (self.files) " files." }
                    }
                }
            }
        };
        page.into_string()
    }
}

/// A section for each kind of figure that has something to show.
fn figures(batches: &Batches) -> Result<Vec<Section>> {
    let (mut sections, mut number) = (Vec::new(), 0);
    let mut seen: HashMap<String, usize> = HashMap::new();
    for kind in KINDS {
        let plots = kind.figures(batches);
        if plots.is_empty() {
            continue;
        }
        let mut drawn = Vec::new();
        for Plot { figure, caption } in &plots {
            number += 1;
            let id = html::anchor(kind.name, &mut seen);
            drawn.push(html::figure(&id, &number.to_string(), figure, caption)?);
        }
        let how = html! { p.how { (kind.summary) } };
        let parts = drawn.into_iter().map(Part::Text).collect();
        sections.extend(Section::below(kind.name, kind.title, how, parts));
    }
    Ok(sections)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
