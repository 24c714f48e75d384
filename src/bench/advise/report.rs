//! Advice in words: the best few, what each of their settings is worth, and how sure that is.

use std::fmt::Write as _;

use crate::base::parse::number_text;
use crate::base::units::{grouped, median_seconds, plural, seconds, significant};
use crate::bench::advise::decision::{ROUNDS, equals, ratio};
use crate::bench::advise::finals::changed_nothing;
use crate::bench::advise::{Advice, Finalist, Question, Trial, Tried};
use crate::case::{Case, Setting};
use crate::config::AXES;
use crate::record::table::fields;
use crate::report::runs::{common_settings, head, varying};
use crate::report::{Head, Report, Sheet};

/// Values of a setting that are named in a reason at most.
const MOST_NAMED: usize = 4;
/// A single trial shows a difference from this factor on; the search repeats short ones only until two agree.
const BEYOND_NOISE: f64 = 1.25;

/// Settings that are named where they are used and not the default.
const NAMED: &[&str] =
    &["shift", "level-rule", "orthogonalisation", "factor-precision", "trisolve", "execution"];

/// The searched settings that are used, in a few words.
pub fn describe(case: &Case) -> String {
    let Case { precond, fill, block_size, ordering, solver, restart, backend, .. } = case;
    let mut words = precond.clone();
    for (setting, word) in [
        (Setting::Fill, format!(" k={fill}")),
        (Setting::BlockSize, format!(" b={block_size}")),
        (Setting::Ordering, format!(" {ordering}")),
    ] {
        if case.uses(setting) {
            words.push_str(&word);
        }
    }
    _ = write!(words, " {solver}");
    if case.uses(Setting::Restart) {
        _ = write!(words, "({restart})");
    }
    _ = write!(words, " {backend}");
    let default = Case::default();
    for axis in AXES.iter().filter(|a| NAMED.contains(&a.name) && case.uses_named(a.name)) {
        let word = (axis.text)(case);
        if word != (axis.text)(&default) {
            _ = write!(words, " {}={word}", axis.name);
        }
    }
    words
}

/// The table of the best, with the reasons below it.
pub fn report(question: &Question, advice: &Advice) -> Report {
    let finalists = &advice.finalists;
    let cases: Vec<&Case> = finalists.iter().map(|f| &f.case).collect();
    let varying = if cases.is_empty() { Vec::new() } else { varying(&cases) };
    let mut sheet = Sheet {
        title: Some(format!("Advice for {}", question.base.matrix)),
        preamble: vec![advice.structure.describe()],
        ..Sheet::default()
    };
    if let Some(first) = finalists.first() {
        sheet.preamble.push(common_settings(&first.case, &varying).join(", "));
    }
    sheet.columns.extend(varying.iter().map(|axis| head(axis)));
    let total = if question.solves > 1 {
        format!("setup + {} solves", grouped(question.solves))
    } else {
        "setup + solve".into()
    };
    let measured = ["setup", "solve", &total, "of the best", "iterations", "fill", "levels", "MB"];
    sheet.columns.extend(measured.map(Head::number));
    let best = finalists.first().map_or(1.0, |f| f.seconds.value);
    for f in finalists {
        let mut row: Vec<String> = varying.iter().map(|axis| (axis.text)(&f.case)).collect();
        row.extend(cells(f, best, question.solves));
        sheet.rows.push(row);
    }
    sheet.drop_empty_columns();
    sheet.notes = notes(question, advice);
    let rows = finalists.iter().map(|f| fields(&f.record)).collect();
    Report { sheets: vec![sheet], rows }
}

/// Setup and solve are the parts of the round that is the median: with all solves they add up to the total.
fn cells(f: &Finalist, best: f64, solves: usize) -> [String; 8] {
    let factor = &f.record.factor;
    let memory = f.record.traffic.memory_bytes.map(|b| significant(b as f64 / 1e6, 3));
    [
        seconds(f.fixed),
        seconds((f.seconds.value - f.fixed) / solves as f64),
        median_seconds(&f.seconds),
        format!("{:.2}", f.seconds.value / best),
        grouped(f.record.convergence.iterations),
        factor.fill_ratio.map(|r| format!("{r:.2}")).unwrap_or_default(),
        factor.levels_lower.map(grouped).unwrap_or_default(),
        memory.unwrap_or_default(),
    ]
}

/// Why, how sure, and what was left.
fn notes(question: &Question, advice: &Advice) -> Vec<String> {
    let mut notes = Vec::new();
    notes.push(match advice.finalists.first() {
        None => nothing(question, advice),
        Some(best) => format!("why: {}", why(&best.case, advice)),
    });
    let found = &advice.found;
    if found.interrupted {
        let rounds = advice.finalists.first().map_or(0, |best| best.seconds.count);
        notes.push(match rounds {
            0 | 1 => "stopped: the best so far, by single trials".into(),
            _ => format!("stopped: the best so far, after {rounds} rounds"),
        });
    } else {
        notes.extend(sure(&advice.finalists));
    }
    let failed = found.tried.iter().filter(|t| matches!(t.trial, Trial::Failed { .. })).count();
    let cut = found.tried.len() - found.solved().len() - failed;
    notes.push(format!(
        "{} tried of {}, {cut} of them took longer and {failed} failed, in {}; {} not worth a trial by \
         their neighbours",
        grouped(found.tried.len()),
        plural(found.combinations, "combination"),
        seconds(advice.seconds),
        grouped(found.hopeless),
    ));
    if let Some(first) = found.left.first() {
        let count = grouped(found.left.len());
        let promising = match advice.finalists.first() {
            Some(best) => format!(", the most promising with {}", difference(first, &best.case)),
            None => String::new(),
        };
        notes.push(if found.interrupted {
            format!("not tried: {count}{promising}")
        } else {
            let budget = number_text(question.budget_s);
            format!(
                "not tried for lack of time: {count}{promising}; --time-budget above {budget} tries \
                 more"
            )
        });
    }
    notes.extend(advice.missing.iter().cloned());
    notes
}

/// What is said when nothing was solved: the reasons, most frequent first.
fn nothing(question: &Question, advice: &Advice) -> String {
    let found = &advice.found;
    if found.tried.is_empty() && !found.interrupted {
        let budget = number_text(question.budget_s);
        return format!("nothing was tried: the time budget of {budget} s was over before");
    }
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for tried in &advice.found.tried {
        let reason = match &tried.trial {
            Trial::Failed { reason } => reason.clone(),
            _ => "took longer than its limit".into(),
        };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push((reason, 1)),
        }
    }
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut text = String::from("nothing was solved");
    for (reason, count) in reasons.iter().take(MOST_NAMED) {
        _ = write!(text, "; {count}: {reason}");
    }
    text
}

/// For each setting that was varied alone from `case` and changed something: what the other values do.
fn why(case: &Case, advice: &Advice) -> String {
    let tried = &advice.found.tried;
    let Some(own) = tried.iter().find(|t| t.case == *case) else { return String::new() };
    let mut words = Vec::new();
    for knob in advice.space.knobs().iter().filter(|knob| case.uses_named(knob.axis.name)) {
        let varied = tried.iter().filter(|t| differs_only(&t.case, case, knob.axis.name));
        let mut others: Vec<(f64, String)> = varied
            .filter(|t| !changed_nothing(own, t))
            .map(|t| {
                let (order, what) = effect(own, t, &advice.finalists);
                (order, format!("{} {what}", (knob.axis.text)(&t.case)))
            })
            .collect();
        others.sort_by(|a, b| a.0.total_cmp(&b.0));
        if !others.is_empty() {
            let named: Vec<&str> =
                others.iter().take(MOST_NAMED).map(|(_, text)| text.as_str()).collect();
            let chosen = (knob.axis.text)(case);
            words.push(format!("{} {chosen} ({})", knob.axis.name, named.join(", ")));
        }
    }
    words.join("; ")
}

/// What another trial takes over the best's `own`, for sorting and in words: by rounds where both were measured
/// so, else by the single trials, marked `~`.
fn effect(own: &Tried, other: &Tried, finalists: &[Finalist]) -> (f64, String) {
    let of = |case: &Case| finalists.iter().find(|f| f.case == *case);
    if let (Some(own), Some(other)) = (of(&own.case), of(&other.case)) {
        return match ratio(&other.seconds, &own.seconds) {
            Some(ratio) => (ratio, format!("{ratio:.2}x")),
            None => (1.0, "cannot be told apart".into()),
        };
    }
    match (&other.trial, own.trial.seconds()) {
        (Trial::Failed { .. }, _) => (f64::INFINITY, "fails".into()),
        (Trial::Solved { seconds, .. }, Some(own)) => {
            let ratio = seconds / own;
            let shown = !(1.0 / BEYOND_NOISE..=BEYOND_NOISE).contains(&ratio);
            (ratio, if shown { format!("~{ratio:.1}x") } else { "about the same".into() })
        }
        _ => (f64::MAX, "takes longer".into()),
    }
}

fn differs_only(a: &Case, b: &Case, setting: &str) -> bool {
    let differs = |axis: &&crate::config::Axis| (axis.text)(a) != (axis.text)(b);
    let mut all = AXES.iter().filter(differs);
    all.next().is_some_and(|axis| axis.name == setting) && all.next().is_none()
}

/// The settings of `case` that `other` has not.
fn difference(case: &Case, other: &Case) -> String {
    let differs = AXES.iter().filter(|axis| (axis.text)(case) != (axis.text)(other));
    let words: Vec<String> =
        differs.map(|axis| format!("{} {}", axis.name, (axis.text)(case))).collect();
    words.join(", ")
}

/// Whether the best is told from the others by rounds.
fn sure(finalists: &[Finalist]) -> Vec<String> {
    let Some(best) = finalists.first() else { return Vec::new() };
    let name = describe(&best.case);
    let rounds = plural(best.seconds.count, "round");
    if finalists.len() == 1 {
        return vec![format!(
            "alone: {name}; in single trials everything else failed or took too long"
        )];
    }
    let equal: Vec<String> = equals(finalists)[1..].iter().map(|f| describe(&f.case)).collect();
    if !equal.is_empty() {
        let why = if best.seconds.count < ROUNDS {
            format!("after {rounds}, and an interval takes {ROUNDS}")
        } else {
            format!("after {rounds}: their intervals are not apart")
        };
        return vec![format!("cannot tell {name} from {} here, {why}", equal.join(" or "))];
    }
    let second = &finalists[1];
    let ((best_low, best_high), (low, high)) = (best.seconds.ends(), second.seconds.ends());
    let gap = |over: f64, of: f64| 100.0 * (over / of - 1.0);
    vec![format!(
        "sure: {name}; the second takes {:.0} % more ({:.0} to {:.0} %), their intervals are apart after \
         {rounds}",
        gap(second.seconds.value, best.seconds.value),
        gap(low, best_high),
        gap(high, best_low),
    )]
}
