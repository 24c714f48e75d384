//! Linear solves over ranks with a GPU each, which they share where there are fewer:
//! `cargo test --features mpi --test run_mpi_cuda`.
#![cfg(all(feature = "mpi", feature = "cuda"))]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use bilu_bench::base::status::Status;
use bilu_bench::compute;
use bilu_bench::record::Record;
use bilu_bench::record::read::read;

/// Where the program is, if not where it was built.
const PROGRAM: &str = "BILU_BENCH_PROGRAM";

/// `bilu-bench` on as many ranks.
fn command(count: usize, arguments: &[&str]) -> Command {
    let program = std::env::var_os(PROGRAM);
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n"]);
    command.arg(count.to_string());
    command.arg(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_bilu-bench").into()));
    command.args(arguments);
    // ranks that share a core give it to each other
    command.env("NO_COLOR", "1").env("OMPI_MCA_mpi_yield_when_idle", "1");
    command
}

fn said(count: usize, code: i32, arguments: &[&str]) -> String {
    let Output { status, stderr, stdout } = command(count, arguments).output().expect("mpirun");
    let text = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert_eq!(status.code(), Some(code), "{arguments:?} on {count}: {text}");
    text
}

/// Whether there is a GPU. Where one has to be there, that it is not fails the test.
fn has_gpu() -> bool {
    let Err(e) = compute::available("mpi-cuda") else { return true };
    assert!(std::env::var_os("BILU_BENCH_REQUIRE_GPU").is_none(), "{e}");
    eprintln!("skipped: {e}");
    false
}

/// The records of short measurements.
fn ran(count: usize, backend: &str, folder: &Path, arguments: &[&str]) -> Vec<Record> {
    let file = folder.join("records.jsonl");
    let name = file.display().to_string();
    let mut all = vec!["run", "--backend", backend, "-q", "-o", &name, "--force"];
    all.extend(["--history", "100", "--max-repetitions", "1"]);
    all.extend(arguments);
    said(count, 0, &all);
    read(&file).unwrap().records
}

/// Iterations and monitored residuals on GPUs are those on cores.
fn same(gpus: &[Record], cores: &[Record], count: usize) {
    assert_eq!(gpus.len(), cores.len());
    for (gpu, core) in gpus.iter().zip(cores) {
        let of = format!("{count} ranks, {:?}", gpu.case);
        assert_eq!((gpu.status, core.status), (Status::Converged, Status::Converged), "{of}");
        let (a, b) = (&gpu.convergence, &core.convergence);
        // sums round differently, which the last iteration may feel
        assert!(
            a.iterations.abs_diff(b.iterations) <= 1,
            "{} {}: {of}",
            a.iterations,
            b.iterations
        );
        let first = b.residual_history[0];
        for (i, (a, b)) in a.residual_history.iter().zip(&b.residual_history).enumerate() {
            // rounding grows with the iterations of a Krylov method
            let bound = if i < 8 { 1e-11 } else { 1e-7 };
            assert!((a - b).abs() <= bound * first, "{i}: {a:e} {b:e} of {first:e}: {of}");
        }
        let division = &gpu.division;
        assert_eq!(division.ranks, Some(count));
        assert_eq!(division.transport_used.as_deref(), (count > 1).then_some("pinned memory"));
        let device = &gpu.environment.device;
        assert!(device.contains(" each, sm_") || device.contains(" shared by "), "{device}");
        assert_eq!(core.division.transport_used, None);
    }
}

/// Systems of all shapes, odd sizes among them, with what they are run with.
const SYSTEMS: &[&[&str]] = &[
    &["poisson3d:13x11x9", "--solver", "gmres,bicgstab", "--fill", "0,2"],
    &["blockpoisson3d:7x6x9,b=2", "--block-size", "2", "--solver", "gmres,bicgstab"],
    &["blockpoisson3d:5x6x7,b=3", "--block-size", "3", "--solver", "gmres", "--fill", "1"],
    &["blockpoisson3d:5x4x7,b=5", "--block-size", "5", "--solver", "gmres", "--fill", "1"],
    &["reservoir:12x10x7,k=2,wells=6", "--block-size", "2", "--solver", "gmres"],
];

fn compared(schwarz: &str) {
    if !has_gpu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for system in SYSTEMS {
        for count in [1, 2, 3, 4] {
            let more = ["--schwarz", schwarz, "--rhs", "random", "--subdomains", "12"];
            let arguments = [*system, &more].concat();
            let [gpus, cores] =
                ["mpi-cuda", "mpi"].map(|name| ran(count, name, folder.path(), &arguments));
            same(&gpus, &cores, count);
        }
    }
}

#[test]
fn block_jacobi_on_gpus_is_that_on_cores() {
    compared("jacobi");
}

#[test]
fn overlap_on_gpus_is_that_on_cores() {
    compared("ras:1,ras:2");
}

#[test]
fn exact_factors_on_gpus_are_those_on_cores() {
    compared("exact");
}

#[test]
fn float32_factors_and_other_preconditioners_run_on_gpus() {
    if !has_gpu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let common = ["poisson3d:11", "--subdomains", "4"];
    for more in [
        &["--schwarz", "jacobi,ras:1,exact", "--factor-precision", "float32"][..],
        &["--precond", "jacobi,chebyshev,none,ic", "--solver", "gmres,cg"],
    ] {
        let arguments = [&common, more].concat();
        let [gpus, cores] = ["mpi-cuda", "mpi"].map(|name| ran(2, name, folder.path(), &arguments));
        for (gpu, core) in gpus.iter().zip(&cores) {
            let (a, b) = (&gpu.convergence, &core.convergence);
            assert_eq!((gpu.status, a.iterations), (core.status, b.iterations), "{:?}", gpu.case);
        }
    }
}

#[test]
fn the_number_of_ranks_changes_no_bit_on_gpus() {
    if !has_gpu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let x = folder.path().join("x-{solver}-{partition}-{schwarz}.mtx").display().to_string();
    let system =
        ["blockpoisson3d:7x6x9,b=2", "--block-size", "2", "--fill", "1", "--rhs", "random"];
    let ways = ["--partition", "rows,boxes", "--schwarz", "jacobi,ras:1,exact"];
    let solves = ["--solver", "gmres,bicgstab", "--subdomains", "4", "--solution", &x];
    let arguments = [&system[..], &ways, &solves].concat();
    let mut known = None;
    for count in [1, 2, 4] {
        let records = ran(count, "mpi-cuda", folder.path(), &arguments);
        let files: BTreeSet<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        let solutions = files.iter().filter(|path| path.extension().is_some_and(|e| e == "mtx"));
        let solutions: Vec<Vec<u8>> = solutions.map(|path| std::fs::read(path).unwrap()).collect();
        let found: Vec<_> = records.into_iter().map(|r| (r.status, r.convergence)).collect();
        assert_eq!((found.len(), solutions.len()), (12, 12));
        assert!(found.iter().all(|(status, _)| *status == Status::Converged));
        let all = (found, solutions);
        match &known {
            Some(known) => assert!(*known == all, "{count} ranks"),
            None => known = Some(all),
        }
    }
}

#[test]
fn a_breakdown_on_one_gpu_is_the_record_of_all() {
    if !has_gpu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.mtx");
    // the last of four rows has no diagonal and no other row of its subdomain
    let entries = "1 1 2\n2 2 2\n3 3 2\n4 1 1\n1 4 1\n";
    let head = "%%MatrixMarket matrix coordinate real general\n4 4 5\n";
    std::fs::write(&file, format!("{head}{entries}")).unwrap();
    let (name, out) = (file.display().to_string(), folder.path().join("r.jsonl"));
    let ways = [
        ("jacobi", "no diagonal entry of subdomain 3"),
        ("exact", "block row 3 has no diagonal entry"),
    ];
    for (count, (way, reason)) in [1, 2, 4].into_iter().flat_map(|c| ways.map(|way| (c, way))) {
        let arguments = ["run", &name, "--backend", "mpi-cuda", "--subdomains", "4", "-q"];
        let more = ["--force", "--schwarz", way, "-o", out.to_str().unwrap()];
        said(count, 1, &[&arguments[..], &more].concat());
        let record = read(&out).unwrap().records.remove(0);
        assert_eq!(record.status, Status::Breakdown, "{:?}", record.reason);
        assert!(record.reason.as_deref().unwrap().ends_with(reason), "{:?}", record.reason);
    }
}

#[test]
fn ranks_without_a_gpu_say_so() {
    let hidden = |count: usize| {
        let mut command = command(count, &["run", "poisson3d:4", "--backend", "mpi-cuda"]);
        let Output { status, stdout, stderr } =
            command.env("CUDA_VISIBLE_DEVICES", "").output().expect("mpirun");
        assert_ne!(status.code(), Some(0));
        [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat()
    };
    for count in [1, 2] {
        let text = hidden(count);
        // no driver, or one that shows no GPU
        assert!(text.contains("CUDA"), "{text}");
    }
}
