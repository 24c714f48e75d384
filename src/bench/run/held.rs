//! A system in the order of its source, of which each rank has some rows: what is known of it, its hash, its
//! right-hand sides and residuals. All calls are collective.

use super::range::{Scaling, largest, times};
use crate::base::error::Result;
use crate::compute::Platform as _;
use crate::compute::cpu::Cpu;
use crate::compute::distributed::communicator::Communicator;
use crate::compute::distributed::moves::{
    agreed, all_of, in_turn, read_and_dealt, values, with_layers,
};
use crate::compute::distributed::part::Part;
use crate::matrix::Asymmetry;
use crate::matrix::hash::Parts;
use crate::matrix::pattern::block_pattern;
use crate::problem::rhs::{self, Named};
use crate::symbolic::grid;

/// The rows of a rank, and what all know.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// Name in tables.
    pub(super) name: String,
    /// The rows, those that fill the last block among them.
    pub(super) part: Part,
    /// First block row of each rank, and their end.
    pub(super) starts: Vec<u64>,
    /// Unknowns, without those that fill the last block.
    pub(super) order: u64,
    /// Entries of all ranks, likewise.
    pub(super) entries: u64,
    pub(super) grid: Option<[usize; 3]>,
    /// The right-hand side that came with the matrix.
    pub(super) own_rhs: Option<Vec<f64>>,
    /// The same as of [`Problem`](crate::problem::Problem), on the first rank.
    pub(super) remarks: Vec<String>,
}

/// Bytes of numbers, little endian.
fn bytes<const N: usize>(numbers: impl Iterator<Item = [u8; N]>) -> Vec<u8> {
    numbers.flatten().collect()
}

impl Held {
    /// Places of this rank's rows of the source.
    fn rows(&self) -> std::ops::Range<usize> {
        let of = self.part.unknowns();
        let first = self.part.first_unknown();
        let count = self.order.saturating_sub(first).min(of.len() as u64) as usize;
        of.start..of.start + count
    }

    /// First unknown of each rank, and their end.
    pub(super) fn unknown_starts(&self) -> Vec<u64> {
        let b = self.part.block_size() as u64;
        self.starts.iter().map(|start| start * b).collect()
    }

    /// Stored blocks of all ranks.
    pub(super) fn blocks(&self, communicator: &dyn Communicator) -> usize {
        let own = block_pattern(self.part.matrix()).entries();
        sum(communicator, own) as usize
    }

    /// The grid whose points the block rows are, if there is one: that of the source, or the one that the pattern shows
    /// ([`detect_grid`](crate::symbolic::grid::detect_grid)).
    pub(super) fn boxes(&self, communicator: &dyn Communicator) -> Option<[usize; 3]> {
        let (part, b) = (&self.part, self.part.block_size() as u64);
        if !self.order.is_multiple_of(b) {
            return None;
        }
        let rows = (self.order / b) as usize;
        if let Some(size) = self.grid.filter(|size| size.iter().product::<usize>() == rows) {
            return Some(size);
        }
        let (pattern, own) = (block_pattern(part.matrix()), part.places());
        let coupled = || grid::couplings(&pattern, own.clone(), |place| part.number(place));
        let counts = grid::distances(coupled());
        // a distance that is frequent among all rows is so among those of some rank
        let frequent = counts.iter().filter(|&(_, &count)| grid::is_frequent(count, own.len()));
        let frequent: Vec<f64> = frequent.map(|(&distance, _)| distance as f64).collect();
        let mut found: Vec<u64> =
            all_of(communicator, &frequent).into_iter().map(|distance| distance as u64).collect();
        found.sort_unstable();
        found.dedup();
        let of_own = |distance: &u64| counts.get(distance).copied().unwrap_or(0);
        found.retain(|distance| {
            let count = sum(communicator, of_own(distance));
            grid::is_frequent(count as usize, rows)
        });
        let size = grid::box_at(&found, rows)?;
        let of_box = grid::others_of(coupled(), size);
        let of_box = of_box.map(|count| sum(communicator, count) as usize);
        grid::is_box(of_box).then_some(size)
    }

    /// The hash of the matrix ([`matrix_hash`](crate::matrix::hash::matrix_hash)), on the first rank.
    pub(super) fn matrix_hash(&self, communicator: &dyn Communicator) -> String {
        let (a, rows) = (self.part.matrix(), self.rows());
        let row_ptr = a.row_ptr();
        let first = row_ptr[rows.start];
        let own = (row_ptr[rows.end] - first) as usize;
        let all = communicator.all_gather(&[own as f64], &vec![1; communicator.size()]);
        let before: u64 = all[..communicator.rank()].iter().map(|&entries| entries as u64).sum();
        let mut hash = Parts::default();
        hash.add(&bytes([self.order, self.order, 0].map(u64::to_le_bytes).into_iter())[..20]);
        let end = |row: usize| (before + u64::from(row_ptr[rows.start + row + 1] - first)) as u32;
        let ends = |of: std::ops::Range<usize>| bytes(of.map(|row| end(row).to_le_bytes()));
        in_turn(communicator, (rows.len(), 4), ends, |bytes| hash.add(bytes));
        let first = first as usize;
        let column = |at: usize| self.part.unknown(a.col_ind()[first + at] as usize) as u32;
        let columns = |of: std::ops::Range<usize>| bytes(of.map(|at| column(at).to_le_bytes()));
        in_turn(communicator, (own, 4), columns, |bytes| hash.add(bytes));
        let value = |at: usize| a.values()[first + at];
        let values = |of: std::ops::Range<usize>| bytes(of.map(|at| value(at).to_le_bytes()));
        in_turn(communicator, (own, 8), values, |bytes| hash.add(bytes));
        hash.finish()
    }

    /// The hash of a vector, of which `own` are this rank's, on the first rank.
    pub(super) fn vector_hash(&self, communicator: &dyn Communicator, own: &[f64]) -> String {
        let mut hash = Parts::default();
        self.on_first(communicator, |at| [own[at]], |bytes| hash.add(bytes));
        hash.finish()
    }

    /// N numbers of each row, counted from this rank's first, for the first rank to take in the order of the source.
    fn on_first<const N: usize>(
        &self,
        communicator: &dyn Communicator,
        numbers: impl Fn(usize) -> [f64; N],
        take: impl FnMut(&[u8]),
    ) {
        let make = |of: std::ops::Range<usize>| bytes(of.flat_map(&numbers).map(f64::to_le_bytes));
        in_turn(communicator, (self.rows().len(), 8 * N), make, take);
    }

    /// A vector as a whole on the first rank, of which `own` are this rank's; nothing on the others.
    pub(super) fn whole(&self, communicator: &dyn Communicator, own: &[f64]) -> Vec<f64> {
        let mut all = Vec::new();
        self.on_first(communicator, |at| [own[at]], |bytes| all.extend(doubles(bytes)));
        all
    }

    /// This rank's part of the right-hand side that `spec` names ([`rhs::right_hand_side`]).
    ///
    /// # Errors
    /// As there.
    pub(super) fn right_hand_side(
        &self,
        communicator: &dyn Communicator,
        spec: &str,
    ) -> Result<Vec<f64>> {
        let (a, rows) = (self.part.matrix(), self.rows());
        let first = self.part.first_unknown();
        let own = Named::find(spec).and_then(|named| match named {
            Named::Ones => Ok(vec![1.0; rows.len()]),
            Named::AOnes => rows
                .clone()
                .map(|at| {
                    let sum: f64 = a.row(at).1.iter().map(|v| v * 1.0).sum();
                    let row = self.part.unknown(at);
                    if sum.is_finite() { Ok(sum) } else { Err(rhs::not_finite(row, &self.name)) }
                })
                .collect(),
            Named::Random(seed) => Ok(rhs::random(first..first + rows.len() as u64, seed)),
            Named::Own => {
                self.own_rhs.clone().ok_or_else(|| rhs::no_own(&self.name, &self.remarks))
            }
            // the first rank reads it below
            Named::File(_) => Ok(Vec::new()),
        });
        let mut own = agreed(communicator, own)?;
        if let Ok(Named::File(path)) = Named::find(spec) {
            let n = self.order as usize;
            let (read, said) = read_and_dealt(communicator, &self.unknown_starts(), |take| {
                rhs::of_file_to(&path, n, take)
            });
            agreed(communicator, said.unwrap_or(Ok(())))?;
            own = read;
        }
        own.resize(self.part.unknowns().len(), 0.0);
        Ok(own)
    }

    /// The powers of two by which the matrix and `b` are divided ([`Scaling`]).
    pub(super) fn scaling(&self, communicator: &dyn Communicator, b: &[f64]) -> Scaling {
        let largest = |values: &[f64]| communicator.largest(largest(values));
        let places = self.rows();
        let row_ptr = self.part.matrix().row_ptr();
        let entries = row_ptr[places.start] as usize..row_ptr[places.end] as usize;
        let matrix = largest(&self.part.matrix().values()[entries]);
        Scaling::of([matrix, largest(&b[..places.len()])])
    }

    /// The system divided by powers of two; what fills the last block stays.
    pub(super) fn scaled(&self, b: &[f64], scaling: Scaling) -> (Self, Vec<f64>) {
        let mut held = self.clone();
        if scaling.matrix != 0 {
            held.part = self.part.with_values(self.rows(), |v| times(v, -scaling.matrix));
        }
        let divided = |v: &f64| if scaling.b == 0 { *v } else { times(*v, -scaling.b) };
        (held, b.iter().map(divided).collect())
    }

    /// The worst asymmetry of the matrix, on every rank.
    ///
    /// # Errors
    /// Without memory for the rows around this rank's.
    pub(super) fn asymmetry(&self, communicator: &dyn Communicator) -> Result<Option<Asymmetry>> {
        let near = with_layers(communicator, &self.part, &self.starts, 1)?;
        let own = Cpu::sequential().on_host(|_| near.matrix().asymmetry_of(near.unknowns()));
        let own = own.map(|found| Asymmetry {
            row: near.unknown(found.row) as usize,
            column: near.unknown(found.column) as usize,
            ..found
        });
        let numbers = own.map_or([-1.0; 5], |found| {
            let Asymmetry { row, column, value, mirrored, relative } = found;
            [row as f64, column as f64, value, mirrored, relative]
        });
        let all = communicator.all_gather(&numbers, &vec![5; communicator.size()]);
        let found = |of: &[f64]| {
            let [row, column] = [of[0] as usize, of[1] as usize];
            let [value, mirrored, relative] = [of[2], of[3], of[4]];
            (of[0] >= 0.0).then_some(Asymmetry { row, column, value, mirrored, relative })
        };
        Ok(all.chunks_exact(5).filter_map(found).reduce(Asymmetry::worse))
    }

    /// `|b - A x| / |b|` as one process computes it, on the first rank; `b` and `x` are those of this rank's rows.
    pub(super) fn relative_residual(
        &self,
        communicator: &dyn Communicator,
        b: &[f64],
        x: &[f64],
    ) -> f64 {
        let (part, places, size) = (&self.part, self.part.places(), self.part.block_size());
        let ghosts = part.others().iter().flat_map(|&block| {
            let first = block * size as u64;
            first..first + size as u64
        });
        let ghosts = values(communicator, &self.unknown_starts(), x, ghosts);
        let (before, behind) = ghosts.split_at(places.start * size);
        let all = [before, x, behind].concat();
        let first = part.unknowns().start;
        let of_row = |at: usize| {
            let (columns, values) = part.matrix().row(first + at);
            let product: f64 = columns.iter().zip(values).map(|(&j, v)| v * all[j as usize]).sum();
            [b[at] - product, b[at]]
        };
        let mut sums = [0.0, 0.0];
        self.on_first(communicator, of_row, |bytes| {
            for (i, v) in doubles(bytes).enumerate() {
                sums[i % 2] += v * v;
            }
        });
        let [top, bottom] = sums.map(f64::sqrt);
        if bottom == 0.0 { top } else { top / bottom }
    }
}

/// Sum of whole numbers of all ranks.
pub(super) fn sum(communicator: &dyn Communicator, own: usize) -> u64 {
    let all = communicator.all_gather(&[own as f64], &vec![1; communicator.size()]);
    all.into_iter().map(|own| own as u64).sum()
}

fn doubles(bytes: &[u8]) -> impl Iterator<Item = f64> + '_ {
    bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes))
}
