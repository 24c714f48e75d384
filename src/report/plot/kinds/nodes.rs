//! Obstacle problems on several threads, GPUs or ranks.

use super::{Kind, Plot};
use crate::base::units::plural;
use crate::report::batch::ObstacleBatch;
use crate::report::plot::obstacle::scaling;

pub(super) const KIND: Kind = Kind {
    name: "nodes",
    title: "Scaling with threads, GPUs and ranks",
    summary: "Points relaxed per second by projected Richardson against the nodes that share the grid: \
              threads of a processor, GPUs, or ranks of MPI. A straight line is work in proportion to \
              the nodes.",
    draw: |batches| batches.obstacle.iter().filter_map(plot).collect(),
};

fn plot(batch: &ObstacleBatch) -> Option<Plot> {
    let mut nodes: Vec<usize> = batch.records.iter().map(|r| r.iteration.nodes).collect();
    nodes.sort_unstable();
    nodes.dedup();
    // one count of nodes does not scale
    if nodes.len() < 2 {
        return None;
    }
    let title = batch.experiment.as_ref().and_then(|e| e.title.clone());
    let figure =
        scaling(&batch.records, Some(&title.unwrap_or_else(|| format!("Scaling: {}", batch.name))));
    let shown = figure.panels.iter().any(|panel| !panel.series.is_empty());
    let caption = format!(
        "{} of {}; {}.",
        plural(batch.records.len(), "run"),
        batch.name,
        figure.source.join("; ")
    );
    shown.then_some(Plot { figure, caption })
}
