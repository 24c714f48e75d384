//! What methods declare that they use is what they use: every method with two values of every setting.

use super::*;
use crate::bench::engine::Permuted;
use crate::bench::run::run_case;
use crate::case::{
    FactorPrecision, FgbiluStyle, LevelRule, Orthogonalisation, Shift, Side, Trisolve,
};
use crate::config::sampling::Measure;
use crate::problem::{load, right_hand_side};
use crate::record::Record;

/// Systems of an even order, with their block sizes: an unsymmetric grid, a definite one with jumps, blocks,
/// and a mesh of triangles.
const SYSTEMS: &[(&str, usize)] = &[
    ("convdiff3d:6x5x4,px=0.3", 1),
    ("layered:4x5x6,layers=3", 1),
    ("blockpoisson3d:4x3x4,b=2", 2),
    ("fem-p1:9x8", 1),
];

/// Preconditioners beside those without parameters.
const VARIANTS: &[&str] = &[
    "mcilu:p=1",
    "mcilu:pattern=power",
    "mcsgs:omega=1.3",
    "meilu:last=sgs",
    "meilu:last=ilu",
    "meilu:levels=2",
    "spai:symmetric=yes",
    "fsai:power=2",
    "tns:form=explicit",
];

/// A difference of residuals, relative to the larger, that permuted sums explain.
const ROUNDING: f64 = 1e-8;

/// The record of a case on its system in its order.
fn run(case: &Case) -> Record {
    let problem = load(&case.matrix, case.read_as).unwrap();
    let b = right_hand_side(&problem, &case.rhs).unwrap();
    let measure = Measure { once: true, history: 100, ..Measure::default() };
    if case.ordering.is_natural() {
        return run_case(case, &problem, &b, &measure, &mut |_| true).unwrap();
    }
    let other = Permuted::of(case, &problem, &b).unwrap();
    run_case(case, &other.problem, &other.rhs.1, &measure, &mut |_| true).unwrap()
}

/// Residuals as they were monitored, the true one behind them.
fn residuals(record: &Record) -> Vec<f64> {
    let of = &record.convergence;
    of.residual_history.iter().copied().chain(of.true_residual).collect()
}

/// Whether two records show another course of the iterations.
fn differ(a: &Record, b: &Record, setting: Setting) -> bool {
    let (x, y) = (residuals(a), residuals(b));
    let same = |(x, y): (&f64, &f64)| match setting {
        Setting::Ordering => (x - y).abs() <= ROUNDING * x.abs().max(y.abs()),
        _ => x.to_bits() == y.to_bits(),
    };
    a.status != b.status || x.len() != y.len() || !x.iter().zip(&y).all(same)
}

/// `case` with another value of a setting, and with one to compare it with.
fn pair(case: &Case, setting: Setting) -> [Case; 2] {
    let (mut one, mut other) = (case.clone(), case.clone());
    match setting {
        Setting::BlockSize => other.block_size = 3 - case.block_size,
        Setting::Ordering => other.ordering = "random:3".parse().unwrap(),
        Setting::Fill => other.fill = 1,
        Setting::LevelRule => {
            (one.fill, other.fill) = (2, 2);
            other.level_rule = LevelRule::Overwrite;
        }
        Setting::Shift => other.shift = Shift::Fixed(0.1),
        Setting::DropTolerance => other.drop_tolerance = 0.5,
        Setting::Side => other.side = Side::Left,
        Setting::Restart => other.restart = 3,
        Setting::Orthogonalisation => other.orthogonalisation = Orthogonalisation::Mgs,
        Setting::InnerRtol => other.inner_rtol = 0.9,
        Setting::SymmetryTolerance => other.symmetry_tolerance = 0.9,
        Setting::FactorPrecision => other.factor_precision = FactorPrecision::Float32,
        // on a CPU that is to say whether a method asks for it: there is no such way
        Setting::Trisolve => other.trisolve = Trisolve::LEVELS,
        Setting::FgbiluStyle => other.fgbilu_style = FgbiluStyle::Acc,
        Setting::Execution
        | Setting::Partition
        | Setting::Subdomains
        | Setting::Schwarz
        | Setting::Threads => unreachable!("they are the backend's"),
        Setting::Guess | Setting::Refactor => unreachable!("they are of sequences"),
    }
    [one, other]
}

/// The systems on which another value of a setting makes a difference.
fn differences(of: impl Fn(&str, usize) -> Case, setting: Setting) -> Vec<&'static str> {
    let changes = |(matrix, b): &(&'static str, usize)| {
        let [one, other] = pair(&of(matrix, *b), setting).map(|case| run(&case));
        differ(&one, &other, setting).then_some(*matrix)
    };
    SYSTEMS.iter().filter_map(changes).collect()
}

/// A few iterations from random numbers with the matrix always in the same format.
fn base(matrix: &str, block_size: usize) -> Case {
    Case {
        matrix: matrix.into(),
        block_size,
        rhs: "random".into(),
        rtol: 1e-12,
        max_iterations: 8,
        format: crate::case::Format::Csr,
        ..Case::default()
    }
}

#[test]
fn preconditioners_use_what_they_declare_and_nothing_else() {
    let settings = &Setting::value_variants()[..Setting::Execution as usize];
    for spec in precond::NAMES.iter().map(|(name, _)| name).chain(VARIANTS) {
        for &setting in settings {
            if solver::uses("gmres", setting) == Some(true) {
                continue;
            }
            let of = |matrix: &str, b| Case { precond: (*spec).into(), ..base(matrix, b) };
            let found = differences(of, setting);
            let declared = precond::uses(spec, setting).unwrap();
            assert_eq!(declared, !found.is_empty(), "{spec}, {setting:?}: differs on {found:?}");
        }
    }
}

#[test]
fn solvers_use_what_they_declare_and_nothing_else() {
    for (name, _) in solver::NAMES {
        let settings = [
            Setting::Side,
            Setting::Restart,
            Setting::Orthogonalisation,
            Setting::InnerRtol,
            Setting::SymmetryTolerance,
        ];
        for setting in settings {
            let of = |matrix: &str, b| Case { solver: (*name).into(), ..base(matrix, b) };
            let found = differences(of, setting);
            let declared = solver::uses(name, setting).unwrap();
            assert_eq!(declared, !found.is_empty(), "{name}, {setting:?}: differs on {found:?}");
        }
    }
}
