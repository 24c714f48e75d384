//! Block ILU factors and the solves with them, in every algorithm.

use std::cmp::Ordering;
use std::sync::Arc;

use rand::Rng;

use super::operations::{Request, pattern, pattern_by, solve_with};
use super::patterns::{self, Columns};
use super::{Bench, SINGLE_LIMIT, SOLVE_LIMIT};
use crate::base::error::{Kind, Result};
use crate::case::{FactorPrecision, LevelRule, ReadAs, Trisolve};
use crate::compute::{Backend, Breakdown};
use crate::matrix::Csr;
use crate::problem;
use crate::symbolic::FillPattern;
use crate::symbolic::stencil::coordinates;

/// Whether a cell is coupled to a neighbour that is so ordered to it.
type Coupled = fn(Ordering) -> bool;

/// Boxes of which a triangle is empty.
const HALVES: [(&str, Coupled); 2] =
    [("lower half of a box", Ordering::is_lt), ("upper half of a box", Ordering::is_gt)];

impl<K: Backend + 'static> Bench<'_, K> {
    /// Solves with a matrix in each of the `algorithms`, compared with the sequential solve.
    fn solves(
        &mut self,
        name: &str,
        a: &Csr,
        fill: usize,
        precision: FactorPrecision,
        algorithms: &[Trisolve],
    ) -> Result<()> {
        let pattern = pattern(a, fill);
        self.solves_on(&pattern, name, a, fill, precision, algorithms)
    }

    /// The same with factors on a pattern that has more entries than those of `a` and their fill.
    fn solves_on(
        &mut self,
        pattern: &Arc<FillPattern>,
        name: &str,
        a: &Csr,
        fill: usize,
        precision: FactorPrecision,
        algorithms: &[Trisolve],
    ) -> Result<()> {
        let r = self.random(a.rows());
        let limit = match precision {
            FactorPrecision::Float64 => SOLVE_LIMIT,
            _ => SINGLE_LIMIT,
        };
        let request = |algorithm| Request { pattern, algorithm, precision };
        let want = solve_with(&self.cpu, a, &request(Trisolve::AUTO), &r)?;
        for &algorithm in algorithms {
            let got = solve_with(self.k, a, &request(algorithm), &r)?;
            let (b, bits) = (pattern.block_size(), 8 * precision.bytes());
            let check = format!("{name}, ILU({fill}) {algorithm:?}, b {b}, factors of {bits} bits");
            self.found(check, &got, &want, limit);
        }
        Ok(())
    }

    /// Any pattern.
    pub(super) fn triangles(&mut self, algorithms: &[Trisolve]) -> Result<()> {
        self.factors(algorithms)?;
        self.reservoirs(algorithms)?;
        self.patterns(algorithms)?;
        self.empty_triangles(algorithms)?;
        self.long_chain(algorithms)?;
        self.single(algorithms)?;
        self.singular(algorithms)
    }

    /// Grids whose last rows are those of wells, after a short step of time: after long ones the solution
    /// grows so much that rounding alone makes more of a difference than is allowed. Rows that are shifted by
    /// half a block have singular blocks on the diagonal, so those have no factors.
    fn reservoirs(&mut self, algorithms: &[Trisolve]) -> Result<()> {
        let in_place = self.sizes.reservoirs.iter().filter(|(spec, _)| !spec.contains("bias=half"));
        for &(spec, b) in in_place.filter(|(spec, _)| spec.contains("wells=")) {
            let matrix = &format!("{spec},days=0.003");
            let a = problem::load(matrix, ReadAs::Expanded)?.matrix;
            let a = Arc::new(crate::matrix::bsr::pad(&a, b));
            for fill in [0, 2] {
                self.solves(matrix, &a, fill, FactorPrecision::Float64, algorithms)?;
            }
        }
        Ok(())
    }

    fn factors(&mut self, algorithms: &[Trisolve]) -> Result<()> {
        for &b in self.sizes.blocks {
            for &fill in self.sizes.fills {
                let rows = self.sizes.block_rows[usize::from(b > 8)];
                let random = self.matrix(rows, b, 2, false);
                let grid = problem::load(self.sizes.grid, ReadAs::Expanded)?.matrix;
                let grid = Arc::new(crate::matrix::bsr::pad(&grid, b));
                self.solves("random matrix", &random, fill, FactorPrecision::Float64, algorithms)?;
                if b <= 8 {
                    self.solves("grid", &grid, fill, FactorPrecision::Float64, algorithms)?;
                }
            }
        }
        Ok(())
    }

    /// Matrix of cells on a box, each coupled with those of the six around it that come `coupled`,
    /// by random blocks.
    pub(super) fn box_matrix(
        &mut self,
        extents: [usize; 3],
        b: usize,
        coupled: fn(Ordering) -> bool,
    ) -> Arc<Csr> {
        let (mut row_ptr, mut col_ind, mut values) = (vec![0], Vec::new(), Vec::new());
        let strides = [1, extents[0], extents[0] * extents[1]];
        for i in 0..extents.iter().product() {
            let at = coordinates(extents, i);
            let mut cells = vec![i];
            for (axis, extent) in extents.into_iter().enumerate() {
                cells.extend((at[axis] > 0).then(|| i - strides[axis]));
                cells.extend((at[axis] + 1 < extent).then(|| i + strides[axis]));
            }
            cells.retain(|j| *j == i || coupled(j.cmp(&i)));
            cells.sort_unstable();
            for r in 0..b {
                for (j, c) in cells.iter().flat_map(|&j| (0..b).map(move |c| (j, c))) {
                    let v: f64 = self.rng.random_range(-1.0..1.0);
                    let dominant = j == i && c == r;
                    values.push(if dominant { 8.0 * b as f64 + v } else { v });
                    col_ind.push((j * b + c) as u32);
                }
                row_ptr.push(col_ind.len() as u32);
            }
        }
        let n = row_ptr.len() - 1;
        let made = Csr::new(n, n, row_ptr, col_ind, values);
        Arc::new(made.expect("valid by construction").in_blocks(b))
    }

    pub(super) fn stencils(&mut self, algorithms: &[Trisolve]) -> Result<()> {
        let Some(&first) = algorithms.first() else { return Ok(()) };
        let of = |precision| move |&(extents, b, fill)| (extents, b, fill, precision);
        let double = self.sizes.boxes.iter().map(of(FactorPrecision::Float64));
        let narrower = FactorPrecision::ON_GPU[1..]
            .iter()
            .flat_map(|&precision| self.sizes.single_boxes.iter().map(of(precision)));
        for (extents, b, fill, precision) in double.chain(narrower) {
            let a = self.box_matrix(extents, b, |_| true);
            let [nx, ny, nz] = extents;
            let name = format!("box {nx} x {ny} x {nz}");
            self.solves(&name, &a, fill, precision, algorithms)?;
        }
        for &(extents, b, fill) in self.sizes.alternating {
            let a = self.box_matrix(extents, b, |_| true);
            let [nx, ny, nz] = extents;
            let name = format!("box {nx} x {ny} x {nz} by the last update");
            let pattern = pattern_by(&a, fill, LevelRule::Overwrite);
            self.solves_on(&pattern, &name, &a, fill, FactorPrecision::Float64, algorithms)?;
        }
        // the factorisation marches as well
        for b in [1, 3, 8] {
            let mut a = (*self.box_matrix([5, 9, 8], b, |_| true)).clone();
            let row = 17 * b + b / 2;
            let entries = a.row_ptr()[row] as usize..a.row_ptr()[row + 1] as usize;
            a.values_mut()[entries].fill(0.0);
            self.breakdown("singular cell of a box", &a, first, FactorPrecision::Float64)?;
        }
        // but not for a matrix that lacks some of its entries
        let full = self.box_matrix([9, 7, 8], 1, |_| true);
        let mut rest = (*full).clone();
        for i in (0..full.rows()).step_by(5) {
            let start = full.row_ptr()[i] as usize;
            if full.col_ind()[start] as usize != i {
                rest.values_mut()[start] = 0.0;
            }
        }
        let (pattern, rest) = (pattern(&full, 1), rest.without_zeros());
        let (name, double) = ("box with holes", FactorPrecision::Float64);
        self.solves_on(&pattern, name, &rest, 1, double, algorithms)?;
        // one triangle empty, and the other one not
        for (name, coupled) in HALVES {
            let (extents, b, fill) = self.sizes.boxes[0];
            let a = self.box_matrix(extents, b, coupled);
            self.solves(name, &a, fill, FactorPrecision::Float64, algorithms)?;
        }
        Ok(())
    }

    /// Boxes of one thread block and of many, with factors of each precision; the first one, and of the others those
    /// that a GPU has room for.
    pub(super) fn pencils(&mut self, algorithms: &[Trisolve]) -> Result<()> {
        if algorithms.is_empty() {
            return Ok(());
        }
        for (n, &extents) in self.sizes.pencils.iter().enumerate() {
            let [nx, ny, nz] = extents;
            let (name, a) =
                (format!("box {nx} x {ny} x {nz}"), self.box_matrix(extents, 1, |_| true));
            for precision in FactorPrecision::ON_GPU {
                match self.solves(&name, &a, 0, precision, algorithms) {
                    Err(e) if n > 0 && e.kind() == Kind::Input => {}
                    other => other?,
                }
            }
        }
        let (extents, double) = (self.sizes.pencils[0], FactorPrecision::Float64);
        for (name, coupled) in HALVES {
            let a = self.box_matrix(extents, 1, coupled);
            self.solves(name, &a, 0, double, algorithms)?;
        }
        // cells without the neighbour a plane before, or the one behind
        let mut gaps = (*self.box_matrix(extents, 1, |_| true)).clone();
        let (rows, plane) = (gaps.rows(), extents[0] * extents[1]);
        let ends = gaps.row_ptr().to_vec();
        let first = (plane..rows).step_by(5).map(|i| ends[i]);
        let last = (0..rows - plane).step_by(7).map(|i| ends[i + 1] - 1);
        let lacking: Vec<u32> = first.chain(last).collect();
        let values = gaps.values_mut();
        for at in lacking {
            values[at as usize] = 0.0;
        }
        self.solves("box with gaps", &gaps.without_zeros(), 0, double, algorithms)
    }

    /// The backend's choice, which it may make when it has the first factors.
    pub(super) fn chosen(&mut self) -> Result<()> {
        let (extents, b, fill) = self.sizes.single_boxes[0];
        let a = self.box_matrix(extents, b, |_| true);
        self.solves("box", &a, fill, FactorPrecision::Float64, &[Trisolve::AUTO])?;
        for pattern in &patterns::PATTERNS[3..6] {
            let size = self.sizes.single[0];
            self.pattern(*pattern, size, FactorPrecision::Float64, &[Trisolve::AUTO])?;
        }
        Ok(())
    }

    /// Triangles that are narrow, wide, long or uneven.
    fn patterns(&mut self, algorithms: &[Trisolve]) -> Result<()> {
        for &(rows, b) in self.sizes.patterns {
            for &(name, columns) in patterns::PATTERNS {
                self.pattern((name, columns), (rows, b), FactorPrecision::Float64, algorithms)?;
            }
        }
        Ok(())
    }

    fn pattern(
        &mut self,
        (name, columns): (&str, Columns),
        (rows, b): (usize, usize),
        precision: FactorPrecision,
        algorithms: &[Trisolve],
    ) -> Result<()> {
        let a = patterns::matrix(columns, rows, b, &mut self.rng);
        self.solves(&format!("{name} of {rows}"), &a, 0, precision, algorithms)
    }

    /// A triangle without entries, and the other one a chain.
    fn empty_triangles(&mut self, algorithms: &[Trisolve]) -> Result<()> {
        for pattern in patterns::ONE_TRIANGLE {
            self.pattern(*pattern, (97, 1), FactorPrecision::Float64, algorithms)?;
        }
        Ok(())
    }

    /// A row per level, many more than anything holds at a time.
    fn long_chain(&mut self, algorithms: &[Trisolve]) -> Result<()> {
        let mut algorithms = algorithms.to_vec();
        algorithms.retain(|algorithm| !algorithm.is(|about| about.per_level));
        let chain = patterns::PATTERNS[0];
        self.pattern(chain, (self.sizes.chain, 1), FactorPrecision::Float64, &algorithms)
    }

    /// Factors stored in float32 and bfloat16, by those that can.
    fn single(&mut self, algorithms: &[Trisolve]) -> Result<()> {
        let mut algorithms = algorithms.to_vec();
        let diagonal = Arc::new(FillPattern::diagonal(3, 1));
        algorithms.retain(|&algorithm| {
            self.k.ilu_analyse(&diagonal, algorithm, FactorPrecision::Float32).is_ok()
        });
        for &size in self.sizes.single {
            for &pattern in patterns::PATTERNS
                .iter()
                .filter(|(name, _)| ["random", "band of 11"].contains(name))
            {
                for &precision in &FactorPrecision::ON_GPU[1..] {
                    self.pattern(pattern, size, precision, &algorithms)?;
                }
            }
        }
        match algorithms.first() {
            Some(&algorithm) => self.out_of_range(algorithm),
            None => Ok(()),
        }
    }

    /// A block row that float32 cannot hold is named.
    fn out_of_range(&mut self, algorithm: Trisolve) -> Result<()> {
        let b = 2;
        let mut a = (*self.matrix(41, b, 2, false)).clone();
        let rows = a.row_ptr()[17 * b] as usize..a.row_ptr()[18 * b] as usize;
        a.values_mut()[rows].iter_mut().for_each(|v| *v *= 1e-60);
        self.breakdown("out of range", &a, algorithm, FactorPrecision::Float32)
    }

    /// A singular block is found in the same row, at the same step.
    fn singular(&mut self, algorithms: &[Trisolve]) -> Result<()> {
        for &b in self.sizes.singular {
            let mut a = (*self.matrix(41, b, 2, false)).clone();
            let row = 17 * b;
            // the first row of block 17 becomes zero: so does the row of its diagonal block
            let range = a.row_ptr()[row] as usize..a.row_ptr()[row + 1] as usize;
            a.values_mut()[range].fill(0.0);
            self.breakdown("singular block", &a, algorithms[0], FactorPrecision::Float64)?;
        }
        Ok(())
    }

    fn breakdown(
        &mut self,
        name: &str,
        a: &Csr,
        algorithm: Trisolve,
        precision: FactorPrecision,
    ) -> Result<()> {
        fn found<B: Backend>(k: &B, a: &Csr, request: &Request) -> Result<Vec<f64>> {
            let Request { pattern, algorithm, precision } = *request;
            let mut ilu = k.ilu_analyse(pattern, algorithm, precision)?;
            let number = |n: usize| n as f64 + 1.0;
            Ok(match k.ilu_factor(&mut ilu, a, 0.0) {
                Ok(()) => vec![-1.0; 3],
                Err(Breakdown::Singular(e)) => {
                    vec![number(e.row), number(e.within), f64::from(u8::from(e.absent))]
                }
                Err(Breakdown::Range { row }) => vec![number(row), 0.0, -1.0],
            })
        }
        let pattern = pattern(a, 0);
        let request = |algorithm| Request { pattern: &pattern, algorithm, precision };
        let want = found(&self.cpu, a, &request(Trisolve::AUTO))?;
        let got = found(self.k, a, &request(algorithm))?;
        let there = if want[0] == 18.0 { want } else { vec![f64::NAN; 3] };
        self.found(format!("{name}, b {}", a.block_size()), &got, &there, SOLVE_LIMIT);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Extent;
    use super::*;
    use crate::compute::cpu::Cpu;
    use crate::symbolic::Stencil;
    use rand::SeedableRng;

    /// What the wavefront is tried on is what it takes, in every extent.
    #[test]
    fn boxes_are_stencils() {
        for extent in [Extent::Full, Extent::Quick] {
            let mut bench = Bench {
                k: &Cpu::sequential(),
                cpu: Cpu::sequential(),
                sizes: extent.sizes(),
                rng: rand_chacha::ChaCha8Rng::seed_from_u64(1),
                report: &mut |_| (),
            };
            let boxes = bench.sizes.boxes.iter().chain(bench.sizes.single_boxes);
            for &(extents, b, fill) in boxes {
                let couplings: [fn(Ordering) -> bool; 3] =
                    [|_| true, Ordering::is_lt, Ordering::is_gt];
                for coupled in couplings {
                    let a = bench.box_matrix(extents, b, coupled);
                    let p = pattern(&a, fill);
                    let (lower, upper) = (p.lower.view(), p.upper.view());
                    let none = (lower.entries() == 0, upper.entries() == 0);
                    assert_eq!(Stencil::of_lower(lower).is_none(), none.0, "{extents:?}");
                    assert_eq!(Stencil::of_upper(upper).is_none(), none.1, "{extents:?}");
                }
            }
            for &(extents, b, fill) in bench.sizes.alternating {
                let a = bench.box_matrix(extents, b, |_| true);
                let p = pattern_by(&a, fill, LevelRule::Overwrite);
                let both = [Stencil::of_lower(p.lower.view()), Stencil::of_upper(p.upper.view())];
                let periods = both.map(|s| s.map(|s| s.shortest_march().period()));
                assert_eq!(periods, [Some(2); 2], "{extents:?}, b = {b}, k = {fill}");
            }
        }
    }
}
