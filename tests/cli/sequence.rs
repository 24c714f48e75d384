//! `run --sequence` with the real solvers.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use bilu_bench::record::Record;
use bilu_bench::record::read::read;
use bilu_bench::record::schema::SetupDone;

/// Standard output and error of a run that ends with `code`.
fn ran(arguments: &[&str], code: i32) -> (String, String) {
    let mut command = Command::cargo_bin("bilu-bench").unwrap();
    let output = command.env("NO_COLOR", "1").args(arguments).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(code), "{out}{err}");
    (out, err)
}

fn records(path: &Path) -> Vec<Record> {
    read(path).unwrap().records
}

/// A tridiagonal matrix of order n that drifts with the step, without the entry (1, 2) where it is not `whole`.
fn matrix(n: usize, step: usize, whole: bool) -> String {
    let mut lines = String::new();
    let mut count = 0;
    for i in 1..=n {
        for j in [i.wrapping_sub(1), i, i + 1] {
            if (1..=n).contains(&j) && (whole || (i, j) != (1, 2)) {
                let v =
                    if i == j { 2.0 + 0.125 * step as f64 } else { -1.0 + 0.0625 * (i % 3) as f64 };
                writeln!(lines, "{i} {j} {v}").unwrap();
                count += 1;
            }
        }
    }
    format!("%%MatrixMarket matrix coordinate real general\n{n} {n} {count}\n{lines}")
}

/// A folder with dumps of these steps and their right-hand sides.
struct Dumps(tempfile::TempDir);

impl Dumps {
    fn new(steps: impl Iterator<Item = usize>) -> Self {
        let dumps = Self(tempfile::tempdir().unwrap());
        for step in steps {
            dumps.write(&format!("d_{step}.mtx"), &matrix(60, step, true));
            let mut rhs = "%%MatrixMarket matrix array real general\n60 1\n".to_owned();
            (0..60).for_each(|i| writeln!(rhs, "{}", 1 + (i * 7 + step) % 5).unwrap());
            dumps.write(&format!("d_{step}_rhs.mtx"), &rhs);
        }
        dumps
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn at(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Runs with more arguments; standard output and error.
    fn run(&self, more: &[&str], code: i32) -> (String, String) {
        let pattern = self.at("d_*.mtx");
        let common = ["run", "--sequence", &pattern, "--rhs", "own", "--rtol", "1e-9", "-q"];
        ran(&[&common[..], more].concat(), code)
    }
}

fn made(records: &[Record]) -> String {
    let letter = |r: &Record| match r.setup_done.unwrap() {
        SetupDone::All => 'A',
        SetupDone::Analysis => 'a',
        SetupDone::Numeric => 'n',
        SetupDone::None => '-',
    };
    records.iter().map(letter).collect()
}

#[test]
fn steps_are_rows_in_the_order_of_their_numbers_and_solve_what_single_runs_solve() {
    let dumps = Dumps::new([1, 2, 10, 9].into_iter());
    let file = dumps.at("a.csv");
    let (out, err) = dumps.run(&["-o", &file, "--format", "markdown"], 0);
    assert_eq!(err, "");
    let of_steps = records(&dumps.path("a.csv"));
    let names: Vec<_> = of_steps.iter().map(|r| (r.step.unwrap(), &*r.case.matrix)).collect();
    let paths = [1, 2, 9, 10].map(|i| dumps.at(&format!("d_{i}.mtx")));
    let want: Vec<_> = (1..).zip(paths.iter().map(String::as_str)).collect();
    assert_eq!(names, want);
    assert!(of_steps.iter().all(|r| r.case.sequence == dumps.at("d_*.mtx")));
    assert_eq!(made(&of_steps), "Annn");
    let symbolic: Vec<_> = of_steps.iter().map(|r| r.times.symbolic_s.is_some()).collect();
    assert_eq!(symbolic, [true, false, false, false]);
    for r in &of_steps {
        let t = &r.times;
        let parts = [t.matrix_s, t.symbolic_s, t.analysis_s, t.numeric_s, t.solve_s];
        let sum: f64 = parts.into_iter().flatten().sum();
        assert!((t.total_s.unwrap() - sum).abs() <= 1e-12 * sum, "{t:?}");
        assert!(r.convergence.true_residual.unwrap() < 1e-8);
    }
    let single = dumps.at("single.csv");
    let args = ["run", &*paths.join(","), "--rhs", "own", "--rtol", "1e-9", "-q", "-o", &*single];
    let args = [&args[..], &["--max-repetitions", "1"]].concat();
    ran(&args, 0);
    for (a, b) in records(&dumps.path("single.csv")).iter().zip(&of_steps) {
        assert_eq!(a.convergence.iterations, b.convergence.iterations);
        assert_eq!(a.convergence.true_residual, b.convergence.true_residual);
        assert_eq!((&a.hash, a.factor.factor_blocks), (&b.hash, b.factor.factor_blocks));
        assert_eq!((a.step, a.setup_done, &*a.case.sequence), (None, None, ""));
    }
    // a line of totals
    let totals = out.split("Totals over the steps of a sequence").nth(1).unwrap();
    let lines: Vec<&str> = totals.lines().filter(|line| line.starts_with('|')).collect();
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let (heads, row) = (cells(lines[0]), cells(lines[2]));
    assert_eq!(lines.len(), 3);
    assert_eq!(
        heads,
        [
            "steps",
            "factorisations",
            "matrix time",
            "symbolic",
            "analysis",
            "numeric",
            "solve",
            "total",
            "iterations"
        ]
    );
    let iterations: usize = of_steps.iter().map(|r| r.convergence.iterations).sum();
    assert_eq!((&*row[0], &*row[1], &*row[8]), ("4", "4", &*iterations.to_string()));
    assert!(!out.contains("fastest"), "{out}");
}

#[test]
fn steps_may_be_files_of_any_format_that_is_read() {
    let dumps = Dumps::new(1..=3);
    let mut solved = Vec::new();
    for ending in ["mtx", "npz", "petsc"] {
        for step in (1..=3).filter(|_| ending != "mtx") {
            let from = dumps.at(&format!("d_{step}.mtx"));
            ran(&["matrix", "convert", &from, &dumps.at(&format!("d_{step}.{ending}"))], 0);
        }
        let (all, out) = (dumps.at(&format!("d_?.{ending}")), dumps.at(&format!("{ending}.csv")));
        let flags = ["--rhs", "own", "--fill", "0", "--backend", "cpu", "-o", &out];
        ran(&[&["run", "--sequence", &all][..], &flags].concat(), 0);
        let found = records(Path::new(&out));
        assert_eq!(found.len(), 3, "{ending}");
        let of = |r: &Record| (r.convergence.iterations, r.convergence.true_residual);
        solved.push(found.iter().map(of).collect::<Vec<_>>());
    }
    assert!(solved[0] == solved[1] && solved[0] == solved[2], "{solved:?}");
}

#[test]
fn lagged_preconditioners_and_guesses_are_cases_of_their_own() {
    let dumps = Dumps::new(1..=7);
    let file = dumps.at("a.jsonl");
    let policies = ["--refactor", "always,every:3,adaptive:1.0", "--guess", "zero,last"];
    let precond = ["--precond", "jacobi", "--solver", "bicgstab", "-o", &file];
    let (out, _) = dumps.run(&[&policies[..], &precond, &["--format", "markdown"]].concat(), 0);
    let all = records(&dumps.path("a.jsonl"));
    assert_eq!(all.len(), 42);
    let of = |refactor: &str, guess: &str| -> Vec<Record> {
        let own = |r: &&Record| {
            let name = serde_json::to_value(r.case.guess).unwrap();
            r.case.refactor.to_string() == refactor && name == guess
        };
        all.iter().filter(own).cloned().collect()
    };
    assert_eq!(made(&of("always", "zero")), "Annnnnn");
    assert_eq!(made(&of("every:3", "zero")), "A--n--n");
    // a new one follows each step with more iterations than the last that had one
    let adaptive = of("adaptive:1", "zero");
    let mut fresh = adaptive[0].convergence.iterations;
    for pair in adaptive.windows(2) {
        let due = pair[0].convergence.iterations > fresh;
        assert_eq!(pair[1].setup_done == Some(SetupDone::Numeric), due);
        if due {
            fresh = pair[1].convergence.iterations;
        }
    }
    let guessed = of("every:3", "last");
    assert_eq!(made(&guessed), "A--n--n");
    for (r, zero) in guessed.iter().zip(of("every:3", "zero")) {
        assert!(r.status.succeeded() && r.convergence.true_residual.unwrap() < 1e-8);
        assert_eq!(r.hash, zero.hash);
    }
    assert!(out.contains("| saved |") || out.contains(" saved "), "{out}");
    // each step is beside its own in a comparison
    let (out, _) = ran(&["compare", &file, &file, "--format", "csv"], 0);
    assert_eq!(out.lines().count(), 43);
    let svg = dumps.at("a.svg");
    ran(&["plot", "--kind", "sequence", &file, "-o", &svg], 0);
    let drawn = std::fs::read_to_string(dumps.path("a.svg")).unwrap();
    for text in ["step", "iterations", "time of the step [s]", "last, every:3"] {
        assert!(drawn.contains(text), "{text}");
    }
    let (_, err) = ran(&["plot", "--kind", "phases", &file, "-o", &dumps.at("b.svg")], 2);
    assert!(err.contains("the files have nothing for a figure `phases`"), "{err}");
}

#[test]
fn time_steps_are_made_on_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let file = path.display().to_string();
    let spec = "reservoir:5x4x4,k=2,days=5,steps=4";
    let args = ["run", "--sequence", spec, "--rhs", "own", "--block-size", "2", "-q", "-o", &file];
    ran(&args, 0);
    let steps = records(&path);
    assert_eq!(made(&steps), "Annn");
    let names: Vec<_> = steps.iter().map(|r| &*r.case.matrix).collect();
    let want = [1, 2, 3, 4].map(|i| format!("reservoir:5x4x4,k=2,days=5,step={i}"));
    assert_eq!(names, want);
    assert!(steps.iter().all(|r| r.case.sequence == spec && r.status.succeeded()));
    let mut hashes: Vec<_> = steps.iter().map(|r| r.hash.matrix_hash.clone()).collect();
    hashes.dedup();
    assert_eq!(hashes.len(), 4);
    // a step by itself is the same system
    let one = folder.path().join("one.csv");
    let name = one.display().to_string();
    let args = ["run", &*want[2], "--rhs", "own", "--block-size", "2", "-q", "-o", &name];
    ran(&[&args[..], &["--max-repetitions", "1"]].concat(), 0);
    let single = &records(&one)[0];
    assert_eq!(single.hash, steps[2].hash);
    assert_eq!(single.convergence.iterations, steps[2].convergence.iterations);
}

#[test]
fn another_order_is_that_of_the_first_pattern_and_solutions_are_in_that_of_the_source() {
    let dumps = Dumps::new(1..=3);
    let x = dumps.at("x-{matrix}-{ordering}.mtx");
    let more = ["--ordering", "natural,rcm", "--guess", "last", "--solution", &x];
    dumps.run(&more, 0);
    for step in 1..=3 {
        let [natural, rcm] = ["natural", "rcm"].map(|order| {
            let text =
                std::fs::read_to_string(dumps.path(&format!("x-d_{step}-{order}.mtx"))).unwrap();
            text.lines().skip(2).map(|line| line.parse::<f64>().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(natural.len(), 60);
        assert!(natural.iter().zip(&rcm).all(|(a, b)| (a - b).abs() < 1e-6), "step {step}");
    }
}

#[test]
fn a_list_in_toml_is_one_sequence() {
    let dumps = Dumps::new(1..=4);
    dumps.write(
        "s.toml",
        "[[sweep]]\nsequence = [\"d_3.mtx\", \"d_[12].mtx\"]\nrefactor = [\"always\", \"every:2\"]\n",
    );
    let file = dumps.at("a.csv");
    ran(&["run", &dumps.at("s.toml"), "-q", "-o", &file], 0);
    let all = records(&dumps.path("a.csv"));
    let steps = [3, 1, 2].map(|i| dumps.at(&format!("d_{i}.mtx")));
    let names: Vec<_> = all.iter().map(|r| r.case.matrix.clone()).collect();
    assert_eq!(names, [steps.clone(), steps].concat());
    assert_eq!(made(&all), "AnnA-n");
    // flags replace it
    let other = dumps.at("d_4.mtx");
    let file = dumps.at("b.csv");
    ran(&["run", &dumps.at("s.toml"), &other, "-q", "-o", &file], 0);
    let all = records(&dumps.path("b.csv"));
    assert_eq!((all.len(), &*all[0].case.matrix, all[0].step), (1, &*other, None));
}

#[test]
fn rounds_repeat_the_sequence() {
    let dumps = Dumps::new(1..=3);
    let file = dumps.at("a.csv");
    let more = ["--rounds", "3", "--refactor", "every:2", "-o", &file, "--format", "csv"];
    let (out, _) = dumps.run(&more, 0);
    let all = records(&dumps.path("a.csv"));
    let turns: Vec<_> = all.iter().map(|r| (r.round.unwrap(), r.step.unwrap())).collect();
    let want: Vec<_> = (1..=3).flat_map(|round| (1..=3).map(move |step| (round, step))).collect();
    assert_eq!((turns, &*made(&all)), (want, "A-nA-nA-n"));
    // the table has a row for each step
    assert_eq!(out.lines().count(), 4);
    let (_, err) = dumps.run(&["--min-repetitions", "4"], 0);
    assert_eq!(err, "note: a step of a sequence is solved once; --rounds N repeats the sequence\n");
}

#[test]
fn each_step_is_scaled_by_itself_and_solved_as_it_is_given() {
    let dumps = Dumps::new(1..5);
    // of another scale than the steps before
    let last = matrix(60, 4, true).replace(" -", " -400");
    dumps.write("d_4.mtx", &last);
    let file = dumps.at("a.csv");
    let more = ["--scaling", "ruiz", "--guess", "last", "--refactor", "every:9", "-o", &file];
    dumps.run(&more, 0);
    let of_steps = records(&dumps.path("a.csv"));
    for r in &of_steps {
        assert!(r.convergence.true_residual.unwrap() < 1e-6, "{:?}", r.convergence);
        let t = &r.times;
        let parts = [t.scaling_s, t.matrix_s, t.symbolic_s, t.analysis_s, t.numeric_s, t.solve_s];
        let sum: f64 = parts.into_iter().flatten().sum();
        assert!(t.scaling_s.is_some() && (t.total_s.unwrap() - sum).abs() <= 1e-12 * sum, "{t:?}");
    }
    // factors of another scale are of no use
    assert!(made(&of_steps).ends_with('n'), "{}", made(&of_steps));
}

#[test]
fn another_pattern_is_a_remark_and_every_phase_again() {
    let dumps = Dumps::new(1..=4);
    dumps.write("d_3.mtx", &matrix(60, 3, false));
    let file = dumps.at("a.csv");
    dumps.run(&["--refactor", "every:9", "-o", &file], 0);
    let all = records(&dumps.path("a.csv"));
    assert_eq!(made(&all), "A-AA");
    let reason = "the pattern is not that of step 2: symbolic phase and analysis again";
    assert_eq!(all[2].reason.as_deref(), Some(reason));
    assert!(all.iter().all(|r| r.status.succeeded()));
}

#[test]
fn what_no_sequence_is_is_refused_before_anything_runs() {
    let dumps = Dumps::new(1..=12);
    let file = dumps.at("a.csv");
    let refused = |more: &[&str], message: &str| {
        let (out, err) = dumps.run(&[more, &["-o", &file]].concat(), 2);
        let first = err.lines().next().unwrap();
        assert_eq!((first, &*out), (&*format!("error: {message}"), ""), "{err}");
        assert!(!dumps.path("a.csv").exists());
    };
    let on = |name: &str| format!("a sequence does not run on `{name}`");
    refused(&["--backend", "cpu,external:scipy"], &on("external:scipy"));
    refused(&["--matrix", "poisson3d:4"], "`matrix` beside `sequence`");
    refused(&["--kind", "spmv"], "products alone (`kind` `spmv`) have no sequence");
    refused(&["--isolate"], "the steps of a sequence have no process of their own");
    refused(&["--refactor", "never"], "--refactor: unknown way to refactorise `never`");
    refused(&["--guess", "first"], "--guess: unknown start of a solve `first`");
    // another size, and another right-hand side
    dumps.write("d_11.mtx", &matrix(59, 11, true));
    let size = "step 11 of the sequence has 59 unknowns, step 1 has 60";
    refused(&[], &format!("{}: {size}", dumps.at("d_11.mtx")));
    dumps.write("d_11.mtx", &matrix(60, 11, true));
    let rhs = std::fs::read_to_string(dumps.path("d_7_rhs.mtx")).unwrap();
    std::fs::remove_file(dumps.path("d_7_rhs.mtx")).unwrap();
    refused(&[], "`d_7` has no right-hand side of its own");
    dumps.write("d_7_rhs.mtx", "%%MatrixMarket matrix array real general\n2 1\n1\n1\n");
    refused(&[], &format!("{}: 2 values for a matrix of 60 rows", dumps.at("d_7_rhs.mtx")));
    dumps.write("d_7_rhs.mtx", &rhs);
    // a file of a list that is not there
    let list: Vec<String> = (1..=8).map(|i| dumps.at(&format!("d_{i}.mtx"))).collect();
    std::fs::remove_file(dumps.path("d_7.mtx")).unwrap();
    let (_, err) = ran(&["run", "--sequence", &list.join(","), "-q", "-o", &file], 2);
    let missing = format!("error: cannot read `{}`: ", dumps.at("d_7.mtx"));
    assert!(err.starts_with(&missing), "{err}");
    let none = dumps.at("e_*.mtx");
    let (_, err) = ran(&["run", "--sequence", &none], 2);
    assert!(err.starts_with(&format!("error: --sequence: no matrix matches `{none}`")), "{err}");
    assert!(!dumps.path("a.csv").exists());
}

#[test]
fn a_broken_step_leaves_what_was_measured_and_resume_runs_the_sequence_again() {
    let dumps = Dumps::new(1..=4);
    let whole = std::fs::read_to_string(dumps.path("d_3.mtx")).unwrap();
    dumps.write("d_3.mtx", &whole.replacen("1 2 ", "1 99 ", 1));
    let file = dumps.at("a.csv");
    let more = ["--refactor", "every:3", "-o", &file];
    let (_, err) = dumps.run(&more, 2);
    let start = format!("error: {}:4:3: ", dumps.at("d_3.mtx"));
    assert!(err.starts_with(&start), "{err}");
    assert_eq!(made(&records(&dumps.path("a.csv"))), "A-");
    let before = std::fs::read_to_string(dumps.path("a.csv")).unwrap();
    dumps.write("d_3.mtx", &whole);
    dumps.run(&[&more[..], &["--resume"]].concat(), 0);
    let text = std::fs::read_to_string(dumps.path("a.csv")).unwrap();
    assert!(text.starts_with(&before));
    let all = records(&dumps.path("a.csv"));
    let steps: Vec<_> = all.iter().map(|r| r.step.unwrap()).collect();
    // the third step has the preconditioner of the first
    assert_eq!((&*made(&all), steps), ("A--n", vec![1, 2, 3, 4]));
    dumps.run(&[&more[..], &["--resume"]].concat(), 0);
    assert_eq!(std::fs::read_to_string(dumps.path("a.csv")).unwrap(), text);
}

#[test]
fn resume_goes_on_with_the_same_steps_alone() {
    let dumps = Dumps::new(2..=4);
    let file = dumps.at("a.csv");
    let more = ["-o", &file];
    dumps.run(&more, 0);
    let before = std::fs::read_to_string(dumps.path("a.csv")).unwrap();
    let resumed = |message: &str| {
        let (_, err) = dumps.run(&[&more[..], &["--resume"]].concat(), 2);
        assert!(err.contains(message), "{err} lacks {message}");
        assert_eq!(std::fs::read_to_string(dumps.path("a.csv")).unwrap(), before);
    };
    // a later step of other values
    let third = std::fs::read_to_string(dumps.path("d_3.mtx")).unwrap();
    dumps.write("d_3.mtx", &matrix(60, 9, true));
    resumed("d_3.mtx");
    dumps.write("d_3.mtx", &third);
    // a step before the first
    dumps.write("d_1.mtx", &matrix(60, 1, true));
    std::fs::copy(dumps.path("d_2_rhs.mtx"), dumps.path("d_1_rhs.mtx")).unwrap();
    resumed("as step 1 of the sequence, and it is step 2 now");
}

#[test]
fn a_link_to_nothing_is_a_step_that_is_missing() {
    let dumps = Dumps::new(1..=3);
    std::fs::remove_file(dumps.path("d_2.mtx")).unwrap();
    std::os::unix::fs::symlink("nowhere", dumps.path("d_2.mtx")).unwrap();
    let (_, err) = dumps.run(&[], 2);
    assert!(err.contains("d_2.mtx"), "{err}");
}

#[test]
fn steps_with_factors_say_how_good_they_are_and_failures_save_nothing() {
    let dumps = Dumps::new(1..=4);
    let file = dumps.at("a.csv");
    dumps.run(&["--refactor", "every:2", "-o", &file], 0);
    let all = records(&dumps.path("a.csv"));
    let told: Vec<bool> = all.iter().map(|r| r.quality.condest.is_some()).collect();
    assert_eq!((&*made(&all), told), ("A-n-", vec![true, false, true, false]));
    let (out, _) = dumps.run(&["--refactor", "always,every:2", "--max-iterations", "1"], 1);
    assert!(out.contains("failed") && !out.contains("saved"), "{out}");
}
