//! A box of cells divided among thread blocks.

use super::lists::Cell;

/// Weight of a cell that a thread block brings from others against one of its own.
const BROUGHT: f64 = 0.25;

/// Numbers that lines and planes are filled up by, at most.
const FILLED: [i32; 2] = [3, 15];

/// Parts of a box, and how the numbers of a part and of what lies around it are kept.
#[derive(Clone)]
pub(super) struct Division {
    /// Parts along each axis.
    pub(super) parts: [usize; 3],
    /// First cell of each part along each axis, and one past the last.
    starts: [Vec<i32>; 3],
    reach: Cell,
    /// Cells of a part and around it along each axis.
    around: Cell,
    /// Numbers from a line to the next one, and from a plane.
    pub(super) pitch: i32,
    pub(super) layer: i32,
    /// Place of a part's first cell.
    pub(super) origin: i32,
    /// Numbers of a part and of what lies around it.
    pub(super) cells: usize,
}

impl Division {
    /// Into `most` parts at most, each of which holds `room` numbers and reads cells as far as `reach` around
    /// it. `None` where that is too little.
    pub(super) fn new(extents: Cell, reach: Cell, most: usize, room: usize) -> Option<Self> {
        let mut best: Option<(f64, [usize; 3])> = None;
        let longest = |axis: usize, parts: usize| (extents[axis] as usize).div_ceil(parts);
        // what a part reads is with the parts next to it
        let fits = |axis: usize, parts: usize| {
            parts == 1 || extents[axis] as usize / parts >= (reach[axis] as usize).max(1)
        };
        // of equal ones that with the longest lines
        for px in (1..=most).take_while(|&p| fits(0, p)) {
            for py in (1..=most / px).take_while(|&p| fits(1, p)) {
                for pz in (1..=most / px / py).take_while(|&p| fits(2, p)) {
                    let parts = [px, py, pz];
                    let own: [usize; 3] = std::array::from_fn(|axis| longest(axis, parts[axis]));
                    let around: usize =
                        (0..3).map(|axis| own[axis] + 2 * reach[axis] as usize).product();
                    let cells: usize = own.iter().product();
                    let cost = cells as f64 + BROUGHT * (around - cells) as f64;
                    if around <= room && best.as_ref().is_none_or(|(least, _)| cost < *least) {
                        best = Some((cost, parts));
                    }
                }
            }
        }
        let (_, parts) = best?;
        let starts: [Vec<i32>; 3] = std::array::from_fn(|axis| {
            let n = extents[axis] as usize;
            (0..=parts[axis]).map(|p| (p * n / parts[axis]) as i32).collect()
        });
        let around: [i32; 3] =
            std::array::from_fn(|axis| longest(axis, parts[axis]) as i32 + 2 * reach[axis]);
        let new = Self { parts, starts, reach, around, pitch: 0, layer: 0, origin: 0, cells: 0 };
        Some(new.filled([0, 0]))
    }

    /// The same with lines and planes filled up by so many numbers.
    fn filled(&self, [line, plane]: [i32; 2]) -> Self {
        let pitch = self.around[0] + line;
        let layer = pitch * self.around[1] + plane;
        let origin = self.reach[0] + self.reach[1] * pitch + self.reach[2] * layer;
        // two numbers at a time
        let cells = ((layer * self.around[2]) as usize).next_multiple_of(2);
        Self { pitch, layer, origin, cells, ..self.clone() }
    }

    /// Lines and planes filled up so that `cost` is the least, within `room`.
    pub(super) fn at_least(&self, room: usize, cost: impl Fn(&Self) -> usize) -> Self {
        let fillings = (0..=FILLED[0]).flat_map(|line| (0..=FILLED[1]).map(move |p| [line, p]));
        let all = fillings.map(|filling| self.filled(filling)).filter(|d| d.cells <= room);
        all.min_by_key(cost).unwrap_or_else(|| self.clone())
    }

    /// How many parts there are.
    pub(super) fn count(&self) -> usize {
        self.parts.iter().product()
    }

    /// First cell of a part, and one past its last along each axis.
    pub(super) fn bounds(&self, part: usize) -> [Cell; 2] {
        let [px, py, _] = self.parts;
        let at = [part % px, part / px % py, part / px / py];
        [0, 1].map(|end| std::array::from_fn(|axis| self.starts[axis][at[axis] + end]))
    }

    /// Bounds of what a part reads of a box of such extents.
    pub(super) fn around(&self, part: usize, extents: Cell) -> [Cell; 2] {
        let [first, end] = self.bounds(part);
        [
            std::array::from_fn(|k| (first[k] - self.reach[k]).max(0)),
            std::array::from_fn(|k| (end[k] + self.reach[k]).min(extents[k])),
        ]
    }

    /// How far apart two cells are kept that are so far apart.
    pub(super) fn apart(&self, [x, y, z]: Cell) -> i32 {
        x + y * self.pitch + z * self.layer
    }

    /// Where a part keeps a cell, its own or one around it; `first` is its own first cell.
    pub(super) fn place(&self, first: Cell, cell: Cell) -> usize {
        let from_first = std::array::from_fn(|axis| cell[axis] - first[axis]);
        (self.origin + self.apart(from_first)) as usize
    }
}

/// Whether a cell lies within bounds.
pub(super) fn within([first, end]: [Cell; 2], cell: Cell) -> bool {
    (0..3).all(|axis| (first[axis]..end[axis]).contains(&cell[axis]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_every_cell_once() {
        let (extents, reach) = ([45, 23, 22], [2, 2, 1]);
        let d = Division::new(extents, reach, 100, 29_000).unwrap();
        assert!(d.count() > 80 && d.count() <= 100, "{:?}", d.parts);
        let mut held = vec![0; 45 * 23 * 22];
        for part in 0..d.count() {
            let [first, end] = d.bounds(part);
            for z in first[2]..end[2] {
                for y in first[1]..end[1] {
                    (first[0]..end[0]).for_each(|x| held[((z * 23 + y) * 45 + x) as usize] += 1);
                }
            }
            let far = d.place(first, [end[0] + 1, end[1] + 1, end[2]]);
            assert!(far < d.cells);
            assert_eq!(d.place(first, first.map(|c| c - 1)) as i32, d.origin - d.apart([1; 3]));
        }
        assert!(held.iter().all(|&times| times == 1));
    }

    #[test]
    fn too_little_room_is_told() {
        // 128^3 cells are what an H200 has room for
        let d = Division::new([128; 3], [2; 3], 132, 28_500).unwrap();
        assert_eq!((d.parts, d.cells), ([4, 4, 8], 36 * 36 * 20));
        assert!(Division::new([160; 3], [2; 3], 132, 28_500).is_none());
        // parts are not thinner than what others read of them
        let thin = Division::new([64, 64, 3], [2; 3], 132, 28_500).unwrap();
        assert_eq!(thin.parts[2], 1);
    }
}
