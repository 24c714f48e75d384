//! Records for tests.

use clap::ValueEnum as _;
use proptest::prelude::*;
use serde_json::Value;

use crate::base::parse::choice_name;
use crate::base::status::Status;
use crate::case::{Case, Trisolve};
use crate::compute::preconditioner::FactorSize;
use crate::record::Record;
use crate::record::columns::{Kind, SETTINGS};
use crate::record::schema::{Convergence, Environment, SystemSize, Times};
use crate::record::table::{Column, SCHEMA, fields};

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

const STATUSES: [Status; 13] = [
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
];

/// Any value of a column; times are not negative.
fn value(column: &Column) -> BoxedStrategy<Value> {
    let one_of =
        |words: &[&'static str]| prop::sample::select(words.to_vec()).prop_map(Value::from).boxed();
    let any = match (&*column.name, column.kind) {
        ("status", _) => one_of(&STATUSES.map(Status::name)),
        ("trisolve-used", _) => prop::sample::select(Trisolve::value_variants().to_vec())
            .prop_map(|by| Value::from(choice_name(&by)))
            .boxed(),
        ("solve-interval" | "spmv-interval", _) => {
            one_of(&["95%", "range", "95%-of-rounds", "range-of-rounds"])
        }
        ("setup-done", _) => one_of(&["all", "analysis", "numeric", "none"]),
        ("device", _) => ".*".prop_map(Value::from).boxed(),
        (_, Kind::Text) => "[ -~\"',\n\u{e9}\u{4e2d}]{1,12}".prop_map(Value::from).boxed(),
        (_, Kind::Whole) => any::<usize>().prop_map(Value::from).boxed(),
        (_, Kind::Number) => finite().prop_map(|v| v.abs().into()).boxed(),
        (_, Kind::Numbers) => prop::collection::vec(finite(), 0..4).prop_map(Value::from).boxed(),
    };
    if column.optional { prop::option::of(any).prop_map(Value::from).boxed() } else { any }
}

/// Any record: all kinds of numbers, and text with quotes, commas and line breaks.
pub(crate) fn any_record() -> impl Strategy<Value = Record> {
    // of the settings most are names
    let any = ["matrix", "rtol", "drop-tolerance", "block-size", "fill"];
    let settings = SCHEMA.iter().take(SETTINGS.len()).filter(move |c| any.contains(&&*c.name));
    let columns: Vec<&Column> = settings.chain(&SCHEMA[SETTINGS.len()..]).collect();
    let values: Vec<_> = columns.iter().map(|column| value(column)).collect();
    values.prop_map(move |values| {
        let names = columns.iter().map(|column| column.name.clone());
        let mut map = fields(&Record::default());
        map.extend(names.zip(values));
        serde_json::from_value(map.into()).expect("a record")
    })
}
