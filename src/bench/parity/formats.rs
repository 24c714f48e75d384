//! Formats for regular patterns, on boxes with wells and other matrices.

use crate::compute::{Backend, Storage};
use std::sync::Arc;

use super::operations::products;
use super::{Bench, SOLVE_LIMIT};
use crate::base::error::{Kind, Result};
use crate::case::{Format, ReadAs};
use crate::matrix::Csr;
use crate::matrix::bsr::pad;
use crate::problem;

const FORMATS: [Format; 6] =
    [Format::Csr, Format::Bsr, Format::Hyb, Format::Sell, Format::Dia, Format::Bdia];

impl<K: Backend + 'static> Bench<'_, K> {
    /// Products with reservoirs in every format that the backend has.
    pub(super) fn formats(&mut self) -> Result<()> {
        for &(spec, b) in self.sizes.reservoirs {
            let a = problem::load(spec, ReadAs::Expanded)?.matrix;
            let a = Arc::new(pad(&a, b));
            self.in_formats(spec, &a)?;
        }
        for &rows in self.sizes.uneven {
            let a = self.uneven(rows);
            self.in_formats(&format!("{rows} rows of uneven length"), &a)?;
        }
        Ok(())
    }

    fn in_formats(&mut self, name: &str, a: &Arc<Csr>) -> Result<()> {
        let (x, y) = (self.random(a.rows()), self.random(a.rows()));
        for format in FORMATS {
            // the CPU has every format: what it refuses does not fit
            if let Err(e) = self.cpu.matrix(a, format) {
                assert_eq!(e.kind(), Kind::Input, "{e}");
                continue;
            }
            let got = match products(self.k, a, format, &x, &y) {
                // a format that this backend has not
                Err(e) if e.kind() == Kind::Input => continue,
                other => other?,
            };
            let want = products(&self.cpu, a, format, &x, &y)?;
            let check = format!("product, residual in {format:?}, {name}");
            self.found(check, &got, &want, SOLVE_LIMIT);
        }
        Ok(())
    }

    /// A tridiagonal matrix, in which some rows have further entries: one, some, very many.
    fn uneven(&mut self, n: usize) -> Arc<Csr> {
        let (mut row_ptr, mut col_ind, mut values) = (vec![0], Vec::new(), Vec::new());
        for i in 0..n {
            let more = match i {
                _ if i % 97 == 96 => 60,
                _ if i % 31 == 30 => 9,
                _ if i % 7 == 6 => 1,
                _ if i + 1 == n => n,
                _ => 0,
            };
            let mut columns: Vec<u32> =
                (i.saturating_sub(1)..(i + 2).min(n)).map(|j| j as u32).collect();
            columns.extend((0..more).map(|at| ((i + 5 + at * (n / (more + 1)).max(1)) % n) as u32));
            columns.sort_unstable();
            columns.dedup();
            values.extend(self.random(columns.len()));
            col_ind.extend(columns);
            row_ptr.push(col_ind.len() as u32);
        }
        Arc::new(Csr::new(n, n, row_ptr, col_ind, values).expect("valid by construction"))
    }
}
