//! ILUT and dropping on levels beside elimination of dense blocks.

use rand::{Rng, SeedableRng};

use super::*;

type Block = Vec<Vec<f64>>;
/// A matrix of blocks, by rows; `None` is no block.
type Dense = Vec<Vec<Option<Block>>>;

fn zero(b: usize) -> Block {
    vec![vec![0.0; b]; b]
}

fn times(x: &Block, y: &Block) -> Block {
    let b = x.len();
    let entry = |i: usize, j: usize| (0..b).map(|q| x[i][q] * y[q][j]).sum();
    (0..b).map(|i| (0..b).map(|j| entry(i, j)).collect()).collect()
}

fn minus(x: &Block, y: &Block) -> Block {
    x.iter().zip(y).map(|(x, y)| x.iter().zip(y).map(|(x, y)| x - y).collect()).collect()
}

fn size(x: &Block) -> f64 {
    x.iter().flatten().map(|v| v * v).sum::<f64>().sqrt()
}

/// By Gauss-Jordan with exchanges of rows.
fn inverse(x: &Block) -> Block {
    let b = x.len();
    let mut work: Block = x.clone();
    for (i, row) in work.iter_mut().enumerate() {
        row.extend((0..b).map(|j| if i == j { 1.0 } else { 0.0 }));
    }
    for j in 0..b {
        let best = (j..b).max_by(|&p, &q| work[p][j].abs().total_cmp(&work[q][j].abs())).unwrap();
        work.swap(j, best);
        let pivot = work[j][j];
        work[j].iter_mut().for_each(|v| *v /= pivot);
        let row = work[j].clone();
        for (i, other) in work.iter_mut().enumerate().filter(|(i, _)| *i != j) {
            let factor = other[j];
            other.iter_mut().zip(&row).for_each(|(v, w)| *v -= factor * w);
            assert!(i < b);
        }
    }
    work.into_iter().map(|row| row[b..].to_vec()).collect()
}

fn dense_of(a: &Csr, b: usize) -> Dense {
    let count = a.rows() / b;
    let mut made: Dense = vec![vec![None; count]; count];
    for i in 0..a.rows() {
        let (cols, values) = a.row(i);
        for (&j, &v) in cols.iter().zip(values) {
            let j = j as usize;
            made[i / b][j / b].get_or_insert_with(|| zero(b))[i % b][j % b] = v;
        }
    }
    made
}

/// The largest `most` of some columns, ascending.
fn largest(mut of: Vec<(usize, f64)>, most: usize) -> Vec<usize> {
    of.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut kept: Vec<usize> = of.into_iter().take(most).map(|(j, _)| j).collect();
    kept.sort_unstable();
    kept
}

/// Saad's Algorithm 10.6 on dense blocks: `L U`, and how many blocks both have. `admitted` says where fill may be.
fn textbook(
    a: &Dense,
    b: usize,
    (tau, most): (f64, usize),
    admitted: impl Fn(usize, usize) -> bool,
) -> (Vec<Vec<f64>>, usize) {
    let count = a.len();
    let (mut lower, mut upper): (Dense, Dense) =
        (vec![vec![None; count]; count], vec![vec![None; count]; count]);
    for i in 0..count {
        let mut w = a[i].clone();
        let norm = w.iter().flatten().map(|x| size(x).powi(2)).sum::<f64>().sqrt();
        let mut multipliers = Vec::new();
        for p in 0..i {
            let Some(x) = w[p].clone() else { continue };
            if size(&x) < tau * norm {
                w[p] = None;
                continue;
            }
            multipliers.push((p, size(&x)));
            let l = times(&x, &inverse(upper[p][p].as_ref().unwrap()));
            for j in p + 1..count {
                if let Some(u) = &upper[p][j] {
                    if w[j].is_none() && !admitted(i, j) {
                        continue;
                    }
                    w[j] = Some(minus(&w[j].clone().unwrap_or_else(|| zero(b)), &times(&l, u)));
                }
            }
            lower[i][p] = Some(l);
        }
        let kept = largest(multipliers, most);
        (0..i).filter(|p| !kept.contains(p)).for_each(|p| lower[i][p] = None);
        let right = (i + 1..count).filter_map(|j| w[j].as_ref().map(|x| (j, size(x))));
        let kept = largest(right.filter(|(_, size)| *size >= tau * norm).collect(), most);
        lower[i][i] =
            Some((0..b).map(|r| (0..b).map(|c| f64::from(u8::from(r == c))).collect()).collect());
        upper[i][i] = w[i].clone();
        for j in kept {
            upper[i][j] = w[j].clone();
        }
    }
    let blocks = lower.iter().chain(&upper).flatten().flatten().count() - count;
    let n = count * b;
    let mut product = vec![vec![0.0; n]; n];
    for i in 0..count {
        for j in 0..count {
            for p in 0..=i.min(j) {
                if let (Some(l), Some(u)) = (&lower[i][p], &upper[p][j]) {
                    for (r, row) in times(l, u).iter().enumerate() {
                        for (c, v) in row.iter().enumerate() {
                            product[i * b + r][j * b + c] += v;
                        }
                    }
                }
            }
        }
    }
    (product, blocks)
}

/// A matrix of `count` block rows with a full diagonal block and about four others in a row, of every size.
fn random(count: usize, b: usize, seed: u64) -> Arc<Csr> {
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let n = count * b;
    let mut dense = vec![vec![None; n]; n];
    for i in 0..count {
        for j in 0..count {
            if i != j && rng.random_range(0..count) > 3 {
                continue;
            }
            let scale = 10.0_f64.powi(rng.random_range(-3..1));
            for r in 0..b {
                for c in 0..b {
                    let v: f64 = rng.random_range(-1.0..1.0);
                    let diagonal = if i == j && r == c { 4.0 } else { 0.0 };
                    dense[i * b + r][j * b + c] = Some(v * scale + diagonal);
                }
            }
        }
    }
    let (mut row_ptr, mut col_ind, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in dense {
        for (j, v) in row.into_iter().enumerate() {
            if let Some(v) = v {
                col_ind.push(j as u32);
                values.push(v);
            }
        }
        row_ptr.push(col_ind.len() as u32);
    }
    Csr::new(n, n, row_ptr, col_ind, values).unwrap().into()
}

/// How far `M M^-1` is from I.
fn error(m: &[Vec<f64>], inverse_columns: &[Vec<f64>]) -> f64 {
    let mut worst = 0.0_f64;
    for (j, column) in inverse_columns.iter().enumerate() {
        for (i, row) in m.iter().enumerate() {
            let v: f64 = row.iter().zip(column).map(|(a, x)| a * x).sum();
            worst = worst.max((v - f64::from(u8::from(i == j))).abs());
        }
    }
    worst
}

fn blocks_of(k: &Cpu, a: &Arc<Csr>, case: &Case) -> usize {
    let m = set_up(k, a, case).unwrap_or_else(|e| panic!("{e:?}"));
    m.size(k).factor_blocks.unwrap()
}

#[test]
fn ilut_is_the_textbooks() {
    for (b, count) in [(1, 40), (2, 20), (3, 12)] {
        for (seed, tau, most) in [(1, 1e-2, 100), (2, 1e-3, 3), (3, 1e-1, 2), (4, 1e-6, 1)] {
            let a = random(count, b, seed);
            let (m, blocks) = textbook(&dense_of(&a, b), b, (tau, most), |_, _| true);
            let spec = format!("ilut:tau={tau},p={most}");
            assert!(error(&m, &dense_inverse(&spec, &a, b)) < 1e-10, "{spec}, b {b}");
            let found = blocks_of(&Cpu::sequential(), &a, &case(&spec, b));
            assert_eq!(found, blocks, "{spec}, b {b}");
        }
    }
}

#[test]
fn dropping_on_levels_is_ilut_on_their_pattern() {
    for (b, fill, tau) in [(1, 0, 0.1), (1, 2, 0.01), (2, 1, 0.05), (3, 1, 1e-9)] {
        let a = random(30 / b, b, 7);
        let whole = pattern(&a.in_blocks(b), fill).whole();
        let admitted = |i: usize, j: usize| whole.row(i).contains(&(j as u32));
        let (m, blocks) = textbook(&dense_of(&a, b), b, (tau, usize::MAX), admitted);
        let case = Case { fill, drop_tolerance: tau, ..case("bilu", b) };
        let k = Cpu::sequential();
        assert_eq!(blocks_of(&k, &a, &case), blocks, "b {b}, k {fill}");
        let made = set_up(&k, &a, &case).unwrap_or_else(|e| panic!("{e:?}"));
        let column = |j: usize| {
            let (mut e, mut z) = (k.vector(a.rows()).unwrap(), k.vector(a.rows()).unwrap());
            e[j] = 1.0;
            made.apply(&k, &e, &mut z);
            z.to_vec()
        };
        let columns: Vec<Vec<f64>> = (0..a.rows()).map(column).collect();
        assert!(error(&m, &columns) < 1e-10, "b {b}, k {fill}");
    }
}

#[test]
fn nothing_dropped_is_elimination_and_all_dropped_is_the_diagonal() {
    let a = random(14, 2, 5);
    let dense: Vec<Vec<f64>> =
        (0..28).map(|i| (0..28).map(|j| a.get(i, j).unwrap_or(0.0)).collect()).collect();
    assert!(error(&dense, &dense_inverse("ilut:tau=1e-300,p=1000", &a, 2)) < 1e-10);
    let diagonal = dense_inverse("jacobi", &a, 2);
    for spec in ["ilut:tau=1e5", "ilut:p=0"] {
        assert_eq!(dense_inverse(spec, &a, 2), diagonal, "{spec}");
    }
    let all = Case { drop_tolerance: 1e6, fill: 1, ..case("bilu", 2) };
    assert_eq!(blocks_of(&Cpu::sequential(), &a, &all), 14);
}

#[test]
fn the_scale_of_rows_makes_no_difference() {
    let a = random(30, 1, 9);
    let mut scaled = Csr::clone(&a);
    let factor = |i: usize| 2.0_f64.powi((i * 7 % 41) as i32 - 20);
    for i in 0..30 {
        let range = a.row_ptr()[i] as usize..a.row_ptr()[i + 1] as usize;
        scaled.values_mut()[range].iter_mut().for_each(|v| *v *= factor(i));
    }
    let spec = "ilut:tau=0.01,p=3";
    let (one, other) = (dense_inverse(spec, &a, 1), dense_inverse(spec, &scaled.into(), 1));
    for (j, (one, other)) in one.iter().zip(&other).enumerate() {
        let back: Vec<f64> = other.iter().map(|v| v * factor(j)).collect();
        assert_eq!(*one, back, "column {j}");
    }
}

#[test]
fn a_diagonal_block_without_a_pivot_is_told() {
    // [1 1; 1 1]
    let a: Arc<Csr> = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0; 4]).unwrap().into();
    let said = |case: &Case| match set_up(&Cpu::sequential(), &a, case) {
        Err(SetupFailure::Breakdown(why)) => why.to_string(),
        _ => panic!("a breakdown"),
    };
    let singular = "singular diagonal block in block row 1";
    assert_eq!(said(&case("ilut", 1)), singular);
    assert_eq!(said(&Case { drop_tolerance: 1e-3, ..case("bilu", 1) }), singular);
    let absent: Arc<Csr> = Csr::new(1, 1, vec![0, 0], vec![], vec![]).unwrap().into();
    let why = set_up(&Cpu::sequential(), &absent, &case("ilut", 1)).err().unwrap();
    assert!(matches!(why, SetupFailure::Breakdown(b) if b.to_string()
        == "zero pivot: block row 0 has no diagonal entry"));
}
