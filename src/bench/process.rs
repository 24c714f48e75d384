//! Another program that works for this one: watched, ended at its limits, its last words kept.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::base::measure::{now, seconds_since};
use crate::base::status::Status;

/// Interval at which a child is polled.
const POLL: Duration = Duration::from_millis(2);
/// Bytes of standard error that are kept, the last ones.
const TAIL: usize = 1 << 16;
/// Longest line of standard output.
const LONGEST_LINE: usize = 1 << 20;
/// Most bytes of standard output.
const MOST_OUTPUT: usize = 1 << 24;
/// Seconds in which a child may end by itself after it was asked to.
const GRACE_S: f64 = 1.0;
/// The same of one that has children of its own to end.
pub(crate) const GRACE_OF_PARENTS_S: f64 = 2.5;
/// Seconds for which output is awaited from a child that has ended, and whose children hold it open.
const REST_S: f64 = 0.5;

/// What is kept of a child's last words in a reason.
const LAST_WORDS: usize = 300;
/// The signal of the kernel's out-of-memory killer.
const SIGKILL: i32 = 9;
/// How the standard library begins to tell of an allocation that failed.
const NO_MEMORY: &str = "memory allocation of";

/// What becomes of a line of standard output; an error ends the child.
pub(crate) type OnLine<'a> = &'a mut dyn FnMut(&str) -> Result<(), String>;

/// When and how a child is ended.
pub(crate) struct Limits<'a> {
    /// Seconds from the start.
    pub total_s: Option<f64>,
    /// Seconds without a line of output.
    pub silence_s: Option<f64>,
    /// Whether the user wants it stopped.
    pub stopped: &'a mut dyn FnMut() -> bool,
    /// Whether it leads a group of processes, which is ended as a whole; a terminal does not reach it.
    pub group: bool,
    /// Seconds between the request and the end that it cannot refuse.
    pub grace_s: f64,
}

impl<'a> Limits<'a> {
    /// A group without limits.
    pub(crate) fn none(stopped: &'a mut dyn FnMut() -> bool) -> Self {
        Self { total_s: None, silence_s: None, stopped, group: true, grace_s: GRACE_S }
    }
}

/// How a child ended.
#[derive(Debug)]
pub(crate) enum ChildEnd {
    Exited(ExitStatus),
    /// After this many seconds.
    Late(f64),
    /// After this many seconds without a line.
    Silent(f64),
    /// For what it wrote.
    Refused(String),
    Interrupted,
}

/// A child that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub how: ChildEnd,
    /// The end of what it wrote to standard error.
    pub words: String,
}

/// Runs a command to its end, its standard input being empty. Without `on_line` its standard output is
/// discarded.
///
/// # Errors
/// When it cannot be started or waited for.
pub(crate) fn run(
    mut command: Command,
    mut limits: Limits<'_>,
    on_line: Option<OnLine<'_>>,
) -> std::io::Result<Ended> {
    let output = if on_line.is_some() { Stdio::piped() } else { Stdio::null() };
    command.stdin(Stdio::null()).stdout(output).stderr(Stdio::piped());
    #[cfg(unix)]
    if limits.group {
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
    }
    let mut child = command.spawn()?;
    let words = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&words);
    let (told_end, errors) = sync_channel(1);
    let stderr = child.stderr.take();
    std::thread::spawn(move || {
        if let Some(from) = stderr {
            keep_tail(from, &kept);
        }
        drop(told_end);
    });
    let (sender, lines) = sync_channel(64);
    let stdout = child.stdout.take();
    std::thread::spawn(move || stdout.map(|from| read_lines(from, &sender)));
    let how = watch(&mut child, &lines, &mut limits, on_line);
    if !matches!(how, Ok(ChildEnd::Exited(_))) {
        end(&mut child, &limits)?;
    }
    if !ends_within::<()>(&errors, REST_S) && limits.group {
        // children that it left behind
        signal(&child, true, true);
    }
    let words = words.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Ended { how: how?, words: String::from_utf8_lossy(&words).into_owned() })
}

/// Follows a child until it ends or has to.
fn watch(
    child: &mut Child,
    lines: &Receiver<Result<String, String>>,
    limits: &mut Limits<'_>,
    mut on_line: Option<OnLine<'_>>,
) -> std::io::Result<ChildEnd> {
    let start = now();
    let mut last = start;
    let mut line = |told: Result<String, String>| {
        let told = told.and_then(|text| on_line.as_mut().map_or(Ok(()), |on| on(&text)));
        told.map_err(ChildEnd::Refused)
    };
    loop {
        match lines.recv_timeout(POLL) {
            Ok(told) => {
                last = now();
                if let Err(end) = line(told) {
                    return Ok(end);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(POLL),
        }
        if (limits.stopped)() {
            return Ok(ChildEnd::Interrupted);
        }
        if let Some(status) = child.try_wait()? {
            // what it wrote last
            let start = now();
            while let Ok(told) = lines.recv_timeout(Duration::from_secs_f64(REST_S)) {
                if let Err(end) = line(told) {
                    return Ok(end);
                }
                if seconds_since(start) > REST_S {
                    break;
                }
            }
            return Ok(ChildEnd::Exited(status));
        }
        if let Some(limit) = limits.total_s.filter(|limit| seconds_since(start) > *limit) {
            return Ok(ChildEnd::Late(limit));
        }
        if let Some(limit) = limits.silence_s.filter(|limit| seconds_since(last) > *limit) {
            return Ok(ChildEnd::Silent(limit));
        }
    }
}

/// Asks a child to end, and ends it where it does not.
fn end(child: &mut Child, limits: &Limits<'_>) -> std::io::Result<()> {
    let start = now();
    signal(child, limits.group, false);
    while child.try_wait()?.is_none() && seconds_since(start) < limits.grace_s {
        std::thread::sleep(POLL);
    }
    if limits.group {
        // some may be left that did not listen
        signal(child, true, true);
    }
    child.kill()?;
    child.wait().map(drop)
}

/// Sends a child, or its group, a request to end, or one that it cannot refuse. Who has ended gets none.
#[cfg(unix)]
fn signal(child: &Child, group: bool, at_once: bool) {
    use rustix::process::{Pid, Signal, kill_process, kill_process_group};
    let signal = if at_once { Signal::KILL } else { Signal::TERM };
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
    let send = if group { kill_process_group } else { kill_process };
    let _ = send(pid, signal);
}

#[cfg(not(unix))]
fn signal(_: &Child, _: bool, _: bool) {}

/// Whether the other end of a channel goes within so many seconds.
fn ends_within<T>(channel: &Receiver<T>, seconds: f64) -> bool {
    let told = channel.recv_timeout(Duration::from_secs_f64(seconds));
    matches!(told, Err(RecvTimeoutError::Disconnected))
}

/// Reads to the end and keeps the last bytes.
fn keep_tail(mut from: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut bytes = vec![0; 1 << 13];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&bytes[..count]);
                let over = kept.len().saturating_sub(TAIL);
                kept.drain(..over);
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Sends each line, or what is wrong with the output.
fn read_lines(mut from: impl Read, to: &SyncSender<Result<String, String>>) {
    let (mut line, mut total, mut bytes) = (Vec::new(), 0, vec![0; 1 << 13]);
    loop {
        let count = match from.read(&mut bytes) {
            Ok(count) => count,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(_) => 0,
        };
        total += count;
        line.extend_from_slice(&bytes[..count]);
        let mut rest = &line[..];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let text = String::from_utf8_lossy(&rest[..end]).into_owned();
            rest = &rest[end + 1..];
            if to.send(Ok(text)).is_err() {
                return;
            }
        }
        let used = line.len() - rest.len();
        line.drain(..used);
        if total > MOST_OUTPUT || line.len() > LONGEST_LINE {
            let most = if total > MOST_OUTPUT { MOST_OUTPUT } else { LONGEST_LINE };
            let what = if total > MOST_OUTPUT { "on standard output" } else { "in a line" };
            // whoever does not listen has ended already
            let _ = to.send(Err(format!("more than {} MiB {what}", most >> 20)));
            return;
        }
        if count == 0 {
            if !line.is_empty() {
                let _ = to.send(Ok(String::from_utf8_lossy(&line).into_owned()));
            }
            return;
        }
    }
}

/// Status and reason of a case whose child was ended by a signal; `out_of_memory` says that the OOM killer killed
/// a process meanwhile.
pub(crate) fn killed(
    status: ExitStatus,
    words: &str,
    out_of_memory: bool,
) -> Option<(Status, String)> {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let said = said(words);
        return Some(if signal != SIGKILL {
            // an allocation that fails aborts
            let memory = words.contains(NO_MEMORY);
            let kind = if memory { Status::OutOfMemory } else { Status::Failed };
            (kind, format!("its process was ended by signal {signal}{said}"))
        } else if out_of_memory {
            let reason = format!("its process was killed by the OOM killer{said}");
            (Status::OutOfMemory, reason)
        } else {
            (Status::Failed, format!("its process was killed by SIGKILL{said}"))
        });
    }
    None
}

/// `exit code 2: no such matrix`
pub(crate) fn exit(status: ExitStatus, words: &str) -> String {
    let code =
        status.code().map_or_else(|| "no exit code".into(), |code| format!("exit code {code}"));
    format!("{code}{}", said(words))
}

/// The last words, behind a colon.
pub(crate) fn said(words: &str) -> String {
    let line = last_words(words).trim_start_matches("error: ");
    let line: String = line.chars().take(LAST_WORDS).collect();
    if line.is_empty() { line } else { format!(": {line}") }
}

/// The line that tells most: an allocation that failed, else an error, else what a panic says, which stands
/// on the line after its place; else the last.
pub(crate) fn last_words(words: &str) -> &str {
    // launchers frame what they say
    let tells = |l: &&str| !l.starts_with("note: ") && l.contains(char::is_alphanumeric);
    let lines = || words.lines().filter(tells);
    let found = |what: &dyn Fn(&&str) -> bool| lines().find(what);
    found(&|l| l.starts_with(NO_MEMORY))
        .or_else(|| found(&|l| l.starts_with("error: ")))
        .or_else(|| lines().skip_while(|l| !l.contains("panicked at ")).nth(1))
        .or_else(|| lines().next_back())
        .unwrap_or_default()
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

/// Number of processes killed by the OOM killer so far, as counted by the kernel in these files: in the control
/// group of this process, whose limit may be below the machine's memory, and on the machine.
pub(crate) fn kills(counters: &[PathBuf]) -> u64 {
    let read = |path: &PathBuf| std::fs::read_to_string(path).ok();
    counters.iter().filter_map(read).map(|text| kills_in(&text)).sum()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A shell script that runs within the limits, and the lines that it wrote.
    fn script(text: &str, change: impl FnOnce(&mut Limits<'_>)) -> (Ended, Vec<String>) {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        let mut stopped = || false;
        let mut limits = Limits::none(&mut stopped);
        change(&mut limits);
        let mut lines = Vec::new();
        let mut line = |text: &str| match text {
            "bad" => Err("a bad line".to_owned()),
            text => {
                lines.push(text.to_owned());
                Ok(())
            }
        };
        let ended = run(command, limits, Some(&mut line)).unwrap();
        (ended, lines)
    }

    /// Whether the process with this number ends soon: a signal takes its time.
    fn ends(pid: &str) -> bool {
        (0..500).any(|_| {
            std::thread::sleep(POLL);
            let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
            status.map_or(true, |text| text.contains("State:\tZ"))
        })
    }

    #[test]
    fn lines_arrive_and_the_end_of_standard_error_is_kept() {
        let (ended, lines) = script("echo a; printf 'b\nc'; echo why >&2; exit 3", |_| {});
        assert_eq!(lines, ["a", "b", "c"]);
        let ChildEnd::Exited(status) = ended.how else { panic!("{ended:?}") };
        assert_eq!((status.code(), ended.words.as_str()), (Some(3), "why\n"));
        assert_eq!(exit(status, &ended.words), "exit code 3: why");
        let (ended, _) = script("yes | head -c 200000 >&2; echo last >&2", |_| {});
        assert!(ended.words.len() == TAIL && ended.words.ends_with("y\nlast\n"));
    }

    #[test]
    fn a_child_is_ended_with_its_children_at_each_limit_and_for_what_it_writes() {
        // who does not listen to a request has a child that does not, either
        let deaf = "trap '' TERM; sleep 60 & echo $!; ";
        let quick = |limits: &mut Limits<'_>| limits.grace_s = 0.05;
        let (ended, lines) = script(&format!("{deaf} wait; sleep 60"), |limits| {
            quick(limits);
            limits.total_s = Some(0.3);
        });
        assert!(matches!(ended.how, ChildEnd::Late(limit) if limit == 0.3), "{ended:?}");
        assert!(ends(&lines[0]));
        let (ended, lines) = script("sleep 60 & echo $!; sleep 0.1; echo b; wait", |limits| {
            limits.silence_s = Some(0.3);
        });
        assert!(matches!(ended.how, ChildEnd::Silent(limit) if limit == 0.3), "{ended:?}");
        assert!(lines[1] == "b" && ends(&lines[0]));
        let (ended, lines) = script("sleep 60 & echo $!; echo bad; wait", quick);
        assert!(matches!(&ended.how, ChildEnd::Refused(why) if why == "a bad line"), "{ended:?}");
        assert!(ends(&lines[0]));
        let mut stopped = || true;
        let limits = Limits::none(&mut stopped);
        let mut command = Command::new("sleep");
        command.arg("60");
        assert!(matches!(run(command, limits, None).unwrap().how, ChildEnd::Interrupted));
    }

    #[test]
    fn children_that_hold_the_output_open_do_not_outlive_the_end() {
        let (ended, lines) = script("sleep 60 & echo $!", |_| {});
        assert!(matches!(ended.how, ChildEnd::Exited(status) if status.success()), "{ended:?}");
        assert!(ends(&lines[0]));
    }

    #[test]
    fn too_many_bytes_end_a_child() {
        let (ended, _) = script("yes 12345678901234567890", |_| {});
        let most = "more than 16 MiB on standard output";
        assert!(matches!(&ended.how, ChildEnd::Refused(why) if why == most), "{:?}", ended.how);
        let (ended, lines) = script("yes | tr -d '\\n'", |_| {});
        let most = "more than 1 MiB in a line";
        assert!(matches!(&ended.how, ChildEnd::Refused(why) if why == most), "{:?}", ended.how);
        assert!(lines.is_empty());
    }

    #[test]
    fn kills_are_counted_in_the_files_of_the_kernel() {
        let of_a_group = "low 0\nhigh 0\nmax 12\noom 2\noom_kill 2\noom_group_kill 1\n";
        assert_eq!(kills_in(of_a_group), 3);
        assert_eq!(kills_in("oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"), 5);
        assert_eq!(kills_in("nr_free_pages 7\noom_kill 1\n"), 1);
        assert_eq!(kills_in(""), 0);
    }
}
