//! Incomplete sparse approximate inverses of triangular factors (Anzt, Huckle, Braeckle and Dongarra
//! 2018): `W L = I` and `U' V = I` on the patterns of L and U', so that both solves become products.

use super::approximate::Chain;
use super::{Failure, Phase, Ready, Setup, bilu};
use crate::backend::Backend;
use crate::backend::cpu::extracted;
use crate::matrix::Csr;
use crate::symbolic::Threads;

pub(super) fn setup<K: Backend + 'static>(mut s: Setup<K>) -> Ready<K> {
    let (b, shift) = (s.case.block_size, s.case.shift);
    let pattern = bilu::pattern(&mut s)?;
    let (phases, k, a) = (s.phases, s.k, s.a);
    phases.begin(Phase::Numeric);
    let (first, then) = k.on_host(|threads| -> Result<_, Failure> {
        let f = extracted(threads, &pattern, b, (a, shift))??;
        let lower = inverse(threads, &f.lower)?;
        // U' V = I is V' U'' = I with the lower triangle U''
        let upper = inverse(threads, &f.upper.transposed())?.transposed();
        Ok((lower, upper.times(&f.inverse_diagonal, threads)?))
    })?;
    phases.begin(Phase::Analysis);
    let s = Setup { k, a, case: s.case, phases };
    Ok(Box::new(Chain::two(&s, first, then)?))
}

/// W with `(W L)_ij = I_ij` on the pattern of a unit lower triangle L, whose diagonal is not stored.
///
/// Row i has the columns J of row i of L: `w L(J, J) = e` for the last unit vector e.
pub(super) fn inverse(threads: Threads, lower: &Csr) -> Result<Csr, Failure> {
    let n = lower.rows();
    Csr::by_rows(threads, [n, n], Vec::new, |w: &mut Vec<f64>, i, to| {
        let (columns, of_row) = lower.row(i);
        w.clear();
        // the last unknown is 1
        w.extend(of_row.iter().map(|v| -v));
        for s in (0..columns.len()).rev() {
            let (inner, values) = lower.row(columns[s] as usize);
            let (mut t, value) = (0, w[s]);
            for (&j, &v) in inner.iter().zip(values) {
                while t < s && columns[t] < j {
                    t += 1;
                }
                if t < s && columns[t] == j {
                    w[t] -= value * v;
                }
            }
        }
        columns.iter().zip(&*w).for_each(|(&j, &v)| to.push(j, v));
        to.push(i as u32, 1.0);
        Ok(())
    })
}
