//! The coarse space over ranks that are threads, beside dense arithmetic.

use std::rc::Rc;

use super::*;
use crate::compute::Vectors as _;
use crate::compute::cpu::Cpu;
use crate::compute::distributed::communicator::Communicator;
use crate::compute::distributed::communicator::threads::on_ranks;
use crate::problem::samples::{Divided, boxes, centred};

/// The vectors as the definition has them: for each unknown its vector.
fn defined(Divided { a, starts }: &Divided, pieces: usize) -> Vec<Option<usize>> {
    let b = a.block_size();
    let mut of = Vec::new();
    let mut first = 0;
    for w in starts.windows(2) {
        let rows = w[1] - w[0];
        let count = pieces.min(rows);
        for row in 0..rows {
            let piece = (0..count).rev().find(|j| j * rows / count <= row).unwrap();
            let unknowns = (w[0] + row) * b..(w[0] + row + 1) * b;
            let coupled = unknowns.clone().any(|i| {
                let (columns, values) = a.row(i);
                columns
                    .iter()
                    .zip(values)
                    .any(|(&j, &v)| v != 0.0 && !unknowns.contains(&(j as usize)))
            });
            of.extend((0..b).map(|c| coupled.then_some((first + piece) * b + c)));
        }
        first += count;
    }
    of
}

/// `v - A Z E^-1 Z' v` and `x + Z E^-1 Z' v` by dense elimination with pivots, vectors that depend on others left
/// out beforehand.
fn dense(a: &Csr, of: &[Option<usize>], count: usize, v: &[f64]) -> [Vec<f64>; 2] {
    let mut az = vec![vec![0.0; count]; a.rows()];
    for (i, row) in az.iter_mut().enumerate() {
        let (columns, values) = a.row(i);
        for (&j, v) in columns.iter().zip(values) {
            if let Some(p) = of[j as usize] {
                row[p] += v;
            }
        }
    }
    // the last column is Z' v
    let mut e = vec![vec![0.0; count + 1]; count];
    for (i, p) in of.iter().enumerate().filter_map(|(i, p)| Some((i, (*p)?))) {
        (0..count).for_each(|q| e[p][q] += az[i][q]);
        e[p][count] += v[i];
    }
    for p in 0..count {
        if of.iter().all(|of| *of != Some(p)) {
            e[p][p] = 1.0;
        }
    }
    for j in 0..count {
        let best = (j..count).max_by(|&p, &q| e[p][j].abs().total_cmp(&e[q][j].abs())).unwrap();
        e.swap(j, best);
        for p in (0..count).filter(|&p| p != j) {
            let factor = e[p][j] / e[j][j];
            for q in j..=count {
                e[p][q] -= factor * e[j][q];
            }
        }
    }
    let y: Vec<f64> = (0..count).map(|p| e[p][count] / e[p][p]).collect();
    let projected = (0..a.rows()).map(|i| v[i] - (0..count).map(|p| az[i][p] * y[p]).sum::<f64>());
    let correction = of.iter().map(|p| p.map_or(0.0, |p| y[p]));
    [projected.collect(), correction.collect()]
}

/// `P v`, then `x` corrected by what was projected, and by itself; vectors and those in use.
type Found = ([Vec<f64>; 3], [usize; 2]);

fn on(ranks: usize, Divided { a, starts }: &Divided, pieces: usize, v: &[f64]) -> Found {
    let parts = on_ranks(ranks, |rank| {
        let layout = Layout::new(starts, a.block_size(), ranks).unwrap();
        let own = layout.unknowns(Communicator::rank(&rank));
        let k = Distributed::new(Cpu::sequential(), Rc::new(rank), layout);
        let part = k.layout().part_of(a, Communicator::rank(&**k.communicator()));
        let d = SubdomainDeflation::new(&k, &part, pieces).unwrap();
        let vector = |of: &[f64]| {
            let mut to = k.vector(own.len()).unwrap();
            k.upload(of, &mut to);
            to
        };
        let zero = vec![0.0; own.len()];
        let [mut p, mut last, mut x] = [&v[own.clone()], &zero, &zero].map(vector);
        d.project(&k, &mut p);
        d.correct_projected(&k, &mut last);
        d.correct(&k, &vector(&v[own.clone()]), &mut x);
        ([p.to_vec(), last.to_vec(), x.to_vec()], [d.counts.iter().sum(), d.count()])
    });
    let counts = parts[0].1;
    let all = |i: usize| parts.iter().flat_map(|(found, _)| found[i].clone()).collect();
    ([all(0), all(1), all(2)], counts)
}

fn apart(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn it_is_that_of_dense_arithmetic_on_any_number_of_ranks() {
    for (spec, b, count, pieces, vectors) in [
        ("poisson3d:6", 1, 8, 1, 8),
        ("poisson3d:6x5x4", 1, 4, 3, 12),
        ("convdiff3d:7x5x4,px=0.3", 1, 6, 1, 6),
        ("blockpoisson3d:5x4x3,b=3", 3, 4, 2, 24),
        // as many pieces as a subdomain has block rows
        ("poisson3d:4x2x2", 1, 8, 9, 16),
        // E of more than 512 rows is factored
        ("poisson3d:9", 1, 27, 20, 540),
    ] {
        let s = boxes(spec, b, count);
        let v = centred(s.a.rows());
        let [projected, correction] = dense(&s.a, &defined(&s, pieces), vectors, &v);
        let one = on(1, &s, pieces, &v);
        assert_eq!(one.1, [vectors, vectors], "{spec}");
        assert!(
            apart(&one.0[0], &projected) < 1e-9,
            "{spec}: {:.1e}",
            apart(&one.0[0], &projected)
        );
        assert!(apart(&one.0[2], &correction) < 1e-9, "{spec}");
        assert_eq!(one.0[1], one.0[2], "{spec}");
        for ranks in [2, 3, 4] {
            assert_eq!(on(ranks, &s, pieces, &v), one, "{spec}: {ranks} ranks");
        }
    }
}

/// Rows of others, as of a Dirichlet boundary, are in no vector, also where a neighbour's rows see them.
#[test]
fn rows_that_nothing_is_coupled_to_are_left_out() {
    let mut s = boxes("poisson3d:6", 1, 8);
    let alone = |i: usize| i % 27 == 13 || i < 27;
    s.a = s.a.filtered(Threads::One, |i, j, v| (i == j || !alone(i)).then_some(v));
    let v = centred(216);
    let of = defined(&s, 1);
    assert_eq!(of.iter().filter(|of| of.is_none()).count(), 27 + 7);
    let [projected, correction] = dense(&s.a, &of, 8, &v);
    let one = on(1, &s, 1, &v);
    // the first subdomain has no coupled row
    assert_eq!(one.1, [8, 7]);
    assert!(apart(&one.0[0], &projected) < 1e-12 && apart(&one.0[2], &correction) < 1e-12);
    assert_eq!(on(4, &s, 1, &v), one);
}

#[test]
fn a_singular_matrix_loses_one_vector() {
    // most rows are at a face, and 288 of 1,728
    for (edge, count) in [(6, 8), (12, 2)] {
        let spec = format!("bubbly:{edge},bubbles=0,boundary=neumann");
        let s = boxes(&spec, 1, count);
        let v = centred(s.a.rows());
        let mut of = defined(&s, 1);
        of.iter_mut().filter(|of| **of == Some(count - 1)).for_each(|of| *of = None);
        let [projected, correction] = dense(&s.a, &of, count, &v);
        let one = on(1, &s, 1, &v);
        assert_eq!(one.1, [count, count - 1], "{spec}");
        assert!(apart(&one.0[0], &projected) < 1e-12, "{spec}");
        assert!(apart(&one.0[2], &correction) < 1e-11, "{spec}");
        assert_eq!(on(2, &s, 1, &v), one, "{spec}");
    }
}
