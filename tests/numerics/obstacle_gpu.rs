//! Sweeps of the obstacle problem on GPUs against one CPU thread, bit for bit. Skipped, visibly, where
//! there is no GPU; `BILU_BENCH_REQUIRE_GPU=1` makes that a failure.

use std::sync::atomic::AtomicUsize;

use bilu_bench::base::status::Status;
use bilu_bench::compute::cuda::Device;
use bilu_bench::obstacle::solve::{Limits, Outcome};
use bilu_bench::obstacle::threads::{self, Ran};
use bilu_bench::obstacle::{Case, Method, Mode, Problem, Split, StopOn, cuda, reference};
use rayon::prelude::*;

/// Whether there are as many GPUs. Where one has to be there, that it is not fails the test.
fn has_gpus(count: usize) -> bool {
    let here: Result<(), String> = match Device::shared() {
        Ok(_) if count == 1 => return true,
        Ok(_) => Err(format!("fewer than {count} GPUs")),
        Err(e) if std::env::var_os("BILU_BENCH_REQUIRE_GPU").is_some() => panic!("{e}"),
        Err(e) => Err(e.to_string()),
    };
    // NVIDIA's variable is how a job says how many there are
    let many = std::env::var("BILU_BENCH_GPUS").ok().and_then(|n| n.parse::<usize>().ok());
    if here.is_err() && many.is_some_and(|n| n >= count) {
        return true;
    }
    eprintln!("skipped: {}", here.unwrap_err());
    false
}

fn on_cpu(case: &Case) -> Ran {
    let case = Case { backend: "cpu".into(), sweeps_per_pass: 1, split: None, ..case.clone() };
    let problem = Problem::new(&case).unwrap();
    let interrupts = AtomicUsize::new(0);
    let limits = Limits { interrupts: &interrupts, deadline: None };
    threads::run(&case, &problem, Split::WHOLE, limits, true).unwrap()
}

fn on_gpu(case: &Case) -> Ran {
    let case = Case { backend: "cuda".into(), ..case.clone() };
    case.check().unwrap();
    let interrupts = AtomicUsize::new(0);
    let limits = Limits { interrupts: &interrupts, deadline: None };
    cuda::run(&case, limits, true).unwrap().0
}

/// That both are the same solution after the same sweeps.
fn same(case: &Case, gpu: &Ran, cpu: &Ran) {
    let (g, c): (&Outcome, &Outcome) = (&gpu.outcome, &cpu.outcome);
    assert_eq!(g.status, c.status, "{case:?}");
    assert_eq!(g.sweeps, c.sweeps, "{case:?}");
    assert_eq!(g.contact, c.contact, "{case:?}");
    let (gpu, cpu) = (gpu.solution.as_ref().unwrap(), cpu.solution.as_ref().unwrap());
    let off = gpu.iter().zip(cpu).position(|(a, b)| a != b);
    let values = off.map(|at| (at, gpu[at], cpu[at]));
    assert_eq!(values, None, "{case:?}");
    assert_eq!(g.fingerprint, c.fingerprint, "{case:?}");
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-10 * b.abs();
    assert!(near(g.step_norm, c.step_norm), "{} {} {case:?}", g.step_norm, c.step_norm);
    assert!(near(g.complementarity, c.complementarity), "{g:?} {c:?} {case:?}");
}

/// That the GPU does in each case what the CPU does, which has a core for each case.
fn all_same(cases: &[Case]) {
    let expected: Vec<Ran> = cases.par_iter().map(on_cpu).collect();
    for (case, cpu) in cases.iter().zip(&expected) {
        same(case, &on_gpu(case), cpu);
    }
}

/// Sizes around those of tiles, lines and pairs.
const SIZES: [usize; 7] = [1, 2, 7, 33, 41, 64, 83];

#[test]
fn every_method_is_the_cpus_bit_for_bit() {
    if !has_gpus(1) {
        return;
    }
    let mut cases = Vec::new();
    for method in [Method::Jacobi, Method::RedBlackY, Method::RedBlack] {
        for m in SIZES {
            for (obstacle, convection) in [("zero", "0:0:0"), ("hill:0.002", "0.3:-0.2:0.1")] {
                cases.push(Case {
                    m,
                    method,
                    obstacle: obstacle.into(),
                    convection: convection.into(),
                    epsilon: 1e-6,
                    ..Case::default()
                });
            }
        }
    }
    all_same(&cases);
}

#[test]
fn other_norms_criteria_and_looks_stop_where_the_cpu_does() {
    if !has_gpus(1) {
        return;
    }
    let mut cases = Vec::new();
    for method in [Method::Jacobi, Method::RedBlackY, Method::RedBlack] {
        let case = Case { m: 37, method, epsilon: 1e-6, ..Case::default() };
        cases.extend([
            Case { norm_split: "3x4".parse().unwrap(), ..case.clone() },
            Case { norm_split: "5x2".parse().unwrap(), check_every: 3, ..case.clone() },
            // more parts than a warp has lanes
            Case { norm_split: "7x6".parse().unwrap(), ..case.clone() },
            Case { stop: StopOn::Complementarity, epsilon: 1e-2, ..case.clone() },
            Case { epsilon: 0.0, max_relaxations: 13, steps: 2, ..case },
        ]);
    }
    all_same(&cases);
}

#[test]
fn several_sweeps_in_a_pass_are_those_one_by_one() {
    if !has_gpus(1) {
        return;
    }
    let mut cases = Vec::new();
    for sweeps in 2..=4 {
        for m in SIZES {
            for (obstacle, norm) in [("zero", "1x1"), ("hill:0.002", "1x1"), ("zero", "2x2")] {
                let norm_split: Split = norm.parse().unwrap();
                cases.push(Case {
                    m,
                    obstacle: obstacle.into(),
                    sweeps_per_pass: sweeps,
                    check_every: 2 * sweeps,
                    epsilon: 1e-6,
                    norm_split: if m > 1 { norm_split } else { Split::WHOLE },
                    ..Case::default()
                });
            }
        }
    }
    all_same(&cases);
}

#[test]
fn the_asynchronous_method_reaches_the_reference() {
    if !has_gpus(1) {
        return;
    }
    let case = Case { m: 21, mode: Mode::Async, epsilon: 1e-13, steps: 2, ..Case::default() };
    let problem = Problem::new(&case).unwrap();
    let expected = reference::projected_sor(&case, &problem, 1e-14);
    let ran = on_gpu(&case);
    assert_eq!(ran.outcome.status, Some(Status::Converged));
    let off = ran.solution.unwrap().into_iter().zip(&expected).map(|(a, b)| (a - b).abs());
    assert!(off.fold(0.0, f64::max) < 1e-12);
    assert!(ran.outcome.complementarity < 1e-8, "{}", ran.outcome.complementarity);
}

fn several_gpus_are_one_bit_for_bit(count: usize) {
    if !has_gpus(count) {
        return;
    }
    let split = Some(Split { y: 1, z: count });
    let mut cases = Vec::new();
    for (m, every) in [(count, 1), (40, 1), (66, 7)] {
        let norm_split = if m > 4 { Split { y: 3, z: 4 } } else { Split::WHOLE };
        let case = Case { m, check_every: every, epsilon: 1e-6, norm_split, ..Case::default() };
        for obstacle in ["zero", "hill:0.002"] {
            cases.push(Case { obstacle: obstacle.into(), split, ..case.clone() });
        }
        let case = Case { mode: Mode::Async, split, epsilon: 1e-12, ..case };
        let ran = on_gpu(&case);
        assert_eq!(ran.outcome.status, Some(Status::Converged));
        assert!(ran.outcome.complementarity < 1e-6, "{}", ran.outcome.complementarity);
    }
    all_same(&cases);
}

#[test]
fn two_gpus_are_one() {
    several_gpus_are_one_bit_for_bit(2);
}

#[test]
fn four_gpus_are_one() {
    several_gpus_are_one_bit_for_bit(4);
}
