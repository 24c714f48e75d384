//! What the program says about wrong input: message, hint, exit code 2, nothing on standard output.

use std::path::Path;

use assert_cmd::Command;
use bilu_bench::methods::registry;

fn bilu() -> Command {
    let mut command = Command::cargo_bin("bilu-bench").unwrap();
    command.env("NO_COLOR", "1");
    command
}

/// The names of a registry as messages have them.
fn known(names: registry::Names) -> String {
    names.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Standard error of a call that must end with exit code 2 and print nothing.
fn refused(arguments: &[&str]) -> String {
    let output = bilu().args(arguments).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{arguments:?}");
    text
}

/// First line of it.
fn first_line(arguments: &[&str]) -> String {
    refused(arguments).lines().next().unwrap_or_default().to_owned()
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn bad_values_of_flags_name_the_flag() {
    for (flag, value, message) in [
        ("--block-size", "0", "`0` is outside 1 to 128"),
        ("--block-size", "-4", "`-4` is outside 1 to 128"),
        ("--block-size", "1000000000000", "`1000000000000` is outside 1 to 128"),
        ("--fill", "3..0", "the range `3..0` is empty"),
        ("--block-size", "1..", "the range `1..` lacks an end"),
        (
            "--rhs",
            "random:99999999999999999999",
            "right-hand side `random:99999999999999999999`: `99999999999999999999` is not a seed",
        ),
        ("--fill", "", "empty list ``"),
        ("--fill", "1,,2", "empty value in the list `1,,2`"),
        ("--fill", "one", "`one` is not a whole number"),
        ("--rtol", "1.0", "`1.0` is outside the range: at least 0 and below 1"),
        ("--rtol", "-1e-6", "`-1e-6` is outside the range: at least 0 and below 1"),
        ("--rtol", "inf", "`inf` is outside the range: at least 0 and below 1"),
        ("--restart", "0", "`0` is outside 1 to 506"),
        ("--max-iterations", "0", "`0` is outside 1 to 1000000000"),
        ("--shift", "nan", "`nan` is outside the range: 0 to 1e6"),
        ("--solver", "gmers", "unknown solver `gmers`"),
        (
            "--rtol",
            "1.5000000000000000000000000000000000000000000000",
            "`1.5` is outside the range: at least 0 and below 1",
        ),
        ("--precond", "ilu", "unknown preconditioner `ilu`"),
        ("--backend", "tpu", "unknown backend `tpu`"),
        ("--side", "middle", "unknown side `middle`"),
        ("--level-rule", "mim", "unknown level rule `mim`"),
        ("--matrix-format", "coo", "unknown matrix format `coo`"),
        ("--fgbilu-style", "ocl", "unknown style of fgbilu `ocl`"),
        ("--execution", "eager", "unknown execution `eager`"),
        ("--history", "-1", "`-1` is outside 0 to 10000"),
        ("--factor-precision", "float8", "unknown factor precision `float8`"),
        ("--inner-rtol", "0", "`0` is outside the range: above 0 and below 1"),
        ("--read-as", "half", "unknown reading `half`"),
        ("--orthogonalisation", "qr", "unknown orthogonalisation `qr`"),
        ("--rhs", "zeros", "unknown right-hand side `zeros`"),
        ("--min-repetitions", "0", "`0` is outside 1 to 100000"),
        ("--repeat-values", "-1", "`-1` is outside 0 to 100000"),
        ("--time-limit", "0", "`0` is outside the range: above 0 and at most 1e7 seconds"),
    ] {
        assert_eq!(first_line(&["run", flag, value]), format!("error: {flag}: {message}"));
    }
    let solvers = known(registry::SOLVERS);
    assert_eq!(
        refused(&["run", "--solver", "gmers"]),
        format!(
            "error: --solver: unknown solver `gmers`\n\
             hint: did you mean `gmres`? known: {solvers}\n"
        )
    );
    // capitals are taken for a slip in every list of names
    for (flag, value, name) in [
        ("--solver", "GMRES", "gmres"),
        ("--precond", "BILU", "bilu"),
        ("--backend", "CPU", "cpu"),
        ("--ordering", "RCM", "rcm"),
        ("--matrix-format", "CSR", "csr"),
        ("--level-rule", "Overwrite", "overwrite"),
        ("--orthogonalisation", "MGS", "mgs"),
        ("--rhs", "ONES", "ones"),
        ("--deflation", "None", "none"),
    ] {
        let said = refused(&["run", flag, value]);
        let hint = format!("hint: did you mean `{name}`?");
        assert!(said.lines().nth(1).is_some_and(|l| l.starts_with(&hint)), "{said}");
    }
    let said = refused(&["run", "--matrix", "Poisson3D:8"]);
    assert!(said.contains("did you mean `poisson3d`?"), "{said}");
    assert_eq!(
        first_line(&["run", "--min-repetitions", "3", "--max-repetitions", "2"]),
        "error: min-repetitions 3 is more than max-repetitions 2"
    );
    assert_eq!(
        first_line(&["run", "--fill", "0..100", "--max-iterations", "1..1000"]),
        "error: the sweep has more than 100000 cases"
    );
}

#[test]
fn errors_in_a_file_name_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let refused_file = |text: &str| {
        let path = write(folder.path(), "x.toml", text);
        refused(&["run", &path]).replace(&folder.path().display().to_string(), "DIR")
    };
    assert_eq!(
        refused_file("[[sweep]]\nmatrix = \"poisson3d:8\"\nprecon = \"bilu\"\n")
            .split(" known:")
            .next(),
        Some("error: DIR/x.toml:3:1: unknown setting `precon`\nhint: did you mean `precond`?")
    );
    assert_eq!(
        refused_file("[[sweep]]\nblock-size = [1, 2, 0]\n"),
        "error: DIR/x.toml:2:21: `0` is outside 1 to 128\n"
    );
    assert_eq!(
        refused_file("[[sweep]]\nprecond = \"billu\"\n"),
        format!(
            "error: DIR/x.toml:2:11: unknown preconditioner `billu`\n\
             hint: did you mean `bilu`? known: {}\n",
            known(registry::PRECONDITIONERS)
        )
    );
    assert_eq!(
        refused_file(
            "[sweep]\nfill = 0\n\n[published]\ncsv = \"p.csv\"\niterations = \"i\"\n\
                      keys = { fill = \"k\" }\n"
        ),
        "error: DIR/x.toml:5:7: cannot read `DIR/p.csv`: No such file or directory (os error 2)\n"
    );
    for (value, what) in [
        ("3", "2:10: unknown matrix `3`"),
        (
            "\"nope.mtx\"",
            "2:10: cannot read `DIR/nope.mtx`: No such file or directory (os error 2)",
        ),
        ("[\"poisson3d:4\", \"poisson3d:5,poisson3d:0\"]", "2:26: "),
    ] {
        let said = refused_file(&format!("[[sweep]]\nmatrix = {value}\n"));
        assert!(said.starts_with(&format!("error: DIR/x.toml:{what}")), "{said}");
    }
    // a flag takes the place of the file's
    let path = write(folder.path(), "y.toml", "[[sweep]]\nmatrix = \"nope.mtx\"\n");
    let said = first_line(&["run", &path, "--matrix", "nope.mtx"]);
    assert_eq!(said, "error: cannot read `nope.mtx`: No such file or directory (os error 2)");
    let path = folder.path().join("z.toml");
    std::fs::write(&path, b"[[sweep]]\n# \xe9\n").unwrap();
    let path = path.display().to_string();
    for command in ["run", "obstacle"] {
        assert_eq!(
            refused(&[command, &path]),
            format!("error: {path}:2: not valid UTF-8\nhint: save the file as UTF-8\n")
        );
    }
    let missing = folder.path().join("no.toml").display().to_string();
    assert_eq!(
        refused(&["run", &missing]),
        format!("error: cannot read `{missing}`: No such file or directory (os error 2)\n")
    );
}

#[test]
fn output_files_are_checked_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let full = write(folder.path(), "full.jsonl", "{}\n");
    assert_eq!(
        refused(&["run", "-o", &full]),
        format!(
            "error: `{full}` exists already\n\
             hint: --resume adds what is missing to it, --force overwrites it\n"
        )
    );
    assert_eq!(
        refused(&["run", "-o", "a.xlsx"]),
        "error: result file `a.xlsx` has the extension `.xlsx`\nhint: known: .csv, .jsonl, .json, .md\n"
    );
    let below = format!("{full}/a.csv");
    assert_eq!(
        first_line(&["run", "-o", &below]),
        format!("error: cannot write `{below}`: Not a directory (os error 20)")
    );
    let nowhere = folder.path().join("no/a.csv").display().to_string();
    assert_eq!(
        refused(&["run", "-o", &nowhere]),
        format!(
            "error: cannot write `{nowhere}`: No such file or directory (os error 2)\n\
             hint: its folder does not exist; create it first\n"
        )
    );
    let damaged = write(folder.path(), "bad.json", "[{]");
    assert_eq!(
        first_line(&["run", "--resume", "-o", &damaged]),
        format!("error: {damaged}:1:3: key must be a string")
    );
}

#[test]
fn usage_errors_end_with_2() {
    assert!(refused(&["rnu"]).starts_with("error: unrecognized subcommand 'rnu'"));
    assert!(refused(&["run", "--resume"]).contains("--output <FILE>"));
    assert!(refused(&["run", "--fil", "2"]).contains("--fill"));
    assert!(
        refused(&["run", "-o", "a.csv", "--force", "--resume"]).contains("cannot be used with")
    );
    assert_eq!(
        refused(&["reproduce", "yagn"]),
        "error: unknown paper `yagn`\nhint: did you mean `yang`? known: almouhamed, gupta, luo, orderings, scaling, trisolve, yang\n"
    );
    assert_eq!(first_line(&["reproduce", "yang/tabel1"]), "error: unknown table of yang `tabel1`");
    assert_eq!(
        first_line(&["reproduce", "yang", "--scale", "-2"]),
        "error: --scale: `-2` is no scale"
    );
    assert_eq!(first_line(&["list", "solver"]), "error: unknown section `solver`");
}

#[test]
fn negative_values_are_values() {
    for (arguments, flag, why) in [
        (&["run", "--case-limit", "-3"][..], "--case-limit", "above 0 and at most 1e7 seconds"),
        (
            &["advise", "a", "--time-budget", "-1"],
            "--time-budget",
            "above 0 and at most 1e7 seconds",
        ),
        (&["advise", "a", "--solves", "-1"], "--solves", "-1 is not in 1.."),
        (&["obstacle", "--repetitions", "-1"], "--repetitions", "-1 is not in 1..=1000"),
        (&["matrix", "info", "a", "--fill", "-1"], "--fill", "write `0..3`, `2` or `none`"),
        (&["doctor", "--self-test", "--seed", "-1"], "--seed", "invalid digit"),
    ] {
        let said = first_line(arguments);
        assert!(
            said.starts_with("error: invalid value '-")
                && said.contains(flag)
                && said.contains(why),
            "{said}"
        );
    }
}

#[test]
fn an_instruction_set_that_nobody_knows_is_refused() {
    let mut command = Command::cargo_bin("bilu-bench").unwrap();
    command.env("NO_COLOR", "1").env("BILU_BENCH_ISA", "avx").args(["list", "settings"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: BILU_BENCH_ISA: unknown instruction set `avx`\n\
         hint: did you mean `avx2`? known: baseline, avx2, avx512\n"
    );
}
