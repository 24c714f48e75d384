//! Methods and nodes against the reference solver and against each other.

use std::sync::atomic::AtomicUsize;

use super::threads::{Ran, run};
use super::*;
use crate::base::status::Status;

fn ran(case: &Case, split: &str) -> Ran {
    let problem = Problem::new(case).unwrap();
    let interrupts = AtomicUsize::new(0);
    let limits = solve::Limits { interrupts: &interrupts, deadline: None };
    run(case, &problem, split.parse().unwrap(), limits, true).unwrap()
}

fn difference(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

const METHODS: [Method; 3] = [Method::Jacobi, Method::RedBlackY, Method::RedBlack];

#[test]
fn every_method_reaches_the_reference_with_and_without_waiting() {
    for (obstacle, convection, touched) in [
        ("zero", "0:0:0", true),
        ("hill:0.002", "0:0:0", true),
        ("flat:-0.0005", "0.3:-0.2:0.1", true),
        ("none", "0:0:0", false),
    ] {
        let case = Case {
            m: 13,
            obstacle: obstacle.into(),
            convection: convection.into(),
            epsilon: 1e-13,
            ..Case::default()
        };
        let problem = Problem::new(&case).unwrap();
        let reference = reference::projected_sor(&case, &problem, 1e-14);
        let largest = reference.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
        assert!(largest > 1e-3, "{largest}");
        for method in METHODS {
            for (mode, split) in [(Mode::Sync, "1x1"), (Mode::Sync, "2x1"), (Mode::Async, "1x2")] {
                let case = Case { method, mode, ..case.clone() };
                let Ran { outcome, solution, .. } = ran(&case, split);
                assert_eq!(outcome.status, Some(Status::Converged));
                let off = difference(&solution.unwrap(), &reference);
                assert!(off < 1e-12, "{obstacle} {method:?} {mode:?}: {off}");
                // in the units of the right-hand side, which is about 1
                assert!(outcome.complementarity < 1e-8, "{method:?}: {}", outcome.complementarity);
                assert_eq!(outcome.contact > 0, touched, "{obstacle} {}", outcome.contact);
            }
        }
    }
}

#[test]
fn jacobi_and_point_red_black_are_the_same_on_every_split_bit_for_bit() {
    for method in [Method::Jacobi, Method::RedBlack] {
        let case = Case { m: 18, method, obstacle: "hill:0.002".into(), ..Case::default() };
        let one = ran(&case, "1x1");
        for split in ["1x2", "2x1", "2x2", "3x2", "1x6"] {
            let many = ran(&case, split);
            assert_eq!(many.solution, one.solution, "{method:?} {split}");
            let parts = split.parse::<Split>().unwrap().count();
            assert_eq!(many.outcome.fingerprint, one.outcome.fingerprint);
            assert_eq!(many.outcome.sweeps, one.outcome.sweeps);
            assert_eq!(many.outcome.contact, one.outcome.contact);
            assert_eq!(many.outcome.relaxations, one.outcome.relaxations * parts as u64);
            let ratio = many.outcome.step_norm / one.outcome.step_norm;
            assert!((ratio - 1.0).abs() < 1e-12, "{ratio}");
        }
    }
}

#[test]
fn the_norm_over_more_parts_ends_sooner_and_red_black_takes_half_the_sweeps() {
    let case = Case { m: 32, epsilon: 1e-6, ..Case::default() };
    let sweeps = |case: &Case| ran(case, "1x1").outcome.sweeps.iter().sum::<f64>();
    let jacobi = sweeps(&case);
    let parts = sweeps(&Case { norm_split: "3x4".parse().unwrap(), ..case.clone() });
    let colours = sweeps(&Case { method: Method::RedBlack, ..case.clone() });
    let lines = sweeps(&Case { method: Method::RedBlackY, ..case.clone() });
    assert!(parts < jacobi && parts > 0.8 * jacobi, "{parts} {jacobi}");
    assert!((0.45..0.75).contains(&(colours / jacobi)), "{colours} {jacobi}");
    assert!((0.4..0.8).contains(&(lines / jacobi)), "{lines} {jacobi}");
    let every = sweeps(&Case { check_every: 7, ..case });
    assert!(every >= jacobi && every < jacobi + 21.0 && every % 7.0 == 0.0, "{every} {jacobi}");
}

#[test]
fn both_criteria_stop_where_they_say() {
    let case = Case { m: 16, stop: StopOn::Complementarity, epsilon: 1e-3, ..Case::default() };
    let by_residual = ran(&case, "2x2").outcome;
    assert!(by_residual.complementarity < 1e-3, "{by_residual:?}");
    assert!(by_residual.complementarity > 5e-4, "{by_residual:?}");
    let by_norm = ran(&Case { stop: StopOn::StepNorm, epsilon: 1e-5, ..case }, "2x2").outcome;
    assert!(by_norm.step_norm < 1e-5 && by_norm.step_norm > 5e-6, "{by_norm:?}");
}

#[test]
fn complementarity_ends_a_step_at_the_first_iterate_that_has_it() {
    for method in METHODS {
        let case = Case { m: 16, steps: 1, method, ..Case::default() };
        let case = Case { obstacle: "hill:0.002".into(), ..case };
        let stops = Case { stop: StopOn::Complementarity, epsilon: 1e-2, ..case.clone() };
        let found = ran(&stops, "1x1").outcome;
        let sweeps = found.sweeps[0] as usize;
        assert!(sweeps > 3, "{found:?}");
        // as many sweeps, or one less, whatever comes of them
        let after = |sweeps: usize| {
            let case = Case { epsilon: 0.0, max_relaxations: sweeps, ..case.clone() };
            ran(&case, "1x1").outcome
        };
        assert!(after(sweeps - 1).complementarity >= 1e-2, "{method:?}");
        let same = after(sweeps);
        assert_eq!(same.complementarity, found.complementarity, "{method:?}");
        assert_eq!((same.fingerprint, same.relaxations), (found.fingerprint, found.relaxations));
        for (mode, split) in [(Mode::Sync, "2x2"), (Mode::Async, "1x2"), (Mode::Async, "1x1")] {
            let other = ran(&Case { mode, ..stops.clone() }, split).outcome;
            assert!(other.complementarity < 1e-2, "{method:?} {mode:?} {split}: {other:?}");
            if mode == Mode::Sync && method != Method::RedBlackY {
                assert_eq!(
                    (other.sweeps, other.fingerprint),
                    (found.sweeps.clone(), found.fingerprint)
                );
            }
        }
        // a bound that zero meets is met at once: after one sweep where a sweep cannot be undone
        let idle = Case { epsilon: 1e9, ..stops };
        let least = if method == Method::Jacobi { 0.0 } else { 1.0 };
        assert_eq!((ran(&idle, "1x2").outcome.sweeps, after(1).sweeps), (vec![least], vec![1.0]));
    }
}

#[test]
fn the_limit_of_relaxations_is_a_result() {
    for (mode, split) in [(Mode::Sync, "1x1"), (Mode::Sync, "1x2"), (Mode::Async, "2x1")] {
        let case = Case { m: 12, mode, epsilon: 0.0, max_relaxations: 5, ..Case::default() };
        let outcome = ran(&case, split).outcome;
        assert_eq!(outcome.status, Some(Status::NotConverged));
        assert_eq!(outcome.sweeps, [5.0]);
        let nodes = split.parse::<Split>().unwrap().count() as u64;
        assert_eq!(outcome.relaxations, 5 * nodes);
        assert!(outcome.step_norm > 0.0);
    }
}

#[test]
fn requests_to_stop_are_heard_by_all_nodes() {
    let case = Case { m: 12, epsilon: 0.0, max_relaxations: 1_000_000, ..Case::default() };
    let problem = Problem::new(&case).unwrap();
    let interrupts = AtomicUsize::new(1);
    let limits = solve::Limits { interrupts: &interrupts, deadline: None };
    for mode in [Mode::Sync, Mode::Async] {
        let case = Case { mode, ..case.clone() };
        let split = Split { y: 1, z: 2 };
        assert_eq!(run(&case, &problem, split, limits, false).unwrap().outcome.status, None);
    }
}
