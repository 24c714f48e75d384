//! Solves over ranks that are threads, beside one CPU thread and PETSc.

use std::rc::Rc;

use super::*;
use crate::base::choices::Format;
use crate::case::Case;
use crate::compute::cpu::Cpu;
use crate::compute::distributed::Layout;
use crate::compute::distributed::communicator::{Communicator, OneRank, threads::on_ranks};
use crate::compute::distributed::matrix::{Matrix, Rows};
use crate::compute::distributed::moves::with_layers;
use crate::compute::krylov::{self, Stop, System};
use crate::compute::{Operations, Products, Storage as _, Vectors};
use crate::methods::{precond, solver};
use crate::problem::samples::{Divided, boxes, matrix, positive};

fn case(solver: &str, precond: &str, fill: usize) -> Case {
    let restart = 20;
    Case { solver: solver.into(), precond: precond.into(), fill, restart, ..Case::default() }
}

fn settings(case: &Case) -> krylov::Settings {
    let stop = Stop { rtol: 1e-6, max_iterations: 500, time_limit_s: None };
    case.solver_settings(stop)
}

/// Monitored residuals and the solution.
type Solved = (Vec<f64>, Vec<f64>);

fn solve<K: Operations + 'static>(
    k: &K,
    case: &Case,
    (a, m): (&K::Matrix, &dyn Preconditioner<K>),
    b: &[f64],
) -> Solved {
    let n = b.len();
    let (mut rhs, mut x) = (k.vector(n).unwrap(), k.vector(n).unwrap());
    k.upload(b, &mut rhs);
    let build = solver::lookup::<K>(&case.solver).unwrap();
    let mut method = build(k, &settings(case), n).unwrap();
    let mut residuals = Vec::new();
    let system = System { a, m, b: &rhs, transposed: None, deflation: None };
    method.solve(k, &system, &mut x, &mut residuals);
    let mut solution = vec![0.0; n];
    k.download(&x, &mut solution);
    (residuals, solution)
}

/// On so many ranks, with so many layers of overlap.
fn on(ranks: usize, system: &Divided, case: &Case, overlap: usize, b: &[f64]) -> Solved {
    let solved =
        on_ranks(ranks, |rank| distributed(Rc::new(rank), ranks, system, case, overlap, b));
    let residuals = solved[0].0.clone();
    for (of_rank, _) in &solved {
        assert_eq!(*of_rank, residuals);
    }
    (residuals, solved.into_iter().flat_map(|(_, x)| x).collect())
}

fn distributed(
    communicator: Rc<dyn Communicator>,
    ranks: usize,
    Divided { a, starts }: &Divided,
    case: &Case,
    overlap: usize,
    b: &[f64],
) -> Solved {
    let rank = communicator.rank();
    let layout = Layout::new(starts, a.block_size(), ranks).unwrap();
    let first = starts[0] * a.block_size();
    let own = layout.unknowns(rank);
    let own = own.start - first..own.end - first;
    let part = layout.part_of(a, rank);
    let part = with_layers(&*communicator, &part, layout.rank_starts(), overlap).unwrap();
    let rows = Rows::of(&part, &layout, rank).unwrap();
    let k = Distributed::new(Cpu::sequential(), communicator, layout);
    let matrix = Matrix::new(&k, &rows, Format::Csr).unwrap();
    let setup = precond::lookup::<Cpu>(&case.precond).unwrap();
    let m = Schwarz::new(&k, &part, overlap, setup, &case.preconditioning(), &mut ()).unwrap();
    solve(&k, case, (&matrix, &m), &b[own])
}

/// Systems, their block sizes and numbers of subdomains.
const SYSTEMS: [(&str, usize, usize); 3] =
    [("convdiff3d:9x8x7,px=0.3", 1, 4), ("blockpoisson3d:5x4x6,b=3", 3, 6), ("poisson3d:12", 1, 8)];

#[test]
fn the_number_of_ranks_changes_no_bit() {
    for (spec, b, count) in SYSTEMS {
        let system = boxes(spec, b, count);
        let rhs = positive(system.a.rows());
        for (solver, precond) in
            [("gmres", "bilu"), ("bicgstab", "bilu"), ("idr", "jacobi"), ("gmres", "sweeps")]
        {
            for overlap in 0..=2 {
                let case = case(solver, precond, 1);
                let of_one = on(1, &system, &case, overlap, &rhs);
                assert!(*of_one.0.last().unwrap() < 1e-6, "{spec} {solver} {precond}");
                for ranks in [2, 3, 4] {
                    let found = on(ranks, &system, &case, overlap, &rhs);
                    assert_eq!(found, of_one, "{spec} {solver} {precond}:{overlap}, {ranks} ranks");
                }
            }
        }
    }
}

/// The same system with numbers of block rows that have more than 32 bits.
#[test]
fn numbers_beyond_32_bits_change_no_bit() {
    for (spec, b, count) in SYSTEMS {
        let system = boxes(spec, b, count);
        let rhs = positive(system.a.rows());
        let starts = system.starts.iter().map(|start| 5_000_000_000 + start).collect();
        let far = Divided { a: system.a.clone(), starts };
        for overlap in [0, 2] {
            let case = case("gmres", "bilu", 1);
            let near = on(1, &system, &case, overlap, &rhs);
            for ranks in [1, 3, 4] {
                assert_eq!(on(ranks, &far, &case, overlap, &rhs), near, "{spec} on {ranks} ranks");
            }
        }
    }
}

#[test]
fn one_subdomain_is_one_cpu_thread_bit_for_bit() {
    for (spec, b, _) in SYSTEMS {
        let problem = matrix(spec);
        let system = Divided { a: problem.in_blocks(b), starts: vec![0, problem.rows() / b] };
        let (a, rhs) = (Arc::new(system.a.clone()), positive(system.a.rows()));
        for solver in ["gmres", "bicgstab", "idr"] {
            let case = case(solver, "bilu", 1);
            let k = Cpu::sequential();
            let setup = precond::lookup::<Cpu>(&case.precond).unwrap();
            let preconditioning = case.preconditioning();
            let m = setup(Setup { k: &k, a: &a, settings: &preconditioning, phases: &mut () });
            let matrix = k.matrix(&a, Format::Csr).unwrap();
            let plain = solve(&k, &case, (&matrix, &*m.unwrap()), &rhs);
            let found = distributed(Rc::new(OneRank), 1, &system, &case, 0, &rhs);
            assert_eq!(found, plain, "{spec} {solver}");
        }
    }
}

#[test]
fn products_are_those_of_the_whole_matrix() {
    for (spec, b, count) in SYSTEMS {
        let Divided { a, starts } = &boxes(spec, b, count);
        let (x, mut expected) = (positive(a.rows()), vec![0.0; a.rows()]);
        a.multiply(&x, &mut expected);
        for ranks in [1, 2, 4] {
            let parts = on_ranks(ranks, |rank| {
                let (me, layout) =
                    (Communicator::rank(&rank), Layout::new(starts, b, ranks).unwrap());
                let own = layout.unknowns(me);
                let k = Distributed::new(Cpu::sequential(), Rc::new(rank), layout);
                let part = k.layout().part_of(a, me);
                let rows = Rows::of(&part, k.layout(), me).unwrap();
                let matrix = Matrix::new(&k, &rows, Format::Csr).unwrap();
                let (mut v, mut y) = (k.vector(own.len()).unwrap(), k.vector(own.len()).unwrap());
                k.upload(&x[own], &mut v);
                k.spmv(&matrix, &v, &mut y);
                y.to_vec()
            });
            let found = parts.concat();
            let error = found.iter().zip(&expected).map(|(f, e)| (f - e).abs()).fold(0.0, f64::max);
            assert!(error < 1e-12, "{spec} on {ranks} ranks: {error:.1e}");
        }
    }
}

/// `tests/data/distributed-poisson64.csv`: PETSc's block Jacobi and restricted additive Schwarz.
#[test]
fn iterations_are_those_of_petsc() {
    let ones = vec![1.0; 64 * 64 * 64];
    let systems = [2, 8].map(|count| (count, boxes("poisson3d:64", 1, count)));
    for line in include_str!("../../../tests/data/distributed-poisson64.csv").lines().skip(1) {
        let [program, _, ranks, fill, kind, overlap, iterations, ..] =
            line.split(',').collect::<Vec<_>>()[..]
        else {
            panic!("{line}")
        };
        let Some((_, system)) = systems.iter().find(|(count, _)| ranks == count.to_string()) else {
            continue;
        };
        if !program.starts_with("petsc") || fill == "ilu(2)" || !["bjacobi", "asm"].contains(&kind)
        {
            continue;
        }
        let case = case("gmres", "bilu", usize::from(fill == "ilu(1)"));
        let (residuals, _) = on(2, system, &case, overlap.parse().unwrap(), &ones);
        let expected: usize = iterations.parse().unwrap();
        let within = if expected > 100 { 2 } else { 1 };
        assert!(residuals.len().abs_diff(expected) <= within, "{line}: {}", residuals.len());
    }
}

#[test]
fn fewer_subdomains_than_ranks_are_refused() {
    let error = Layout::new(&[0, 3, 7], 1, 3).unwrap_err();
    assert!(error.to_string().starts_with("2 subdomains on 3 ranks"), "{error}");
    let layout = Layout::new(&[0, 3, 7, 9], 2, 2).unwrap();
    assert_eq!((layout.subdomains(0), layout.subdomains(1)), (0..1, 1..3));
    assert_eq!((layout.unknowns(1), layout.subdomain_starts(1)), (6..18, vec![6, 14, 18]));
}

#[test]
fn choices_are_written_as_they_are_read() {
    for text in ["jacobi", "ras:1", "ras:12", "exact:interface", "exact:interface:1"] {
        assert_eq!(text.parse::<Choice>().unwrap().to_string(), text);
    }
    let message = |text: &str| text.parse::<Choice>().unwrap_err().to_string();
    assert_eq!(message("ras"), "unknown schwarz `ras`");
    assert_eq!(message("ras:0"), "schwarz `ras:0`: `0` is outside 1 to 100");
    let more = "schwarz `exact:interface:9`: `9` is outside 0 to 4";
    assert_eq!(message("exact:interface:9"), more);
}
