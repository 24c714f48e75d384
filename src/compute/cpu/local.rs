//! The CPU as the device of a rank.

use std::ops::Range;
use std::sync::Arc;

use super::constants::Constants;
use super::ilu::BlockIlu;
use super::{Cpu, trsv, vector};
use crate::base::error::Result;
use crate::base::memory::Buffer;
use crate::compute::distributed::communicator::{Communicator, Exchange};
use crate::compute::distributed::{
    self, Coupling, FactorBlocks, Local, Route, StagePart, StagedSolves,
};
use crate::compute::{Breakdown, Bytes, FactorInfo, Factors, Trisolve, Vectors};
use crate::matrix::Csr;
use crate::symbolic::FillPattern;

/// Unknowns that are sent, and ghost values.
pub struct Transfer {
    exchange: Box<dyn Exchange>,
    sent: Vec<u32>,
    own: Vec<u32>,
    ghosts: Buffer<f64>,
}

/// Factors with the rows of each stage.
pub struct StagedIlu {
    pub(super) ilu: BlockIlu,
    pub(super) stages: Vec<Vec<StagePart>>,
}

impl Local for Cpu {
    type Places = Vec<u32>;
    type Coupled = Coupling;
    type Transfer = Transfer;
    type Partials = Vec<f64>;
    type Constants = Constants;
    type StagedIlu = StagedIlu;

    fn places(&self, of: Vec<u32>) -> Result<Vec<u32>> {
        Ok(of)
    }

    fn coupled(&self, of: Coupling) -> Result<Coupling> {
        Ok(of)
    }

    fn transfers(
        &self,
        communicator: &dyn Communicator,
        routes: Vec<Route>,
    ) -> Result<Vec<Transfer>> {
        let transfer = |route: Route| {
            let ghosts = Buffer::zeros(route.received() + route.own.len());
            let Route { sent, to, from, own } = route;
            Transfer { exchange: communicator.exchange(to, from), sent, own, ghosts }
        };
        Ok(routes.into_iter().map(transfer).collect())
    }

    fn send(&self, of: &mut Transfer, x: &Buffer<f64>) {
        gather(x, &of.sent, of.exchange.outgoing());
        of.exchange.start();
        let received = of.ghosts.len() - of.own.len();
        gather(x, &of.own, &mut of.ghosts[received..]);
    }

    fn receive<'a>(&self, of: &'a mut Transfer) -> &'a Buffer<f64> {
        let received = of.exchange.finish();
        of.ghosts[..received.len()].copy_from_slice(received);
        &of.ghosts
    }

    fn partial_dots(&self, x: &Buffer<f64>, y: &Buffer<f64>, starts: &[usize], out: &mut Vec<f64>) {
        out.extend(ranges(starts).map(|range| {
            let (x, y) = (&x[range.clone()], &y[range]);
            self.on(x.len(), |parallel| vector::dot(x, y, parallel))
        }));
    }

    fn partial_multi_dots(
        &self,
        basis: &[Buffer<f64>],
        w: &Buffer<f64>,
        starts: &[usize],
        out: &mut Vec<f64>,
    ) {
        let (parts, before) = (starts.len() - 1, out.len());
        out.resize(before + basis.len() * parts, 0.0);
        let mut sums = vec![0.0; basis.len()];
        for (s, range) in ranges(starts).enumerate() {
            let of: Vec<&[f64]> = basis.iter().map(|v| &v[range.clone()]).collect();
            let w = &w[range];
            self.on(w.len(), |parallel| vector::multi_dot(&of, w, parallel, &mut sums));
            sums.iter().enumerate().for_each(|(j, sum)| out[before + j * parts + s] = *sum);
        }
    }

    fn partial_multi_axpy(
        &self,
        basis: &[Buffer<f64>],
        coef: &[f64],
        w: &mut Buffer<f64>,
        starts: &[usize],
        out: &mut Vec<f64>,
    ) {
        out.extend(ranges(starts).map(|range| {
            let of: Vec<&[f64]> = basis.iter().map(|v| &v[range.clone()]).collect();
            let w = &mut w[range];
            self.on(w.len(), |parallel| vector::multi_axpy_norm2(&of, coef, w, parallel))
        }));
    }

    fn take(&self, partials: &mut Vec<f64>) -> Vec<f64> {
        std::mem::take(partials)
    }

    fn add_coupling(&self, c: &Coupling, sign: f64, ghosts: &Buffer<f64>, y: &mut Buffer<f64>) {
        for (i, &row) in c.rows.iter().enumerate() {
            let entries = c.row_ptr[i] as usize..c.row_ptr[i + 1] as usize;
            let terms = c.columns[entries.clone()].iter().zip(&c.values[entries]);
            let sum: f64 = terms.map(|(&j, v)| v * ghosts[j as usize]).sum();
            y[row as usize] += sign * sum;
        }
    }

    fn constants(&self, of: distributed::Constants) -> Result<Constants> {
        Ok(Constants::new(of))
    }

    fn sums_of_constants(&self, z: &Constants, v: &Buffer<f64>) -> Vec<f64> {
        z.sums(self, v)
    }

    fn add_constants(&self, z: &Constants, y: &Buffer<f64>, x: &mut Buffer<f64>) {
        z.add(self, y, x);
    }

    fn constants_bytes(&self, z: &Constants) -> Bytes {
        z.bytes()
    }

    fn extend(
        &self,
        from: &Buffer<f64>,
        ghosts: &Buffer<f64>,
        places: &Vec<u32>,
        to: &mut Buffer<f64>,
    ) {
        for (to, &at) in to.iter_mut().zip(places) {
            let at = at as usize;
            *to = if at < from.len() { from[at] } else { ghosts[at - from.len()] };
        }
    }

    fn restrict(&self, from: &Buffer<f64>, places: &Vec<u32>, first: usize, to: &mut Buffer<f64>) {
        gather(from, places, &mut to[first..]);
    }

    fn scatter(&self, values: &Buffer<f64>, places: &Vec<u32>, to: &mut Buffer<f64>) {
        for (&value, &at) in values.iter().zip(places) {
            to[at as usize] = value;
        }
    }

    fn ilu_in_stages(
        &self,
        pattern: &Arc<FillPattern>,
        stages: Vec<Vec<StagePart>>,
        solves: StagedSolves,
    ) -> Result<StagedIlu> {
        let ilu = self.ilu_analyse(pattern, Trisolve::AUTO, solves.precision)?;
        Ok(StagedIlu { ilu, stages })
    }

    fn ilu_vector(&self, ilu: &StagedIlu) -> Result<Buffer<f64>> {
        self.vector(ilu.unknowns())
    }

    fn ilu_place(&self, _: &StagedIlu, row: usize) -> usize {
        row
    }

    fn ilu_factor_in_stages(
        &self,
        ilu: &mut StagedIlu,
        a: &Csr,
        shift: f64,
        between: &mut dyn FnMut(usize, &mut dyn FactorBlocks),
    ) -> Vec<Breakdown> {
        ilu.factor(a, shift, between)
    }

    fn ilu_forward(
        &self,
        ilu: &StagedIlu,
        stage: usize,
        r: &Buffer<f64>,
        v: &mut Buffer<f64>,
        _: &mut Buffer<f64>,
    ) {
        for StagePart { rows, at, .. } in &ilu.stages[stage] {
            trsv::forward_part(&ilu.ilu, rows.clone(), &r[*at..], v);
        }
    }

    fn ilu_backward(
        &self,
        ilu: &StagedIlu,
        stage: usize,
        v: &mut Buffer<f64>,
        z: &mut Buffer<f64>,
    ) {
        let b = ilu.ilu.pattern.block_size();
        for StagePart { rows, at, .. } in &ilu.stages[stage] {
            trsv::backward_part(&ilu.ilu, rows.clone(), v);
            z[*at..*at + rows.len() * b].copy_from_slice(&v[rows.start * b..rows.end * b]);
        }
    }
}

impl StagedIlu {
    /// Those of all rows of the factors.
    fn unknowns(&self) -> usize {
        self.ilu.pattern.rows() * self.ilu.pattern.block_size()
    }
}

impl FactorInfo for StagedIlu {
    fn pattern(&self) -> &FillPattern {
        self.ilu.pattern()
    }

    /// The solution is copied from among values of others.
    fn bytes(&self) -> Bytes {
        let (of, vector) = (self.ilu.bytes(), 8 * self.unknowns());
        Bytes { moved: of.moved + 2 * vector, ..of }
    }

    fn trisolve(&self) -> Trisolve {
        self.ilu.trisolve()
    }

    fn levels(&self) -> [usize; 2] {
        self.ilu.levels()
    }
}

/// `out[i] = x[places[i]]`.
fn gather(x: &[f64], places: &[u32], out: &mut [f64]) {
    for (to, &at) in out.iter_mut().zip(places) {
        *to = x[at as usize];
    }
}

fn ranges(starts: &[usize]) -> impl Iterator<Item = Range<usize>> {
    starts.windows(2).map(|w| w[0]..w[1])
}
