//! Groups of rows: consecutive rows with blocks of one that have the same columns, as the equations of a cell or a node
//! have. An index that is read serves all rows of a group.

use std::ops::Range;

use crate::base::threads::Threads;
use crate::matrix::pattern::PatternView;

/// Rows of a group at most: as many as lanes.
pub(super) const MOST: usize = 4;

/// Which rows belong together.
pub(super) struct Groups {
    /// Place of each row in its group, from 0.
    places: Vec<u8>,
}

impl Groups {
    /// Those of so many rows, of which `continues` says whether a row (never the first) belongs to the one before it;
    /// `None` where fewer than half of the rows are in a group with others.
    pub(super) fn of(
        threads: Threads,
        rows: usize,
        continues: impl Fn(usize) -> bool + Sync,
    ) -> Option<Self> {
        let mut places: Vec<u8> = threads.map(rows, 1 << 14, |i| u8::from(i > 0 && continues(i)));
        let (mut alone, mut place) = (0, 0);
        for of_row in &mut places {
            place = if *of_row > 0 && place + 1 < MOST as u8 { place + 1 } else { 0 };
            match place {
                0 => alone += 1,
                1 => alone -= 1,
                _ => {}
            }
            *of_row = place;
        }
        (2 * alone < places.len()).then_some(Self { places })
    }

    /// Those of rows with the same columns.
    pub(super) fn alike(threads: Threads, of: PatternView) -> Option<Self> {
        Self::of(threads, of.row_ptr.len() - 1, |i| of.row(i) == of.row(i - 1))
    }

    /// Bytes of indices that a product reads: where rows begin, their places, and the columns of the first row of each
    /// group.
    pub(super) fn bytes(&self, row_ptr: &[u32]) -> usize {
        let rows = row_ptr.windows(2).zip(&self.places);
        let columns =
            rows.map(|(of, &place)| if place == 0 { (of[1] - of[0]) as usize } else { 0 });
        size_of_val(row_ptr) + self.places.len() + size_of::<u32>() * columns.sum::<usize>()
    }

    /// Rows of the group that begins with the first of `rows`, or of what is left of it there.
    #[inline(always)]
    pub(super) fn ahead(&self, rows: Range<usize>) -> usize {
        let places = &self.places[rows];
        let follows =
            |&(at, &place): &(usize, &u8)| usize::from(place) == usize::from(places[0]) + at;
        places.iter().enumerate().take(MOST).take_while(follows).count()
    }

    /// Rows of the group that ends with the last of `rows`.
    #[inline(always)]
    pub(super) fn behind(&self, rows: Range<usize>) -> usize {
        (usize::from(self.places[rows.end - 1]) + 1).min(rows.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_from_both_ends() {
        let groups = Groups { places: vec![0, 1, 2, 0, 0, 1, 2, 3, 0, 1] };
        let ahead = |rows| groups.ahead(rows);
        assert_eq!(
            [ahead(0..10), ahead(1..10), ahead(3..10), ahead(4..10), ahead(4..6)],
            [3, 2, 1, 4, 2]
        );
        let behind = |rows| groups.behind(rows);
        assert_eq!([behind(0..10), behind(0..8), behind(5..8), behind(0..4)], [2, 4, 3, 1]);
    }

    #[test]
    fn groups_end_after_four_rows_and_are_kept_where_half_of_the_rows_are_in_one() {
        let of = |alike: &[usize]| Groups::of(Threads::One, 10, |i| alike.contains(&i));
        assert_eq!(of(&[1, 2, 3, 4, 5, 8]).unwrap().places, [0, 1, 2, 3, 0, 1, 0, 0, 1, 0]);
        // four of ten rows
        assert!(of(&[1, 8]).is_none() && of(&[]).is_none());
    }
}
