//! `matrix info`: the structure of a matrix.

use std::fmt::Write as _;

use itertools::Itertools as _;
use serde::Serialize;
use tabled::builder::Builder;
use tabled::settings::{Alignment, Style, object::Columns};

use super::{InfoArgs, to_json};
use crate::base::choices::Partition;
use crate::base::error::Result;
use crate::base::parse::choice_name;
use crate::base::units::plural;
use crate::bench::ilu::{self, LEVELS, Trial};
use crate::matrix::cache::Cache;
use crate::problem::info::{Division, FILL_LIMIT, Fill, FillOutcome, Info, Scaling, Weakest};
use crate::problem::{Folders, Problem, Source, info};
use crate::symbolic::partition::divide;

/// The JSON of `info --json`.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct InfoReport<'a> {
    name: &'a str,
    #[serde(flatten)]
    info: &'a Info,
    has_own_rhs: bool,
    factors: &'a [Fill],
    #[serde(skip_serializing_if = "Option::is_none")]
    division: Option<&'a Division>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ilu: Option<&'a [Trial]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<&'a str>,
    remarks: &'a [String],
}

/// The text of `matrix info`.
pub(super) fn text(args: &InfoArgs) -> Result<String> {
    let source = Source::find(&args.spec, &Folders::from_env())?;
    let problem = source.load(args.read_as, &Cache::from_env())?;
    let info = info::inspect(&problem.matrix);
    let mut sizes = vec![1, info.block.size];
    sizes.dedup();
    let factors = match &args.fill.0 {
        Some(levels) => info::factor_sizes(&problem.matrix, &sizes, levels.clone(), FILL_LIMIT),
        None => Vec::new(),
    };
    let division = divided(args, &problem)?;
    let ilu = args.ilu.then(|| {
        let fills = info::factor_sizes(&problem.matrix, &sizes, LEVELS, FILL_LIMIT);
        ilu::trials(&problem, &fills)
    });
    let ilu = ilu.transpose()?;
    let advice = ilu.as_deref().map(ilu::advice);
    if args.json {
        return Ok(to_json(&InfoReport {
            name: &problem.name,
            info: &info,
            has_own_rhs: problem.own_rhs.is_some(),
            factors: &factors,
            division: division.as_ref(),
            ilu: ilu.as_deref(),
            advice: advice.as_deref(),
            remarks: &problem.remarks,
        }));
    }
    let mut text = describe(&problem, &info, &factors);
    if let (Some(of), Some(how)) = (&division, &args.partition) {
        text.push_str(&describe_division(of, *how));
    }
    if let (Some(trials), Some(advice)) = (&ilu, advice) {
        _ = writeln!(text, "\n{}\n", ilu_table(trials));
        for reason in trials.iter().filter_map(|t| t.reason.as_deref()).unique().take(REASONS) {
            _ = writeln!(text, "reason             {reason}");
        }
        _ = writeln!(text, "advice             {advice}");
    }
    Ok(text)
}

/// The division that is asked for.
fn divided(args: &InfoArgs, problem: &Problem) -> Result<Option<Division>> {
    let (Some(how), Some(count)) = (args.partition, args.subdomains) else { return Ok(None) };
    let a = problem.matrix.in_blocks(args.block_size);
    let divided = divide(&a, how, problem.grid, count, false)?;
    Ok(Some(info::division(&a, &divided)))
}

/// The text of `info`.
fn describe(problem: &Problem, info: &Info, factors: &[Fill]) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        _ = writeln!(text, "{name:<19}{value}");
    };
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let (s, d, b) = (&info.symmetry, &info.diagonal, &info.block);
    line("matrix", problem.name.clone());
    line("rows", info.n.to_string());
    line("entries", format!("{}, {} of them zero", info.nnz, info.explicit_zeros));
    let rows = &info.row_length;
    line("entries per row", format!("{} to {}, {:.2} on average", rows.min, rows.max, rows.mean));
    line("bandwidth", format!("{} below, {} above", info.lower_bandwidth, info.upper_bandwidth));
    line("pattern symmetry", percent(s.pattern));
    line(
        "numeric symmetry",
        format!(
            "{}, largest difference {:.2e} of the largest entry",
            percent(s.numeric),
            s.difference
        ),
    );
    if let Some(largest) = s.largest {
        line("largest asymmetry", format!("{:.1e} relative: {}", largest.relative, largest.pair()));
    }
    for (name, value) in values(&info.scaling) {
        line(name, value);
    }
    line("diagonal", format!("{} missing, {} zero", d.missing, d.zero));
    if let Some(weakest) = info.scaling.weakest_diagonal {
        let Weakest { row, ratio } = weakest;
        line("weakest diagonal", format!("row {row}, {ratio:.3e} of the sum of the others"));
    }
    line(
        "dominant rows",
        format!(
            "{}, {} strictly",
            percent(d.dominant_rows as f64 / info.n as f64),
            percent(d.strictly_dominant_rows as f64 / info.n as f64)
        ),
    );
    line(
        "natural block size",
        format!("{} ({} blocks, {} full)", b.size, b.blocks, percent(b.fill)),
    );
    line("grid", describe_grid(info));
    line("right-hand side", if problem.own_rhs.is_some() { "own" } else { "none" }.into());
    for remark in &problem.remarks {
        line("remark", remark.clone());
    }
    if !factors.is_empty() {
        _ = writeln!(text, "\n{}", factor_table(factors));
    }
    text
}

/// The lines of `info` about magnitudes.
fn values(scaling: &Scaling) -> Vec<(&'static str, String)> {
    let Scaling { smallest, largest, rows, columns, zero_rows, zero_columns, .. } = scaling;
    let range = match smallest {
        Some(smallest) => format!("{smallest:.3e} to {largest:.3e} in magnitude, zeros aside"),
        None => "all zero".into(),
    };
    let mut lines = vec![("values", range)];
    for (name, ratio) in [("row scaling", rows), ("column scaling", columns)] {
        let text = |r: &f64| format!("{r:.3e}, the largest norm (magnitude) over the smallest");
        lines.extend(ratio.as_ref().map(|ratio| (name, text(ratio))));
    }
    for (name, zeros) in [("zero rows", zero_rows), ("zero columns", zero_columns)] {
        let first = zeros.first.map(|first| format!(", the first is {first}")).unwrap_or_default();
        lines.push((name, format!("{}{first}", zeros.count)));
    }
    lines
}

fn describe_grid(info: &Info) -> String {
    let Some(grid) = info.grid else { return "not recognised".into() };
    let [nx, ny, nz] = grid.size;
    let what = if info.block.size > 1 { "block " } else { "" };
    let others = match grid.others {
        0 => String::new(),
        1 => " and 1 entry elsewhere".into(),
        n => format!(" and {n} entries elsewhere"),
    };
    format!("{nx} x {ny} x {nz}, {what}nearest neighbours{others}")
}

fn describe_division(of: &Division, how: Partition) -> String {
    let mut text = String::from("\n");
    let mut line = |name: &str, value: String| {
        _ = writeln!(text, "{name:<19}{value}");
    };
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let (how, count) = (choice_name(&how), plural(of.subdomains, "subdomain"));
    line("partition", format!("{how}, {count}, block size {}", of.block_size));
    line("cut", format!("{} blocks, {} of all", of.cut, percent(of.cut_share)));
    line("halo", format!("{} block rows, at most {} of one subdomain", of.halo, of.largest_halo));
    let (mean, most) = (of.mean_neighbours, of.most_neighbours);
    line("neighbours", format!("{mean:.1} on average, at most {most}"));
    line("imbalance", format!("{:.3}, the most entries over the mean", of.imbalance));
    line("block rows", format!("{} to {} of a subdomain", of.fewest_rows, of.most_rows));
    line("interface rows", of.interface_rows.to_string());
    text
}

fn factor_table(factors: &[Fill]) -> String {
    let mut table = Builder::default();
    table.push_record(["block size", "k", "factor blocks", "fill", "L levels", "U levels"]);
    for fill in factors {
        let [blocks, ratio, lower, upper] = match fill.outcome {
            FillOutcome::Done { factor_blocks, fill_ratio, levels_lower, levels_upper } => [
                factor_blocks.to_string(),
                format!("{fill_ratio:.3}"),
                levels_lower.to_string(),
                levels_upper.to_string(),
            ],
            FillOutcome::Skipped { above_blocks } => {
                [format!("above {above_blocks}"), "skipped".into(), String::new(), String::new()]
            }
        };
        let (b, k) = (fill.block_size.to_string(), fill.k.to_string());
        table.push_record([b, k, blocks, ratio, lower, upper]);
    }
    let mut table = table.build();
    table.with(Style::psql());
    table.modify(Columns::new(..), Alignment::right());
    table.to_string()
}

/// Most reasons of trials that are shown.
const REASONS: usize = 4;

/// What ILU does, and what it needs to converge.
fn ilu_table(trials: &[Trial]) -> String {
    let mut table = Builder::default();
    table.push_record([
        "precond",
        "block",
        "k",
        "scaling",
        "shift",
        "pivot",
        "|M^-1|",
        "|L^-1|",
        "|U^-1|",
        "growth",
        "GMRES(20)",
        "iterations",
    ]);
    let number = |v: Option<f64>| v.map(|v| format!("{v:.1e}")).unwrap_or_default();
    for trial in trials {
        let shift = match (trial.shift_used, trial.shift.as_str()) {
            (Some(found), _) => format!("{found}"),
            (None, "0") => String::new(),
            (None, _) => "none found".into(),
        };
        table.push_record([
            trial.precond.clone(),
            trial.block_size.to_string(),
            if trial.uses_levels { trial.fill.to_string() } else { String::new() },
            trial.scaling.clone(),
            shift,
            number(trial.smallest_pivot),
            number(trial.condest),
            number(trial.lower_condest),
            number(trial.upper_condest),
            number(trial.growth),
            trial.status.to_owned(),
            trial.iterations.to_string(),
        ]);
    }
    let mut table = table.build();
    table.with(Style::psql());
    table.modify(Columns::new(2..), Alignment::right());
    table.to_string()
}
