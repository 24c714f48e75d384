//! A matrix whose block rows are divided among subdomains, and these among ranks.

use std::sync::Arc;

use itertools::Itertools as _;

use super::communicator::Communicator;
use super::halo::{Halo, ask_each};
use super::local::{Coupling, Local};
use super::part::Part;
use super::{Distributed, Layout};
use crate::base::choices::Format;
use crate::base::error::Result;
use crate::base::measure::{now, seconds_since};
use crate::base::memory;
use crate::compute::{Bytes, Products};
use crate::matrix::Csr;

/// The rows of a rank.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Entries within the subdomains: their matrices on the diagonal.
    pub own: Arc<Csr>,
    /// Entries that couple them with others; columns are places in `ghosts`.
    pub coupling: Coupling,
    /// Block columns of these, ascending.
    pub ghosts: Vec<u64>,
}

impl Rows {
    /// The rows of rank `rank` of a matrix whose block rows are in the order of the layout.
    ///
    /// # Errors
    /// When they do not fit into memory.
    pub fn of(part: &Part, layout: &Layout, rank: usize) -> Result<Self> {
        let (a, b, unknowns) = (part.matrix(), part.block_size(), part.unknowns());
        let first = unknowns.start;
        let from = layout.unknowns(rank).start;
        let starts: Vec<usize> =
            layout.subdomain_starts(rank).into_iter().map(|start| start - from + first).collect();
        let mut coupling = Coupling { row_ptr: vec![0], ..Coupling::default() };
        if starts.len() == 2 && unknowns == (0..a.rows()) {
            return Ok(Self { own: Arc::clone(a), coupling, ghosts: Vec::new() });
        }
        let most = (a.row_ptr()[unknowns.end] - a.row_ptr()[unknowns.start]) as usize;
        let mut row_ptr = memory::with_capacity(unknowns.len() + 1);
        let (mut col_ind, mut values) = (memory::with_capacity(most), memory::with_capacity(most));
        let mut outside: Vec<u32> = Vec::new();
        row_ptr.push(0);
        for (&start, &end) in starts.iter().tuple_windows() {
            for row in start..end {
                let (columns, entries) = a.row(row);
                // columns ascend
                let before = columns.iter().take_while(|&&j| (j as usize) < start).count();
                let behind = columns.iter().rev().take_while(|&&j| j as usize >= end).count();
                let within = before..columns.len() - behind;
                col_ind.extend(columns[within.clone()].iter().map(|column| column - first as u32));
                values.extend_from_slice(&entries[within.clone()]);
                row_ptr.push(col_ind.len() as u32);
                if before + behind > 0 {
                    for of in [0..before, within.end..columns.len()] {
                        outside.extend_from_slice(&columns[of.clone()]);
                        coupling.values.extend_from_slice(&entries[of]);
                    }
                    coupling.rows.push((row - first) as u32);
                    coupling.row_ptr.push(outside.len() as u32);
                }
            }
        }
        let mut places: Vec<u32> = outside.iter().map(|column| column / b as u32).collect();
        places.sort_unstable();
        places.dedup();
        let place = |&column: &u32| {
            let block = places.binary_search(&(column / b as u32)).expect("a ghost");
            block as u32 * b as u32 + column % b as u32
        };
        coupling.columns = outside.iter().map(place).collect();
        let ghosts = places.into_iter().map(|place| part.number(place as usize)).collect();
        let n = row_ptr.len() - 1;
        let own = Arc::new(Csr::new(n, n, row_ptr, col_ind, values)?.in_blocks(b));
        Ok(Self { own, coupling, ghosts })
    }

    /// The entries that couple, with ghosts at these places.
    fn coupling_at(&self, places: &[u32]) -> Coupling {
        let (mut coupling, b) = (self.coupling.clone(), self.own.block_size());
        for column in &mut coupling.columns {
            let (block, within) = (*column as usize / b, *column % b as u32);
            *column = places[block] * b as u32 + within;
        }
        coupling
    }

    /// The rows of the transposed matrix that this rank has: each entry that couples two subdomains goes to the
    /// owner of its column. Collective.
    #[must_use]
    pub fn transposed(&self, communicator: &dyn Communicator, layout: &Layout) -> Self {
        let (me, b) = (communicator.rank(), self.own.block_size());
        let first = layout.unknowns(me).start;
        let starts = layout.rank_starts();
        let mut of_rank: Vec<Vec<f64>> = vec![Vec::new(); layout.ranks()];
        for (at, &row) in self.coupling.rows.iter().enumerate() {
            let of = self.coupling.row_ptr[at] as usize..self.coupling.row_ptr[at + 1] as usize;
            for (&place, &value) in
                self.coupling.columns[of.clone()].iter().zip(&self.coupling.values[of])
            {
                let block = self.ghosts[place as usize / b];
                let owner = starts.partition_point(|&start| start <= block) - 1;
                let column = block as usize * b + place as usize % b;
                of_rank[owner].extend([column as f64, (first + row as usize) as f64, value]);
            }
        }
        let mut entries = std::mem::take(&mut of_rank[me]);
        entries.extend(ask_each(communicator, &of_rank).numbers);
        let mut entries: Vec<(u64, u64, f64)> =
            entries.chunks_exact(3).map(|of| (of[0] as u64, of[1] as u64, of[2])).collect();
        entries.sort_unstable_by_key(|&(row, column, _)| (row, column));
        let mut ghosts: Vec<u64> = entries.iter().map(|entry| entry.1 / b as u64).collect();
        ghosts.sort_unstable();
        ghosts.dedup();
        let mut coupling = Coupling { row_ptr: vec![0], ..Coupling::default() };
        for of_row in entries.chunk_by(|a, b| a.0 == b.0) {
            coupling.rows.push((of_row[0].0 - first as u64) as u32);
            for &(_, column, value) in of_row {
                let block = ghosts.binary_search(&(column / b as u64)).expect("a ghost");
                coupling.columns.push((block * b + column as usize % b) as u32);
                coupling.values.push(value);
            }
            coupling.row_ptr.push(coupling.columns.len() as u32);
        }
        Self { own: Arc::new(self.own.transposed()), coupling, ghosts }
    }
}

/// A distributed matrix, stored for products.
pub struct Matrix<K: Local> {
    own: K::Matrix,
    coupled: K::Coupled,
    /// Bytes of the coupled rows, and of those of y.
    coupled_bytes: [usize; 2],
    halo: Halo<K>,
    /// Of each block of ghosts its place among the values that the halo brings.
    places: Vec<u32>,
}

impl<K: Local> Matrix<K> {
    /// Stores the rows of this rank. Collective, also where it fails.
    ///
    /// # Errors
    /// When they cannot be stored.
    pub fn new(k: &Distributed<K>, rows: &Rows, format: Format) -> Result<Self> {
        let (halo, places) = Halo::new(k, &rows.ghosts, rows.own.block_size(), |i| i)?;
        let coupling = rows.coupling_at(&places);
        let own = k.local().matrix(&rows.own, format)?;
        let coupled_bytes = [coupling.bytes(), 16 * coupling.rows.len()];
        Ok(Self { own, coupled: k.local().coupled(coupling)?, coupled_bytes, halo, places })
    }

    /// Takes the values of rows with the same pattern.
    ///
    /// # Errors
    /// When they cannot be stored.
    pub fn set_values(&mut self, k: &Distributed<K>, rows: &Rows) -> Result<()> {
        k.local().matrix_values(&mut self.own, &rows.own)?;
        self.coupled = k.local().coupled(rows.coupling_at(&self.places))?;
        Ok(())
    }

    /// The exchange of a product.
    pub fn halo(&self) -> &Halo<K> {
        &self.halo
    }
}

impl<K: Local> Products for Distributed<K> {
    type Matrix = Matrix<K>;

    fn format(&self, a: &Matrix<K>) -> Format {
        self.local().format(&a.own)
    }

    fn tuned(&self, a: &Matrix<K>) -> Option<String> {
        self.local().tuned(&a.own)
    }

    fn matrix_bytes(&self, a: &Matrix<K>) -> Bytes {
        let own = self.local().matrix_bytes(&a.own);
        let [coupling, ghosts] = a.coupled_bytes;
        let (held, moved) = (own.held + coupling, own.moved + coupling + ghosts);
        self.bytes_of_all(Bytes { held, moved })
    }

    fn spmv(&self, a: &Matrix<K>, x: &K::Vector, y: &mut K::Vector) {
        self.exchanged(a, x, 1.0, y, |y| self.local().spmv(&a.own, x, y));
    }

    fn residual(&self, a: &Matrix<K>, x: &K::Vector, b: &K::Vector, r: &mut K::Vector) {
        self.exchanged(a, x, -1.0, r, |r| self.local().residual(&a.own, x, b, r));
    }
}

impl<K: Local> Distributed<K> {
    /// `work`, the product with own unknowns, while values of others are on their way; then their part.
    fn exchanged(
        &self,
        a: &Matrix<K>,
        x: &K::Vector,
        sign: f64,
        y: &mut K::Vector,
        work: impl FnOnce(&mut K::Vector),
    ) {
        let k = self.local();
        a.halo.start(k, x);
        work(y);
        let waited = now();
        a.halo.finish(k, |ghosts| {
            self.waited(seconds_since(waited));
            k.add_coupling(&a.coupled, sign, ghosts, y);
        });
    }
}
