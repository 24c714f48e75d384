use super::*;
use crate::matrix::bsr::pad;
use crate::problem::samples::matrix;

fn entries(n: usize, entries: &[(usize, usize, f64)]) -> Csr {
    let mut rows: Vec<Vec<(u32, f64)>> = vec![Vec::new(); n];
    for &(i, j, v) in entries {
        rows[i].push((j as u32, v));
    }
    let (mut row_ptr, mut col_ind, mut values) = (vec![0], Vec::new(), Vec::new());
    for mut row in rows {
        row.sort_unstable_by_key(|e| e.0);
        col_ind.extend(row.iter().map(|e| e.0));
        values.extend(row.iter().map(|e| e.1));
        row_ptr.push(col_ind.len() as u32);
    }
    Csr::new(n, n, row_ptr, col_ind, values).unwrap()
}

/// The five-point matrix of 3 x 4 cells with the two wells of columns 0 and 3 behind it.
fn two_wells() -> Vec<(usize, usize, f64)> {
    let mut all = Vec::new();
    for cell in 0..12_usize {
        let (j, h) = (cell % 3, cell / 3);
        all.push((cell, cell, 10.0 + cell as f64));
        let neighbours = [(j > 0, -1, -1.0), (j < 2, 1, -1.0), (h > 0, -3, -2.0), (h < 3, 3, -3.0)];
        for (_, offset, value) in neighbours.into_iter().filter(|(there, ..)| *there) {
            all.push((cell, cell.wrapping_add_signed(offset), value));
        }
    }
    for (well, first) in [(12, 0), (13, 9)] {
        all.push((well, well, 5.0));
        for cell in first..first + 3 {
            all.push((well, cell, 0.5 + cell as f64));
            all.push((cell, well, -0.25));
        }
    }
    all
}

fn message(all: &[(usize, usize, f64)]) -> String {
    Bdia::from_csr(&entries(14, all)).err().unwrap().to_string()
}

#[test]
fn wells_behind_the_cells_are_runs() {
    let b = Bdia::from_csr(&entries(14, &two_wells())).unwrap();
    assert_eq!((b.hepta().cells, &b.hepta().offsets[..]), (12, &[-3, -1, 0, 1, 3][..]));
    // cell 5 is at j = 2, h = 1; it has no neighbour above it in its column
    assert_eq!(b.values()[25..30], [-2.0, -1.0, 15.0, 0.0, -3.0]);
    let w = b.wells();
    assert_eq!((w.count(), w.run(0), w.run(1)), (2, 0..3, 9..12));
    assert_eq!((w.row(1), w.column(1)), (&[9.5, 10.5, 11.5][..], &[-0.25; 3][..]));
    assert_eq!(w.diagonal(), [5.0; 2]);
    assert_eq!(w.in_rows(1..10).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(w.in_rows(3..9).count(), 0);
    // 12 x 5 blocks; 12 numbers of runs and 2 of D; 3 + 2 + 2 words
    assert_eq!((b.stored(), b.bytes()), (60 + 14, 8 * 74 + 4 * 7));
}

#[test]
fn other_matrices_are_refused_with_row_and_offset() {
    let with = |more: &[(usize, usize, f64)]| [&two_wells()[..], more].concat();
    let no = |what: &str| format!("the matrix does not fit `bdia`: {what}");
    assert_eq!(
        message(&with(&[(1, 6, 1.0)])),
        no("row 2 couples to the block at offset +5, not one of 0, +-1, +-3")
    );
    assert_eq!(
        message(&with(&[(12, 13, 1.0)])),
        no("row 13, behind the cells, has an entry in column 14 beside its diagonal")
    );
    assert_eq!(
        message(&with(&[(12, 5, 1.0)])),
        no("the cells of the well of row 13 are not consecutive: 6 follows 3")
    );
    let further: Vec<_> = (3..10).map(|cell| (12, cell, 1.0)).collect();
    assert_eq!(
        message(&with(&further)),
        no("the wells of rows 13 and 14 share the cell of row 10")
    );
}

#[test]
fn grids_without_wells_fit() {
    for (spec, k, offsets) in [
        ("poisson3d:5x4x3", 1, vec![-20, -5, -1, 0, 1, 5, 20]),
        ("blockpoisson3d:5x4x3,b=3", 3, vec![-20, -5, -1, 0, 1, 5, 20]),
        ("blockpoisson3d:2x2x2,b=2", 2, vec![-4, -2, -1, 0, 1, 2, 4]),
        ("poisson3d:7x1x1", 1, vec![-1, 0, 1]),
        ("poisson3d:4x1x6", 1, vec![-4, -1, 0, 1, 4]),
    ] {
        let a = matrix(spec);
        let b = Bdia::from_csr(&a.in_blocks(k)).unwrap();
        assert_eq!((b.hepta().cells * k, &b.hepta().offsets), (a.rows(), &offsets), "{spec}");
        let largest = b.values().iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        assert_eq!(largest, a.values().iter().fold(0.0_f64, |m, v| m.max(v.abs())), "{spec}");
    }
    // a matrix of other blocks has other offsets
    let a = matrix("blockpoisson3d:5x4x3,b=3");
    let error = Bdia::from_csr(&pad(&a, 8)).err().unwrap().to_string();
    assert!(error.starts_with("the matrix does not fit `bdia`: row "), "{error}");
}
