//! Vectors that are constant on pieces of consecutive block rows, one for each component of a block: Z of a coarse
//! space.

use std::ops::Range;

/// The rows of Z that a rank has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Edge of a block.
    pub block_size: usize,
    /// First unknown of each piece of the rank, and their end.
    pub starts: Vec<usize>,
    /// Block rows of the rank that belong to no vector, ascending.
    pub without: Vec<u32>,
    /// Vectors of the ranks before, and of all.
    pub vectors: [usize; 2],
    /// A vector of zeros, counted among all.
    pub left_out: Option<usize>,
}

impl Constants {
    /// Vectors of this rank.
    pub fn own(&self) -> usize {
        (self.starts.len() - 1) * self.block_size
    }

    /// Unknowns of this rank.
    pub fn unknowns(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// Consecutive unknowns that belong to the vectors of a piece, and its number.
    pub fn runs(&self) -> Vec<(usize, Range<usize>)> {
        let (b, mut runs) = (self.block_size, Vec::new());
        for (piece, ends) in self.starts.windows(2).enumerate() {
            let mut start = ends[0];
            let first = self.without.partition_point(|&row| (row as usize) * b < ends[0]);
            let within = self.without[first..].iter().map(|&row| row as usize * b);
            for end in within.take_while(|&end| end < ends[1]).chain([ends[1]]) {
                if start < end {
                    runs.push((piece, start..end));
                }
                start = end + b;
            }
        }
        runs
    }

    /// The vector of each unknown of this rank, counted among all; `none` where it has none.
    pub fn of_unknowns(&self, none: u32) -> Vec<u32> {
        let (b, mut of) = (self.block_size, vec![none; self.unknowns()]);
        for (piece, run) in self.runs() {
            let first = self.vectors[0] + piece * b;
            for (component, at) in run.enumerate() {
                let vector = first + component % b;
                if self.left_out != Some(vector) {
                    of[at] = vector as u32;
                }
            }
        }
        of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_leave_out_block_rows_of_no_vector() {
        let mut z = Constants {
            block_size: 2,
            starts: vec![0, 8, 14],
            without: vec![0, 2, 3, 6],
            vectors: [10, 14],
            left_out: None,
        };
        assert_eq!((z.own(), z.unknowns()), (4, 14));
        assert_eq!(z.runs(), [(0, 2..4), (1, 8..12)]);
        let of = |z: &Constants| z.of_unknowns(0);
        assert_eq!(of(&z), [0, 0, 10, 11, 0, 0, 0, 0, 12, 13, 12, 13, 0, 0]);
        z.left_out = Some(13);
        assert_eq!(of(&z), [0, 0, 10, 11, 0, 0, 0, 0, 12, 0, 12, 0, 0, 0]);
    }
}
