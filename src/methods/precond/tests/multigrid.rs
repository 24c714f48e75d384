//! Multigrid, and the two stages of a pressure correction.

use super::super::amg::aggregates::{Aggregates, aggregates, strong};
use super::*;
use crate::compute::Vectors;

/// With two levels the error of a cycle is `q(S) (I - P A_c^-1 P' A) q(S)`, S = D^-1 A, for the polynomial q of
/// Chebyshev over the smoothed part of the eigenvalues.
#[test]
fn a_cycle_over_two_levels_is_what_its_formula_says() {
    let theta = 0.1;
    for (spec, b) in SYSTEMS {
        let a = matrix(spec);
        let (n, dense) = (a.rows(), columns(&a));
        let blocks = Arc::new(a.in_blocks(b));
        let strong = strong(Threads::One, &blocks, theta).unwrap();
        let Aggregates { of, count } = aggregates(&strong);
        assert!(count > 1 && count * b < n, "{spec}");
        let di = inverted(&part(&dense, |i, j| i == j));
        let s = product(&di, &dense);
        let kept =
            |i: usize, j: usize| i / b == j / b || strong.row(i / b).0.contains(&((j / b) as u32));
        // weak couplings of like unknowns move to the diagonal, which scales the rows
        let mut filtered = part(&s, kept);
        for i in 0..n {
            let like = |j: usize| j % b == i % b && !kept(i, j);
            let d = 1.0 + (0..n).filter(|&j| like(j)).map(|j| s[j][i]).sum::<f64>();
            (0..n).filter(|&j| j != i).for_each(|j| filtered[j][i] /= d);
        }
        let tentative: Vec<Vec<f64>> = (0..count * b)
            .map(|c| {
                let one = |i: usize| of[i / b] as usize == c / b && i % b == c % b;
                (0..n).map(|i| f64::from(u8::from(one(i)))).collect()
            })
            .collect();
        let [largest, of_filtered] = [&s, &filtered].map(|m| largest_sum(m));
        let times = |m: &[Vec<f64>], x: &[f64]| -> Vec<f64> {
            (0..n).map(|i| (0..n).map(|j| m[j][i] * x[j]).sum()).collect()
        };
        let omega = 4.0 / 3.0 / of_filtered;
        let p: Vec<Vec<f64>> = tentative
            .iter()
            .map(|t| {
                let smoothed = times(&filtered, t);
                t.iter().zip(&smoothed).map(|(t, s)| t - omega * s).collect()
            })
            .collect();
        let dot = |x: &[f64], y: &[f64]| -> f64 { x.iter().zip(y).map(|(x, y)| x * y).sum() };
        let ap: Vec<Vec<f64>> = p.iter().map(|p| times(&dense, p)).collect();
        let coarse: Vec<Vec<f64>> =
            ap.iter().map(|ap| p.iter().map(|p| dot(p, ap)).collect()).collect();
        let inverse = inverted(&coarse);
        for degree in [1, 3] {
            let q = |x: &[f64]| chebyshev(degree, largest, x, |x| times(&s, x));
            let error = |j: usize| {
                let mut e = vec![0.0; n];
                e[j] = 1.0;
                let mut e = q(&e);
                let right: Vec<f64> = p.iter().map(|p| dot(p, &times(&dense, &e))).collect();
                for (c, p) in p.iter().enumerate() {
                    let y: f64 = (0..inverse.len()).map(|d| inverse[d][c] * right[d]).sum();
                    e.iter_mut().zip(p).for_each(|(e, p)| *e -= y * p);
                }
                q(&e)
            };
            let errors: Vec<Vec<f64>> = (0..n).map(error).collect();
            // M^-1 = (I - error) A^-1
            let want = product(&sum(&identity(n), &errors, -1.0), &inverted(&dense));
            let text = format!("amg:degree={degree},theta={theta},coarsest={}", count * b);
            let difference = largest_difference(&dense_inverse(&text, &a, b), &want);
            assert!(difference < 1e-11, "{spec} {text}: {difference}");
        }
    }
}

/// No eigenvalue is larger.
fn largest_sum(m: &[Vec<f64>]) -> f64 {
    let rows = (0..m.len()).map(|i| m.iter().map(|column| column[i].abs()).sum::<f64>());
    rows.fold(0.0, f64::max)
}

/// `T_d((c - S) / h) x / T_d(c / h)` for the interval with the middle c and half width h.
fn chebyshev(
    degree: usize,
    largest: f64,
    x: &[f64],
    times: impl Fn(&[f64]) -> Vec<f64>,
) -> Vec<f64> {
    let (c, h) = (0.6 * largest, 0.4 * largest);
    let step =
        |x: &[f64]| -> Vec<f64> { x.iter().zip(times(x)).map(|(x, s)| (c * x - s) / h).collect() };
    let (mut before, mut now) = (x.to_vec(), step(x));
    let (mut zero_before, mut zero) = (1.0, c / h);
    for _ in 1..degree {
        let next = step(&now).iter().zip(&before).map(|(n, b)| 2.0 * n - b).collect();
        before = std::mem::replace(&mut now, next);
        (zero_before, zero) = (zero, 2.0 * c / h * zero - zero_before);
    }
    now.iter().map(|v| v / zero).collect()
}

#[test]
fn aggregates_are_a_node_and_its_free_neighbours() {
    let of = |spec: &str, b: usize, theta: f64| {
        let a = matrix(spec).in_blocks(b);
        aggregates(&strong(Threads::One, &a, theta).unwrap())
    };
    let chain = of("poisson3d:9x1x1", 1, 0.1);
    assert_eq!((chain.of, chain.count), (vec![0, 0, 1, 1, 1, 2, 2, 2, 2], 3));
    // the same with blocks as nodes
    let chain = of("blockpoisson3d:9x1x1,b=2", 2, 0.02);
    assert_eq!((chain.of, chain.count), (vec![0, 0, 1, 1, 1, 2, 2, 2, 2], 3));
    // -1/6 of the diagonal is no strong coupling: nothing to aggregate
    let none = of("poisson3d:4x1x1", 1, 0.2);
    assert_eq!((none.of, none.count), (vec![u32::MAX; 4], 0));
}

#[test]
fn iterations_hardly_grow_with_the_grid() {
    let iterations = |n: usize, spec: &str| {
        let a = matrix(&format!("poisson3d:{n}"));
        let k = Cpu::sequential();
        let m = set_up(&k, &a, &case(spec, 1)).unwrap();
        // conjugate gradients
        let rows = a.rows();
        let (mut r, mut z) = (k.vector(rows).unwrap(), k.vector(rows).unwrap());
        k.fill(&mut r, 1.0);
        let dot = |x: &[f64], y: &[f64]| -> f64 { x.iter().zip(y).map(|(x, y)| x * y).sum() };
        let (mut p, mut ap) = (vec![0.0; rows], vec![0.0; rows]);
        let (first, mut before) = (dot(&r, &r).sqrt(), 0.0);
        for done in 0.. {
            if dot(&r, &r).sqrt() <= 1e-6 * first {
                return done;
            }
            m.apply(&k, &r, &mut z);
            let rho = dot(&r, &z);
            let beta = if done == 0 { 0.0 } else { rho / before };
            p.iter_mut().zip(z.iter()).for_each(|(p, z)| *p = z + beta * *p);
            a.multiply(&p, &mut ap);
            let alpha = rho / dot(&p, &ap);
            r.iter_mut().zip(&ap).for_each(|(r, ap)| *r -= alpha * ap);
            before = rho;
        }
        unreachable!()
    };
    let [small, large] = [12, 24].map(|n| iterations(n, "amg"));
    assert!(small >= 4 && large <= 9 && large <= small + 2, "{small}, {large}");
    let [small, large] = [12, 24].map(|n| iterations(n, "jacobi"));
    assert!(large > small + 10, "{small}, {large}: no such thing without levels");
}

/// Pressures solved for exactly, then ILU(0) of all unknowns.
#[test]
fn a_pressure_correction_is_what_its_formula_says() {
    for (spec, b) in SYSTEMS {
        let a = matrix(spec);
        let (n, dense) = (a.rows(), columns(&a));
        let ilu = dense_inverse("bilu", &a, b);
        let di = inverted(&part(&dense, |i, j| i / b == j / b));
        for place in 0..b {
            let row = |i: usize| i * b + place;
            let blocks = n / b;
            let weights: Vec<Vec<f64>> =
                (0..n).map(|j| (0..blocks).map(|i| di[j][row(i)]).collect()).collect();
            let wa = |j: usize| -> Vec<f64> {
                (0..blocks).map(|i| (0..n).map(|l| weights[l][i] * dense[j][l]).sum()).collect()
            };
            let system: Vec<Vec<f64>> = (0..blocks).map(|j| wa(row(j))).collect();
            let solve = inverted(&system);
            // E A_p^-1 W
            let first: Vec<Vec<f64>> = (0..n)
                .map(|j| {
                    let mut x = vec![0.0; n];
                    for i in 0..blocks {
                        x[row(i)] = (0..blocks).map(|l| solve[l][i] * weights[j][l]).sum();
                    }
                    x
                })
                .collect();
            let left = sum(&identity(n), &product(&dense, &first), -1.0);
            let want = sum(&first, &product(&ilu, &left), 1.0);
            let text = format!("cpr:pressure={place},coarsest=1000");
            let difference = largest_difference(&dense_inverse(&text, &a, b), &want);
            assert!(difference < 1e-10, "{spec} {text}: {difference}");
        }
    }
}

#[test]
fn the_pressure_is_what_couples_blocks_most() {
    // two unknowns for each of 20 cells: a Laplacian, and one that hardly leaves its cell
    let cells = matrix("poisson3d:5x4x1");
    let system = |elliptic: usize| {
        let made = Csr::by_rows(
            Threads::One,
            [40, 40],
            || (),
            |(), i, to| {
                let (cell, own) = (i / 2, i % 2);
                let beside = if own == elliptic { -1.0 } else { -0.01 };
                for &other in cells.row(cell).0 {
                    for j in 2 * other..2 * other + 2 {
                        match (other as usize == cell, j as usize % 2 == own) {
                            (true, true) => to.push(j, 4.0),
                            (true, false) => to.push(j, 0.3),
                            (false, true) => to.push(j, beside),
                            (false, false) => to.push(j, 0.0),
                        }
                    }
                }
                Ok::<(), Error>(())
            },
        );
        Arc::new(made.unwrap())
    };
    for elliptic in [0, 1] {
        let a = system(elliptic);
        let [own, other] =
            [elliptic, 1 - elliptic].map(|p| dense_inverse(&format!("cpr:pressure={p}"), &a, 2));
        let chosen = dense_inverse("cpr", &a, 2);
        assert!(largest_difference(&chosen, &own) < 1e-14);
        assert!(largest_difference(&chosen, &other) > 1e-3);
    }
}

#[test]
fn what_multigrid_cannot_do_is_said() {
    assert_eq!(
        said("blockpoisson3d:3x3x2,b=3", "cpr:pressure=3", 3),
        "`cpr:pressure=3`: blocks of 3 have the places 0 to 2"
    );
    let a =
        matrix("poisson3d:3x1x1").filtered(Threads::One, |i, j, v| (i != 1 || j != 1).then_some(v));
    let failed = set_up(&Cpu::sequential(), &Arc::new(a), &case("amg", 1)).err();
    let Some(SetupFailure::Breakdown(why)) = failed else { panic!("{failed:?}") };
    assert_eq!(why.to_string(), "zero pivot: block row 1 has no diagonal entry");
}

#[test]
fn a_matrix_without_strong_couplings_is_smoothed() {
    // one level, whose polynomials are those before and after a correction by nothing
    let a = matrix("poisson3d:5x4x3");
    let n = a.rows();
    let dense = columns(&a);
    let s = product(&inverted(&part(&dense, |i, j| i == j)), &dense);
    let largest = largest_sum(&s);
    let times =
        |x: &[f64]| -> Vec<f64> { (0..n).map(|i| (0..n).map(|j| s[j][i] * x[j]).sum()).collect() };
    let twice = |j: usize| {
        let mut e = vec![0.0; n];
        e[j] = 1.0;
        chebyshev(2, largest, &chebyshev(2, largest, &e, times), times)
    };
    let errors: Vec<Vec<f64>> = (0..n).map(twice).collect();
    let want = product(&sum(&identity(n), &errors, -1.0), &inverted(&dense));
    let found = dense_inverse("amg:theta=0.9,coarsest=1", &a, 1);
    assert!(largest_difference(&found, &want) < 1e-12);
}
