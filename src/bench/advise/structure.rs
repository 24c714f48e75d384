//! What the matrix itself says about the settings that are worth a trial.

use crate::base::threads::Threads;
use crate::methods::precond::search;
use crate::problem::info::Info;
use crate::problem::{Problem, info};
use crate::symbolic::ordering::{self, Ordering};

/// What is seen without solving.
#[derive(Clone, Debug)]
pub struct Structure {
    /// Sizes, symmetry, blocks, grid.
    pub info: Info,
    /// Whether the values are symmetric but for rounding.
    pub symmetric: bool,
    /// Whether a symmetric matrix may be definite: every diagonal entry has the same sign and is not
    /// zero.
    pub maybe_definite: bool,
    /// Largest over smallest magnitude on the diagonal; infinite with a zero there.
    pub contrast: f64,
    /// Why block ILU(0) is not fit for use as it is, if it is not.
    pub(crate) fault: Option<String>,
    /// Orderings that change something and that the system has, natural order first.
    pub orderings: Vec<Ordering>,
}

impl Structure {
    /// Analyses a system; differences below the tolerance count as symmetric ([`crate::matrix::Csr::asymmetry_beyond`]).
    pub fn of(problem: &Problem, symmetry_tolerance: f64) -> Self {
        let a = &*problem.matrix;
        let info = info::inspect(a);
        let diagonal: Vec<f64> = Threads::Pool.map(a.rows(), 1, |i| a.get(i, i).unwrap_or(0.0));
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for v in diagonal.iter().map(|v| v.abs()) {
            (low, high) = (low.min(v), high.max(v));
        }
        let symmetric = a.asymmetry_beyond(symmetry_tolerance).is_none();
        let one_sign = diagonal.iter().all(|&v| v > 0.0) || diagonal.iter().all(|&v| v < 0.0);
        let orderings = orderings(problem, info.block.size);
        let contrast = if low > 0.0 { high / low } else { f64::INFINITY };
        let fault = search::fault(&a.in_blocks(info.block.size), symmetry_tolerance);
        let maybe_definite = symmetric && one_sign;
        Self { info, symmetric, maybe_definite, contrast, fault, orderings }
    }

    /// Block sizes worth a trial, the natural one first: small ones where there is none, since a block
    /// needs one index only.
    pub(crate) fn block_sizes(&self) -> Vec<usize> {
        match self.info.block.size {
            1 => [1, 2, 4].into_iter().filter(|&b| 8 * b <= self.info.n.max(8)).collect(),
            natural => vec![natural, 1],
        }
    }

    /// Whether the blocks are coupled as the points of a box and not otherwise.
    pub(crate) fn is_grid(&self) -> bool {
        self.info.grid.is_some_and(|grid| grid.others == 0)
    }

    /// One line for people.
    pub(crate) fn describe(&self) -> String {
        let Info { n, nnz, block, grid, diagonal, symmetry, .. } = &self.info;
        let blocks = match block.size {
            1 => "no blocks".to_owned(),
            b => format!("blocks of {b}, {:.0} % full", 100.0 * block.fill),
        };
        let symmetry = match (self.symmetric, symmetry.pattern == 1.0) {
            (true, _) if self.maybe_definite => "symmetric, perhaps definite",
            (true, _) => "symmetric, not definite",
            (false, true) => "symmetric pattern, unsymmetric values",
            (false, false) => "unsymmetric pattern",
        };
        let grid = match grid {
            Some(grid) => {
                let [x, y, z] = grid.size;
                let others = if grid.others > 0 { " with wells" } else { "" };
                format!("grid of {x} x {y} x {z}{others}")
            }
            None => "no grid".into(),
        };
        let without = diagonal.missing + diagonal.zero;
        let contrast = match without {
            0 => format!("diagonal contrast {:.0e}", self.contrast),
            _ => format!("{without} rows without a diagonal entry"),
        };
        let dominant = 100.0 * diagonal.dominant_rows as f64 / (*n).max(1) as f64;
        let fault = self.fault.as_ref().map(|why| format!(", no plain ILU(0): {why}"));
        format!(
            "n = {n}, nnz = {nnz}, {blocks}, {symmetry}, {grid}, {contrast}, {dominant:.0} % \
             dominant rows{}",
            fault.unwrap_or_default()
        )
    }
}

/// The orderings of `problem` that are none of the ones before.
fn orderings(problem: &Problem, b: usize) -> Vec<Ordering> {
    let natural = Ordering::default();
    let mut found: Vec<(Ordering, Vec<u32>)> =
        problem.order(natural, b).map(|order| (natural, order)).into_iter().collect();
    let mut needless: Vec<&str> = Vec::new();
    for (ordering, instead_of) in ordering::advised() {
        if needless.contains(&ordering.name()) {
            continue;
        }
        let Ok(order) = problem.order(ordering, b) else { continue };
        if found.iter().all(|(_, known)| *known != order) {
            found.push((ordering, order));
            needless.extend(instead_of);
        }
    }
    found.into_iter().map(|(ordering, _)| ordering).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::SYMMETRY_TOLERANCE;
    use crate::problem::samples::problem;

    fn of(spec: &str) -> Structure {
        Structure::of(&problem(spec), SYMMETRY_TOLERANCE)
    }

    #[test]
    fn what_a_poisson_grid_shows() {
        let s = of("poisson3d:6x5x7");
        assert!(s.symmetric && s.maybe_definite && s.is_grid());
        assert_eq!((s.contrast, s.block_sizes()), (1.0, vec![1, 2, 4]));
        let names: Vec<&str> = s.orderings.iter().map(|o| o.name()).collect();
        assert_eq!(
            names,
            [
                "natural",
                "shortest-axis-last",
                "rcm",
                "red-black",
                "nested-dissection",
                "min-degree"
            ]
        );
        assert_eq!(
            s.describe(),
            "n = 210, nnz = 1256, no blocks, symmetric, perhaps definite, grid of 6 x 5 x 7, \
             diagonal contrast 1e0, 100 % dominant rows"
        );
    }

    #[test]
    fn what_blocks_and_planes_show() {
        let s = of("blockpoisson3d:4,b=3");
        assert_eq!(s.block_sizes(), [3, 1]);
        let s = of("fem-p1:12x9");
        assert!(s.orderings.iter().any(|o| o.name() == "multicolour") && !s.is_grid());
        assert!(s.orderings.iter().all(|o| o.name() != "red-black"));
    }
}
