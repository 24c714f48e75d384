//! The peers that come with the program, where their libraries are installed: as many iterations as ours with the same
//! method.

use std::path::Path;
use std::process::Command;

use bilu_bench::base::status::Status;
use bilu_bench::record::Record;
use bilu_bench::record::read::read;

use super::Peers;
use super::common::program::{ran, text};

/// The peers that come with the program, with Python as this `python`.
fn with_the_program(python: &str) -> Peers {
    let peers = Peers { folder: tempfile::tempdir().unwrap() };
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/peers");
    for entry in std::fs::read_dir(&own).unwrap().flatten().filter(|e| e.path().is_file()) {
        let contents = std::fs::read(entry.path()).unwrap();
        let name = entry.file_name().into_string().unwrap();
        let described = entry.path().extension().is_some_and(|e| e == "toml");
        let contents = if described {
            text(&contents).replace("\"python3\"", &format!("{python:?}")).into_bytes()
        } else {
            contents
        };
        std::fs::write(peers.path(&name), contents).unwrap();
    }
    if own.join("build").is_dir() {
        std::os::unix::fs::symlink(own.join("build"), peers.path("build")).unwrap();
    }
    peers
}

/// A peer that comes with the program, where it runs here; says that a test is skipped where not.
fn found(name: &str) -> Option<Peers> {
    // PETSc's binding is that of the system's Python
    let first = std::env::var("BILU_BENCH_PYTHON").unwrap_or_else(|_| "python3".into());
    for python in [first.as_str(), "python3", "/usr/bin/python3"] {
        let peers = with_the_program(python);
        let description = std::fs::read_to_string(peers.path(&format!("{name}.toml"))).unwrap();
        let command = description.parse::<toml::Table>().unwrap()["command"].clone();
        let words: Vec<String> = command.try_into().unwrap();
        let program =
            if words[0].contains('/') { peers.path(&words[0]) } else { (&words[0]).into() };
        let mut probe = Command::new(program);
        probe.args(&words[1..]).arg("--version").current_dir(peers.folder.path());
        if probe.output().is_ok_and(|output| output.status.success()) {
            return Some(peers);
        }
    }
    eprintln!("skipped: {name} is not installed");
    None
}

/// Asserts that cases of a peer and of one CPU thread, otherwise the same, need iterations that differ by one at
/// most, and have factors with as many entries.
fn same_counts(peer: &str, settings: &[&str]) {
    let Some(peers) = found(peer) else { return };
    let backends = format!("external:{peer},cpu");
    let base = ["run", "--backend", &backends, "--max-repetitions", "1", "-q", "-o", "r.jsonl"];
    ran(&mut peers.program(&[&base[..], settings].concat()), 0);
    let records = read(&peers.path("r.jsonl")).unwrap().records;
    let (of_peer, own): (Vec<&Record>, Vec<&Record>) =
        records.iter().partition(|r| r.case.backend.starts_with("external:"));
    assert!(!of_peer.is_empty() && of_peer.len() == own.len());
    for (theirs, ours) in of_peer.into_iter().zip(own) {
        let what =
            format!("{}, {}, k = {}", theirs.case.matrix, theirs.case.precond, theirs.case.fill);
        let counts = [theirs, ours].map(|r: &Record| r.convergence.iterations);
        assert!(counts[1] > 5 && counts[0].abs_diff(counts[1]) <= 1, "{peer}: {what}: {counts:?}");
        let entries = [theirs, ours].map(|r| r.factor.factor_entries);
        // of Cholesky factors a library may keep one triangle
        let one = theirs.case.precond == "ic";
        assert!(
            one || entries[0].is_none() || entries[0] == entries[1],
            "{peer}: {what}: {entries:?}"
        );
        assert!(theirs.times.solve_s > Some(0.0) && theirs.times.setup_s.is_some());
    }
}

/// Systems for the same ILU(k) everywhere.
const ILU: [&str; 5] = ["--matrix", "poisson3d:16,convdiff3d:12", "--fill", "0..2", "--rhs=ones"];

#[test]
fn petsc_needs_as_many_iterations() {
    same_counts("petsc", &[&ILU[..], &["--block-size", "1,4"]].concat());
    same_counts("petsc", &["--matrix=convdiff3d:12", "--side=left", "--orthogonalisation=mgs"]);
    let symmetric = ["--matrix=poisson3d:16", "--solver=cg", "--precond=none,jacobi,ic"];
    same_counts("petsc", &[&symmetric[..], &["--fill=0..2"]].concat());
}

/// Asserts that a peer on two ranks needs as many iterations as ours with ILU(0) of two subdomains.
fn runs_on_ranks(name: &str) {
    let Some(peers) = found(name) else { return };
    if Command::new("mpirun").arg("--version").output().is_err() {
        eprintln!("skipped: there is no mpirun");
        return;
    }
    let text = std::fs::read_to_string(peers.path(&format!("{name}.toml"))).unwrap();
    let mpirun = "command = ['mpirun', '-n', '2', '--oversubscribe', '--allow-run-as-root', ";
    std::fs::write(peers.path("ranks.toml"), text.replace("command = [", mpirun)).unwrap();
    let run = ["run", "poisson3d:12", "--backend", "external:ranks,mpi", "--subdomains", "2"];
    let more = ["--max-repetitions", "2", "-q", "-o", "r.jsonl"];
    ran(&mut peers.program(&[&run[..], &more].concat()), 0);
    let records = read(&peers.path("r.jsonl")).unwrap().records;
    assert_eq!(records[0].division.ranks, Some(2));
    let counts: Vec<usize> = records.iter().map(|r| r.convergence.iterations).collect();
    assert!(counts[0].abs_diff(counts[1]) <= 1 && counts[0] > 5, "{name}: {counts:?}");
}

#[test]
fn petsc_runs_on_ranks() {
    runs_on_ranks("petsc");
}

#[test]
fn hypre_runs_on_ranks() {
    runs_on_ranks("hypre");
}

#[test]
fn hypre_needs_as_many_iterations() {
    same_counts("hypre", &ILU);
}

#[test]
fn dune_needs_as_many_iterations() {
    same_counts("dune", &[&ILU[..], &["--block-size", "1,2"]].concat());
}

#[test]
fn amgcl_needs_as_many_iterations() {
    same_counts("amgcl", &ILU);
}

#[test]
fn trilinos_needs_as_many_iterations() {
    same_counts("trilinos", &ILU);
    let symmetric = ["--matrix=poisson3d:16", "--solver=cg", "--precond=none,bilu", "--fill=0..1"];
    same_counts("trilinos", &symmetric);
}

#[test]
fn rocalution_needs_as_many_iterations() {
    same_counts("rocalution", &ILU);
    let symmetric = ["--matrix=poisson3d:16", "--solver=cg,bicgstab", "--precond=jacobi,bilu"];
    same_counts("rocalution", &symmetric);
}

#[test]
fn ginkgo_needs_as_many_iterations() {
    let system = ["--matrix=poisson3d:16,convdiff3d:12", "--fill=0"];
    same_counts("ginkgo", &[&system[..], &["--solver=gmres,bicgstab"]].concat());
    let symmetric = ["--matrix=poisson3d:16", "--solver=cg", "--precond=none,bilu,isai"];
    same_counts("ginkgo", &symmetric);
}

/// Peers on a GPU, with a solver, a preconditioner and a block size that each has.
const ON_A_GPU: [(&str, &str, &str, &str); 4] = [
    ("amgcl-cuda", "gmres", "bilu", "1"),
    ("amgx", "gmres", "external:dilu", "4"),
    ("cudss", "external:cudss", "none", "1"),
    ("ginkgo-cuda", "gmres", "bilu", "1"),
];

#[test]
fn peers_on_a_gpu_are_listed() {
    let peers = with_the_program("python3");
    let listed = text(&ran(&mut peers.program(&["list", "peers"]), 0).stdout);
    let line = |name: &str| {
        let start = format!("external:{name} ");
        listed.lines().find(|line| line.trim_start().starts_with(&start)).expect(name).to_owned()
    };
    for (name, solver, precond, _) in ON_A_GPU {
        let line = line(name);
        assert!(line.contains(solver) && line.contains(precond), "{line}");
    }
    assert!(line("amgx").contains("external:ilu0 (block-size 4), "), "{}", line("amgx"));
    assert!(line("amgcl-cuda").contains("bilu (fill 0), "), "{}", line("amgcl-cuda"));
}

#[test]
fn peers_on_a_gpu_say_why_they_do_not_run() {
    let peers = with_the_program("python3");
    for (name, solver, precond, block_size) in ON_A_GPU {
        let backend = format!("external:{name}");
        let case = ["--backend", &backend, "--solver", solver, "--precond", precond];
        let more = ["--block-size", block_size, "--max-repetitions", "1", "-q", "-o", "r.jsonl"];
        let mut program = peers.program(&[&["run", "poisson3d:4"], &case[..], &more].concat());
        let _ = std::fs::remove_file(peers.path("r.jsonl"));
        assert!(program.output().unwrap().status.code().is_some_and(|code| code <= 1), "{name}");
        let record = &read(&peers.path("r.jsonl")).unwrap().records[0];
        let reason = record.reason.clone().unwrap_or_default();
        let missing = format!("cannot start `build/{name}` of the peer `{name}`: ");
        let stopped = record.status == Status::Unsupported
            && (reason.starts_with(&missing) || reason.starts_with("no GPU: "));
        // or its libraries are not found, which the loader says
        let unloaded = record.status == Status::Failed && reason.contains("shared libraries");
        let ran = record.status == Status::Converged;
        assert!(ran || stopped || unloaded, "{name}: {:?}, {reason}", record.status);
    }
}

#[test]
fn peers_on_a_gpu_need_as_many_iterations() {
    let systems = "--matrix=poisson3d:16,convdiff3d:12";
    same_counts("amgcl-cuda", &[systems, "--fill=0", "--rhs=ones"]);
    same_counts("ginkgo-cuda", &[systems, "--fill=0", "--solver=gmres,bicgstab"]);
    same_counts("amgx", &["--matrix=poisson3d:16", "--solver=cg", "--precond=none,jacobi"]);
}

#[test]
fn scipy_needs_as_many_iterations() {
    same_counts("scipy", &["--matrix=poisson3d:16", "--solver=cg", "--precond=none,jacobi"]);
}

#[test]
fn methods_of_peers_solve_too() {
    let solved = |peer: &str, settings: &[&str], most: usize| {
        let Some(peers) = found(peer) else { return };
        let backend = format!("external:{peer}");
        let base = ["run", "poisson3d:12", "--backend", &backend, "-q", "-o", "r.jsonl"];
        ran(&mut peers.program(&[&base[..], settings].concat()), 0);
        for record in read(&peers.path("r.jsonl")).unwrap().records {
            let found = record.convergence.iterations;
            assert!((1..=most).contains(&found), "{}: {found}", record.case.precond);
        }
    };
    solved("scipy", &["--precond=external:spilu", "--side=left"], 30);
    solved("scipy", &["--precond=none", "--solver=external:splu"], 1);
    let multigrid = "--precond=external:gamg,external:boomeramg";
    solved("petsc", &["--solver=cg", multigrid], 12);
    solved("petsc", &["--solver=external:preonly", "--precond=external:cholesky"], 1);
    solved("suitesparse", &["--precond=none", "--solver=external:umfpack,external:cholmod"], 1);
    solved("pyamg", &["--solver=cg", "--precond=external:sa,external:rs"], 12);
    solved("amgcl", &["--precond=external:amg"], 15);
    solved("amgcl-cuda", &["--precond=external:amg,external:amg-ilu0"], 15);
    let direct = "--solver=external:cudss,external:cudss-ldl,external:cudss-cholesky";
    solved("cudss", &["--precond=none", direct], 1);
    solved("amgx", &["--precond=external:classical,external:aggregation"], 15);
}
