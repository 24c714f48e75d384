//! What is said of trials and rounds that are made up.

use super::*;
use crate::base::measure::median;
use crate::bench::advise::peers::OfPeer;
use crate::bench::advise::space::tests::space;
use crate::bench::advise::{Found, Structure};
use crate::matrix::SYMMETRY_TOLERANCE;
use crate::problem::samples::problem;
use crate::record::Record;

const SPEC: &str = "poisson3d:4";

fn case(fill: usize, ordering: &str) -> Case {
    let ordering = ordering.parse().unwrap();
    Case { matrix: SPEC.into(), solver: "cg".into(), fill, ordering, ..Case::default() }
}

fn solved(case: &Case, seconds: f64) -> Tried {
    let mut record = Record::default();
    // others' residuals differ: no two of them are the same method by other names
    record.convergence.true_residual = Some(seconds);
    let trial = Trial::Solved { fixed: 0.25 * seconds, seconds, record: Box::new(record) };
    Tried { point: Vec::new(), case: case.clone(), trial }
}

fn given_up(case: &Case) -> Tried {
    Tried { point: Vec::new(), case: case.clone(), trial: Trial::CutOff { fixed: 0.1 } }
}

fn finalist(case: &Case, rounds: &[f64]) -> Finalist {
    let seconds = median(rounds).unwrap();
    let disturbed = rounds.iter().copied().fold(0.0, f64::max) / seconds.value;
    let (case, fixed) = (case.clone(), 0.25 * seconds.value);
    Finalist { case, seconds, fixed, disturbed, record: Record::default() }
}

fn advice(tried: Vec<Tried>, finalists: Vec<Finalist>) -> Advice {
    let structure = Structure::of(&problem(SPEC), SYMMETRY_TOLERANCE);
    let space = space(SPEC, &[("precond", "bilu"), ("solver", "cg"), ("block-size", "1")]);
    let found = Found { combinations: tried.len(), tried, ..Found::default() };
    let (peers, missing, seconds, compile_s) = (Vec::new(), Vec::new(), 1.0, 0.0);
    Advice { structure, space, found, finalists, peers, missing, seconds, compile_s }
}

fn question(solves: usize) -> Question {
    let base = Case { matrix: SPEC.into(), ..Case::default() };
    Question {
        base,
        fixed: crate::config::Sweep::default(),
        solves,
        budget_s: 60.0,
        peers: Vec::new(),
    }
}

fn lines(advice: &Advice) -> Vec<String> {
    let mut lines = notes(&question(1), advice);
    assert!(lines.pop().unwrap().contains(" tried of "));
    lines
}

/// Rounds about `seconds`, the slowest `worst` times as long.
fn rounds(seconds: f64, worst: f64) -> [f64; 7] {
    [0.99, 1.0, 1.0, 1.0, 1.0, 1.01, worst].map(|factor| factor * seconds)
}

#[test]
fn reasons_say_whether_rounds_or_single_trials_show_them() {
    let [best, slower, once, near] =
        [case(0, "natural"), case(1, "natural"), case(0, "red-black"), case(0, "rcm")];
    let failed = Trial::Failed { reason: "breakdown".into() };
    let failed = Tried { point: Vec::new(), case: case(3, "natural"), trial: failed };
    let tried = vec![
        solved(&best, 1.0),
        solved(&slower, 1.2),
        solved(&once, 1.9),
        given_up(&case(2, "natural")),
        solved(&near, 1.3),
        failed,
    ];
    let measured =
        || vec![finalist(&best, &rounds(1.0, 1.1)), finalist(&slower, &rounds(1.5, 1.1))];
    let quiet = advice(tried.clone(), measured());
    assert_eq!(
        lines(&quiet),
        [
            "why: fill 0 (1 1.50x, 3 fails)",
            "by one measurement each, which tells nothing below 1.25x: fill 0 (2 takes longer); \
             ordering natural (rcm ~1.3x, red-black ~1.9x)",
            "sure: bilu k=0 b=1 natural cg cpu; the second takes 50 % more (35 to 67 %), their intervals \
             are apart after 7 rounds",
        ]
    );
    // rounds that scatter by 1.4: so did single trials, and what was 1.3 times the best may be as fast
    let noisy =
        advice(tried, vec![finalist(&best, &rounds(1.0, 1.4)), finalist(&slower, &[1.5; 6])]);
    let words = lines(&noisy);
    assert_eq!(
        words[1],
        "by one measurement each, which tells nothing below 1.40x: fill 0 (2 takes longer); ordering \
         natural (cannot tell from rcm, red-black ~1.9x)"
    );
    // the interval of seven rounds is their range
    assert_eq!(
        words[2],
        "first in rounds: bilu k=0 b=1 natural cg cpu; the second takes 50 % more (7 to 52 %), their \
         intervals are apart after 7 rounds"
    );
    assert_eq!(
        words[3],
        "cannot tell bilu k=0 b=1 natural cg cpu from bilu k=0 b=1 rcm cg cpu here, by one measurement \
         each, which tells nothing below 1.40x"
    );
    assert_eq!(words.len(), 4);
}

#[test]
fn beyond_a_scatter_of_two_what_was_given_up_may_be_as_fast() {
    let (best, other) = (case(0, "natural"), case(0, "rcm"));
    let scattered = |worst| {
        let finalists = vec![finalist(&best, &rounds(1.0, worst))];
        lines(&advice(vec![solved(&best, 1.0), given_up(&other)], finalists))
    };
    let alone = "alone: bilu k=0 b=1 natural cg cpu; everything else tried failed or took longer, by one \
                 measurement each";
    assert_eq!(scattered(1.9)[2], alone);
    assert!(scattered(1.9)[1].ends_with("ordering natural (rcm takes longer)"));
    let words = scattered(2.2);
    assert!(words[1].ends_with("ordering natural (cannot tell from rcm)"), "{words:?}");
    assert!(
        words[2].starts_with("cannot tell bilu k=0 b=1 natural cg cpu from bilu k=0 b=1 rcm cg ")
    );
    assert!(words.len() == 3 && words.iter().all(|line| !line.starts_with("alone")));
    // rounds that took longer than the trial show that the machine has changed
    let changed = vec![finalist(&best, &rounds(1.7, 1.0))];
    let words = lines(&advice(vec![solved(&best, 1.0), given_up(&other)], changed));
    assert!(words[2].starts_with("cannot tell "), "{words:?}");
}

#[test]
fn the_table_tells_apart_only_what_rounds_do_and_its_sums_are_sums() {
    let [best, equal, slower] = [case(0, "natural"), case(1, "natural"), case(2, "natural")];
    let mut finalists = vec![
        finalist(&best, &rounds(0.053_889_8, 1.02)),
        finalist(&equal, &rounds(0.054_1, 1.02)),
        finalist(&slower, &rounds(0.1, 1.02)),
    ];
    finalists[0].fixed = 0.005_124_9;
    let tried = finalists.iter().map(|f| solved(&f.case, f.seconds.value)).collect();
    let advice = advice(tried, finalists);
    let sheet = |solves| report(&question(solves), &advice).sheets.swap_remove(0);
    let of = |head: &str, solves| -> Vec<String> {
        sheet(solves).column(head).into_iter().map(str::to_owned).collect()
    };
    assert_eq!(of("of the best", 1), ["1.00", "not apart", "1.86"]);
    // each by itself would be 5.125 and 48.76 ms
    assert_eq!((&*of("setup", 1)[0], &*of("solve", 1)[0]), ("5.12 ms", "48.77 ms"));
    assert!(of("setup + solve", 1)[0].starts_with("53.89 "), "{:?}", of("setup + solve", 1));
    // of many solves the sum of all is shown, that of one would not add up
    let (setup, all) = (of("setup", 100), of("100 solves", 100));
    let number = |text: &str| -> f64 { text.split(' ').next().unwrap().parse().unwrap() };
    for (place, total) in of("setup + 100 solves", 100).iter().enumerate() {
        let sum = number(&setup[place]) + number(&all[place]);
        assert!((sum - number(total)).abs() < 1e-9, "{setup:?} {all:?} {total}");
    }
}

#[test]
fn the_best_of_peers_is_put_beside_the_best_without_them() {
    let own = case(1, "rcm");
    let of_peer = |precond: &str| {
        let (precond, backend) = (format!("external:{precond}"), "external:hypre".into());
        Case { precond, backend, ..case(0, "natural") }
    };
    let (amg, other) = (of_peer("boomeramg"), of_peer("euclid"));
    let row = |case: &Case, trial: Trial| OfPeer {
        name: "hypre".into(),
        case: Some(case.clone()),
        trial,
    };
    let said = |finalists: Vec<Finalist>, tried: Vec<Tried>| {
        let failed = Trial::Failed { reason: "breakdown: zero pivot".into() };
        let mut advice = advice(tried, finalists);
        let of = |case: &Case| {
            advice.found.tried.iter().find(|t| t.case == *case).map(|t| t.trial.clone())
        };
        let cut = Trial::CutOff { fixed: 0.1 };
        advice.peers = vec![row(&amg, of(&amg).unwrap_or(cut)), row(&other, failed)];
        let missing = Trial::Failed { reason: "not installed".into() };
        advice.peers.push(OfPeer { name: "pyamg".into(), case: None, trial: missing });
        let report = report(&question(1), &advice);
        let line = notes(&question(1), &advice).into_iter().rev().nth(1).unwrap();
        (line, report.sheets[1].column("remark").join("; "), report)
    };
    let both = |a: f64, b: f64| {
        let mut all = vec![finalist(&amg, &rounds(a, 1.01)), finalist(&own, &rounds(b, 1.01))];
        all.sort_by(|a, b| a.seconds.value.total_cmp(&b.seconds.value));
        let tried = all.iter().map(|f| solved(&f.case, f.seconds.value)).collect();
        said(all, tried)
    };
    let (line, remarks, report) = both(0.33, 1.0);
    assert_eq!(
        line,
        "cg with boomeramg of hypre, the best of peers, takes 0.33 of the time of bilu k=1 b=1 rcm cg \
         cpu, the best without peers (setup included)"
    );
    assert_eq!(remarks, "7 rounds; breakdown: zero pivot; not installed");
    let sheet = &report.sheets[1];
    assert_eq!(sheet.column("precond"), ["boomeramg", "euclid", ""]);
    assert!(sheet.column("setup + solves")[0].starts_with("330.0 "), "{sheet:?}");
    assert_eq!(report.sheets[0].column("of the best"), ["1.00", "3.03"]);
    let (line, ..) = both(2.5, 1.0);
    assert!(line.contains(" takes 2.50 of the time of bilu k=1 b=1 rcm cg cpu, "), "{line}");
    let (line, ..) = both(1.0, 1.005);
    assert_eq!(
        line,
        "cannot tell cg with boomeramg of hypre, the best of peers, from bilu k=1 b=1 rcm cg cpu, the \
         best without peers"
    );
    let alone = || vec![finalist(&own, &rounds(1.0, 1.01))];
    let (line, remarks, _) = said(alone(), vec![solved(&own, 1.0), solved(&amg, 12.0)]);
    assert!(
        line.contains(" takes ~12.00 of the time of ") && line.ends_with(", by one measurement")
    );
    assert_eq!(remarks, "measured once; breakdown: zero pivot; not installed");
    let (line, remarks, _) = said(alone(), vec![solved(&own, 1.0)]);
    assert_eq!(line, "every method of a peer fails or takes more than 2 times the best");
    assert!(remarks.starts_with("takes longer; "), "{remarks}");
    let direct = Case { solver: "external:splu".into(), ..case(0, "natural") };
    let direct = Case { precond: "jacobi".into(), backend: "external:scipy".into(), ..direct };
    let (line, ..) = said(alone(), vec![solved(&own, 1.0), solved(&direct, 3.0)]);
    assert!(line.starts_with("splu of scipy, the best of peers, takes ~3.00 of "), "{line}");
    // nothing is said where no peer was asked for
    let own = advice(vec![solved(&own, 1.0)], alone());
    assert!(lines(&own).iter().all(|line| !line.contains("peer")));
    assert_eq!(report_of(&own).sheets.len(), 1);
}

fn report_of(advice: &Advice) -> Report {
    report(&question(1), advice)
}
