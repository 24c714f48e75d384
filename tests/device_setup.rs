//! Patterns and schedules that the device makes, against the host's: on a GPU, and on the host by
//! `tests/emulator`, which runs the kernels' own text without one and needs g++.
#![cfg(feature = "cuda")]

#[path = "common/gpu.rs"]
mod gpu;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use bilu_bench::base::threads::Threads;
use bilu_bench::case::{FactorPrecision, LevelRule, ReadAs, Trisolve};
use bilu_bench::compute::Backend;
use bilu_bench::compute::cpu::Cpu;
use bilu_bench::compute::cuda::{Cuda, Limits};
use bilu_bench::matrix::Csr;
use bilu_bench::matrix::pattern::block_pattern;
use bilu_bench::problem;
use bilu_bench::symbolic::{BoxFill, FillPattern, Schedule, Stencil, iluk};
use gpu::gpu;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn matrix(rows: &[BTreeSet<usize>], b: usize) -> Csr {
    let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
    for row in rows {
        col_ind.extend(row.iter().map(|&j| j as u32));
        row_ptr.push(col_ind.len() as u32);
    }
    let values = (0..col_ind.len()).map(|v| 1.0 + v as f64).collect();
    Csr::new(rows.len(), rows.len(), row_ptr, col_ind, values).unwrap().in_blocks(b)
}

/// About `per_row` entries in a row, some diagonals missing, and dense rows and columns.
fn random(n: usize, b: usize, per_row: usize, dense: usize, rng: &mut ChaCha8Rng) -> Csr {
    let mut rows = vec![BTreeSet::new(); n];
    for i in 0..n {
        if rng.random_range(0..8) > 0 {
            rows[i].insert(i);
        }
        for _ in 0..rng.random_range(0..=per_row) {
            rows[i].insert(rng.random_range(0..n));
        }
    }
    for _ in 0..dense {
        // rows and columns, so that diagonals are filled
        let dense = rng.random_range(0..n);
        rows[dense].extend((0..n).filter(|j| j % 5 != 2));
        for i in (0..n).step_by(7) {
            rows[i].insert(dense);
        }
    }
    matrix(&rows, b)
}

/// Blocks of `a` as they are stored for products.
fn blocks(a: &Csr) -> (Vec<u32>, Vec<u32>, Vec<f64>) {
    let (pattern, b) = (block_pattern(a), a.block_size());
    let mut values = vec![0.0; pattern.entries() * b * b];
    for r in 0..a.rows() {
        let (columns, numbers) = a.row(r);
        for (&j, &v) in columns.iter().zip(numbers) {
            let (i, j) = (r / b, j as usize);
            let within = pattern.row(i).binary_search(&((j / b) as u32)).unwrap();
            values[(pattern.row_ptr[i] as usize + within) * b * b + j % b * b + r % b] = v;
        }
    }
    (pattern.row_ptr.into_owned(), pattern.col_ind.into_owned(), values)
}

/// Compares what the device makes of a matrix with what the host makes.
fn compare(k: &Cuda, name: &str, a: &Csr, fills: RangeInclusive<usize>) {
    assert!(k.in_blocks(a).unwrap() == blocks(a), "{name}: other blocks");
    for fill in fills {
        let what = format!("{name}, b {}, k {fill}", a.block_size());
        let want = iluk(&block_pattern(a), fill, LevelRule::Min, usize::MAX).unwrap();
        let entries = want.lower.entries() + want.upper.entries();
        if entries > 0 {
            let refused = k.filled(a, fill, entries - 1).unwrap().unwrap_err();
            assert_eq!(refused.entries, entries, "{what}: {refused:?}");
        }
        // exactly as many as there may be
        let got = k.filled(a, fill, entries).unwrap().unwrap();
        assert!(*got == want, "{what}: another pattern");
        let schedules = [Schedule::lower(&want), Schedule::upper(&want)];
        assert!(k.schedules(&got).unwrap() == schedules, "{what}: another schedule");
    }
}

/// `(L D U')^-1 r` with factors of `a` on a pattern.
fn solved<K: Backend>(
    k: &K,
    (variant, precision): (Trisolve, FactorPrecision),
    pattern: &Arc<FillPattern>,
    (a, r): (&Csr, &[f64]),
) -> Vec<f64> {
    let mut ilu = k.ilu_analyse(pattern, variant, precision).unwrap();
    k.ilu_factor(&mut ilu, a, 0.0).unwrap();
    let (mut x, mut z) = (k.vector(r.len()).unwrap(), k.vector(r.len()).unwrap());
    k.upload(r, &mut x);
    k.ilu_apply(&ilu, &x, &mut z);
    let mut solution = vec![0.0; r.len()];
    k.download(&z, &mut solution);
    k.check().unwrap();
    solution
}

/// Factorises on patterns and with schedules that the device has made, in one thread block: the emulator runs one
/// after the other. Block rows have a diagonal and `per_row` others, or fewer.
fn compare_solves(k: &Cuda, [n, per_row, b]: [usize; 3], fills: &[usize], rng: &mut ChaCha8Rng) {
    k.gpu().limit(Limits { resident: 1, ..Limits::NONE });
    for &fill in fills {
        let mut rows = vec![BTreeSet::new(); n];
        for (i, row) in rows.iter_mut().enumerate() {
            row.insert(i);
            row.extend((0..per_row).map(|_| rng.random_range(0..n)));
        }
        let rows: Vec<_> = (0..n * b)
            .map(|i| rows[i / b].iter().flat_map(|&j| j * b..(j + 1) * b).collect::<BTreeSet<_>>())
            .collect();
        let mut a = matrix(&rows, b);
        // the diagonal outweighs the others
        let columns = a.col_ind().to_vec();
        let own = rows.iter().enumerate().flat_map(|(i, row)| row.iter().map(move |_| i));
        let diagonal = (per_row * b) as f64 + 3.0;
        for ((v, i), j) in a.values_mut().iter_mut().zip(own).zip(columns) {
            *v = if i == j as usize { diagonal } else { rng.random_range(-1.0..1.0) };
        }
        let r: Vec<f64> = (0..a.rows()).map(|_| rng.random_range(-1.0..1.0)).collect();
        let p = k.filled(&a, fill, usize::MAX).unwrap().unwrap();
        // rounded alike on both, and all arithmetic is in float64
        let solutions = FactorPrecision::ON_GPU.map(|precision| {
            let got = solved(k, (Trisolve::SYNCFREE, precision), &p, (&a, &r));
            let want = solved(&Cpu::sequential(), (Trisolve::AUTO, precision), &p, (&a, &r));
            let worst = got.iter().zip(&want).map(|(g, w)| (g - w).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-13, "{n} rows, b {b}, k {fill}, {precision:?}: {worst:e}");
            got
        });
        assert!(solutions[0] != solutions[1] && solutions[1] != solutions[2], "k {fill}");
    }
    k.gpu().limit(Limits::NONE);
}

/// Compares the rows of a box that the device writes, and their schedules, with the host's.
fn compare_box(k: &Cuda, name: &str, a: &Csr, fill: usize) {
    for rule in [LevelRule::Min, LevelRule::Overwrite] {
        let b = a.block_size();
        let what = format!("{name}, b {b}, k {fill}, {rule:?}");
        let want = iluk(&block_pattern(a), fill, rule, usize::MAX).unwrap();
        let told = BoxFill::of_matrix(Threads::One, a, fill, rule).expect(&what);
        compare_plans(k, &what, b, || k.of_box(a, told.clone()).unwrap());
        let got = k.of_box(a, told).unwrap();
        let [lower, upper] = k.rows_made(&got).unwrap();
        assert!(
            want.lower == lower.into() && want.upper == upper.into(),
            "{what}: another pattern"
        );
        assert!(*got == want, "{what}: another pattern on the host");
        let schedules = [Schedule::lower(&want), Schedule::upper(&want)];
        assert!(k.schedules(&got).unwrap() == schedules, "{what}: another schedule");
    }
}

/// Compares plans of solves in parts on patterns that `make` makes, as shared memory has much or little room for rows.
fn compare_plans(k: &Cuda, what: &str, b: usize, make: impl Fn() -> Arc<FillPattern>) {
    for slots in [2000, 9] {
        k.gpu().limit(Limits { shared_bytes: 8 * b * slots, resident: 5, ..Limits::NONE });
        let [device, host] = k.plans_of_parts(&make()).unwrap();
        let differs = device.iter().zip(&host).position(|(d, h)| d != h);
        assert_eq!((device.len(), differs), (24, None), "{what}, {slots} slots");
    }
    k.gpu().limit(Limits::NONE);
    let [device, host] = k.plans_of_slices(&make()).unwrap();
    let differs = device.iter().zip(&host).position(|(d, h)| d != h);
    assert_eq!((device.len(), host.len(), differs), (13, 13, None), "{what}, slices");
}

/// Compares the order of a march over a box that the device makes with its definition.
fn compare_march(k: &Cuda, a: &Csr, fill: usize, rule: LevelRule) {
    let pattern = iluk(&block_pattern(a), fill, rule, usize::MAX).unwrap();
    let stencil = Stencil::of_lower(pattern.lower.view()).expect("a box");
    let (march, [nx, ny, nz]) = (stencil.shortest_march(), stencil.extents);
    let levels = march.levels(stencil.extents);
    let mut rows = vec![Vec::new(); levels];
    for i in 0..nx * ny * nz {
        let (x, y, z) = (i % nx, i / nx % ny, i / nx / ny);
        let skew = march.skew((y + march.shear * z) as i32, z as i32);
        rows[x + skew as usize].push(i as u32);
    }
    let mut level_ptr = vec![0];
    level_ptr.extend(rows.iter().scan(0, |end, rows| {
        *end += rows.len() as u32;
        Some(*end)
    }));
    let want = Schedule { rows: rows.concat(), level_ptr };
    assert!(k.order_of_march(&stencil).unwrap() == want, "{nx} x {ny} x {nz}, k {fill}, {rule:?}");
}

#[test]
fn a_device_makes_what_the_host_makes() {
    let Some(k) = gpu(Cuda::ours()) else { return };
    let seed = std::env::var("BILU_BENCH_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    println!("seed {seed}");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for (n, b, per_row, dense) in [
        (1, 1, 0, 0),
        (37, 1, 2, 0),
        (257, 1, 2, 1),
        (600, 1, 1, 0),
        // more long rows than thread blocks for them
        (400, 1, 4, 0),
        (300, 3, 2, 1),
        (76, 4, 1, 0),
        (1100, 5, 1, 2),
    ] {
        let a = random(n, b, per_row, dense, &mut rng);
        let name = format!("random {n}, {per_row} in a row, {dense} dense");
        compare(&k, &name, &a, 0..=4);
        for fill in 0..2 {
            let p = Arc::new(iluk(&block_pattern(&a), fill, LevelRule::Min, usize::MAX).unwrap());
            compare_plans(&k, &format!("{name}, k {fill}"), b, || Arc::clone(&p));
        }
    }
    for (spec, b) in [("poisson3d:7x5x9", 1), ("poisson3d:8x6x3", 2), ("poisson3d:23x9x1", 1)] {
        let a = problem::load(spec, ReadAs::Expanded).unwrap().matrix;
        compare(&k, spec, &a.in_blocks(b), 0..=4);
        for fill in 0..3 {
            let p = iluk(&block_pattern(&a.in_blocks(b)), fill, LevelRule::Min, usize::MAX);
            let p = Arc::new(p.unwrap());
            compare_plans(&k, &format!("{spec}, k {fill}"), b, || Arc::clone(&p));
        }
    }
    for (spec, b, fill) in [
        ("poisson3d:13x14x16", 1, 0),
        ("poisson3d:16x15x17", 1, 1),
        ("poisson3d:22x21x23", 1, 2),
        ("poisson3d:32x16x17", 2, 1),
        ("poisson3d:33x40x1", 1, 1),
    ] {
        let a = problem::load(spec, ReadAs::Expanded).unwrap().matrix;
        compare_box(&k, spec, &a.in_blocks(b), fill);
    }
    for (spec, fill, rule) in [
        ("poisson3d:13x14x16", 0, LevelRule::Min),
        ("poisson3d:16x15x17", 2, LevelRule::Min),
        ("poisson3d:16x15x17", 2, LevelRule::Overwrite),
    ] {
        compare_march(&k, &problem::load(spec, ReadAs::Expanded).unwrap().matrix, fill, rule);
    }
    // more levels than a digit has values
    let chain: Vec<_> = (0..700).map(|i: usize| BTreeSet::from([i.saturating_sub(1), i])).collect();
    compare_solves(&k, [60, 2, 1], &[0, 1, 3], &mut rng);
    compare(&k, "chain", &matrix(&chain, 1), 0..=1);
}

/// Rows of many updates, which begin before others end.
#[test]
fn long_rows_are_made_as_on_the_host() {
    let Some(k) = gpu(Cuda::ours()) else { return };
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let a = random(90, 1, 9, 1, &mut rng);
    let p = Arc::new(iluk(&block_pattern(&a), 1, LevelRule::Min, usize::MAX).unwrap());
    compare_plans(&k, "long rows", 1, || Arc::clone(&p));
    // nearly full factors
    compare_solves(&k, [220, 9, 1], &[6], &mut rng);
    compare_solves(&k, [120, 8, 1], &[4], &mut rng);
    compare_solves(&k, [60, 8, 2], &[4], &mut rng);
}

/// The tests above in a process whose CUDA driver and compiler are those of `tests/emulator`.
#[test]
fn kernels_on_the_host_make_what_the_host_makes() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/emulator");
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libcuda.so");
    let built = Command::new("g++")
        .args(["-std=c++17", "-O1", "-fPIC", "-shared", "-o"])
        .args([&library, &source.join("driver.cpp")])
        .arg("-ldl")
        .status();
    match built {
        Ok(status) => assert!(status.success(), "tests/emulator/driver.cpp: {status}"),
        Err(e) if std::env::var_os("CI").is_some() => panic!("g++: {e}"),
        Err(e) => return eprintln!("skipped: g++: {e}"),
    }
    for name in ["libnvrtc.so", "libnvrtc-builtins.so"] {
        std::fs::copy(&library, folder.path().join(name)).unwrap();
    }
    let tests = ["a_device_makes_what_the_host_makes", "long_rows_are_made_as_on_the_host"];
    let begun = tests.map(|test| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env("LD_LIBRARY_PATH", folder.path())
            .env("BILU_BENCH_NVRTC_DIR", folder.path())
            .env("BILU_BENCH_EMULATOR", &source)
            .env("BILU_BENCH_CACHE", folder.path().join(test))
            .env("BILU_BENCH_SETUP", "device")
            .env("BILU_BENCH_REQUIRE_GPU", "1")
            .spawn()
            .unwrap()
    });
    let ended = begun.map(|mut test| test.wait().unwrap());
    assert!(ended.iter().all(ExitStatus::success), "{tests:?}: {ended:?}");
}
