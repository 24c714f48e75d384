use super::*;
use crate::matrix::Csr;
use crate::problem::samples::{generated, refused};

fn matrix(spec: &str) -> Csr {
    generated(&GENERATOR, spec).unwrap().matrix
}

fn error(spec: &str) -> String {
    refused(&GENERATOR, spec)
}

type Dense = [[f64; MOST]; MOST];

/// Unknowns (u, v, w, p, k, omega).
type Unknowns = [f64; MOST];

/// The convective flux across a face normal to `axis`, as the equations state it.
fn flux(q: &Unknowns, axis: usize) -> Unknowns {
    let mut flux = q.map(|transported| transported * q[axis]);
    flux[axis] += q[P];
    flux[P] = BETA2 * q[axis];
    flux
}

fn state(q: &Unknowns) -> State {
    State { velocity: [q[0], q[1], q[2]], k: q[K], omega: q[OMEGA] }
}

fn unknowns(state: &State, p: f64) -> Unknowns {
    let [u, v, w] = state.velocity;
    [u, v, w, p, state.k, state.omega]
}

fn dense(jacobian: &FluxJacobian, axis: usize) -> Dense {
    let mut entries = vec![0.0; MOST * MOST];
    let mut block = Block { entries: &mut entries, row: MOST, first: 0, unknowns: MOST };
    block.add_flux(1.0, axis, jacobian);
    std::array::from_fn(|i| std::array::from_fn(|j| entries[i * MOST + j]))
}

fn product(a: &Dense, b: &Dense) -> Dense {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..MOST).map(|l| a[i][l] * b[l][j]).sum()))
}

fn times(a: &Dense, x: &Unknowns) -> Unknowns {
    a.map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum())
}

fn combined(f: f64, a: &Dense, g: f64, b: &Dense) -> Dense {
    std::array::from_fn(|i| std::array::from_fn(|j| f * a[i][j] + g * b[i][j]))
}

fn distance(a: &Dense, b: &Dense) -> f64 {
    a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Gauss-Jordan elimination with row exchanges.
fn inverse(a: &Dense) -> Dense {
    let mut a = *a;
    let mut b: Dense = std::array::from_fn(|i| std::array::from_fn(|j| f64::from(i == j)));
    for c in 0..MOST {
        let pivot = (c..MOST).max_by(|&i, &j| a[i][c].abs().total_cmp(&a[j][c].abs())).unwrap();
        a.swap(c, pivot);
        b.swap(c, pivot);
        let d = a[c][c];
        a[c] = a[c].map(|v| v / d);
        b[c] = b[c].map(|v| v / d);
        for i in (0..MOST).filter(|&i| i != c) {
            let f = a[i][c];
            for j in 0..MOST {
                a[i][j] -= f * a[c][j];
                b[i][j] -= f * b[c][j];
            }
        }
    }
    b
}

/// `|A| = A sign(A)` with Newton's iteration for the matrix sign (Roberts 1980).
fn modulus(a: &Dense) -> Dense {
    let mut sign = *a;
    for _ in 0..60 {
        sign = combined(0.5, &sign, 0.5, &inverse(&sign));
    }
    product(a, &sign)
}

const STATES: [Unknowns; 4] = [
    [0.8, 0.3, -0.4, 0.1, 0.02, 3.0],
    [-0.7, 1.9, 0.25, -0.3, 0.005, 0.4],
    [0.15, -0.2, -2.5, 2.0, 0.1, 7.0],
    [1.0, 0.1, 0.1, 0.0, 0.0, 1.0],
];

#[test]
fn jacobians_are_finite_differences_of_the_flux() {
    for q in STATES {
        for axis in 0..3 {
            let a = dense(&FluxJacobian::new(&state(&q), axis), axis);
            for j in 0..MOST {
                // exact but for rounding: the flux is quadratic
                let (mut above, mut below) = (q, q);
                above[j] += 0.5;
                below[j] -= 0.5;
                let (above, below) = (flux(&above, axis), flux(&below, axis));
                for i in 0..MOST {
                    let slope = above[i] - below[i];
                    assert!((a[i][j] - slope).abs() < 1e-14, "{axis} {i} {j}: {slope}");
                }
            }
        }
    }
}

#[test]
fn one_jacobian_is_as_written_down() {
    // U = 3/4 and c = 5/4, so A+ = 3/4 I + 4/5 B + 4/25 B^2
    let q = state(&[0.75, 0.5, 0.0, 9.0, 0.25, 2.0]);
    let plus = dense(&FluxJacobian::split(&q, 0, 1.0), 0);
    let expected = [
        [1.6, 0.0, 0.0, 0.8, 0.0, 0.0],
        [0.46, 0.75, 0.0, 0.08, 0.0, 0.0],
        [0.0, 0.0, 0.75, 0.0, 0.0, 0.0],
        [0.8, 0.0, 0.0, 0.4, 0.0, 0.0],
        [0.23, 0.0, 0.0, 0.04, 0.75, 0.0],
        [1.84, 0.0, 0.0, 0.32, 0.0, 0.75],
    ];
    assert!(distance(&plus, &expected) < 1e-15, "{plus:?}");
}

#[test]
fn the_split_is_that_of_the_matrix_sign() {
    for q in STATES {
        for axis in 0..3 {
            let q = state(&q);
            let [a, plus, minus] = [
                FluxJacobian::new(&q, axis),
                FluxJacobian::split(&q, axis, 1.0),
                FluxJacobian::split(&q, axis, -1.0),
            ]
            .map(|jacobian| dense(&jacobian, axis));
            assert!(distance(&combined(1.0, &plus, -1.0, &minus), &modulus(&a)) < 1e-12);
            assert!(distance(&combined(1.0, &plus, 1.0, &minus), &a) < 1e-14);
            // what goes one way does not go the other
            assert!(distance(&product(&plus, &minus), &[[0.0; MOST]; MOST]) < 1e-14);
        }
    }
}

fn block(a: &Csr, n: usize, row: usize, column: usize) -> Vec<f64> {
    let entry = |e: usize| a.get(row * n + e / n, column * n + e % n).unwrap();
    (0..n * n).map(entry).collect()
}

#[test]
fn blocks_couple_a_cell_to_its_six_neighbours() {
    for n in [4, 6] {
        let a = matrix(&format!("3x4x2,n={n}"));
        let blocks = 24 + 2 * (2 * 8 + 3 * 6 + 12);
        assert_eq!((a.rows(), a.nnz()), (24 * n, n * n * blocks));
        // cell (1, 2, 0) is number 7: itself, x, y, and z above
        let columns: Vec<u32> =
            [4, 6, 7, 8, 10, 19].iter().flat_map(|&c| c * n as u32..(c + 1) * n as u32).collect();
        for i in 0..n {
            assert_eq!(a.row(7 * n + i).0, columns);
        }
    }
}

#[test]
fn couplings_are_upwind_fluxes() {
    let size = [3, 4, 3];
    let channel = Channel::new(size, 10.0, 395.0);
    let a = matrix("3x4x3,seed=3");
    let number = |[x, y, z]: [usize; 3]| x + 3 * (y + 4 * z);
    let here = [1_usize; 3];
    for (axis, step) in [(0, 1_i64), (0, -1), (2, 1), (2, -1)] {
        let mut there = here;
        there[axis] = there[axis].checked_add_signed(step as isize).unwrap();
        let coupling = block(&a, MOST, number(here), number(there));
        let coupling: Dense = std::array::from_fn(|i| std::array::from_fn(|j| coupling[6 * i + j]));
        // Roe's flux F = (F(q) + F(q')) / 2 - |A| (q' - q) / 2 less F(q)
        let [q, other] = [here, there].map(|cell| channel.state(mix(3), cell));
        let (from, to) = (unknowns(&q, 0.2), unknowns(&other, -0.1));
        let change: Unknowns = std::array::from_fn(|i| to[i] - from[i]);
        let outwards = flux(&from, axis).map(|f| f * step as f64);
        let inwards = flux(&to, axis).map(|f| f * step as f64);
        let mean = dense(&FluxJacobian::new(&q.mean(&other), axis), axis);
        let upwind = times(&modulus(&mean), &change);
        let found = times(&coupling, &change);
        for i in 0..MOST {
            let rise = 0.5 * (inwards[i] - outwards[i] - upwind[i]) * channel.area(1, axis);
            assert!((found[i] - rise).abs() < 1e-13 * (1.0 + rise.abs()), "{axis} {step} {i}");
        }
    }
}

#[test]
fn what_leaves_a_cell_enters_its_neighbours() {
    let channel = Channel::new([3; 3], 5.0, 180.0);
    let a = matrix("3,seed=11,cfl=5,retau=180");
    let q = channel.state(mix(11), [1; 3]);
    let layer = channel.layers[1];
    let areas = [0, 1, 2].map(|axis| channel.area(1, axis));
    let volume = layer.height * areas[Y];
    let waves: f64 =
        (0..3).map(|d| (q.velocity[d].abs() + q.velocity[d].hypot(1.0)) * areas[d]).sum();
    let diffusion = 4.0 * (channel.viscosity + q.k / q.omega) * areas[Y] / layer.height;
    // the middle cell, number 13: the step in time and destruction are left of its columns
    for j in 0..MOST {
        for i in 0..MOST {
            let column: f64 =
                (0..27).filter_map(|cell| a.get(cell * MOST + i, 13 * MOST + j)).sum();
            let kept = match (i, j) {
                (K, K) => 0.09 * q.omega * volume,
                (K, OMEGA) => 0.09 * q.k * volume,
                (OMEGA, OMEGA) => 0.15 * q.omega * volume,
                _ => 0.0,
            } + if i == j { (waves + diffusion) / 5.0 } else { 0.0 };
            assert!((column - kept).abs() < 1e-13, "{i} {j}: {column} and not {kept}");
        }
    }
}

#[test]
fn the_mean_flow_is_that_of_a_channel() {
    // linear at the wall, logarithmic above it
    assert!((reichardt(0.1) - 0.1).abs() < 1e-3);
    assert!((reichardt(100.0) - (100.0_f64.ln() / 0.41 + 5.5)).abs() < 0.3);
    // Moser et al. give 20.1 at the centre of the channel at 395 (392 measured)
    assert!((reichardt(395.0) - 20.1).abs() < 0.5);
    // nut grows as 0.426 y in wall units near the wall of a fast flow, and as y^4 at it
    assert!((cess(0.02, 1e5) / (0.426 * 2000.0) - 1.0).abs() < 0.05);
    assert!((cess(2e-5, 395.0) / cess(1e-5, 395.0) - 16.0).abs() < 0.05);

    let channel = Channel::new([2, 97, 2], 10.0, 395.0);
    let height: f64 = channel.layers.iter().map(|l| l.height).sum();
    assert!((height - 2.0).abs() < 1e-14);
    // the first cell lies within a wall unit, the middle cell is the largest and the fastest
    assert!(channel.layers[0].height * 395.0 < 1.0);
    for j in 1..=48 {
        let (below, here, mirrored) =
            (channel.layers[j - 1], channel.layers[j], channel.layers[96 - j]);
        assert!(here.height > below.height && here.u > below.u);
        assert!((here.u - mirrored.u).abs() < 1e-12);
    }
    // the velocity at the centre line is the unit
    assert!((channel.layers[48].u - 1.0).abs() < 1e-12);
    // turbulence: at most a few squares of the friction velocity
    let most = channel.layers.iter().map(|l| l.k).fold(0.0, f64::max);
    let friction = 1.0 / reichardt(395.0);
    assert!((1.0..4.0).contains(&(most / (friction * friction))), "{most}");
}

#[test]
fn fluctuations_have_the_variance_of_the_turbulence() {
    let channel = Channel::new([40, 2, 40], 10.0, 395.0);
    let k = channel.layers[0].k;
    let mut sums = [0.0; 3];
    for cell in 0..1600 {
        let q = channel.state(mix(1), [cell % 40, 0, cell / 40]);
        for d in 0..3 {
            let mean = if d == 0 { channel.layers[0].u } else { 0.0 };
            sums[d] += (q.velocity[d] - mean).powi(2) / 1600.0;
        }
        assert!((q.k / k - 1.0).abs() <= 0.25 && q.k != k);
    }
    for variance in sums {
        assert!((variance / (2.0 * k / 3.0) - 1.0).abs() < 0.1, "{variance}");
    }
}

#[test]
fn larger_blocks_are_stacked() {
    assert_eq!(
        [4, 6, 8, 10, 12].map(stack),
        [vec![4], vec![6], vec![4, 4], vec![4, 6], vec![6, 6]]
    );
    for n in (4..=32).step_by(2) {
        let systems = stack(n);
        assert_eq!(systems.iter().sum::<usize>(), n);
        assert!(systems.iter().all(|s| [4, 6].contains(s)));
    }
    let (a, four, six) =
        (matrix("2x3x2,n=10,seed=5"), matrix("2x3x2,n=4,seed=5"), matrix("2x3x2,seed=6"));
    let blocks = 12 + 2 * (6 + 8 + 6);
    assert_eq!((a.rows(), a.nnz()), (120, 100 * blocks));
    for i in 0..120 {
        let (cols, values) = a.row(i);
        for (&j, &value) in cols.iter().zip(values) {
            let ((row, r), (col, c)) = ((i / 10, i % 10), (j as usize / 10, j as usize % 10));
            let expected = match (r < 4, c < 4) {
                (true, true) => four.get(4 * row + r, 4 * col + c).unwrap(),
                (false, false) => six.get(6 * row + r - 4, 6 * col + c - 4).unwrap(),
                _ => 0.0,
            };
            assert_eq!(value, expected, "{i} {j}");
        }
    }
}

#[test]
fn the_seed_decides_the_values() {
    assert_eq!(matrix("3"), matrix("3,n=6,seed=1,cfl=10,retau=395"));
    assert_ne!(matrix("3"), matrix("3,seed=2"));
    // in pieces on many threads as on one
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let spec = "30x20x10,n=4";
    assert_eq!(one.install(|| matrix(spec)), matrix(spec));
}

#[test]
fn bad_arguments_are_named() {
    assert_eq!(error("1x4x4"), "`channel3d`: 1 cell in x: at least 2 are needed");
    assert_eq!(error("4x4x1"), "`channel3d`: 1 cell in z: at least 2 are needed");
    assert_eq!(error("4x4"), "`channel3d`: `4x4` has 2 directions, not 3");
    let whole = "is not a whole number from";
    assert_eq!(error("4,n=2"), format!("`channel3d`: `n=2` {whole} 4 to 32"));
    assert_eq!(error("4,n=34"), format!("`channel3d`: `n=34` {whole} 4 to 32"));
    assert_eq!(error("4,n=7"), "`channel3d`: `n=7` is no sum of fours and sixes");
    assert_eq!(
        error("4,seed=0.5"),
        format!("`channel3d`: `seed=0.5` {whole} 0 to 9007199254740992")
    );
    assert_eq!(error("4,cfl=0"), "`channel3d`: `cfl=0` is outside 0.001 to 1000000");
    assert_eq!(error("4,retau=20"), "`channel3d`: `retau=20` is outside 100 to 1000000");
    assert_eq!(error("1200,n=6"), "10368000000 unknowns: the limit is 4294967295");
    assert_eq!(error("500,n=4"), "13976000000 entries: the limit is 4294967295");
}
