//! Cases each in a process of its own: what crashes, hangs or takes all memory costs one record.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::base::error::{Error, Result};
use crate::base::measure::{now, seconds_since};
use crate::base::parse::shown;
use crate::base::status::Status;
use crate::bench::engine::{Observer, Outcome, each_pending};
use crate::bench::solution;
use crate::bench::solution::Solutions;
use crate::case::Case;
use crate::config::sampling::Measure;
use crate::config::write;
use crate::record::output::Outputs;
use crate::record::read::read;
use crate::record::{Record, environment};

/// Interval at which a child is polled.
const POLL: Duration = Duration::from_millis(2);
/// What is kept of a child's last words.
const LAST_WORDS: usize = 300;
/// The signal of the kernel's out-of-memory killer.
const SIGKILL: i32 = 9;
/// How the standard library begins to tell of an allocation that failed.
const NO_MEMORY: &str = "memory allocation of";

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

/// The files in which the kernel counts the processes killed by the OOM killer.
pub(crate) fn kill_counters() -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from("/proc/vmstat")];
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    files.extend(groups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        let group = group.trim_start_matches('/');
        match controllers {
            "" => Some(Path::new("/sys/fs/cgroup").join(group).join("memory.events")),
            "memory" => {
                Some(Path::new("/sys/fs/cgroup/memory").join(group).join("memory.oom_control"))
            }
            _ => None,
        }
    }));
    files
}

/// The count in one of these files: lines `oom_kill N`, or `oom_group_kill N` for a group as a whole.
fn kills_in(text: &str) -> u64 {
    let count = |line: &str| {
        let (name, count) = line.split_once(' ')?;
        ["oom_kill", "oom_group_kill"].contains(&name).then(|| count.trim().parse::<u64>().ok())?
    };
    text.lines().filter_map(count).sum::<u64>()
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
    each_pending(cases, measure, outputs, observer, &mut |case, round, observer| {
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
        let kills = self.kills();
        let folder = tempfile::tempdir().map_err(|e| cannot(&e))?;
        let [experiment, result, words] =
            ["case.toml", "case.jsonl", "words"].map(|name| folder.path().join(name));
        // paths in an experiment would count from its folder
        let Case { matrix, rhs, .. } = Case::default();
        let text = write::toml("A case", &[], &[Case { matrix, rhs, ..case.clone() }]);
        std::fs::write(&experiment, text).map_err(|e| cannot(&e))?;
        let said = File::create(&words).map_err(|e| cannot(&e))?;
        let mut child = Command::new(&self.program)
            .arg("run")
            .arg(&experiment)
            .args(["--matrix", &case.matrix, "--rhs", &case.rhs])
            .args(["--quiet", "--format", "csv", "-o"])
            .arg(&result)
            .args(&self.flags)
            .args(x.map(solution::flag).into_iter().flatten())
            .args(round.map(|round| format!("--round={round}")))
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            .spawn()
            .map_err(|e| cannot(&e))?;
        let ended = self.wait(&mut child, interrupts).map_err(|e| cannot(&e))?;
        if let ChildEnd::Interrupted = ended {
            return Ok(None);
        }
        let made = read(&result).ok().and_then(|c| c.records.into_iter().find(|r| r.case == *case));
        Ok(Some(made.unwrap_or_else(|| {
            let out_of_memory = self.kills() > kills;
            let (status, reason) = explain(&ended, &words, out_of_memory);
            let mut record = Record { case: case.clone(), status, ..Record::default() };
            record.reason = Some(reason);
            environment::complete(&mut record.environment, &case.backend, start);
            record
        })))
    }

    /// Number of processes killed by the OOM killer so far, as counted by the kernel: in the control group of this
    /// process, whose limit may be below the machine's memory, and on the machine.
    fn kills(&self) -> u64 {
        let read = |path: &PathBuf| std::fs::read_to_string(path).ok();
        self.counters.iter().filter_map(read).map(|text| kills_in(&text)).sum()
    }

    /// Waits for a child, and ends it when its time is over or the user stops the run.
    fn wait(&self, child: &mut Child, interrupts: &AtomicUsize) -> std::io::Result<ChildEnd> {
        let start = now();
        loop {
            if let Some(status) = child.try_wait()? {
                // Ctrl-C goes to all processes of a terminal
                let stopped = interrupts.load(Ordering::SeqCst) > 0;
                return Ok(if stopped { ChildEnd::Interrupted } else { ChildEnd::Exited(status) });
            }
            let over = self.limit_s.filter(|limit| seconds_since(start) > *limit);
            let stopped = interrupts.load(Ordering::SeqCst) > 0;
            if over.is_some() || stopped {
                child.kill()?;
                child.wait()?;
                return Ok(over.filter(|_| !stopped).map_or(ChildEnd::Interrupted, ChildEnd::Late));
            }
            std::thread::sleep(POLL);
        }
    }
}

fn cannot(error: &std::io::Error) -> Error {
    Error::run(format!("cannot start a process: {error}"))
}

/// How a child ended.
enum ChildEnd {
    Exited(ExitStatus),
    /// After this many seconds.
    Late(f64),
    Interrupted,
}

/// Status and reason of a case whose child left no record; `out_of_memory` says that the OOM killer
/// killed a process meanwhile.
fn explain(ended: &ChildEnd, words: &Path, out_of_memory: bool) -> (Status, String) {
    let status = match ended {
        ChildEnd::Late(limit) => {
            return (
                Status::TimeLimit,
                format!("time limit of a case, {} s, reached", shown(&limit.to_string())),
            );
        }
        ChildEnd::Exited(status) => status,
        ChildEnd::Interrupted => unreachable!("a stopped case has no record"),
    };
    let words = std::fs::read(words).unwrap_or_default();
    let words = String::from_utf8_lossy(&words);
    let line = last_words(&words).trim_start_matches("error: ");
    let line: String = line.chars().take(LAST_WORDS).collect();
    let said = if line.is_empty() { line } else { format!(": {line}") };
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(status) {
        if signal == SIGKILL {
            return if out_of_memory {
                let reason = format!("its process was killed by the OOM killer{said}");
                (Status::OutOfMemory, reason)
            } else {
                (Status::Failed, format!("its process was killed by SIGKILL{said}"))
            };
        }
        // an allocation that fails aborts
        let memory = words.contains(NO_MEMORY);
        let kind = if memory { Status::OutOfMemory } else { Status::Failed };
        return (kind, format!("its process was ended by signal {signal}{said}"));
    }
    let code =
        status.code().map_or_else(|| "no exit code".into(), |code| format!("exit code {code}"));
    (Status::Failed, format!("its process left no record, {code}{said}"))
}

/// The line that tells most: an allocation that failed, else an error, else what a panic says, which stands
/// on the line after its place; else the last.
pub(crate) fn last_words(words: &str) -> &str {
    let lines = || words.lines().filter(|l| !l.starts_with("note: "));
    let found = |what: &dyn Fn(&&str) -> bool| lines().find(what);
    found(&|l| l.starts_with(NO_MEMORY))
        .or_else(|| found(&|l| l.starts_with("error: ")))
        .or_else(|| lines().skip_while(|l| !l.contains("panicked at ")).nth(1))
        .or_else(|| lines().next_back())
        .unwrap_or_default()
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
    fn kills_are_counted_in_the_files_of_the_kernel() {
        let of_a_group = "low 0\nhigh 0\nmax 12\noom 2\noom_kill 2\noom_group_kill 1\n";
        assert_eq!(kills_in(of_a_group), 3);
        assert_eq!(kills_in("oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"), 5);
        assert_eq!(kills_in("nr_free_pages 7\noom_kill 1\n"), 1);
        assert_eq!(kills_in(""), 0);
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
