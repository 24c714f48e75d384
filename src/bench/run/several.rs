//! Cases with several right-hand sides: whether they can be solved, and what their operations take.

use itertools::Itertools as _;

use super::no_result::NoResult;
use super::roof::Roof;
use super::traffic::{held, sample};
use super::{Job, Stage};
use crate::case::Case;
use crate::compute::krylov::System;
use crate::compute::preconditioner::Form;
use crate::compute::{self, Bytes, Operations};
use crate::methods::solver;

/// Why a case cannot be solved for `columns` right-hand sides, if it cannot.
pub(crate) fn refused(case: &Case, columns: usize) -> Option<String> {
    let several = format!("`{}`: {columns} right-hand sides", case.rhs);
    if let Some(peer) = case.peer() {
        return Some(format!("{several}, and the peer `{peer}` solves for one at a time"));
    }
    if !compute::has_multivectors(&case.backend) {
        let backends = compute::NAMES.iter().map(|(name, _)| *name);
        let backends = backends.filter(|name| compute::has_multivectors(name));
        let backends = backends.map(|name| format!("`{name}`")).join(" and ");
        return Some(format!("{several} are solved for on {backends}, not on `{}`", case.backend));
    }
    if !case.sequence.is_empty() {
        return Some(format!("{several}, and a sequence has one for each step"));
    }
    if !solver::several(&case.solver) {
        let solvers = solver::of_several().map(|name| format!("`{name}`")).join(" and ");
        let one = format!("`{}` solves for one at a time", case.solver);
        return Some(format!("{several}, and {one}: {solvers} solve for several"));
    }
    None
}

/// Whether another solver could solve a refused case.
pub(crate) fn solver_alone(case: &Case) -> bool {
    case.peer().is_none() && compute::has_multivectors(&case.backend) && case.sequence.is_empty()
}

/// Rows of `from` numbers as rows of `to`, shorter or with zeros behind, of a vector of `rows` rows.
pub(super) fn resized(v: &[f64], [from, to]: [usize; 2], rows: usize) -> Vec<f64> {
    let mut resized = vec![0.0; rows * to];
    if from == to {
        resized[..v.len()].copy_from_slice(v);
        return resized;
    }
    let kept = from.min(to);
    for (row, v) in resized.chunks_exact_mut(to).zip(v.chunks_exact(from)) {
        row[..kept].copy_from_slice(&v[..kept]);
    }
    resized
}

impl Job<'_> {
    /// Columns of the vectors that are solved with: those beyond the right-hand sides are zero.
    pub(super) fn width<K: Operations>(&self, k: &K) -> usize {
        let columns = self.columns();
        k.multivectors().filter(|_| columns > 1).map_or(columns, |of| of.width(columns))
    }

    /// One product and one solve with the factors, of all columns, timed apart.
    pub(super) fn measure_columns<K: Operations>(
        &mut self,
        k: &K,
        system: &System<K>,
        x: &mut K::Vector,
        roof: &Roof,
    ) -> Result<(), NoResult> {
        self.begin(k, Stage::Traffic)?;
        let operations = k.multivectors().expect("the case was solved with them");
        let columns = self.width(k);
        let (passes, vector) = (operations.passes(columns), 8 * self.unknowns);
        // a single vector moves what is stored, and `vectors` vectors
        let moved = |of: Bytes, vectors: usize| {
            (of.moved - vectors * vector) * passes + vectors * vector * columns
        };
        let product =
            sample(k, self.measure, || operations.product(system.a, columns, system.b, None, x));
        let mut t = self.of_product(moved(k.matrix_bytes(system.a), 2), &product, roof);
        t.memory_bytes = Some(held(k, system));
        if let Form::Factors { ilu, .. } = system.m.form() {
            let solve = sample(k, self.measure, || operations.solve(ilu, columns, system.b, x));
            let factor = &self.record.factor;
            // of a diagonal r is read and z written
            let vectors =
                if factor.factor_blocks == Some(self.record.size.block_rows) { 2 } else { 4 };
            self.of_application(&mut t, moved(system.m.bytes(k), vectors), &solve, roof);
        }
        k.check()?;
        self.record.traffic = t;
        Ok(())
    }
}
