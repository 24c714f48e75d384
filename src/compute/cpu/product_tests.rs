use super::*;
use crate::compute::cpu::block::tests::random;
use crate::matrix::bsr::pad;
use crate::problem::samples::matrix;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Products and residuals of `a`, padded to blocks, in a format, on one thread and several, beside the plain loop.
fn check(a: &Csr, block_size: usize, format: Format) {
    let a = &Arc::new(pad(a, block_size));
    let n = a.rows();
    let stored = stored(a, format).unwrap();
    assert_eq!((stored.rows(), stored.format()), (n, format.stored(a)));
    let (x, b) = (random(n, 1), random(n, 2));
    let mut want = vec![0.0; n];
    a.multiply(&x, &mut want);
    let mut sizes = vec![0.0; n];
    let positive = |v: &[f64]| v.iter().map(|v| v.abs()).collect::<Vec<_>>();
    let (row_ptr, col_ind, values) = (**a).clone().into_parts();
    let size = Csr::new(n, n, row_ptr, col_ind, positive(&values)).unwrap();
    size.multiply(&positive(&x), &mut sizes);
    for parallel in [false, true] {
        for rhs in [None, Some(&b[..])] {
            let mut y = vec![f64::NAN; n];
            stored.product(&x, rhs, &mut y, parallel);
            for i in 0..n {
                let (want, size) = match rhs {
                    None => (want[i], sizes[i]),
                    Some(b) => (b[i] - want[i], sizes[i] + b[i].abs()),
                };
                let close = (y[i] - want).abs() <= 1e-14 * size;
                assert!(close, "{format:?} row {i} of {n}: {} beside {want}", y[i]);
            }
        }
    }
}

/// A random square matrix; lengths of rows differ, and some rows are empty.
fn scattered(n: usize, most: usize, seed: u64) -> Arc<Csr> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
    for _ in 0..n {
        let count = rng.random_range(0..=most);
        let mut cols: Vec<u32> = (0..count).map(|_| rng.random_range(0..n as u32)).collect();
        cols.sort_unstable();
        cols.dedup();
        col_ind.extend(cols);
        row_ptr.push(col_ind.len() as u32);
    }
    let values = random(col_ind.len(), seed + 1);
    Csr::new(n, n, row_ptr, col_ind, values).unwrap().into()
}

/// A random matrix on some diagonals.
fn banded(n: usize, offsets: &[i64], seed: u64) -> Arc<Csr> {
    let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
    for i in 0..n as i64 {
        let cols = offsets.iter().map(|o| i + o).filter(|j| (0..n as i64).contains(j));
        let mut cols: Vec<u32> = cols.map(|j| j as u32).collect();
        cols.sort_unstable();
        cols.dedup();
        col_ind.extend(cols);
        row_ptr.push(col_ind.len() as u32);
    }
    let values = random(col_ind.len(), seed);
    Csr::new(n, n, row_ptr, col_ind, values).unwrap().into()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_matrix_multiplies_in_the_general_formats(
        n in 1_usize..1500, most in 0_usize..12, b in 1_usize..10, seed in any::<u32>(),
    ) {
        let a = scattered(n, most, u64::from(seed));
        for format in [Format::Csr, Format::Hyb] {
            check(&a, 1, format);
        }
        if stored(&a, Format::Sell).is_ok() {
            check(&a, 1, Format::Sell);
        }
        check(&a, b, Format::Bsr);
    }

    #[test]
    fn bands_multiply_by_diagonals(
        n in 1_usize..2000,
        offsets in prop::collection::vec(-700_i64..700, 0..5),
        seed in any::<u32>(),
    ) {
        let mut all = offsets;
        all.push(0);
        let a = banded(n, &all, u64::from(seed));
        if stored(&a, Format::Dia).is_ok() {
            check(&a, 1, Format::Dia);
        }
    }

    #[test]
    fn boxes_multiply_in_every_format(
        j in 1_usize..9, h in 1_usize..9, i in 1_usize..9, b in 1_usize..10, seed in 0_u32..100,
    ) {
        let spec = format!("blockpoisson3d:{j}x{h}x{i},b={b},seed={seed}");
        let a = matrix(&spec);
        for format in [Format::Bsr, Format::Hyb, Format::Sell, Format::Bdia] {
            check(&a, b, format);
        }
        if j * h * i > 64 {
            check(&a, b, Format::Dia);
        }
    }
}

#[test]
fn reservoirs_with_wells_multiply_in_every_format() {
    for spec in [
        "reservoir:7x6x9,k=2,wells=5",
        "reservoir:5x6x7,k=1,wells=3",
        "reservoir:12x9x11,k=4,wells=7,bias=half",
        "reservoir:7x11x5,k=2,wells=3,bias=half",
        "reservoir:4x5x6,k=8,wells=3",
        "reservoir:4x5x6,k=3,wells=0",
    ] {
        let k = spec.split("k=").nth(1).unwrap()[..1].parse().unwrap();
        let a = matrix(spec);
        for format in [Format::Bsr, Format::Hyb, Format::Sell, Format::Bdia] {
            check(&a, k, format);
        }
        if a.rows() > 500 {
            check(&a, k, Format::Dia);
        }
    }
}

#[test]
fn sorted_windows_and_tasks_of_several_pieces() {
    // several windows, tasks of several pieces, a last slice that is not full
    let a = scattered(20_003, 9, 5);
    for format in [Format::Csr, Format::Bsr, Format::Hyb, Format::Sell] {
        check(&a, 1, format);
    }
    let a = matrix("blockpoisson3d:21x20x19,b=2");
    for format in [Format::Bsr, Format::Hyb, Format::Sell, Format::Dia, Format::Bdia] {
        check(&a, 2, format);
    }
}

#[test]
fn new_values_reach_every_format() {
    let of = |seed| matrix(&format!("blockpoisson3d:6x5x7,b=2,seed={seed}"));
    let (old, new) = (Arc::new(of(1).in_blocks(2)), Arc::new(of(2).in_blocks(2)));
    let x = random(old.rows(), 3);
    let mut want = vec![0.0; x.len()];
    new.multiply(&x, &mut want);
    for format in [Format::Csr, Format::Bsr, Format::Hyb, Format::Sell, Format::Dia, Format::Bdia] {
        let mut stored = stored(&old, format).unwrap();
        stored.set_values(&new);
        let mut y = vec![0.0; x.len()];
        stored.product(&x, None, &mut y, false);
        assert!(y.iter().zip(&want).all(|(y, w)| (y - w).abs() < 1e-12), "{format:?}");
    }
}

#[test]
fn values_of_another_pattern_bring_their_runs() {
    let (first, then) = (matrix("poisson3d:20x3x3"), matrix("poisson3d:9x4x5"));
    let mut stored = stored(&first, Format::Csr).unwrap();
    for a in [&then, &first, &Arc::new(Csr::clone(&first))] {
        stored.set_values(a);
        let x = random(180, 7);
        let (mut y, mut want) = (vec![f64::NAN; 180], vec![0.0; 180]);
        a.multiply(&x, &mut want);
        stored.product(&x, None, &mut y, false);
        assert!(y.iter().zip(&want).all(|(y, w)| (y - w).abs() < 1e-13));
    }
}

#[test]
fn bytes_are_those_of_the_arrays() {
    // 4 x 3 x 2 cells of 2 unknowns: 24 diagonal blocks and 2 * (18 + 16 + 12) of neighbours
    let a = matrix("blockpoisson3d:4x3x2,b=2");
    let a = Arc::new(a.in_blocks(2));
    let (n, nnz) = (48, 4 * (24 + 92));
    let bytes = |format| {
        let s = stored(&a, format).unwrap();
        (s.stored(), s.bytes())
    };
    assert_eq!(bytes(Format::Csr), (nnz, 12 * nnz + 4 * (n + 1)));
    assert_eq!(bytes(Format::Bsr), (nnz, 8 * nnz + nnz + 4 * (24 + 1)));
    // no index but the words of absent wells
    assert_eq!(bytes(Format::Bdia), (24 * 7 * 4, 8 * 24 * 7 * 4 + 4));
    // 16 rows of 8 entries, 24 of 10, 8 of 12: fewer than a third
    assert_eq!(bytes(Format::Hyb), (n * 10 + 16, 12 * n * 10 + 16 * 16));
}

/// Products of `a` as it is stored have the bits of its rows taken one at a time, on one thread and on several.
fn check_bits(a: &Csr, stored: &dyn Product, what: &str) {
    let bits = |of: &[f64]| of.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    let n = a.rows();
    let (x, b) = (random(n, 1), random(n, 2));
    for rhs in [None, Some(&b[..])] {
        let mut alone = vec![f64::NAN; n];
        for (i, y) in alone.iter_mut().enumerate() {
            let row = (&a.row_ptr()[i..i + 2], a.col_ind());
            let row = Rows::new((1, n), row, a.values());
            spmv::product(row, &x, rhs.map(|b| &b[i..]), std::slice::from_mut(y), false);
        }
        for parallel in [false, true] {
            let mut y = vec![f64::NAN; n];
            stored.product(&x, rhs, &mut y, parallel);
            assert_eq!(bits(&y), bits(&alone), "{what}");
        }
    }
}

#[test]
fn rows_of_a_run_have_the_bits_of_a_row_alone_and_read_no_columns() {
    for (spec, runs) in [("poisson3d:101x13x12", 13 * 12 * 3), ("poisson3d:4097x2x2", 4 * 3)] {
        let a = matrix(spec);
        let (n, nnz) = (a.rows(), a.nnz());
        let stored = stored(&a, Format::Csr).unwrap();
        assert!(stored.read() < 8 * nnz + runs * 4 * 10, "{spec}: {}", stored.read());
        assert_eq!(stored.bytes(), 12 * nnz + 4 * (n + 1));
        check_bits(&a, &*stored, spec);
    }
    // rows of more entries than have a loop: 27 of a stencil and more
    let band = |half: i64| (-half..=half).map(|o| 20 * o).collect::<Vec<_>>();
    let a = banded(2000, &band(13), 7);
    let stored = stored(&a, Format::Csr).unwrap();
    assert!(stored.read() < stored.bytes());
    check(&a, 1, Format::Csr);
    // rows of four sums
    for half in [8, 11, 13] {
        let a = banded(5001, &band(half), 7);
        check_bits(&a, &*self::stored(&a, Format::Csr).unwrap(), "band");
    }
}

#[test]
fn rows_of_a_group_have_the_bits_of_a_row_alone_and_read_columns_once() {
    // tasks begin within groups of three; groups of five end after four
    for (spec, [read, of]) in [
        ("blockpoisson3d:12,b=2", [1, 2]),
        ("blockpoisson3d:12,b=3", [1, 3]),
        ("blockpoisson3d:9,b=5", [2, 5]),
    ] {
        let a = Arc::new(matrix(spec).in_blocks(1));
        let (n, nnz) = (a.rows(), a.nnz());
        let stored = stored(&a, Format::Csr).unwrap();
        let indices = stored.read() - 8 * nnz - 4 * (n + 1) - n;
        assert_eq!(indices, 4 * nnz * read / of, "{spec}");
        check_bits(&a, &*stored, spec);
    }
}

#[test]
fn rows_of_any_length_have_the_bits_of_a_row_alone() {
    let n = 4103;
    let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
    for i in 0..n {
        // rows of 0 to 40 entries, some long ones beside short ones
        let step = 1 + i % 97;
        col_ind.extend((0..i * 7 % 41).map(|e| ((i + e * step) % n) as u32));
        let row = row_ptr[i] as usize..;
        col_ind[row].sort_unstable();
        row_ptr.push(col_ind.len() as u32);
    }
    let values = random(col_ind.len(), 3);
    let a = Arc::new(Csr::new(n, n, row_ptr, col_ind, values).unwrap());
    check_bits(&a, &*stored(&a, Format::Csr).unwrap(), "long rows");
}

#[test]
fn rows_without_entries_are_left_as_they_are() {
    let (rows, columns) = (9_001, 300);
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
    for _ in 0..rows {
        let count = if rng.random_bool(0.1) { rng.random_range(1..12) } else { 0 };
        let first = rng.random_range(0..columns as u32 - 12);
        col_ind.extend((0..count).map(|j| first + j));
        row_ptr.push(col_ind.len() as u32);
    }
    let values = random(col_ind.len(), 6);
    let a = Arc::new(Csr::new(rows, columns, row_ptr, col_ind, values).unwrap());
    let stored = stored(&a, Format::Csr).unwrap();
    let (x, b) = (random(columns, 7), random(rows, 8));
    let mut want = vec![f64::NAN; rows];
    stored.product(&x, Some(&b), &mut want, false);
    for parallel in [false, true] {
        let mut y = b.clone();
        assert!(stored.subtract(&x, &mut y, parallel));
        assert_eq!(y, want);
    }
    let filled = (0..rows).filter(|&i| !a.row(i).0.is_empty()).count();
    assert_eq!(stored.subtract_moved(), Some(12 * a.nnz() + 24 * filled));
    // where all rows have entries a product is as good
    let full = super::stored(&matrix("poisson3d:9"), Format::Csr).unwrap();
    assert!(!full.subtract(&random(729, 1), &mut random(729, 2), true));
    assert_eq!(full.subtract_moved(), None);
}

#[test]
fn few_long_rows_are_work_for_several_tasks() {
    let per_task = |rows: usize, len: usize| {
        let row_ptr: Vec<u32> = (0..=rows as u32).map(|i| i * len as u32).collect();
        let columns = vec![0; rows * len];
        let a = Rows::new((1, 1), (&row_ptr, &columns), &[0.0]);
        (a.per_task(), a.per_task() * len)
    };
    assert_eq!(per_task(20_000, 7).0, 2048);
    assert_eq!(per_task(500, 4096), (4, 1 << 14));
    assert_eq!(per_task(3, 100_000).0, 1);
    assert_eq!(per_task(10, 0).0, 2048);
    // each of the long rows is the same sum in any task
    let (rows, len) = (40, 3_000);
    let columns: Vec<u32> = (0..rows).flat_map(|_| 0..len as u32).collect();
    let row_ptr = (0..=rows as u32).map(|i| i * len as u32).collect();
    let a = Csr::new(rows, len, row_ptr, columns, random(rows * len, 3)).unwrap();
    let stored = stored(&Arc::new(a), Format::Csr).unwrap();
    let x = random(len, 4);
    let (mut one, mut several) = (vec![0.0; rows], vec![f64::NAN; rows]);
    stored.product(&x, None, &mut one, false);
    stored.product(&x, None, &mut several, true);
    assert_eq!(one, several);
}
