//! Linear solves over ranks: `cargo test --features mpi --test ranks run_mpi`.

use std::path::{Path, PathBuf};

use bilu_bench::base::status::Status;
use bilu_bench::record::Record;
use bilu_bench::record::schema::SetupDone;

use crate::common;
use crate::common::mpi::{records, said};

/// The records of a sweep of short measurements over ranks.
fn ran(count: usize, folder: &Path, arguments: &[&str]) -> Vec<Record> {
    common::mpi::ran(count, "mpi", folder, arguments)
}

/// Runs a sweep of `cases` on 1, 2, 3, 4 and 6 ranks, which must leave the same bits.
fn same_bits_on_any_ranks(cases: usize, arguments: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let x = folder.path().join("x-{case}.mtx").display().to_string();
    let arguments =
        [arguments, &["--subdomains", "6", "--rhs", "random", "--solution", &x]].concat();
    let mut known: Option<Vec<_>> = None;
    for count in [1, 2, 3, 4, 6] {
        let records = ran(count, folder.path(), &arguments);
        let found: Vec<_> = records
            .iter()
            .map(|r| {
                assert_eq!(r.status, Status::Converged, "{:?}", r.reason);
                assert_eq!((r.division.ranks, r.division.subdomains_used), (Some(count), Some(6)));
                assert!(r.division.reductions_per_iteration.unwrap() > 1.0);
                let used = r.division.schwarz_used.as_deref();
                assert_eq!(used, Some(&*r.case.schwarz.to_string()));
                // products have no stages
                let factors = r.case.schwarz.is_exact() && r.case.precond == "bilu";
                assert_eq!(r.division.stages.is_some(), factors);
                let halo = r.division.halo_bytes.unwrap();
                assert_eq!(halo > 0, count > 1);
                (r.convergence.clone(), r.factor.clone())
            })
            .collect();
        assert_eq!(found.len(), cases);
        let solutions: Vec<Vec<u8>> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "mtx"))
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .map(|path| std::fs::read(path).unwrap())
            .collect();
        assert_eq!(solutions.len(), cases);
        let found: Vec<_> = found.into_iter().zip(solutions).collect();
        match &known {
            Some(known) => assert!(*known == found, "{count} ranks"),
            None => known = Some(found),
        }
    }
}

#[test]
fn the_number_of_ranks_changes_no_bit() {
    let system = ["blockpoisson3d:7x6x8,b=2", "--block-size", "2", "--fill", "1"];
    let divided = [
        "--partition",
        "rows,boxes,graph",
        "--schwarz",
        "jacobi,ras:1,exact:interface,exact:interface:1,exact:natural",
    ];
    let solvers = ["--solver", "gmres,bicgstab,pipelined-bicgstab", "--max-iterations", "100"];
    same_bits_on_any_ranks(45, &[&system[..], &divided, &solvers].concat());
    let definite = ["poisson3d:9x8x7", "--solver", "gmres,pipelined-cg", "--rtol", "1e-10"];
    let one = ["--orthogonalisation", "one-reduce", "--restart", "20"];
    same_bits_on_any_ranks(2, &[&definite[..], &one].concat());
}

#[test]
fn the_number_of_ranks_changes_no_bit_of_a_sequence() {
    let steps = ["--sequence", "reservoir:8x6x5,k=2,steps=3", "--block-size", "2"];
    let kept = ["--guess", "last", "--refactor", "every:2", "--solver", "bicgstab"];
    let divided =
        ["--partition", "rows,graph", "--schwarz", "jacobi,ras:1,exact:interface,exact:natural"];
    same_bits_on_any_ranks(24, &[&steps[..], &kept, &divided].concat());
    let products =
        ["--partition", "rows,graph", "--schwarz", "exact", "--precond", "chebyshev,tns"];
    same_bits_on_any_ranks(12, &[&steps[..], &kept, &products].concat());
}

#[test]
fn a_sequence_of_one_subdomain_is_that_of_one_cpu_thread() {
    let folder = tempfile::tempdir().unwrap();
    let steps =
        ["--sequence", "reservoir:6,k=2,wells=2,steps=4", "--rhs", "own", "--block-size", "2"];
    let more = ["--solver", "gmres", "--refactor", "adaptive:1.2", "--precond", "bilu,cpr"];
    let of = |backend: &str, count| {
        let arguments = [&steps[..], &more, &["--level-rule", "min"]].concat();
        let records = common::mpi::ran(count, backend, folder.path(), &arguments);
        let found = records.into_iter().map(|r| {
            assert_eq!(r.status, Status::Converged, "{:?}", r.reason);
            (r.step, r.setup_done, r.convergence.iterations, r.hash.matrix_hash)
        });
        found.collect::<Vec<_>>()
    };
    let expected = of("cpu", 1);
    assert_eq!(expected.len(), 8);
    assert_eq!(expected[0].1, Some(SetupDone::All));
    assert!(expected.iter().any(|step| step.1 == Some(SetupDone::None)));
    assert_eq!(of("mpi", 1), expected);
}

/// Of 40 iterations, restarts after 20: one reduction finds the norm at the beginning of each cycle of GMRES, and at
/// the beginning of the others.
#[test]
fn reductions_are_as_many_as_the_method_needs() {
    let folder = tempfile::tempdir().unwrap();
    let count = |ranks: usize, solver: &str, orthogonalisation: &str| {
        let system =
            ["poisson3d:24", "--precond", "jacobi", "--subdomains", "4", "--restart", "20"];
        let fixed = ["--rtol", "0", "--max-iterations", "40", "--solver", solver];
        let kind = ["--orthogonalisation", orthogonalisation];
        let records = ran(ranks, folder.path(), &[&system[..], &fixed, &kind].concat());
        let record = &records[0];
        assert_eq!((record.status, record.convergence.iterations), (Status::Complete, 40));
        (40.0 * record.division.reductions_per_iteration.unwrap()).round() as usize
    };
    for (solver, orthogonalisation, want) in [
        ("gmres", "one-reduce", 40 + 2),
        ("gmres", "cgs", 2 * 40 + 2),
        ("gmres", "cgs2", 4 * 40 + 2),
        // j + 2 in step j of a cycle, from 0
        ("gmres", "mgs", 2 * (190 + 2 * 20) + 2),
        // two in the first iteration, whose direction is the residual
        ("cg", "cgs", 3 * 40 - 1 + 1),
        ("bicgstab", "cgs", 3 * 40 + 1),
        // the residual of the last one is found by what begins another one
        ("pipelined-cg", "cgs", 40 + 2),
        ("pipelined-bicgstab", "cgs", 2 * 40 + 2),
    ] {
        for ranks in [1, 2] {
            assert_eq!(
                count(ranks, solver, orthogonalisation),
                want,
                "{solver} {orthogonalisation}"
            );
        }
    }
    let shown = said(1, 0, &["run", "poisson3d:6", "--backend", "mpi", "--subdomains", "2"]);
    assert!(shown.contains("reductions/iter"), "{shown}");
}

#[test]
fn exact_factors_in_the_given_order_have_the_iterations_of_one_device() {
    let folder = tempfile::tempdir().unwrap();
    let run = |count: usize, arguments: &[&str]| {
        let solver = ["poisson3d:16", "--restart", "20", "--fill", "0,1,2"];
        ran(count, folder.path(), &[&solver[..], arguments].concat())
    };
    let one = run(1, &["--subdomains", "1"]);
    let ranks = ["--subdomains", "4", "--partition", "rows,boxes", "--schwarz"];
    let natural = run(2, &[&ranks[..], &["exact:natural"]].concat());
    assert_eq!(natural.len(), 6);
    for record in &natural {
        let of_one = one.iter().find(|one| one.case.fill == record.case.fill).unwrap();
        let [of_one, found] = [of_one, record].map(|r| r.convergence.iterations);
        // dot products are summed in another order
        assert!(found.abs_diff(of_one) <= 1, "{found} {of_one}");
        assert!(record.division.stages.unwrap() > 8);
        ordering_counts(record);
    }
    // `exact` depends on the pattern and the subdomains alone
    for count in [1, 2] {
        let two = ["--subdomains", "2", "--partition", "rows,boxes", "--schwarz", "exact"];
        for record in run(count, &two) {
            let natural = record.case.fill == 0;
            let used = if natural { "exact:natural" } else { "exact:interface" };
            assert_eq!(record.division.schwarz_used.as_deref(), Some(used));
            let efficiency = record.division.stage_efficiency.unwrap();
            assert!(!natural || efficiency >= 0.75, "{efficiency}");
            ordering_counts(&record);
            bytes_are_of_all_ranks(&record);
        }
    }
}

/// Residuals of each solve on so many ranks, with the solver and the preconditioner.
fn histories(records: &[Record]) -> Vec<(String, String, Vec<f64>)> {
    let of = |r: &Record| {
        assert_eq!(r.status, Status::Converged, "{:?}", r.reason);
        let residuals = r.convergence.residual_history.clone();
        (r.case.solver.clone(), r.case.precond.clone(), residuals)
    };
    records.iter().map(of).collect()
}

#[test]
fn exact_products_are_those_of_one_device() {
    let folder = tempfile::tempdir().unwrap();
    let definite = ["poisson3d:12", "--solver", "cg,gmres", "--precond"];
    let definite = [&definite[..], &["chebyshev,tns,fsai:power=2"]].concat();
    let blocks = ["blockpoisson3d:7x6x8,b=2", "--block-size", "2", "--solver", "gmres,bicgstab"];
    let blocks = [&blocks[..], &["--precond", "chebyshev,tns,tns:form=explicit"]].concat();
    for system in [definite, blocks] {
        let system = [&system[..], &["--rhs", "random", "--rtol", "1e-8"]].concat();
        let one = histories(&common::mpi::ran(1, "cpu", folder.path(), &system));
        assert_eq!(one.len(), 6);
        for how in ["rows", "boxes", "graph"] {
            let division = ["--subdomains", "8", "--partition", how, "--schwarz", "exact"];
            let on = |count| ran(count, folder.path(), &[&system[..], &division].concat());
            let of_one = histories(&on(1));
            for count in [2, 4] {
                assert_eq!(histories(&on(count)), of_one, "{how}, {count} ranks");
            }
            // sums differ by rounding: ranks add up subdomain by subdomain
            let near = |(x, y): (&f64, &f64)| (x - y).abs() <= 1e-6 * y.abs();
            for (found, one) in of_one.iter().zip(&one) {
                assert_eq!((&found.0, &found.1), (&one.0, &one.1));
                assert_eq!(found.2.len(), one.2.len(), "{how}: {found:?} {one:?}");
                assert!(found.2.iter().zip(&one.2).all(near), "{how}: {found:?} {one:?}");
            }
        }
    }
}

/// Bytes of products and of orthogonalisation are summed over ranks.
fn bytes_are_of_all_ranks(record: &Record) {
    let (t, size) = (&record.traffic, &record.size);
    assert!(t.spmv_bytes.unwrap() >= 8 * size.nnz + 16 * size.n);
    let moved = t.orthogonalisation_gbps.unwrap() * 1e9 * t.orthogonalisation_s.unwrap();
    let bytes = 8.0 * ((size.n + size.padding) * (2 * record.case.restart + 3)) as f64;
    assert!((moved - bytes).abs() <= 1e-12 * bytes, "{moved} {bytes}");
}

/// Rows were put in an order, which is part of the time to a solution.
fn ordering_counts(record: &Record) {
    let t = &record.times;
    let phases = [t.ordering_s, t.matrix_s, t.setup_s, t.solve_s].map(Option::unwrap);
    assert!(phases[0] > 0.0, "{phases:?}");
    let (sum, total) = (phases.iter().sum::<f64>(), t.total_s.unwrap());
    assert!((sum - total).abs() <= 1e-12 * total, "{phases:?} {total}");
}

#[test]
fn one_subdomain_is_one_cpu_thread() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["poisson3d:12", "--backend", "cpu,mpi", "--precond", "bilu,jacobi,chebyshev"];
    let solvers =
        ["--solver", "gmres,bicgstab,cg,idr,qmr,correction,pipelined-cg,pipelined-bicgstab"];
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
fn a_coarse_space_keeps_the_iterations_of_many_subdomains() {
    let folder = tempfile::tempdir().unwrap();
    let sweeps = [
        ("cg", "ic", "jacobi", "subdomains"),
        ("gmres", "bilu", "jacobi", "subdomains"),
        ("gmres", "bilu", "ras:1", "subdomains:2"),
        ("bicgstab", "bilu", "jacobi", "subdomains"),
    ];
    for (solver, precond, schwarz, deflation) in sweeps {
        let both = format!("none,{deflation}");
        let arguments = [
            ["poisson3d:24", "--solver"],
            [solver, "--precond"],
            [precond, "--schwarz"],
            [schwarz, "--deflation"],
            [&both, "--partition"],
            ["boxes", "--subdomains"],
            ["8,64", "--level-rule"],
        ]
        .concat();
        let mut known: Option<Vec<_>> = None;
        for count in [1, 2, 4] {
            let found = ran(count, folder.path(), &[&arguments[..], &["min"]].concat());
            let [plain_8, plain_64, coarse_8, coarse_64] =
                [("none", 8), ("none", 64), (deflation, 8), (deflation, 64)].map(
                    |(deflation, subdomains)| {
                        let of = found.iter().find(|r| {
                            r.case.deflation.to_string() == deflation
                                && r.case.subdomains == subdomains
                        });
                        let record = of.unwrap();
                        assert_eq!(record.status, Status::Converged, "{:?}", record.reason);
                        record.convergence.iterations
                    },
                );
            let case = format!("{solver} {schwarz}: {plain_8} {plain_64} {coarse_8} {coarse_64}");
            assert!(coarse_8 < plain_8 && coarse_64 < plain_64, "{case}");
            assert!(coarse_64 <= coarse_8, "{case}");
            let vectors: Vec<_> = found.iter().filter_map(|r| r.factor.deflation_vectors).collect();
            let pieces = if deflation == "subdomains" { 1 } else { 2 };
            assert_eq!(vectors, [8 * pieces, 64 * pieces]);
            let found: Vec<_> = found.into_iter().map(|r| r.convergence).collect();
            match &known {
                Some(known) => assert!(*known == found, "{case}, {count} ranks"),
                None => known = Some(found),
            }
        }
    }
}

#[test]
fn threads_of_a_rank_change_no_bit() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["poisson3d:48", "--schwarz", "jacobi,exact", "--rtol", "1e-3", "--threads"];
    let one = ran(2, folder.path(), &[&arguments[..], &["1"]].concat());
    let two = ran(2, folder.path(), &[&arguments[..], &["2"]].concat());
    assert_eq!((one.len(), two.len()), (2, 2));
    for (one, two) in one.iter().zip(&two) {
        assert_eq!((one.environment.threads, two.environment.threads), (1, 2));
        let device = &two.environment.device;
        assert!(device.starts_with("2 ranks, ") && device.ends_with("2 threads each"), "{device}");
        assert_eq!((one.status, &one.convergence), (two.status, &two.convergence));
        let with_one =
            two.reason.as_deref().unwrap_or_default().contains("with one thread of each");
        assert_eq!(with_one, two.case.schwarz.is_exact());
    }
}

#[test]
fn products_alone_run_over_ranks_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    for count in [1, 2, 3] {
        let of = ["blockpoisson3d:4x5x18,b=2", "--block-size", "2", "--kind", "spmv"];
        // planes of a grid, which are block diagonals
        let formats = ["--matrix-format", "all", "--subdomains", "6", "--partition", "boxes"];
        // a product that differs from the plain loop over the whole matrix is no success
        let records = ran(count, folder.path(), &[&of[..], &formats].concat());
        let used: Vec<_> = records.iter().map(|r| r.format_used.clone().unwrap()).collect();
        assert_eq!(used, ["csr", "bsr", "hyb", "sell", "dia", "bdia"]);
        for r in records {
            assert_eq!((r.status, r.division.ranks), (Status::Measured, Some(count)));
            assert!(r.traffic.spmv_percent_of_bandwidth.unwrap() > 0.0);
            assert!(r.traffic.memory_bytes.unwrap() > 8 * r.size.nnz);
            assert_eq!(r.division.halo_bytes.unwrap() > 0, count > 1);
        }
    }
}

#[test]
fn every_format_and_the_transpose_converge_as_on_one_thread() {
    let folder = tempfile::tempdir().unwrap();
    let of = ["convdiff3d:4x5x20,px=0.3", "--precond", "jacobi", "--subdomains", "4"];
    let solvers = ["--solver", "gmres,qmr", "--matrix-format", "all", "--rtol", "1e-9"];
    let division = ["--partition", "boxes", "--backend", "cpu,mpi"];
    let records = ran(2, folder.path(), &[&of[..], &solvers, &division].concat());
    let on = |backend: &'static str| records.iter().filter(move |r| r.case.backend == backend);
    assert_eq!((on("cpu").count(), on("mpi").count()), (12, 12));
    for one in on("cpu") {
        let same =
            |r: &&Record| (&r.case.solver, r.case.format) == (&one.case.solver, one.case.format);
        let ranks = on("mpi").find(same).unwrap();
        assert_eq!(ranks.status, Status::Converged, "{:?}", ranks.reason);
        assert!(ranks.convergence.iterations.abs_diff(one.convergence.iterations) <= 1);
        assert!(ranks.convergence.true_residual.unwrap() < 2e-9);
    }
}

#[test]
fn the_transpose_is_the_same_on_any_number_of_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let of =
        ["reservoir:8x7x6,k=2,wells=4", "--block-size", "2", "--solver", "qmr", "--fill", "0,1"];
    let division = ["--subdomains", "4", "--rhs", "random"];
    let mut known: Option<Vec<_>> = None;
    for count in [1, 2, 4] {
        let found = ran(count, folder.path(), &[&of[..], &division].concat());
        let found: Vec<_> = found
            .into_iter()
            .map(|r| {
                assert_eq!(r.status, Status::Converged, "{:?}", r.reason);
                r.convergence
            })
            .collect();
        match &known {
            Some(known) => assert!(*known == found, "{count} ranks"),
            None => known = Some(found),
        }
    }
}

#[test]
fn experiments_and_papers_run_over_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let paper = folder.path().join("mine");
    std::fs::create_dir(&paper).unwrap();
    let sweep = "[measure]\nmax-repetitions = 1\n\n[[sweep]]\nmatrix = \"poisson3d:6\"\n\
                 backend = [\"cpu\", \"mpi\"]\nfill = [0, 1]\nsubdomains = 2\n";
    let table = paper.join("table1.toml");
    std::fs::write(&table, sweep).unwrap();
    let out = folder.path().join("a.jsonl");
    let [table, name] = [&table, &out].map(|path| path.to_str().unwrap());
    said(2, 0, &["run", table, "-q", "-o", name, "--fill", "0"]);
    assert_eq!(records(&out).len(), 2);
    said(2, 0, &["run", table, "-q", "-o", name, "--resume"]);
    let ranks: Vec<_> = records(&out).iter().map(|r| (r.case.fill, r.division.ranks)).collect();
    assert_eq!(ranks, [(0, None), (0, Some(2)), (1, None), (1, Some(2))]);
    let [configs, out] =
        [folder.path(), &folder.path().join("b.jsonl")].map(|path| path.display().to_string());
    said(2, 0, &["reproduce", "mine/table1", "--configs", &configs, "-q", "-o", &out]);
    assert_eq!(records(Path::new(&out)).len(), 4);
}
