//! The sections other than figures: summary, machines, tables, notes.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::{Content, Part, Section};
use crate::base::status::Status;
use crate::base::units::{grouped, plural, seconds, significant};
use crate::config::Experiment;
use crate::record::Record;
use crate::record::gather::{Rows, Set, Trial};
use crate::report::batch::{Batch, shared_folder};
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
    let days = environments(content).iter().map(|e| e.day.clone()).collect::<Vec<_>>();
    let days: Vec<&String> = days.iter().filter(|day| !day.is_empty()).collect();
    let rows: usize = content.gathered.sets.iter().map(|set| set.rows.len()).sum();
    let files = plural(content.gathered.sets.len(), "file");
    let measured = match (days.iter().min(), days.iter().max()) {
        (Some(first), Some(last)) if first == last => format!(", measured on {first}"),
        (Some(first), Some(last)) => format!(", measured from {first} to {last}"),
        _ => String::new(),
    };
    format!("{} from {files}{measured}", plural(rows, "result"))
}

fn tile(number: &str, what: &str) -> Markup {
    html! { li { b { (number) } span { (what) } } }
}

fn summary(content: &Content<'_>) -> Section {
    let runs = || content.batches.runs.iter().flat_map(|batch| &batch.records);
    let obstacle = || content.batches.obstacle.iter().flat_map(|batch| &batch.records);
    let mut systems: Vec<&str> = runs().map(|r| r.case.matrix.as_str()).collect();
    systems.sort_unstable();
    systems.dedup();
    let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
    for status in runs().map(|r| r.status).chain(obstacle().map(|r| r.status)) {
        *ends.entry(status.name()).or_default() += 1;
    }
    let statuses = runs().map(|r| r.status).chain(obstacle().map(|r| r.status));
    let failed = statuses.filter(|s| !s.succeeded()).count();
    let names: Vec<&str> = content.gathered.sets.iter().map(|set| set.name.as_str()).collect();
    let skip = shared_folder(&names);
    let mut files = Sheet {
        columns: vec![
            Head::words("file"),
            Head::words("what"),
            Head::number("rows"),
            Head::words("experiment"),
        ],
        ..Sheet::default()
    };
    for set in &content.gathered.sets {
        let name = &set.name[skip..];
        let batch = content.batches.runs.iter().find(|batch| batch.name == name);
        let experiment = batch.and_then(|b| b.experiment.as_ref()).map(|(name, _)| name.clone());
        files.rows.push(vec![
            name.to_owned(),
            set.rows.kind().to_owned(),
            grouped(set.rows.len()),
            experiment.unwrap_or_default(),
        ]);
    }
    files.drop_empty_columns();
    let ends: Vec<String> =
        ends.iter().map(|(name, count)| format!("{} {name}", grouped(*count))).collect();
    let tiles = html! {
        ul.tiles {
            (tile(&grouped(runs().count() + obstacle().count()), "runs"))
            @if !systems.is_empty() { (tile(&grouped(systems.len()), "systems")) }
            (tile(&grouped(environments(content).len()), "devices and backends"))
            (tile(&grouped(failed), "runs that did not succeed"))
            @if !content.gathered.notes.is_empty() {
                (tile(&grouped(content.gathered.notes.len()), "remarks about what was left out"))
            }
        }
        @if !ends.is_empty() { p { "How the runs ended: " (ends.join(", ")) "." } }
        @if !content.gathered.notes.is_empty() {
            h3 id="left-out" { "Left out" }
            ul.plain { @for note in &content.gathered.notes { li { (note) } } }
        }
    };
    let files = Sheet { title: Some("Files".into()), ..files };
    let parts = vec![Part::Text(tiles), Part::Table(files)];
    Section { id: "summary", title: "Summary".into(), parts }
}

/// A device with results.
#[derive(PartialEq)]
struct Device {
    backend: String,
    name: String,
    threads: usize,
    cpu: String,
    os: String,
    compiler: String,
    revision: String,
    day: String,
    runs: usize,
    copy_gbps: Option<f64>,
}

/// Each device with each revision of the program, in the order of their first results.
fn environments(content: &Content<'_>) -> Vec<Device> {
    let runs = content.batches.runs.iter().flat_map(|batch| &batch.records);
    let runs = runs.map(|r| (&r.case.backend, &r.environment, r.traffic.copy_gbps));
    let obstacle = content.batches.obstacle.iter().flat_map(|batch| &batch.records);
    let obstacle = obstacle.map(|r| (&r.case.backend, &r.environment, r.cost.copy_gbps));
    let mut devices: Vec<Device> = Vec::new();
    for (backend, e, copy) in runs.chain(obstacle) {
        let day = e.date.split('T').next().unwrap_or_default();
        let known = devices.iter_mut().find(|d| {
            d.backend == *backend
                && d.name == e.device
                && d.threads == e.threads
                && d.revision == e.revision
                && d.cpu == e.cpu
                && d.day == day
        });
        if let Some(device) = known {
            device.runs += 1;
            device.copy_gbps = device.copy_gbps.into_iter().chain(copy).reduce(f64::max);
        } else {
            devices.push(Device {
                backend: backend.clone(),
                name: e.device.clone(),
                threads: e.threads,
                cpu: e.cpu.clone(),
                os: e.os.clone(),
                compiler: e.compiler.clone(),
                revision: e.revision.clone(),
                day: day.to_owned(),
                runs: 1,
                copy_gbps: copy,
            });
        }
    }
    devices
}

fn machines(content: &Content<'_>) -> Option<Section> {
    let devices = environments(content);
    if devices.is_empty() {
        return None;
    }
    let mut table =
        Sheet { columns: ["backend", "device"].map(Head::words).to_vec(), ..Sheet::default() };
    table.columns.extend(["threads", "copy GB/s", "runs"].map(Head::number));
    table
        .columns
        .extend(["host processor", "system", "compiler", "revision", "day"].map(Head::words));
    for d in devices {
        table.rows.push(vec![
            d.backend,
            d.name,
            if d.threads > 0 { grouped(d.threads) } else { String::new() },
            d.copy_gbps.map(|gbps| significant(gbps, 4)).unwrap_or_default(),
            grouped(d.runs),
            d.cpu,
            d.os,
            // the hash says no more
            d.compiler.split(" (").next().unwrap_or_default().to_owned(),
            d.revision,
            d.day,
        ]);
    }
    table.drop_empty_columns();
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
    Some(Section { id: "machines", title: "Machines".into(), parts })
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
    let of = |set: &Set| match &set.rows {
        Rows::Tuning(trials) => Some((set.name.clone(), trials.clone())),
        _ => None,
    };
    let sets: Vec<(String, Vec<Trial>)> = content.gathered.sets.iter().filter_map(of).collect();
    if sets.is_empty() {
        return None;
    }
    let mut best =
        Sheet { columns: ["system", "kernel"].map(Head::words).to_vec(), ..Sheet::default() };
    best.columns.extend(["tried", "best", "GB/s", "% copy", "slowest over best"].map(Head::number));
    best.columns.push(Head::words("choices"));
    let mut groups: Vec<((&str, &str), Vec<&Trial>)> = Vec::new();
    for trial in sets.iter().flat_map(|(_, trials)| trials) {
        let key = (trial.system.as_str(), trial.kernel.as_str());
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, own)) => own.push(trial),
            None => groups.push((key, vec![trial])),
        }
    }
    for ((system, kernel), own) in &groups {
        let timed = || own.iter().filter_map(|t| Some((t.seconds?, t)));
        let Some((fastest, trial)) = timed().min_by(|a, b| a.0.total_cmp(&b.0)) else { continue };
        let slowest = timed().map(|(s, _)| s).fold(0.0_f64, f64::max);
        let number = |v: Option<f64>, digits| v.map(|v| significant(v, digits)).unwrap_or_default();
        best.rows.push(vec![
            (*system).to_owned(),
            (*kernel).to_owned(),
            grouped(own.len()),
            seconds(fastest),
            number(trial.gbps, 4),
            number(trial.percent_of_copy, 3),
            significant(slowest / fastest, 3),
            trial.choices.clone(),
        ]);
    }
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
        let (sheets, failed) = all_runs(batch);
        parts.extend(sheets.into_iter().map(Part::Table));
        if failed > 0 {
            let failed = plural(failed, "run");
            let why = html! { p.note { (failed) " did not succeed; the column status says why." } };
            parts.push(Part::Text(why));
        }
    }
    Section::below("runs", "All runs", how, parts)
}

fn all_runs(batch: &Batch) -> (Vec<Sheet>, usize) {
    let mut sheets = runs::report(&batch.records, None).sheets;
    for own in &mut sheets {
        own.title.get_or_insert_with(|| "Runs".into());
    }
    let failed = |r: &&Record| !r.status.succeeded() && r.status != Status::Unsupported;
    (sheets, batch.records.iter().filter(failed).count())
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
            "a preconditioned Krylov solve to the tolerance: a warm-up, then repetitions for \
                   100 ms and at least six times, or as far as limits allow",
        ),
        (
            "setup",
            "pattern of the factors (symbolic), level schedules and storage (analysis), values \
                   (numeric), and the vectors of deflation",
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
    ];
    let body = html! {
        dl { @for (term, meaning) in terms { dt { (term) } dd { (meaning) } } }
    };
    Section { id: "terms", title: "Terms".into(), parts: vec![Part::Text(body)] }
}
