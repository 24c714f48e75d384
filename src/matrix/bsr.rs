//! Block compressed sparse rows (`mat_bcsr_t` of Yang et al., section 2.1).

use super::{Csr, CsrPattern};
use crate::base::choices::Format;
use crate::base::memory::Buffer;
use crate::base::threads::Threads;
use crate::matrix::pattern::{blocks_of, count_blocks};

/// A square matrix of b x b blocks, each stored column by column, explicit zeros kept.
pub struct Bsr {
    block_size: usize,
    pattern: CsrPattern,
    values: Buffer<f64>,
}

impl Bsr {
    /// Keeps every block of `a` whole that stores at least one entry; on the threads of the current pool.
    ///
    /// # Panics
    /// If `a` is not square or its last block not full (see [`pad`]).
    pub(crate) fn from_csr(a: &Csr) -> Self {
        let b = a.block_size();
        assert!(a.rows() == a.cols() && a.rows().is_multiple_of(b), "pad the matrix first");
        let pattern = blocks_of(Threads::Pool, a).clone();
        let values = Buffer::zeros(pattern.col_ind().len() * b * b);
        let mut blocks = Self { block_size: b, pattern, values };
        blocks.set_values(a);
        blocks
    }

    /// Takes over the values of `a`, which must have the pattern of the matrix that this one was
    /// made of.
    pub(crate) fn set_values(&mut self, a: &Csr) {
        let Self { block_size, pattern, values } = self;
        let b = *block_size;
        let mut rest = &mut values[..];
        let mut rows = Vec::with_capacity(pattern.row_ptr().len() - 1);
        for (i, ends) in pattern.row_ptr().windows(2).enumerate() {
            let of_row;
            (of_row, rest) = rest.split_at_mut((ends[1] - ends[0]) as usize * b * b);
            rows.push((i, &pattern.col_ind()[ends[0] as usize..ends[1] as usize], of_row));
        }
        Threads::Pool.each(rows, |(i, blocks, values)| {
            for r in 0..b {
                let (cols, row) = a.row(i * b + r);
                if cols.len() == blocks.len() * b {
                    // every entry of every block
                    let columns = values.chunks_exact_mut(b).map(|column| &mut column[r]);
                    columns.zip(row).for_each(|(to, v)| *to = *v);
                    continue;
                }
                // columns increase, so the blocks come one after the other
                let mut e = 0;
                for (&j, v) in cols.iter().zip(row) {
                    while blocks[e] != j / b as u32 {
                        e += 1;
                    }
                    values[e * b * b + (j as usize % b) * b + r] = *v;
                }
            }
        });
    }

    /// Unknowns per block.
    pub fn block_size(&self) -> usize {
        self.block_size
    }

    /// Number of block rows.
    pub fn block_rows(&self) -> usize {
        self.row_ptr().len() - 1
    }

    /// Number of stored blocks.
    pub fn blocks(&self) -> usize {
        self.col_ind().len()
    }

    /// Start of each block row in `col_ind`.
    pub fn row_ptr(&self) -> &[u32] {
        self.pattern.row_ptr()
    }

    /// Block column of each block.
    pub fn col_ind(&self) -> &[u32] {
        self.pattern.col_ind()
    }

    /// Blocks in the order of `col_ind`, b * b values each, column-major.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Bytes held by the three arrays.
    pub fn bytes(&self) -> usize {
        4 * (self.row_ptr().len() + self.col_ind().len()) + 8 * self.values.len()
    }
}

impl Format {
    /// The format in which `a` is stored when this one is asked for; never [`Format::Auto`]. BSR with
    /// blocks of one is CSR. Blocks are counted on the threads of the current pool.
    #[must_use]
    pub fn stored(self, a: &Csr) -> Self {
        self.stored_in(a, || count_blocks(Threads::Pool, a))
    }

    /// The same, where `count` tells the blocks that have entries.
    pub(crate) fn stored_in(self, a: &Csr, count: impl FnOnce() -> usize) -> Self {
        let block_size = a.block_size();
        match self {
            Self::Auto | Self::Bsr if block_size == 1 => return Self::Csr,
            Self::Auto => {}
            chosen => return chosen,
        }
        let blocks = count();
        let bytes = blocks * (8 * block_size * block_size + 4) + 4 * (a.rows() / block_size + 1);
        if bytes < a.bytes() { Self::Bsr } else { Self::Csr }
    }
}

/// `a` in blocks of `block_size`, followed by identity rows until that divides its order.
pub fn pad(a: &Csr, block_size: usize) -> Csr {
    let n = a.rows().next_multiple_of(block_size);
    if n == a.rows() {
        return a.in_blocks(block_size);
    }
    let (mut row_ptr, mut col_ind, mut values) = a.clone().into_parts();
    for i in a.rows()..n {
        col_ind.push(i as u32);
        values.push(1.0);
        row_ptr.push(col_ind.len() as u32);
    }
    let padded = Csr::new(n, n, row_ptr, col_ind, values);
    padded.expect("identity rows keep a matrix valid").in_blocks(block_size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_column_major_with_zeros_kept() {
        // [1 2 0 0; 0 3 0 4; 0 0 5 0; 6 0 0 7]
        let a = Csr::new(
            4,
            4,
            vec![0, 2, 4, 5, 7],
            vec![0, 1, 1, 3, 2, 0, 3],
            vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
        )
        .unwrap();
        let b = Bsr::from_csr(&a.in_blocks(2));
        assert_eq!((b.row_ptr(), b.col_ind()), (&[0, 2, 4][..], &[0, 1, 0, 1][..]));
        assert_eq!(b.values()[..8], [1.0, 0.0, 2.0, 3.0, 0.0, 0.0, 0.0, 4.0]);
        assert_eq!(b.values()[8..], [0.0, 6.0, 0.0, 0.0, 5.0, 0.0, 0.0, 7.0]);
    }

    #[test]
    fn padding_adds_identity_rows() {
        let a = Csr::new(1, 1, vec![0, 1], vec![0], vec![9.0]).unwrap();
        let p = pad(&a, 3);
        assert_eq!((p.rows(), p.get(0, 0), p.get(2, 2)), (3, Some(9.0), Some(1.0)));
        assert_eq!((p.block_size(), pad(&p, 3)), (3, p));
    }
}
