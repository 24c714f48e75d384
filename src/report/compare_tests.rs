use super::*;
use crate::base::status::Status;
use crate::config::AXES;
use crate::record::samples::{record, repeated};
use crate::report::ReportFormat;

fn case(fill: usize) -> Case {
    Case { fill, ..Case::default() }
}

fn all() -> Vec<&'static Axis> {
    AXES.iter().collect()
}

/// A threshold of 5 % and no drift.
const RULE: Rule = Rule { threshold_percent: 5.0, drift_percent: 0.0, paired: false };

fn judged(old: &Record, new: &Record, rule: &Rule) -> Verdict {
    Pair::of((&[old], &[new]), None, rule).verdict
}

#[test]
fn the_verdict_needs_the_whole_interval() {
    let old = repeated(case(0), 10, 1.0, 1.0);
    let of = |solve_s, percent| judged(&old, &repeated(case(0), 10, solve_s, percent), &RULE);
    assert_eq!(of(1.2, 1.0), Verdict::Slower);
    assert_eq!(of(0.8, 1.0), Verdict::Faster);
    assert_eq!(of(1.0, 1.0), Verdict::Same);
    // the medians differ by 20 %, but so do the repetitions
    assert_eq!(of(1.2, 20.0), Verdict::Unclear);
    // 6 % more, of which the noise may be 2 %
    assert_eq!(of(1.06, 1.0), Verdict::Unclear);
    assert_eq!(judged(&old, &record(case(0), 10, 9.0), &RULE), Verdict::Unclear);
    // the machine may have drifted by as much
    let drift = Rule { drift_percent: 15.0, ..RULE };
    assert_eq!(judged(&old, &repeated(case(0), 10, 1.2, 1.0), &drift), Verdict::Unclear);
    assert_eq!(judged(&old, &old, &drift), Verdict::Same);
}

#[test]
fn convergence_comes_before_time() {
    let good = repeated(case(0), 10, 1.0, 1.0);
    let bad = Record { status: Status::Diverged, ..good.clone() };
    assert_eq!(judged(&good, &bad, &RULE), Verdict::Broken);
    assert_eq!(judged(&bad, &good, &RULE), Verdict::Fixed);
    assert_eq!(judged(&bad, &bad, &RULE), Verdict::Failed);
}

#[test]
fn a_comparison_has_rows_counts_and_a_mean() {
    let old =
        [repeated(case(0), 10, 1.0, 1.0), repeated(case(1), 8, 1.0, 1.0), record(case(2), 5, 1.0)];
    let new =
        [repeated(case(0), 10, 2.0, 1.0), repeated(case(1), 9, 0.5, 1.0), record(case(3), 5, 1.0)];
    let result = compare(("old.csv", &old), ("new.csv", &new), &all(), &RULE).unwrap();
    assert_eq!(result.regressions, 1);
    // 1.96 at least
    assert_eq!((result.regressions_beyond(95.0), result.regressions_beyond(97.0)), (1, 0));
    insta::assert_snapshot!(ReportFormat::Table.render(&result.report).unwrap());
    assert_eq!(result.report.rows[0]["verdict"], "slower");
    assert_eq!(result.report.rows[1]["ratio"], 0.5);
}

#[test]
fn settings_may_differ_when_they_are_not_joined_on() {
    let old = [repeated(case(0), 10, 1.0, 1.0)];
    let other = Case { backend: "cpu-mt".into(), ..case(0) };
    let new = [repeated(other, 10, 0.5, 1.0)];
    let error = compare(("a", &old), ("b", &new), &all(), &RULE).unwrap_err();
    assert_eq!(error.to_string(), "`a` and `b` have no case in common");
    let by: Vec<&Axis> = AXES.iter().filter(|a| a.name != "backend").collect();
    let result = compare(("a", &old), ("b", &new), &by, &RULE).unwrap();
    assert_eq!(result.report.rows[0]["verdict"], "faster");
    let both = [old[0].clone(), new[0].clone()];
    let error = compare(("a", &both), ("b", &new), &by, &RULE).unwrap_err();
    assert_eq!(error.to_string(), "`a` has two records of one case");
    assert_eq!(error.hint_text(), Some("they differ in backend: add that to --by"));
}

#[test]
fn all_cases_together_are_surer_than_each() {
    let side = |factor: f64| -> Vec<Record> {
        (0..16).map(|i| repeated(case(i), 10, factor * (1.0 + i as f64), 4.0)).collect()
    };
    let (old, new) = (side(1.0), side(1.1));
    let result = compare(("a", &old), ("b", &new), &all(), &RULE).unwrap();
    assert!(result.report.rows.iter().all(|row| row["verdict"] == "unclear"));
    let overall = result.overall.unwrap();
    assert_eq!((overall.verdict, overall.cases), (Verdict::Slower, 16));
    // a logarithm of 1.04/0.96 on each side, over the root of 16
    let half = (1.04_f64 / 0.96).ln() / 4.0;
    assert!((overall.ratio - 1.1).abs() < 1e-12);
    assert!((overall.interval.0 - 1.1 * (-half).exp()).abs() < 1e-12);
    assert!((overall.interval.1 - 1.1 * half.exp()).abs() < 1e-12);
    // drift is common to all and does not average out
    let drift = Rule { drift_percent: 5.0, ..RULE };
    let overall = compare(("a", &old), ("b", &new), &all(), &drift).unwrap().overall.unwrap();
    assert_eq!(overall.verdict, Verdict::Unclear);
    assert!((overall.interval.0 - 1.1 * (-half).exp()).abs() < 1e-12);
    // one that no longer converges is a regression at any percentage
    let mut broken = new;
    broken[3].status = Status::Diverged;
    let result = compare(("a", &old), ("b", &broken), &all(), &RULE).unwrap();
    assert_eq!((result.regressions, result.regressions_beyond(900.0)), (1, 1));
}

#[test]
fn times_of_the_same_cases_are_summed() {
    let side = |factor: f64| [0, 1, 2].map(|fill| repeated(case(fill), 10, factor, 1.0));
    let (mut old, mut new) = (side(1.0), side(2.0));
    let line = |old: &[Record], new: &[Record]| {
        let result = compare(("a", old), ("b", new), &all(), &RULE).unwrap();
        let notes = &result.report.sheets[0].notes;
        notes.iter().find(|line| line.starts_with("geometric mean")).cloned()
    };
    let whole = "geometric mean of new/old: 2.000; all solves together: 3.000 s -> 6.000 s";
    assert_eq!(line(&old, &new).unwrap(), whole);
    // what took long to fail on one side is no work of the other
    new[1].status = Status::Stagnated;
    new[1].times.solve_s = Some(100.0);
    old[2].times.solve_s = None;
    let part = "geometric mean of new/old: 2.000; solves of the 1 case timed in both together: \
                1.000 s -> 2.000 s";
    assert_eq!(line(&old, &new).unwrap(), part);
    old[0].status = Status::Diverged;
    assert_eq!(line(&old, &new), None);
}

#[test]
fn rounds_of_a_case_are_one_row_and_say_what_intervals_are_made_from() {
    let side = |factor: f64, rounds: usize| -> Vec<Record> {
        let row = |i: usize| {
            let seconds = factor * (1.0 + 0.01 * i as f64);
            Record { round: Some(i + 1), ..record(case(0), 10, seconds) }
        };
        (0..rounds).map(row).collect()
    };
    let notes = |old: &[Record], new: &[Record], rule: &Rule| {
        let result = compare(("a", old), ("b", new), &all(), rule).unwrap();
        assert_eq!(result.report.rows.len(), 1);
        (result.report.rows[0]["verdict"].clone(), result.report.sheets[0].notes.clone())
    };
    let drift = Rule { drift_percent: 5.0, ..RULE };
    let (verdict, lines) = notes(&side(1.0, 5), &side(1.2, 5), &drift);
    assert_eq!(verdict, "slower");
    let line = "intervals from the variation between rounds; drift between runs is in none; `slower` \
                and `faster` allow 5.0 % for it";
    assert!(lines.contains(&line.to_owned()), "{lines:?}");
    let (verdict, lines) = notes(&side(1.0, 3), &side(1.2, 3), &drift);
    assert_eq!(verdict, "unclear");
    let line = "unclear without an interval: measure both with --rounds 5, or six solves in each";
    assert!(lines.contains(&line.to_owned()), "{lines:?}");
    let paired = Rule { paired: true, ..drift };
    let (verdict, lines) = notes(&side(1.0, 6), &side(1.06, 6), &paired);
    assert_eq!(verdict, "slower");
    let line = "intervals of the median ratio of rounds that were measured in alternation";
    assert!(lines.contains(&line.to_owned()), "{lines:?}");
    let samples = [repeated(case(0), 10, 1.0, 1.0)];
    let (verdict, lines) = notes(&samples, &side(1.0, 5), &drift);
    assert_eq!(verdict, "unclear");
    assert!(!lines.iter().any(|line| line.starts_with("intervals from")), "{lines:?}");
    let (_, lines) = notes(&samples, &samples, &drift);
    let line = "within one run only: drift between runs is not in these intervals; `slower` and \
                `faster` allow 5.0 % for it; --rounds 5 shows more of it";
    assert!(lines.contains(&line.to_owned()), "{lines:?}");
}

/// Five rounds of three cases: the times of the solves, and of the reference computation beside them.
fn rounds_beside(solve_s: f64, reference_s: f64) -> Vec<Record> {
    let row = |round: usize, fill: usize| {
        let noise = 1.0 + 0.01 * ((round * 7 + fill) % 5) as f64;
        let mut row = record(case(fill), 10, solve_s * noise);
        (row.round, row.times.reference_s) = (Some(round), Some(reference_s));
        row
    };
    (1..=5).flat_map(|round| (0..3).map(move |fill| row(round, fill))).collect()
}

#[test]
fn a_machine_that_drifts_makes_no_verdict() {
    let rule = Rule { drift_percent: 5.0, ..RULE };
    let compared = |old: &[Record], new: &[Record]| {
        let result = compare(("a", old), ("b", new), &all(), &rule).unwrap();
        let rows = &result.report.rows;
        assert!(rows.iter().all(|row| row["verdict"] == rows[0]["verdict"]), "{rows:?}");
        let overall = result.overall.unwrap().verdict;
        let notes = result.report.sheets[0].notes.clone();
        (rows[0]["verdict"].clone(), overall, result.regressions_beyond(10.0), notes)
    };
    let line = |side: &str| {
        format!(
            "the machine was 1.30 times as slow in {side} by its reference computation: verdicts allow for it"
        )
    };
    let old = rounds_beside(1.0, 2e-3);
    // everything is slower, the reference as well
    let slow = rounds_beside(1.3, 2.6e-3);
    let (verdict, overall, beyond, notes) = compared(&old, &slow);
    assert_eq!((verdict, overall, beyond), ("unclear".into(), Verdict::Unclear, 0));
    assert!(notes.contains(&line("new")), "{notes:?}");
    let why =
        "unclear: 3 cases beyond the threshold, within drift: `compare --run` measures in turns";
    assert!(notes.contains(&why.to_owned()), "{notes:?}");
    let (verdict, overall, _, notes) = compared(&slow, &old);
    assert_eq!((verdict, overall), ("unclear".into(), Verdict::Unclear));
    assert!(notes.contains(&line("old")), "{notes:?}");
    // a fifth on a machine that is as fast is found
    let (verdict, overall, beyond, notes) = compared(&old, &rounds_beside(1.2, 2e-3));
    assert_eq!((verdict, overall, beyond), ("slower".into(), Verdict::Slower, 3));
    assert!(!notes.iter().any(|note| note.starts_with("the machine")), "{notes:?}");
    // one that is slower hides what became slower, not what became faster in spite of it
    let (verdict, ..) = compared(&old, &rounds_beside(0.8, 2.6e-3));
    assert_eq!(verdict, "faster");
    // files of earlier versions have no reference
    let mut before = old.clone();
    for row in &mut before {
        row.times.reference_s = None;
    }
    let (verdict, _, _, notes) = compared(&before, &slow);
    assert_eq!(verdict, "slower");
    assert!(!notes.iter().any(|note| note.starts_with("the machine")), "{notes:?}");
}

#[test]
fn the_drift_of_the_run_counts_where_a_case_does_not_show_it() {
    let old = rounds_beside(1.0, 2e-3);
    let mut new = rounds_beside(1.3, 2.6e-3);
    for row in new.iter_mut().filter(|row| row.case.fill == 1) {
        row.times.reference_s = Some(2e-3);
    }
    let rule = Rule { drift_percent: 5.0, ..RULE };
    let result = compare(("a", &old), ("b", &new), &all(), &rule).unwrap();
    let of = |name: &str| result.report.rows.iter().map(|row| row[name].clone()).collect_vec();
    assert_eq!(of("verdict"), ["unclear"; 3]);
    assert_eq!(of("machine-ratio")[1], 1.0);
    // turns need no allowance: six pairs
    let turns = |solve_s, reference_s| -> Vec<Record> {
        (1..=6)
            .map(|round| {
                let mut row = record(case(0), 10, solve_s);
                (row.round, row.times.reference_s) = (Some(round), Some(reference_s));
                row
            })
            .collect()
    };
    let rule = Rule { paired: true, ..rule };
    let result =
        compare(("a", &turns(1.0, 2e-3)), ("b", &turns(1.3, 2.6e-3)), &all(), &rule).unwrap();
    assert_eq!(result.report.rows[0]["verdict"], "slower");
    assert_eq!(result.overall.unwrap().verdict, Verdict::Slower);
}
