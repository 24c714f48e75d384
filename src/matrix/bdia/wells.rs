//! The well parts of a generalised hepta-diagonal matrix.

use std::ops::Range;

use super::Hepta;
use crate::base::error::{Error, Result};
use crate::base::threads::Threads;
use crate::matrix::Csr;

/// W, WT and D of `GH = [H WT; W D]` (section 6.2 of the paper).
///
/// A well is a run of consecutive cells, so that its row of W is a run of consecutive numbers, and so
/// is its column of WT. Three words tell where the run is: `start` in the values (the paper's a),
/// `first` the column it begins with (b) and, from the next start, its length (c). The cells of wells
/// are distinct. The paper keeps one array of values for W and WT; a linearisation gives the two
/// different values, so there are two arrays here, with the same three words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wells {
    /// Start of each well's run in the values, and the end of the last.
    start: Vec<u32>,
    /// First column of each run in W, first row in WT.
    first: Vec<u32>,
    rows: Vec<f64>,
    columns: Vec<f64>,
    diagonal: Vec<f64>,
    /// Wells with a run, in the order of their cells.
    by_cell: Vec<u32>,
}

impl Wells {
    /// The rows behind the cells.
    pub(super) fn collect(a: &Csr, hepta: &Hepta) -> Result<Self> {
        let (k, cells) = (hepta.block_size, hepta.cells);
        let scalars = cells * k;
        let count = a.rows() - scalars;
        // entries of the columns of wells, by well
        let mut columns: Vec<Vec<(usize, f64)>> = vec![Vec::new(); count];
        // few rows have any: they are looked for by all threads
        let with = |mut rows: Vec<usize>, i: usize| {
            rows.extend(a.row(i).0.last().filter(|&&j| j as usize >= scalars).map(|_| i));
            rows
        };
        let rows: Vec<usize> =
            Threads::Pool.fold(scalars, 1, Vec::new, with, |a, b| [a, b].concat());
        for i in rows {
            let (cols, row) = a.row(i);
            let from = cols.partition_point(|&j| (j as usize) < scalars);
            for (&j, &v) in cols[from..].iter().zip(&row[from..]) {
                columns[j as usize - scalars].push((i, v));
            }
        }
        let mut wells = Self { start: vec![0], ..Self::default() };
        for (w, column) in columns.iter().enumerate() {
            wells.add(a, scalars + w, scalars, k, column)?;
        }
        wells.by_cell = (0..count as u32).filter(|&w| !wells.run(w as usize).is_empty()).collect();
        wells.by_cell.sort_unstable_by_key(|&w| wells.first[w as usize]);
        let overlap = wells
            .by_cell
            .windows(2)
            .find(|two| wells.run(two[0] as usize).end > wells.run(two[1] as usize).start);
        match overlap {
            None => Ok(wells),
            Some(two) => Err(refuse(&format!(
                "the wells of rows {} and {} share the cell of row {}",
                scalars + two[0] as usize + 1,
                scalars + two[1] as usize + 1,
                wells.first[two[1] as usize] + 1
            ))),
        }
    }

    /// Adds the well of row `row` of `a`, whose column of WT is given.
    fn add(
        &mut self,
        a: &Csr,
        row: usize,
        scalars: usize,
        k: usize,
        column: &[(usize, f64)],
    ) -> Result<()> {
        let (cols, values) = a.row(row);
        let mut diagonal = 0.0;
        let mut entries = Vec::new();
        for (&j, &v) in cols.iter().zip(values) {
            let j = j as usize;
            if j < scalars {
                entries.push((j, v));
            } else if j == row {
                diagonal = v;
            } else {
                return Err(refuse(&format!(
                    "row {}, behind the cells, has an entry in column {} beside its diagonal",
                    row + 1,
                    j + 1
                )));
            }
        }
        let mut cells: Vec<usize> =
            entries.iter().chain(column).map(|&(place, _)| place / k).collect();
        cells.sort_unstable();
        cells.dedup();
        if let Some(gap) = cells.windows(2).find(|two| two[1] != two[0] + 1) {
            return Err(refuse(&format!(
                "the cells of the well of row {} are not consecutive: {} follows {}",
                row + 1,
                gap[1] + 1,
                gap[0] + 1
            )));
        }
        let first = cells.first().copied().unwrap_or(0) * k;
        let (from, length) = (self.rows.len(), cells.len() * k);
        self.rows.resize(from + length, 0.0);
        self.columns.resize(from + length, 0.0);
        for &(j, v) in &entries {
            self.rows[from + j - first] = v;
        }
        for &(i, v) in column {
            self.columns[from + i - first] = v;
        }
        self.first.push(first as u32);
        self.start.push(self.rows.len() as u32);
        self.diagonal.push(diagonal);
        Ok(())
    }

    /// Number of wells.
    pub fn count(&self) -> usize {
        self.first.len()
    }

    /// Columns of W and rows of WT in which well `w` has its run.
    #[inline]
    pub fn run(&self, w: usize) -> Range<usize> {
        let first = self.first[w] as usize;
        first..first + (self.start[w + 1] - self.start[w]) as usize
    }

    /// The run of W.
    #[inline]
    pub fn row(&self, w: usize) -> &[f64] {
        &self.rows[self.start[w] as usize..self.start[w + 1] as usize]
    }

    /// The run of WT.
    #[inline]
    pub fn column(&self, w: usize) -> &[f64] {
        &self.columns[self.start[w] as usize..self.start[w + 1] as usize]
    }

    /// D.
    pub fn diagonal(&self) -> &[f64] {
        &self.diagonal
    }

    /// Wells whose run reaches into some rows, in the order of their cells.
    pub(crate) fn in_rows(&self, rows: Range<usize>) -> impl Iterator<Item = usize> + '_ {
        let at = self.by_cell.partition_point(|&w| self.run(w as usize).end <= rows.start);
        let wells = self.by_cell[at..].iter().map(|&w| w as usize);
        wells.take_while(move |&w| self.run(w).start < rows.end)
    }

    /// Numbers stored.
    pub fn stored(&self) -> usize {
        self.rows.len() + self.columns.len() + self.diagonal.len()
    }

    /// Bytes stored: two runs, the diagonal and three words for each well, and its number in the
    /// order of the cells.
    pub fn bytes(&self) -> usize {
        8 * self.stored() + 4 * (self.start.len() + self.first.len() + self.by_cell.len())
    }
}

fn refuse(what: &str) -> Error {
    Error::input(format!("the matrix does not fit `bdia`: {what}"))
        .hint("`bdia` holds box grids with one block size, and wells behind the cells")
}
