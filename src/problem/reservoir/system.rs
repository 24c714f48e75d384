//! The linearised equations of cells and wells.

use std::f64::consts::PI;
use std::ops::Range;

use super::dual::Dual;
use super::flow::{CONNATE, DARCY, Flow, GRAVITY, MOST, REFERENCE, Vector};
use super::noise::{rough, smooth};
use super::rock::{EDGES, Rock, at};
use crate::base::threads::Threads;
use crate::problem::splitmix::mix;

/// Radius of a well, m.
const RADIUS: f64 = 0.1;
/// Density of what stands in a well, t/m^3.
const STANDING: f64 = 0.9;
/// Least pressure between a well and its cells at the state of the linearisation, bar.
const DRAWDOWN: f64 = 20.0;
/// Mass that a well produces or injects for each of its cells, t/day.
const RATE: f64 = 10.0;

/// A vertical well through all layers.
pub(super) struct Well {
    /// Its first cell; the others follow.
    pub(super) first: usize,
    /// It produces, or it injects.
    pub(super) producing: bool,
    /// Pressure at the top cell, bar.
    pub(super) pressure: f64,
}

/// A well's row of W, entry of D, and the negative residual.
pub(super) struct WellParts {
    pub(super) row: Vec<f64>,
    pub(super) diagonal: f64,
    pub(super) rhs: f64,
}

/// Equations around two states.
pub(super) struct System<'a, const N: usize> {
    pub(super) flow: Flow<'a, N>,
    /// Seed of the states.
    seed: u64,
    /// Cells whose states are kept; those of others are made when they are asked for.
    near: Range<usize>,
    /// State of these at the beginning of the time step.
    pub(super) before: Vec<Vector<f64>>,
    /// State of the linearisation.
    pub(super) now: Vec<Vector<f64>>,
    pub(super) wells: Vec<Well>,
    /// Number of the well plus one of each column of cells, 0 without.
    well_of: Vec<u32>,
}

/// The rows of a cell: blocks by neighbour, row-major, the column of its well, the negative residual.
pub(super) struct CellRows {
    pub(super) blocks: Vec<[f64; MOST * MOST]>,
    pub(super) well: Vector<f64>,
    pub(super) rhs: Vector<f64>,
}

impl<'a, const N: usize> System<'a, N> {
    /// The equations of `flow` at states drawn from `seed`, with wells in some columns of cells;
    /// every other well injects, from the second on. Cells of which rows are made, and their neighbours, are `near`.
    pub(super) fn new(
        flow: Flow<'a, N>,
        columns: &[[usize; 2]],
        seed: u64,
        near: Range<usize>,
    ) -> Self {
        let size = flow.rock.size;
        let state = |i| beginning(&flow, seed, near.start + i);
        let before = Threads::Pool.map(near.len(), 1, state);
        let moved = |i| step(flow.k, seed, near.start + i, &before[i]);
        let now = Threads::Pool.map(near.len(), 1, moved);
        let well_of = vec![0; size[1] * size[2]];
        let wells = Vec::with_capacity(columns.len());
        let mut system = Self { flow, seed, near, before, now, wells, well_of };
        for (w, &[h, i]) in columns.iter().enumerate() {
            let column = h + size[1] * i;
            system.well_of[column] = w as u32 + 1;
            let (first, producing) = (column * size[0], w % 2 == 0);
            let at_top = |cell: usize| system.now(cell)[0] - head(system.flow.rock, first, cell);
            let all = (first..first + size[0]).map(at_top);
            let pressure = if producing {
                all.fold(f64::INFINITY, f64::min) - DRAWDOWN
            } else {
                all.fold(f64::NEG_INFINITY, f64::max) + DRAWDOWN
            };
            system.wells.push(Well { first, producing, pressure });
        }
        system
    }

    /// State of the linearisation in a cell.
    fn now(&self, cell: usize) -> Vector<f64> {
        if self.near.contains(&cell) {
            return self.now[cell - self.near.start];
        }
        step(self.flow.k, self.seed, cell, &beginning(&self.flow, self.seed, cell))
    }

    /// Number of cells.
    pub(super) fn cells(&self) -> usize {
        self.flow.rock.size.iter().product()
    }

    /// Number of the well that a cell belongs to.
    pub(super) fn well(&self, cell: usize) -> Option<usize> {
        self.well_of[cell / self.flow.rock.size[0]].checked_sub(1).map(|w| w as usize)
    }

    /// Cells whose unknowns occur in the equations of `cell`, ascending.
    pub(super) fn neighbours(&self, cell: usize) -> impl Iterator<Item = usize> {
        let size = self.flow.rock.size;
        let place = at(size, cell);
        let steps = [1, size[0], size[0] * size[1]];
        let below =
            [2, 1, 0].into_iter().filter(move |&d| place[d] > 0).map(move |d| cell - steps[d]);
        let above = (0..3).filter(move |&d| place[d] + 1 < size[d]).map(move |d| cell + steps[d]);
        below.chain([cell]).chain(above)
    }

    /// The linearised equations of a cell.
    pub(super) fn cell(&self, cell: usize) -> CellRows {
        let (k, flow) = (self.flow.k, &self.flow);
        let mut rows =
            CellRows { blocks: Vec::with_capacity(7), well: [0.0; MOST], rhs: [0.0; MOST] };
        let mut own = [0.0; MOST * MOST];
        let before = &self.before[cell - self.near.start];
        let (now, before) = (flow.mass(cell, &self.now(cell)), flow.mass(cell, before));
        for e in 0..k {
            rows.rhs[e] = before[e].value - now[e].value;
            own[e * k..(e + 1) * k].copy_from_slice(&now[e].by[..k]);
        }
        let mut own_at = 0;
        for other in self.neighbours(cell) {
            let mut block = [0.0; MOST * MOST];
            if other == cell {
                own_at = rows.blocks.len();
            } else {
                // both cells see the same flow, from the lower to the upper
                let (low, high) = (cell.min(other), cell.max(other));
                let through = self.face(low, high);
                let sign = if cell == low { 1.0 } else { -1.0 };
                let (mine, theirs) = if cell == low { (0, k) } else { (k, 0) };
                for e in 0..k {
                    rows.rhs[e] -= sign * through[e].value;
                    for u in 0..k {
                        own[e * k + u] += sign * through[e].by[mine + u];
                        block[e * k + u] = sign * through[e].by[theirs + u];
                    }
                }
            }
            rows.blocks.push(block);
        }
        if let Some(w) = self.well(cell) {
            let sign = if self.wells[w].producing { 1.0 } else { -1.0 };
            let (rates, _) = self.perforation(w, cell);
            for e in 0..k {
                rows.rhs[e] -= sign * rates[e].value;
                rows.well[e] = sign * rates[e].by[k];
                for u in 0..k {
                    own[e * k + u] += sign * rates[e].by[u];
                }
            }
        }
        rows.blocks[own_at] = own;
        rows
    }

    /// Flow between two neighbours.
    fn face(&self, low: usize, high: usize) -> Vector<Dual<N>> {
        let rock = self.flow.rock;
        let size = rock.size;
        let axis = match high - low {
            // a layer of one cell has the distance of the next direction
            d if d == 1 && size[0] > 1 => 0,
            d if d == size[0] && size[1] > 1 => 1,
            _ => 2,
        };
        let transmissibility = DARCY * rock.face(axis, [low, high]);
        let deeper = rock.depth(high) - rock.depth(low);
        self.flow.through([&self.now(low), &self.now(high)], transmissibility, deeper)
    }

    /// Flow between a well and one of its cells: that of each equation, and of all fluids.
    fn perforation(&self, w: usize, cell: usize) -> (Vector<Dual<N>>, Dual<N>) {
        let well = &self.wells[w];
        let rock = self.flow.rock;
        // Peaceman (1983) for square cells
        let reach = 0.14 * EDGES[1].hypot(EDGES[2]);
        let index = DARCY * 2.0 * PI * rock.permeability(cell) * EDGES[0] / (reach / RADIUS).ln();
        let head = head(rock, well.first, cell);
        let of = if well.producing { Flow::produced } else { Flow::injected };
        of(&self.flow, &self.now(cell), well.pressure, head, index)
    }

    /// The linearised equation of a well: what flows is its rate. The signs are such that the
    /// diagonal is positive.
    pub(super) fn well_parts(&self, w: usize) -> WellParts {
        let k = self.flow.k;
        let well = &self.wells[w];
        let layers = self.flow.rock.size[0];
        let sign = if well.producing { -1.0 } else { 1.0 };
        let mut parts = WellParts {
            row: Vec::with_capacity(layers * k),
            diagonal: 0.0,
            rhs: sign * RATE * layers as f64,
        };
        for cell in well.first..well.first + layers {
            let (_, total) = self.perforation(w, cell);
            parts.row.extend(total.by[..k].iter().map(|d| sign * d));
            parts.diagonal += sign * total.by[k];
            parts.rhs -= sign * total.value;
        }
        if parts.diagonal == 0.0 {
            // a well in rock without permeability keeps its pressure
            parts.diagonal = 1.0;
            parts.rhs = 0.0;
        }
        parts
    }
}

/// Pressure of what stands in a well between its top cell and another, bar.
fn head(rock: &Rock, first: usize, cell: usize) -> f64 {
    STANDING * GRAVITY * (rock.depth(cell) - rock.depth(first))
}

/// State at the beginning of the time step: pressure that grows with depth, and smooth fields.
fn beginning<const N: usize>(flow: &Flow<'_, N>, seed: u64, cell: usize) -> Vector<f64> {
    let place = at(flow.rock.size, cell);
    let field = |i: u64| smooth(mix(seed ^ 0x7374_6174) ^ i, place).clamp(-3.0, 3.0) / 3.0;
    let mut state = [0.0; MOST];
    state[0] = REFERENCE + STANDING * GRAVITY * flow.rock.depth(cell) + 5.0 * field(0);
    if flow.k > 1 {
        state[1] = CONNATE + 0.3 + 0.2 * field(1);
    }
    // positive weights of the components of the oil, the last of which is no unknown
    let count = flow.k.max(2) - 1;
    let weights: Vec<f64> = (0..count as u64).map(|i| 1.0 + 0.3 * field(2 + i)).collect();
    let sum: f64 = weights.iter().sum();
    for (fraction, weight) in state[2..].iter_mut().zip(&weights[..count - 1]) {
        *fraction = weight / sum;
    }
    state
}

/// The state of the linearisation, some way from `before`.
fn step(k: usize, seed: u64, cell: usize, before: &Vector<f64>) -> Vector<f64> {
    let stream = mix(seed ^ 0x7374_6570);
    let mut now = *before;
    for (i, value) in now[..k].iter_mut().enumerate() {
        let size = match i {
            0 => 1.0,
            1 => 0.02,
            _ => 0.02 * before[i],
        };
        *value += size * rough(stream, cell, i);
    }
    now
}
