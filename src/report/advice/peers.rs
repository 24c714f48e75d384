//! Methods of peers beside the best of this program.

use crate::base::external::external;
use crate::base::units::{grouped, median_seconds, plural, seconds};
use crate::bench::advise::decision::ratio;
use crate::bench::advise::peers::OfPeer;
use crate::bench::advise::search::MARGIN;
use crate::bench::advise::{Advice, Finalist, Trial, describe};
use crate::case::Case;
use crate::report::Sheet;
use crate::report::build::Columns;

/// `cg with boomeramg of hypre`; a direct solve of a peer, `umfpack of suitesparse`, takes no preconditioner of its
/// own.
fn method(case: &Case) -> String {
    let word = |name| external(name).unwrap_or(name);
    let (solver, peer) = (word(&case.solver), word(&case.backend));
    if external(&case.solver).is_some() && external(&case.precond).is_none() {
        return format!("{solver} of {peer}");
    }
    format!("{solver} with {} of {peer}", word(&case.precond))
}

/// Each method of a peer that was asked for: its time, or why there is none. Nothing where none was.
pub(super) fn sheet(advice: &Advice) -> Option<Sheet> {
    if advice.peers.is_empty() {
        return None;
    }
    let in_rounds = |row: &OfPeer| {
        let case = row.case.as_ref()?;
        advice.finalists.iter().find(|f| f.case == *case)
    };
    let word = |name: &String| external(name).unwrap_or(name).to_owned();
    let of = |row: &OfPeer, name: fn(&Case) -> &String| {
        row.case.as_ref().map(|case| word(name(case))).unwrap_or_default()
    };
    let time = |row: &OfPeer| match (in_rounds(row), &row.trial) {
        (Some(finalist), _) => median_seconds(&finalist.seconds),
        (None, Trial::Solved { seconds: once, .. }) => seconds(*once),
        (None, _) => String::new(),
    };
    let iterations = |row: &OfPeer| match &row.trial {
        Trial::Solved { record, .. } => grouped(record.convergence.iterations),
        _ => String::new(),
    };
    let remark = |row: &OfPeer| match (in_rounds(row), &row.trial) {
        (Some(finalist), _) => plural(finalist.seconds.count, "round"),
        (None, Trial::Solved { .. }) => "measured once".into(),
        (None, Trial::CutOff { .. }) => "takes longer".into(),
        (None, Trial::Failed { reason }) => reason.clone(),
    };
    let mut sheet = Columns::new()
        .words("peer", |row: &&OfPeer| row.name.clone())
        .words("solver", |row| of(row, |case| &case.solver))
        .words("precond", |row| of(row, |case| &case.precond))
        .number("iterations", |row| iterations(row))
        .number("setup + solves", |row| time(row))
        .words("remark", |row| remark(row))
        .sheet(&advice.peers);
    sheet.title = Some("Methods of peers".into());
    Some(sheet)
}

/// What the best of peers takes beside the best of this program; nothing where no peer was asked for.
pub(super) fn verdict(advice: &Advice) -> Option<String> {
    if advice.peers.is_empty() {
        return None;
    }
    let finalist = |peer| advice.finalists.iter().find(|f| f.case.peer().is_some() == peer);
    Some(match (finalist(true), finalist(false)) {
        (Some(theirs), Some(own)) => by_rounds(theirs, own),
        (theirs, own) => singly(theirs, own, advice),
    })
}

fn by_rounds(theirs: &Finalist, own: &Finalist) -> String {
    let (method, own_name) = (method(&theirs.case), describe(&own.case));
    match ratio(&theirs.seconds, &own.seconds) {
        Some(ratio) => format!(
            "{method}, the best of peers, takes {ratio:.2} of the time of {own_name}, the best without \
             peers (setup included)"
        ),
        None => {
            format!(
                "cannot tell {method}, the best of peers, from {own_name}, the best without peers"
            )
        }
    }
}

/// The same where rounds were made of one side at most.
fn singly(theirs: Option<&Finalist>, own: Option<&Finalist>, advice: &Advice) -> String {
    let solved = advice.found.solved();
    let first = |peer| {
        let first = solved.iter().find(|t| t.case.peer().is_some() == peer);
        first.and_then(|t| Some((&t.case, t.trial.seconds()?)))
    };
    let known = |finalist: Option<&'_ Finalist>, peer| {
        let rounds = finalist.map(|f| (f.case.clone(), f.seconds.value));
        rounds.or_else(|| first(peer).map(|(case, seconds)| (case.clone(), seconds)))
    };
    match (known(theirs, true), known(own, false)) {
        (Some((theirs, a)), Some((own, b))) => format!(
            "{}, the best of peers, takes ~{:.2} of the time of {}, the best without peers (setup \
             included), by one measurement",
            method(&theirs),
            a / b,
            describe(&own)
        ),
        (Some((theirs, _)), None) => {
            format!("{}, of a peer, solves it; nothing of this program did", method(&theirs))
        }
        (None, _) if advice.peers.iter().any(|p| matches!(p.trial, Trial::CutOff { .. })) => {
            format!("every method of a peer fails or takes more than {MARGIN} times the best")
        }
        (None, _) => "no method of a peer solves it".into(),
    }
}
