//! What the thread blocks of `kernels/sptrsv/colours/boxes.cu` do step by step.

use std::ops::Range;

use super::{Common, Own, WARP};
use crate::compute::cuda::layout::shared;

shared! { words [u32; 4] = "Step" of "sptrsv/colours/boxes.cu"; }

/// What a step does beside its entries; mirrors the kernel.
pub(in crate::compute::cuda::sptrsv::colours::boxes) const FIRST: u32 = 1 << 8;
pub(in crate::compute::cuda::sptrsv::colours::boxes) const LAST: u32 = 2 << 8;
pub(in crate::compute::cuda::sptrsv::colours::boxes) const SCALE_FIRST: u32 = 4 << 8;
pub(in crate::compute::cuda::sptrsv::colours::boxes) const SCALE_LAST: u32 = 8 << 8;
pub(in crate::compute::cuda::sptrsv::colours::boxes) const ENDS: u32 = 16 << 8;

/// Places of numbers that are handed over: what a step has bits for.
pub(in crate::compute::cuda::sptrsv::colours::boxes) const PLACES: u32 = 1 << 22;

/// Steps of a part.
pub(in crate::compute::cuda::sptrsv::colours::boxes) struct Steps {
    pub(in crate::compute::cuda::sptrsv::colours::boxes) all: Vec<[u32; 4]>,
    /// First step of each colour of L and of U'.
    pub(in crate::compute::cuda::sptrsv::colours::boxes) first: [Vec<u32>; 2],
    pub(in crate::compute::cuda::sptrsv::colours::boxes) values: usize,
}

impl Common<'_> {
    /// The steps of a part, whose cells are handed over at such `places` of each colour for L and for U'.
    pub(in crate::compute::cuda::sptrsv::colours::boxes) fn steps(
        &self,
        own: &Own,
        places: &[u32],
    ) -> Steps {
        let last = self.colours - 1;
        let none = || vec![0; self.colours];
        let mut steps = Steps { all: Vec::new(), first: [none(), none()], values: 0 };
        let published =
            |c: usize, upper: usize| (own.published[c][upper].clone(), places[2 * c + upper]);
        for c in 1..last {
            self.colour(&mut steps, own, (0, c), [FIRST, LAST], Some(&published(c, 0)));
        }
        self.colour(
            &mut steps,
            own,
            (0, last),
            [FIRST, LAST | SCALE_LAST],
            Some(&published(last, 1)),
        );
        for c in (1..last).rev() {
            self.colour(
                &mut steps,
                own,
                (1, c),
                [FIRST | SCALE_FIRST, LAST],
                Some(&published(c, 1)),
            );
        }
        self.colour(&mut steps, own, (1, 0), [FIRST | SCALE_FIRST, LAST], None);
        steps
    }

    /// Adds the steps of a colour of L or U', some of whose cells are handed over, from a place on.
    fn colour(
        &self,
        steps: &mut Steps,
        own: &Own,
        (upper, c): (usize, usize),
        [first, last]: [u32; 2],
        published: Option<&(Range<u32>, u32)>,
    ) {
        let (listed, list) =
            (self.listed[upper * self.colours + c], self.pieces[upper * self.colours + c]);
        let (range, team) = (own.of(c), self.shape.team);
        let (start, slots) = (own.filled()[c], range.len().div_ceil(team).max(1));
        steps.first[upper][c] = steps.all.len() as u32;
        let (cells, place) = published.cloned().unwrap_or((0..0, 0));
        for slot in 0..slots {
            let before = (slot * team) as u32;
            let of_slot = |n: u32| n.saturating_sub(before).min(team as u32);
            let rows = of_slot(range.len() as u32);
            for piece in 0..listed.pieces {
                let is_last = piece + 1 == listed.pieces;
                let entries =
                    (listed.count - (piece * listed.size).min(listed.count)).min(listed.size);
                let mut what = if piece == 0 { first } else { 0 };
                let mut now = 0..0;
                if is_last {
                    what |= last;
                    what |= if published.is_some() && slot + 1 == slots { ENDS } else { 0 };
                    now = of_slot(cells.start)..of_slot(cells.end);
                }
                let scales = what & (SCALE_FIRST | SCALE_LAST) != 0;
                let each = entries + u32::from(scales);
                let place = place.wrapping_add(before).wrapping_sub(cells.start) % PLACES;
                steps.all.push([
                    (steps.values + if scales { WARP } else { 0 }) as u32,
                    ((start + before) / WARP as u32) | (rows << 10) | (now.end << 20),
                    ((1 << entries) - 1) | what | ((list + piece) << 14) | (each << 24),
                    place | (now.start << 22),
                ]);
                steps.values += each as usize * (rows as usize).next_multiple_of(WARP);
            }
        }
    }
}
