//! Linear solves over ranks with a GPU each, which they share where there are fewer:
//! `cargo test --features mpi --test run_mpi_cuda`.
#![cfg(all(feature = "mpi", feature = "cuda"))]

mod common;

use std::collections::BTreeSet;
use std::process::Output;

use bilu_bench::base::status::Status;
use bilu_bench::compute;
use bilu_bench::record::Record;

use common::mpi::{command, ran, records, said};

/// Whether there is a GPU. Where one has to be there, that it is not fails the test.
fn has_gpu() -> bool {
    let Err(e) = compute::available("mpi-cuda") else { return true };
    assert!(std::env::var_os("BILU_BENCH_REQUIRE_GPU").is_none(), "{e}");
    eprintln!("skipped: {e}");
    false
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
        assert_eq!(division.transport_used.as_deref(), (count > 1).then_some("direct"));
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
    compared_on(&[1, 2, 3, 4], SYSTEMS, &["--schwarz", schwarz, "--subdomains", "12"]);
}

fn compared_on(counts: &[usize], systems: &[&[&str]], more: &[&str]) {
    if !has_gpu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for system in systems {
        for &count in counts {
            let arguments = [*system, more, &["--rhs", "random"]].concat();
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
fn exact_products_on_gpus_are_those_on_cores() {
    let ways =
        ["--schwarz", "exact", "--subdomains", "6", "--partition", "rows,boxes", "--precond"];
    let definite: &[&[&str]] = &[&["poisson3d:13x11x9", "--solver", "gmres,cg"]];
    compared_on(&[1, 2, 3], definite, &[&ways[..], &["chebyshev,tns,fsai:power=2"]].concat());
    let blocks: &[&[&str]] = &[&["blockpoisson3d:7x6x9,b=2", "--block-size", "2"]];
    compared_on(&[1, 2], blocks, &[&ways[..], &["chebyshev,tns,tns:form=explicit"]].concat());
}

/// Grids large enough for boxes of their subdomains to be solved with as such; the first slice of the second one is a
/// box together with its interface.
const BOXES: &[&[&str]] = &[
    &["poisson3d:40x36x14", "--fill", "0,1,2"],
    &["poisson3d:8x8x64", "--fill", "0,1"],
    &["blockpoisson3d:14x13x12,b=3", "--block-size", "3", "--fill", "0,1,2"],
];

#[test]
fn exact_factors_of_boxes_and_ranges_on_gpus_are_those_on_cores() {
    let ways = ["--schwarz", "exact:interface,exact:interface:1", "--partition", "boxes,rows"];
    let more = ["--subdomains", "2,4,8", "--level-rule", "min"];
    compared_on(&[1, 2], BOXES, &[ways, more].concat());
}

/// In the larger ones few rows of A Z have entries, so that these alone are kept.
#[test]
fn a_coarse_space_on_gpus_is_that_on_cores() {
    let ways = ["--deflation", "subdomains,subdomains:2", "--subdomains", "6", "--partition"];
    let both = [&ways[..], &["boxes,rows", "--schwarz", "jacobi,exact:interface"]].concat();
    let systems: &[&[&str]] = &[
        &["poisson3d:13x11x9", "--solver", "gmres,bicgstab"],
        &["poisson3d:40x36x14", "--solver", "gmres"],
        &["blockpoisson3d:7x6x9,b=2", "--block-size", "2", "--solver", "gmres"],
    ];
    compared_on(&[1, 2, 3], systems, &both);
    let by_rows: &[&[&str]] = &[
        &["reservoir:12x10x7,k=2,wells=6", "--block-size", "2", "--solver", "gmres"],
        &["poisson3d:13x11x9", "--solver", "cg", "--precond", "jacobi"],
    ];
    compared_on(&[1, 2], by_rows, &[&ways[..], &["rows"]].concat());
}

#[test]
fn every_way_of_solving_stage_by_stage_has_the_solution() {
    let ways = ["--schwarz", "exact:interface", "--partition", "boxes", "--level-rule", "min"];
    for trisolve in ["wavefront", "partitioned", "syncfree", "levels", "pencils"] {
        // one subdomain is solved with as named, or not at all
        let subdomains = if trisolve == "pencils" { "4" } else { "1,4" };
        let more = ["--subdomains", subdomains, "--trisolve", trisolve];
        compared_on(&[1], BOXES, &[&ways[..], &more].concat());
    }
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

/// Records and solutions of four subdomains are those of one rank, bit for bit.
fn no_bit_changes(system: &[&str], ways: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let x = folder.path().join("x-{case}.mtx").display().to_string();
    let solves = ["--subdomains", "4", "--rhs", "random", "--solution", &x];
    let arguments = [system, ways, &solves].concat();
    let mut known = None;
    for count in [1, 2, 4] {
        let records = ran(count, "mpi-cuda", folder.path(), &arguments);
        let files: BTreeSet<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        let solutions = files.iter().filter(|path| path.extension().is_some_and(|e| e == "mtx"));
        let solutions: Vec<Vec<u8>> = solutions.map(|path| std::fs::read(path).unwrap()).collect();
        let found: Vec<_> = records.into_iter().map(|r| (r.status, r.convergence)).collect();
        assert!(found.len() == solutions.len() && found.len() >= 4, "{system:?}");
        assert!(found.iter().all(|(status, _)| *status == Status::Converged), "{system:?}");
        let all = (found, solutions);
        match &known {
            Some(known) => assert!(*known == all, "{system:?} on {count} ranks"),
            None => known = Some(all),
        }
    }
}

#[test]
fn the_number_of_ranks_changes_no_bit_on_gpus() {
    if !has_gpu() {
        return;
    }
    let system = ["blockpoisson3d:7x6x9,b=2", "--block-size", "2", "--fill", "1"];
    let ways = ["--partition", "rows,boxes", "--schwarz", "jacobi,ras:1,exact"];
    no_bit_changes(&system, &[&ways[..], &["--solver", "gmres,bicgstab"]].concat());
    for system in BOXES {
        let ways = ["--partition", "boxes,rows", "--schwarz", "exact:interface"];
        no_bit_changes(system, &[&ways[..], &["--level-rule", "min"]].concat());
    }
}

/// Values that go as messages are those that GPUs write to each other.
#[test]
fn the_way_of_values_between_gpus_changes_no_bit() {
    if !has_gpu() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("r.jsonl").display().to_string();
    let run = ["run", "poisson3d:13x11x9", "--backend", "mpi-cuda", "--history", "100"];
    let ways = ["--subdomains", "12", "--schwarz", "jacobi,ras:1,exact", "--fill", "0,1"];
    let more = ["--max-repetitions", "2", "--level-rule", "min", "-q", "--force", "-o", &name];
    for count in [2, 4] {
        let found = ["auto", "messages"].map(|transport| {
            let mut command = command(count, &[&run[..], &ways, &more].concat());
            let Output { status, stderr, .. } =
                command.env("BILU_BENCH_TRANSPORT", transport).output().expect("mpirun");
            assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
            records(folder.path().join("r.jsonl").as_path())
        });
        assert_eq!(found[0].len(), 6);
        for (direct, messages) in found[0].iter().zip(&found[1]) {
            let used = [direct, messages].map(|r| r.division.transport_used.as_deref());
            assert_eq!(used, [Some("direct"), Some("pinned memory")]);
            assert_eq!(direct.status, Status::Converged, "{:?}", direct.reason);
            assert_eq!(direct.convergence, messages.convergence, "{:?}", direct.case);
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
        let record = records(&out).remove(0);
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
