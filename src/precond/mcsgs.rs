//! Multicolour symmetric Gauss-Seidel (Gupta et al. 2015): `M = (D + L) D^-1 (D + U)` in the order of
//! the colours of A; with a relaxation w, SSOR: `(D + w L) D^-1 (D + w U) / (w (2 - w))`.

use super::options::{COLOURING, Parameter, Range};
use super::ordered::{self, Plan, with_mirrors};
use super::{Failure, Phase, Ready, Setup};
use crate::backend::Backend;
use crate::backend::cpu::diagonal::{self, whole_blocks};
use crate::matrix::Csr;
use crate::symbolic::{
    Colouring, Schedule, Threads, block_pattern_on, coloured, colours_of_power,
    reordered_triangles, scalar_order, symmetrised,
};

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "omega",
        default: "1",
        range: Range::Number(0.0, 2.0),
        summary: "relaxation; other than 1 it is SSOR",
    },
    COLOURING,
];

pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    let options = s.options()?;
    let (omega, how) = (options.number("omega"), Colouring::named(options.word("colouring")));
    let b = s.case.block_size;
    s.phases.begin(Phase::Symbolic);
    let (pattern, sets, mirrored) = s.k.on_host(|threads| {
        let stored = block_pattern_on(threads, s.a, b);
        if let Some((sets, pattern)) = coloured(threads, &stored, [0, 1], how, usize::MAX) {
            return (pattern, sets, b == 1);
        }
        let point = symmetrised(threads, &stored);
        let mirrored = b == 1 && point.entries() == stored.entries();
        let colours = colours_of_power(threads, &point, 1, how, usize::MAX);
        let sets = Schedule::from_levels_on(threads, &colours.expect("there is no power to find"));
        (reordered_triangles(threads, &point, &sets.rows), sets, mirrored)
    });
    let rows = scalar_order(&sets.rows, b);
    let arrange = Box::new(move |threads, a: &Csr| {
        let permuted = a.permuted_on(threads, &rows);
        if mirrored {
            return product(threads, &permuted, b, omega);
        }
        product(threads, &*with_mirrors(threads, &permuted)?, b, omega)
    });
    ordered::setup(s, Plan { sets, pattern, arrange })
}

/// M on the pattern of A: what elimination on that pattern takes apart into `I + w L D^-1`,
/// `D / (w (2 - w))` and `I + w D^-1 U` again.
pub(super) fn product(threads: Threads, a: &Csr, b: usize, omega: f64) -> Result<Csr, Failure> {
    let a = &whole_blocks(threads, a, b);
    let scaled = diagonal::scaled(threads, a, b, |i, j| j > i)?;
    let size = 1.0 / (omega * (2.0 - omega));
    let n = a.rows();
    Csr::by_rows(threads, [n, n], Vec::new, |sums: &mut Vec<f64>, i, to| {
        let (columns, values) = a.row(i);
        sums.clear();
        let scale = |j: u32| if j as usize / b == i / b { 1.0 } else { omega };
        sums.extend(columns.iter().zip(values).map(|(&j, &v)| scale(j) * v));
        let before = columns.partition_point(|&j| (j as usize / b) < i / b);
        for (&k, &v) in columns[..before].iter().zip(values) {
            // L D^-1 U where A has an entry
            let (inner, of_k) = scaled.row(k as usize);
            let mut at = 0;
            for (&j, &u) in inner.iter().zip(of_k) {
                while at < columns.len() && columns[at] < j {
                    at += 1;
                }
                if at < columns.len() && columns[at] == j {
                    sums[at] += omega * omega * v * u;
                }
            }
        }
        columns.iter().zip(&*sums).for_each(|(&j, &v)| to.push(j, size * v));
        Ok(())
    })
}
