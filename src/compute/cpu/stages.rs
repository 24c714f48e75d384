//! Factorisation stage by stage, with what other ranks make of their rows between.

use super::block::with_block_size;
use super::ilu::{BlockIlu, Job, lock, some_rows};
use super::local::StagedIlu;
use super::parts::Blocks;
use super::values::Values;
use crate::compute::Breakdown;
use crate::compute::distributed::{FactorBlocks, StagePart};
use crate::matrix::Csr;

impl StagedIlu {
    /// See [`Local::ilu_factor_in_stages`](crate::compute::distributed::Local::ilu_factor_in_stages).
    pub(super) fn factor(
        &mut self,
        a: &Csr,
        shift: f64,
        between: &mut dyn FnMut(usize, &mut dyn FactorBlocks),
    ) -> Vec<Breakdown> {
        let Self { ilu: BlockIlu { pattern, values, spaces, supernodes, .. }, stages } = self;
        let mut beside = None;
        let (blocks, stored) = match values {
            Values::Double(blocks) => (blocks, None),
            stored => (beside.insert(Blocks::zeros(pattern)), Some(stored)),
        };
        let b = pattern.block_size();
        // those of others that nobody sends
        blocks.inverse_diagonal.chunks_exact_mut(b * b).for_each(|d| {
            d.fill(0.0);
            d.iter_mut().step_by(b + 1).for_each(|v| *v = 1.0);
        });
        let mut broken = Vec::new();
        for (t, parts) in stages.iter().enumerate() {
            let job =
                Job { supernodes: supernodes.as_ref(), ..Job::new(a, shift, pattern, blocks) };
            let space = &mut *lock(&spaces[0]);
            for part in parts {
                let done = with_block_size!(b, some_rows(&job, part.rows.clone(), space));
                broken.extend(done.err().map(Breakdown::Singular));
            }
            between(t, &mut Entries { rows: pattern.rows(), block: b * b, blocks });
        }
        if let Some(stored) = stored
            && broken.is_empty()
            && stored.store(blocks, pattern, false).is_err()
        {
            let first = |part: &StagePart| part.rows.clone().find(|&row| stored.lost(pattern, row));
            let lost = stages.iter().flatten().filter_map(first);
            broken.extend(lost.map(|row| Breakdown::Range { row }));
        }
        broken
    }
}

/// Blocks of factors by their places.
struct Entries<'a> {
    rows: usize,
    block: usize,
    blocks: &'a mut Blocks<f64>,
}

impl Entries<'_> {
    fn at(&mut self, place: u32) -> &mut [f64] {
        let (place, bb) = (place as usize, self.block);
        match place.checked_sub(self.rows) {
            None => &mut self.blocks.inverse_diagonal[place * bb..(place + 1) * bb],
            // U' is stored from its end
            Some(entry) => {
                let at = self.blocks.upper.len() - (entry + 1) * bb;
                &mut self.blocks.upper[at..at + bb]
            }
        }
    }
}

impl FactorBlocks for Entries<'_> {
    fn read(&mut self, places: &[u32], out: &mut [f64]) {
        let blocks = out.chunks_exact_mut(self.block);
        places.iter().zip(blocks).for_each(|(&place, out)| out.copy_from_slice(self.at(place)));
    }

    fn write(&mut self, places: &[u32], from: &[f64]) {
        let blocks = from.chunks_exact(self.block);
        places.iter().zip(blocks).for_each(|(&place, from)| self.at(place).copy_from_slice(from));
    }
}
