use std::fmt::Write as _;

use super::*;
use crate::base::status::Status;
use crate::bench::run::solve_sequence;
use crate::case::Guess;
use crate::methods::schwarz::Choice;
use crate::problem::samples;

/// Systems in memory.
struct Memory {
    systems: Vec<(Arc<Csr>, Vec<f64>)>,
    guess: Guess,
    done: Vec<Solved>,
    /// Names of the stages, one behind the other.
    stages: String,
    /// Stops at this step.
    until: usize,
}

impl Memory {
    fn of(systems: Vec<(Arc<Csr>, Vec<f64>)>) -> Self {
        let (done, stages) = (Vec::new(), String::new());
        Self { systems, guess: Guess::Zero, done, stages, until: usize::MAX }
    }
}

impl Steps for Memory {
    fn load(&mut self, step: usize) -> Result<Result<StepSystem, Box<Record>>> {
        let (matrix, b) = self.systems[step].clone();
        let (name, grid) = (format!("step {step}"), Some([3, 3, 3]));
        let problem = Problem { name, matrix, grid, own_rhs: None, remarks: Vec::new() };
        let last = self.done.last().and_then(|solved| solved.x.clone());
        let guess = last.filter(|_| self.guess == Guess::Last);
        Ok(Ok(StepSystem { problem, b, guess }))
    }

    fn stage(&mut self, stage: Stage) -> bool {
        let text = format!("{stage:?} ");
        if !self.stages.ends_with(&text) {
            _ = write!(self.stages, "{text}");
        }
        self.done.len() < self.until
    }

    fn done(&mut self, _: usize, solved: Solved) -> Result<()> {
        self.done.push(solved);
        Ok(())
    }
}

/// A symmetric definite matrix whose values drift from step to step.
fn matrix(step: usize) -> Csr {
    let mut a = samples::matrix("poisson3d:3").as_ref().clone();
    let grown = |i: usize| 1.0 + 0.05 * step as f64 * (1 + i % 3) as f64;
    let (row_ptr, columns) = (a.row_ptr().to_vec(), a.col_ind().to_vec());
    for i in 0..a.rows() {
        for e in row_ptr[i] as usize..row_ptr[i + 1] as usize {
            a.values_mut()[e] *= grown(i) * grown(columns[e] as usize);
        }
    }
    a
}

fn rhs(step: usize) -> Vec<f64> {
    (0..27).map(|i| 1.0 + ((i * 7 + step) % 5) as f64).collect()
}

fn systems(count: usize) -> Vec<(Arc<Csr>, Vec<f64>)> {
    (0..count).map(|step| (Arc::new(matrix(step)), rhs(step))).collect()
}

/// The cases of a sequence.
fn cases(of: &Case, count: usize) -> Vec<Case> {
    let sequence = "d_*.mtx".to_owned();
    let step = |i| Case { matrix: format!("d_{i}.mtx"), sequence: sequence.clone(), ..of.clone() };
    (0..count).map(step).collect()
}

fn run(of: &Case, memory: &mut Memory) -> Result<bool> {
    let cases = cases(of, memory.systems.len());
    solve_sequence(&cases.iter().collect::<Vec<_>>(), &Measure::default(), memory)
}

/// Gauss elimination.
fn solved(a: &Csr, b: &[f64]) -> Vec<f64> {
    let n = b.len();
    let mut m: Vec<Vec<f64>> = (0..n)
        .map(|i| (0..n).map(|j| a.get(i, j).unwrap_or(0.0)).chain([b[i]]).collect())
        .collect();
    for p in 0..n {
        for i in (0..n).filter(|&i| i != p) {
            let f = m[i][p] / m[p][p];
            for j in p..=n {
                m[i][j] -= f * m[p][j];
            }
        }
    }
    (0..n).map(|i| m[i][n] / m[i][i]).collect()
}

/// A case on one device, and over subdomains of one rank.
fn everywhere(of: &Case) -> Vec<Case> {
    let mut cases = vec![of.clone()];
    for schwarz in ["jacobi", "ras:1", "exact:interface", "exact:natural"] {
        let (backend, schwarz) = ("mpi".to_owned(), schwarz.parse().unwrap());
        cases.push(Case { backend, schwarz, subdomains: 3, ..of.clone() });
    }
    cases
}

fn made(memory: &Memory) -> String {
    let name = |solved: &Solved| solved.record.setup_done.map_or("?", SetupDone::name);
    memory.done.iter().map(name).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_preconditioner_is_made_when_it_is_due() {
    let due = |refactor: &str, iterations: &[usize], last_failed: bool| {
        let (refactor, mut lag) = (refactor.parse().unwrap(), Lag::default());
        for (i, &count) in iterations.iter().enumerate() {
            lag.solved(i == 0, count, !(last_failed && i + 1 == iterations.len()));
        }
        lag.is_over(refactor)
    };
    assert!(due("always", &[5], false));
    assert_eq!([1, 2, 3].map(|n| due("every:3", &vec![5; n], false)), [false, false, true]);
    assert_eq!([7, 8].map(|n| due("adaptive:1.5", &[5, n], false)), [false, true]);
    // beside the last one that was made, not the step before
    assert!(due("adaptive:1.5", &[5, 7, 8], false) && !due("adaptive:1.5", &[5, 9, 7], false));
    assert!(!due("adaptive:1.5", &[0, 1], false) && due("adaptive:1.5", &[0, 2], false));
    assert!(due("every:9", &[5, 5], true));
}

#[test]
fn every_step_has_its_own_solution_whatever_is_kept() {
    let of = |precond: &str, solver: &str, deflation: &str| Case {
        precond: precond.into(),
        solver: solver.into(),
        deflation: deflation.parse().unwrap(),
        rtol: 1e-11,
        ..Case::default()
    };
    for (precond, solver, deflation, all) in [
        ("bilu", "gmres", "none", "all numeric numeric numeric"),
        ("jacobi", "bicgstab", "none", "all numeric numeric numeric"),
        ("bilu", "qmr", "none", "all numeric numeric numeric"),
        ("ic", "cg", "subdomain:2x1x1", "all numeric numeric numeric"),
        // their products with A are of the values of their factors
        ("dilu", "gmres", "none", "all numeric numeric numeric"),
        ("dilu", "cg", "none", "all numeric numeric numeric"),
        ("dilu", "bicgstab", "none", "all numeric numeric numeric"),
        ("isai", "gmres", "none", "all analysis analysis analysis"),
        ("spai", "gmres", "none", "all all all all"),
        ("none", "cg", "none", "none none none none"),
    ] {
        let kind = all.split(' ').next_back().unwrap();
        for of in everywhere(&of(precond, solver, deflation)) {
            let over_ranks = of.backend == "mpi";
            let exact = of.schwarz.is_exact();
            if over_ranks && (deflation != "none" || (exact && precond != "bilu"))
                || (solver == "qmr" && of.schwarz != Choice::Jacobi)
            {
                continue;
            }
            // what ranks exchange has a phase
            let kind = if over_ranks && kind == "none" { "numeric" } else { kind };
            let first = if kind == "none" { "none" } else { "all" };
            for (refactor, guess, all) in [
                ("always", Guess::Zero, format!("{first} {kind} {kind} {kind}")),
                ("every:3", Guess::Zero, format!("{first} none none {kind}")),
                ("every:3", Guess::Last, format!("{first} none none {kind}")),
            ] {
                let case = Case { guess, refactor: refactor.parse().unwrap(), ..of.clone() };
                let said = format!("{precond} {refactor} {} {}", case.backend, case.schwarz);
                let mut memory = Memory { guess, ..Memory::of(systems(4)) };
                assert_eq!(run(&case, &mut memory), Ok(true), "{said}");
                for (Solved { record, x }, (a, b)) in memory.done.iter().zip(&memory.systems) {
                    assert_eq!(record.status, Status::Converged, "{said} {:?}", record.reason);
                    let want = solved(a, b);
                    let pairs = x.as_ref().unwrap().iter().zip(&want);
                    let difference = pairs.map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
                    assert!(difference < 1e-8, "{said}");
                }
                assert_eq!(made(&memory), all, "{said}");
            }
        }
    }
}

#[test]
fn phases_are_those_that_a_step_has() {
    let mut memory = Memory::of(systems(3));
    let case = Case { refactor: Refactor::Every(2), ..Case::default() };
    run(&case, &mut memory).unwrap();
    let times: Vec<_> = memory.done.iter().map(|solved| solved.record.times.clone()).collect();
    let has = |t: &crate::record::schema::Times| {
        [t.matrix_s, t.symbolic_s, t.analysis_s, t.numeric_s, t.solve_s].map(|s| s.is_some())
    };
    assert_eq!(has(&times[0]), [true; 5]);
    assert_eq!(has(&times[1]), [true, false, false, false, true]);
    assert_eq!(has(&times[2]), [true, false, false, true, true]);
    assert_eq!((times[1].setup_s, times[2].setup_s), (Some(0.0), times[2].numeric_s));
    assert!(times.iter().all(|t| t.repetitions == 1));
    assert_eq!(
        memory.stages,
        "Storage Symbolic Numeric Solve(1) Storage Solve(2) Storage Numeric Solve(3) "
    );
    // stopped in the second step
    let mut memory = Memory { until: 1, ..Memory::of(systems(3)) };
    assert_eq!((run(&case, &mut memory), memory.done.len()), (Ok(false), 1));
}

#[test]
fn another_pattern_has_every_phase_again_and_a_remark() {
    let mut systems = systems(4);
    // the entries of row 5 but for its diagonal are not stored
    let a = &systems[2].0;
    let (mut row_ptr, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..a.rows() {
        let (cols, row) = a.row(i);
        for (&j, &v) in cols.iter().zip(row).filter(|(j, _)| i != 5 || **j == 5) {
            columns.push(j);
            values.push(v);
        }
        row_ptr.push(columns.len() as u32);
    }
    systems[2].0 = Arc::new(Csr::new(27, 27, row_ptr, columns, values).unwrap());
    let case = Case { rtol: 1e-11, refactor: Refactor::Every(9), ..Case::default() };
    for case in everywhere(&case) {
        let mut memory = Memory::of(systems.clone());
        run(&case, &mut memory).unwrap();
        assert_eq!(made(&memory), "all none all all", "{}", case.schwarz);
        let reasons: Vec<_> = memory.done.iter().map(|s| s.record.reason.as_deref()).collect();
        let said = |step| {
            format!("the pattern is not that of step {step}: symbolic phase and analysis again")
        };
        assert_eq!(reasons, [None, None, Some(&*said(2)), Some(&*said(3))]);
        for (Solved { x, .. }, (a, b)) in memory.done.iter().zip(&memory.systems) {
            let want = solved(a, b);
            let pairs = x.as_ref().unwrap().iter().zip(&want);
            assert!(pairs.map(|(x, y)| (x - y).abs()).fold(0.0, f64::max) < 1e-8);
        }
    }
}

#[test]
fn the_last_solution_is_a_start_whose_tolerance_is_that_from_zero() {
    let same = (0..3).map(|_| (Arc::new(matrix(1)), rhs(1))).collect();
    let mut memory = Memory { guess: Guess::Last, ..Memory::of(same) };
    let case = Case { guess: Guess::Last, rtol: 1e-6, ..Case::default() };
    run(&case, &mut memory).unwrap();
    let of = |i: usize| &memory.done[i].record.convergence;
    assert!(of(0).iterations > 2);
    // nothing is left to do
    assert_eq!((of(1).iterations, of(2).iterations), (0, 0));
    let residual = of(1).monitored_residual.unwrap();
    assert!(residual <= 1e-6 && (residual / of(1).true_residual.unwrap() - 1.0).abs() < 1e-6);
    // from close by it takes less, to the same residual of the system
    for side in [crate::case::Side::Left, crate::case::Side::Right] {
        let near = (0..2).map(|_| (Arc::new(matrix(1)), rhs(1))).collect::<Vec<_>>();
        let near =
            [near[0].clone(), (near[1].0.clone(), near[1].1.iter().map(|v| v * 1.01).collect())];
        let count = |guess| {
            let mut memory = Memory { guess, ..Memory::of(near.to_vec()) };
            run(&Case { guess, side, rtol: 1e-8, ..Case::default() }, &mut memory).unwrap();
            let convergence = memory.done[1].record.convergence.clone();
            assert_eq!(memory.done[1].record.status, Status::Converged);
            assert!(convergence.true_residual.unwrap() < 1e-7, "{convergence:?}");
            assert!(convergence.monitored_residual.unwrap() <= 1e-8, "{convergence:?}");
            convergence.iterations
        };
        assert!(count(Guess::Last) < count(Guess::Zero), "{side:?}");
    }
}

#[test]
fn a_singular_step_is_a_row_and_the_next_begins_anew() {
    let mut systems = systems(3);
    let a = Arc::make_mut(&mut systems[1].0);
    a.values_mut().fill(0.0);
    for case in everywhere(&Case::default()) {
        let mut memory = Memory::of(systems.clone());
        run(&case, &mut memory).unwrap();
        let status: Vec<Status> = memory.done.iter().map(|s| s.record.status).collect();
        assert_eq!(status, [Status::Converged, Status::Breakdown, Status::Converged]);
        assert_eq!(made(&memory), "all ? all", "{}", case.schwarz);
    }
}

#[test]
fn a_step_of_another_size_ends_the_sequence_with_its_name() {
    let mut systems = systems(3);
    systems[1] = (samples::matrix("poisson3d:2"), vec![1.0; 8]);
    for case in everywhere(&Case::default()) {
        let mut memory = Memory::of(systems.clone());
        let error = run(&case, &mut memory).unwrap_err();
        let said = "d_1.mtx: step 2 of the sequence has 8 unknowns, step 1 has 27";
        assert_eq!((&*error.to_string(), memory.done.len()), (said, 1));
    }
}
