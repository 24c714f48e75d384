//! DILU against its formula, and what its solves give beside solutions.

use super::*;
use crate::base::shift::Shift;
use crate::compute::Vectors as _;

/// With triangles: of finite elements, of blocks whose neighbours are neighbours, and a matrix without symmetry.
const TRIANGLES: [(&str, usize); 3] =
    [("poisson3d:5x4x3", 2), ("fem-p1:6x5", 2), ("reservoir:4x3x3,k=2,wells=2", 2)];

/// D of a dense matrix.
fn recurrence(a: &[Vec<f64>], b: usize) -> Vec<Vec<f64>> {
    let block = |m: &[Vec<f64>], i: usize, j: usize| -> Vec<Vec<f64>> {
        m[j * b..(j + 1) * b].iter().map(|column| column[i * b..(i + 1) * b].to_vec()).collect()
    };
    let mut d = part(a, |i, j| i / b == j / b);
    for i in 0..a.len() / b {
        let mut own = block(a, i, i);
        for j in 0..i {
            let lower = product(&block(a, i, j), &inverted(&block(&d, j, j)));
            own = sum(&own, &product(&lower, &block(a, j, i)), -1.0);
        }
        own.iter().enumerate().for_each(|(c, column)| {
            d[i * b + c][i * b..(i + 1) * b].copy_from_slice(column);
        });
    }
    d
}

#[test]
fn it_is_what_its_formula_says() {
    for (spec, b) in SYSTEMS.into_iter().chain(TRIANGLES) {
        let a = matrix(spec);
        let dense = columns(&a);
        let d = recurrence(&dense, b);
        let lower = sum(&d, &part(&dense, |i, j| i / b > j / b), 1.0);
        let upper = sum(&d, &part(&dense, |i, j| i / b < j / b), 1.0);
        let m = product(&product(&lower, &inverted(&d)), &upper);
        let got = dense_inverse("dilu", &a, b);
        let difference = largest_difference(&got, &inverted(&m));
        assert!(difference < 1e-12, "{spec}, b {b}: {difference}");
        // of a graph without triangles it is block ILU(0), and of no other here
        let ilu = largest_difference(&got, &dense_inverse("bilu", &a, b));
        let same = pattern(&a.in_blocks(b), 0).changes_diagonals_alone();
        assert_eq!(same, ilu < 1e-12, "{spec}, b {b}: {ilu}");
        assert!(same || ilu > 1e-6, "{spec}, b {b}: {ilu}");
    }
}

#[test]
fn products_come_with_its_solves() {
    for (spec, b) in SYSTEMS.into_iter().chain(TRIANGLES) {
        let (a, n) = (matrix(spec), matrix(spec).rows());
        let r: Vec<f64> = (0..n).map(|i| 1.0 + ((i * 7919) % 101) as f64 / 50.0).collect();
        for (k, shift) in [(Cpu::sequential(), 0.0), (Cpu::parallel(Some(2)).unwrap(), 0.1)] {
            let m =
                set_up(&k, &a, &Case { shift: Shift::Fixed(shift), ..case("dilu", b) }).unwrap();
            let both = m.eisenstat().expect("on a CPU");
            let vector = || k.vector(n).unwrap();
            let close = |got: &[f64], want: &[f64], what: &str| {
                let difference = largest_difference(&[got.to_vec()], &[want.to_vec()]);
                assert!(difference < 1e-12, "{spec}, b {b}, {what}: {difference}");
            };
            let times = |x: &[f64]| {
                let mut y = vec![0.0; n];
                a.multiply(x, &mut y);
                y
            };
            let mut from = vector();
            k.upload(&r, &mut from);
            let (mut z, mut az, mut alone) = (vector(), vector(), vector());
            both.apply_then_multiply(&k, &from, &mut z, &mut az);
            m.apply(&k, &from, &mut alone);
            close(&z, &alone, "z");
            close(&az, &times(&z), "A z");
            // M^-1 r in two steps; what goes on from A z is (D + L)^-1 A z
            let (mut y, mut dy) = (vector(), vector());
            both.forward(&k, &from, [&mut y, &mut dy]);
            let (mut t, mut at, mut next, mut dnext) = (vector(), vector(), vector(), vector());
            both.through(&k, &y, [&mut t, &mut at], [&mut next, &mut dnext]);
            close(&t, &alone, "t");
            close(&at, &times(&t), "A t");
            let (mut want, mut dwant) = (vector(), vector());
            both.forward(&k, &at, [&mut want, &mut dwant]);
            close(&next, &want, "y");
            close(&dnext, &dwant, "D y");
        }
    }
}
