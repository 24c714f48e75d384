//! Preconditioners against dense arithmetic.

#[path = "tests/approximate.rs"]
mod approximate;
#[path = "tests/dilu.rs"]
mod dilu;
#[path = "tests/ilut.rs"]
mod ilut;
#[path = "tests/multigrid.rs"]
mod multigrid;
#[path = "tests/renewal.rs"]
mod renewal;
#[path = "tests/shift.rs"]
mod shift;

use super::*;
use crate::base::threads::Threads;
use crate::case::Case;
use crate::compute::Vectors;
use crate::compute::cpu::sparse::inverses;
use crate::compute::cpu::{Cpu, dense};
use crate::matrix::pattern::block_pattern;
use crate::problem::samples::{matrix, pattern};
use crate::symbolic::{
    Colouring, Lattice, colours, colours_of_power, power, schedule, symmetrised,
};

fn case(spec: &str, b: usize) -> Case {
    Case { precond: spec.into(), block_size: b, ..Case::default() }
}

fn set_up(k: &Cpu, a: &Arc<Csr>, case: &Case) -> Ready<Cpu> {
    lookup::<Cpu>(&case.precond).expect("registered")(Setup {
        k,
        a: &Arc::new(a.in_blocks(case.block_size)),
        settings: &case.preconditioning(),
        phases: &mut (),
    })
}

/// M^-1 column by column, on one thread; two threads must find the same.
fn dense_inverse(spec: &str, a: &Arc<Csr>, b: usize) -> Vec<Vec<f64>> {
    let n = a.rows();
    let on = |k: &Cpu| {
        let m = set_up(k, a, &case(spec, b)).unwrap_or_else(|e| panic!("{spec}: {e:?}"));
        let (mut e, mut z) = (k.vector(n).unwrap(), k.vector(n).unwrap());
        let column = |j: usize| {
            e.fill(0.0);
            e[j] = 1.0;
            z.fill(f64::NAN);
            m.apply(k, &e, &mut z);
            z.to_vec()
        };
        (0..n).map(column).collect::<Vec<_>>()
    };
    let one = on(&Cpu::sequential());
    let two = on(&Cpu::parallel(Some(2)).unwrap());
    assert!(largest_difference(&one, &two) < 1e-13, "{spec}: threads differ");
    one
}

fn largest_difference(a: &[Vec<f64>], b: &[Vec<f64>]) -> f64 {
    let scale = b.iter().flatten().fold(0.0_f64, |m, v| m.max(v.abs()));
    let both = a.iter().flatten().zip(b.iter().flatten());
    both.map(|(x, y)| (x - y).abs()).fold(0.0, |m: f64, d| if d > m || d.is_nan() { d } else { m })
        / scale
}

/// Columns of a matrix.
fn columns(a: &Csr) -> Vec<Vec<f64>> {
    let entry = |i, j| a.get(i, j).unwrap_or(0.0);
    (0..a.cols()).map(|j| (0..a.rows()).map(|i| entry(i, j)).collect()).collect()
}

/// The inverse of a matrix given by its columns.
fn inverted(m: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = m.len();
    let mut flat: Vec<f64> = (0..n * n).map(|e| m[e % n][e / n]).collect();
    crate::compute::cpu::invert_block(&mut flat, n).expect("regular");
    (0..n).map(|j| (0..n).map(|i| flat[i * n + j]).collect()).collect()
}

fn product(a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = a.len();
    let entry = |i: usize, j: usize| (0..n).map(|p| a[p][i] * b[j][p]).sum();
    (0..n).map(|j| (0..n).map(|i| entry(i, j)).collect()).collect()
}

/// The entries of `a` for which `keep(i, j)`.
fn part(a: &[Vec<f64>], keep: impl Fn(usize, usize) -> bool) -> Vec<Vec<f64>> {
    let at = |j: usize, i: usize, v: f64| if keep(i, j) { v } else { 0.0 };
    let column =
        |(j, c): (usize, &Vec<f64>)| c.iter().enumerate().map(|(i, v)| at(j, i, *v)).collect();
    a.iter().enumerate().map(column).collect()
}

fn sum(a: &[Vec<f64>], b: &[Vec<f64>], factor: f64) -> Vec<Vec<f64>> {
    let column =
        |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().zip(b).map(|(a, b)| a + factor * b).collect();
    a.iter().zip(b).map(column).collect()
}

fn transposed(a: &[Vec<f64>]) -> Vec<Vec<f64>> {
    (0..a.len()).map(|j| (0..a.len()).map(|i| a[i][j]).collect()).collect()
}

/// Symmetric and not, points and blocks, stencils and triangles.
const SYSTEMS: [(&str, usize); 6] = [
    ("poisson3d:5x4x3", 1),
    ("fem-p1:6x7", 1),
    ("bubbly:6x5x4,bubbles=1,radius=0.2", 1),
    ("convdiff3d:4x4x3,px=0.4,py=-0.3", 1),
    ("blockpoisson3d:3x3x2,b=3", 3),
    // enough lines for a lattice
    ("poisson3d:3x8x4", 1),
];

/// Numbers of blocks in the order of their colours in `|A|^q`, then in their own.
fn coloured(a: &Csr, b: usize, q: usize, how: Colouring) -> Vec<usize> {
    let a = a.in_blocks(b);
    let point = block_pattern(&a);
    let coupled = symmetrised(Threads::One, &point);
    let colour = colours_of_power(Threads::One, &coupled, q, how, usize::MAX).unwrap();
    let mut order: Vec<usize> = (0..colour.len()).collect();
    order.sort_by_key(|&i| (colour[i], i));
    order
}

/// Factors in the order of `place` by elimination as in a textbook, entries outside `inside` dropped:
/// M as a dense matrix in the numbers of A.
fn textbook_ilu(
    a: &[Vec<f64>],
    place: &[usize],
    inside: impl Fn(usize, usize) -> bool,
) -> Vec<Vec<f64>> {
    let n = a.len();
    let mut order = vec![0; n];
    place.iter().enumerate().for_each(|(i, &at)| order[at] = i);
    let mut f: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            (0..n)
                .map(|j| if inside(order[i], order[j]) { a[order[j]][order[i]] } else { 0.0 })
                .collect()
        })
        .collect();
    for i in 0..n {
        for p in 0..i {
            if f[i][p] != 0.0 {
                f[i][p] /= f[p][p];
                for j in p + 1..n {
                    if inside(order[i], order[j]) {
                        f[i][j] -= f[i][p] * f[p][j];
                    }
                }
            }
        }
    }
    let entry = |i: usize, j: usize| {
        let (r, c) = (place[i], place[j]);
        let lower = |p: usize| if p == r { 1.0 } else { f[r][p] };
        (0..=r.min(c)).map(|p| lower(p) * f[p][c]).sum()
    };
    (0..n).map(|j| (0..n).map(|i| entry(i, j)).collect()).collect()
}

fn places(order: &[usize]) -> Vec<usize> {
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &i)| place[i] = at);
    place
}

#[test]
fn coloured_ilu_is_point_ilu_of_the_permuted_matrix() {
    for (spec, b) in SYSTEMS.into_iter().filter(|s| s.1 == 1) {
        let a = matrix(spec);
        let dense = columns(&a);
        let specs = [
            ("mcilu:p=0", 0, 1, false),
            ("mcilu:p=1", 1, 2, false),
            ("mcilu:p=1,q=1", 1, 1, false),
            ("mcilu:p=1,pattern=power", 1, 2, true),
            ("mcilu:p=0,q=2,pattern=power", 0, 2, true),
        ];
        let ways = [Colouring::Lattice, Colouring::FirstFit].into_iter();
        for (how, (text, p, q, whole)) in ways.flat_map(|how| specs.map(|spec| (how, spec))) {
            let text = &match how {
                Colouring::Lattice => text.to_owned(),
                Colouring::FirstFit => format!("{text},colouring=first-fit"),
            };
            let order = coloured(&a, b, q, how);
            let place = places(&order);
            // levels of fill in the new order, by the textbook
            let numbers: Vec<u32> = order.iter().map(|&i| i as u32).collect();
            let fill = pattern(&a.permuted(&numbers), p);
            let reach = power(Threads::One, &block_pattern(&a), q, usize::MAX).unwrap();
            let inside = |i: usize, j: usize| {
                let (r, c) = (place[i], place[j] as u32);
                let filled =
                    i == j || fill.lower.row(r).contains(&c) || fill.upper.row(r).contains(&c);
                reach.row(i).contains(&(j as u32)) && (whole || filled)
            };
            let m = textbook_ilu(&dense, &place, inside);
            let difference = largest_difference(&dense_inverse(text, &a, b), &inverted(&m));
            assert!(difference < 1e-11, "{spec} {text}: {difference}");
            // a level of the solves is a colour
            let ready = set_up(&Cpu::sequential(), &a, &case(text, b)).unwrap();
            let size = ready.size(&Cpu::sequential());
            let most = match (spec, how) {
                ("poisson3d:3x8x4", Colouring::Lattice) => [0, 2, 7][q],
                _ => *colours(Threads::One, &reach).iter().max().unwrap() + 1,
            };
            assert!(size.levels_lower.unwrap() as u32 <= most, "{spec} {text}");
        }
    }
}

#[test]
fn symmetric_gauss_seidel_is_what_its_formula_says() {
    for (spec, b) in SYSTEMS {
        let a = matrix(spec);
        let place = places(&coloured(&a, b, 1, Colouring::FirstFit));
        let dense = columns(&a);
        let d = part(&dense, |i, j| i / b == j / b);
        for (text, omega) in [("mcsgs", 1.0), ("mcsgs:omega=1.4", 1.4)] {
            let lower = part(&dense, |i, j| place[i / b] > place[j / b]);
            let upper = part(&dense, |i, j| place[i / b] < place[j / b]);
            let left = product(&sum(&d, &lower, omega), &inverted(&d));
            let m = product(&left, &sum(&d, &upper, omega));
            let mut inverse = inverted(&m);
            inverse.iter_mut().flatten().for_each(|v| *v *= omega * (2.0 - omega));
            let difference = largest_difference(&dense_inverse(text, &a, b), &inverse);
            assert!(difference < 1e-11, "{spec} {text}: {difference}");
        }
    }
}

#[test]
fn multi_elimination_is_exact_but_for_its_last_block() {
    for (spec, b) in SYSTEMS {
        let a = matrix(spec);
        let (n, dense) = (a.rows(), columns(&a));
        let sym = power(Threads::One, &block_pattern(&a.in_blocks(b)), 1, usize::MAX).unwrap();
        let inside = crate::symbolic::independent_set(Threads::One, &sym);
        let set = |i: usize| inside[i / b];
        // the Schur complement, with the identity in the rows of the set
        let d = part(&dense, |i, j| i / b == j / b && set(i));
        let d = sum(&d, &part(&identity(n), |i, _| !set(i)), 1.0);
        let off = part(&dense, |i, j| set(i) && i / b != j / b);
        let e = part(&dense, |i, j| !set(i) && set(j));
        let reduced = product(&product(&e, &inverted(&d)), &off);
        let c = sum(&part(&dense, |i, j| !set(i) && !set(j)), &reduced, -1.0);
        for last in ["jacobi", "sgs", "sgs,colouring=first-fit"] {
            let dc = part(&c, |i, j| i / b == j / b);
            let dc = sum(&dc, &part(&identity(n), |i, _| set(i)), 1.0);
            let mc = if last == "jacobi" {
                dc
            } else {
                // colours of what is left, in its own numbers
                let stay: Vec<usize> = (0..n / b).filter(|&i| !inside[i]).collect();
                let left = reach_through(&sym, &inside, &stay);
                let rows: Vec<u32> = stay.iter().map(|&i| i as u32).collect();
                let colour = match (spec, last) {
                    ("poisson3d:3x8x4", "sgs") => {
                        let lattice = Lattice::of_cells(Threads::One, [3, 8, 4], &rows, &left);
                        let lattice = lattice.expect("half of the cells of a box");
                        assert_eq!(lattice.colours, 6);
                        lattice.colours_of(Threads::One, &rows)
                    }
                    _ => colours(Threads::One, &left),
                };
                let key = |i: usize| stay.binary_search(&(i / b)).map(|at| (colour[at], at)).ok();
                let lower = part(&c, |i, j| i / b != j / b && key(i) > key(j));
                let upper = part(&c, |i, j| i / b != j / b && key(i) < key(j));
                product(&product(&sum(&dc, &lower, 1.0), &inverted(&dc)), &sum(&dc, &upper, 1.0))
            };
            // M = [I 0; E D^-1 I] [D 0; 0 M_C] [I D^-1 F; 0 I]
            let left = sum(&identity(n), &product(&e, &inverted(&d)), 1.0);
            let right = sum(&identity(n), &product(&inverted(&d), &off), 1.0);
            let middle = sum(&part(&d, |i, _| set(i)), &part(&mc, |i, _| !set(i)), 1.0);
            let m = product(&product(&left, &middle), &right);
            let text = format!("meilu:last={last}");
            let difference = largest_difference(&dense_inverse(&text, &a, b), &inverted(&m));
            assert!(difference < 1e-10, "{spec} {text}: {difference}");
        }
        // enough sets and exact elimination of what they leave on a chain: the whole of A
        let chain = matrix("poisson3d:17x1x1");
        let exact = dense_inverse("meilu:levels=5,last=ilu", &chain, 1);
        assert!(largest_difference(&exact, &inverted(&columns(&chain))) < 1e-12);
    }
}

fn identity(n: usize) -> Vec<Vec<f64>> {
    (0..n).map(|j| (0..n).map(|i| f64::from(u8::from(i == j))).collect()).collect()
}

/// Which of `stay` are coupled directly or through one of the others.
fn reach_through(
    p: &crate::matrix::pattern::Pattern,
    inside: &[bool],
    stay: &[usize],
) -> crate::matrix::pattern::Pattern<'static> {
    let (mut row_ptr, mut col_ind) = (vec![0_u32], Vec::new());
    for &i in stay {
        let mut row: Vec<usize> = Vec::new();
        for &j in p.row(i) {
            if inside[j as usize] {
                row.extend(p.row(j as usize).iter().map(|&l| l as usize));
            } else {
                row.push(j as usize);
            }
        }
        row.sort_unstable();
        row.dedup();
        col_ind.extend(row.iter().filter_map(|j| stay.binary_search(j).ok()).map(|at| at as u32));
        row_ptr.push(col_ind.len() as u32);
    }
    crate::matrix::pattern::Pattern::new(row_ptr, col_ind)
}

/// What conjugate gradients need: symmetric inverses, positive on every vector tried.
#[test]
fn those_said_to_be_symmetric_are() {
    for spec in ["poisson3d:4x3x3", "bubbly:6x5x4,bubbles=1,radius=0.2", "fem-p1:5x6"] {
        let a = matrix(spec);
        // SPAI promises no definite inverse, and has none for jumps
        for text in
            &all().filter(|text| symmetric(text) && name(text) != "spai").collect::<Vec<_>>()
        {
            let m = dense_inverse(text, &a, 1);
            let difference = largest_difference(&m, &transposed(&m));
            assert!(difference < 1e-11, "{spec} {text}: {difference}");
            let mut flat: Vec<f64> = m.concat();
            assert!(dense::cholesky(&mut flat, a.rows()).is_ok(), "{spec} {text}");
        }
    }
    assert!(!symmetric("spai") && symmetric("spai:symmetric=yes"));
}

/// What quasi-minimal residuals need: set up on A' it is the transpose.
#[test]
fn those_said_to_have_transposes_do() {
    for (spec, b) in SYSTEMS {
        let a = matrix(spec);
        let turned = Arc::new(a.transposed());
        for text in &all().filter(|text| transposable(text)).collect::<Vec<_>>() {
            if takes(text) == Some(Takes::Symmetric) && a.asymmetry().is_some() {
                continue;
            }
            let (m, of_turned) = (dense_inverse(text, &a, b), dense_inverse(text, &turned, b));
            let difference = largest_difference(&of_turned, &transposed(&m));
            assert!(difference < 1e-11, "{spec} {text}: {difference}");
        }
    }
    assert!(!transposable("spai") && !transposable("chebyshev:degree=2"));
}

fn said(spec: &str, text: &str, b: usize) -> String {
    match set_up(&Cpu::sequential(), &matrix(spec), &case(text, b)) {
        Err(SetupFailure::Backend(e)) => e.to_string(),
        Err(SetupFailure::Broken(why)) => why,
        Err(other) => format!("{other:?}"),
        Ok(_) => panic!("{text} was set up"),
    }
}

#[test]
fn what_does_not_suit_is_refused_with_the_test_that_failed() {
    let asymmetric = "the matrix is not symmetric: (1, 2) is -0.6, (2, 1) is -1.4, 1.3e-1 apart";
    for text in ["fsai", "ic"] {
        assert_eq!(said("convdiff3d:4x4x3,px=0.4", text, 1), asymmetric);
    }
    // indefinite: 6 - 7 on the diagonal
    let shifted = "convdiff3d:3x3x1,sigma=-6.5";
    assert_eq!(
        said(shifted, "fsai", 1),
        "the matrix is not positive definite: pivot -5.000e-1 of unknown 1 in the system of row 1"
    );
    assert_eq!(
        said(shifted, "ic", 1),
        "incomplete Cholesky is not positive definite: pivot -5.000e-1 of unknown 1"
    );
}

#[test]
fn specs_are_read_and_written_in_one_way() {
    let same = |text: &str| canonical(text).unwrap();
    assert_eq!(same("bilu"), "bilu");
    assert_eq!(same("mcilu:q=3,p=1"), "mcilu:p=1,q=3");
    assert_eq!(same("tns:form=implicit,order=2"), "tns");
    assert_eq!(same("mcsgs:omega=1.50"), "mcsgs:omega=1.5");
    let error = |text: &str| canonical(text).unwrap_err().to_string();
    assert_eq!(error("fsay"), "unknown preconditioner `fsay`");
    assert_eq!(error("fsai:q=1"), "unknown parameter of `fsai` `q`");
    assert_eq!(
        error("fsai:power=0"),
        "`fsai`: `power=0` is outside the range: whole numbers from 1 to 8"
    );
    assert_eq!(
        error("mcsgs:omega=2"),
        "`mcsgs`: `omega=2` is outside the range: above 0 and below 2"
    );
    assert_eq!(error("meilu:last=ic"), "unknown `last` of `meilu` `ic`");
    assert_eq!(error("mcilu:p=1,p=2"), "`mcilu`: `p` is given twice");
    assert_eq!(error("bilu:k=1"), "`bilu` has no parameters");
    assert_eq!(error("fsai:2"), "`fsai`: `2` is not of the form key=value");
    for spec in &all().collect::<Vec<_>>() {
        assert_eq!(same(spec), *spec);
    }
}
