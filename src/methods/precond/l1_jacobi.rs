//! l1-Jacobi (Baker, Falgout, Kolev and Yang 2011, SIAM J. Sci. Comput. 33, section 5): block Jacobi whose
//! diagonal entries grow by what their rows hold outside their blocks,
//! `m_ii = a_ii + sign(a_ii) sum over j outside the block of i of |a_ij|`. Where A is symmetric and definite,
//! M - A is so too or singular, hence `I - M^-1 A` contracts: damping without a parameter.

use crate::compute::{Backend, Bytes};
use std::sync::Arc;

use super::bilu::{self, Factors};
use super::work::{Phased, host};
use super::{Advised, Kept, Method, Phase, Ready, Setup, Shape, Variants};
use crate::base::error::Error;
use crate::base::setting::Setting;
use crate::base::threads::Threads;
use crate::compute::Trisolve;
use crate::compute::preconditioner::{FactorSize, Form, Preconditioner, Renewal, SetupFailure};
use crate::matrix::{Csr, Sums};
use crate::symbolic::FillPattern;

pub(crate) const METHOD: Method = Method {
    name: "l1-jacobi",
    summary: "block Jacobi with the magnitudes of the other blocks added to the diagonal",
    uses: &[Setting::BlockSize, Setting::Shift, Setting::FactorPrecision],
    // that of A' adds up columns
    transposable: false,
    keeps: Kept::Analysis,
    shape: Shape::Diagonal,
    work: Phased {
        symbolic: Some(host("pattern of the diagonal")),
        analysis: Some(host("storage of the diagonal")),
        numeric: Some(host("the diagonal of A and sums of its rows")),
    },
    // for Krylov solvers `jacobi` is as good; stationary methods and smoothers need this one
    variants: Variants { advised: Advised::Never, ..Variants::PLAIN },
    ..Method::PLAIN
};

/// The diagonal blocks with their additions, factored.
struct Enlarged<K: Backend>(Factors<K>);

impl<K: Backend> Preconditioner<K> for Enlarged<K> {
    fn apply(&self, k: &K, r: &K::Vector, z: &mut K::Vector) {
        self.0.apply(k, r, z);
    }

    fn refactor(&mut self, k: &K, a: &Arc<Csr>, shift: f64) -> Result<Renewal, SetupFailure> {
        let m = k.on_host(|threads| diagonal(threads, a))?;
        self.0.refactor(k, &Arc::new(m), shift)
    }

    fn form(&self) -> Form<'_, K> {
        self.0.form()
    }

    fn bytes(&self, k: &K) -> Bytes {
        self.0.bytes(k)
    }

    fn size(&self, k: &K) -> FactorSize {
        self.0.size(k)
    }
}

pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    let Setup { k, a, settings, phases } = s;
    phases.begin(Phase::Symbolic);
    let pattern = Arc::new(FillPattern::diagonal_of(a));
    phases.begin(Phase::Numeric);
    let m = Arc::new(k.on_host(|threads| diagonal(threads, a))?);
    let s = Setup { k, a: &m, settings, phases };
    Ok(Box::new(Enlarged::<K>(Factors::of(bilu::factorise(s, &pattern, Trisolve::AUTO)?))))
}

/// M.
fn diagonal(threads: Threads, a: &Csr) -> Result<Csr, Error> {
    let b = a.block_size();
    a.by_rows_like(
        threads,
        || Sums::new(a.rows()),
        |sums, i, to| {
            let (mut outside, mut own) = (0.0, 0.0);
            let (columns, values) = a.row(i);
            for (&j, &v) in columns.iter().zip(values) {
                if j as usize / b == i / b {
                    sums.add(j, v);
                } else {
                    outside += v.abs();
                }
                if j as usize == i {
                    own = v;
                }
            }
            sums.add(i as u32, outside.copysign(own));
            sums.finish(to);
            Ok(())
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Case;
    use crate::compute::cpu::{Cpu, invert_block};
    use crate::compute::krylov::{Outcome, SolveEnd, Stop, System};
    use crate::compute::{Storage as _, Vectors as _};
    use crate::methods::precond::lookup;
    use crate::methods::solver;
    use crate::problem::samples::matrix;

    /// Applies the preconditioner, made of `first`, to `r`; with the values of `then` where there are such.
    fn applied(first: &Arc<Csr>, then: Option<&Arc<Csr>>, r: &[f64]) -> Vec<f64> {
        let k = &Cpu::sequential();
        let case = Case { precond: METHOD.name.into(), ..Case::default() };
        let setup = lookup::<Cpu>(METHOD.name).unwrap();
        let mut m =
            setup(Setup { k, a: first, settings: &case.preconditioning(), phases: &mut () })
                .unwrap_or_else(|e| panic!("{e:?}"));
        if let Some(a) = then {
            assert!(matches!(m.refactor(k, a, 0.0), Ok(Renewal::Done)));
        }
        let (mut from, mut z) = (k.vector(r.len()).unwrap(), k.vector(r.len()).unwrap());
        k.upload(r, &mut from);
        m.apply(k, &from, &mut z);
        z.to_vec()
    }

    /// The formula with a dense matrix.
    fn dense(a: &Csr, b: usize, r: &[f64]) -> Vec<f64> {
        let n = a.rows();
        let at = |i: usize, j: usize| a.get(i, j).unwrap_or(0.0);
        let mut m = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                if i / b == j / b {
                    m[j * n + i] += at(i, j);
                } else {
                    m[i * n + i] += at(i, i).signum() * at(i, j).abs();
                }
            }
        }
        invert_block(&mut m, n).expect("regular");
        (0..n).map(|i| (0..n).map(|j| m[j * n + i] * r[j]).sum()).collect()
    }

    #[test]
    fn it_is_what_its_formula_says_with_old_and_new_values() {
        for (spec, b) in [
            ("convdiff3d:4x3x3,px=0.4", 1),
            ("convdiff3d:4x3x3,px=0.4", 3),
            ("blockpoisson3d:3x3x2,b=3", 3),
        ] {
            let a = Arc::new(matrix(spec).in_blocks(b));
            let mut new = (*a).clone();
            // signs of diagonals, too
            let rows = new.row_ptr().to_vec();
            for (i, row) in rows.windows(2).enumerate() {
                let factor = if i / b % 2 == 0 { -3.0 } else { 0.5 };
                new.values_mut()[row[0] as usize..row[1] as usize]
                    .iter_mut()
                    .for_each(|v| *v *= factor);
            }
            let new = Arc::new(new);
            let r: Vec<f64> = (0..a.rows()).map(|i| 1.0 + (i as f64).sin()).collect();
            for (got, want) in [
                (applied(&a, None, &r), dense(&a, b, &r)),
                (applied(&a, Some(&new), &r), dense(&new, b, &r)),
            ] {
                for (got, want) in got.iter().zip(&want) {
                    assert!(
                        (got - want).abs() < 1e-13 * want.abs().max(1.0),
                        "{spec}: {got} {want}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_correction_converges_where_that_of_jacobi_does_not() {
        // definite: 0.1 on the diagonal of a matrix of 0.9; the iteration matrix of Jacobi has radius 1.8
        let entry = |e: usize| if e.is_multiple_of(4) { 1.0 } else { 0.9 };
        let a = Csr::new(3, 3, vec![0, 3, 6, 9], [0, 1, 2].repeat(3), (0..9).map(entry).collect());
        let (a, k) = (Arc::new(a.unwrap()), &Cpu::sequential());
        let solve = |precond: &str| -> Outcome {
            let case = Case { precond: precond.into(), ..Case::default() };
            let setup = lookup::<Cpu>(precond).unwrap();
            let m = setup(Setup { k, a: &a, settings: &case.preconditioning(), phases: &mut () });
            let m = m.unwrap_or_else(|e| panic!("{e:?}"));
            let matrix = k.matrix(&a, case.format).unwrap();
            let (mut b, mut x) = (k.vector(3).unwrap(), k.vector(3).unwrap());
            k.upload(&[1.0, 2.0, 4.0], &mut b);
            let stop = Stop { rtol: 1e-8, max_iterations: 2000, time_limit_s: None };
            let settings = case.solver_settings(stop);
            let system = System { a: &matrix, m: &*m, b: &b, transposed: None, deflation: None };
            let mut correction =
                solver::lookup::<Cpu>("correction").unwrap()(k, &settings, 3).unwrap();
            correction.solve(k, &system, &mut x, &mut ())
        };
        assert_eq!(solve(super::super::jacobi::METHOD.name).end, SolveEnd::Diverged);
        assert_eq!(solve(METHOD.name).end, SolveEnd::Converged);
    }
}
