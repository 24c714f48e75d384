//! One page of results: figures, tables and where they come from, in one file that needs no network
//! and no script.

mod html;
mod sections;
mod style;

use std::collections::HashMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::config::library::Library;
use crate::error::Result;
use crate::plot::kinds::{KINDS, Plot};
use crate::report::batch::Batches;
use crate::result::environment::REVISION;
use crate::result::gather::Gathered;

/// What the page shows, gathered once.
struct Content<'a> {
    gathered: &'a Gathered,
    batches: Batches,
    /// Rows of a table at most.
    rows: usize,
}

/// A part of the page.
struct Section {
    /// Its anchor.
    id: &'static str,
    /// Its heading.
    title: String,
    /// What stands below it.
    body: Markup,
}

/// Options of a page.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    /// Its title.
    pub title: &'a str,
    /// Rows of a table at most; what is left out is said.
    pub rows: usize,
    /// Where the experiments of papers are.
    pub library: &'a Library,
}

/// The page of `gathered` as HTML.
///
/// # Errors
/// When an experiment of the library is not valid, or a figure cannot be drawn.
pub fn page(gathered: &Gathered, options: &Options<'_>) -> Result<String> {
    let batches = Batches::of(gathered, options.library)?;
    let content = Content { gathered, batches, rows: options.rows };
    let mut all = sections::before(&content);
    all.extend(figures(&content.batches)?);
    all.extend(sections::after(&content));
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
                title { (options.title) }
                style { (PreEscaped(style::sheet())) }
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                header {
                    h1 { (options.title) }
                    p.lead { (sections::lead(&content)) }
                }
                nav aria-label="Contents" {
                    h2 { "Contents" }
                    ol {
                        @for section in &all { li { a href={ "#" (section.id) } { (section.title) } } }
                    }
                }
                main #content {
                    @for section in &all {
                        section aria-labelledby=(section.id) {
                            h2 id=(section.id) { (section.title) }
                            (section.body)
                        }
                    }
                }
                footer {
                    p { "Made by bilu-bench " (REVISION) " from "
                        (gathered.sets.iter().map(|s| s.files.len()).sum::<usize>()) " files." }
                }
            }
        }
    };
    Ok(page.into_string())
}

/// A section for each kind of figure that has something to show.
fn figures(batches: &Batches) -> Result<Vec<Section>> {
    let (mut sections, mut number) = (Vec::new(), 0);
    let mut seen: HashMap<String, usize> = HashMap::new();
    for kind in KINDS {
        let plots = (kind.draw)(batches);
        if plots.is_empty() {
            continue;
        }
        let mut drawn = Vec::new();
        for Plot { figure, caption } in &plots {
            number += 1;
            let id = html::anchor(kind.name, &mut seen);
            drawn.push(html::figure(&id, number, figure, caption)?);
        }
        let body = html! {
            p.how { (kind.summary) }
            @for figure in &drawn { (figure) }
        };
        sections.push(Section { id: kind.name, title: kind.title.to_owned(), body });
    }
    Ok(sections)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
