//! Rows of a matrix shared out among the thread blocks of one kernel.

use super::Matrix;
use super::device::{Device, WARP};
use crate::base::error::Result;

/// Work of a row beside its entries, in entries: the vectors.
const VECTORS: u64 = 12;

/// Consecutive rows for each thread block.
pub(super) struct Ranges {
    /// First row of each range, and the end of the last.
    pub(super) starts: Vec<u32>,
    /// Rows of the longest.
    pub(super) longest: usize,
}

impl Ranges {
    /// For a thread block on each multiprocessor in use: whole warps of `places` rows a lane, whole
    /// blocks of `block_size` rows.
    pub(super) fn of(
        d: &Device,
        a: &Matrix,
        n: usize,
        (places, block_size): (usize, usize),
    ) -> Result<Self> {
        let unit = least_common_multiple(WARP * places, block_size);
        let most = d.multiprocessors().min(d.limits().resident) as usize;
        let entries = Self::entries_before(d, a)?;
        let work = |row: usize| entries(row) + VECTORS * row as u64;
        Ok(Self::shared_out(n, unit, most, work))
    }

    /// Entries of the rows before each row.
    fn entries_before(d: &Device, a: &Matrix) -> Result<Box<dyn Fn(usize) -> u64>> {
        Ok(match a {
            Matrix::Ours(a) => {
                let (row_ptr, b) = (d.host(a.row_ptr())?, a.block_size);
                Box::new(move |row| {
                    let (row, rest) = (row / b, row % b);
                    let next = (row + 1).min(row_ptr.len() - 1);
                    let (from, to) = (u64::from(row_ptr[row]), u64::from(row_ptr[next]));
                    from * (b * b) as u64 + (to - from) * (b * rest) as u64
                })
            }
            Matrix::Formatted(a) => a.entries_before(),
            // as many for each row
            Matrix::Vendor(_) | Matrix::VendorSell(_) => Box::new(|_| 0),
        })
    }

    /// `work(i)` is that of the rows before i.
    fn shared_out(n: usize, unit: usize, most: usize, work: impl Fn(usize) -> u64) -> Self {
        let units = n.div_ceil(unit).max(1);
        let count = units.min(most.max(1));
        let end = |of_unit: usize| (of_unit * unit).min(n);
        let all = work(n);
        let (mut starts, mut at) = (vec![0], 0);
        for range in 1..count {
            let share = (u128::from(all) * range as u128 / count as u128) as u64;
            // a unit for this range and one for each that is left
            let (least, last) = (at + 1, units - (count - range));
            let mut next = least;
            while next < last && work(end(next)) < share {
                next += 1;
            }
            // the nearer end
            if next > least && share - work(end(next - 1)) < work(end(next)).saturating_sub(share) {
                next -= 1;
            }
            at = next;
            starts.push(end(at) as u32);
        }
        starts.push(n as u32);
        let longest = starts.windows(2).map(|w| (w[1] - w[0]) as usize).max().unwrap_or(0);
        Self { starts, longest }
    }

    /// Number of ranges.
    pub(super) fn count(&self) -> usize {
        self.starts.len() - 1
    }
}

fn least_common_multiple(a: usize, b: usize) -> usize {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_whole_units_and_even_work() {
        let even = Ranges::shared_out(1000, 32, 4, |row| row as u64);
        assert_eq!((even.starts.as_slice(), even.longest), (&[0, 256, 512, 736, 1000][..], 264));
        // the first rows have ten times the work
        let uneven = Ranges::shared_out(960, 32, 3, |row| (row + 9 * row.min(96)) as u64);
        assert_eq!(uneven.starts, [0, 64, 352, 960]);
    }

    #[test]
    fn small_systems_have_fewer_ranges() {
        assert_eq!(Ranges::shared_out(1, 32, 132, |row| row as u64).starts, [0, 1]);
        assert_eq!(Ranges::shared_out(70, 32, 132, |row| row as u64).starts, [0, 32, 64, 70]);
        // all work in the last row
        let last = Ranges::shared_out(96, 32, 3, |row| if row == 96 { 100 } else { 0 });
        assert_eq!(last.starts, [0, 32, 64, 96]);
        let first = Ranges::shared_out(96, 32, 3, |row| if row > 0 { 100 } else { 0 });
        assert_eq!(first.starts, [0, 32, 64, 96]);
    }

    #[test]
    fn units_are_whole_warps_and_blocks() {
        assert_eq!(
            [(32, 1), (64, 8), (32, 3), (32, 25)].map(|(a, b)| least_common_multiple(a, b)),
            [32, 64, 96, 800]
        );
    }
}
