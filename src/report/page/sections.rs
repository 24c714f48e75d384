//! The sections other than figures: summary, machines, tables, notes.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use maud::{Markup, html};

use super::{Content, Part, Section};
use crate::base::status::Status;
use crate::base::units::{grouped, plural, seconds, significant};
use crate::config::Experiment;
use crate::record::Record;
use crate::record::gather::{Rows, Set, Trial};
use crate::record::schema::Environment;
use crate::report::batch::{Batch, shared_folder};
use crate::report::build::Columns;
use crate::report::cells::{by_key, count, shown, three};
use crate::report::{Head, Sheet, of_experiment, runs, versus};

/// Records up to which a file is set beside a paper's table: it has more rows than any of them.
const MOST_JUDGED: usize = 2000;

/// The sections above the figures.
pub(super) fn before(content: &Content<'_>) -> Vec<Section> {
    let others = [machines(content), published(content)];
    std::iter::once(summary(content)).chain(others.into_iter().flatten()).collect()
}

/// The sections below the figures.
pub(super) fn after(content: &Content<'_>) -> Vec<Section> {
    let all =
        [library(content), obstacles(content), tuning(content), tables(content), derived(content)];
    all.into_iter().flatten().chain([methods(content)]).collect()
}

/// The line below the title.
pub(super) fn lead(content: &Content<'_>) -> String {
    let days = environments(content).into_iter().map(|d| day(d.environment));
    let days = days.filter(|day| !day.is_empty());
    let rows: usize = content.gathered.sets.iter().map(|set| set.rows.len()).sum();
    let files = plural(content.gathered.sets.len(), "file");
    let measured = match days.minmax().into_option() {
        Some((first, last)) if first == last => format!(", measured on {first}"),
        Some((first, last)) => format!(", measured from {first} to {last}"),
        None => String::new(),
    };
    format!("{} from {files}{measured}", plural(rows, "result"))
}

fn tile(number: &str, what: &str) -> Markup {
    html! { li { b { (number) } span { (what) } } }
}

fn summary(content: &Content<'_>) -> Section {
    let runs = || content.batches.runs.iter().flat_map(|batch| &batch.records);
    let obstacle = || content.batches.obstacle.iter().flat_map(|batch| &batch.records);
    let systems = runs().map(|r| r.case.matrix.as_str()).unique().count();
    let ends = runs().map(|r| r.status).chain(obstacle().map(|r| r.status)).collect_vec();
    let failed = ends.iter().filter(|s| !s.succeeded()).count();
    let ends: BTreeMap<&str, usize> = ends.iter().map(|s| s.name()).counts().into_iter().collect();
    let ends = ends.iter().map(|(name, count)| format!("{} {name}", grouped(*count))).join(", ");
    let tiles = html! {
        ul.tiles {
            (tile(&grouped(runs().count() + obstacle().count()), "runs"))
            @if systems > 0 { (tile(&grouped(systems), "systems")) }
            (tile(&grouped(environments(content).len()), "devices and backends"))
            (tile(&grouped(failed), "runs that did not succeed"))
            @if !content.gathered.notes.is_empty() {
                (tile(&grouped(content.gathered.notes.len()), "remarks about what was left out"))
            }
        }
        @if !ends.is_empty() { p { "How the runs ended: " (ends) "." } }
        @if !content.gathered.notes.is_empty() {
            h3 id="left-out" { "Left out" }
            ul.plain { @for note in &content.gathered.notes { li { (note) } } }
        }
    };
    let parts = vec![Part::Text(tiles), Part::Table(files(content))];
    Section { id: "summary".into(), title: "Summary".into(), parts, folded: false }
}

/// A row for each file.
fn files(content: &Content<'_>) -> Sheet {
    let names: Vec<&str> = content.gathered.sets.iter().map(|set| set.name.as_str()).collect();
    let skip = shared_folder(&names);
    let experiment = |set: &Set| {
        let batch = content.batches.runs.iter().find(|batch| batch.name == set.name[skip..])?;
        batch.experiment.as_ref().map(|(name, _)| name.clone())
    };
    let files = Columns::new()
        .words("file", |set: &&Set| set.name[skip..].to_owned())
        .words("what", |set| set.rows.kind().to_owned())
        .number("rows", |set| grouped(set.rows.len()))
        .words("state", |set| {
            let states = set.files.iter().find_map(|file| content.gathered.state(file));
            states.unwrap_or_default().to_owned()
        })
        .words("experiment", |set| experiment(set).unwrap_or_default())
        .sheet(&content.gathered.sets);
    Sheet { title: Some("Files".into()), ..files }
}

/// A device with results.
struct Device<'a> {
    backend: &'a str,
    environment: &'a Environment,
    runs: usize,
    copy_gbps: Option<f64>,
}

fn day(environment: &Environment) -> &str {
    environment.date.split('T').next().unwrap_or_default()
}

/// Each device with each revision of the program, in the order of their first results.
fn environments<'a>(content: &'a Content<'_>) -> Vec<Device<'a>> {
    let runs = content.batches.runs.iter().flat_map(|batch| &batch.records);
    let runs = runs.map(|r| (&*r.case.backend, &r.environment, r.traffic.copy_gbps));
    let obstacle = content.batches.obstacle.iter().flat_map(|batch| &batch.records);
    let obstacle = obstacle.map(|r| (&*r.case.backend, &r.environment, r.cost.copy_gbps));
    let groups = by_key(runs.chain(obstacle), |(backend, e, _)| {
        (*backend, &e.device, e.threads, &e.revision, &e.cpu, day(e))
    });
    let device = |own: Vec<(&'a str, &'a Environment, Option<f64>)>| Device {
        backend: own[0].0,
        environment: own[0].1,
        runs: own.len(),
        copy_gbps: own.iter().filter_map(|(.., copy)| *copy).reduce(f64::max),
    };
    groups.into_iter().map(|(_, own)| device(own)).collect()
}

fn machines(content: &Content<'_>) -> Option<Section> {
    let devices = environments(content);
    if devices.is_empty() {
        return None;
    }
    let table = Columns::new()
        .words("backend", |d: &Device<'_>| d.backend.to_owned())
        .words("device", |d| d.environment.device.clone())
        .number("threads", |d| count(Some(d.environment.threads).filter(|n| *n > 0)))
        .number("copy GB/s", |d| shown(d.copy_gbps, |gbps| significant(gbps, 4)))
        .number("runs", |d| grouped(d.runs))
        .words("host processor", |d| d.environment.cpu.clone())
        .words("system", |d| d.environment.os.clone())
        // the hash says no more
        .words("compiler", |d| {
            d.environment.compiler.split(" (").next().unwrap_or_default().to_owned()
        })
        .words("revision", |d| d.environment.revision.clone())
        .words("day", |d| day(d.environment).to_owned())
        .sheet(devices);
    let how = html! {
        p.how { "Where the results were measured, a row for each backend, device, revision of the \
                 program and day. Copy GB/s is the measured bandwidth of a copy, read and written \
                 bytes together: the roof of what moves memory." }
    };
    let doctor = html! {
        @for (path, text) in &content.gathered.doctor {
            details { summary { "What " code { "bilu-bench doctor" } " said: " (path) } pre { (text) } }
        }
    };
    let parts = vec![Part::Text(how), Part::Table(table), Part::Text(doctor)];
    Some(Section { id: "machines".into(), title: "Machines".into(), parts, folded: false })
}

/// Tables of papers, with the published values.
fn published(content: &Content<'_>) -> Option<Section> {
    let mut parts = Vec::new();
    for batch in &content.batches.runs {
        let Some((name, experiment)) = &batch.experiment else { continue };
        if !has_published(experiment) || batch.records.len() > MOST_JUDGED {
            continue;
        }
        let report = of_experiment(name, experiment, &batch.records, batch.not_comparable);
        parts.push(Part::Heading(batch.heading()));
        parts.extend(report.sheets.into_iter().map(|own| Part::Table(untitled(own, batch))));
    }
    for batch in &content.batches.obstacle {
        let Some(experiment) = batch.experiment.as_ref().filter(|e| e.published.is_some()) else {
            continue;
        };
        let report = crate::report::obstacle::report(Some(experiment), &batch.records, None);
        parts.push(Part::Heading(batch.name.clone()));
        parts.extend(report.sheets.into_iter().map(Part::Table));
    }
    let how = html! {
        p.how { "What papers printed beside what was measured here. Iterations have a verdict: "
            b { "ok" } " within the table's tolerance, else the deviation in percent. Times are of \
            different machines; of a GPU it is said whether its speedup over one core reaches the \
            printed one." }
    };
    Section::below("published", "Published and measured", how, parts)
}

fn has_published(experiment: &Experiment) -> bool {
    experiment.published.is_some() || experiment.history.is_some() || experiment.phases.is_some()
}

/// Without the title that stands above already.
fn untitled(own: Sheet, batch: &Batch) -> Sheet {
    let title = own.title.filter(|title| title != batch.title());
    Sheet { title, ..own }
}

/// Our kernels against those of cuSPARSE.
fn library(content: &Content<'_>) -> Option<Section> {
    let mut parts = Vec::new();
    for batch in &content.batches.runs {
        let has = |name: &str| batch.records.iter().any(|r| r.case.backend == name);
        if has("cuda")
            && has("cusparse")
            && let Ok(report) = versus::report(&batch.records)
        {
            parts.push(Part::Heading(batch.heading()));
            parts.extend(report.sheets.into_iter().map(Part::Table));
        }
    }
    let how = html! {
        p.how { "For each system the fastest algorithm of " code { "cuda" } " and the fastest of cuSPARSE: \
                 one application of the preconditioner, the factorisation on the device, and the \
                 numeric phase with the solve. A ratio above 1 means that cuSPARSE takes longer." }
    };
    Section::below("versus", "Against cuSPARSE", how, parts)
}

fn obstacles(content: &Content<'_>) -> Option<Section> {
    let how = html! {
        p.how { "Evolution obstacle problems by projected Richardson: sweeps to convergence, time of a \
                 sweep, and the bandwidth that it reaches." }
    };
    let batches = content.batches.obstacle.iter();
    let reports = batches
        .map(|batch| crate::report::obstacle::report(None, &batch.records, Some(&batch.name)));
    let parts = reports.flat_map(|report| report.sheets).map(Part::Table).collect();
    Section::below("obstacle", "Obstacle problems", how, parts)
}

fn tuning(content: &Content<'_>) -> Option<Section> {
    let trials = content.gathered.sets.iter().flat_map(|set| match &set.rows {
        Rows::Tuning(trials) => &trials[..],
        _ => &[],
    });
    let groups = by_key(trials, |trial| (&trial.system, &trial.kernel));
    if groups.is_empty() {
        return None;
    }
    let rows = groups.into_iter().filter_map(|(_, own)| {
        let timed = || own.iter().filter_map(|t| Some((t.seconds?, *t)));
        let (fastest, best) = timed().min_by(|a, b| a.0.total_cmp(&b.0))?;
        let slowest = timed().map(|(s, _)| s).fold(0.0_f64, f64::max);
        Some((best, own.len(), fastest, slowest / fastest))
    });
    let best = Columns::new()
        .words("system", |(best, ..): &(&Trial, usize, f64, f64)| best.system.clone())
        .words("kernel", |(best, ..)| best.kernel.clone())
        .number("tried", |(_, tried, ..)| grouped(*tried))
        .number("best", |(_, _, fastest, _)| seconds(*fastest))
        .number("GB/s", |(best, ..)| shown(best.gbps, |v| significant(v, 4)))
        .number("% copy", |(best, ..)| three(best.percent_of_copy))
        .number("slowest over best", |(.., factor)| significant(*factor, 3))
        .words("choices", |(best, ..)| best.choices.clone())
        .whole(rows);
    let how = html! {
        p.how { "Results of " code { "bilu-bench tune" } ": the fastest parameters of each kernel and system, \
                 and the factor by which the slowest were slower." }
    };
    Section::below("tuning", "Tuning", how, vec![Part::Table(best)])
}

/// All runs, file by file.
fn tables(content: &Content<'_>) -> Option<Section> {
    let how = html! {
        p.how { "Every run, with the settings in which those of a file differ; times are medians with \
                 their 95 % confidence interval, or with number and range of fewer than six samples. \
                 The files hold more columns, described in "
            code { "docs/csv.md" } "." }
    };
    let mut parts = Vec::new();
    for batch in &content.batches.runs {
        parts.push(Part::Heading(batch.heading()));
        parts.extend(runs::report(&batch.records, None).sheets.into_iter().map(|mut own| {
            own.title.get_or_insert_with(|| "Runs".into());
            Part::Table(own)
        }));
        let failed = |r: &&Record| !r.status.succeeded() && r.status != Status::Unsupported;
        let failed = batch.records.iter().filter(failed).count();
        if failed > 0 {
            let failed = plural(failed, "run");
            let why = html! { p.note { (failed) " did not succeed; the column status says why." } };
            parts.push(Part::Text(why));
        }
    }
    Section::below("runs", "All runs", how, parts)
}

/// Rows of `compare` and `versus` as they are.
fn derived(content: &Content<'_>) -> Option<Section> {
    let of = |set: &Set| match &set.rows {
        Rows::Derived(columns, rows) => {
            let mut own = Sheet {
                title: Some(set.name.clone()),
                columns: columns.iter().map(Head::words).collect(),
                rows: rows.clone(),
                ..Sheet::default()
            };
            own.drop_empty_columns();
            Some(Part::Table(own))
        }
        _ => None,
    };
    let how = html! {
        p.how { "Rows of " code { "compare" } " and " code { "versus" } ", unchanged." }
    };
    let parts = content.gathered.sets.iter().filter_map(of).collect();
    Section::below("comparisons", "Comparisons", how, parts)
}

/// Glossary.
fn methods(_: &Content<'_>) -> Section {
    let terms = [
        (
            "solve",
            "a preconditioned Krylov solve to the tolerance: a warm-up, then repetitions for 100 ms and at \
             least six times, or as far as limits allow",
        ),
        (
            "setup",
            "pattern of the factors (symbolic), level schedules and storage (analysis), values (numeric), \
             and the vectors of deflation",
        ),
        (
            "total",
            "time to solution: ordering, conversion of the matrix, setup and one solve; compilation is excluded",
        ),
        ("iterations", "applications of the preconditioned operator; full steps of BiCGStab"),
        ("residual", "|b - A x| / |b|, recomputed in float64 after the solve"),
        ("k, fill", "fill level of ILU(k); fill: factor blocks divided by matrix blocks"),
        ("levels L/U", "sequential steps of a level-scheduled triangular solve"),
        ("cpu, cpu-mt", "one thread, all cores"),
        (
            "cuda, cusparse",
            "one NVIDIA GPU, with this program's kernels or with the routines of cuSPARSE",
        ),
        (
            "whiskers, ±, [low, high]",
            "95 % confidence interval of the median, for six samples or more",
        ),
        ("(n: low–high)", "minimum and maximum of n samples, too few for an interval"),
        ("speedup‡", "one of both times is of fewer than six samples"),
    ];
    let body = html! {
        dl { @for (term, meaning) in terms { dt { (term) } dd { (meaning) } } }
    };
    let parts = vec![Part::Text(body)];
    Section { id: "terms".into(), title: "Terms".into(), parts, folded: false }
}
