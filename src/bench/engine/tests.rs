use std::path::PathBuf;

use super::*;
use crate::matrix::Csr;
use crate::record::output::Existing;
use crate::record::read::read;
use crate::record::samples::record;
use crate::record::schema::Division;

/// Counts the calls, and stops or fails where it is told to.
#[derive(Default)]
struct Fake {
    loads: Vec<String>,
    rhs: Vec<String>,
    runs: Vec<usize>,
    /// Samples asked for in each.
    samples: Vec<usize>,
    /// Raises the interrupt counter during the case with this fill level.
    interrupt_at: Option<(usize, &'static AtomicUsize)>,
}

impl Runner for Fake {
    fn load(&mut self, case: &Case) -> Result<Problem> {
        let spec = &*case.matrix;
        self.loads.push(spec.to_owned());
        if spec == "missing" {
            return Err(Error::input("unknown matrix `missing`"));
        }
        let matrix = Csr::new(1, 1, vec![0, 1], vec![0], vec![1.0]).unwrap().into();
        let remarks = vec!["a twin".into()];
        Ok(Problem { name: spec.into(), matrix, grid: None, own_rhs: None, remarks })
    }

    fn right_hand_side(&mut self, _: &Problem, spec: &str) -> Result<Vec<f64>> {
        self.rhs.push(spec.to_owned());
        Ok(vec![1.0])
    }

    fn run(
        &mut self,
        case: &Case,
        _: Option<(&Problem, &[f64])>,
        measure: &Measure,
        progress: &mut dyn FnMut(Stage) -> bool,
    ) -> Option<Record> {
        self.runs.push(case.fill);
        self.samples.push(measure.samples);
        if let Some((fill, counter)) = self.interrupt_at
            && fill == case.fill
        {
            counter.fetch_add(1, atomic::Ordering::SeqCst);
        }
        progress(Stage::Numeric).then(|| record(case.clone(), 10, 1.0))
    }
}

/// Keeps what it is told.
#[derive(Default)]
struct Log(Vec<String>);

impl Observer for Log {
    fn begin(&mut self, total: usize, pending: &[&Case]) {
        self.0.push(format!("begin {} of {total}", pending.len()));
    }
    fn loading(&mut self, spec: &str) {
        self.0.push(format!("loading {spec}"));
    }
    fn remark(&mut self, text: &str) {
        self.0.push(format!("remark {text}"));
    }
    fn case(&mut self, case: &Case) {
        self.0.push(format!("case {}", case.fill));
    }
    fn stage(&mut self, stage: Stage) {
        self.0.push(format!("{stage:?}"));
    }
    fn finished(&mut self, record: &Record) {
        self.0.push(format!("finished {}", record.case.fill));
    }
    fn end(&mut self) {
        self.0.push("end".into());
    }
}

/// What is lacking of rounds is known to the check as it is to the run: the system is read once.
#[test]
fn a_case_that_lacks_a_round_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let [matrix, file] = ["a.mtx", "a.jsonl"].map(|name| folder.path().join(name));
    let text = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 2\n2 2 3\n";
    std::fs::write(&matrix, text).unwrap();
    let cases = cases(&[matrix.to_str().unwrap()], 2);
    let measure = Measure { once: true, rounds: 2, ..Measure::default() };
    let going = || true;
    let run = || {
        let mut outputs = Outputs::open(std::slice::from_ref(&file), Existing::Resume).unwrap();
        let records = outputs.records();
        let earlier = [preflight::Earlier { file: "a.jsonl".into(), records: records.clone() }];
        let first = pending(&cases, &measure, &records).first().copied();
        let (mut solvers, mut log) = (Solvers::default(), Log::default());
        preflight::check(&cases, first, &earlier, true, &mut solvers, &mut log, &going).unwrap();
        assert!(solvers.kept.is_some());
        let before = std::fs::read(&matrix).unwrap();
        std::fs::remove_file(&matrix).unwrap();
        let interrupts = AtomicUsize::new(0);
        let outcome =
            execute(&cases, &measure, &mut outputs, None, &mut solvers, &mut log, &interrupts);
        std::fs::write(&matrix, before).unwrap();
        (outcome.end, outputs.records().len())
    };
    assert_eq!(run(), (SweepEnd::Complete, 0));
    // without the second round of the last case
    let text = std::fs::read_to_string(&file).unwrap();
    let kept: String = text.split_inclusive('\n').take(3).collect();
    std::fs::write(&file, kept).unwrap();
    assert_eq!(run(), (SweepEnd::Complete, 3));
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 4);
}

fn cases(matrices: &[&str], fills: usize) -> Vec<Case> {
    let case = |matrix: &&str, fill| Case { matrix: (*matrix).into(), fill, ..Case::default() };
    matrices.iter().flat_map(|m| (0..fills).map(move |fill| case(m, fill))).collect()
}

struct Setting {
    folder: tempfile::TempDir,
    runner: Fake,
    log: Log,
    measure: Measure,
    interrupts: &'static AtomicUsize,
}

impl Setting {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            runner: Fake::default(),
            log: Log::default(),
            measure: Measure::default(),
            interrupts: Box::leak(Box::new(AtomicUsize::new(0))),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("a.jsonl")
    }

    fn execute(&mut self, cases: &[Case], existing: Existing) -> Outcome {
        let mut outputs = Outputs::open(&[self.path()], existing).unwrap();
        execute(
            cases,
            &self.measure,
            &mut outputs,
            None,
            &mut self.runner,
            &mut self.log,
            self.interrupts,
        )
    }
}

#[test]
fn matrix_and_right_hand_side_are_made_once() {
    let mut s = Setting::new();
    let outcome = s.execute(&cases(&["p", "q"], 2), Existing::Refuse);
    assert_eq!(outcome.end, SweepEnd::Complete);
    assert_eq!((s.runner.loads.as_slice(), s.runner.rhs.len()), (&["p".into(), "q".into()][..], 2));
    assert_eq!(
        s.log.0[..6],
        ["begin 4 of 4", "loading p", "remark p: a twin", "case 0", "Numeric", "finished 0"]
    );
    assert!(outcome.records.iter().all(|r| r.environment.revision == environment::REVISION));
}

#[test]
fn a_matrix_that_cannot_be_loaded_stops_the_run_and_keeps_what_is_finished() {
    let mut s = Setting::new();
    let outcome = s.execute(&cases(&["p", "missing", "q"], 1), Existing::Refuse);
    assert_eq!(outcome.end, SweepEnd::Failed(Error::input("unknown matrix `missing`")));
    assert_eq!(outcome.records.len(), 1);
    assert_eq!(read(&s.path()).unwrap().records, outcome.records);
    assert_eq!(s.log.0.last().unwrap(), "end");
}

#[test]
fn a_block_above_the_order_is_refused_before_any_case_of_its_matrix() {
    let mut s = Setting::new();
    let mut cases = cases(&["p", "q"], 2);
    cases[3].block_size = 2;
    let outcome = s.execute(&cases, Existing::Refuse);
    let error =
        Error::input("block size 2 is above the 1 unknown of `q`").hint("use block sizes up to 1");
    assert_eq!(outcome.end, SweepEnd::Failed(error));
    assert_eq!((outcome.records.len(), s.runner.runs.as_slice()), (2, &[0, 1][..]));
    assert_eq!(read(&s.path()).unwrap().records, outcome.records);
}

#[test]
fn an_interrupted_run_goes_on_where_it_stopped() {
    let mut s = Setting::new();
    s.runner.interrupt_at = Some((2, s.interrupts));
    let outcome = s.execute(&cases(&["p"], 4), Existing::Refuse);
    assert_eq!((outcome.end, outcome.records.len()), (SweepEnd::Interrupted, 2));
    assert_eq!(read(&s.path()).unwrap().records.len(), 2);

    s.runner = Fake::default();
    s.interrupts.store(0, atomic::Ordering::SeqCst);
    s.log.0.clear();
    let outcome = s.execute(&cases(&["p"], 4), Existing::Resume);
    assert_eq!((outcome.end, s.runner.runs.as_slice()), (SweepEnd::Complete, &[2, 3][..]));
    assert_eq!(s.log.0[0], "begin 2 of 4");
    let fills: Vec<usize> = outcome.records.iter().map(|r| r.case.fill).collect();
    assert_eq!(fills, [0, 1, 2, 3]);
    assert_eq!(read(&s.path()).unwrap().records, outcome.records);
}

#[test]
fn records_of_another_revision_are_kept_with_a_warning() {
    let mut s = Setting::new();
    let mut outputs = Outputs::open(&[s.path()], Existing::Refuse).unwrap();
    let mut old = record(cases(&["p"], 1)[0].clone(), 10, 1.0);
    old.environment.revision = "0.0.9 (abc)".into();
    outputs.add(&old).unwrap();
    drop(outputs);
    let outcome = s.execute(&cases(&["p"], 2), Existing::Resume);
    assert_eq!(outcome.records[0], old);
    let this = environment::REVISION;
    assert_eq!(
        s.log.0[0],
        format!("remark 1 of the earlier records are of 0.0.9 (abc), this is {this}")
    );
}

/// Fill level and round of each record in the file.
fn turns(path: &std::path::Path) -> Vec<(usize, Option<usize>)> {
    read(path).unwrap().records.iter().map(|r| (r.case.fill, r.round)).collect()
}

#[test]
fn every_case_runs_once_in_each_round_and_is_one_record() {
    let mut s = Setting::new();
    s.measure.rounds = 3;
    let outcome = s.execute(&cases(&["p"], 2), Existing::Refuse);
    assert_eq!(
        (outcome.end, s.runner.runs.as_slice()),
        (SweepEnd::Complete, &[0, 1, 0, 1, 0, 1][..])
    );
    let all: Vec<_> = (1..=3).flat_map(|round| [(0, Some(round)), (1, Some(round))]).collect();
    assert_eq!(turns(&s.path()), all);
    // one matrix is not loaded again
    assert_eq!(s.runner.loads, ["p"]);
    assert_eq!(s.log.0[0], "begin 6 of 6");
    let ends: Vec<_> = outcome.records.iter().map(|r| (r.case.fill, r.times.repetitions)).collect();
    assert_eq!(ends, [(0, 3), (1, 3)]);
    // two would be the share of each round, three are the least
    assert!(s.runner.samples.iter().all(|samples| *samples == 3));
}

#[test]
fn matrices_take_turns_in_rounds_and_are_remarked_once() {
    let mut s = Setting::new();
    s.measure.rounds = 2;
    s.execute(&cases(&["p", "q"], 1), Existing::Refuse);
    assert_eq!(s.runner.loads, ["p", "q", "p", "q"]);
    let remarks: Vec<_> = s.log.0.iter().filter(|line| line.starts_with("remark")).collect();
    assert_eq!(remarks, ["remark p: a twin", "remark q: a twin"]);
}

#[test]
fn rounds_go_on_where_they_stopped_and_can_be_added_to() {
    let mut s = Setting::new();
    s.measure.rounds = 2;
    s.runner.interrupt_at = Some((1, s.interrupts));
    let outcome = s.execute(&cases(&["p"], 2), Existing::Refuse);
    assert_eq!((outcome.end, turns(&s.path())), (SweepEnd::Interrupted, vec![(0, Some(1))]));
    s.runner = Fake::default();
    s.interrupts.store(0, atomic::Ordering::SeqCst);
    s.execute(&cases(&["p"], 2), Existing::Resume);
    assert_eq!(s.runner.runs, [1, 0, 1]);
    s.measure.rounds = 3;
    s.execute(&cases(&["p"], 2), Existing::Resume);
    assert_eq!(s.runner.runs, [1, 0, 1, 0, 1]);
    let wanted: Vec<_> = (1..=3).flat_map(|round| [(0, Some(round)), (1, Some(round))]).collect();
    assert_eq!(turns(&s.path()), wanted);
}

#[test]
fn records_of_other_ranks_are_not_gone_on_with() {
    let [first, other] = [cases(&["p"], 1), cases(&["q"], 1)].map(|mut all| all.remove(0));
    let on = |case: &Case, ranks| {
        let division = Division { ranks, ..Division::default() };
        Record { case: case.clone(), division, ..Record::default() }
    };
    let of_two = [on(&first, Some(2)), on(&other, None)];
    assert_eq!(same_ranks(&[first.clone(), other.clone()], &of_two, 2), Ok(()));
    assert_eq!(same_ranks(std::slice::from_ref(&other), &of_two, 1), Ok(()));
    let error = same_ranks(&[other, first], &of_two, 4).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the result file has records of these cases on 2 ranks, not on 4"
    );
}

#[test]
fn rounds_are_not_added_to_cases_without_and_the_other_way_round() {
    let mut s = Setting::new();
    s.execute(&cases(&["p"], 1), Existing::Refuse);
    let before = std::fs::read(s.path()).unwrap();
    s.measure.rounds = 2;
    let error = Error::input(
        "the result file has records of these cases that were measured without --rounds",
    )
    .hint("go on without --rounds, or write to another file");
    assert_eq!(s.execute(&cases(&["p"], 1), Existing::Resume).end, SweepEnd::Failed(error));
    assert_eq!(std::fs::read(s.path()).unwrap(), before);
    s.execute(&cases(&["p"], 1), Existing::Overwrite);
    s.measure.rounds = 1;
    let error = Error::input("the result file has records of these cases by rounds")
        .hint("give --rounds as before, or write to another file");
    assert_eq!(s.execute(&cases(&["p"], 2), Existing::Resume).end, SweepEnd::Failed(error));
    // other cases may be there
    s.measure.rounds = 2;
    assert_eq!(s.execute(&cases(&["q"], 1), Existing::Resume).end, SweepEnd::Complete);
}
