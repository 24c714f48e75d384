//! Iterations and time over the steps of a sequence.

use itertools::Itertools as _;

use super::common::{beyond, differing, name, of_batch, short, spacing, without};
use super::{Kind, Plot};
use crate::base::units::plural;
use crate::config::marks::{Marks, Spacing};
use crate::record::Record;
use crate::report::batch::{Batch, Batches};
use crate::report::cells::by_key;
use crate::report::plot::{Axis, Figure, LeftOut, Names, Panel, Series};
use crate::report::sequences::runs;

pub(super) const KIND: Kind = Kind {
    name: "sequence",
    title: "Sequences of systems",
    summary: "Iterations and time to solution of each step of a sequence. The first step has the symbolic phase and \
              the analysis; a step without a factorisation goes on with that of an earlier one.",
    draw,
};

/// Most lines of a figure.
const LINES: usize = 12;

fn draw(batches: &Batches) -> Vec<Plot> {
    batches.runs.iter().flat_map(of_file).collect()
}

/// A figure for each sequence of a file.
fn of_file(batch: &Batch) -> Vec<Plot> {
    let of_sequence = by_key(runs(&batch.records), |steps| steps[0].case.sequence.clone());
    let figure = |(sequence, runs): (String, Vec<Vec<&Record>>)| plot(batch, &sequence, runs);
    of_sequence.into_iter().map(figure).collect()
}

fn plot(batch: &Batch, sequence: &str, mut runs: Vec<Vec<&Record>>) -> Plot {
    let firsts = runs.iter().map(|steps| steps[0]).collect_vec();
    let settings = without(&differing(firsts.iter().copied()), &["matrix"]);
    let names = Names::of(firsts);
    let called = |steps: &[&Record]| {
        let label = name(&steps[0].case, &settings, &names);
        short(if label.is_empty() { steps[0].case.refactor.to_string() } else { label }.as_str())
    };
    let count = plural(runs.len(), "case");
    let left_out = beyond(&mut runs, LINES).iter().map(|own| LeftOut::alone(called(own))).collect();
    let panel = |label: &str, of: fn(&Record) -> Option<f64>| {
        let series = runs.iter().map(|steps| {
            let point = |r: &&Record| Some((r.step? as f64, of(r)?));
            let solved = steps.iter().filter(|r| r.times.solve_s.is_some());
            Series::of(called(steps), solved.filter_map(point).collect())
        });
        let series = series.collect_vec();
        let heights = series.iter().flat_map(|s| s.pairs().iter().map(|p| p.1)).collect_vec();
        Panel::new("", Axis::of("step", Spacing::Linear), Axis::of(label, spacing(heights)), series)
    };
    let panels = vec![
        panel("iterations", |r| Some(r.convergence.iterations as f64)),
        panel("time of the step [s]", |r| r.times.to_solution(1)),
    ];
    let steps = plural(runs.iter().map(Vec::len).max().unwrap_or(0), "step");
    let caption = format!("{count} of {steps} of {}.", short(sequence));
    let figure = Figure { marks: Marks::Lines, panels, left_out, ..Figure::default() };
    of_batch(batch, &format!("Sequence {}", short(sequence)), figure, caption)
}
