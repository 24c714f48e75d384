//! Compares a search with an exhaustive sweep of its space.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;

use serde_json::{Value, json};

use crate::base::error::{Error, Result};
use crate::base::measure::{median, now, seconds_since};
use crate::bench::advise::{Advice, Question, Space, Trial, Trials, Tries, describe, measured};
use crate::case::Case;
use crate::compute;
use crate::problem::Problem;

/// Runs of a combination that the sweep makes, as `--max-repetitions` would.
const REPETITIONS: usize = 3;
/// In the sweep a combination is given up when it takes this many times the best so far: a sweep that
/// waits for each to converge takes longer, never less.
const MARGIN: f64 = 10.0;
/// Seconds that any combination of the sweep has.
const LEAST_LIMIT: f64 = 1.0;
/// What takes longer than so many seconds, and this many times the best, is run once.
const LONG: f64 = 1.0;
const FAR: f64 = 1.5;
/// Seconds for measuring both winners again, in alternation.
const DUEL_S: f64 = 20.0;

#[derive(Clone, Debug, Default)]
pub(crate) struct Sweeping {
    /// Where results are kept, combination by combination: what is there is not run again.
    pub file: Option<PathBuf>,
    /// Seconds after which this run of it ends; combinations come in an order without meaning then, so that
    /// those that were run stand for all.
    pub budget_s: Option<f64>,
}

/// Result of a combination in the sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    /// Median seconds, where it was solved.
    seconds: Option<f64>,
    /// Seconds that this took.
    spent: f64,
}

/// Entries of a file, with the words of their combinations.
type Entries = HashMap<String, Entry>;

/// Runs every combination, then both winners in alternation: `ratio` is the time of the advised settings over
/// that of the best of the sweep, `time-share` the time of the search over that of the sweep; compiling
/// kernels counts in neither. `swept` is the number of combinations that were run.
///
/// # Errors
/// When the user stops it, and when the file of the sweep cannot be read or written.
pub(crate) fn against_all(
    question: &Question,
    advice: &Advice,
    problem: &Problem,
    b: &[f64],
    interrupts: &AtomicUsize,
    sweeping: &Sweeping,
) -> Result<Value> {
    let mut trials = Trials::new(problem, b, question.solves, interrupts);
    let points = advice.space.points()?;
    let mut cases: Vec<Case> = points.iter().map(|point| advice.space.case(point)).collect();
    if sweeping.budget_s.is_some() {
        cases.sort_by_cached_key(|case| scattered(&words(&advice.space, case)));
    }
    let entries = sweep(&advice.space, &cases, &mut trials, sweeping)?;
    let search_s = advice.seconds - advice.compile_s;
    let sweep_s: f64 = entries.iter().flatten().map(|entry| entry.spent).sum();
    let solved = cases.iter().zip(&entries).filter_map(|(c, e)| Some(((*e)?.seconds?, c)));
    let best = solved.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(s, case)| (s, case.clone()));
    let advised = advice.finalists.first().map(|f| f.case.clone());
    let (Some((seconds, best)), Some(advised)) = (best, advised) else {
        return Ok(json!({ "matrix": question.base.matrix, "combinations": points.len() }));
    };
    let end = trials.elapsed() + DUEL_S;
    let both =
        if best == advised { vec![best.clone()] } else { vec![best.clone(), advised.clone()] };
    let duel = measured(both, &mut trials, end, MARGIN * seconds);
    let of = |case: &Case| duel.iter().find(|f| f.case == *case).map(|f| f.seconds);
    let (Some(best_s), Some(advised_s)) = (of(&best), of(&advised)) else {
        return Err(Error::run("a winner is not solved any more"));
    };
    Ok(json!({
        "matrix": question.base.matrix,
        "n": problem.matrix.rows(),
        "nnz": problem.matrix.nnz(),
        "combinations": points.len(),
        "swept": entries.iter().flatten().count(),
        "tried": advice.found.tried.len(),
        "search-s": search_s,
        "sweep-s": sweep_s,
        "time-share": search_s / sweep_s,
        "best-s": best_s.value,
        "advised-s": advised_s.value,
        "ratio": advised_s.value / best_s.value,
        "ratio-low": advised_s.ends().0 / best_s.ends().1,
        "ratio-high": advised_s.ends().1 / best_s.ends().0,
        "best": describe(&best),
        "advised": describe(&advised),
    }))
}

/// Runs `cases` that the file does not know; what there was no time for has no entry.
fn sweep(
    space: &Space,
    cases: &[Case],
    tries: &mut dyn Tries,
    sweeping: &Sweeping,
) -> Result<Vec<Option<Entry>>> {
    let known = sweeping.file.as_deref().map(read).transpose()?.unwrap_or_default();
    let start = now();
    let mut best = f64::INFINITY;
    let mut entries = Vec::with_capacity(cases.len());
    for case in cases {
        let words = words(space, case);
        let entry = match known.get(&words) {
            Some(entry) => *entry,
            None if sweeping.budget_s.is_some_and(|budget| seconds_since(start) > budget) => {
                entries.push(None);
                continue;
            }
            None => {
                let entry = run(case, tries, best).ok_or_else(|| Error::run("stopped"))?;
                if let Some(path) = &sweeping.file {
                    append(path, &words, entry)?;
                }
                entry
            }
        };
        best = entry.seconds.map_or(best, |seconds| best.min(seconds));
        entries.push(Some(entry));
    }
    Ok(entries)
}

/// Runs a case a few times, the best so far taking `best` seconds; `None` when the user stops it.
fn run(case: &Case, tries: &mut dyn Tries, best: f64) -> Option<Entry> {
    let limit = if best < f64::INFINITY { (MARGIN * best).max(LEAST_LIMIT) } else { 1e3 };
    let compiled = compute::compile_seconds(&case.backend);
    let start = tries.elapsed();
    let mut samples = Vec::new();
    while samples.len() < REPETITIONS {
        let Trial::Solved { seconds, .. } = tries.try_out(case, limit)? else { break };
        samples.push(seconds);
        if seconds > LONG.max(FAR * best) {
            break;
        }
    }
    let compiled = compute::compile_seconds(&case.backend) - compiled;
    let seconds = median(&samples).map(|m| m.value);
    Some(Entry { seconds, spent: tries.elapsed() - start - compiled })
}

/// The searched settings of a combination, by which the file knows it.
fn words(space: &Space, case: &Case) -> String {
    let of = |name: &str, word: String| format!("{name}={word}");
    let mut words = vec![of("matrix", case.matrix.clone()), of("rhs", case.rhs.clone())];
    words.extend(space.knobs().iter().map(|knob| of(knob.axis.name, (knob.axis.text)(case))));
    words.join(" ")
}

/// A number without meaning, the same in every run (FNV-1a).
fn scattered(words: &str) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    words.bytes().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// The entries of a file, none where it is not there yet.
fn read(path: &Path) -> Result<Entries> {
    if !path.exists() {
        return Ok(Entries::new());
    }
    let text = std::fs::read_to_string(path).map_err(|e| Error::io("read", path, &e))?;
    let mut entries = Entries::new();
    for (number, line) in text.lines().enumerate() {
        let wrong = || Error::input(format!("`{}`, line {}", path.display(), number + 1));
        let columns: Vec<&str> = line.split('\t').collect();
        let [words, seconds, spent] = columns[..] else { return Err(wrong()) };
        let number = |text: &str| text.parse().map_err(|_| wrong());
        let seconds = (!seconds.is_empty()).then(|| number(seconds)).transpose()?;
        entries.insert(words.to_owned(), Entry { seconds, spent: number(spent)? });
    }
    Ok(entries)
}

/// Adds an entry to the file.
fn append(path: &Path, words: &str, entry: Entry) -> Result<()> {
    let fault = |e: std::io::Error| Error::io("write", path, &e);
    let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(fault)?;
    let seconds = entry.seconds.map(|s| s.to_string()).unwrap_or_default();
    writeln!(file, "{words}\t{seconds}\t{}", entry.spent).map_err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::advise::space::tests::space;
    use crate::record::Record;

    /// Two seconds and a tenth of one more per fill level, but the last level is not solved.
    struct Levels(Vec<usize>);

    impl Tries for Levels {
        fn try_out(&mut self, case: &Case, _: f64) -> Option<Trial> {
            self.0.push(case.fill);
            let seconds = if case.fill == 1 { 5.0 } else { 0.2 + 0.1 * case.fill as f64 };
            let record = Box::new(Record::default());
            Some(match case.fill {
                3 => Trial::Failed { reason: String::new() },
                _ => Trial::Solved { fixed: 0.0, seconds, record },
            })
        }
        fn elapsed(&self) -> f64 {
            self.0.len() as f64
        }
    }

    #[test]
    fn a_sweep_goes_on_where_its_file_ends() {
        let fixed = [
            ("precond", "bilu"),
            ("solver", "cg"),
            ("block-size", "1"),
            ("ordering", "natural"),
            ("level-rule", "min"),
            ("factor-precision", "float64"),
        ];
        let space = space("poisson3d:4", &fixed);
        let cases: Vec<Case> = space.points().unwrap().iter().map(|p| space.case(p)).collect();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sweep");
        let sweeping = Sweeping { file: Some(file.clone()), budget_s: None };
        let mut levels = Levels(Vec::new());
        let part = sweep(&space, &cases[..2], &mut levels, &sweeping).unwrap();
        // what is long and far from the best is run once
        assert_eq!(levels.0, [0, 0, 0, 1]);
        assert_eq!(part[1], Some(Entry { seconds: Some(5.0), spent: 1.0 }));
        levels.0.clear();
        let all = sweep(&space, &cases, &mut levels, &sweeping).unwrap();
        assert_eq!((levels.0.as_slice(), &all[..2]), (&[2, 2, 2, 3][..], &part[..]));
        assert_eq!(all[3], Some(Entry { seconds: None, spent: 1.0 }));
        // without time nothing is run, and what the file knows stays known
        std::fs::write(&file, format!("{}\t1.5\t4\n", words(&space, &cases[2]))).unwrap();
        let no_time = Sweeping { file: Some(file.clone()), budget_s: Some(-1.0) };
        let none = sweep(&space, &cases, &mut levels, &no_time).unwrap();
        let known = Some(Entry { seconds: Some(1.5), spent: 4.0 });
        assert_eq!(none, [None, None, known, None]);
        std::fs::write(&file, "a\tb\tc\n").unwrap();
        let wrong = sweep(&space, &cases, &mut levels, &sweeping).unwrap_err().to_string();
        assert_eq!(wrong, format!("`{}`, line 1", file.display()));
    }

    #[test]
    fn an_order_without_meaning_is_the_same_in_every_run() {
        assert_eq!(scattered(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(scattered("a"), 0xaf63_dc4c_8601_ec8c);
    }
}
