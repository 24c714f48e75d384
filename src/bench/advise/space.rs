//! The settings that a search varies, and which of their combinations have a meaning.

use itertools::Itertools as _;

use crate::base::error::{Error, Result};
use crate::base::parse::choice_name;
use crate::bench::advise::structure::Structure;
use crate::case::{Case, Execution, RunKind, Trisolve};
use crate::compute;
use crate::config::sweep::{Axis, axis};
use crate::config::{AXES, Sweep};
use crate::methods::precond::{Shape, Takes};
use crate::methods::{precond, solver};

/// Most combinations that a space may have.
const MOST_POINTS: usize = 50_000;

/// A setting and the values that are tried.
#[derive(Clone, Debug)]
pub(crate) struct Knob {
    pub axis: &'static Axis,
    /// Its values as words, the first is the plain one.
    pub values: Vec<String>,
}

/// A combination: for each knob the number of its value.
pub(crate) type Point = Vec<usize>;

/// All combinations.
#[derive(Clone, Debug)]
pub struct Space {
    base: Case,
    knobs: Vec<Knob>,
    symmetric: bool,
    grid: bool,
}

/// Settings on which the meaning of others depends.
const FIRST: &[&str] = &["precond", "backend", "solver", "fill"];

impl Space {
    /// The space of a system. `fixed` replaces the values of settings, or adds settings; matrix and
    /// right-hand side are those of `base`.
    ///
    /// # Errors
    /// When a value is out of range.
    pub fn new(
        base: Case,
        structure: &Structure,
        backends: &[&str],
        fixed: &Sweep,
    ) -> Result<Self> {
        let words = |list: &[&str]| list.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let preconds = precond::advised(&base.precond, structure.symmetric, structure.is_grid());
        let solvers = solver::advised(structure.maybe_definite, structure.symmetric);
        let mut trisolves = vec![Trisolve::AUTO];
        if backends.contains(&"cuda") {
            trisolves.extend(Trisolve::which(|about| about.advised));
        }
        let executions: &[&str] = if backends.iter().any(|name| compute::on_gpu(name)) {
            &["fused", "graph", "persistent"]
        } else {
            &["fused"]
        };
        let orderings = structure.orderings.iter().map(ToString::to_string).collect();
        let blocks = structure.block_sizes().iter().map(ToString::to_string).collect();
        let mut wanted: Vec<(&str, Vec<String>)> = vec![
            ("precond", preconds),
            ("fill", words(&["0", "1", "2", "3"])),
            ("block-size", blocks),
            ("solver", words(&solvers)),
            ("backend", words(backends)),
            ("ordering", orderings),
            ("level-rule", words(&["min", "overwrite"])),
            ("restart", words(&["30", "60"])),
            ("factor-precision", words(&["float64", "float32"])),
            ("trisolve", trisolves.iter().map(choice_name).collect()),
            ("execution", words(executions)),
        ];
        if structure.fault.is_some() {
            wanted.push(("scaling", words(&["none", "ruiz"])));
            wanted.push(("shift", words(&["search"])));
        }
        let mut knobs = Vec::new();
        for axis in AXES.iter().filter(|axis| axis.is_given(fixed)) {
            let cases = Sweep::default().overridden_by(fixed).cases()?;
            let values = cases.iter().map(axis.text).unique().collect();
            knobs.push(Knob { axis, values });
        }
        for (name, values) in wanted {
            let axis = axis(name)?;
            if !axis.is_given(fixed) {
                knobs.push(Knob { axis, values });
            }
        }
        // what others depend on comes first
        let rank = |knob: &Knob| FIRST.iter().position(|name| *name == knob.axis.name);
        knobs.sort_by_key(|knob| rank(knob).unwrap_or(FIRST.len()));
        let (symmetric, grid) = (structure.symmetric, structure.info.grid.is_some());
        Ok(Self { base, knobs, symmetric, grid })
    }

    pub(crate) fn knobs(&self) -> &[Knob] {
        &self.knobs
    }

    /// Every combination that has a meaning.
    ///
    /// # Errors
    /// When there are none, or too many.
    pub fn points(&self) -> Result<Vec<Point>> {
        let mut points = vec![vec![0; self.knobs.len()]];
        for (k, knob) in self.knobs.iter().enumerate() {
            for at in 0..points.len() {
                if knob.values.len() > 1 && self.case(&points[at]).uses_named(knob.axis.name) {
                    for value in 1..knob.values.len() {
                        let mut point = points[at].clone();
                        point[k] = value;
                        points.push(point);
                    }
                }
            }
            if points.len() > 10 * MOST_POINTS {
                break;
            }
        }
        points.retain(|p| self.possible(&self.case(p)));
        if points.is_empty() || points.len() > MOST_POINTS {
            let count = points.len();
            return Err(Error::input(format!("{count} combinations of settings to try"))
                .hint("change what --set allows"));
        }
        Ok(points)
    }

    /// The case of a combination.
    pub fn case(&self, point: &[usize]) -> Case {
        let mut sweep = Sweep::default();
        for (knob, &value) in self.knobs.iter().zip(point) {
            let word = std::slice::from_ref(&knob.values[value]);
            knob.axis.set(&mut sweep, word).expect("a value that was read before");
        }
        let made = sweep.cases().ok().and_then(|cases| cases.into_iter().next());
        let made = made.expect("one value for each setting");
        let Case { matrix, read_as, rhs, .. } = self.base.clone();
        Case { matrix, read_as, rhs, ..made }
    }

    /// Every setting at its plain value.
    pub(super) fn plain(&self) -> Case {
        self.case(&vec![0; self.knobs.len()])
    }

    /// The combination that differs from `point` by one value, with the settings that have lost their
    /// meaning at their plain values; `None` where that is none.
    pub fn moved(&self, point: &[usize], knob: usize, value: usize) -> Option<Point> {
        let mut moved = point.to_vec();
        moved[knob] = value;
        if !self.case(&moved).uses_named(self.knobs[knob].axis.name) {
            return None;
        }
        for (k, other) in self.knobs.iter().enumerate() {
            if moved[k] != 0 && !self.case(&moved).uses_named(other.axis.name) {
                moved[k] = 0;
            }
        }
        (moved != point && self.possible(&self.case(&moved))).then_some(moved)
    }

    /// Whether the methods of a case suit each other and the matrix.
    fn possible(&self, case: &Case) -> bool {
        let taken = match precond::takes(&case.precond) {
            Some(Takes::Grid) => self.grid && case.ordering.keeps_grids(),
            Some(Takes::Symmetric) => self.symmetric,
            Some(Takes::Any) | None => true,
        };
        let symmetric = self.symmetric && precond::symmetric(&case.precond);
        let transposed = precond::transposable(&case.precond);
        let replays = solver::replays(&case.solver);
        let shape = precond::shape(&case.precond);
        // one kernel solves with triangles in its own way
        let suited = shape != Shape::Triangles
            || case.trisolve == Trisolve::AUTO
            || case.trisolve.is(|about| about.resident_block > 0);
        let executed = match case.execution {
            Execution::Fused | Execution::Calls => true,
            Execution::Graph => replays,
            Execution::Persistent => suited && solver::is_persistent(&case.solver, shape),
        };
        case.kind == RunKind::Solve
            && taken
            && executed
            && (symmetric || !solver::needs_symmetric(&case.solver))
            && (transposed || !solver::needs_transposed(&case.solver))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::case::Setting;
    use crate::matrix::SYMMETRY_TOLERANCE;
    use crate::problem::samples::problem;

    /// The settings for the system `spec` on one thread where those of `fixed` have but these values.
    pub(crate) fn space(spec: &str, fixed: &[(&str, &str)]) -> Space {
        let structure = Structure::of(&problem(spec), SYMMETRY_TOLERANCE);
        let mut sweep = Sweep::default();
        for (name, words) in fixed {
            axis(name).unwrap().set(&mut sweep, &[(*words).to_owned()]).unwrap();
        }
        let base = Case { matrix: spec.into(), ..Case::default() };
        Space::new(base, &structure, &["cpu"], &sweep).unwrap()
    }

    #[test]
    fn combinations_that_are_the_same_or_impossible_are_left_out() {
        let space = space(
            "convdiff3d:6,px=0.3",
            &[
                ("precond", "jacobi,bilu"),
                ("fill", "0..1"),
                ("block-size", "1"),
                ("ordering", "natural"),
            ],
        );
        let cases: Vec<Case> = space.points().unwrap().iter().map(|p| space.case(p)).collect();
        let jacobi = cases.iter().filter(|c| c.precond == "jacobi").count();
        // bicgstab, gmres with two restarts; two precisions of the diagonal
        assert_eq!(jacobi, 3 * 2);
        // k = 0, k = 1 by two rules; two precisions
        assert_eq!(cases.len() - jacobi, 3 * 3 * 2);
        assert!(cases.iter().all(|c| c.solver != "cg" && c.matrix == "convdiff3d:6,px=0.3"));
    }

    #[test]
    fn a_move_takes_what_depends_on_it_along() {
        let space = space("poisson3d:6", &[("precond", "bilu,jacobi"), ("fill", "0..2")]);
        let at = |name: &str| space.knobs().iter().position(|k| k.axis.name == name).unwrap();
        let mut point = vec![0; space.knobs().len()];
        (point[at("fill")], point[at("level-rule")], point[at("ordering")]) = (2, 1, 1);
        let jacobi = space.moved(&point, at("precond"), 1).unwrap();
        let case = space.case(&jacobi);
        assert_eq!((case.precond.as_str(), case.fill), ("jacobi", 0));
        assert!(case.ordering.is_natural() && jacobi[at("level-rule")] == 0);
        let flat = space.case(&space.moved(&point, at("fill"), 0).unwrap());
        assert!(flat.fill == 0 && flat.level_rule == crate::case::LevelRule::Min);
        assert_eq!(space.moved(&jacobi, at("fill"), 1), None);
    }

    #[test]
    fn symmetric_grids_have_methods_of_their_own() {
        let names = |spec: &str| -> Vec<String> {
            let space = space(spec, &[]);
            let precond = space.knobs().iter().find(|k| k.axis.name == "precond").unwrap();
            precond.values.clone()
        };
        assert!(
            ["ic", "fsai", "fgbilu"].iter().all(|p| names("poisson3d:5").contains(&(*p).into()))
        );
        assert!(
            ["ic", "fsai"].iter().all(|p| !names("convdiff3d:5,px=0.3").contains(&(*p).into()))
        );
    }

    #[test]
    fn every_ordering_is_tried_with_what_uses_it() {
        for spec in ["poisson3d:6x5x7", "convdiff3d:6x5x7,px=0.3"] {
            let space = space(spec, &[]);
            let knob = |name: &str| space.knobs().iter().find(|k| k.axis.name == name).unwrap();
            let orderings = &knob("ordering").values;
            assert!(orderings.len() >= 5, "{orderings:?}");
            let cases: Vec<Case> = space.points().unwrap().iter().map(|p| space.case(p)).collect();
            for precond in &knob("precond").values {
                let with = |ordering: &&String| {
                    let mut of = cases.iter().filter(|case| case.precond == *precond);
                    of.any(|case| case.ordering.to_string() == **ordering)
                };
                let found: Vec<&String> = orderings.iter().filter(with).collect();
                let expected = match precond::uses(precond, Setting::Ordering) {
                    // the grid is in the order of the unknowns
                    _ if precond::takes(precond) == Some(Takes::Grid) => &orderings[..2],
                    Some(true) => &orderings[..],
                    _ => &orderings[..1],
                };
                assert_eq!(found, expected.iter().collect::<Vec<_>>(), "{precond} of {spec}");
            }
            let orderings_of_meilu = precond::uses("meilu", Setting::Ordering);
            assert_eq!(orderings_of_meilu, Some(true));
        }
    }
}
