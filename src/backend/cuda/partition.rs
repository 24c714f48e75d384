//! Parts of a triangular factor: who solves which rows, in which order, and where each row finds its
//! operands (`kernels/partitioned.cu`).

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::symbolic::PatternView;

/// Regions of shared memory through which the segments of a part pass in turn; mirrors the kernel.
pub(super) const REGIONS: u32 = 4;

/// A column that is a slot of shared memory; mirrors the kernel.
const LOCAL: u32 = 1 << 31;

/// The slot that holds zeros.
const ZEROS: u32 = 0;

/// How a triangle is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Ranges of rows, each solved by one thread block.
    pub parts: usize,
    /// Block rows that shared memory has slots for, without the slot of zeros.
    pub slots: u32,
    /// Block rows of a slice.
    pub rows: usize,
    /// Lanes that share a row.
    pub split: u32,
    /// Time from a row to one that needs it in another part, in units of that within a part.
    pub crossing: u32,
}

/// `Slice` of the kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub first: u32,
    pub start: u32,
    pub rows: u16,
    pub length: u16,
    pub slot: u32,
}

// SAFETY: plain numbers in C layout without gaps, as the kernel declares them
unsafe impl bytemuck::Zeroable for Slice {}
// SAFETY: as above
unsafe impl bytemuck::Pod for Slice {}
// SAFETY: as above
unsafe impl cudarc::driver::DeviceRepr for Slice {}

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

/// The triangle as a solve goes through it: place p is row p, or row n - 1 - p backward.
#[derive(Clone, Copy)]
struct Triangle<'a> {
    pattern: PatternView<'a>,
    rows: usize,
    backward: bool,
}

impl Triangle<'_> {
    /// Row at a place, or place of a row.
    fn turned(self, i: usize) -> usize {
        if self.backward { self.rows - 1 - i } else { i }
    }

    fn entries(self, row: u32) -> usize {
        self.pattern.range(row as usize).len()
    }

    /// Cuts the places into ranges of about equal work: entries and rows.
    fn cut(self, parts: usize) -> Vec<usize> {
        let work = self.pattern.entries() + self.rows;
        // entries and rows before a place
        let before = |place: usize| {
            let entries = if self.backward {
                self.pattern.entries() - self.pattern.row_ptr[self.rows - place] as usize
            } else {
                self.pattern.row_ptr[place] as usize
            };
            entries + place
        };
        let mut bounds = vec![0];
        for part in 1..parts {
            let wanted = (work as u128 * part as u128 / parts as u128) as usize;
            let (mut low, mut high) = (bounds[part - 1], self.rows);
            while low < high {
                let middle = usize::midpoint(low, high);
                if before(middle) < wanted { low = middle + 1 } else { high = middle }
            }
            bounds.push(low);
        }
        bounds.push(self.rows);
        bounds
    }

    /// When each row can be done, in steps: one after a row of its own part, `crossing` after one of
    /// another.
    fn times(self, bounds: &[usize], crossing: u32) -> Vec<u32> {
        let mut time = vec![0u32; self.rows];
        for part in bounds.windows(2) {
            for place in part[0]..part[1] {
                let row = self.turned(place);
                let mut at = 0;
                for &j in self.pattern.row(row) {
                    let step = if self.turned(j as usize) >= part[0] { 1 } else { crossing };
                    at = at.max(time[j as usize].saturating_add(step));
                }
                time[row] = at;
            }
        }
        time
    }
}

/// Operands that rows find in other parts when the triangle is cut into so many.
pub(super) fn far_operands(pattern: PatternView, backward: bool, parts: usize) -> usize {
    let triangle = Triangle { pattern, rows: pattern.row_ptr.len() - 1, backward };
    let far = |part: &[usize]| {
        let rows = (part[0]..part[1]).map(|place| triangle.turned(place));
        let operands = rows.flat_map(|row| pattern.row(row));
        operands.filter(|&&j| triangle.turned(j as usize) < part[0]).count()
    };
    triangle.cut(parts).par_windows(2).map(far).sum()
}

impl Partition {
    /// Cuts the strictly triangular `pattern`; `backward` for an upper one.
    ///
    /// # Errors
    /// When there are too many rows or blocks for 32-bit indices.
    pub(super) fn new(pattern: PatternView, backward: bool, shape: Shape) -> Result<Self> {
        let rows = pattern.row_ptr.len() - 1;
        let triangle = Triangle { pattern, rows, backward };
        let bounds = triangle.cut(shape.parts);
        let time = triangle.times(&bounds, shape.crossing);
        let widest = bounds.windows(2).map(|b| b[1] - b[0]).max().unwrap_or(0);
        let whole = widest <= shape.slots as usize;
        let region = if whole { 0 } else { shape.slots / REGIONS };
        let parts: Vec<Part> = bounds
            .par_windows(2)
            .map(|b| Part::new(triangle, b[0]..b[1], &time, shape, region))
            .collect();
        let slots = 1 + if whole { widest as u32 } else { region * REGIONS };
        Self { slots, region, ..Self::default() }.joined(&parts)
    }

    fn joined(mut self, parts: &[Part]) -> Result<Self> {
        let blocks: usize = parts.iter().map(|p| p.columns.len()).sum();
        if u32::try_from(blocks).is_err() {
            return Err(Error::memory("a factor has more than 2^32 blocks"));
        }
        self.columns.reserve_exact(blocks);
        for part in parts {
            let (first, start) = (self.order.len() as u32, self.columns.len() as u32);
            let slices = self.slices.len() as u32;
            self.parts.push(self.segments.len() as u32);
            self.segments.extend(part.segments.iter().map(|s| s + slices));
            self.slices.extend(part.slices.iter().map(|s| Slice {
                first: s.first + first,
                start: s.start + start,
                ..*s
            }));
            self.order.extend_from_slice(&part.order);
            self.columns.extend_from_slice(&part.columns);
        }
        self.parts.push(self.segments.len() as u32);
        self.segments.push(self.slices.len() as u32);
        Ok(self)
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
    fn new(
        triangle: Triangle,
        places: std::ops::Range<usize>,
        time: &[u32],
        shape: Shape,
        region: u32,
    ) -> Self {
        let mut order: Vec<u32> = places.clone().map(|p| triangle.turned(p) as u32).collect();
        // rows of one time do not depend on each other; those of like length share a slice
        order.sort_by_key(|&i| (time[i as usize], triangle.entries(i)));
        let mut part = Self { segments: vec![0], ..Self::default() };
        // slot and segment of each row, by place
        let mut held = vec![(0u32, 0u32); places.len()];
        let mut used = 0;
        for same in order.chunk_by(|&i, &j| time[i as usize] == time[j as usize]) {
            for rows in same.chunks(shape.rows) {
                if region != 0 && used + rows.len() as u32 > region {
                    part.segments.push(part.slices.len() as u32);
                    used = 0;
                }
                let segment = part.segments.len() as u32 - 1;
                let slot = 1 + segment % REGIONS * region + used;
                for (g, &i) in rows.iter().enumerate() {
                    let place = triangle.turned(i as usize) - places.start;
                    held[place] = (slot + g as u32, segment);
                }
                let longest = rows.last().map_or(0, |&i| triangle.entries(i));
                part.slices.push(Slice {
                    first: part.slices.last().map_or(0, |s| s.first + u32::from(s.rows)),
                    start: part.columns.len() as u32,
                    rows: rows.len() as u16,
                    length: longest.div_ceil(shape.split as usize) as u16,
                    slot,
                });
                part.add_columns(triangle, &places, rows, &held, segment, shape.split as usize);
                used += rows.len() as u32;
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
        places: &std::ops::Range<usize>,
        rows: &[u32],
        held: &[(u32, u32)],
        segment: u32,
        split: usize,
    ) {
        let length = self.slices.last().map_or(0, |s| s.length as usize);
        let (start, groups) = (self.columns.len(), rows.len() * split);
        self.columns.resize(start + length * groups, LOCAL | ZEROS);
        for (g, &i) in rows.iter().enumerate() {
            let columns = triangle.pattern.row(i as usize);
            for back in 0..columns.len() {
                let j = columns[if triangle.backward { back } else { columns.len() - 1 - back }];
                let n = length * split - 1 - back;
                let place = triangle.turned(j as usize);
                let near = place.checked_sub(places.start).map(|p| held[p]);
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
    use crate::symbolic::Pattern;

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
        Pattern { row_ptr: row_ptr.into(), col_ind: rows.concat().into() }
    }

    /// Goes through the parts as the kernel does, with the numbers of rows for values: every row is
    /// done once, after its operands, and finds them where its columns say.
    fn check(p: &Pattern, backward: bool, shape: Shape) {
        let n = p.rows();
        let plan = Partition::new(p.view(), backward, shape).unwrap();
        let split = shape.split as usize;
        assert_eq!((plan.parts.len(), plan.order.len()), (shape.parts + 1, n));
        let mut done = vec![false; n];
        for part in plan.parts.windows(2) {
            // each slot holds a row, or nothing
            let mut slots: Vec<Option<u32>> = vec![None; plan.slots as usize];
            for q in part[0]..part[1] {
                let of_part = q - part[0];
                if of_part + 1 >= REGIONS {
                    let free = (1 + (of_part + 1) % REGIONS * plan.region) as usize;
                    slots[free..free + plan.region as usize].fill(None);
                }
                let slices = plan.segments[q as usize]..plan.segments[q as usize + 1];
                for slice in &plan.slices[slices.start as usize..slices.end as usize] {
                    let rows = slice.first as usize..slice.first as usize + slice.rows as usize;
                    assert!((1..=shape.rows).contains(&rows.len()));
                    for (g, &i) in plan.order[rows.clone()].iter().enumerate() {
                        let mut found: Vec<u32> = Vec::new();
                        for u in 0..slice.length as usize {
                            for s in 0..split {
                                let groups = rows.len() * split;
                                let at = slice.start as usize + u * groups + g * split + s;
                                match plan.columns[at] {
                                    c if c == LOCAL | ZEROS => assert!(found.is_empty()),
                                    c if c & LOCAL != 0 => {
                                        found.push(slots[(c & !LOCAL) as usize].expect("a value"));
                                    }
                                    j => found.push(j),
                                }
                            }
                        }
                        assert!(found.iter().all(|&j| done[j as usize]), "row {i} comes too early");
                        let mut wanted = p.row(i as usize).to_vec();
                        if backward {
                            wanted.reverse();
                        }
                        assert_eq!(found, wanted, "row {i}");
                    }
                    for (g, &i) in plan.order[rows].iter().enumerate() {
                        assert!(!done[i as usize], "row {i} comes twice");
                        done[i as usize] = true;
                        let slot = &mut slots[slice.slot as usize + g];
                        assert_eq!(*slot, None, "slot of row {i}");
                        *slot = Some(i);
                    }
                }
            }
        }
        assert!(done.into_iter().all(|done| done));
    }

    fn shapes() -> impl Iterator<Item = Shape> {
        [1, 2, 7].into_iter().flat_map(|parts| {
            [(1000, 32, 1), (64, 8, 2), (8, 2, 4)].map(|(slots, rows, split)| Shape {
                parts,
                slots,
                rows,
                split,
                crossing: 12,
            })
        })
    }

    #[test]
    fn rows_find_their_operands() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for shape in shapes() {
            for backward in [false, true] {
                for n in [1, 2, 5, 33, 300] {
                    let chain =
                        pattern(n, backward, |i| (i > 0).then(|| i - 1).into_iter().collect());
                    check(&chain, backward, shape);
                    check(&pattern(n, backward, |_| Vec::new()), backward, shape);
                    check(
                        &pattern(n, backward, |i| (0..usize::from(i > 0)).collect()),
                        backward,
                        shape,
                    );
                    check(
                        &pattern(n, backward, |i| (i.saturating_sub(5)..i).collect()),
                        backward,
                        shape,
                    );
                    let last = |i| if i + 1 == n { (0..i).collect() } else { Vec::new() };
                    check(&pattern(n, backward, last), backward, shape);
                    let random = pattern(n, backward, |i| {
                        (0..rng.random_range(0..4))
                            .filter(|_| i > 0)
                            .map(|_| rng.random_range(0..i))
                            .collect()
                    });
                    check(&random, backward, shape);
                }
            }
        }
    }

    #[test]
    fn parts_have_like_work() {
        let p = pattern(1000, false, |i| (i.saturating_sub(3)..i).collect());
        let triangle = Triangle { pattern: p.view(), rows: 1000, backward: false };
        assert_eq!(triangle.cut(4), [0, 251, 501, 751, 1000]);
    }

    #[test]
    fn what_crosses_parts_is_expected_later() {
        let chain = pattern(4, false, |i| (i > 0).then(|| i - 1).into_iter().collect());
        let triangle = Triangle { pattern: chain.view(), rows: 4, backward: false };
        assert_eq!(triangle.times(&[0, 2, 4], 12), [0, 1, 13, 14]);
    }
}
