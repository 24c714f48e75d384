//! Peers: programs beside this one that solve a case. Most here are shell scripts that the tests write; those that
//! come with the program run where their libraries are installed.
#![cfg(unix)]

mod advise;
#[path = "../common/mod.rs"]
mod common;
mod own;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bilu_bench::base::status::Status;
use bilu_bench::record::Record;
use bilu_bench::record::read::read;
use common::program::{ran, text};

/// The system of the scripts, of 64 unknowns.
const SYSTEM: &str = "poisson3d:4";

const HELLO: &str = r#"echo '{"hello": {"protocol": 1, "version": "fake 7", "threads": 2}}'"#;
const SETUP: &str = r#"echo '{"setup": {"symbolic": 0.25, "numeric": 0.5, "matrix": 0.125, "factor-entries": 900, "memory-bytes": 4096}}'"#;
const SOLVE: &str = r#"echo '{"solve": {"seconds": 0.25}}'"#;
const END: &str = r#"echo '{"end": {"status": "converged", "iterations": 11, "residual": 5e-7}}'"#;
/// Returns the solution that lies beside the script.
const X: &str = r#"cp x.npy "$1/x.npy""#;

/// A folder with descriptions of peers.
struct Peers {
    folder: tempfile::TempDir,
}

impl Peers {
    /// One without peers, with the solution of [`SYSTEM`].
    fn new() -> Self {
        let peers = Self { folder: tempfile::tempdir().unwrap() };
        let x = peers.path("x.npy");
        let more = ["--rtol", "1e-9", "--solution", x.to_str().unwrap(), "-q"];
        ran(&mut peers.program(&[&["run", SYSTEM][..], &more].concat()), 0);
        peers
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A description of a peer with these methods.
    fn describe(&self, name: &str, command: &str, methods: &str) {
        let text = format!("summary = 'a script'\ncommand = {command}\n{methods}");
        std::fs::write(self.path(&format!("{name}.toml")), text).unwrap();
    }

    /// A peer that runs this shell script, for GMRES with ILU.
    fn script(&self, name: &str, lines: &[&str]) {
        let path = self.path(&format!("{name}.sh"));
        std::fs::write(&path, format!("#!/bin/sh\n{}\n", lines.join("\n"))).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let methods = "[solver]\ngmres = 'gmres'\n[precond]\nbilu = { word = 'ilu', fill = '0..2', \
                       block-size = '1..8' }\n";
        self.describe(name, &format!("['./{name}.sh']"), methods);
    }

    /// The program, which finds the peers.
    fn program(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bilu-bench"));
        command.args(arguments).current_dir(self.folder.path());
        command.env("NO_COLOR", "1").env("BILU_BENCH_PEERS", self.folder.path());
        command
    }

    /// The records of a run, which ends with `code`.
    fn records(&self, more: &[&str], code: i32) -> Vec<Record> {
        let file = self.path("r.jsonl");
        let _ = std::fs::remove_file(&file);
        let base = ["run", SYSTEM, "--max-repetitions", "2", "-o", "r.jsonl"];
        ran(&mut self.program(&[&base[..], more].concat()), code);
        read(&file).unwrap().records
    }

    /// Status and reason of each record of the peers, run after each other with one CPU thread at the end.
    fn told(&self, names: &[&str], more: &[&str]) -> Vec<(Status, String)> {
        let mut backends: Vec<String> =
            names.iter().map(|name| format!("external:{name}")).collect();
        backends.push("cpu".into());
        let list = backends.join(",");
        let records = self.records(&[&["--backend", &list][..], more].concat(), 1);
        assert_eq!(
            records.iter().map(|r| &r.case.backend).collect::<Vec<_>>(),
            backends.iter().collect::<Vec<_>>()
        );
        let (last, others) = records.split_last().unwrap();
        assert_eq!(last.status, Status::Converged);
        others.iter().map(|r| (r.status, r.reason.clone().unwrap_or_default())).collect()
    }
}

/// Whether the process with the number in a file ends soon: a signal takes its time.
fn ends(pid: &Path) -> bool {
    let pid = std::fs::read_to_string(pid).unwrap();
    (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(2));
        let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim()));
        status.map_or(true, |text| text.contains("State:\tZ"))
    })
}

#[test]
fn what_a_peer_tells_is_recorded_and_its_solution_is_judged_and_kept() {
    let peers = Peers::new();
    let keep = r#"cp "$1"/* seen; sleep 0.01"#;
    peers.script("good", &["mkdir -p seen", keep, HELLO, SETUP, SOLVE, SOLVE, X, END]);
    let backends = ["--backend", "external:good,cpu", "--solution", "x-{backend}.npy"];
    let records = peers.records(&[&backends[..], &["--fill", "1", "--rtol", "1e-7"]].concat(), 0);
    let [peer, own] = &records[..] else { panic!("{records:?}") };
    assert_eq!((peer.status, own.status), (Status::Converged, Status::Converged));
    assert_eq!(peer.reason, None);
    let (times, factor) = (&peer.times, &peer.factor);
    assert_eq!(
        (times.symbolic_s, times.analysis_s, times.numeric_s),
        (Some(0.25), None, Some(0.5))
    );
    assert_eq!((times.setup_s, times.matrix_s), (Some(0.75), Some(0.125)));
    assert_eq!((times.solve_s, times.repetitions, times.total_s), (Some(0.25), 2, Some(1.125)));
    assert_eq!(times.ms_per_iteration, Some(250.0 / 11.0));
    assert!(times.reference_s > Some(0.0), "{:?}", times.reference_s);
    assert_eq!((factor.factor_entries, factor.factor_blocks), (Some(900), None));
    assert_eq!(factor.fill_ratio, Some(900.0 / 352.0));
    assert_eq!(peer.traffic.memory_bytes, Some(4096));
    assert_eq!((peer.environment.device.as_str(), peer.environment.threads), ("fake 7", 2));
    assert_eq!(peer.convergence.iterations, 11);
    assert_eq!(peer.convergence.monitored_residual, Some(5e-7));
    // that of the solution, not what the peer says
    let found = peer.convergence.true_residual.unwrap();
    assert!(found > 1e-16 && found < 1e-9, "{found:e}");
    assert_eq!((peer.size.n, peer.hash.clone()), (64, own.hash.clone()));
    let name = |name: &str| std::fs::read(peers.path(name)).unwrap();
    assert_eq!(name("x-external:good.npy")[128..], name("x.npy")[128..]);

    let seen = std::fs::read_to_string(peers.path("seen/settings.json")).unwrap();
    let seen: serde_json::Value = serde_json::from_str(&seen).unwrap();
    for (key, value) in [
        ("solver", serde_json::json!("gmres")),
        ("precond", "ilu".into()),
        ("fill", 1.into()),
        ("restart", 20.into()),
        ("rtol", 1e-7.into()),
        ("side", "right".into()),
        ("protocol", 1.into()),
        ("n", 64.into()),
        ("nnz", 352.into()),
    ] {
        assert_eq!(seen[key], value, "{key}");
    }
    assert_eq!(seen["repeat"]["most"], 2);
    assert_eq!(name("seen/b.npy")[128..], 1f64.to_le_bytes().repeat(64));
    assert!(!peers.path("seen/A.mtx").exists() && !peers.path("seen/x.npy").exists());
}

#[test]
fn a_peer_that_does_not_do_its_work_costs_one_record() {
    let peers = Peers::new();
    peers.script("crash", &[HELLO, SETUP, "echo 'no such library' >&2", "exit 3"]);
    peers.script("killed", &[HELLO, "kill -9 $$"]);
    peers.script("late", &[HELLO, SETUP, SOLVE, X, END, "exit 4"]);
    peers.script("rubbish", &[HELLO, "echo Hello world"]);
    peers.script("silent", &["echo only >&2"]);
    peers.script("no-x", &[HELLO, SETUP, SOLVE, END]);
    peers.script("short-x", &[HELLO, SETUP, SOLVE, r#"head -c 600 x.npy > "$1/x.npy""#, END]);
    peers.script("long-x", &[HELLO, SETUP, SOLVE, r#"cat x.npy x.npy > "$1/x.npy""#, END]);
    peers.script(
        "zero-x",
        &[HELLO, SETUP, SOLVE, r#"(head -c 128 x.npy; head -c 512 /dev/zero) > "$1/x.npy""#, END],
    );
    let nan = r#"(head -c 128 x.npy; head -c 512 /dev/zero | tr '\0' '\377') > "$1/x.npy""#;
    peers.script("nan-x", &[HELLO, SETUP, SOLVE, nan, END]);
    peers.script("untimed", &[HELLO, SETUP, X, END]);
    peers.script(
        "newer",
        &[r#"echo '{"hello": {"protocol": 2, "version": "x", "more": 1}}'"#, "sleep 60"],
    );
    peers.script("flood", &[HELLO, "yes 12345678901234567890"]);
    peers.script(
        "breaks",
        &[
            HELLO,
            SETUP,
            r#"echo '{"end": {"status": "breakdown", "reason": "zero pivot in row 7"}}'"#,
        ],
    );
    peers.script(
        "limit",
        &[
            HELLO,
            SETUP,
            SOLVE,
            X,
            r#"echo '{"end": {"status": "iteration-limit", "iterations": 9}}'"#,
        ],
    );
    let gmres = "[solver]\ngmres = 'g'\n[precond]\nbilu = 'i'\n";
    peers.describe("missing", "['./no-such-program']", gmres);
    let expected = [
        ("crash", Status::Failed, "the peer ended without `end`, exit code 3: no such library"),
        ("killed", Status::Failed, "its process was killed by SIGKILL"),
        ("late", Status::Failed, "the peer ended with exit code 4"),
        ("rubbish", Status::Failed, "line 2 of its answer: `Hello world` is no JSON"),
        ("silent", Status::Failed, "the peer ended without `end`, exit code 0: only"),
        ("short-x", Status::Failed, "`x.npy`: it ends early"),
        ("long-x", Status::Failed, "`x.npy`: more than 64 numbers"),
        ("zero-x", Status::FalseConvergence, "true residual 1.0e0 where 5.0e-7 was monitored"),
        ("nan-x", Status::FalseConvergence, "true residual NaN where 5.0e-7 was monitored"),
        ("untimed", Status::Failed, "the peer timed no solve"),
        ("newer", Status::Unsupported, "line 1 of its answer: protocol 2, this program speaks 1"),
        ("flood", Status::Failed, "line 2 of its answer: `12345678901234567890`: "),
        ("breaks", Status::Breakdown, "zero pivot in row 7"),
        ("limit", Status::NotConverged, "iteration limit 2000 reached"),
        (
            "missing",
            Status::Unsupported,
            "cannot start `./no-such-program` of the peer `missing`: ",
        ),
        ("no-x", Status::Failed, "cannot read "),
    ];
    let names = expected.map(|(name, ..)| name);
    let begun = Instant::now();
    for (told, (name, status, reason)) in peers.told(&names, &[]).iter().zip(expected) {
        assert_eq!(told.0, status, "{name}: {}", told.1);
        let whole = !(reason.ends_with(": ") || reason.ends_with("read "));
        assert!(
            if whole { told.1 == reason } else { told.1.starts_with(reason) },
            "{name}: {}",
            told.1
        );
    }
    // what was refused was not waited for
    assert!(begun.elapsed() < Duration::from_secs(50));
}

#[test]
fn too_many_bytes_are_refused() {
    let peers = Peers::new();
    let line = r#"while :; do echo "                                                                            "; done"#;
    peers.script("blank", &[HELLO, line]);
    peers.script("endless", &[HELLO, "yes | tr -d '\\n'"]);
    let told = peers.told(&["blank", "endless"], &[]);
    let failed = |reason: &str| (Status::Failed, reason.to_owned());
    assert_eq!(
        told,
        [failed("more than 16 MiB on standard output"), failed("more than 1 MiB in a line")]
    );
}

#[test]
fn a_peer_that_hangs_is_ended_with_its_children() {
    let peers = Peers::new();
    let hangs = ["sleep 300 &", "echo $! > pid", HELLO, "echo still here >&2", "wait"];
    peers.script("hangs", &hangs);
    let told = peers.told(&["hangs"], &["--time-limit", "0.4"]);
    let reason = "time limit, 0.4 s without a line of the peer: still here";
    assert_eq!(told, [(Status::TimeLimit, reason.to_owned())]);
    assert!(ends(&peers.path("pid")));

    std::fs::remove_file(peers.path("pid")).unwrap();
    let backend = ["--backend", "external:hangs", "--case-limit", "1.5"];
    let records = peers.records(&backend, 1);
    assert_eq!(records[0].status, Status::TimeLimit, "{:?}", records[0].reason);
    assert_eq!(records[0].reason.as_deref(), Some("time limit of a case, 1.5 s, reached"));
    assert!(ends(&peers.path("pid")));
}

#[test]
fn a_request_to_stop_ends_the_peer() {
    let peers = Peers::new();
    peers.script("hangs", &["sleep 300 &", HELLO, "echo $! > pid", "wait"]);
    let mut command = peers.program(&["run", SYSTEM, "--backend", "external:hangs", "-q"]);
    let mut program = command.spawn().unwrap();
    let begun = Instant::now();
    while !std::fs::read_to_string(peers.path("pid")).is_ok_and(|pid| pid.ends_with('\n')) {
        assert!(begun.elapsed() < Duration::from_secs(20), "the peer does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = program.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(program.wait().unwrap().code(), Some(130));
    assert!(ends(&peers.path("pid")));
}

#[test]
fn a_process_of_its_own_runs_a_peer_as_well() {
    let peers = Peers::new();
    peers.script("good", &[HELLO, SETUP, SOLVE, X, END]);
    let own = peers.path("own");
    std::fs::create_dir(&own).unwrap();
    std::fs::rename(peers.path("good.toml"), own.join("moved.toml")).unwrap();
    for file in ["good.sh", "x.npy"] {
        std::fs::copy(peers.path(file), own.join(file)).unwrap();
    }
    let folder = ["--backend", "external:moved,cpu", "--peers", "own"];
    let records = peers.records(&[&folder[..], &["--isolate"]].concat(), 0);
    assert_eq!(records[0].environment.device, "fake 7");
    assert_eq!(records[0].convergence.iterations, 11);
}

#[test]
fn cases_that_a_peer_does_not_take_are_not_supported() {
    let peers = Peers::new();
    peers.script("good", &[HELLO, SETUP, SOLVE, X, END]);
    let of = |more: &[&str]| {
        let told = peers.told(&["good"], more);
        assert_eq!(told[0].0, Status::Unsupported, "{}", told[0].1);
        told[0].1.clone()
    };
    assert_eq!(of(&["--fill", "3"]), "`bilu` of the peer `good` takes no fill 3, but 0..2");
    assert_eq!(
        of(&["--solver", "bicgstab"]),
        "the peer `good` has no solver `bicgstab`, but gmres"
    );
    let none = "the peer `good` has no preconditioner `none`, but bilu";
    assert_eq!(of(&["--precond", "none"]), none);
    assert_eq!(of(&["--side", "left"]), "the peer `good` has no setting `side`");
    // a method of a peer is none of ours
    let records = peers.records(&["--backend", "cpu", "--precond", "external:amg"], 1);
    assert_eq!(records[0].status, Status::Unsupported);
    let reason = "there is no preconditioner `external:amg`";
    assert_eq!(records[0].reason.as_deref(), Some(reason));
    let product = peers.records(&["--backend", "external:good,cpu", "--kind", "spmv"], 1);
    assert_eq!(product[0].reason.as_deref(), Some("peers solve, and measure no products"));
    assert_eq!((product[0].status, product[1].status), (Status::Unsupported, Status::Measured));
}

#[test]
fn all_preconditioners_are_those_of_peers_too() {
    let peers = Peers::new();
    peers.script("good", &[HELLO, SETUP, SOLVE, X, END]);
    let methods = "[solver]\ngmres = 'gmres'\n[precond]\nbilu = { word = 'ilu', fill = '0..2' }\n\
                   'external:amg' = { word = 'amg', side = 'right' }\n'external:lu' = { word = 'lu', fill = '3' }\n";
    peers.describe("good", "['./good.sh']", methods);
    let records = peers.records(&["--backend", "cpu,external:good", "--precond", "all"], 0);
    let solved = records.iter().filter(|r| r.case.backend == "external:good");
    let solved = solved.filter(|r| r.status == Status::Converged).map(|r| &r.case.precond[..]);
    assert_eq!(solved.collect::<Vec<_>>(), ["bilu", "external:amg"]);
    let own = |r: &&Record| r.case.precond == "external:amg";
    assert_eq!(records.iter().filter(own).count(), 1);
    let named = peers.records(&["--backend", "external:good", "--precond", "bilu"], 0);
    assert_eq!(named.len(), 1);
}

#[test]
fn own_methods_of_peers_are_swept_over_the_settings_that_they_take() {
    let peers = Peers::new();
    peers.script("good", &[HELLO, SETUP, SOLVE, X, END]);
    let methods = "[solver]\ngmres = 'gmres'\n[precond]\n'external:amg' = 'amg'\n\
                   'external:ras' = { word = 'ras', fill = '0..2' }\n";
    peers.describe("good", "['./good.sh']", methods);
    let own = "--precond=external:ras,external:amg";
    let records = peers.records(&["--backend=external:good", own, "--fill=1..3"], 1);
    let mut told: Vec<(&str, usize, bool)> = records
        .iter()
        .map(|r| (&r.case.precond[..], r.case.fill, r.status == Status::Converged))
        .collect();
    told.sort_unstable();
    // multigrid has no levels of fill, and Schwarz none above 2
    let ras = [1, 2, 3].map(|k| ("external:ras", k, k < 3));
    assert_eq!(told, [&[("external:amg", 0, true)][..], &ras].concat());
}

#[test]
fn a_solution_in_another_order_with_blocks_is_that_of_the_source() {
    if python_with("struct").is_none() {
        return;
    }
    let peers = Peers::new();
    // the diagonal matrix 2, 4, .. of nine unknowns, and one of padding
    let diagonal: Vec<String> = (1..=9).map(|i| format!("{i} {i} {}.0\n", 2 * i)).collect();
    let head = "%%MatrixMarket matrix coordinate real general\n9 9 9\n";
    std::fs::write(peers.path("d.mtx"), format!("{head}{}", diagonal.concat())).unwrap();
    let python = r#"
import sys, struct
folder = sys.argv[1]
def numbers(name):
    data = open(folder + "/" + name, "rb").read()[128:]
    return struct.unpack("<%dd" % (len(data) // 8), data)
a, b = numbers("values.npy"), numbers("b.npy")
assert len(a) == len(b) == 10 and b[9] == 0.0 and a[9] == 1.0, (a, b)
head = ("{'descr': '<f8', 'fortran_order': False, 'shape': (10,), }").ljust(117) + "\n"
x = [q / p for p, q in zip(a, b)]
open(folder + "/x.npy", "wb").write(b"\x93NUMPY\x01\x00\x76\x00" + head.encode() + struct.pack("<10d", *x))
open("order", "w").write(" ".join(str(int(v)) for v in a))
"#;
    std::fs::write(peers.path("solve.py"), python).unwrap();
    peers.script("python", &[HELLO, SETUP, SOLVE, r#"python3 solve.py "$1" || exit 1"#, END]);
    let file = ["run", "d.mtx", "--backend", "external:python", "-q", "--solution", "y.npy"];
    let settings = ["--block-size", "2", "--ordering", "random:3", "-o", "d.jsonl"];
    ran(&mut peers.program(&[&file[..], &settings].concat()), 0);
    let record = &read(&peers.path("d.jsonl")).unwrap().records[0];
    assert_eq!(record.convergence.true_residual, Some(0.0));
    let order = std::fs::read_to_string(peers.path("order")).unwrap();
    assert_ne!(order, "2 4 6 8 10 12 14 16 18 1");
    let bytes = std::fs::read(peers.path("y.npy")).unwrap();
    let y: Vec<f64> =
        bytes[128..].chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(y, (1..=9).map(|i| 1.0 / f64::from(2 * i)).collect::<Vec<_>>());
}

#[test]
fn unknown_peers_and_wrong_descriptions_are_refused_before_anything_runs() {
    let peers = Peers::new();
    peers.script("good", &[HELLO]);
    peers.describe("bad", "'x'", "[solver]\ngmrs = 'g'\n");
    let refused = |backend: &str| {
        let run = ["run", SYSTEM, "--backend", backend, "-o", "none.csv"];
        let output = ran(&mut peers.program(&run), 2);
        assert!(!peers.path("none.csv").exists());
        text(&output.stderr)
    };
    assert_eq!(
        refused("cpu,external:god"),
        "error: unknown peer `god`\nhint: did you mean `good`? known: bad, good\n"
    );
    let bad = peers.path("bad.toml");
    let place = format!("error: {}:4:1: unknown solver `gmrs`\n", bad.display());
    assert!(refused("external:bad").starts_with(&place), "{}", refused("external:bad"));
    assert!(
        refused("external:../x")
            .starts_with("error: --backend: `external:../x` is not `external:WORD`")
    );
    let advise = ["advise", SYSTEM, "--set", "backend=cpu,external:good"];
    let output = ran(&mut peers.program(&advise), 2);
    assert!(text(&output.stderr).starts_with("error: `external:good` is not searched\n"));
    let output = ran(&mut peers.program(&["run", SYSTEM, "--peers", "gone"]), 2);
    assert_eq!(text(&output.stderr), "error: --peers: there is no folder `gone`\n");
}

#[test]
fn doctor_and_list_tell_of_peers() {
    let peers = Peers::new();
    peers.script("good", &[r#"[ "$1" = --version ] || exit 9"#, HELLO]);
    peers.script("broken", &["echo 'error: no library' >&2; exit 1"]);
    let output = ran(&mut peers.program(&["doctor", "--json"]), 0);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["peers"]["good"], "fake 7");
    assert_eq!(found["peers"]["broken"], "not usable: exit code 1: no library");
    let output = ran(&mut peers.program(&["list", "peers"]), 0);
    let listed = text(&output.stdout);
    let good = "a script; solvers: gmres; preconditioners: bilu (fill 0..2; block-size 1..8)";
    assert!(listed.contains(&format!("external:good    {good}\n")), "{listed}");
}

/// The command of Python, where it has a module; says that a test is skipped where not.
fn python_with(module: &str) -> Option<String> {
    let python = std::env::var("BILU_BENCH_PYTHON").unwrap_or_else(|_| "python3".into());
    let found = Command::new(&python).args(["-c", &format!("import {module}")]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    eprintln!("skipped: {python} has no {module}");
    None
}

#[test]
fn the_example_of_the_documentation_is_a_peer() {
    let Some(python) = python_with("scipy.sparse.linalg") else {
        assert!(
            std::env::var_os("BILU_BENCH_REQUIRE_SCIPY").is_none(),
            "BILU_BENCH_REQUIRE_SCIPY is set"
        );
        return;
    };
    let page = include_str!("../../docs/peers.md");
    let code = |language: &str| {
        let (_, code) = page.split_once(&format!("```{language}\n")).expect("an example");
        code.split_once("```").expect("an end").0.to_owned()
    };
    let peers = Peers::new();
    std::fs::write(peers.path("peer.py"), code("python")).unwrap();
    std::fs::write(peers.path("own.toml"), code("toml").replace("python3", &python)).unwrap();
    let case = ["--precond", "external:spilu", "--side", "left", "--backend", "external:own"];
    let records = peers.records(&case, 0);
    let record = &records[0];
    assert!(record.environment.device.starts_with("SciPy "), "{}", record.environment.device);
    assert!(record.factor.factor_entries.is_some_and(|entries| entries > 352));
    // with few entries dropped it is nearly exact
    let (iterations, residual) = (record.convergence.iterations, record.convergence.true_residual);
    assert!((1..=6).contains(&iterations), "{iterations}");
    assert!(residual.is_some_and(|r| r < 1e-5), "{residual:?}");
    let doctor = ran(&mut peers.program(&["doctor", "--json"]), 0);
    let found: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert!(found["peers"]["own"].as_str().unwrap().starts_with("SciPy "), "{}", found["peers"]);
}
