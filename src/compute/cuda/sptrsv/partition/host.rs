//! Plans of parts that the host makes: what those of the device are compared with.

use super::{Owners, REGIONS, Shape, Slice, blocks};
use crate::base::error::Result;
use crate::base::memory::joined;
use crate::base::threads::Threads;
use crate::compute::cuda::sptrsv::owners::Triangle;
use crate::matrix::pattern::PatternView;

/// A column that is a slot of shared memory; mirrors the kernel.
const LOCAL: u32 = 1 << 31;

/// The slot that holds zeros.
const ZEROS: u32 = 0;

impl Shape {
    /// Lanes that share a row of so many entries.
    fn sharing(&self, entries: usize) -> usize {
        let split = self.split as usize;
        match self.most_each {
            Some(each) => entries.div_ceil(each).next_power_of_two().clamp(split, self.most()),
            None => split,
        }
    }
}

/// A strictly triangular factor cut into parts; see `Parts` of the kernel for the arrays.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Partition {
    pub slices: Vec<Slice>,
    /// Rows, part by part, slice by slice.
    pub order: Vec<u32>,
    pub columns: Vec<u32>,
    pub segments: Vec<u32>,
    pub parts: Vec<u32>,
    /// Slots that are used, the one of zeros included.
    pub slots: u32,
    /// Slots of a segment; 0 when each part is one.
    pub region: u32,
}

impl Partition {
    /// Cuts the strictly triangular `pattern`; `backward` for an upper one.
    ///
    /// # Errors
    /// When there are too many rows or blocks for 32-bit indices.
    pub(super) fn new(
        pattern: PatternView,
        backward: bool,
        owners: &Owners,
        shape: Shape,
    ) -> Result<Self> {
        let triangle = Triangle::new(pattern, backward);
        let time = triangle.times(owners, shape.crossing);
        let [slots, region] = shape.slots(owners.largest());
        let rows = Rows::new(owners);
        let of = |own| Part::new(triangle, &rows, own, &time, shape, region);
        let parts: Vec<Part> = Threads::Pool.map(rows.of_part.len(), 1, |i| of(&rows.of_part[i]));
        Self { slots, region, ..Self::default() }.joined(&parts)
    }

    fn joined(mut self, parts: &[Part]) -> Result<Self> {
        blocks(parts.iter().map(|p| p.columns.len()).sum())?;
        let columns: Vec<&[u32]> = parts.iter().map(|part| &part.columns[..]).collect();
        let order: Vec<&[u32]> = parts.iter().map(|part| &part.order[..]).collect();
        (self.columns, self.order) = (joined(&columns, true), joined(&order, true));
        let (mut first, mut start) = (0, 0);
        for part in parts {
            let slices = self.slices.len() as u32;
            self.parts.push(self.segments.len() as u32);
            self.segments.extend(part.segments.iter().map(|s| s + slices));
            self.slices.extend(part.slices.iter().map(|s| Slice {
                first: s.first + first,
                start: s.start + start,
                ..*s
            }));
            first += part.order.len() as u32;
            start += part.columns.len() as u32;
        }
        self.parts.push(self.segments.len() as u32);
        self.segments.push(self.slices.len() as u32);
        Ok(self)
    }
}

/// The rows of each part, and each row's part and place among its rows.
struct Rows {
    of_part: Vec<Vec<u32>>,
    of_row: Vec<(u32, u32)>,
}

impl Rows {
    fn new(owners: &Owners) -> Self {
        let mut of_part = vec![Vec::new(); owners.parts];
        let of_row = owners.of_rows().into_iter().zip(0..).map(|(part, row)| {
            let own: &mut Vec<u32> = &mut of_part[part as usize];
            own.push(row);
            (part, own.len() as u32 - 1)
        });
        let of_row = of_row.collect();
        Self { of_part, of_row }
    }
}

/// One part, counted from its own start.
#[derive(Default)]
struct Part {
    slices: Vec<Slice>,
    order: Vec<u32>,
    columns: Vec<u32>,
    segments: Vec<u32>,
}

impl Part {
    /// The part of the rows `own`.
    fn new(
        triangle: Triangle,
        all: &Rows,
        own: &[u32],
        time: &[u32],
        shape: Shape,
        region: u32,
    ) -> Self {
        let mut order: Vec<u32> = own.to_vec();
        if triangle.backward {
            order.reverse();
        }
        // rows of one time do not depend on each other; those of like length share a slice
        order.sort_by_key(|&i| (time[i as usize], triangle.entries(i)));
        let mut part = Self { segments: vec![0], ..Self::default() };
        // slot and segment of each row, by its place among the rows of the part
        let mut held = vec![(0u32, 0u32); own.len()];
        let (mut used, mut first) = (0, 0);
        let sharing = |i: u32| shape.sharing(triangle.entries(i));
        let alike =
            |i: &u32, j: &u32| time[*i as usize] == time[*j as usize] && sharing(*i) == sharing(*j);
        for same in order.chunk_by(alike) {
            let split = sharing(same[0]);
            for rows in same.chunks((shape.lanes / split).max(1)) {
                if region != 0 && used + rows.len() as u32 > region {
                    part.segments.push(part.slices.len() as u32);
                    used = 0;
                }
                let segment = part.segments.len() as u32 - 1;
                let slot = 1 + segment % REGIONS * region + used;
                for (g, &i) in rows.iter().enumerate() {
                    held[all.of_row[i as usize].1 as usize] = (slot + g as u32, segment);
                }
                let longest = rows.last().map_or(0, |&i| triangle.entries(i));
                let upper = if shape.most_each.is_some() { split.ilog2() << 8 } else { 0 };
                part.slices.push(Slice {
                    first,
                    start: part.columns.len() as u32,
                    shape: (rows.len() as u32 | upper) as u16,
                    length: longest.div_ceil(split) as u16,
                    slot,
                });
                part.add_columns(triangle, all, rows, &held, (segment, split));
                used += rows.len() as u32;
                first += rows.len() as u32;
            }
        }
        part.order = order;
        part
    }

    /// Where the rows of the last slice find their operands: block n of a row is block n / split of
    /// its lanes n % split. A row ends with its block nearest to the diagonal; shorter rows begin
    /// with zeros.
    fn add_columns(
        &mut self,
        triangle: Triangle,
        all: &Rows,
        rows: &[u32],
        held: &[(u32, u32)],
        (segment, split): (u32, usize),
    ) {
        let length = self.slices.last().map_or(0, |s| s.length as usize);
        let (start, groups) = (self.columns.len(), rows.len() * split);
        self.columns.resize(start + length * groups, LOCAL | ZEROS);
        for (g, &i) in rows.iter().enumerate() {
            let (columns, own) = (triangle.pattern.row(i as usize), all.of_row[i as usize].0);
            for back in 0..columns.len() {
                let j = columns[if triangle.backward { back } else { columns.len() - 1 - back }];
                let n = length * split - 1 - back;
                let (part, place) = all.of_row[j as usize];
                let near = (part == own).then(|| held[place as usize]);
                self.columns[start + n / split * groups + g * split + n % split] = match near {
                    Some((slot, of)) if segment - of <= REGIONS - 2 => LOCAL | slot,
                    _ => j,
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::matrix::pattern::Pattern;

    /// A strictly lower pattern (upper when `backward`) of `n` rows; `operands(i)` are places before i.
    fn pattern(
        n: usize,
        backward: bool,
        mut operands: impl FnMut(usize) -> Vec<usize>,
    ) -> Pattern<'static> {
        let turned = |i: usize| if backward { n - 1 - i } else { i };
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); n];
        for place in 0..n {
            let mut columns: Vec<u32> =
                operands(place).into_iter().map(|p| turned(p) as u32).collect();
            columns.sort_unstable();
            columns.dedup();
            rows[turned(place)] = columns;
        }
        let mut row_ptr = vec![0];
        row_ptr.extend(rows.iter().scan(0, |end, row| {
            *end += row.len() as u32;
            Some(*end)
        }));
        Pattern::new(row_ptr, rows.concat())
    }

    /// What a thread block knows of its part.
    struct Block {
        /// Segment, and slice in it.
        at: (u32, u32),
        /// Each slot holds a row, or nothing.
        slots: Vec<Option<u32>>,
    }

    /// Goes through the parts as the kernel does, with the numbers of rows for values, a slice of each
    /// part that can be solved at a time: every row is done once, after its operands, finds them where
    /// its columns say, and no part waits for ever.
    fn check(p: &Pattern, backward: bool, owners: &Owners, shape: Shape) {
        let n = p.rows();
        let plan = Partition::new(p.view(), backward, owners, shape).unwrap();
        assert_eq!((plan.parts.len(), plan.order.len()), (owners.parts + 1, n));
        let mut done = vec![false; n];
        let new = |part| {
            let first: u32 = plan.parts[part];
            let slots = vec![None; plan.slots as usize];
            Block { at: (first, plan.segments[first as usize]), slots }
        };
        let mut blocks: Vec<Block> = (0..owners.parts).map(new).collect();
        let mut went_on = true;
        while std::mem::take(&mut went_on) {
            for (part, block) in blocks.iter_mut().enumerate() {
                let (q, s) = block.at;
                if q == plan.parts[part + 1] {
                    continue;
                }
                if s == plan.segments[q as usize + 1] {
                    let next = q + 1 - plan.parts[part];
                    if next + 1 >= REGIONS {
                        let free = (1 + (next + 1) % REGIONS * plan.region) as usize;
                        block.slots[free..free + plan.region as usize].fill(None);
                    }
                    block.at = (q + 1, s);
                    went_on = true;
                } else if solved(
                    p,
                    (&plan, backward),
                    &plan.slices[s as usize],
                    block,
                    &mut done,
                    shape,
                ) {
                    block.at = (q, s + 1);
                    went_on = true;
                }
            }
        }
        assert!(done.into_iter().all(|done| done), "parts wait for each other");
    }

    /// Solves a slice, if all its operands are there.
    fn solved(
        p: &Pattern,
        (plan, backward): (&Partition, bool),
        slice: &Slice,
        block: &mut Block,
        done: &mut [bool],
        shape: Shape,
    ) -> bool {
        let split = match shape.most_each {
            Some(_) => 1 << (slice.shape >> 8),
            None => shape.split as usize,
        };
        let count = if shape.most_each.is_some() { slice.shape & 0xff } else { slice.shape };
        let rows = slice.first as usize..slice.first as usize + count as usize;
        assert!(!rows.is_empty() && rows.len() * split <= shape.lanes.max(split));
        for (g, &i) in plan.order[rows.clone()].iter().enumerate() {
            let mut found: Vec<u32> = Vec::new();
            for u in 0..slice.length as usize {
                for s in 0..split {
                    let at = slice.start as usize + u * rows.len() * split + g * split + s;
                    match plan.columns[at] {
                        c if c == LOCAL | ZEROS => assert!(found.is_empty()),
                        // of the own part, where slices are solved in order
                        c if c & LOCAL != 0 => {
                            found.push(block.slots[(c & !LOCAL) as usize].expect("a value"));
                        }
                        j => found.push(j),
                    }
                }
            }
            let mut wanted = p.row(i as usize).to_vec();
            if backward {
                wanted.reverse();
            }
            assert_eq!(found, wanted, "row {i}");
            if !found.iter().all(|&j| done[j as usize]) {
                return false;
            }
        }
        for (g, &i) in plan.order[rows].iter().enumerate() {
            assert!(!done[i as usize], "row {i} comes twice");
            done[i as usize] = true;
            let slot = &mut block.slots[slice.slot as usize + g];
            assert_eq!(*slot, None, "slot of row {i}");
            *slot = Some(i);
        }
        true
    }

    fn shapes() -> impl Iterator<Item = Shape> {
        let even = [(1000, 32, 1), (64, 16, 2), (8, 8, 4)]
            .map(|(slots, lanes, split)| (slots, lanes, split, None));
        let uneven = [(1000, 16, 1, Some(2)), (16, 4, 2, Some(1))];
        even.into_iter().chain(uneven).map(|(slots, lanes, split, most_each)| Shape {
            slots,
            lanes,
            split,
            most_each,
            crossing: 12,
        })
    }

    /// Checks ranges, and rows dealt out in turn.
    fn checks(p: &Pattern, backward: bool, shape: Shape) {
        for parts in [1, 2, 7] {
            check(p, backward, &Owners::ranges(&p.row_ptr, backward, parts), shape);
            let of_run = (0..p.rows() as u32).map(|i| i * 5 % parts as u32).collect();
            let starts = (0..=p.rows() as u32).collect();
            check(p, backward, &Owners { parts, starts, of_run }, shape);
        }
    }

    #[test]
    fn rows_find_their_operands() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for shape in shapes() {
            for backward in [false, true] {
                for n in [1, 2, 5, 33, 300] {
                    let chain =
                        pattern(n, backward, |i| (i > 0).then(|| i - 1).into_iter().collect());
                    checks(&chain, backward, shape);
                    checks(&pattern(n, backward, |_| Vec::new()), backward, shape);
                    checks(
                        &pattern(n, backward, |i| (0..usize::from(i > 0)).collect()),
                        backward,
                        shape,
                    );
                    checks(
                        &pattern(n, backward, |i| (i.saturating_sub(5)..i).collect()),
                        backward,
                        shape,
                    );
                    let last = |i| if i + 1 == n { (0..i).collect() } else { Vec::new() };
                    checks(&pattern(n, backward, last), backward, shape);
                    let random = pattern(n, backward, |i| {
                        (0..rng.random_range(0..4))
                            .filter(|_| i > 0)
                            .map(|_| rng.random_range(0..i))
                            .collect()
                    });
                    checks(&random, backward, shape);
                }
            }
        }
    }
}
