//! Advice in words: the best few, what each of their settings is worth, and how sure that is.

use std::fmt::Write as _;

use crate::advise::{Advice, Finalist, Question, Tried};
use crate::case::Case;
use crate::config::AXES;
use crate::config::parse::number_text;
use crate::report::runs::{common_settings, head, varying};
use crate::report::units::{grouped, median_seconds, plural, seconds, significant};
use crate::report::{Head, Report, Sheet};
use crate::result::table::fields;

/// Values of a setting that are named in a reason at most.
const MOST_NAMED: usize = 4;
/// A change that costs less than this factor is none.
const SAME: f64 = 1.03;

/// Settings that are named when they are not the default.
const NAMED: &[&str] = &["level-rule", "factor-precision", "trisolve", "execution"];

/// The searched settings in a few words.
pub fn describe(case: &Case) -> String {
    let Case { precond, fill, block_size, ordering, solver, backend, .. } = case;
    let mut words = format!("{precond} k={fill} b={block_size} {ordering} {solver} {backend}");
    let default = Case::default();
    for axis in AXES.iter().filter(|axis| NAMED.contains(&axis.name)) {
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
        row.extend(cells(f, best));
        sheet.rows.push(row);
    }
    sheet.drop_empty_columns();
    sheet.notes = notes(question, advice);
    let rows = finalists.iter().map(|f| fields(&f.record)).collect();
    Report { sheets: vec![sheet], rows }
}

fn cells(f: &Finalist, best: f64) -> [String; 8] {
    let (times, factor) = (&f.record.times, &f.record.factor);
    let memory = f.record.traffic.memory_bytes.map(|b| significant(b as f64 / 1e6, 3));
    [
        seconds(f.fixed),
        times.solve_s.map(seconds).unwrap_or_default(),
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
        notes.push("stopped: the best so far, by single trials".into());
    } else {
        notes.extend(sure(&advice.finalists));
    }
    let cut = found.tried.len() - found.solved().len();
    notes.push(format!(
        "{} tried of {}, {cut} of them given up or failed, in {}; {} not worth a trial by their \
         neighbours",
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
            super::Trial::Failed { reason } => reason.clone(),
            _ => "given up".into(),
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

/// For each setting that was varied alone from `case`: what the other values take.
fn why(case: &Case, advice: &Advice) -> String {
    let tried = &advice.found.tried;
    let of = |case: &Case| tried.iter().find(|t| t.case == *case);
    let Some(own) = of(case).and_then(|t| t.trial.seconds()) else { return String::new() };
    let mut words = Vec::new();
    for knob in advice.space.knobs() {
        let mut others: Vec<(f64, String)> = Vec::new();
        for t in tried.iter().filter(|t| differs_only(&t.case, case, knob.axis.name)) {
            others.push((ratio(t, own), (knob.axis.text)(&t.case)));
        }
        others.sort_by(|a, b| a.0.total_cmp(&b.0));
        let text = |(ratio, value): &(f64, String)| match *ratio {
            f64::INFINITY => format!("{value} fails or takes longer"),
            ratio if ratio < SAME => format!("{value} the same"),
            ratio => format!("{value} {ratio:.1}x"),
        };
        let named: Vec<String> = others.iter().take(MOST_NAMED).map(text).collect();
        if !named.is_empty() {
            let chosen = (knob.axis.text)(case);
            words.push(format!("{} {chosen} ({})", knob.axis.name, named.join(", ")));
        }
    }
    words.join("; ")
}

fn ratio(tried: &Tried, own: f64) -> f64 {
    tried.trial.seconds().map_or(f64::INFINITY, |s| s / own)
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

/// How far the best is from the second, beside the noise.
fn sure(finalists: &[Finalist]) -> Vec<String> {
    let Some(best) = finalists.first() else { return Vec::new() };
    let spread = 100.0 * best.seconds.relative_error();
    let times = plural(best.seconds.count, "measurement");
    let Some(second) = finalists.get(1) else {
        return vec![format!("sure: nothing else came within 30 %; ± {spread:.1} % by {times}")];
    };
    let gap = 100.0 * (second.seconds.value / best.seconds.value - 1.0);
    let apart = second.seconds.ends().0 > best.seconds.ends().1;
    let verdict = if best.seconds.count < 3 {
        "not measured often enough to tell them apart"
    } else if apart {
        "their intervals do not overlap"
    } else {
        "their intervals overlap: either may be the best"
    };
    vec![format!("sure: the second is {gap:.1} % slower, {verdict}; ± {spread:.1} % by {times}")]
}
