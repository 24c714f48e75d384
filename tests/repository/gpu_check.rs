//! `scripts/gpu-check.sh` with programs that only pretend: which steps run, and what it says of them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// A program that runs `body` in bash.
fn program(folder: &Path, name: &str, body: &str) {
    std::fs::create_dir_all(folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/usr/bin/env bash\n{body}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

const DOCTOR: &str = "\
case \"$*\" in
doctor) echo '  device 0  NVIDIA H200, compute capability 9.0, 139.8 GiB' ;;
*--self-test*) echo \"self-test ${*:2}\"; exit \"${SELF_TEST:-0}\" ;;
esac";

/// Runs the tool and the program behind the arguments of compute-sanitizer.
const SANITIZER: &str = "\
tool=$2
\"${@:7}\" || exit
case \"$tool\" in
racecheck) echo '========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)'; exit 9 ;;
synccheck) ;;
*) echo '========= ERROR SUMMARY: 0 errors' ;;
esac";

/// Exit code, standard output and standard error with these arguments and the pretended programs.
fn check(arguments: &[&str], self_test: &str) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path(), "bilu-bench", DOCTOR);
    program(&folder.path().join("tools"), "compute-sanitizer", SANITIZER);
    let path = std::env::var("PATH").unwrap();
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/gpu-check.sh"))
        .args(arguments)
        .arg(folder.path())
        .env("PATH", format!("{}/tools:{path}", folder.path().display()))
        .env("BILU_BENCH_SEED", "7")
        .env("SELF_TEST", self_test)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The lines from the seed on, without times.
fn summary(stdout: &str) -> Vec<String> {
    let lines = stdout.lines().skip_while(|line| !line.starts_with("seed "));
    let untimed = |line: &str| match line.rsplit_once(" (") {
        Some((head, time)) if time.ends_with(" s)") && line.starts_with("PASS") => head.to_owned(),
        _ => line.to_owned(),
    };
    lines.map(untimed).collect()
}

#[test]
fn only_the_named_steps_run_and_the_sanitizer_has_its_say() {
    let (code, stdout, stderr) =
        check(&["--steps", "doctor,self-test,memcheck", "--parts", "products,triangles"], "0");
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    let expected = [
        "seed 7",
        "PASS  doctor",
        "PASS  self-test",
        "PASS  memcheck-products",
        "      ERROR SUMMARY: 0 errors",
        "PASS  memcheck-triangles",
        "      ERROR SUMMARY: 0 errors",
        "PASS",
    ];
    assert_eq!(summary(&stdout), expected);
    assert!(stdout.contains("\nself-test --self-test --backend cuda --seed 7\n"), "{stdout}");
    assert!(
        stdout
            .contains("\nself-test --self-test --quick --seed 7 --only products --backend cuda\n"),
        "{stdout}"
    );
    // parts that choose `partitioned` are not for racecheck
    let (_, stdout, _) = check(&["--steps", "memcheck,racecheck"], "0");
    let parts = |step: &str| summary(&stdout).iter().filter(|line| line.contains(step)).count();
    assert_eq!((parts(" memcheck-"), parts(" racecheck-")), (6, 3), "{stdout}");

    // one finds something, one does not even say that it ran
    let (code, stdout, _) = check(&["--steps", "racecheck,synccheck", "--parts", "stencils"], "0");
    let expected = [
        "seed 7",
        "FAIL  racecheck-stencils (exit code 9)",
        "      RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)",
        "FAIL  synccheck-stencils (compute-sanitizer gave no summary)",
        "FAIL",
    ];
    assert_eq!((code, summary(&stdout)), (Some(1), expected.map(str::to_owned).to_vec()));
}

#[test]
fn a_step_that_fails_does_not_stop_the_others() {
    let (code, stdout, _) = check(&["--quick", "--steps", "self-test,doctor"], "3");
    let expected = ["seed 7", "FAIL  self-test (exit code 3)", "PASS  doctor", "FAIL"];
    assert_eq!((code, summary(&stdout)), (Some(1), expected.map(str::to_owned).to_vec()));
    assert!(
        stdout.contains("\nself-test --self-test --quick --backend cuda --seed 7\n"),
        "{stdout}"
    );
}

#[test]
fn bad_arguments_and_missing_programs_are_refused() {
    for (arguments, message) in [
        (&["--steps", "doctor,memchek"][..], "gpu-check: unknown step `memchek`\n"),
        (&["--parts", "stencil"], "gpu-check: unknown part `stencil`\n"),
        (&["--within", "soon"], "gpu-check: `soon` is no number of seconds\n"),
        (&["--fast"], "gpu-check: unknown option `--fast`\n"),
        (&["."], "gpu-check: more than one folder\n"),
    ] {
        let (code, stdout, stderr) = check(arguments, "0");
        assert_eq!((code, stdout.as_str()), (Some(2), ""));
        assert!(stderr.starts_with(message), "{stderr}");
        assert!(stderr.contains("scripts/gpu-check.sh [--quick] [--steps LIST]"), "{stderr}");
    }
    for (step, program) in [("parity", "parity"), ("device-setup", "device_setup")] {
        let (code, _, stderr) = check(&["--steps", step], "0");
        assert_eq!(code, Some(2));
        assert!(stderr.starts_with(&format!("error: no program `{program}` in `")), "{stderr}");
    }
}
