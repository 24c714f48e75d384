//! `scripts/luo-results.sh` with a program that only pretends: what is run where, and in which order.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Finds a GPU, notes its calls with the processors that it may use, and leaves records.
const PROGRAM: &str = r#"#!/usr/bin/env bash
if [ "$1" = doctor ]; then
    echo '  device 0  NVIDIA H200, compute capability 9.0, 139.8 GiB'
    exit
fi
allowed="$(taskset --cpu-list --pid $$)"
name="${2#luo/}"
{
    flock 9
    echo "${allowed##* } $*" >>"$CALLS"
} 9>>"$CALLS"
while [ "$#" -gt 0 ]; do
    case "$1" in
    --output)
        case "$2" in
        */) mkdir -p "$2" && echo record >>"$2$name.csv" ;;
        *) echo record >>"$2" ;;
        esac
        shift
        ;;
    esac
    shift
done
[ "$name" != "${FAILS:-}" ] || exit 3
"#;

struct Ran {
    code: Option<i32>,
    /// Calls of the program without the folders, in order.
    calls: Vec<String>,
    stderr: String,
    files: Vec<String>,
}

fn script(settings: &[(&str, &str)]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let program = here.join("bilu-bench");
    std::fs::write(&program, PROGRAM).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let calls = here.join("calls");
    let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/luo-results.sh"));
    for name in ["BILU_BENCH_TABLES", "BILU_BENCH_CPUS"] {
        command.env_remove(name);
    }
    let output = command
        .args([here, &here.join("out")])
        .env("CALLS", &calls)
        .envs(settings.iter().copied())
        .output()
        .unwrap();
    let noted = std::fs::read_to_string(&calls).unwrap_or_default();
    let mut files: Vec<String> = std::fs::read_dir(here.join("out"))
        .map(|entries| entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect())
        .unwrap_or_default();
    files.sort();
    Ran {
        code: output.status.code(),
        calls: noted.lines().map(|line| without_folders(line, here)).collect(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        files,
    }
}

/// The words of a call, with `out` for the results and `scratch` for what lasts as long as the script.
fn without_folders(line: &str, here: &Path) -> String {
    let line = line.replace(&format!("{}/", here.display()), "");
    let word = |word: &str| match word.find("/cpu/") {
        Some(at) => format!("scratch{}", &word[at..]),
        None => word.to_owned(),
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

const CPU: &str = "--backend cpu,cpu-mt --max-repetitions 6 --time-budget 60";
const GPU: &str = "--backend cuda --max-repetitions 6 --time-budget 2";

fn calls_of<'a>(ran: &'a Ran, wanted: &str) -> Vec<&'a String> {
    ran.calls.iter().filter(|call| call.contains(wanted)).collect()
}

#[test]
fn everything_runs_in_turn_where_no_processors_are_named() {
    let ran = script(&[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let rows = |name: &str, flags: &str| {
        format!("reproduce luo/{name} --quiet --resume --output out/ {flags}")
    };
    let shown = |name: &str| {
        format!("reproduce luo/{name} --quiet --resume --output out/ --format markdown")
    };
    let all = ["table3", "figure9", "figure10", "table1"];
    let mut wanted = vec![rows("table3", CPU), rows("figure9", CPU)];
    wanted.extend(all.map(|name| rows(name, GPU)));
    wanted.extend(["figure10", "table1"].map(|name| rows(name, CPU)));
    wanted.extend(all.map(shown));
    wanted.push(
        "reproduce luo/table4 --quiet --resume --output out/table3.csv --format markdown".into(),
    );
    let words: Vec<_> = ran.calls.iter().map(|call| call.split_once(' ').unwrap().1).collect();
    assert_eq!(words, wanted);
    let records = ["figure10.csv", "figure9.csv", "table1.csv", "table3.csv"];
    let others = ["environment.txt", "table4.md"];
    let mut files = [records.as_slice(), &others].concat();
    files.sort_unstable();
    assert_eq!(ran.files, files);
}

#[test]
fn named_processors_are_for_the_cpu_alone() {
    let count = std::thread::available_parallelism().unwrap().get();
    if count < 2 {
        eprintln!("skipped: one processor cannot be shared out");
        return;
    }
    let ran = script(&[("BILU_BENCH_CPUS", "1"), ("BILU_BENCH_TABLES", "table3 table1")]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for call in calls_of(&ran, CPU) {
        // the call that brings the records of both together runs nothing
        assert!(call.starts_with("1 ") || call.contains("--output scratch"), "{call}");
    }
    for call in calls_of(&ran, GPU) {
        let allowed = call.split(' ').next().unwrap();
        assert!(!allowed.split(',').any(|part| part == "1") && allowed.starts_with('0'), "{call}");
    }
    // what is compared with the GPU first; the long rest to a folder of its own, then brought together
    assert!(ran.calls[0].ends_with(CPU) && ran.calls[0].contains("table3"), "{:?}", ran.calls);
    assert_eq!(calls_of(&ran, "luo/table1 --quiet --resume --output scratch/cpu/ ").len(), 1);
    let together = "--output out/table1.csv --output scratch/cpu/table1.csv";
    assert_eq!(calls_of(&ran, together).len(), 1);
    assert!(calls_of(&ran, "figure").is_empty(), "{:?}", ran.calls);
}

#[test]
fn failures_and_bad_settings_are_told() {
    let ran = script(&[("FAILS", "figure9"), ("BILU_BENCH_TABLES", "table3 figure9")]);
    assert_eq!(ran.code, Some(1));
    // the others are run nevertheless
    assert_eq!(calls_of(&ran, "luo/table3").len(), 3);
    let refused = |name, value| {
        let ran = script(&[(name, value)]);
        assert_eq!((ran.code, ran.calls.len()), (Some(2), 0));
        ran.stderr
    };
    assert_eq!(
        refused("BILU_BENCH_TABLES", "table2"),
        "luo-results: unknown table `table2`; known: table3, figure9, figure10, table1\n"
    );
    assert_eq!(
        refused("BILU_BENCH_CPUS", "0-"),
        "luo-results: BILU_BENCH_CPUS=0- is no list of processors\n"
    );
    assert_eq!(
        refused("BILU_BENCH_CPUS", "0-4095"),
        "luo-results: BILU_BENCH_CPUS leaves no processor for the GPU's host threads\n"
    );
}
