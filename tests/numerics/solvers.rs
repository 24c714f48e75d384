//! The methods through the case runner: agreement with each other and with the truth.

use bilu_bench::base::status::Status;
use bilu_bench::bench::run::{Stage, run_case};
use bilu_bench::case::{Case, Format, LevelRule, Orthogonalisation, RunKind, Side};
use bilu_bench::config::sampling::Measure;
use bilu_bench::problem;

use crate::cases::{load, poisson, run};
use crate::common;

#[test]
fn every_combination_solves_poisson_to_the_same_truth() {
    let p = poisson();
    let b = common::random_vector(990, 3);
    let mut runs = 0;
    for solver in ["gmres", "bicgstab", "cg", "qmr", "pipelined-cg", "pipelined-bicgstab"] {
        for precond in ["none", "jacobi", "bilu"] {
            for backend in ["cpu", "cpu-mt"] {
                for (side, orthogonalisation) in [
                    (Side::Right, Orthogonalisation::Cgs),
                    (Side::Left, Orthogonalisation::Cgs2),
                    (Side::Right, Orthogonalisation::Mgs),
                    (Side::Left, Orthogonalisation::OneReduce),
                ] {
                    // 7 does not divide 990: the system is padded
                    for (block_size, format) in
                        [(1, Format::Csr), (5, Format::Bsr), (7, Format::Auto)]
                    {
                        let case = Case {
                            solver: solver.into(),
                            precond: precond.into(),
                            backend: backend.into(),
                            threads: 2,
                            side,
                            orthogonalisation,
                            block_size,
                            format,
                            fill: 1,
                            rtol: 1e-10,
                            ..Case::default()
                        };
                        let r = run(&p, &b, &case);
                        assert_eq!(r.status, Status::Converged, "{case:?}: {:?}", r.reason);
                        assert!(r.convergence.true_residual.unwrap() < 1e-9, "{case:?}");
                        assert_eq!(r.size.padding, if block_size == 7 { 4 } else { 0 });
                        runs += 1;
                    }
                }
            }
        }
    }
    assert_eq!(runs, 432);
}

#[test]
fn one_thread_and_many_count_alike() {
    let p = load("convdiff3d:40x40x40,cx=3,pz=0.5");
    let b = vec![1.0; 64_000];
    for solver in ["gmres", "bicgstab", "qmr", "pipelined-bicgstab"] {
        for block_size in [1, 4] {
            let case = |backend: &str| Case {
                backend: backend.into(),
                threads: 3,
                solver: solver.into(),
                block_size,
                ..Case::default()
            };
            let (one, many) = (run(&p, &b, &case("cpu")), run(&p, &b, &case("cpu-mt")));
            // sums are taken in the same order: the same bits
            assert_eq!(one.convergence, many.convergence, "{solver}");
            assert_eq!(one.factor, many.factor);
        }
    }
}

#[test]
fn coupled_species_take_few_iterations_and_fewer_with_fill() {
    for b in [3, 4, 8] {
        let spec = format!("blockpoisson3d:16,b={b}");
        let p = load(&spec);
        let rhs = vec![1.0; p.matrix.rows()];
        let iterations = |block_size, fill| {
            let r = run(&p, &rhs, &Case { block_size, fill, rtol: 1e-8, ..Case::default() });
            assert_eq!(r.status, Status::Converged, "{spec}: {:?}", r.reason);
            r.convergence.iterations
        };
        let whole = iterations(b, 0);
        assert!((10..=40).contains(&whole), "{spec}: {whole}");
        assert!(iterations(b, 1) < whole, "{spec}");
    }
}

/// With few iterations more or less, and with a residual as small.
#[test]
fn pipelined_methods_are_the_plain_ones() {
    let p = load("poisson3d:32");
    let b = vec![1.0; p.matrix.rows()];
    for backend in ["cpu", "cpu-mt"] {
        for precond in ["ic", "bilu"] {
            let iterations = |solver: &str| {
                let solver = solver.into();
                let (precond, backend) = (precond.into(), backend.into());
                let case =
                    Case { solver, precond, backend, threads: 2, rtol: 1e-10, ..Case::default() };
                let r = run(&p, &b, &case);
                assert_eq!(r.status, Status::Converged, "{case:?}: {:?}", r.reason);
                assert!(r.convergence.true_residual.unwrap() <= 1e-10, "{:?}", r.convergence);
                r.convergence.iterations
            };
            let [cg, pipelined] = ["cg", "pipelined-cg"].map(iterations);
            assert!(cg.abs_diff(pipelined) <= 2, "{precond}: {pipelined} beside {cg}");
            let [plain, pipelined] = ["bicgstab", "pipelined-bicgstab"].map(iterations);
            assert!(
                10 * plain.abs_diff(pipelined) <= plain,
                "{precond}: {pipelined} beside {plain}"
            );
        }
    }
}

#[test]
fn gmres_keeps_its_basis_orthogonal_over_long_restarts() {
    // rows of very different size make the norm fall by little in each of many steps
    for (spec, precond, restart) in [
        ("convdiff3d:12x11x10,cx=40,pz=0.5", "none", 300),
        ("reservoir:10x9x8,k=1", "jacobi", 200),
        ("reservoir:10x9x8,k=1", "jacobi", 300),
    ] {
        let p = load(spec);
        let b = common::random_vector(p.matrix.rows(), 7);
        let iterations = |orthogonalisation| {
            let case = Case {
                precond: precond.into(),
                orthogonalisation,
                restart,
                rtol: 1e-10,
                max_iterations: 3000,
                ..Case::default()
            };
            let r = run(&p, &b, &case);
            assert_eq!(r.status, Status::Converged, "{case:?}: {:?}", r.reason);
            r.convergence.iterations
        };
        let cgs2 = iterations(Orthogonalisation::Cgs2);
        for other in [Orthogonalisation::Cgs, Orthogonalisation::OneReduce] {
            let count = iterations(other);
            assert!(count.abs_diff(cgs2) <= 2, "{spec} {restart} {other:?}: {count} beside {cgs2}");
        }
    }
}

#[test]
fn new_values_are_timed_only_when_asked_for_and_where_there_are_factors() {
    let p = poisson();
    let b = vec![1.0; 990];
    for (precond, repeat_values, factors) in
        [("bilu", 0, false), ("bilu", 3, true), ("jacobi", 1, true), ("none", 2, false)]
    {
        let measure = Measure { max_repetitions: 1, repeat_values, ..Measure::default() };
        let case = Case { precond: precond.into(), block_size: 3, ..Case::default() };
        let mut stages = 0;
        let r = run_case(&case, &p, &b, &measure, &mut |stage| {
            stages += usize::from(matches!(stage, Stage::NewValues(_)));
            true
        })
        .expect("not cancelled");
        assert_eq!(stages, repeat_values, "{precond}");
        assert_eq!(r.times.rematrix_s.is_some(), repeat_values > 0, "{precond}");
        assert_eq!(r.times.renumeric_s.is_some_and(|s| s > 0.0), factors, "{precond}");
        assert_eq!((r.status, r.reason), (Status::Converged, None), "{precond}");
    }
}

#[test]
fn records_hold_sizes_phases_and_traffic() {
    let p = poisson();
    let r = run(&p, &vec![1.0; 990], &Case { block_size: 2, fill: 1, ..Case::default() });
    assert_eq!(
        (r.size.n, r.size.nnz, r.size.block_rows),
        (990, 7 * 990 - 2 * (90 + 99 + 110), 495)
    );
    let blocks = r.factor.factor_blocks.unwrap();
    assert_eq!(r.factor.factor_entries, Some(4 * blocks));
    assert_eq!(r.factor.fill_ratio, Some(blocks as f64 / r.size.matrix_blocks as f64));
    let t = &r.times;
    let phases = t.symbolic_s.unwrap() + t.analysis_s.unwrap() + t.numeric_s.unwrap();
    assert!((t.setup_s.unwrap() - phases).abs() < 1e-12);
    let (matrix, setup, solve) = (t.matrix_s.unwrap(), t.setup_s.unwrap(), t.solve_s.unwrap());
    assert!(matrix > 0.0);
    assert_eq!(t.total_s, Some(matrix + setup + solve));
    let traffic = &r.traffic;
    // factors, their indices and row pointers once; four passes over a vector
    let indices = 4 * (blocks - 495) + 2 * 4 * 496;
    assert_eq!(traffic.apply_bytes, Some(8 * 4 * blocks + indices + 4 * 8 * 990));
    assert!(traffic.copy_gbps.unwrap() > 0.1 && traffic.percent_of_bandwidth.unwrap() > 0.0);
    // no hand-over is measured on a CPU
    assert_eq!(traffic.handover_us, None);
    // and its numeric phase is the factorisation alone: A's indices and values in, factors out
    assert_eq!(t.numeric_kernel_s, t.numeric_s);
    assert_eq!(traffic.numeric_bytes, Some(indices + 2 * 8 * 4 * blocks));
    let gbps = traffic.numeric_bytes.unwrap() as f64 / t.numeric_s.unwrap() / 1e9;
    assert!((traffic.numeric_gbps.unwrap() / gbps - 1.0).abs() < 1e-12);
    let share = 100.0 * gbps / traffic.copy_gbps.unwrap();
    assert!((traffic.numeric_percent_of_bandwidth.unwrap() / share - 1.0).abs() < 1e-12);
}

#[test]
fn qmr_solves_a_reservoir_with_its_wells_on_either_side() {
    let p = load("reservoir:6x8x7,k=2,wells=3");
    let b = problem::right_hand_side(&p, "own").expect("a reservoir has its own");
    for side in [Side::Left, Side::Right] {
        for (precond, fill, level_rule) in [
            ("jacobi", 0, LevelRule::Min),
            ("bilu", 0, LevelRule::Min),
            ("bilu", 1, LevelRule::Min),
            ("bilu", 2, LevelRule::Overwrite),
        ] {
            for format in [Format::Bsr, Format::Bdia, Format::Hyb] {
                let case = Case {
                    solver: "qmr".into(),
                    precond: precond.into(),
                    fill,
                    level_rule,
                    side,
                    format,
                    block_size: 2,
                    rtol: 1e-9,
                    ..Case::default()
                };
                let r = run(&p, &b, &case);
                assert_eq!(r.status, Status::Converged, "{case:?}: {:?}", r.reason);
                assert!(r.convergence.true_residual.unwrap() < 1e-8, "{case:?}");
                let own = run(&p, &b, &Case { solver: "bicgstab".into(), ..case });
                assert_eq!(own.status, Status::Converged, "{:?}", own.reason);
                // matrix and factors are there twice
                assert_eq!(r.traffic.memory_bytes.map(|m| m / 2), own.traffic.memory_bytes);
            }
        }
    }
}

#[test]
fn products_alone_are_measured_in_every_format() {
    let p = load("reservoir:6x8x7,k=2,wells=3");
    // bytes of columns of rows with those of the row before, which products in CSR read once; each row has a byte
    let columns = |i: usize| p.matrix.row(i).0;
    let alike = (1..p.matrix.rows()).filter(|&i| columns(i) == columns(i - 1));
    let shared = alike.map(|i| size_of_val(columns(i))).sum::<usize>();
    for backend in ["cpu", "cpu-mt"] {
        for format in
            [Format::Csr, Format::Bsr, Format::Hyb, Format::Sell, Format::Dia, Format::Bdia]
        {
            let kind = RunKind::Spmv;
            let case = Case {
                kind,
                format,
                block_size: 2,
                backend: backend.into(),
                threads: 2,
                ..Case::default()
            };
            let r = run(&p, &[0.0; 675], &case);
            assert_eq!(r.status, Status::Measured, "{format:?}: {:?}", r.reason);
            let t = &r.traffic;
            let (held, moved) = (t.memory_bytes.unwrap(), t.spmv_bytes.unwrap());
            // one row of padding
            assert_eq!((r.size.padding, r.times.solve_s), (1, None));
            let read = if format == Format::Csr { held - shared + 676 } else { held };
            assert_eq!(moved, read + 16 * 676, "{format:?}");
            let seconds = t.spmv_s.unwrap();
            assert_eq!(t.spmv_gbps, Some(moved as f64 / seconds / 1e9));
            assert_eq!(t.spmv_gflops, Some(2.0 * r.size.nnz as f64 / seconds / 1e9));
            if format == Format::Bdia {
                // 336 cells of 7 blocks; 3 wells of 2 runs of 12; D with the padding, and their words
                let wells = 8 * (3 * 24 + 4) + 4 * (5 + 4 + 3);
                assert_eq!(held, 8 * 336 * 7 * 4 + wells);
            }
        }
    }
    let bad = Case { kind: RunKind::Spmv, format: Format::Bdia, block_size: 3, ..Case::default() };
    let r = run(&p, &[0.0; 675], &bad);
    assert_eq!(r.status, Status::Unsupported);
    assert!(r.reason.unwrap().starts_with("the matrix does not fit `bdia`: row "));
}
