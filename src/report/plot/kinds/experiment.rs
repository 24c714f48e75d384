//! The figures that experiments declare.

use super::{Kind, Plot};
use crate::report::batch::Batch;
use crate::report::plot::from_records::figure;

pub(super) const KIND: Kind = Kind {
    name: "experiment",
    title: "The papers' figures",
    summary: "Figures as the experiments of the papers declare them; what was published is dashed or \
              hollow.",
    draw: |batches| batches.runs.iter().filter_map(plot).collect(),
};

fn plot(batch: &Batch) -> Option<Plot> {
    let (name, experiment) = batch.experiment.as_ref()?;
    let spec = experiment.figure.as_ref()?;
    let figure = figure(spec, experiment.title.as_deref(), &batch.records, batch.not_comparable);
    let caption = format!("{} ({name}): {}.", batch.name, figure.source.join("; "));
    (!figure.panels.is_empty()).then_some(Plot { figure, caption })
}
