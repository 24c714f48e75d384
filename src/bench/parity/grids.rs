//! FGBILU in every style that a backend has, on boxes of odd sizes.

use std::sync::Arc;

use super::operations::{here, scaled, there};
use super::{Bench, LIMIT};
use crate::base::error::{Kind, Result};
use crate::case::{FgbiluStyle, LevelRule};
use crate::compute::{Backend, Breakdown};
use crate::matrix::Csr;
use crate::matrix::pattern::block_pattern;
use crate::symbolic::hyperplanes::hyperplanes;
use crate::symbolic::{FillPattern, GridPattern, iluk};

impl<K: Backend + 'static> Bench<'_, K> {
    /// Solves in each of the `styles`.
    pub(super) fn grids(&mut self, styles: &[FgbiluStyle]) -> Result<()> {
        for &(extents, b) in self.sizes.grids {
            let a = self.box_matrix(extents, b, |_| true);
            let grid = Arc::new(grid(&a));
            assert_eq!(grid.extents, extents);
            let (r, x) = (self.random(a.rows()), self.random(a.rows()));
            let want = solve(&self.cpu, (&a, &grid), FgbiluStyle::Auto, &r, &x)?;
            for &style in styles {
                let got = match solve(self.k, (&a, &grid), style, &r, &x) {
                    // no such style, or not for such a box
                    Err(e) if e.kind() == Kind::Input => continue,
                    other => other?,
                };
                let [ni, nj, nk] = extents;
                let check = format!("fgbilu {style:?}, box {ni} x {nj} x {nk}, b {b}");
                self.found(check, &got, &want, LIMIT);
            }
        }
        Ok(())
    }

    /// A block with a row of zeros is found at the same point, in the same row, whether rows are
    /// exchanged or not.
    pub(super) fn no_pivots(&mut self, styles: &[FgbiluStyle]) -> Result<()> {
        let ([ni, nj, nk], b) = ([7, 5, 6], 5);
        for point in [0, 3, ni * nj * nk - 1] {
            let mut a = (*self.box_matrix([ni, nj, nk], b, |_| true)).clone();
            let row = point * b + 2;
            let range = a.row_ptr()[row] as usize..a.row_ptr()[row + 1] as usize;
            a.values_mut()[range].fill(0.0);
            let a = Arc::new(a);
            let grid = Arc::new(grid(&a));
            for &style in styles {
                let got = match no_pivot(self.k, (&a, &grid), style) {
                    Err(e) if e.kind() == Kind::Input => continue,
                    other => other?,
                };
                let check = format!("fgbilu {style:?}, no pivot at point {point}");
                self.found(check, &got, &[point as f64, 2.0, 0.0], 0.0);
            }
        }
        Ok(())
    }
}

/// Whether a backend has FGBILU at all.
pub(super) fn offered<B: Backend>(k: &B) -> Result<bool> {
    let extents = [2, 1, 1];
    let (factors, hyperplanes) = (Arc::new(FillPattern::diagonal(2, 1)), hyperplanes(extents));
    let grid = Arc::new(GridPattern { extents, factors, hyperplanes });
    match k.fgbilu_analyse(&grid, FgbiluStyle::Auto) {
        Err(e) if e.kind() == Kind::Input => Ok(false),
        made => made.map(|_| true),
    }
}

fn grid(a: &Csr) -> GridPattern {
    let point = block_pattern(a);
    let factors = iluk(&point, 0, LevelRule::Min, usize::MAX).expect("small");
    GridPattern::of(&point, factors).expect("a box")
}

/// A matrix and its grid.
type System<'a> = (&'a Arc<Csr>, &'a Arc<GridPattern>);

/// Two applications and a residual with factors made twice, and with those of other values.
fn solve<B: Backend>(
    k: &B,
    (a, grid): System,
    style: FgbiluStyle,
    r: &[f64],
    x: &[f64],
) -> Result<Vec<f64>> {
    let n = r.len();
    let mut factors = k.fgbilu_analyse(grid, style)?;
    let mut all = Vec::new();
    for a in [a, a, &Arc::new(scaled(a))] {
        if let Err(block) = factors.factor(k, a, 0.0) {
            return Err(crate::Error::run(block.to_string()));
        }
        let (mut from, mut to) = (there(k, r)?, k.vector(n)?);
        for _ in 0..2 {
            k.fill(&mut to, f64::NAN);
            factors.apply(k, &from, &mut to);
            all.extend(here(k, &to, n));
            std::mem::swap(&mut from, &mut to);
        }
        let (x, rhs) = (there(k, x)?, there(k, r)?);
        k.fill(&mut to, f64::NAN);
        if !factors.residual(k, &x, &rhs, &mut to) {
            let matrix = k.matrix(a, crate::case::Format::Auto)?;
            k.residual(&matrix, &x, &rhs, &mut to);
        }
        all.extend(here(k, &to, n));
    }
    Ok(all)
}

/// Point and row without a pivot, and whether it is for want of a diagonal block.
fn no_pivot<B: Backend>(k: &B, (a, grid): System, style: FgbiluStyle) -> Result<Vec<f64>> {
    let mut factors = k.fgbilu_analyse(grid, style)?;
    Ok(match factors.factor(k, a, 0.0) {
        Err(Breakdown::Singular(e)) => {
            vec![e.row as f64, e.within as f64, f64::from(u8::from(e.absent))]
        }
        Err(Breakdown::Range { .. }) => vec![f64::NAN; 3],
        Ok(()) => vec![-1.0; 3],
    })
}
