//! Records for tests.

use proptest::prelude::*;

use crate::base::status::Status;
use crate::case::Case;
use crate::compute::preconditioner::FactorSize;
use crate::record::Record;
use crate::record::schema::{
    Convergence, Environment, SampleInterval, SystemHash, SystemSize, Times, Traffic,
};

/// A converged record with plausible numbers.
pub(crate) fn record(case: Case, iterations: usize, solve_s: f64) -> Record {
    Record {
        case,
        size: SystemSize { n: 216_000, nnz: 1_490_400, block_rows: 216_000, ..Default::default() },
        factor: FactorSize {
            factor_blocks: Some(1_490_400),
            fill_ratio: Some(1.0),
            levels_lower: Some(178),
            levels_upper: Some(178),
            ..FactorSize::default()
        },
        times: Times {
            symbolic_s: Some(0.01),
            numeric_s: Some(0.02),
            setup_s: Some(0.04),
            solve_s: Some(solve_s),
            repetitions: 1,
            total_s: Some(0.04 + solve_s),
            ms_per_iteration: Some(solve_s * 1e3 / iterations as f64),
            ..Times::default()
        },
        convergence: Convergence {
            iterations,
            monitored_residual: Some(8e-7),
            true_residual: Some(8.1e-7),
            residual_history: Vec::new(),
        },
        environment: Environment { device: "Some CPU".into(), threads: 1, ..Default::default() },
        ..Record::default()
    }
}

/// The same with an interval of `percent` around the median.
pub(crate) fn repeated(case: Case, iterations: usize, solve_s: f64, percent: f64) -> Record {
    let mut record = record(case, iterations, solve_s);
    record.times.repetitions = 10;
    record.times.solve_low_s = Some(solve_s * (1.0 - percent / 100.0));
    record.times.solve_high_s = Some(solve_s * (1.0 + percent / 100.0));
    record
}

fn finite() -> impl Strategy<Value = f64> {
    prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO
}

fn times() -> impl Strategy<Value = Times> {
    let time = || prop::option::of(finite().prop_map(f64::abs));
    let whole = any::<usize>();
    (
        (time(), time(), time(), time(), time(), time(), time()),
        (time(), time(), whole, time(), time()),
    )
        .prop_map(|((n, m, a, b, c, d, e), (f, g, repetitions, h, i))| Times {
            ordering_s: i,
            compile_s: n,
            trial_s: f,
            matrix_s: m,
            symbolic_s: a,
            analysis_s: b,
            numeric_s: c,
            numeric_kernel_s: d,
            deflation_s: e,
            setup_s: d,
            solve_s: e,
            solve_low_s: f,
            solve_high_s: g,
            solve_interval: g.map(|_| SampleInterval::Range),
            repetitions,
            total_s: h,
            ms_per_iteration: i,
            renumeric_s: a,
            rematrix_s: b,
        })
}

fn traffic() -> impl Strategy<Value = Traffic> {
    let number = || prop::option::of(finite().prop_map(f64::abs));
    let count = || prop::option::of(any::<usize>());
    (
        (count(), number(), count(), number(), number()),
        (count(), number(), number(), number(), number()),
    )
        .prop_map(|((a, b, c, d, e), (f, g, h, i, j))| Traffic {
            memory_bytes: a,
            apply_s: b,
            apply_bytes: c,
            apply_gbps: d,
            spmv_s: e,
            spmv_low_s: d,
            spmv_high_s: g,
            spmv_interval: e.map(|_| SampleInterval::RangeOfRounds),
            spmv_samples: c,
            spmv_bytes: f,
            spmv_gbps: g,
            spmv_gflops: h,
            spmv_percent_of_bandwidth: i,
            residual_s: h,
            orthogonalisation_s: e,
            orthogonalisation_gbps: g,
            dot_s: d,
            axpy_s: e,
            copy_gbps: h,
            us_per_level: i,
            handover_us: b,
            percent_of_bandwidth: i,
            percent_of_latency: e,
            percent_of_roof: j,
            numeric_bytes: f,
            numeric_gbps: d,
            numeric_us_per_level: g,
            numeric_percent_of_bandwidth: h,
            numeric_percent_of_latency: b,
            numeric_percent_of_roof: j,
        })
}

/// Any record: all kinds of numbers, and text with quotes, commas and line breaks.
pub(crate) fn any_record() -> impl Strategy<Value = Record> {
    let text = || "[ -~\"',\n\u{e9}\u{4e2d}]{1,12}";
    let statuses = prop::sample::select(vec![
        Status::Converged,
        Status::Measured,
        Status::NotConverged,
        Status::Stagnated,
        Status::FalseConvergence,
        Status::PreconditionedOnly,
        Status::Diverged,
        Status::Breakdown,
        Status::TimeLimit,
        Status::OutOfMemory,
        Status::Complete,
        Status::Unsupported,
        Status::Failed,
    ]);
    let case = (text(), finite(), finite(), any::<usize>(), any::<usize>());
    let words = (statuses, prop::option::of(text()), prop::option::of(text()), ".*", text());
    let sizes = (any::<usize>(), prop::option::of(any::<usize>()), prop::option::of(finite()));
    let residuals = (prop::option::of(finite()), prop::collection::vec(finite(), 0..4));
    (case, words, sizes, times(), traffic(), residuals).prop_map(
        |(case, words, sizes, times, traffic, (true_residual, residual_history))| Record {
            case: Case {
                matrix: case.0,
                rtol: case.1,
                shift: case.2,
                block_size: case.3,
                fill: case.4,
                ..Case::default()
            },
            status: words.0,
            format_used: words.1.clone(),
            tuned: words.1.clone(),
            round: sizes.1,
            reason: words.2,
            environment: Environment { device: words.3, cpu: words.4, ..Default::default() },
            size: SystemSize { n: sizes.0, ..SystemSize::default() },
            hash: SystemHash { matrix_hash: words.1.clone(), rhs_hash: None },
            factor: FactorSize {
                factor_blocks: sizes.1,
                fill_ratio: sizes.2,
                ..FactorSize::default()
            },
            times,
            traffic,
            convergence: Convergence { true_residual, residual_history, ..Convergence::default() },
        },
    )
}
