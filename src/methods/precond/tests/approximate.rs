//! Approximate inverses, series and sweeps.

use super::*;
use crate::compute::Vectors;

#[test]
fn neumann_series_are_their_polynomials_in_both_forms() {
    for (spec, b) in SYSTEMS {
        let a = matrix(spec);
        let (n, dense) = (a.rows(), columns(&a));
        let di = inverted(&part(&dense, |i, j| i / b == j / b));
        let g = product(&part(&dense, |i, j| i / b > j / b), &di);
        let h = product(&di, &part(&dense, |i, j| i / b < j / b));
        for order in 1..=3 {
            let series = |x: &[Vec<f64>]| {
                (0..order).fold(identity(n), |s, _| sum(&identity(n), &product(x, &s), -1.0))
            };
            // M^-1 = K_U D^-1 K_L, K_L = I - L D^-1 + (L D^-1)^2
            let want = product(&product(&series(&h), &di), &series(&g));
            for form in ["implicit", "explicit"] {
                let text = format!("tns:order={order},form={form}");
                let difference = largest_difference(&dense_inverse(&text, &a, b), &want);
                assert!(difference < 1e-12, "{spec} {text}: {difference}");
            }
        }
    }
}

#[test]
fn the_factorised_inverse_minimises_its_norm() {
    for (spec, b) in
        [("poisson3d:4x4x3", 1), ("bubbly:6x5x4,bubbles=1,radius=0.2", 1), ("poisson3d:4x3x3", 3)]
    {
        let a = matrix(spec);
        let n = a.rows();
        let mut c: Vec<f64> = (0..n * n).map(|e| a.get(e / n, e % n).unwrap_or(0.0)).collect();
        dense::cholesky(&mut c, n).unwrap();
        for q in 1..=2 {
            let p = power(Threads::One, &block_pattern(&a.in_blocks(b)), q, usize::MAX).unwrap();
            // row i of G: least |e_i - g C| over its pattern, then scaled so that g A g' = 1
            let mut g = vec![vec![0.0; n]; n];
            for i in 0..n {
                let mut of_row: Vec<usize> = p
                    .row(i / b)
                    .iter()
                    .flat_map(|&j| (j as usize * b)..(j as usize + 1) * b)
                    .collect();
                of_row.retain(|&j| j <= i);
                let m = of_row.len();
                let mut problem = vec![0.0; n * m];
                for (t, &j) in of_row.iter().enumerate() {
                    (0..=j).for_each(|k| problem[k * m + t] = c[j * n + k]);
                }
                let mut right = vec![0.0; n];
                right[i] = 1.0;
                dense::least_squares(&mut problem, n, m, &mut right).unwrap();
                let mut energy = 0.0;
                for (s, &j) in of_row.iter().enumerate() {
                    for (t, &k) in of_row.iter().enumerate() {
                        energy += right[s] * right[t] * a.get(j, k).unwrap_or(0.0);
                    }
                }
                of_row.iter().zip(&right).for_each(|(&j, v)| g[j][i] = v / energy.sqrt());
            }
            let want = product(&transposed(&g), &g);
            let got = dense_inverse(&format!("fsai:power={q}"), &a, b);
            assert!(largest_difference(&got, &want) < 1e-12, "{spec}, q {q}");
        }
    }
}

#[test]
fn the_sparse_inverse_minimises_its_norm() {
    for (spec, b) in SYSTEMS {
        let a = matrix(spec);
        let (n, dense) = (a.rows(), columns(&a));
        let blocks = a.in_blocks(b);
        let p = block_pattern(&blocks);
        let got = dense_inverse("spai", &a, b);
        for j in 0..n {
            let rows: Vec<usize> =
                (0..n).filter(|&i| p.row(i / b).contains(&((j / b) as u32))).collect();
            // all n rows of the problem, not only those that can be nonzero
            let m = rows.len();
            let mut problem: Vec<f64> = (0..n * m).map(|e| dense[rows[e % m]][e / m]).collect();
            let mut right = vec![0.0; n];
            right[j] = 1.0;
            dense::least_squares(&mut problem, n, m, &mut right).unwrap();
            let mut want = vec![0.0; n];
            rows.iter().zip(&right).for_each(|(&i, v)| want[i] = *v);
            assert!(largest_difference(&got[j..=j], &[want]) < 1e-11, "{spec}, column {j}");
        }
        let symmetric = dense_inverse("spai:symmetric=yes", &a, b);
        let mean = sum(&got, &transposed(&got), 1.0);
        let twice: Vec<Vec<f64>> = sum(&symmetric, &symmetric, 1.0);
        assert!(largest_difference(&twice, &mean) < 1e-13);
    }
}

#[test]
fn incomplete_inverses_are_inverse_on_the_patterns_of_the_factors() {
    for (spec, b) in SYSTEMS {
        let a = matrix(spec);
        for fill in 0..2 {
            let p = pattern(&a.in_blocks(b), fill);
            let f = crate::compute::cpu::extracted(Threads::One, &p, (&a, 0.0)).unwrap();
            let w = inverses::triangular(Threads::One, &f.lower).unwrap();
            let v = inverses::triangular(Threads::One, &f.upper.transposed()).unwrap().transposed();
            let n = a.rows();
            let (l, u) = (
                sum(&columns(&f.lower), &identity(n), 1.0),
                sum(&columns(&f.upper), &identity(n), 1.0),
            );
            let (wl, uv) = (product(&columns(&w), &l), product(&u, &columns(&v)));
            for (m, pattern) in [(&wl, &f.lower), (&uv, &f.upper)] {
                for i in 0..n {
                    pattern.row(i).0.iter().for_each(|&j| assert!(m[j as usize][i].abs() < 1e-12));
                    assert!((m[i][i] - 1.0).abs() < 1e-12);
                }
            }
            let want = product(&product(&columns(&v), &columns(&f.inverse_diagonal)), &columns(&w));
            let case = Case { fill, ..case("isai", b) };
            let (k, mut got) = (Cpu::sequential(), Vec::new());
            let m = set_up(&k, &a, &case).unwrap();
            for j in 0..n {
                let (mut e, mut z) = (k.vector(n).unwrap(), k.vector(n).unwrap());
                e[j] = 1.0;
                m.apply(&k, &e, &mut z);
                got.push(z.to_vec());
            }
            assert!(largest_difference(&got, &want) < 1e-12, "{spec}, k {fill}");
        }
    }
}

#[test]
fn as_many_sweeps_as_levels_solve_exactly() {
    for (spec, b) in SYSTEMS {
        let a = matrix(spec);
        let p = pattern(&a.in_blocks(b), 0);
        let enough = schedule::levels_lower(&p).max(schedule::levels_upper(&p)) - 1;
        let got = dense_inverse(&format!("sweeps:sweeps={enough}"), &a, b);
        let want = dense_inverse("bilu", &a, b);
        assert!(largest_difference(&got, &want) < 1e-12, "{spec}");
        let fewer = dense_inverse(&format!("sweeps:sweeps={}", enough - 1), &a, b);
        assert!(largest_difference(&fewer, &want) > 1e-12, "{spec}");
    }
}

/// On an eigenvector of `D^-1 A` the residual is multiplied by `T(m)` at its eigenvalue over that at 0.
#[test]
fn chebyshev_polynomials_damp_as_they_do() {
    let n = 30;
    let a = matrix("poisson3d:30x1x1");
    let k = Cpu::sequential();
    let (degree, ratio) = (5, 25.0);
    let m = set_up(&k, &a, &case(&format!("chebyshev:degree={degree},ratio={ratio}"), 1)).unwrap();
    // the diagonal is 6: rows of D^-1 A sum up to 1 + 2/6 at most
    let (largest, smallest) = (4.0 / 3.0, 4.0 / 3.0 / ratio);
    let chebyshev = |x: f64| {
        let (mut before, mut now) = (1.0, x);
        for _ in 1..=degree {
            (before, now) = (now, 2.0 * x * now - before);
        }
        now
    };
    let map = |l: f64| (largest + smallest - 2.0 * l) / (largest - smallest);
    for mode in [1, 7, 30] {
        let angle = std::f64::consts::PI * f64::from(mode) / f64::from(n + 1);
        let mut r = k.vector(30).unwrap();
        (0..30).for_each(|i| r[i] = (angle * (i + 1) as f64).sin());
        let mut z = k.vector(30).unwrap();
        m.apply(&k, &r, &mut z);
        let lambda = (6.0 - 2.0 * angle.cos()) / 6.0;
        let mut az = vec![0.0; 30];
        a.multiply(&z, &mut az);
        let want = chebyshev(map(lambda)) / chebyshev(map(0.0));
        for i in 0..30 {
            assert!((r[i] - az[i] - want * r[i]).abs() < 1e-13, "mode {mode}");
        }
    }
}
