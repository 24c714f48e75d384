//! The search for a shift, and what says that factors are fit for use.

use super::super::quality::quality;
use super::super::search;
use super::*;
use crate::base::shift::Shift;
use crate::compute::preconditioner::FactorQuality;

fn csr(n: usize, entries: &[(usize, usize, f64)]) -> Arc<Csr> {
    let (mut row_ptr, mut col_ind, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        for &(_, j, v) in entries.iter().filter(|(row, ..)| *row == i) {
            col_ind.push(j as u32);
            values.push(v);
        }
        row_ptr.push(col_ind.len() as u32);
    }
    Csr::new(n, n, row_ptr, col_ind, values).unwrap().into()
}

fn searched(a: &Arc<Csr>, case: &Case) -> Result<(Box<dyn Preconditioner<Cpu>>, f64), String> {
    let k = Cpu::sequential();
    let case = Case { shift: Shift::Search, ..case.clone() };
    let settings = &case.preconditioning();
    let a = &Arc::new(a.in_blocks(case.block_size));
    let setup = lookup::<Cpu>(&case.precond).unwrap();
    match search::set_up(setup, Setup { k: &k, a, settings, phases: &mut () }) {
        Ok((m, _)) => {
            let alpha = m.size(&k).shift_used.expect("it was searched");
            Ok((m, alpha))
        }
        Err(SetupFailure::Broken(why)) => Err(why),
        Err(other) => panic!("{other:?}"),
    }
}

fn applied(m: &dyn Preconditioner<Cpu>, r: &[f64]) -> Vec<f64> {
    let k = Cpu::sequential();
    let (mut from, mut to) = (k.vector(r.len()).unwrap(), k.vector(r.len()).unwrap());
    from.copy_from_slice(r);
    m.apply(&k, &from, &mut to);
    to.to_vec()
}

#[test]
fn a_matrix_that_needs_no_shift_gets_none() {
    for precond in ["bilu", "jacobi", "ic", "ilut", "dilu"] {
        let (_, alpha) = searched(&matrix("poisson3d:5x4x3"), &case(precond, 1)).unwrap();
        assert_eq!(alpha, 0.0, "{precond}");
    }
}

#[test]
fn the_diagonal_is_scaled_until_there_are_usable_factors() {
    // definite, and incomplete elimination meets a pivot below zero at 0, as Kershaw's matrix does
    let kershaw = csr(
        4,
        &[
            (0, 0, 3.0),
            (0, 1, -2.0),
            (0, 3, 2.0),
            (1, 0, -2.0),
            (1, 1, 3.0),
            (1, 2, -2.0),
            (2, 1, -2.0),
            (2, 2, 3.0),
            (2, 3, -2.0),
            (3, 0, 2.0),
            (3, 2, -2.0),
            (3, 3, 3.0),
        ],
    );
    let plain = set_up(&Cpu::sequential(), &kershaw, &case("ic", 1)).err().unwrap();
    assert!(matches!(plain, SetupFailure::Broken(_)));
    for precond in ["ic", "bilu"] {
        let (m, alpha) = searched(&kershaw, &case(precond, 1)).unwrap();
        // pivots of ILU(0): d, d - 4/d, and so on, until all are positive
        let definite = |alpha: f64| {
            let d = 3.0 * (1.0 + alpha);
            let second = d - 4.0 / d;
            let third = d - 4.0 / second;
            third > 0.0 && d - 4.0 / d - 4.0 / third > 0.0
        };
        let mut expected = 1.0 / 1024.0;
        while !definite(expected) {
            expected *= 2.0;
        }
        assert!(!definite(0.0));
        assert_eq!(alpha, expected, "{precond}");
        // M is that of the shifted matrix
        let shifted =
            kershaw.values().iter().map(|v| if *v == 3.0 { 3.0 * (1.0 + alpha) } else { *v });
        let (row_ptr, col_ind, _) = Csr::clone(&kershaw).into_parts();
        let shifted = Arc::new(Csr::new(4, 4, row_ptr, col_ind, shifted.collect()).unwrap());
        let of =
            set_up(&Cpu::sequential(), &shifted, &case(precond, 1)).unwrap_or_else(|_| panic!());
        let r = [1.0, -2.0, 3.0, 0.5];
        assert_eq!(applied(&*m, &r), applied(&*of, &r));
    }
}

#[test]
fn missing_and_zero_diagonals_get_the_largest_entry_of_their_row() {
    for entries in [&[(0, 1, 4.0), (1, 0, 1.0)][..], &[(0, 0, 0.0), (0, 1, 4.0), (1, 0, 1.0)]] {
        let a = csr(2, entries);
        assert!(set_up(&Cpu::sequential(), &a, &case("bilu", 1)).is_err());
        let (m, alpha) = searched(&a, &case("bilu", 1)).unwrap();
        assert_eq!(alpha, 1.0 / 1024.0);
        // [4s 4; 1 s] x = [4 + 4s, 1 + s]
        let x = applied(&*m, &[4.0 + 4.0 * alpha, 1.0 + alpha]);
        assert!(x.iter().all(|v| (v - 1.0).abs() < 1e-9), "{x:?}");
    }
}

#[test]
fn a_search_without_a_shift_says_so() {
    // no multiple of nothing
    let a = csr(2, &[(0, 0, 1.0), (1, 0, 0.0)]);
    assert_eq!(
        searched(&a, &case("bilu", 1)).err().unwrap(),
        "no shift up to 4 times the diagonal makes a usable preconditioner: singular diagonal \
         block in block row 1"
    );
}

#[test]
fn new_values_keep_the_shift_or_need_another() {
    let k = Cpu::sequential();
    let case = Case { shift: Shift::Search, ..case("bilu", 1) };
    let a = csr(2, &[(0, 1, 4.0), (1, 0, 1.0)]);
    let (mut m, first) = searched(&a, &case).unwrap();
    let twice = csr(2, &[(0, 1, 8.0), (1, 0, 2.0)]);
    renew(&mut m, &k, &twice, &case.preconditioning(), &mut ()).unwrap();
    assert_eq!(m.size(&k).shift_used, Some(first));
    let x = applied(&*m, &[8.0 * (1.0 + first), 2.0 * (1.0 + first)]);
    assert!(x.iter().all(|v| (v - 1.0).abs() < 1e-9), "{x:?}");
}

#[test]
fn the_quality_of_factors_of_a_small_matrix_by_hand() {
    // rows scaled by 1/8, 1/2; columns then by 1, 1: [1/2 1; 1 1] = [1 0; 2 1] [1/2 1; 0 -1]
    let a = csr(2, &[(0, 0, 4.0), (0, 1, 8.0), (1, 0, 2.0), (1, 1, 2.0)]);
    let k = Cpu::sequential();
    let m = set_up(&k, &a, &case("bilu", 1)).unwrap_or_else(|_| panic!());
    let found = quality(&k, &*m, &a).unwrap();
    let expected = FactorQuality {
        smallest_pivot: Some(0.5),
        // x = (0, 1)
        condest: Some(1.0),
        // y = (1, -1)
        lower_condest: Some(1.0),
        // x = (4, -1)
        upper_condest: Some(4.0),
        growth: Some(1.0),
    };
    assert_eq!(found, expected);
    // units make no difference, nor do blocks where the pivot is the inverse's norm: |[-2 2; 2 -1]| = 4
    let scaled = csr(2, &[(0, 0, 4e3), (0, 1, 8e5), (1, 0, 2e-3), (1, 1, 2e-1)]);
    let m = set_up(&k, &scaled, &case("bilu", 1)).unwrap_or_else(|_| panic!());
    let of = quality(&k, &*m, &scaled).unwrap();
    assert!((of.upper_condest.unwrap() - 4.0).abs() < 1e-12, "{of:?}");
    assert!((of.smallest_pivot.unwrap() - 0.5).abs() < 1e-12, "{of:?}");
    let blocks = Arc::new(a.in_blocks(2));
    let m = set_up(&k, &blocks, &case("bilu", 2)).unwrap_or_else(|_| panic!());
    assert_eq!(quality(&k, &*m, &blocks).unwrap().smallest_pivot, Some(0.25));
}
