//! Every cuSPARSE wrapper against dense arithmetic on the host. Needs a GPU; without one each test
//! says on stderr that it was skipped.

#![allow(unsafe_code, reason = "calls of the CUDA driver")]
#![cfg(feature = "cuda")]

mod common;

use std::rc::Rc;
use std::sync::Arc;

use bilu_bench::compute::cuda::Device;
use bilu_bench::compute::cuda::cusparse::{
    BlockIluVendor, BsrSv2, DevicePattern, Diagonal, FactorFailure, Handle, Ilu02, Policy,
    SolveWithOurFactors, Spmv, SpmvAlgorithm, Spsv, Triangle, version,
};
use bilu_bench::matrix::pattern::{Pattern, PatternView};
use common::blocks::Blocks;
use common::{random_vector, relative_difference};
use cudarc::driver::{CudaSlice, CudaStream};

const BLOCK_SIZES: [usize; 5] = [1, 2, 3, 4, 8];
const TRIANGLES: [Triangle; 2] = [Triangle::Lower, Triangle::Upper];
const DIAGONALS: [Diagonal; 2] = [Diagonal::Unit, Diagonal::Stored];

/// A device with cuSPARSE, or `None` and a note on stderr.
struct Gpu {
    stream: Arc<CudaStream>,
    handle: Rc<Handle>,
}

impl Gpu {
    fn new(test: &str) -> Option<Self> {
        // SAFETY: loading the driver only runs its own initialisers
        let driver = unsafe { cudarc::driver::sys::is_culib_present() };
        let Some(device) = driver.then(|| Device::shared().ok()).flatten() else {
            eprintln!("{test}: skipped: no GPU");
            return None;
        };
        let stream = Arc::clone(device.stream());
        let handle = Handle::new(&device).expect("cuSPARSE is on a machine with a GPU");
        eprintln!("{test}: cuSPARSE {}", handle.version());
        Some(Self { stream, handle })
    }

    fn up(&self, host: &[f64]) -> CudaSlice<f64> {
        if host.is_empty() {
            return self.stream.alloc_zeros(1).expect("memory");
        }
        self.stream.clone_htod(host).expect("a copy to the device")
    }

    fn down(&self, device: &CudaSlice<f64>) -> Vec<f64> {
        let host = self.stream.clone_dtoh(device).expect("a copy to the host");
        self.stream.synchronize().expect("the stream works");
        host
    }

    /// A vector of NaN: whatever is not written shows.
    fn nan(&self, n: usize) -> CudaSlice<f64> {
        self.up(&vec![f64::NAN; n])
    }

    fn pattern(&self, a: &Blocks) -> Rc<DevicePattern> {
        DevicePattern::new(&self.handle, a.b, a.pattern.view()).expect("a pattern")
    }
}

/// Fails, naming the routine, unless all numbers agree to 1e-10 of the largest.
#[track_caller]
fn assert_close(routine: &str, got: &[f64], expected: &[f64]) {
    assert_eq!(got.len(), expected.len(), "{routine}: length");
    if let Some(i) = got.iter().position(|v| !v.is_finite()) {
        panic!("{routine}: number {i} is {}", got[i]);
    }
    let difference = relative_difference(got, expected);
    assert!(difference <= 1e-10, "{routine}: differs by {difference:.1e} of the largest number");
}

/// Block rows: odd, and few enough for dense arithmetic with large blocks.
fn rows(b: usize) -> usize {
    if b > 4 { 151 } else { 257 }
}

#[test]
fn products_of_every_algorithm() {
    let Some(gpu) = Gpu::new("products_of_every_algorithm") else { return };
    for b in BLOCK_SIZES {
        let a = Blocks::random(rows(b), b, 10 + b as u64);
        let (x, y) = (random_vector(a.n, 1), random_vector(a.n, 2));
        let ax = a.product(&x);
        let (alpha, beta) = (-1.5, 0.75);
        let sum: Vec<f64> = ax.iter().zip(&y).map(|(ax, y)| alpha * ax + beta * y).collect();
        let pattern = gpu.pattern(&a);
        let check = |spmv: &Spmv| {
            let routine = format!("{}, b = {b}", spmv.name());
            let x = gpu.up(&x);
            let mut product = gpu.nan(a.n);
            spmv.apply(1.0, &x, 0.0, &mut product).expect(&routine);
            assert_close(&format!("{routine}, beta = 0"), &gpu.down(&product), &ax);
            let mut y = gpu.up(&y);
            spmv.apply(alpha, &x, beta, &mut y).expect(&routine);
            assert_close(&format!("{routine}, alpha and beta"), &gpu.down(&y), &sum);
        };
        let mut worked = 0;
        for &algorithm in SpmvAlgorithm::candidates(b) {
            let values = gpu.up(&a.values());
            match Spmv::with_algorithm(&gpu.handle, &pattern, values, algorithm) {
                Ok(spmv) => {
                    assert_eq!(spmv.name(), algorithm.name());
                    check(&spmv);
                    worked += 1;
                }
                Err(e) => eprintln!("{}, b = {b}: not available: {e}", algorithm.name()),
            }
        }
        assert!(worked > 0, "no product for b = {b}");
        let best = Spmv::new(&gpu.handle, &pattern, gpu.up(&a.values())).expect("a product");
        eprintln!("b = {b}: {}", best.name());
        check(&best);
    }
}

#[test]
fn spsv_solves_updates_and_analyses_again() {
    let Some(gpu) = Gpu::new("spsv_solves_updates_and_analyses_again") else { return };
    let first = Blocks::random(1501, 1, 20);
    let second = Blocks::on(first.pattern.clone(), 1, 99);
    let x = random_vector(first.n, 3);
    let pattern = gpu.pattern(&first);
    for triangle in TRIANGLES {
        for diagonal in DIAGONALS {
            let routine = format!("SpSV, {triangle:?}, {diagonal:?}");
            let mut spsv = Spsv::new(&gpu.handle, &pattern, triangle, diagonal);
            let solve = |spsv: &Spsv, values: &CudaSlice<f64>| {
                let mut y = gpu.nan(first.n);
                spsv.solve(values, &gpu.up(&x), &mut y).expect(&routine);
                gpu.down(&y)
            };
            let one = gpu.up(&first.values());
            spsv.analyse(&one).expect(&routine);
            let expected = first.solve(triangle, diagonal, &x);
            assert_close(&routine, &solve(&spsv, &one), &expected);
            assert_close(&format!("{routine}, second solve"), &solve(&spsv, &one), &expected);

            let two = gpu.up(&second.values());
            spsv.update(&two).expect(&routine);
            let expected = second.solve(triangle, diagonal, &x);
            assert_close(&format!("{routine}, updated"), &solve(&spsv, &two), &expected);

            spsv.analyse(&one).expect(&routine);
            let expected = first.solve(triangle, diagonal, &x);
            assert_close(&format!("{routine}, analysed again"), &solve(&spsv, &one), &expected);
        }
    }
}

#[test]
fn spsv_of_a_diagonal_is_a_copy() {
    let Some(gpu) = Gpu::new("spsv_of_a_diagonal_is_a_copy") else { return };
    let empty = PatternView::new(&[0; 8], &[]);
    let pattern = DevicePattern::new(&gpu.handle, 1, empty).expect("a pattern");
    let mut spsv = Spsv::new(&gpu.handle, &pattern, Triangle::Lower, Diagonal::Unit);
    let (values, x) = (gpu.up(&[]), random_vector(7, 4));
    spsv.analyse(&values).expect("SpSV without entries");
    let mut y = gpu.nan(7);
    spsv.solve(&values, &gpu.up(&x), &mut y).expect("SpSV without entries");
    assert_eq!(gpu.down(&y), x);
}

#[test]
fn bsrsv2_solves_under_both_policies() {
    let Some(gpu) = Gpu::new("bsrsv2_solves_under_both_policies") else { return };
    for b in BLOCK_SIZES.into_iter().filter(|&b| b > 1) {
        let a = Blocks::random(rows(b), b, 30 + b as u64);
        let (pattern, values) = (gpu.pattern(&a), gpu.up(&a.values()));
        let x = random_vector(a.n, 5);
        let on_device = gpu.up(&x);
        for triangle in TRIANGLES {
            for diagonal in DIAGONALS {
                let expected = a.solve(triangle, diagonal, &x);
                for policy in Policy::ALL {
                    let routine =
                        format!("bsrsv2 ({}), {triangle:?}, {diagonal:?}, b = {b}", policy.name());
                    let mut solver = BsrSv2::new(&gpu.handle, &pattern, triangle, diagonal, policy)
                        .expect(&routine);
                    solver.analyse(&values).expect(&routine);
                    let mut y = gpu.nan(a.n);
                    solver.solve(&values, &on_device, &mut y).expect(&routine);
                    assert_close(&routine, &gpu.down(&y), &expected);
                    assert_eq!(solver.zero_pivot(), Ok(None), "{routine}");

                    solver.choose(&values, &on_device, &mut y).expect(&routine);
                    let mut y = gpu.nan(a.n);
                    solver.solve(&values, &on_device, &mut y).expect(&routine);
                    assert_close(&format!("{routine}, chosen"), &gpu.down(&y), &expected);
                }
            }
        }
    }
}

#[test]
fn ilu02_leaves_the_point_factors_and_finds_zero_pivots() {
    let Some(gpu) = Gpu::new("ilu02_leaves_the_point_factors_and_finds_zero_pivots") else {
        return;
    };
    for b in BLOCK_SIZES {
        let a = Blocks::random(rows(b), b, 40 + b as u64);
        let pattern = gpu.pattern(&a);
        let expected = a.ilu().values();
        for policy in Policy::ALL {
            let mut ilu = Ilu02::new(&gpu.handle, &pattern, policy).expect("ilu02");
            let routine = format!("{}, b = {b}", ilu.name());
            let mut values = gpu.up(&a.values());
            assert_eq!(ilu.analyse(&mut values), Ok(None), "{routine}: analysis");
            ilu.start(&mut values).expect(&routine);
            assert_eq!(ilu.zero_pivot(), Ok(None), "{routine}");
            assert_close(&routine, &gpu.down(&values), &expected);

            let mut values = gpu.up(&a.with_zero_pivot(7).values());
            ilu.start(&mut values).expect(&routine);
            assert_eq!(ilu.zero_pivot(), Ok(Some(7)), "{routine}: zero pivot");

            let mut values = gpu.up(&a.values());
            ilu.start(&mut values).expect(&routine);
            assert_eq!(ilu.zero_pivot(), Ok(None), "{routine}: after a zero pivot");
            assert_close(&format!("{routine}, again"), &gpu.down(&values), &expected);
        }
    }
}

#[test]
fn block_ilu_of_the_vendor_applies_its_factors() {
    let Some(gpu) = Gpu::new("block_ilu_of_the_vendor_applies_its_factors") else { return };
    for b in BLOCK_SIZES {
        let first = Blocks::random(rows(b), b, 50 + b as u64);
        let second = Blocks::on(first.pattern.clone(), b, 98);
        let r = random_vector(first.n, 6);
        let expected = |a: &Blocks| {
            let lu = a.ilu();
            let y = lu.solve(Triangle::Lower, Diagonal::Unit, &r);
            lu.solve(Triangle::Upper, Diagonal::Stored, &y)
        };
        let (on_first, on_second) = (expected(&first), expected(&second));
        let mut vendor =
            BlockIluVendor::new(&gpu.handle, b, first.pattern.view()).expect("block ILU");
        let check = |vendor: &BlockIluVendor, when: &str, expected: &[f64]| {
            let routine = format!("block ILU, b = {b}, {}, {when}", vendor.name());
            let mut z = gpu.nan(first.n);
            vendor.apply(&gpu.up(&r), &mut z).expect(&routine);
            assert_close(&routine, &gpu.down(&z), expected);
        };
        assert_eq!(vendor.analyse(), Ok(()), "block ILU, b = {b}: analysis");
        assert_eq!(vendor.factor(&gpu.up(&first.values())), Ok(()), "block ILU, b = {b}");
        // an hour is beyond any of these
        assert!((1e-7..3600.0).contains(&vendor.factor_seconds()), "{} s", vendor.factor_seconds());
        check(&vendor, "first matrix", &on_first);
        assert_eq!(vendor.factor(&gpu.up(&second.values())), Ok(()), "block ILU, b = {b}");
        check(&vendor, "second matrix", &on_second);
        assert_eq!(vendor.choose(&gpu.up(&first.values())), Ok(()), "block ILU, b = {b}: choice");
        eprintln!("b = {b}: {}", vendor.name());
        check(&vendor, "chosen", &on_first);
        assert_eq!(vendor.analyse(), Ok(()), "block ILU, b = {b}: analysis again");
        assert_eq!(vendor.factor(&gpu.up(&second.values())), Ok(()), "block ILU, b = {b}");
        check(&vendor, "analysed again", &on_second);

        let singular = gpu.up(&first.with_zero_pivot(7).values());
        let answer = vendor.factor(&singular);
        assert_eq!(answer, Err(FactorFailure::ZeroPivot(7)), "block ILU, b = {b}: zero pivot");
        assert_eq!(vendor.factor(&gpu.up(&first.values())), Ok(()), "block ILU, b = {b}");
        check(&vendor, "after a zero pivot", &on_first);
    }
}

#[test]
fn block_ilu_of_the_vendor_reports_a_missing_diagonal() {
    let Some(gpu) = Gpu::new("block_ilu_of_the_vendor_reports_a_missing_diagonal") else {
        return;
    };
    for b in [1, 3] {
        let pattern = PatternView::new(&[0, 2, 4, 5, 6], &[0, 3, 0, 1, 1, 3]);
        let mut vendor = BlockIluVendor::new(&gpu.handle, b, pattern).expect("block ILU");
        let answer = vendor.analyse();
        assert_eq!(answer, Err(FactorFailure::ZeroPivot(2)), "block ILU, b = {b}: structural zero");
    }
}

#[test]
fn our_factors_are_solved_with() {
    let Some(gpu) = Gpu::new("our_factors_are_solved_with") else { return };
    for b in BLOCK_SIZES {
        let first = Blocks::random(rows(b), b, 60 + b as u64);
        let second = Blocks::on(first.pattern.clone(), b, 97);
        let factors = |a: &Blocks| TRIANGLES.map(|triangle| a.our_factor(triangle));
        let x = random_vector(first.n, 7);
        let on_device = gpu.up(&x);
        let [lower, upper] = factors(&first);
        let mut solver =
            SolveWithOurFactors::new(&gpu.handle, b, lower.pattern.view(), upper.pattern.view())
                .expect("our factors");
        let check = |solver: &SolveWithOurFactors, when: &str, [lower, upper]: &[Blocks; 2]| {
            let routine = format!("our factors, b = {b}, {}, {when}", solver.name());
            let mut y = gpu.nan(first.n);
            solver.solve_lower(&on_device, &mut y).expect(&routine);
            let expected = lower.solve(Triangle::Lower, Diagonal::Unit, &x);
            assert_close(&format!("{routine}, L"), &gpu.down(&y), &expected);
            let mut y = gpu.nan(first.n);
            solver.solve_upper(&on_device, &mut y).expect(&routine);
            let expected = upper.solve(Triangle::Upper, Diagonal::Unit, &x);
            assert_close(&format!("{routine}, U'"), &gpu.down(&y), &expected);
        };
        let both = [lower, upper];
        let [l, u] = both.each_ref().map(|factor| gpu.up(&factor.values()));
        solver.analyse(l, u).expect("analysis of our factors");
        check(&solver, "first matrix", &both);
        solver.choose().expect("choice for our factors");
        check(&solver, "chosen", &both);
        let both = factors(&second);
        let [l, u] = both.each_ref().map(|factor| gpu.up(&factor.values()));
        solver.analyse(l, u).expect("new values of our factors");
        check(&solver, "second matrix", &both);
    }
}

#[test]
fn wrong_patterns_and_layouts_are_refused() {
    let Some(gpu) = Gpu::new("wrong_patterns_and_layouts_are_refused") else { return };
    assert_eq!(version().as_deref(), Ok(gpu.handle.version()));
    let unsorted = PatternView::new(&[0, 2, 3], &[1, 0, 1]);
    let error = DevicePattern::new(&gpu.handle, 1, unsorted).err().expect("unsorted columns");
    assert_eq!(error.message(), "pattern for cuSPARSE: columns of row 0 do not increase");
    let strict = PatternView::new(&[0, 0, 1], &[0]);
    let error =
        SolveWithOurFactors::new(&gpu.handle, 2, strict, strict).err().expect("no diagonal");
    assert_eq!(error.message(), "factor for cuSPARSE: row 0 must end with its diagonal block");
}

/// The host's side of this file, which the other tests trust; needs no GPU.
#[test]
fn the_host_reference_solves_what_it_factorises() {
    for b in [1, 3] {
        // a full pattern: the incomplete factors are the complete ones
        let rows = 5;
        let pattern = Pattern::new(
            (0..=rows).map(|i| i * rows).collect::<Vec<_>>(),
            (0..rows * rows).map(|e| e % rows).collect::<Vec<_>>(),
        );
        let a = Blocks::on(pattern, b, 70);
        let x = random_vector(a.n, 8);
        let lu = a.ilu();
        let y = lu.solve(Triangle::Lower, Diagonal::Unit, &a.product(&x));
        assert_close("host", &lu.solve(Triangle::Upper, Diagonal::Stored, &y), &x);
        // block after block, each column by column
        let values = a.values();
        let last = a.n - 1;
        assert_eq!((values[0], values[values.len() - 1]), (a.at(0, 0), a.at(last, last)));
        if b == 3 {
            assert_eq!((values[1], values[9]), (a.at(1, 0), a.at(0, 3)));
        }
    }
}
