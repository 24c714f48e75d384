//! How block ILU fares on a system: its pivots, how stable its solves are, and whether GMRES(20) converges, as it is and
//! with what may help.

use serde::Serialize;

use crate::base::error::Result;
use crate::base::parse::choice_name;
use crate::bench::run::run_case;
use crate::case::{Case, Scaling, Setting, Shift};
use crate::config::AXES;
use crate::config::sampling::Measure;
use crate::methods::precond::{bilu, ilut};
use crate::problem::info::{Fill, FillOutcome};
use crate::problem::{Problem, right_hand_side};
use crate::record::Record;

/// Fill levels that are tried.
pub(crate) const LEVELS: std::ops::RangeInclusive<usize> = 0..=2;

/// Seconds that a solve may take.
const LIMIT_S: f64 = 20.0;

/// What may help, nothing first.
const HELP: [(Scaling, Shift); 4] = [
    (Scaling::None, Shift::Fixed(0.0)),
    (Scaling::Ruiz, Shift::Fixed(0.0)),
    (Scaling::None, Shift::Search),
    (Scaling::Ruiz, Shift::Search),
];

/// One of the runs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Trial {
    pub(crate) precond: String,
    pub(crate) block_size: usize,
    pub(crate) fill: usize,
    pub(crate) scaling: String,
    /// The shift that was asked for, and the one that was found.
    pub(crate) shift: String,
    pub(crate) shift_used: Option<f64>,
    pub(crate) smallest_pivot: Option<f64>,
    pub(crate) condest: Option<f64>,
    pub(crate) lower_condest: Option<f64>,
    pub(crate) upper_condest: Option<f64>,
    pub(crate) growth: Option<f64>,
    pub(crate) fill_ratio: Option<f64>,
    pub(crate) status: &'static str,
    pub(crate) iterations: usize,
    pub(crate) reason: Option<String>,
    /// Flags of `run` that repeat it.
    pub(crate) flags: String,
    #[serde(skip)]
    pub(crate) uses_levels: bool,
    #[serde(skip)]
    converged: bool,
    #[serde(skip)]
    plain: bool,
}

impl Trial {
    fn of(record: Record) -> Self {
        let Record { case, factor, quality, convergence, status, reason, .. } = record;
        let plain = (case.scaling, case.shift) == HELP[0] && case.precond == bilu::METHOD.name;
        Self {
            flags: flags(&case),
            uses_levels: case.uses(Setting::Fill),
            precond: case.precond,
            block_size: case.block_size,
            fill: case.fill,
            scaling: choice_name(&case.scaling),
            shift: case.shift.to_string(),
            shift_used: factor.shift_used,
            smallest_pivot: quality.smallest_pivot,
            condest: quality.condest,
            lower_condest: quality.lower_condest,
            upper_condest: quality.upper_condest,
            growth: quality.growth,
            fill_ratio: factor.fill_ratio,
            status: status.name(),
            iterations: convergence.iterations,
            reason,
            converged: status.succeeded(),
            plain,
        }
    }

    /// Entries that a solve goes through, in those of the matrix.
    fn work(&self) -> f64 {
        self.iterations.max(1) as f64 * (1.0 + self.fill_ratio.unwrap_or(1.0))
    }
}

/// The settings of a case that are not the default's, but for the system.
fn flags(case: &Case) -> String {
    let default = Case::default();
    let own = AXES.iter().filter(|axis| !["matrix", "rhs"].contains(&axis.name));
    let changed = own.filter(|axis| (axis.text)(case) != (axis.text)(&default));
    let words = changed.map(|axis| format!("--{} {}", axis.name, (axis.text)(case)));
    words.collect::<Vec<_>>().join(" ")
}

/// The runs, where the factors of `fills` are not too large.
///
/// # Errors
/// When there is no right-hand side.
pub(crate) fn trials(problem: &Problem, fills: &[Fill]) -> Result<Vec<Trial>> {
    let rhs = if problem.own_rhs.is_some() { "own" } else { "ones" };
    let b = right_hand_side(problem, rhs)?;
    let measure = Measure { once: true, time_limit_s: Some(LIMIT_S), ..Measure::default() };
    let run = |case: Case| {
        let case = Case { matrix: problem.name.clone(), rhs: rhs.into(), ..case };
        run_case(&case, problem, &b, &measure, &mut |_| true).map(Trial::of)
    };
    let mut cases = Vec::new();
    for fill in fills.iter().filter(|fill| matches!(fill.outcome, FillOutcome::Done { .. })) {
        for (scaling, shift) in HELP {
            let Fill { block_size, k, .. } = *fill;
            cases.push(Case { block_size, fill: k, scaling, shift, ..Case::default() });
        }
        if fill.k == *LEVELS.end() {
            let (scaling, shift) = HELP[HELP.len() - 1];
            let (block_size, precond) = (fill.block_size, ilut::METHOD.name.into());
            cases.push(Case { scaling, block_size, precond, shift, ..Case::default() });
        }
    }
    Ok(cases.into_iter().filter_map(run).collect())
}

/// What to do, in a line.
pub(crate) fn advice(trials: &[Trial]) -> String {
    let best = |of: &dyn Fn(&&Trial) -> bool| {
        trials.iter().filter(of).min_by(|a, b| a.work().total_cmp(&b.work()))
    };
    let plain = best(&|trial| trial.converged && trial.plain);
    let any = best(&|trial| trial.converged);
    let said = |trial: &Trial| {
        let flags = if trial.flags.is_empty() { "the defaults" } else { &trial.flags };
        format!("{flags}, {} iterations", trial.iterations)
    };
    let failing = trials.iter().filter(|trial| trial.plain && !trial.converged).count();
    match (plain, any) {
        (Some(plain), Some(any)) if failing == 0 || any.work() > plain.work() / 2.0 => {
            format!("ILU works as it is: {}", said(plain))
        }
        (Some(plain), Some(any)) => {
            format!("{}; as it is: {}", said(any), said(plain))
        }
        (None, Some(any)) => format!("ILU fails as it is; what helps: {}", said(any)),
        (_, None) => "no ILU tried here converges: `advise` tries other methods".into(),
    }
}
