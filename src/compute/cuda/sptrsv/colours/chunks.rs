//! What one launch for both colours reads, cut into chunks (`kernels/sptrsv/colours/stream.cu`).

use rayon::prelude::*;

use super::slices::{Kind, Layout, Plan};
use crate::base::error::{Error, Result};
use crate::base::threads::Threads;
use crate::compute::cuda::layout::shared;

/// Unit of addresses and sizes of chunks.
pub(super) const UNIT: usize = 16;

/// What a launch looks like, as `sptrsv/colours/stream.cu` says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Warps of a thread block that solve.
    pub(super) workers: usize,
    /// Most entries of a row in a chunk.
    pub(super) entries: usize,
    /// Bytes of shared memory for chunks.
    pub(super) ring: usize,
    /// Most stages of a warp's part of them.
    pub(super) most_stages: usize,
}

shared! {
    /// A chunk.
    #[derive(Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
    pub(super) Chunk = "Listed" of "sptrsv/colours/stream.cu" {
        /// Where it is, in [`UNIT`]s.
        at: u32,
        slice: u32,
        /// First of its entries of each row.
        from: u32,
        what: u32,
        refill: u32,
        turns: u32,
        place: u32,
    }
}

/// A chunk with the number of its colour and its bytes.
type Listed = (usize, usize, Chunk);

/// What the chunks of a slice have in common.
#[derive(Clone, Copy)]
struct Sliced {
    rows: usize,
    /// Entries of the longest row, and how columns are stored.
    length: usize,
    kind: usize,
    /// Whether it is of the colour that is solved for last.
    second: bool,
    /// Least place of its rows, and whether all are within 16 bits of it.
    place: u32,
    near: bool,
    /// Bytes of a number of the factors.
    stored: usize,
}

impl Sliced {
    /// Bytes of the chunk with the entries from number `from` on, `entries` of them.
    fn bytes(&self, from: usize, entries: usize) -> usize {
        let first = usize::from(from == 0);
        let diagonal = first * self.stored;
        let place = first * if self.near { 2 } else { 4 };
        let (of_row, alone) = match self.kind {
            k if k == Kind::Wide as usize => (4, 0),
            k if k == Kind::Uniform as usize => (0, 4),
            _ => (2, 4),
        };
        let entry = self.rows * (self.stored + of_row) + alone;
        (UNIT + self.rows * (diagonal + place) + entries * entry).next_multiple_of(UNIT)
    }

    /// First entry and number of entries of each chunk, which are at most `most`.
    fn pieces(&self, most: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let length = self.length;
        let each = length.div_ceil(length.div_ceil(most).max(1)).max(1);
        (0..length.max(1)).step_by(each).map(move |from| (from, each.min(length - from)))
    }

    /// Bytes of all its chunks.
    fn all_bytes(&self, most: usize) -> usize {
        self.pieces(most).map(|(from, entries)| self.bytes(from, entries)).sum()
    }

    /// `what` of a chunk.
    fn what(&self, from: usize, entries: usize) -> u32 {
        let flag = |is: bool, bit: u32| u32::from(is) << bit;
        (self.rows | entries << 6 | self.kind << 11) as u32
            | flag(self.second, 13)
            | flag(from == 0, 14)
            | flag(from + entries == self.length, 15)
            | flag(self.near, 16)
    }
}

/// What the thread blocks have of a colour.
struct Share {
    slices: Vec<(usize, Sliced)>,
    /// First of each thread block among the slices, and one past the last.
    starts: Vec<usize>,
}

impl Share {
    /// About as many bytes for each of `blocks` thread blocks, in the order of the slices.
    fn new(slices: Vec<(usize, Sliced)>, most: usize, blocks: usize) -> Self {
        let bytes: Vec<usize> = Threads::Pool.map(slices.len(), 1, |i| slices[i].1.all_bytes(most));
        let (total, mut before) = (bytes.iter().sum::<usize>(), 0);
        let mut starts = vec![0; blocks + 1];
        for bytes in bytes {
            let block = (before + bytes / 2) * blocks / total;
            starts[block + 1] += 1;
            before += bytes;
        }
        (0..blocks).for_each(|block| starts[block + 1] += starts[block]);
        Self { slices, starts }
    }
}

/// The chunks of a warp, of at most `most` entries: the warps of a thread block take its slices in turn.
fn listed(shares: &[Share], warp: usize, workers: usize, most: usize) -> Vec<Listed> {
    let (block, turn) = (warp / workers, warp % workers);
    let (mut list, mut before) = (Vec::new(), 0);
    for (number, share) in shares.iter().enumerate() {
        let own = &share.slices[share.starts[block]..share.starts[block + 1]];
        let first = (turn + workers - before % workers) % workers;
        before += own.len();
        for &(s, t) in own.iter().skip(first).step_by(workers) {
            list.extend(t.pieces(most).map(|(from, entries)| {
                let what = t.what(from, entries);
                let (slice, place) = (s as u32, t.place);
                let chunk = Chunk { slice, from: from as u32, what, place, ..Chunk::default() };
                (number, t.bytes(from, entries), chunk)
            }));
        }
    }
    list
}

/// The chunks of all warps, one warp after the other.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) chunks: Vec<Chunk>,
    /// As in `sptrsv/colours/stream.cu`.
    pub(super) starts: Vec<u32>,
    pub(super) colours: usize,
    pub(super) stages: usize,
    pub(super) stage_bytes: usize,
    /// Of all chunks, in [`UNIT`]s.
    pub(super) units: usize,
}

/// Distance from rows to their farthest columns, where that is the same for many rows: of a grid from plane
/// to plane, or from line to line. 0 where there is none.
fn farthest(layouts: [&Layout; 2]) -> usize {
    let of = |t: &Layout| {
        (0..t.shape.len())
            .filter(|&s| t.shape[s] % 4 == Kind::Uniform as u32)
            .flat_map(|s| &t.index[t.columns[s] as usize..][..t.shape[s] as usize / 4])
            .map(|&distance| distance.cast_signed().unsigned_abs())
            .max()
    };
    layouts.into_iter().filter_map(of).max().unwrap_or(0) as usize
}

impl Cut {
    /// For `blocks` thread blocks and numbers of `stored` bytes; `row` is that of the vectors at each
    /// position. `None` where not even short chunks fit in the ring twice.
    pub(super) fn new(
        plan: &Plan,
        layouts: [&Layout; 2],
        row: &[u32],
        stored: usize,
        shape: Shape,
        blocks: usize,
    ) -> Result<Option<Self>> {
        let places: Vec<(u32, bool)> = Threads::Pool.map(plan.slices(), 1, |s| {
            let of = || row[plan.slice(s)].iter().copied();
            let least = of().min().unwrap_or(0);
            (least, u16::try_from(of().max().unwrap_or(0) - least).is_ok())
        });
        // the first to be solved for is the last colour, whose rows have the others as columns of L
        let colours = plan.colours.len() - 1;
        let parts: Vec<bool> = [false, true][..colours].to_vec();
        let of_part = |&second: &bool| {
            let colour = if second { 0 } else { colours - 1 };
            let places = &places;
            (plan.colours[colour] as usize..plan.colours[colour + 1] as usize).map(move |s| {
                let shape = layouts[usize::from(second)].shape[s] as usize;
                let ((place, near), rows) = (places[s], plan.slice(s).len());
                let (length, kind) = (shape / 4, shape % 4);
                (s, Sliced { rows, length, kind, second, place, near, stored })
            })
        };
        let longest = |most| {
            let of = |part| of_part(part).map(|(_, t)| t.bytes(0, t.length.min(most))).max();
            Threads::Pool
                .map(parts.len(), 1, |i| of(&parts[i]))
                .into_iter()
                .flatten()
                .max()
                .unwrap_or(UNIT)
        };
        // whole lines of the memory's banks
        let stages = |bytes: usize| shape.ring / shape.workers / bytes;
        let fits = (1..=shape.entries)
            .rev()
            .map(|most| (most, longest(most).next_multiple_of(128)))
            .find(|&(_, bytes)| stages(bytes) >= 2);
        let Some((most, stage_bytes)) = fits else { return Ok(None) };

        // Each thread block has neighbours of a colour and as many bytes as any other.
        // What they read together, and what they read next, is a column of the grid from plane to plane:
        // vectors are read from the cache that its planes share.
        let stride = farthest(layouts);
        let columns = (stride as f64 / (64 * shape.workers) as f64).round().max(1.0) as usize;
        let width = stride.div_ceil(columns).max(1);
        let share = |part: &bool| {
            let mut slices: Vec<_> = of_part(part).collect();
            if columns > 1 {
                let key = |(s, _): &(usize, Sliced)| {
                    let at = row[plan.first[*s] as usize] as usize;
                    (at % stride / width, at)
                };
                slices.par_sort_by_cached_key(key);
            }
            Share::new(slices, most, blocks)
        };
        let shares: Vec<Share> = Threads::Pool.map(parts.len(), 1, |i| share(&parts[i]));
        let listed = |warp| listed(&shares, warp, shape.workers, most);
        let lists: Vec<Vec<Listed>> = Threads::Pool.map(blocks * shape.workers, 1, listed);
        let mut cut = Self {
            chunks: Vec::with_capacity(lists.iter().map(Vec::len).sum()),
            starts: Vec::new(),
            colours,
            stages: stages(stage_bytes).min(shape.most_stages),
            stage_bytes,
            units: 0,
        };
        for list in &lists {
            cut.append(list, shape.most_stages)?;
        }
        Ok(Some(cut))
    }

    /// Adds the chunks of a warp.
    fn append(&mut self, list: &[Listed], most_stages: usize) -> Result<()> {
        let unit =
            |at: usize| u32::try_from(at).map_err(|_| Error::memory("factors of more than 64 GiB"));
        let last = self.colours - 1;
        let number = |k: usize| list.get(k).map_or(last, |c| c.0);
        let bytes = |k: usize| list.get(k).map_or(0, |c| c.1 as u32);
        self.starts.extend([unit(self.units)?, list.len() as u32, number(0) as u32]);
        let filled = (0..most_stages).map(|k| if k < self.stages { bytes(k) } else { 0 });
        self.starts.extend(filled);
        for (k, &(part, size, chunk)) in list.iter().enumerate() {
            let turns = (number(k + 1) - part) as u32;
            // into the stage of the chunk before this
            let refill = if k == 0 { 0 } else { bytes(k - 1 + self.stages) };
            self.chunks.push(Chunk { at: unit(self.units)?, refill, turns, ..chunk });
            self.units += size / UNIT;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::slices::tests::coloured;
    use super::*;
    use crate::matrix::pattern::Pattern;

    const SHAPE: Shape = Shape { workers: 3, entries: 4, ring: 24 << 10, most_stages: 8 };

    /// Bits of `what`.
    fn bits(chunk: &Chunk, from: u32, count: u32) -> usize {
        (chunk.what >> from & ((1 << count) - 1)) as usize
    }

    struct Laid {
        plan: Plan,
        layouts: [Layout; 2],
        row: Vec<u32>,
    }

    impl Laid {
        fn new(spec: &str) -> Self {
            let (pattern, sets) = coloured(spec, 0);
            let plan = Plan::new(&sets.in_place(), &pattern, 32, None);
            assert_eq!(plan.colours.len(), 3, "{spec} has two colours");
            let layout =
                |t: &Pattern| Layout::new(&plan, t.view(), &sets.rows, &sets.rows).unwrap();
            let layouts = [layout(&pattern.lower), layout(&pattern.upper)];
            let row = plan.rows.iter().map(|&i| sets.rows[i as usize]).collect();
            Self { plan, layouts, row }
        }

        fn cut(&self, ring: usize, blocks: usize) -> Option<Cut> {
            let shape = Shape { ring, ..SHAPE };
            let [lower, upper] = &self.layouts;
            Cut::new(&self.plan, [lower, upper], &self.row, 8, shape, blocks).unwrap()
        }
    }

    /// The warps' chunks with the number of the colour that each belongs to, as the kernel goes through them.
    fn walked(cut: &Cut) -> Vec<Vec<(usize, Chunk)>> {
        let mut next = cut.chunks.iter();
        let of_warp = |start: &[u32]| {
            let mut number = start[2] as usize;
            let chunks: Vec<_> = next
                .by_ref()
                .take(start[1] as usize)
                .map(|c| {
                    let of = number;
                    number += c.turns as usize;
                    (of, *c)
                })
                .collect();
            assert_eq!(number, cut.colours - 1, "every warp waits as often as any other");
            chunks
        };
        let all = cut.starts.chunks(3 + SHAPE.most_stages).map(of_warp).collect();
        assert!(next.next().is_none());
        all
    }

    #[test]
    fn chunks_hold_each_entry_once_and_follow_one_another() {
        for spec in ["bubbly:24x23x22", "poisson3d:7x5x3", "poisson3d:190x181x1"] {
            let laid = Laid::new(spec);
            let (plan, blocks) = (&laid.plan, 5);
            let cut = laid.cut(SHAPE.ring, blocks).unwrap();
            assert!(cut.stages >= 2 && SHAPE.workers * cut.stages * cut.stage_bytes <= SHAPE.ring);
            let (mut at, mut entries) = (0, vec![vec![0; plan.slices()]; 2]);
            let mut bytes = vec![vec![0; blocks]; 2];
            for (warp, chunks) in walked(&cut).iter().enumerate() {
                let start = &cut.starts[warp * (3 + SHAPE.most_stages)..];
                let end = start.get(3 + SHAPE.most_stages).map_or(cut.units as u32, |&at| at);
                let starts = chunks.iter().map(|(_, c)| c.at).chain([end]);
                let ends: Vec<u32> = starts.skip(1).collect();
                let size = |k: usize| ends.get(k).map_or(0, |end| (end - chunks[k].1.at) * 16);
                assert!((0..cut.stages).all(|k| start[3 + k] == size(k)));
                for (k, &(number, chunk)) in chunks.iter().enumerate() {
                    assert_eq!(chunk.at, at);
                    at = ends[k];
                    let refill = if k == 0 { 0 } else { size(k - 1 + cut.stages) };
                    assert_eq!(chunk.refill, refill);
                    assert!(size(k) as usize <= cut.stage_bytes);
                    let (s, colour) = (chunk.slice as usize, 1 - number);
                    assert_eq!(bits(&chunk, 13, 1), number);
                    assert!(
                        (plan.colours[colour]..plan.colours[colour + 1]).contains(&chunk.slice)
                    );
                    // the parts of a row in their order
                    assert_eq!(chunk.from, entries[number][s]);
                    entries[number][s] += bits(&chunk, 6, 5) as u32;
                    assert_eq!(bits(&chunk, 14, 1) == 1, chunk.from == 0);
                    let all = entries[number][s] == laid.layouts[number].shape[s] / 4;
                    assert_eq!(bits(&chunk, 15, 1) == 1, all);
                    assert_eq!(bits(&chunk, 0, 6), plan.slice(s).len());
                    bytes[number][warp / SHAPE.workers] += size(k) as usize;
                }
            }
            assert_eq!(at as usize, cut.units);
            for number in 0..2 {
                for s in plan.colours[1 - number] as usize..plan.colours[2 - number] as usize {
                    assert_eq!(entries[number][s], laid.layouts[number].shape[s] / 4, "{spec}");
                }
                // as equal as whole slices can be
                let (least, most) = (bytes[number].iter().min(), bytes[number].iter().max());
                let differ = most.unwrap() - least.unwrap();
                assert!(differ <= 4 * cut.stage_bytes, "{spec}: {:?}", bytes[number]);
            }
        }
    }

    #[test]
    fn chunks_are_shortened_until_two_fit() {
        let laid = Laid::new("bubbly:24x23x22");
        let longest = |cut: &Cut| cut.chunks.iter().map(|c| bits(c, 6, 5)).max();
        let [ample, tight] = [24 << 10, 6 << 10].map(|ring| laid.cut(ring, 4).unwrap());
        assert_eq!(longest(&ample), Some(4));
        assert_eq!((longest(&tight), tight.stages), (Some(2), 2));
        assert!(laid.cut(3 << 10, 4).is_none());
    }

    #[test]
    fn grids_have_a_stride() {
        let of = |spec| {
            let [lower, upper] = Laid::new(spec).layouts;
            farthest([&lower, &upper])
        };
        assert_eq!(of("bubbly:24x23x22"), 24 * 23);
        assert_eq!(of("poisson3d:190x181x1"), 190);
    }
}
