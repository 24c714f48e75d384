//! Failures of runs over ranks, and what they say: `cargo test --features mpi --test ranks run_mpi_failures`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use bilu_bench::base::status::Status;

use crate::common::mpi::{self, command, launcher, program, records, said, text};

#[test]
fn more_ranks_than_subdomains_or_block_rows_are_said() {
    let run = |count, arguments: &[&str]| {
        said(count, 1, &[&["run", "--backend", "mpi"], arguments].concat())
    };
    assert!(run(3, &["poisson3d:4", "--subdomains", "2"]).contains("2 subdomains on 3 ranks"));
    let text = run(2, &["poisson3d:2", "--subdomains", "9"]);
    assert!(text.contains("9 subdomains of 8 block rows"), "{text}");
    let text = run(2, &["poisson3d:4", "--ordering", "rcm", "--partition", "boxes"]);
    assert!(text.contains("no grid is known for partition `boxes`"), "{text}");
    let text = run(2, &["poisson3d:4", "--solver", "qmr", "--schwarz", "ras:1"]);
    let expected = "`qmr` needs the transposed preconditioner, and `ras:1` has none";
    assert!(text.contains(expected), "{text}");
    let text = run(2, &["poisson3d:4", "--deflation", "subdomain:2"]);
    assert!(text.contains("deflation over ranks is by `subdomains`"), "{text}");
    let text = run(2, &["poisson3d:4", "--schwarz", "exact", "--precond", "jacobi"]);
    let why = "`jacobi` is not exact over ranks: it runs in each subdomain, with `--schwarz jacobi` or `ras:D`; exact \
               are `bilu`, `fsai`, `tns`, `chebyshev`";
    assert!(text.contains(why), "{text}");
    let text = run(2, &["poisson3d:4", "--schwarz", "exact:natural", "--precond", "tns"]);
    let why =
        "`tns` consists of products, which have no order of elimination: give `--schwarz exact`";
    assert!(text.contains(why), "{text}");
    let text =
        run(2, &["poisson3d:4", "--schwarz", "exact", "--level-rule", "overwrite", "--fill", "1"]);
    let why = "`exact` with the level rule `overwrite` does not run over ranks";
    assert!(text.contains(why), "{text}");
    let more = ["poisson3d:4", "--schwarz", "exact:interface:1", "--level-rule", "overwrite"];
    let text = run(2, &[&more[..], &["--fill", "0"]].concat());
    let why = "`exact:interface:1` with the level rule `overwrite` does not run over ranks";
    assert!(text.contains(why), "{text}");
    let more = ["poisson3d:4", "--schwarz", "exact:interface:4", "--level-rule", "min"];
    let text = run(2, &[&more[..], &["--fill", "120"]].concat());
    assert!(text.contains("`exact:interface:4` has fill of level"), "{text}");
}

#[test]
fn the_first_rank_reports_errors_once_and_ends_the_others() {
    let text = said(2, 2, &["run", "no-such.mtx", "--backend", "mpi"]);
    assert_eq!(text.matches("cannot read `no-such.mtx`").count(), 1, "{text}");
    let text = said(2, 2, &["run", "poisson3d:4", "--backend", "cpu"]);
    assert_eq!(text.matches("2 ranks, and no case that uses them").count(), 1, "{text}");
    let text = said(2, 2, &["run", "poisson3d:4", "--backend", "mpi", "--isolate"]);
    assert!(text.contains("--isolate on 2 ranks"), "{text}");
    let text = said(2, 2, &["run", "poisson3d:4", "--backend", "mpi", "--case-limit", "9"]);
    assert!(text.contains("give --output FILE, which keeps what was finished"), "{text}");
    let text = said(2, 2, &["advise", "poisson3d:4"]);
    assert_eq!(text.matches("2 ranks, and `advise` uses one process").count(), 1, "{text}");
}

#[test]
fn a_breakdown_on_one_rank_is_the_record_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.mtx");
    // the last of four rows has no diagonal and no other row of its subdomain
    let entries = "1 1 2\n2 2 2\n3 3 2\n4 1 1\n1 4 1\n";
    let head = "%%MatrixMarket matrix coordinate real general\n4 4 5\n";
    std::fs::write(&file, format!("{head}{entries}")).unwrap();
    let name = file.display().to_string();
    for count in [1, 2, 4] {
        let out = folder.path().join("r.jsonl");
        let arguments =
            ["run", &name, "--backend", "mpi", "--subdomains", "4", "-q", "--force", "-o"];
        said(count, 1, &[&arguments[..], &[out.to_str().unwrap()]].concat());
        let record = records(&out).remove(0);
        assert_eq!(record.status, Status::Breakdown);
        let reason = record.reason.unwrap();
        assert!(reason.ends_with("no diagonal entry of subdomain 3"), "{reason}");
        let both = ["--schwarz", "exact:interface,exact:natural"];
        said(count, 1, &[&arguments[..], &[out.to_str().unwrap()], &both].concat());
        let both = records(&out);
        assert_eq!(both.len(), 2);
        for record in both {
            assert_eq!(record.status, Status::Breakdown);
            let reason = record.reason.unwrap();
            assert_eq!(reason, "zero pivot: block row 3 has no diagonal entry");
        }
    }
}

#[test]
fn a_limit_of_time_ends_a_solve_on_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("r.jsonl");
    let arguments = ["run", "poisson3d:30", "--backend", "mpi", "--rtol", "0", "--max-iterations"];
    let limits = ["100000000", "--time-limit", "0.5", "-q", "-o", out.to_str().unwrap()];
    let start = Instant::now();
    said(2, 1, &[&arguments[..], &limits].concat());
    assert!(start.elapsed() < Duration::from_secs(60));
    assert_eq!(records(&out)[0].status, Status::TimeLimit);
}

#[test]
fn a_limit_of_time_of_a_case_ends_the_job_which_goes_on_with_the_next_case() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("r.jsonl");
    let endless = ["--rtol", "0", "--max-iterations", "100000000", "--case-limit", "2"];
    let rest = ["--backend", "mpi", "--resume", "-q", "-o", out.to_str().unwrap()];
    let start = Instant::now();
    let arguments = ["run", "poisson3d:30", "poisson3d:1"];
    let text = said(2, 1, &[&arguments[..], &endless, &rest].concat());
    assert!(start.elapsed() < Duration::from_secs(60));
    let expected = "`poisson3d:30`: time limit of a case, 2 s, reached on several ranks";
    assert!(text.contains(expected), "{text}");
    let reason = "time limit of a case, 2 s, reached; all ranks were ended";
    let ended = records(&out);
    assert_eq!(ended.len(), 1);
    assert_eq!(ended[0].status, Status::TimeLimit);
    assert_eq!(ended[0].reason.as_deref(), Some(reason));
    // the next case, which is too small for two ranks, without the one that is late
    said(2, 1, &[&arguments[..], &endless, &rest].concat());
    let statuses: Vec<Status> = records(&out).iter().map(|r| r.status).collect();
    assert_eq!(statuses, [Status::TimeLimit, Status::Unsupported]);
}

/// The process of a rank whose arguments name a file.
fn process_of_rank(rank: usize, file: &Path) -> Option<String> {
    let has = |process: &Path, what: &str, of: &str| {
        let bytes = std::fs::read(process.join(what)).unwrap_or_default();
        bytes.split(|b| *b == 0).any(|word| word == of.as_bytes())
    };
    let all = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let of_rank = format!("OMPI_COMM_WORLD_RANK={rank}");
    let mut found = all.filter(|process| {
        has(process, "cmdline", &file.display().to_string()) && has(process, "environ", &of_rank)
    });
    Some(found.next()?.file_name()?.to_string_lossy().into_owned())
}

#[test]
fn a_rank_that_dies_ends_the_job_and_finished_records_stay() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("r.jsonl");
    let name = out.to_str().unwrap();
    // a thousand solves of the large system take minutes
    let settings = ["--min-repetitions", "1000", "--time-budget", "1e6", "-q", "-o", name];
    let short = ["run", "poisson3d:2", "--backend", "mpi"];
    said(2, 0, &[&short[..], &settings].concat());
    assert_eq!(records(&out).len(), 1);
    let both = ["run", "poisson3d:2", "poisson3d:30", "--backend", "mpi", "--resume"];
    let mut job = command(2, &[&both[..], &settings].concat());
    let job = job.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    signal("KILL", &started(1, &out));
    let Output { status, stderr, .. } = job.wait_with_output().unwrap();
    let said = text(&stderr);
    assert_ne!(status.code(), Some(0));
    // the launcher names the rank, the first rank the case
    assert!(said.contains("rank 1") && said.contains("signal 9"), "{said}");
    assert!(
        said.contains(
            "asked to stop: rank 0 of 2, poisson3d:30, gmres, bilu, block size 1, k = 0, rows"
        ),
        "{said}"
    );
    assert_eq!(records(&out).len(), 1);
    // the rest, with measurements that end
    let rest = ["--max-repetitions", "1", "-q", "-o", name];
    mpi::said(2, 0, &[&both[..], &rest].concat());
    let records = records(&out);
    assert_eq!(records.len(), 2);
    assert!(records.iter().all(|r| r.status == Status::Converged && r.division.ranks == Some(2)));
}

/// Waits for a rank whose arguments name a file, and until it computes; its process.
fn started(rank: usize, file: &Path) -> String {
    let start = Instant::now();
    let process = loop {
        if let Some(process) = process_of_rank(rank, file) {
            break process;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no rank started");
        std::thread::sleep(Duration::from_millis(100));
    };
    std::thread::sleep(Duration::from_secs(3));
    process
}

fn signal(name: &str, process: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), process]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn ctrl_c_keeps_finished_records_and_leaves_no_rank() {
    let folder = tempfile::tempdir().unwrap();
    // to the first rank, and to the launcher, which ends all
    for to_launcher in [false, true] {
        let out = folder.path().join(format!("{to_launcher}.jsonl"));
        let name = out.to_str().unwrap();
        let settings = ["--min-repetitions", "3000", "--time-budget", "1e6", "--rtol", "0", "-q"];
        // the second takes minutes
        let matrices = ["poisson3d:2,poisson3d:100", "--max-iterations", "1", "-o", name];
        let of = ["run", "--backend", "mpi", "--rhs", "random", "--matrix"];
        let mut job = command(2, &[&of[..], &matrices, &settings].concat());
        let mut job = job.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let first = started(0, &out);
        let start = Instant::now();
        while std::fs::read_to_string(&out).map_or(0, |text| text.lines().count()) < 1 {
            assert!(start.elapsed() < Duration::from_secs(60), "no record");
            std::thread::sleep(Duration::from_millis(100));
        }
        let process = if to_launcher { job.id().to_string() } else { first };
        signal("INT", &process);
        let code = job.wait().unwrap().code();
        assert_ne!(code, Some(0));
        if !to_launcher {
            assert_eq!(code, Some(130));
        }
        assert_eq!(records(&out).len(), 1);
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!((process_of_rank(0, &out), process_of_rank(1, &out)), (None, None));
    }
}

/// A command on two ranks, in a folder; before, the second does what `shell` says.
fn on_second(shell: &str, folder: &Path, arguments: &[&str]) -> Output {
    let script =
        format!("if [ \"$OMPI_COMM_WORLD_RANK\" = 1 ]; then {shell}; fi; exec \"$0\" \"$@\"");
    let mut command = launcher(2);
    command.args(["sh", "-c", &script]).arg(program()).args(arguments);
    command.current_dir(folder).output().expect("mpirun")
}

#[test]
fn only_the_first_rank_reads_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.mtx");
    let entries = "1 1 2\n2 2 2\n3 3 2\n4 4 2\n1 4 1\n";
    let head = "%%MatrixMarket matrix coordinate real general\n4 4 5\n";
    std::fs::write(&file, format!("{head}{entries}")).unwrap();
    let out = folder.path().join("r.jsonl");
    let arguments = ["run", "./a.mtx", "--backend", "mpi", "-q", "-o", out.to_str().unwrap()];
    // the other has no such file where it is
    let done = on_second("cd /", folder.path(), &arguments);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert_eq!(records(&out)[0].status, Status::Converged);
}

#[test]
fn too_little_memory_on_one_rank_is_the_record_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("r.jsonl");
    let of = ["run", "poisson3d:80", "--backend", "mpi", "--restart", "506", "-q", "-o"];
    let more = [out.to_str().unwrap(), "--max-repetitions", "1"];
    let done = on_second("ulimit -v 900000", folder.path(), &[&of[..], &more].concat());
    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
    let record = records(&out).remove(0);
    assert_eq!(record.status, Status::OutOfMemory);
    let reason = record.reason.unwrap();
    assert!(reason.contains("needed") && reason.contains("free"), "{reason}");
}

#[test]
fn ranks_with_another_program_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let record = mpi::ran(1, "mpi", folder.path(), &["poisson3d:4"]).remove(0);
    let revision = record.environment.revision;
    // the same program, but for the name of its revision
    let mut bytes = std::fs::read(program()).unwrap();
    let mut other = revision.clone().into_bytes();
    let last = other.iter().rposition(u8::is_ascii_alphanumeric).unwrap();
    other[last] = if other[last] == b'0' { b'1' } else { b'0' };
    let found = memchr::memmem::find_iter(&bytes, revision.as_bytes()).collect::<Vec<_>>();
    assert!(!found.is_empty(), "no `{revision}` in the program");
    for at in found {
        bytes[at..at + other.len()].copy_from_slice(&other);
    }
    let patched = folder.path().join("bilu-bench");
    std::fs::write(&patched, bytes).unwrap();
    std::fs::set_permissions(&patched, PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = launcher(1);
    let case = ["run", "poisson3d:4", "--backend", "mpi"];
    command.arg(program()).args(case).args([":", "-n", "1"]).arg(&patched).args(case);
    let done = command.output().expect("mpirun");
    let said = text(&done.stderr);
    assert_ne!(done.status.code(), Some(0));
    let other = String::from_utf8(other).unwrap();
    assert!(said.contains(&format!("rank 1 runs {other}, rank 0 runs {revision}")), "{said}");
    assert!(said.contains("start the same program on all hosts"), "{said}");
}
