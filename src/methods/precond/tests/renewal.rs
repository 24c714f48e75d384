//! New values on the pattern of the setup.

use super::*;
use crate::compute::preconditioner::Renewal;

/// `a` with other values on the same pattern: rows and columns scaled alike, so that a symmetric definite matrix
/// stays one, and a larger diagonal.
fn changed(a: &Csr) -> Arc<Csr> {
    let mut new = a.clone();
    let scale = |i: usize| 1.0 + (i % 5) as f64 / 8.0;
    let (row_ptr, columns) = (a.row_ptr().to_vec(), a.col_ind().to_vec());
    for i in 0..a.rows() {
        for e in row_ptr[i] as usize..row_ptr[i + 1] as usize {
            let j = columns[e] as usize;
            let grown = if i == j { 1.25 } else { 1.0 };
            new.values_mut()[e] *= grown * scale(i) * scale(j);
        }
    }
    Arc::new(new)
}

fn applied(k: &Cpu, m: &dyn Preconditioner<Cpu>, r: &[f64]) -> Vec<f64> {
    let (mut from, mut z) = (k.vector(r.len()).unwrap(), k.vector(r.len()).unwrap());
    k.upload(r, &mut from);
    k.fill(&mut z, f64::NAN);
    m.apply(k, &from, &mut z);
    z.to_vec()
}

/// Every preconditioner, with all parameters that sweeps and comparisons have.
fn every() -> Vec<String> {
    let names = NAMES.iter().map(|(name, _)| (*name).to_owned());
    let mut specs: Vec<String> = all().chain(compared()).chain(names).collect();
    specs.sort();
    specs.dedup();
    specs
}

#[test]
fn new_values_are_those_of_a_setup_with_them() {
    for k in [Cpu::sequential(), Cpu::parallel(Some(2)).unwrap()] {
        for (grid, b) in [("poisson3d:9x8x7", 1), ("poisson3d:9x4x5", 3)] {
            let a = Arc::new(matrix(grid).in_blocks(b));
            let new = changed(&a);
            let r: Vec<f64> = (0..a.rows()).map(|i| 1.0 + ((i * 7919) % 101) as f64).collect();
            for spec in every() {
                let case = case(&spec, b);
                let ready =
                    |a: &Arc<Csr>| set_up(&k, a, &case).unwrap_or_else(|e| panic!("{spec}: {e:?}"));
                let mut m = ready(&a);
                let old = applied(&k, &*m, &r);
                let renewed = renew(&mut m, &k, &new, &case.preconditioning(), &mut ());
                assert_eq!(renewed.unwrap(), kept(&spec), "{spec}");
                let got = [applied(&k, &*m, &r)];
                let want = [applied(&k, &*ready(&new), &r)];
                let difference = largest_difference(&got, &want);
                assert!(difference < 1e-13, "{spec}, {grid}: {difference}");
                let stale = largest_difference(&got, &[old]);
                assert!(stale > 1e-2 || spec == "none", "{spec}, {grid}: values of before");
            }
        }
    }
}

#[test]
fn what_is_kept_is_what_the_method_says() {
    let (k, a) = (Cpu::sequential(), matrix("poisson3d:5x4x3"));
    for spec in every() {
        let mut m = set_up(&k, &a, &case(&spec, 1)).unwrap_or_else(|e| panic!("{spec}: {e:?}"));
        let found = match m.refactor(&k, &changed(&a), 0.0).unwrap() {
            Renewal::Done => Kept::Analysis,
            Renewal::Setup(Some(_)) => Kept::Pattern,
            Renewal::Setup(None) => Kept::Nothing,
        };
        assert_eq!(kept(&spec), found, "{spec}");
    }
}
