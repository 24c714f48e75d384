//! Measures two commands in alternation (old, new, new, old, ...), so that drift affects both alike.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::base::error::{Error, Result};
use crate::base::input::say;
use crate::bench::process::last_words;
use crate::cli::output::records;
use crate::record::output::{Existing, Outputs};
use crate::record::read::FileFormat;
use crate::record::{Record, rounds};

/// Runs both commands in all rounds and returns their records, numbered by round. A command is `run ...`, of
/// this program, or another program with its arguments; `-o FILE` tells it where to write its records.
/// With `keep` each round is also appended to `old.csv` and `new.csv` in that folder.
///
/// # Errors
/// When a command cannot be parsed or run or leaves no record, or the files exist already.
pub(super) fn measure(
    commands: &[String; 2],
    rounds: usize,
    keep: Option<&Path>,
) -> Result<[Vec<Record>; 2]> {
    let parsed = [words(&commands[0])?, words(&commands[1])?];
    let kept = keep.map(files).transpose()?;
    let mut kept = kept.unwrap_or_default();
    let mut found = [Vec::new(), Vec::new()];
    for round in 1..=rounds {
        // the other one first in every second round: what grows steadily meets both alike
        let order = if round % 2 == 1 { [0, 1] } else { [1, 0] };
        for side in order {
            say(&format!("round {round}/{rounds}: {}", commands[side]));
            for record in run(&commands[side], &parsed[side])? {
                let record = Record { round: Some(round), ..record };
                kept[side].add(&record)?;
                found[side].push(record);
            }
        }
    }
    Ok(found)
}

/// The files of both sides in `folder`.
fn files(folder: &Path) -> Result<[Outputs; 2]> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io("make", folder, &e))?;
    let open = |name: &str| Outputs::open(&[folder.join(name)], Existing::Refuse);
    Ok([open("old.csv")?, open("new.csv")?])
}

/// Splits a command into words as a shell does, without expanding variables and patterns.
fn words(command: &str) -> Result<Vec<String>> {
    let words = shell_words::split(command)
        .map_err(|e| Error::input(format!("`{command}`: {e}")).in_file("--run"))?;
    let bad = |why: &str| Err(Error::input(format!("`{command}` {why}")).in_file("--run"));
    let Some(first) = words.first() else {
        return bad("is no command");
    };
    let writes = |word: &&String| {
        let flag = word.split('=').next().unwrap_or_default();
        ["-o", "--output", "--resume", "--force"].contains(&flag)
    };
    if let Some(word) = words.iter().find(writes) {
        return bad(&format!("has `{word}`: records are kept with --keep FOLDER"));
    }
    if FileFormat::of(Path::new(first)).is_ok() {
        return bad("is a file: leave --run away to compare files");
    }
    Ok(words)
}

/// Runs a command and returns its records, one for each case.
fn run(command: &str, words: &[String]) -> Result<Vec<Record>> {
    let cannot = |e: &std::io::Error| Error::run(format!("`{command}`: {e}"));
    let folder = tempfile::tempdir().map_err(|e| cannot(&e))?;
    let [result, said] = ["records.csv", "words"].map(|name| folder.path().join(name));
    let own = ["run", "reproduce"].contains(&words[0].as_str());
    let (program, arguments) = if own {
        (std::env::current_exe().map_err(|e| cannot(&e))?, words)
    } else {
        (words[0].clone().into(), &words[1..])
    };
    let errors = std::fs::File::create(&said).map_err(|e| cannot(&e))?;
    let status = Command::new(program)
        .args(arguments)
        .arg("--output")
        .arg(&result)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors)
        .status()
        .map_err(|e| cannot(&e))?;
    // 1: some case did not converge, which its record says
    let found = match status.code() {
        Some(0 | 1) if result.exists() => rounds::aggregated(&records(&result)?),
        _ => Vec::new(),
    };
    if !found.is_empty() {
        return Ok(found);
    }
    let text = std::fs::read(&said).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let why = match last_words(&text).trim_start_matches("error: ") {
        "" => status.to_string(),
        line => line.to_owned(),
    };
    let message = format!("`{command}` left no records: {why}");
    Err(if status.code() == Some(2) { Error::input(message) } else { Error::run(message) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_taken_apart_as_a_shell_does() {
        let of = |text: &str| words(text).map_err(|e| e.to_string());
        let want = ["run", "--matrix", "a b.mtx", "--fill=0,1"].map(str::to_owned).to_vec();
        assert_eq!(of("run --matrix 'a b.mtx'  --fill=0,1"), Ok(want));
        assert_eq!(of("  "), Err("--run: `  ` is no command".into()));
        assert_eq!(of("run 'a"), Err("--run: `run 'a`: missing closing quote".into()));
        assert_eq!(
            of("run --output=x.csv"),
            Err("--run: `run --output=x.csv` has `--output=x.csv`: records are kept with --keep FOLDER"
                .into())
        );
        assert_eq!(
            of("a.csv"),
            Err("--run: `a.csv` is a file: leave --run away to compare files".into())
        );
    }
}
