//! Compressed sparse row storage with scalar entries: what every matrix source yields.

use std::sync::{Arc, OnceLock, Weak};

use crate::base::error::{Error, Result};
use crate::base::threads::Threads;

/// A sparse matrix in CSR form (`mat_csr_t` of Yang et al., section 2.1).
///
/// Invariants, checked by [`Csr::new`]: `row_ptr` has `rows + 1` non-decreasing entries from 0 to
/// `nnz`; the columns of each row are strictly increasing and below `cols`. Indices are 32-bit,
/// so at most 2^32 - 1 entries are held. Clones share the arrays until one is changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Csr {
    rows: usize,
    cols: usize,
    block_size: usize,
    pattern: CsrPattern,
    values: Arc<Vec<f64>>,
    blocks: Blocks,
}

/// Where the blocks of a [`Csr`] are, once that has been asked for.
#[derive(Clone, Debug, Default)]
struct Blocks(Arc<OnceLock<CsrPattern>>);

impl PartialEq for Blocks {
    fn eq(&self, _: &Self) -> bool {
        // it follows from the entries
        true
    }
}

/// Where the entries of a [`Csr`] are; clones share the arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct CsrPattern {
    row_ptr: Arc<Vec<u32>>,
    col_ind: Arc<Vec<u32>>,
}

/// A [`CsrPattern`] to be recognised, without keeping it.
#[derive(Clone, Debug)]
pub(crate) struct WeakPattern {
    row_ptr: Weak<Vec<u32>>,
    col_ind: Weak<Vec<u32>>,
}

/// A [`Csr`] with its values to be recognised, without keeping it; in blocks of any size.
#[derive(Debug)]
pub(crate) struct WeakCsr {
    pub(crate) pattern: WeakPattern,
    values: Weak<Vec<f64>>,
}

impl WeakCsr {
    /// Whether `other` shares its pattern and its values.
    pub(crate) fn is(&self, other: &Csr) -> bool {
        // values that are changed in place move where a weak reference holds theirs
        self.pattern.is(&other.pattern) && self.values.as_ptr() == Arc::as_ptr(&other.values)
    }
}

impl WeakPattern {
    /// Whether `other` is a clone of it.
    pub(crate) fn is(&self, other: &CsrPattern) -> bool {
        // the weak references hold the places, so that no other pattern can be there
        self.row_ptr.as_ptr() == Arc::as_ptr(&other.row_ptr)
            && self.col_ind.as_ptr() == Arc::as_ptr(&other.col_ind)
    }
}

impl CsrPattern {
    pub(super) fn new(row_ptr: Vec<u32>, col_ind: Vec<u32>) -> Self {
        Self { row_ptr: Arc::new(row_ptr), col_ind: Arc::new(col_ind) }
    }

    /// Start of each row in `col_ind`, and one past the end.
    pub(crate) fn row_ptr(&self) -> &[u32] {
        &self.row_ptr
    }

    /// Column of each entry, increasing within a row.
    pub(crate) fn col_ind(&self) -> &[u32] {
        &self.col_ind
    }

    /// To recognise it by.
    pub(crate) fn downgrade(&self) -> WeakPattern {
        let (row_ptr, col_ind) = (Arc::downgrade(&self.row_ptr), Arc::downgrade(&self.col_ind));
        WeakPattern { row_ptr, col_ind }
    }

    /// Whether both are clones of one pattern; equal patterns need not be.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.row_ptr, &other.row_ptr) && Arc::ptr_eq(&self.col_ind, &other.col_ind)
    }
}

impl Csr {
    /// Checks the invariants and takes the arrays.
    ///
    /// # Errors
    /// Names the first row that breaks an invariant.
    pub fn new(
        rows: usize,
        cols: usize,
        row_ptr: Vec<u32>,
        col_ind: Vec<u32>,
        values: Vec<f64>,
    ) -> Result<Self> {
        let broken = |what: String| Err(Error::input(format!("invalid CSR matrix: {what}")));
        if row_ptr.len() != rows + 1 || row_ptr[0] != 0 {
            return broken(format!("row_ptr has {} entries for {rows} rows", row_ptr.len()));
        }
        if *row_ptr.last().unwrap_or(&0) as usize != col_ind.len() || col_ind.len() != values.len()
        {
            return broken(format!(
                "{} columns and {} values, row_ptr ends at {}",
                col_ind.len(),
                values.len(),
                row_ptr[rows]
            ));
        }
        if let Some(i) = row_ptr.windows(2).position(|w| w[0] > w[1]) {
            return broken(format!("row_ptr decreases at row {i}"));
        }
        for (i, w) in row_ptr.windows(2).enumerate() {
            let cols_i = &col_ind[w[0] as usize..w[1] as usize];
            if cols_i.windows(2).any(|c| c[0] >= c[1]) {
                return broken(format!("columns of row {i} are not strictly increasing"));
            }
            if cols_i.last().is_some_and(|&c| c as usize >= cols) {
                return broken(format!("row {i} has a column outside 0..{cols}"));
            }
        }
        Ok(Self::checked([rows, cols], row_ptr, col_ind, values))
    }

    /// From arrays that are known to be those of a matrix of such a size.
    pub(super) fn checked(
        [rows, cols]: [usize; 2],
        row_ptr: Vec<u32>,
        col_ind: Vec<u32>,
        values: Vec<f64>,
    ) -> Self {
        let (pattern, values) = (CsrPattern::new(row_ptr, col_ind), Arc::new(values));
        Self { rows, cols, block_size: 1, pattern, values, blocks: Blocks::default() }
    }

    /// The same matrix, in blocks of `block_size` consecutive unknowns. Where that does not divide its order
    /// the last block is not full (see [`pad`](super::bsr::pad)).
    #[must_use]
    pub fn in_blocks(&self, block_size: usize) -> Self {
        // each asks for its own, so that every case pays for it
        Self { block_size, blocks: Blocks::default(), ..self.clone() }
    }

    /// A matrix with the same pattern, which both share.
    ///
    /// # Panics
    /// If there is not a value for each entry.
    #[must_use]
    pub(crate) fn with_values(&self, values: Vec<f64>) -> Self {
        assert_eq!(values.len(), self.nnz(), "a value for each entry");
        Self { values: Arc::new(values), ..self.clone() }
    }

    /// Unknowns per block; 1 unless [`in_blocks`](Self::in_blocks) says otherwise.
    pub fn block_size(&self) -> usize {
        self.block_size
    }

    /// Where its blocks are, which `find` finds where nobody has asked for it before. It is not waited for: two threads
    /// that ask at the same time both find it.
    pub(super) fn blocks(&self, find: impl FnOnce() -> CsrPattern) -> &CsrPattern {
        if let Some(found) = self.blocks.0.get() {
            return found;
        }
        let found = find();
        self.blocks.0.get_or_init(|| found)
    }

    /// The pattern of its blocks of `b`, where that is known and all of them are stored whole.
    pub(crate) fn whole_pattern(&self, b: usize) -> Option<&CsrPattern> {
        let known = self.blocks.0.get().filter(|_| b == self.block_size)?;
        (known.col_ind.len() * b * b == self.nnz()).then_some(known)
    }

    /// The same matrix, which knows of its blocks what this one knows now, and does not tell what it finds.
    pub(crate) fn apart(&self) -> Self {
        let apart = self.in_blocks(self.block_size);
        apart.learn_blocks(self);
        apart
    }

    /// Takes over what another matrix with the same pattern and blocks has found of its blocks, if anything.
    pub(crate) fn learn_blocks(&self, other: &Self) {
        debug_assert!(self.pattern.is(&other.pattern) && self.block_size == other.block_size);
        if let Some(found) = other.blocks.0.get() {
            self.blocks.0.get_or_init(|| found.clone());
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of stored entries, explicit zeros included.
    pub fn nnz(&self) -> usize {
        self.pattern.col_ind.len()
    }

    /// To recognise it by.
    pub(crate) fn downgrade(&self) -> WeakCsr {
        WeakCsr { pattern: self.pattern.downgrade(), values: Arc::downgrade(&self.values) }
    }

    /// Where the entries are.
    pub fn pattern(&self) -> &CsrPattern {
        &self.pattern
    }

    /// Start of each row in `col_ind` and `values`; `rows + 1` entries.
    pub fn row_ptr(&self) -> &[u32] {
        &self.pattern.row_ptr
    }

    /// Column of each entry, increasing within a row.
    pub fn col_ind(&self) -> &[u32] {
        &self.pattern.col_ind
    }

    /// Value of each entry.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Values, to be changed in place; the pattern stays, and so do the values of clones.
    pub fn values_mut(&mut self) -> &mut [f64] {
        Arc::<Vec<f64>>::make_mut(&mut self.values)
    }

    /// Columns and values of row `i`.
    pub fn row(&self, i: usize) -> (&[u32], &[f64]) {
        let r = self.pattern.row_ptr[i] as usize..self.pattern.row_ptr[i + 1] as usize;
        (&self.pattern.col_ind[r.clone()], &self.values[r])
    }

    /// Columns and values of row `i` of blocks of `b` where all of its blocks are stored whole: the columns of each of its
    /// rows, and the values row by row.
    #[inline]
    pub(crate) fn whole_blocks(&self, i: usize, b: usize) -> Option<(&[u32], &[f64])> {
        let columns = self.row(i * b).0;
        let alike = |r: usize| r < self.rows && self.row(r).0 == columns;
        let whole = (i * b + 1..(i + 1) * b).all(alike) && in_whole_blocks(columns, b);
        let start = self.row_ptr()[i * b] as usize;
        whole.then(|| (columns, &self.values[start..start + b * columns.len()]))
    }

    /// The entry `(i, j)`, if stored.
    pub fn get(&self, i: usize, j: usize) -> Option<f64> {
        let (cols, values) = self.row(i);
        cols.binary_search(&(j as u32)).ok().map(|k| values[k])
    }

    /// An error that names the first entry which is not a finite number: a GPU would carry it on in
    /// silence.
    ///
    /// # Errors
    /// When there is one.
    pub(crate) fn check_finite(&self) -> Result<()> {
        /// Values that are looked at together, which is many times faster than one by one.
        const PART: usize = 1 << 13;
        let finite = |part: &[f64]| part.iter().fold(true, |all, v| all & v.is_finite());
        let of_part = |part: usize| {
            let (first, end) = (part * PART, self.values.len().min((part + 1) * PART));
            (!finite(&self.values[first..end])).then_some(part)
        };
        let parts = self.values.len().div_ceil(PART);
        let Some(part) = Threads::Pool.find_map(parts, 1, of_part) else { return Ok(()) };
        let within = self.values[part * PART..].iter().take_while(|v| v.is_finite()).count();
        let at = part * PART + within;
        let row = self.pattern.row_ptr.partition_point(|&p| p as usize <= at);
        let column = self.pattern.col_ind[at] + 1;
        Err(Error::input(format!(
            "the matrix holds {} in row {row}, column {column}",
            self.values[at]
        )))
    }

    /// Largest diagonal entry by magnitude; 0 when none is stored.
    pub(crate) fn largest_diagonal(&self) -> f64 {
        (0..self.rows).filter_map(|i| self.get(i, i)).fold(0.0, |m, v| m.max(v.abs()))
    }

    /// The arrays `(row_ptr, col_ind, values)`.
    pub(crate) fn into_parts(self) -> (Vec<u32>, Vec<u32>, Vec<f64>) {
        let CsrPattern { row_ptr, col_ind } = self.pattern;
        let values = Arc::unwrap_or_clone(self.values);
        (Arc::unwrap_or_clone(row_ptr), Arc::unwrap_or_clone(col_ind), values)
    }

    /// `y = A x` in plain loops: the reference for tests and for residuals outside the timing.
    pub fn multiply(&self, x: &[f64], y: &mut [f64]) {
        for (i, yi) in y.iter_mut().enumerate() {
            let (cols, values) = self.row(i);
            *yi = cols.iter().zip(values).map(|(&j, v)| v * x[j as usize]).sum();
        }
    }

    /// The matrix of the entries that are not zero.
    #[must_use]
    pub fn without_zeros(&self) -> Self {
        self.filtered(Threads::One, |_, _, v| (v != 0.0).then_some(v))
    }

    /// `P A P'` of a square matrix: its row and column i are those that had the number `order[i]`.
    ///
    /// # Panics
    /// If the matrix is not square or `order` no permutation of its rows.
    #[must_use]
    pub fn permuted(&self, order: &[u32]) -> Self {
        self.permuted_on(Threads::One, order)
    }

    /// A'.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let mut row_ptr = vec![0_u32; self.cols + 1];
        for &j in self.col_ind() {
            row_ptr[j as usize + 1] += 1;
        }
        for j in 0..self.cols {
            row_ptr[j + 1] += row_ptr[j];
        }
        let mut next = row_ptr.clone();
        let (mut col_ind, mut values) = (vec![0; self.nnz()], vec![0.0; self.nnz()]);
        for i in 0..self.rows {
            let (cols, row) = self.row(i);
            for (&j, &v) in cols.iter().zip(row) {
                let at = next[j as usize] as usize;
                (col_ind[at], values[at]) = (i as u32, v);
                next[j as usize] += 1;
            }
        }
        Self::checked([self.cols, self.rows], row_ptr, col_ind, values).in_blocks(self.block_size)
    }

    /// Bytes held by the three arrays.
    pub fn bytes(&self) -> usize {
        4 * self.pattern.row_ptr.len() + 12 * self.pattern.col_ind.len()
    }
}

/// Whether increasing columns are those of whole blocks of `b`.
fn in_whole_blocks(columns: &[u32], b: usize) -> bool {
    let whole = |block: &[u32]| {
        block[0].is_multiple_of(b as u32) && block[b - 1] == block[0] + (b as u32 - 1)
    };
    columns.len().is_multiple_of(b) && columns.chunks_exact(b).all(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole_or_not() {
        assert!(in_whole_blocks(&[2, 3, 6, 7], 2) && in_whole_blocks(&[], 3));
        assert!(!in_whole_blocks(&[2, 3, 5, 6], 2) && !in_whole_blocks(&[2, 3, 6], 2));
        let a = |row_ptr: &[u32], col_ind: &[u32]| {
            let values = (0..col_ind.len()).map(|v| v as f64).collect();
            Csr::new(4, 4, row_ptr.into(), col_ind.into(), values).unwrap()
        };
        let whole = a(&[0, 2, 4, 5, 6], &[2, 3, 2, 3, 2, 3]);
        let found = whole.whole_blocks(0, 2);
        assert_eq!(found, Some((&[2, 3][..], &[0., 1., 2., 3.][..])));
        assert_eq!(whole.whole_blocks(1, 2), None);
        // as many columns, and others
        assert_eq!(a(&[0, 2, 4, 4, 4], &[0, 1, 2, 3]).whole_blocks(0, 2), None);
    }

    #[test]
    fn refuses_broken_patterns() {
        let bad = |rp: &[u32], ci: &[u32]| {
            Csr::new(2, 2, rp.into(), ci.into(), vec![1.0; ci.len()]).unwrap_err().to_string()
        };
        assert!(bad(&[0, 1], &[0]).contains("row_ptr has 2 entries"));
        assert!(bad(&[0, 2, 1], &[0]).contains("row_ptr decreases at row 1"));
        assert!(bad(&[0, 2, 2], &[1, 0]).contains("row 0 are not strictly"));
        assert!(bad(&[0, 0, 1], &[2]).contains("row 1 has a column outside 0..2"));
    }

    #[test]
    fn where_the_blocks_are_is_found_once_and_told_to_clones_alone() {
        let a = Csr::new(2, 2, vec![0, 1, 2], vec![0, 1], vec![1., 2.]).unwrap().in_blocks(2);
        let find = || CsrPattern::new(vec![0, 1], vec![0]);
        let known = || -> CsrPattern { panic!("it is known") };
        let early = a.apart();
        let found = a.blocks(find).clone();
        for of in [a.clone(), a.apart(), a.with_values(vec![3., 4.])] {
            assert!(of.blocks(known).is(&found));
        }
        for of in [&early, &a.in_blocks(2), &a.in_blocks(1)] {
            assert!(!of.blocks(find).is(&found));
        }
        let later = a.in_blocks(2);
        later.learn_blocks(&a);
        assert!(later.blocks(known).is(&found));
    }

    #[test]
    fn a_permutation_moves_rows_and_columns() {
        // [1 2 0; 0 3 4; 5 0 0]
        let a = Csr::new(3, 3, vec![0, 2, 4, 5], vec![0, 1, 1, 2, 0], vec![1., 2., 3., 4., 5.]);
        let p = a.unwrap().permuted(&[2, 0, 1]);
        // rows and columns 2, 0, 1: [0 5 0; 0 1 2; 4 0 3]
        assert_eq!((p.row_ptr(), p.col_ind()), (&[0, 1, 3, 5][..], &[1, 1, 2, 0, 2][..]));
        assert_eq!(p.values(), [5., 1., 2., 4., 3.]);
    }

    #[test]
    fn rows_become_columns() {
        // [1 2 0; 0 3 4]
        let a = Csr::new(2, 3, vec![0, 2, 4], vec![0, 1, 1, 2], vec![1., 2., 3., 4.]).unwrap();
        let t = a.transposed();
        assert_eq!((t.rows(), t.cols()), (3, 2));
        assert_eq!((t.row_ptr(), t.col_ind()), (&[0, 1, 3, 4][..], &[0, 0, 1, 1][..]));
        assert_eq!(t.values(), [1., 2., 3., 4.]);
        assert_eq!(t.transposed(), a);
    }

    #[test]
    fn multiplies_and_looks_up() {
        let a = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1.0, 2.0, 3.0]).unwrap();
        let mut y = [0.0; 2];
        a.multiply(&[1.0, 10.0], &mut y);
        assert_eq!(y, [21.0, 30.0]);
        assert_eq!((a.get(0, 1), a.get(1, 0)), (Some(2.0), None));
    }
}
