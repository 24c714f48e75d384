//! Cases each in a process of its own: what crashes, hangs or takes all memory costs one record.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::error::{Error, Result};
use crate::base::status::Status;
use crate::bench::engine::{Observer, Outcome, each_pending, limit};
use crate::bench::process::{self, ChildEnd, Ended, GRACE_OF_PARENTS_S, Limits};
use crate::bench::solution;
use crate::bench::solution::Solutions;
use crate::case::Case;
use crate::config::sampling::Measure;
use crate::config::{peer, write};
use crate::record::output::Outputs;
use crate::record::read::read;
use crate::record::{Record, environment};

/// How a case is run in a process of its own.
#[derive(Clone, Debug)]
pub(crate) struct Isolation {
    pub program: PathBuf,
    /// Measuring options for it, as flags.
    pub flags: Vec<String>,
    /// Seconds that a case may take, from reading the matrix to the record.
    pub limit_s: Option<f64>,
    /// Files in which the kernel counts the processes killed by the OOM killer.
    pub counters: Vec<PathBuf>,
}

/// Runs every case that `outputs` does not hold yet, as [`super::execute`] does, in children.
pub(crate) fn execute(
    cases: &[Case],
    measure: &Measure,
    isolation: &Isolation,
    outputs: &mut Outputs,
    solutions: Option<&Solutions>,
    observer: &mut dyn Observer,
    interrupts: &AtomicUsize,
) -> Outcome {
    let one = |case: &Case, round, observer: &mut dyn Observer| {
        observer.case(case);
        let Some(solutions) = solutions else {
            return isolation.run(case, round, None, interrupts);
        };
        let folder = tempfile::tempdir().map_err(|e| cannot(&e))?;
        let x = folder.path().join(solutions.passed_on_as(case));
        let record = isolation.run(case, round, Some(&x), interrupts)?;
        if let Some(record) = &record {
            if x.is_file() {
                solutions.adopt(case, &x)?;
            } else {
                solutions.none(record).iter().for_each(|said| observer.remark(said));
            }
        }
        Ok(record)
    };
    each_pending(cases, measure, outputs, observer, &mut |cases, round, observer, keep| match one(
        cases[0], round, observer,
    )? {
        Some(record) => keep(record, observer).map(|()| true),
        None => Ok(false),
    })
}

impl Isolation {
    /// The record of a case, whose solution goes to the file `x`; `None` when the user stopped it.
    fn run(
        &self,
        case: &Case,
        round: Option<usize>,
        x: Option<&Path>,
        interrupts: &AtomicUsize,
    ) -> Result<Option<Record>> {
        if interrupts.load(Ordering::SeqCst) > 0 {
            return Ok(None);
        }
        let start = environment::now();
        let kills = process::kills(&self.counters);
        let folder = tempfile::tempdir().map_err(|e| cannot(&e))?;
        let [experiment, result] = ["case.toml", "case.jsonl"].map(|name| folder.path().join(name));
        // paths in an experiment would count from its folder
        let Case { matrix, rhs, .. } = Case::default();
        let text = write::toml("A case", &[], &[Case { matrix, rhs, ..case.clone() }]);
        std::fs::write(&experiment, text).map_err(|e| cannot(&e))?;
        let mut command = Command::new(&self.program);
        command
            .arg("run")
            .arg(&experiment)
            .args(["--matrix", &case.matrix, "--rhs", &case.rhs])
            .args(["--quiet", "--format", "csv", "-o"])
            .arg(&result)
            .args(&self.flags)
            .args(x.map(solution::flag).into_iter().flatten())
            .args(round.map(|round| format!("--round={round}")))
            .env("NO_COLOR", "1");
        // folders whose names cannot be listed are left out
        if let Ok(folders) = std::env::join_paths(peer::Folders::known().0) {
            command.env(peer::VARIABLE, folders);
        }
        let mut stopped = || interrupts.load(Ordering::SeqCst) > 0;
        // Ctrl-C goes to all processes of a terminal, and it may have a peer to end
        let limits = Limits {
            total_s: self.limit_s,
            group: false,
            grace_s: GRACE_OF_PARENTS_S,
            ..Limits::none(&mut stopped)
        };
        let ended = process::run(command, limits, None).map_err(|e| cannot(&e))?;
        if let ChildEnd::Interrupted = ended.how {
            return Ok(None);
        }
        let made = read(&result).ok().and_then(|c| c.records.into_iter().find(|r| r.case == *case));
        Ok(Some(made.unwrap_or_else(|| {
            let out_of_memory = process::kills(&self.counters) > kills;
            limit::without_result(case, explain(&ended, out_of_memory), start)
        })))
    }
}

fn cannot(error: &std::io::Error) -> Error {
    Error::run(format!("cannot start a process: {error}"))
}

/// Status and reason of a case whose child left no record; `out_of_memory` says that the OOM killer
/// killed a process meanwhile.
fn explain(ended: &Ended, out_of_memory: bool) -> (Status, String) {
    let status = match &ended.how {
        ChildEnd::Late(limit) => return limit::late(*limit),
        ChildEnd::Exited(status) => *status,
        other => unreachable!("no other end was asked for: {other:?}"),
    };
    match process::killed(status, &ended.words, out_of_memory) {
        Some(told) => told,
        None => (
            Status::Failed,
            format!("its process left no record, {}", process::exit(status, &ended.words)),
        ),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A child that runs this shell script in place of the program.
    fn record(script: &str, limit_s: Option<f64>) -> Option<Record> {
        let folder = tempfile::tempdir().unwrap();
        let counter = folder.path().join("events");
        std::fs::write(&counter, "oom 7\noom_kill 3\n").unwrap();
        let script = script.replace("EVENTS", &counter.display().to_string());
        let program = folder.path().join("child.sh");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let isolation = Isolation { program, flags: Vec::new(), limit_s, counters: vec![counter] };
        isolation.run(&Case::default(), None, None, &AtomicUsize::new(0)).unwrap()
    }

    #[test]
    fn what_ends_a_child_is_told() {
        let told = |script: &str, limit| {
            let record = record(script, limit).unwrap();
            (record.status, record.reason.unwrap())
        };
        assert_eq!(
            told("kill -9 $$", None),
            (Status::Failed, "its process was killed by SIGKILL".into())
        );
        assert_eq!(
            told("echo oom_kill 4 > EVENTS; kill -9 $$", None),
            (Status::OutOfMemory, "its process was killed by the OOM killer".into())
        );
        assert_eq!(
            told("echo \"error: no such matrix\" >&2; exit 2", None),
            (Status::Failed, "its process left no record, exit code 2: no such matrix".into())
        );
        let note = "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace";
        let aborted = |words: &str| told(&format!("printf '{words}' >&2; kill -ABRT $$"), None);
        let ended = |words| format!("its process was ended by signal 6: {words}");
        assert_eq!(
            aborted("memory allocation of 96 bytes failed\\nnote: run\\n"),
            (Status::OutOfMemory, ended("memory allocation of 96 bytes failed"))
        );
        let panic = "\\nthread \"main\" (7) panicked at src/a.rs:3:4:\\nno such row\\n";
        assert_eq!(
            aborted(&format!("{panic}{}\\n", note.replace('`', ""))),
            (Status::Failed, ended("no such row"))
        );
        assert_eq!(
            told("kill -SEGV $$", None),
            (Status::Failed, "its process was ended by signal 11".into())
        );
        assert_eq!(
            told("exec sleep 100", Some(0.05)),
            (Status::TimeLimit, "time limit of a case, 0.05 s, reached".into())
        );
    }

    #[test]
    fn a_request_to_stop_leaves_no_record() {
        let isolation = Isolation {
            program: "/bin/true".into(),
            flags: Vec::new(),
            limit_s: None,
            counters: Vec::new(),
        };
        let stopped = isolation.run(&Case::default(), None, None, &AtomicUsize::new(1)).unwrap();
        assert!(stopped.is_none());
    }
}
