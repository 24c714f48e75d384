//! Deflation against what it promises.

use super::*;
use crate::base::threads::Threads;
use crate::case::Case;
use crate::compute::cpu::Cpu;
use crate::compute::krylov::{Outcome, Projection, Settings, Stop, System};
use crate::compute::{Storage as _, Vectors as _};
use crate::methods::precond::Setup;
use crate::methods::{precond, solver};
use crate::problem::samples::{centred, problem};
use crate::problem::{Problem, right_hand_side};

fn vectors(p: &Problem, choice: &str, b: usize) -> Vectors {
    Vectors::new(Threads::One, choice.parse().unwrap(), &p.matrix.in_blocks(b), p.grid).unwrap()
}

/// Sums of `v` over the pieces.
fn pieces(vectors: &Vectors, v: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; vectors.count];
    for (&of, v) in vectors.of.iter().zip(v).filter(|(of, _)| **of != vectors::NONE) {
        sums[of as usize] += v;
    }
    sums
}

const PROBLEMS: [(&str, &str, usize); 6] = [
    ("bubbly:16,bubbles=3,radius=0.12", "subdomain:2", 1),
    ("bubbly:16,bubbles=3,radius=0.12,boundary=neumann", "levelset-subdomain:2", 1),
    ("layered:9x8x16,layers=8,contrast=1e7", "levelset", 1),
    ("poisson3d:18", "subdomain:9", 1), // sparse E
    ("convdiff3d:12x11x10,px=0.3", "subdomain:3x2x2", 1),
    ("blockpoisson3d:6x5x4,b=3", "subdomain:2", 3),
];

/// `Z' P r = 0`, `P A Z = 0` and `P (P r) = P r`, to rounding of what was there before.
#[test]
fn what_is_projected_has_no_part_in_the_vectors() {
    for (spec, choice, b) in PROBLEMS {
        let p = problem(spec);
        let z = vectors(&p, choice, b);
        for k in [Cpu::sequential(), Cpu::parallel(Some(2)).unwrap()] {
            let d = Deflation::new(&k, &p.matrix, &z).unwrap();
            let n = p.matrix.rows();
            let mut v = k.vector(n).unwrap();
            v.copy_from_slice(&centred(n));
            let size = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
            let before = size(&pieces(&z, &v));
            d.project(&k, &mut v);
            let after = size(&pieces(&z, &v));
            assert!(after < 1e-9 * before, "{spec} {choice}: {after:.1e} of {before:.1e}");
            let once = v.to_vec();
            d.project(&k, &mut v);
            let change: Vec<f64> = once.iter().zip(&*v).map(|(a, b)| a - b).collect();
            assert!(size(&change) < 1e-9 * size(&once), "{spec} {choice}");
            // the first vector's image vanishes
            let of: Vec<f64> = z.of.iter().map(|&of| f64::from(u8::from(of == 0))).collect();
            let mut image = vec![0.0; n];
            p.matrix.multiply(&of, &mut image);
            v.copy_from_slice(&image);
            d.project(&k, &mut v);
            assert!(size(&v) < 1e-9 * size(&image), "{spec} {choice}: {:.1e}", size(&v));
        }
    }
}

/// Solves with CG, or with `method` and the adapted preconditioner.
fn solve(
    p: &Problem,
    case: &Case,
    rhs: &[f64],
    watch: &mut dyn crate::compute::krylov::Monitor,
) -> (Outcome, f64) {
    let k = Cpu::sequential();
    let a = &Arc::new(p.matrix.in_blocks(case.block_size));
    let n = a.rows();
    let setup = precond::lookup::<Cpu>(&case.precond).unwrap();
    let m = setup(Setup { k: &k, a, settings: &case.preconditioning(), phases: &mut () })
        .unwrap_or_else(|e| panic!("{e:?}"));
    let matrix = k.matrix(a, case.format).unwrap();
    let z = Vectors::new(Threads::One, case.deflation, a, p.grid).unwrap();
    let deflation = (z.count > 0).then(|| Deflation::new(&k, a, &z).unwrap());
    let (mut b, mut x) = (k.vector(n).unwrap(), k.vector(n).unwrap());
    b.copy_from_slice(rhs);
    let stop = Stop { rtol: case.rtol, max_iterations: case.max_iterations, time_limit_s: None };
    let settings = Settings { restart: 30, ..case.solver_settings(stop) };
    let build = solver::lookup::<Cpu>(&case.solver).unwrap();
    let mut method = build(&k, &settings, n).unwrap();
    let scratch = RefCell::new(k.vector(n).unwrap());
    let adapted = deflation.as_ref().map(|deflation| Adapted { m: &*m, deflation, scratch });
    let outcome = match &adapted {
        Some(both) if case.solver != "cg" => {
            let s = System { a: &matrix, m: both, b: &b, transposed: None, deflation: None };
            method.solve(&k, &s, &mut x, watch)
        }
        _ => {
            let deflation = deflation.as_ref().map(|d| d as &dyn Projection<Cpu>);
            let s = System { a: &matrix, m: &*m, b: &b, transposed: None, deflation };
            method.solve(&k, &s, &mut x, watch)
        }
    };
    let mut ax = vec![0.0; n];
    a.multiply(&x, &mut ax);
    let size = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>().sqrt();
    let residual = size(&mut rhs.iter().zip(&ax).map(|(b, a)| b - a));
    (outcome, residual / size(&mut rhs.iter().copied()))
}

/// A preconditioner that looks at the residuals it is given.
struct Watching<'a> {
    m: &'a dyn Preconditioner<Cpu>,
    vectors: &'a Vectors,
    /// Size of `Z' r`, and of r added up piece by piece without signs.
    seen: RefCell<Vec<[f64; 2]>>,
}

impl Preconditioner<Cpu> for Watching<'_> {
    fn apply(
        &self,
        k: &Cpu,
        r: &<Cpu as crate::compute::Vectors>::Vector,
        z: &mut <Cpu as crate::compute::Vectors>::Vector,
    ) {
        let size = |v: &[f64]| v.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        let unsigned: Vec<f64> = r.iter().map(|v| v.abs()).collect();
        let sizes = [&r[..], &unsigned].map(|v| size(&pieces(self.vectors, v)));
        self.seen.borrow_mut().push(sizes);
        self.m.apply(k, r, z);
    }
}

/// Layers that boxes cut: E is nearly singular.
const JUMPS: &str = "layered:15x16x32,layers=16,contrast=1e7";

/// The residuals of deflated gradients have no part in the vectors at any iteration.
#[test]
fn no_residual_of_a_solve_has_a_part_in_the_vectors() {
    let k = Cpu::sequential();
    for (spec, choice, bound) in [
        ("bubbly:16,bubbles=3,radius=0.12", "subdomain:4", 1e-9),
        ("bubbly:16,bubbles=3,radius=0.12", "levelset-subdomain:2", 1e-9),
        ("layered:9x8x16,layers=8,contrast=1e3", "levelset", 1e-9),
        ("poisson3d:18", "subdomain:9", 1e-9), // sparse E
        // E nearly singular, dense and sparse
        (JUMPS, "subdomain:4", 1e-6),
        (JUMPS, "subdomain:9", 1e-6),
    ] {
        let p = problem(spec);
        let (a, n) = (&p.matrix, p.matrix.rows());
        let z = vectors(&p, choice, 1);
        let deflation = Deflation::new(&k, a, &z).unwrap();
        let case = case("mcsgs", choice);
        let setup = precond::lookup::<Cpu>("mcsgs").unwrap();
        let m = setup(Setup { k: &k, a, settings: &case.preconditioning(), phases: &mut () })
            .unwrap_or_else(|e| panic!("{e:?}"));
        let m = Watching { m: &*m, vectors: &z, seen: RefCell::default() };
        let matrix = k.matrix(a, Format::Auto).unwrap();
        let (mut b, mut x) = (k.vector(n).unwrap(), k.vector(n).unwrap());
        b.copy_from_slice(&centred(n));
        let stop = Stop { rtol: 1e-8, max_iterations: 3000, time_limit_s: None };
        let settings = case.solver_settings(stop);
        let mut cg = solver::lookup::<Cpu>("cg").unwrap()(&k, &settings, n).unwrap();
        let deflation: Option<&dyn Projection<Cpu>> = Some(&deflation);
        let s = System { a: &matrix, m: &m, b: &b, transposed: None, deflation };
        let outcome = cg.solve(&k, &s, &mut x, &mut ());
        assert_eq!(outcome.end, crate::compute::krylov::SolveEnd::Converged);
        let seen = m.seen.into_inner();
        assert_eq!(seen.len(), outcome.iterations);
        // rounding is that of the residual which the others were made of
        let worst = seen.iter().fold(0.0_f64, |m, [part, _]| m.max(*part)) / seen[0][1];
        assert!(worst < bound, "{spec} {choice}: {worst:.1e}");
        // and small beside the residual itself
        let worst = seen.iter().fold(0.0_f64, |m, [part, all]| m.max(part / all));
        assert!(worst < 1e-2, "{spec} {choice}: {worst:.1e} of a residual");
    }
}

fn case(precond: &str, deflation: &str) -> Case {
    Case {
        precond: precond.into(),
        solver: "cg".into(),
        deflation: deflation.parse().unwrap(),
        rtol: 1e-8,
        max_iterations: 3000,
        ..Case::default()
    }
}

#[test]
fn deflated_gradients_solve_the_system() {
    for (spec, deflation) in [
        ("bubbly:16,bubbles=3,radius=0.12", "subdomain:4"),
        ("bubbly:16,bubbles=3,radius=0.12", "levelset-subdomain:2"),
        ("bubbly:16,bubbles=3,radius=0.12,boundary=neumann", "subdomain:2"),
        ("layered:9x8x16,layers=8,contrast=1e3", "levelset"),
    ] {
        let p = problem(spec);
        let rhs = p.own_rhs.clone().unwrap();
        for precond in ["jacobi", "ic", "mcsgs", "tns"] {
            let plain = solve(&p, &case(precond, "none"), &rhs, &mut ()).0;
            let (outcome, residual) = solve(&p, &case(precond, deflation), &rhs, &mut ());
            assert_eq!(
                outcome.end,
                crate::compute::krylov::SolveEnd::Converged,
                "{spec} {precond} {deflation}"
            );
            assert!(residual < 1e-7, "{spec} {precond} {deflation}: {residual:.1e}");
            assert!(
                outcome.iterations < plain.iterations,
                "{spec} {precond}: {outcome:?}, {plain:?}"
            );
        }
    }
}

#[test]
fn a_contrast_of_ten_million_takes_a_third_of_the_iterations() {
    let p = problem("layered:15x16x32,layers=16,contrast=1e7");
    let rhs = right_hand_side(&p, "ones").unwrap();
    for precond in ["jacobi", "ic", "mcilu", "fsai"] {
        let plain = solve(&p, &case(precond, "none"), &rhs, &mut ()).0;
        let (outcome, residual) = solve(&p, &case(precond, "levelset"), &rhs, &mut ());
        assert_eq!(outcome.end, crate::compute::krylov::SolveEnd::Converged);
        assert!(residual < 1e-6, "{precond}: {residual:.1e}");
        let (with, without) = (outcome.iterations, plain.iterations);
        assert!(3 * with <= without, "{precond}: {with} of {without} iterations, {:?}", plain.end);
    }
}

/// Where a residual is projected once alone, all but one of these end with a negative (p, P A p).
#[test]
fn boxes_that_cut_layers_break_nothing_down() {
    let p = problem(JUMPS);
    let rhs = right_hand_side(&p, "ones").unwrap();
    for precond in ["jacobi", "mcsgs", "bilu"] {
        let on = |deflation| {
            let case = Case { rtol: 1e-6, ..case(precond, deflation) };
            solve(&p, &case, &rhs, &mut ())
        };
        let plain = on("none").0;
        // boxes, a sparse E, and pieces of the layers
        for (deflation, part) in [
            ("subdomain:2", 1.1),
            ("subdomain:4", 0.5),
            ("subdomain:9", 0.25),
            ("levelset-subdomain:2", 0.2),
        ] {
            let (outcome, residual) = on(deflation);
            assert_eq!(
                outcome.end,
                crate::compute::krylov::SolveEnd::Converged,
                "{precond} {deflation}"
            );
            assert!(residual < 5e-6, "{precond} {deflation}: {residual:.1e}");
            let (with, without) = (outcome.iterations as f64, plain.iterations as f64);
            assert!(with <= part * without, "{precond} {deflation}: {with} of {without}");
            let remark = outcome.remark.unwrap();
            assert!(remark.contains("residuals are projected again"), "{remark}");
        }
    }
}

/// Vectors that fit the layers, and those of bubbles, whose E has a small eigenvalue that no residual sees,
/// take the same steps as ever.
#[test]
fn what_is_projected_well_is_projected_once() {
    for (spec, rhs, deflation, iterations) in [
        (JUMPS, "ones", "levelset", 30),
        ("bubbly:32,bubbles=8,radius=0.12", "own", "subdomain:4", 92),
        ("bubbly:32,bubbles=8,radius=0.12", "own", "levelset-subdomain:2", 30),
    ] {
        let p = problem(spec);
        let rhs = right_hand_side(&p, rhs).unwrap();
        let case = Case { rtol: 1e-6, ..case("mcsgs", deflation) };
        let outcome = solve(&p, &case, &rhs, &mut ()).0;
        assert_eq!(
            (outcome.end, outcome.remark),
            (crate::compute::krylov::SolveEnd::Converged, None),
            "{spec}"
        );
        assert_eq!(outcome.iterations, iterations, "{spec} {deflation}");
    }
}

/// Nor does a tolerance below what double precision can reach: the monitored residual gets there.
#[test]
fn tolerances_beyond_reach_break_nothing_down() {
    let p = problem(JUMPS);
    let rhs = right_hand_side(&p, "ones").unwrap();
    for deflation in ["levelset", "subdomain:2", "subdomain:4", "levelset-subdomain:2"] {
        let case = Case { rtol: 1e-10, ..case("mcsgs", deflation) };
        let (outcome, residual) = solve(&p, &case, &rhs, &mut ());
        assert_eq!(outcome.end, crate::compute::krylov::SolveEnd::Converged, "{deflation}");
        assert!(residual < 5e-6, "{deflation}: {residual:.1e}");
    }
}

#[test]
fn other_methods_take_both_levels_as_one() {
    let p = problem("layered:9x8x16,layers=8,contrast=1e5");
    let rhs = right_hand_side(&p, "ones").unwrap();
    for solver in ["gmres", "bicgstab"] {
        let on = |deflation| {
            let case = Case { solver: solver.into(), ..case("bilu", deflation) };
            solve(&p, &case, &rhs, &mut ())
        };
        let ((plain, _), (outcome, residual)) = (on("none"), on("levelset"));
        assert_eq!(outcome.end, crate::compute::krylov::SolveEnd::Converged, "{solver}");
        assert!(
            residual < 1e-7 && outcome.iterations < plain.iterations,
            "{solver}: {residual:.1e}"
        );
    }
}
