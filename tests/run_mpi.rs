//! Linear solves over ranks: `cargo test --features mpi --test run_mpi`.
#![cfg(feature = "mpi")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use bilu_bench::base::status::Status;
use bilu_bench::record::Record;
use bilu_bench::record::read::read;

const BILU: &str = env!("CARGO_BIN_EXE_bilu-bench");

/// `bilu-bench` on as many ranks.
fn command(count: usize, arguments: &[&str]) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n"]);
    command.arg(count.to_string()).arg(BILU).args(arguments);
    // ranks that share a core give it to each other
    command.env("NO_COLOR", "1").env("OMPI_MCA_mpi_yield_when_idle", "1");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a run on ranks that ends with `code` says.
fn said(count: usize, code: i32, arguments: &[&str]) -> String {
    let Output { status, stderr, stdout } = command(count, arguments).output().expect("mpirun");
    assert_eq!(status.code(), Some(code), "{}{}", text(&stdout), text(&stderr));
    text(&stdout) + &text(&stderr)
}

fn records(path: &Path) -> Vec<Record> {
    read(path).unwrap().records
}

/// The records of a sweep of short measurements over ranks.
fn ran(count: usize, folder: &Path, arguments: &[&str]) -> Vec<Record> {
    let file = folder.join("records.jsonl");
    let name = file.display().to_string();
    let mut all = vec!["run", "--backend", "mpi", "-q", "-o", &name, "--force"];
    all.extend(["--history", "100", "--max-repetitions", "1"]);
    all.extend(arguments);
    said(count, 0, &all);
    records(&file)
}

#[test]
fn the_number_of_ranks_changes_no_bit() {
    let folder = tempfile::tempdir().unwrap();
    let x = folder.path().join("x-{solver}-{partition}-{schwarz}.mtx");
    let x = x.display().to_string();
    let arguments = [
        "blockpoisson3d:7x6x8,b=2",
        "--block-size",
        "2",
        "--fill",
        "1",
        "--subdomains",
        "6",
        "--partition",
        "rows,boxes,graph",
        "--schwarz",
        "jacobi,ras:1,exact",
        "--rhs",
        "random",
        "--solver",
        "gmres,bicgstab",
        "--max-iterations",
        "100",
        "--solution",
        &x,
    ];
    let mut known: Option<Vec<_>> = None;
    for count in [1, 2, 3, 4, 6] {
        let records = ran(count, folder.path(), &arguments);
        let found: Vec<_> = records
            .iter()
            .map(|r| {
                assert_eq!(r.status, Status::Converged, "{:?}", r.reason);
                assert_eq!((r.division.ranks, r.division.subdomains_used), (Some(count), Some(6)));
                assert!(r.division.reductions_per_iteration.unwrap() > 1.0);
                let halo = r.division.halo_bytes.unwrap();
                assert_eq!(halo > 0, count > 1);
                (r.convergence.clone(), r.factor.clone())
            })
            .collect();
        assert_eq!(found.len(), 18);
        let solutions: Vec<Vec<u8>> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "mtx"))
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .map(|path| std::fs::read(path).unwrap())
            .collect();
        assert_eq!(solutions.len(), 18);
        let found: Vec<_> = found.into_iter().zip(solutions).collect();
        match &known {
            Some(known) => assert!(*known == found, "{count} ranks"),
            None => known = Some(found),
        }
    }
}

#[test]
fn one_subdomain_is_one_cpu_thread() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["poisson3d:12", "--backend", "cpu,mpi", "--precond", "bilu,jacobi,chebyshev"];
    let solvers = ["--solver", "gmres,bicgstab,cg,idr,qmr,correction"];
    let file = folder.path().join("a.jsonl");
    let mut all = vec!["run", "-q", "-o", file.to_str().unwrap(), "--max-repetitions", "1"];
    all.extend([&arguments[..], &solvers].concat());
    said(1, 1, &all);
    let records = records(&file);
    let on =
        |backend: &'static str| records.iter().filter(move |r| r.case.backend == backend).cloned();
    let mut compared = 0;
    for (one, ranks) in on("cpu").zip(on("mpi")) {
        assert_eq!(one.case.solver, ranks.case.solver);
        if ranks.status == Status::Unsupported {
            let why = ranks.reason.as_deref().unwrap_or_default();
            assert!(why.ends_with("over ranks") || ranks.reason == one.reason, "{why}");
            continue;
        }
        assert_eq!((one.status, one.convergence), (ranks.status, ranks.convergence));
        compared += 1;
    }
    assert!(compared >= 8, "{compared}");
}

#[test]
fn exact_factors_are_those_of_one_thread_in_the_order_of_subdomains() {
    let folder = tempfile::tempdir().unwrap();
    let settings = ["convdiff3d:9x8x7,px=0.3", "--fill", "0..2", "--rtol", "1e-9"];
    for how in ["rows", "boxes", "graph"] {
        let division = ["--partition", how, "--subdomains", "6", "--schwarz", "exact"];
        let ranks = ran(2, folder.path(), &[&settings[..], &division].concat());
        let file = folder.path().join(format!("{how}.jsonl"));
        let ordering = format!("subdomains:6,partition={how}");
        let one = ["run", "--backend", "cpu", "--ordering", &ordering, "-q", "--history", "100"];
        let out = ["-o", file.to_str().unwrap(), "--max-repetitions", "1"];
        said(1, 0, &[&one[..], &settings, &out].concat());
        let one = records(&file);
        assert_eq!((one.len(), ranks.len()), (3, 3));
        for (one, ranks) in one.iter().zip(&ranks) {
            assert_eq!(one.factor.factor_blocks, ranks.factor.factor_blocks, "{how}");
            let of = |r: &Record| r.convergence.residual_history.clone();
            let (one, ranks) = (of(one), of(ranks));
            // bits of sums differ: ranks add up subdomain by subdomain
            assert_eq!(one.len(), ranks.len(), "{how}");
            let near = |(x, y): (&f64, &f64)| (x - y).abs() <= 1e-6 * x.abs();
            assert!(one.len() > 5 && one.iter().zip(&ranks).all(near), "{how}: {one:?} {ranks:?}");
        }
    }
}

/// The folder of real matrices, or nothing and a word about it.
fn real_matrices() -> Option<PathBuf> {
    let listed = std::env::var_os("BILU_BENCH_MATRICES").unwrap_or_default();
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/matrices");
    let mut all = std::env::split_paths(&listed).chain([PathBuf::from(beside)]);
    let found = all.find(|folder| folder.join("spe9cp_b3.mtx.gz").is_file());
    if found.is_none() {
        println!("skipped: no spe9cp_b3.mtx.gz in BILU_BENCH_MATRICES or at {beside}");
    }
    found
}

#[test]
fn a_reservoir_keeps_its_iterations_where_its_graph_is_divided() {
    let Some(matrices) = real_matrices() else { return };
    let folder = tempfile::tempdir().unwrap();
    let matrix = matrices.join("spe9cp_b3.mtx.gz").display().to_string();
    let settings = [&matrix, "--block-size", "3", "--rhs", "own", "--fill", "1", "--subdomains"];
    let iterations = |how: &str, count: &str, schwarz: &str| {
        let division = [count, "--partition", how, "--schwarz", schwarz];
        let record = ran(1, folder.path(), &[&settings[..], &division].concat()).remove(0);
        assert_eq!(record.status, Status::Converged, "{how} {schwarz}: {:?}", record.reason);
        record.convergence.iterations
    };
    let one = iterations("rows", "1", "exact");
    assert_eq!(one, 19);
    let [graph, rows] = ["graph", "rows"].map(|how| iterations(how, "8", "jacobi"));
    assert!(4 * graph <= 3 * rows, "block Jacobi: {graph} by the graph, {rows} by rows");
    let exact = iterations("graph", "8", "exact");
    assert!(2 * exact <= 3 * one, "exact: {exact} beside {one}");
}

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
    let text = run(2, &["poisson3d:4", "--solver", "qmr"]);
    assert!(text.contains("`qmr` needs a transposed matrix"), "{text}");
    let text = run(2, &["poisson3d:4", "--schwarz", "exact", "--precond", "jacobi"]);
    assert!(text.contains("`jacobi` is not exact: it does not run over ranks"), "{text}");
    let text = run(2, &["poisson3d:4", "--schwarz", "exact", "--level-rule", "overwrite"]);
    assert!(text.contains("`exact:interface` has the level rule `min` alone"), "{text}");
}

#[test]
fn the_first_rank_reports_errors_once_and_ends_the_others() {
    let text = said(2, 2, &["run", "no-such.mtx", "--backend", "mpi"]);
    assert_eq!(text.matches("cannot read `no-such.mtx`").count(), 1, "{text}");
    let text = said(2, 2, &["run", "poisson3d:4", "--backend", "cpu"]);
    assert_eq!(text.matches("2 ranks, and no case that uses them").count(), 1, "{text}");
    let text = said(2, 2, &["run", "poisson3d:4", "--backend", "mpi", "--isolate"]);
    assert!(text.contains("--isolate on 2 ranks"), "{text}");
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
        let exact = [&arguments[..], &[out.to_str().unwrap(), "--schwarz", "exact"]].concat();
        said(count, 1, &exact);
        let record = records(&out).remove(0);
        let reason = record.reason.unwrap();
        assert_eq!(record.status, Status::Breakdown);
        assert_eq!(reason, "zero pivot: block row 3 has no diagonal entry");
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
    let mut job = command(2, &[&both[..], &settings].concat())
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let process = loop {
        if let Some(process) = process_of_rank(1, &out) {
            break process;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no rank started");
        std::thread::sleep(Duration::from_millis(100));
    };
    std::thread::sleep(Duration::from_secs(3));
    let killed = format!("kill -KILL {process}");
    assert!(Command::new("sh").args(["-c", &killed]).status().unwrap().success());
    assert_ne!(job.wait().unwrap().code(), Some(0));
    assert_eq!(records(&out).len(), 1);
}
