//! The report of `advise`: the best configurations, the effect of each of their settings, and the confidence.

mod peers;

use itertools::Itertools as _;

use crate::base::parse::number_text;
use crate::base::units::{grouped, median_seconds, parts_of, plural, seconds};
use crate::bench::advise::decision::{ROUNDS, equals, noise, ratio};
use crate::bench::advise::finals::changed_nothing;
use crate::bench::advise::search::MARGIN;
use crate::bench::advise::{Advice, Finalist, Question, Trial, Tried, describe};
use crate::case::Case;
use crate::record::table::fields;
use crate::report::Report;
use crate::report::build::Columns;
use crate::report::cells::{by_key, common_settings, count, hundredths, settings, three, varying};

/// Largest number of values of a setting in a reason, and of combinations in a line.
const MOST_NAMED: usize = 4;

/// The table of the best, with the reasons below it.
pub fn report(question: &Question, advice: &Advice) -> Report {
    let finalists = &advice.finalists;
    let varying = varying(finalists.iter().map(|f| &f.case));
    // all solves together, so that the shown parts add up to the shown total
    let solves = match question.solves {
        1 => "solve".to_owned(),
        many => format!("{} solves", grouped(many)),
    };
    // setup and solves are the parts of the round that is the median, which is the total
    let parts = |f: &Finalist| parts_of(f.seconds.value, f.fixed);
    let mut sheet = Columns::settings(&varying, |f: &&Finalist| &f.case)
        .number("setup", |f| parts(f)[0].clone())
        .number(&*solves, |f| parts(f)[1].clone())
        .number(format!("setup + {solves}"), |f| median_seconds(&f.seconds))
        .number("of the best", |f| match ratio(&f.seconds, &finalists[0].seconds) {
            _ if f.case == finalists[0].case => "1.00".to_owned(),
            Some(ratio) => format!("{ratio:.2}"),
            None => "not apart".into(),
        })
        .number("iterations", |f| grouped(f.record.convergence.iterations))
        .number("fill", |f| hundredths(f.record.factor.fill_ratio))
        .number("levels", |f| count(f.record.factor.levels_lower))
        .number("MB", |f| three(f.record.traffic.memory_bytes.map(|b| b as f64 / 1e6)))
        .sheet(finalists);
    sheet.title = Some(format!("Advice for {}", question.base.matrix));
    sheet.preamble = vec![advice.structure.describe()];
    let settings = finalists.first().map(|f| common_settings(&f.case, &varying).join(", "));
    sheet.preamble.extend(settings);
    sheet.notes = notes(question, advice);
    let rows = finalists.iter().map(|f| fields(&f.record)).collect();
    let sheets = std::iter::once(sheet).chain(peers::sheet(advice)).collect();
    Report { sheets, rows }
}

/// The reasons, the confidence, and what remains undecided.
fn notes(question: &Question, advice: &Advice) -> Vec<String> {
    let mut notes = match advice.finalists.first() {
        None => vec![nothing(question, advice)],
        Some(best) => why(&best.case, advice),
    };
    let found = &advice.found;
    if found.interrupted {
        let rounds = advice.finalists.first().map_or(0, |best| best.seconds.count);
        notes.push(match rounds {
            0 | 1 => "stopped: the best so far, by one measurement each".into(),
            _ => format!("stopped: the best so far, after {rounds} rounds"),
        });
    }
    let best = advice.finalists.first();
    // nothing is said of others where the search did not come to them
    if let Some(best) = best.filter(|best| !found.interrupted || best.seconds.count > 1) {
        notes.extend(sure(best, advice));
    }
    notes.extend(peers::verdict(advice));
    let failed = found.tried.iter().filter(|t| matches!(t.trial, Trial::Failed { .. })).count();
    let cut = found.tried.len() - found.solved().len() - failed;
    notes.push(format!(
        "{} tried of {}, {cut} of them took longer and {failed} failed, in {}; {} not expected to be worth \
         a trial",
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

/// The report when no trial succeeded: the reasons, most frequent first.
fn nothing(question: &Question, advice: &Advice) -> String {
    let found = &advice.found;
    if found.tried.is_empty() && !found.interrupted {
        let budget = number_text(question.budget_s);
        return format!("nothing was tried: the time budget of {budget} s was over before");
    }
    let reason = |tried: &&Tried| match &tried.trial {
        Trial::Failed { reason } => reason.clone(),
        _ => "took longer than its limit".into(),
    };
    let mut reasons = by_key(&found.tried, reason);
    reasons.sort_by_key(|(_, tried)| std::cmp::Reverse(tried.len()));
    let named = reasons.iter().take(MOST_NAMED);
    let named = named.map(|(reason, tried)| format!("; {}: {reason}", tried.len()));
    format!("nothing was solved{}", named.collect::<String>())
}

/// For each setting that was varied alone from `case` and changed something: what the other values do. What rounds
/// say and what fails come first; a line of its own has what single trials alone say.
fn why(case: &Case, advice: &Advice) -> Vec<String> {
    let tried = &advice.found.tried;
    let Some(own) = tried.iter().find(|t| t.case == *case) else { return Vec::new() };
    let (mut by_rounds, mut singly) = (Vec::new(), Vec::new());
    for knob in advice.space.knobs().iter().filter(|knob| case.uses_named(knob.axis.name)) {
        let mut effects: Vec<Effect> = tried
            .iter()
            .filter(|t| differs_only(&t.case, case, knob.axis.name) && !changed_nothing(own, t))
            .map(|t| effect(own, t, &(knob.axis.text)(&t.case), advice))
            .collect();
        effects.sort_by(|a, b| a.order.total_cmp(&b.order));
        for (words, once) in [(&mut by_rounds, false), (&mut singly, true)] {
            let of = effects.iter().filter(|effect| effect.once == once);
            let named: Vec<&str> = of.take(MOST_NAMED).map(|e| e.words.as_str()).collect();
            if !named.is_empty() {
                let chosen = (knob.axis.text)(case);
                words.push(format!("{} {chosen} ({})", knob.axis.name, named.join(", ")));
            }
        }
    }
    let mut lines = vec![match by_rounds.as_slice() {
        [] => "why: no rounds of one that differs in a single setting".into(),
        words => format!("why: {}", words.join("; ")),
    }];
    if !singly.is_empty() {
        lines.push(format!("{}: {}", by_single(&advice.finalists), singly.join("; ")));
    }
    lines
}

/// The effect of another value.
struct Effect {
    /// Place among the others.
    order: f64,
    words: String,
    /// Whether single trials alone say so.
    once: bool,
}

/// The basis of single trials, and the smallest difference that they can show.
fn by_single(finalists: &[Finalist]) -> String {
    format!("by one measurement each, which tells nothing below {:.2}x", noise(finalists))
}

/// What `other`, which has this value, takes over the best's `own`: by rounds where both were measured so, else by
/// the single trials, marked `~`.
fn effect(own: &Tried, other: &Tried, value: &str, advice: &Advice) -> Effect {
    let of = |case: &Case| advice.finalists.iter().find(|f| f.case == *case);
    let cannot = || format!("cannot tell from {value}");
    let (once, order, words) = match (of(&own.case), of(&other.case)) {
        (Some(own), Some(other)) => match ratio(&other.seconds, &own.seconds) {
            Some(ratio) => (false, ratio, format!("{value} {ratio:.2}x")),
            None => (false, 1.0, cannot()),
        },
        _ => match single_ratio(own, other, advice) {
            // another trial of it would fail too
            None => (false, f64::INFINITY, format!("{value} fails")),
            Some(Single::Within(ratio)) => (true, ratio, cannot()),
            Some(Single::Apart(ratio)) => (true, ratio, format!("{value} ~{ratio:.1}x")),
            Some(Single::GivenUp) => (true, f64::MAX, format!("{value} takes longer")),
        },
    };
    Effect { order, words, once }
}

/// What single trials say of the time of one over another's.
enum Single {
    /// About this, which may be noise.
    Within(f64),
    /// About this, beyond noise.
    Apart(f64),
    /// It was aborted at a multiple of the best that exceeds the noise.
    GivenUp,
}

/// What single trials say of `other` beside the best's `own`; `None` where it fails.
fn single_ratio(own: &Tried, other: &Tried, advice: &Advice) -> Option<Single> {
    let noise = noise(&advice.finalists);
    let median =
        advice.finalists.iter().find(|f| f.case == own.case).map_or(0.0, |f| f.seconds.value);
    // the least of many single times is too good: it is the best partly by luck
    let own = own.trial.seconds().map_or(median, |single| single.max(median));
    let within = |ratio: &f64| (1.0 / noise..=noise).contains(ratio);
    match &other.trial {
        Trial::Failed { .. } => None,
        Trial::Solved { seconds, .. } => {
            let ratio = seconds / own;
            Some(if within(&ratio) { Single::Within(ratio) } else { Single::Apart(ratio) })
        }
        Trial::CutOff { fixed } => {
            let least = advice.found.tried.iter().filter_map(|t| t.trial.seconds());
            let least = (MARGIN * least.fold(f64::INFINITY, f64::min)).max(*fixed) / own;
            Some(if least > noise { Single::GivenUp } else { Single::Within(least) })
        }
    }
}

/// What was measured once and may be as fast as the best for all that this says, fastest first.
fn as_fast<'a>(best: &Finalist, advice: &'a Advice) -> Vec<&'a Tried> {
    let (tried, finalists) = (&advice.found.tried, &advice.finalists);
    let is_finalist = |t: &Tried| finalists.iter().any(|f| f.case == t.case);
    let in_rounds: Vec<&Tried> = tried.iter().filter(|t| is_finalist(t)).collect();
    let Some(own) = tried.iter().find(|t| t.case == best.case) else { return Vec::new() };
    let others = tried.iter().filter(|t| {
        !is_finalist(t) && in_rounds.iter().all(|finalist| !changed_nothing(finalist, t))
    });
    let found = others.filter_map(|t| match single_ratio(own, t, advice)? {
        Single::Within(ratio) => Some((ratio, t)),
        // faster in the search, and given up in the rounds
        Single::Apart(ratio) if ratio < 1.0 => Some((ratio, t)),
        Single::Apart(_) | Single::GivenUp => None,
    });
    found.sorted_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, t)| t).collect()
}

fn differs_only(a: &Case, b: &Case, setting: &str) -> bool {
    varying([a, b]).iter().map(|axis| axis.name).eq([setting])
}

/// The settings of `case` in which `other` differs.
fn difference(case: &Case, other: &Case) -> String {
    settings(&varying([case, other]), case)
}

/// Whether the best is distinguished from the others: from the finalists by rounds, from the rest by single trials.
fn sure(best: &Finalist, advice: &Advice) -> Vec<String> {
    let name = describe(&best.case);
    let as_fast = as_fast(best, advice);
    let mut lines: Vec<String> =
        told_apart(best, &advice.finalists, as_fast.is_empty()).into_iter().collect();
    if !as_fast.is_empty() {
        let more = as_fast.len().checked_sub(MOST_NAMED).filter(|more| *more > 0);
        let names = as_fast.iter().take(MOST_NAMED).map(|t| describe(&t.case));
        let names = names.chain(more.map(|more| format!("{} more", grouped(more)))).join(" or ");
        lines.push(format!(
            "cannot tell {name} from {names} here, {}",
            by_single(&advice.finalists)
        ));
    }
    lines
}

/// What the rounds say of the best, and `sure` where nothing else can be as fast.
fn told_apart(best: &Finalist, finalists: &[Finalist], sure: bool) -> Option<String> {
    let name = describe(&best.case);
    let rounds = plural(best.seconds.count, "round");
    let Some(second) = finalists.get(1) else {
        return sure.then(|| {
            format!(
                "alone: {name}; everything else tried failed or took longer, by one measurement each"
            )
        });
    };
    let equal: Vec<String> = equals(finalists)[1..].iter().map(|f| describe(&f.case)).collect();
    if !equal.is_empty() {
        let why = if best.seconds.count < ROUNDS {
            format!("after {rounds}, and an interval takes {ROUNDS}")
        } else {
            format!("after {rounds}: their intervals are not apart")
        };
        return Some(format!("cannot tell {name} from {} here, {why}", equal.join(" or ")));
    }
    let ((best_low, best_high), (low, high)) = (best.seconds.ends(), second.seconds.ends());
    let gap = |over: f64, of: f64| 100.0 * (over / of - 1.0);
    Some(format!(
        "{}: {name}; the second takes {:.0} % more ({:.0} to {:.0} %), their intervals are apart after \
         {rounds}",
        if sure { "sure" } else { "first in rounds" },
        gap(second.seconds.value, best.seconds.value),
        gap(low, best_high),
        gap(high, best_low),
    ))
}

#[cfg(test)]
mod tests;
