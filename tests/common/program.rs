//! The program as a process: its words, its exit code, the limits of the shell.

use std::process::{Command, Output, Stdio};

/// What it wrote.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command, which must end with `code`.
pub(crate) fn ran(command: &mut Command, code: i32) -> Output {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    output
}

/// The program without its cache.
pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bilu-bench"));
    command.args(arguments).env("NO_COLOR", "1").env("BILU_BENCH_CACHE", "off");
    command.stdin(Stdio::null());
    command
}

/// The program under a limit of the shell's `ulimit`.
pub(crate) fn limited(limit: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit {limit} && exec \"$0\" \"$@\"");
    command.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_bilu-bench")).args(arguments);
    command.env("NO_COLOR", "1").stdin(Stdio::null());
    command
}
