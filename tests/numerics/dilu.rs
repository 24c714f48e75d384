//! DILU through the case runner: iterates of block ILU(0) where the graph has no triangles, with one thread and several,
//! though products by A come with its solves.

use bilu_bench::base::status::Status;
use bilu_bench::case::Case;
use bilu_bench::problem::Problem;
use bilu_bench::record::Record;

use crate::cases::{load, run_with_history};
use crate::common;

fn run(problem: &Problem, case: &Case) -> Record {
    let b = common::random_vector(problem.matrix.rows(), 7);
    run_with_history(problem, &b, case, 1000)
}

fn case(precond: &str, solver: &str, backend: &str, block_size: usize) -> Case {
    Case {
        precond: precond.into(),
        solver: solver.into(),
        backend: backend.into(),
        threads: 3,
        block_size,
        fill: 0,
        rtol: 1e-8,
        ..Case::default()
    }
}

#[test]
fn histories_are_those_of_block_ilu_of_level_0() {
    for (spec, b, symmetric, limit) in [
        ("poisson3d:19x18x17", 1, true, 1e-10),
        ("poisson3d:20x18x17", 4, true, 1e-10),
        ("blockpoisson3d:12x11x10,b=3,reaction=1", 3, false, 1e-10),
        // rows of different scale
        ("reservoir:12x11x10,k=4,wells=0", 4, false, 1e-9),
    ] {
        let p = load(spec);
        // recurrences of short vectors let rounding grow: of these the head alone
        let solvers = [("gmres", 1000), ("bicgstab", 8), ("idr", 8), ("cg", 1000)];
        for (solver, head) in &solvers[..if symmetric { 4 } else { 3 }] {
            for backend in ["cpu", "cpu-mt"] {
                let of = |precond| run(&p, &case(precond, solver, backend, b));
                let (ilu, dilu) = (of("bilu"), of("dilu"));
                let what = format!("{spec}, b {b}, {solver}, {backend}");
                assert_eq!(dilu.status, Status::Converged, "{what}: {:?}", dilu.reason);
                let [ilu, dilu] = [&ilu, &dilu].map(|r| &r.convergence);
                assert_eq!(dilu.iterations, ilu.iterations, "{what}");
                let (x, y) = (&dilu.residual_history, &ilu.residual_history);
                assert!(x.len() == y.len() && x.len() > 5, "{what}");
                let both = x.iter().zip(y).take(*head);
                // but for rounding of the first residual
                let apart = |(x, z): (&f64, &f64)| (x - z).abs() / (z + 1e-7 * y[0]);
                let worst = both.map(apart).fold(0.0, f64::max);
                assert!(worst < limit, "{what}: {worst}");
            }
        }
    }
}

#[test]
fn it_converges_where_the_graph_has_triangles() {
    for (spec, b, solver) in [
        ("fem-p1:21x20", 1, "cg"),
        ("fem-p1:21x20", 2, "bicgstab"),
        ("reservoir:9x8x7,k=2,wells=2", 2, "gmres"),
        ("bubbly:16,bubbles=2,radius=0.15", 2, "cg"),
    ] {
        let p = load(spec);
        for backend in ["cpu", "cpu-mt"] {
            let r = run(&p, &case("dilu", solver, backend, b));
            assert_eq!(r.status, Status::Converged, "{spec}, {solver}: {:?}", r.reason);
            let ilu = run(&p, &case("bilu", solver, backend, b)).convergence.iterations;
            let own = r.convergence.iterations;
            assert!(own < 2 * ilu, "{spec}, {solver}: {own} beside {ilu}");
        }
    }
}

#[test]
fn deflation_keeps_its_own_way() {
    let p = load("layered:9x8x16,layers=8,contrast=1e3");
    for precond in ["bilu", "dilu"] {
        let deflation = "levelset".parse().expect("a choice");
        let r = run(&p, &Case { deflation, ..case(precond, "cg", "cpu", 1) });
        assert_eq!(r.status, Status::Converged, "{precond}: {:?}", r.reason);
    }
}
