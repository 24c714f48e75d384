//! The obstacle problem over MPI against threads of one process: `cargo test --features mpi`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bilu_bench::base::status::Status;
use bilu_bench::record::obstacle::Record;
use bilu_bench::record::read::read_rows;

use crate::common::mpi::{launcher, text};

const BILU: &str = env!("CARGO_BIN_EXE_bilu-bench");

/// Runs `bilu-bench obstacle` on as many ranks.
fn ranks(count: usize, arguments: &[&str]) -> Output {
    let mut command = launcher(count);
    command.arg(BILU).arg("obstacle").args(arguments);
    command.output().expect("mpirun is there")
}

fn records(path: &Path) -> Vec<Record> {
    read_rows(path).unwrap().records
}

/// The records of a run that succeeds.
fn ran(count: usize, folder: &Path, arguments: &[&str]) -> Vec<Record> {
    let file: PathBuf = folder.join(format!("{count}.csv"));
    let name = file.display().to_string();
    let mut all = vec!["--backend", "mpi", "-q", "-o", &name, "--force"];
    all.extend(arguments);
    let output = ranks(count, &all);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    records(&file)
}

fn alone(arguments: &[&str]) -> Vec<Record> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.csv");
    let mut command = Command::new(BILU);
    command.args(["obstacle", "-q", "-o"]).arg(&file).args(arguments).env("NO_COLOR", "1");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    records(&file)
}

#[test]
fn four_and_six_ranks_are_one_core_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--m", "19", "--method", "jacobi,red-black", "--obstacle", "zero,hill:0.002"];
    let one = alone(&arguments);
    assert_eq!(one.len(), 4);
    for count in [4, 6] {
        let many = ran(count, folder.path(), &arguments);
        assert_eq!(many.len(), one.len());
        for (many, one) in many.iter().zip(&one) {
            let (a, b) = (&many.iteration, &one.iteration);
            assert_eq!((a.nodes, &a.fingerprint, &a.sweeps), (count, &b.fingerprint, &b.sweeps));
            assert_eq!(a.contact_points, b.contact_points);
            assert_eq!(a.relaxations, b.relaxations * count as u64);
            assert_eq!(a.complementarity, b.complementarity);
            assert_eq!((a.transport_used.as_deref(), &b.transport_used), (Some("messages"), &None));
        }
    }
}

#[test]
fn ranks_that_do_not_wait_reach_the_same_solution() {
    let folder = tempfile::tempdir().unwrap();
    for method in ["jacobi", "red-black-y", "red-black"] {
        for count in [4, 6] {
            let arguments =
                ["--m", "17", "--mode", "async", "--epsilon", "1e-10", "--method", method];
            let record = &ran(count, folder.path(), &arguments)[0];
            assert_eq!(record.status, Status::Converged);
            // in units of a right-hand side of about 1
            let residual = record.iteration.complementarity.unwrap();
            assert!(residual < 1e-5, "{method}: {residual}");
            assert!(record.iteration.step_norm.unwrap() < 1e-10);
        }
    }
}

#[test]
fn the_limit_of_relaxations_and_small_grids_are_rows() {
    let folder = tempfile::tempdir().unwrap();
    for mode in ["sync", "async"] {
        let arguments = [
            "--m",
            "9",
            "--mode",
            mode,
            "--epsilon",
            "0",
            "--steps",
            "2",
            "--max-relaxations",
            "5",
        ];
        let record = &ran(4, folder.path(), &arguments)[0];
        assert_eq!(record.status, Status::Complete);
        assert_eq!(
            (record.iteration.sweeps.as_slice(), record.iteration.relaxations),
            (&[5.0][..], 20)
        );
    }
    let output = ranks(6, &["--backend", "mpi", "--m", "2", "-q", "--format", "csv"]);
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(
        stdout.contains("unsupported,m 2 is too small to be split 2x3 over 6 ranks,"),
        "{stdout}"
    );
    let output =
        ranks(4, &["--backend", "mpi", "--m", "9", "--split", "1x3", "-q", "--format", "csv"]);
    let stdout = text(&output.stdout);
    assert!(stdout.contains("unsupported,\"split 1x3 is for 3, there are 4 ranks\","), "{stdout}");
}

#[test]
fn an_error_ends_all_ranks_with_one_message() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("no/a.csv").display().to_string();
    let output = ranks(4, &["--backend", "mpi", "--m", "9", "-o", &absent]);
    assert_ne!(output.status.code(), Some(0));
    let stderr = text(&output.stderr);
    assert_eq!(stderr.matches("error: cannot write").count(), 1, "{stderr}");
    let output = ranks(4, &["--backend", "mpi,cpu", "--m", "9"]);
    assert_ne!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("error: backend `cpu` beside `mpi` in one run"));
}

/// Whether there is a GPU. Where one has to be there, that it is not fails the test.
#[cfg(feature = "cuda")]
fn has_gpu() -> bool {
    let here = bilu_bench::compute::cuda::Device::shared();
    if let Err(e) = &here {
        assert!(std::env::var_os("BILU_BENCH_REQUIRE_GPU").is_none(), "{e}");
        eprintln!("skipped: {e}");
    }
    here.is_ok()
}

/// More ranks than GPUs share them. Where processes may not share memory of a GPU, the program says so.
#[cfg(feature = "cuda")]
#[test]
fn ranks_with_a_gpu_each_are_one_core_bit_for_bit() {
    if !has_gpu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--m", "19,66", "--obstacle", "zero,hill:0.002", "--check-every", "1,7"];
    let one = alone(&arguments);
    let gpus = |count: usize, more: &[&str]| {
        let file: PathBuf = folder.path().join(format!("{count}{}.csv", more.join("")));
        let name = file.display().to_string();
        let mut all = vec!["--backend", "mpi-cuda", "-q", "-o", &name];
        all.extend(arguments.iter().chain(more));
        let output = ranks(count, &all);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        (records(&file), text(&output.stderr))
    };
    for count in [1, 2, 4] {
        for transport in ["auto", "messages"] {
            let way = ["--transport", transport];
            let (many, said) = gpus(count, &way);
            let refused = said.matches("note: halos go as messages between ranks: ").count();
            assert!(refused <= 1 && (transport == "auto" || refused == 0), "{said}");
            let used = match (count, transport, refused) {
                (1, ..) => None,
                (_, "auto", 0) => Some("direct"),
                _ => Some("messages"),
            };
            for (many, one) in many.iter().zip(&one) {
                let (a, b) = (&many.iteration, &one.iteration);
                assert_eq!(
                    (a.nodes, &a.fingerprint, &a.sweeps),
                    (count, &b.fingerprint, &b.sweeps),
                    "{:?}",
                    many.case
                );
                assert_eq!(a.contact_points, b.contact_points);
                assert_eq!(a.split_used.unwrap().to_string(), format!("1x{count}"));
                assert_eq!(a.transport_used.as_deref(), used);
            }
            let free = ["--transport", transport, "--mode", "async", "--epsilon", "1e-9"];
            for record in gpus(count, &free).0 {
                assert_eq!(record.status, Status::Converged);
                assert!(record.iteration.complementarity.unwrap() < 1e-4);
                assert_eq!(record.iteration.transport_used.as_deref(), used);
            }
        }
    }
}

/// Ranks that stop at the limit leave as many sweeps, and a step in which all write each other's memory.
#[cfg(feature = "cuda")]
#[test]
fn the_limit_of_relaxations_ends_ranks_with_a_gpu_each() {
    if !has_gpu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (mode, most) in [("sync", 7.0), ("async", 8.0)] {
        let name = folder.path().join(format!("{mode}.csv")).display().to_string();
        let arguments = ["--backend", "mpi-cuda", "-q", "-o", &name, "--m", "33", "--mode", mode];
        let limits = ["--epsilon", "0", "--steps", "1", "--max-relaxations", "7"];
        let output = ranks(4, &[&arguments[..], &limits].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let record = &records(Path::new(&name))[0];
        assert_eq!(record.status, Status::Complete);
        let sweeps = record.iteration.sweeps_per_node;
        assert!((7.0..=most).contains(&sweeps), "{sweeps} {mode}");
    }
}

#[test]
fn ranks_without_a_gpu_say_so() {
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2", BILU]);
    command.args(["obstacle", "--backend", "mpi-cuda", "--m", "9", "-q", "--format", "csv"]);
    let output = command.env("NO_COLOR", "1").env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    // no driver, or one that is not let near a GPU
    let why = if cfg!(feature = "cuda") { "no CUDA" } else { "this program was built without" };
    let row = stdout.lines().last().unwrap_or_default();
    assert!(row.contains(",unsupported,") && row.contains(why), "{stdout}");
}

#[test]
fn a_rank_that_dies_ends_the_job_and_leaves_what_was_done() {
    dies("mpi");
}

#[cfg(feature = "cuda")]
#[test]
fn a_rank_that_dies_ends_those_whose_gpus_wait_for_its() {
    if has_gpu() {
        dies("mpi-cuda");
    }
}

/// A rank that is killed ends the job, `mpirun` says so, and the records so far are whole.
fn dies(backend: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.csv");
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "4"]);
    // the last rank kills itself while the second case goes on and on
    let script = format!(
        "if [ $OMPI_COMM_WORLD_RANK = 3 ]; then \
           {BILU} \"$@\" & own=$!; until [ $(wc -l <{file}) -ge 2 ]; do sleep 0.1; done; \
           kill -9 $own; wait $own; exit 137; \
         else exec {BILU} \"$@\"; fi",
        file = file.display()
    );
    std::fs::write(&file, "").unwrap();
    let name = file.display().to_string();
    let arguments = [
        "obstacle",
        "--backend",
        backend,
        "-q",
        "--steps",
        "1",
        "--m",
        "9",
        "--epsilon",
        "0",
        "--max-relaxations",
        "1000,1000000000",
        "-o",
        &name,
    ];
    command.args(["bash", "-c", &script, "rank"]).args(arguments);
    command.env("NO_COLOR", "1").env("OMPI_MCA_mpi_yield_when_idle", "1");
    let output = command.output().unwrap();
    assert_ne!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("mpirun"), "{}", text(&output.stderr));
    let rows = records(&file);
    assert_eq!((rows.len(), rows[0].case.max_relaxations), (1, 1000));
    assert_eq!(rows[0].status, Status::Complete);
}
