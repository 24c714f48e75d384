//! What each thread block of `kernels/sptrsv/colours/boxes.cu` does: its rows, steps and hand-overs.

pub(super) mod steps;

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use super::division::{Division, within};
use super::lists::{Cell, Lists};
use crate::base::threads::Threads;
use crate::compute::cuda::layout::shared;
use steps::{PLACES, Steps};

/// Banks of shared memory for numbers of eight bytes: so many neighbouring threads read together.
const BANKS: usize = 16;

/// Rows of a colour and their values are filled up to this many; mirrors the kernel.
pub(super) const WARP: usize = 32;

/// Most warps that solve, pieces of lists, and warps of rows of a part: what a step has bits for.
const MOST: usize = 1023;

/// How the kernel works.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Threads that solve.
    pub(super) team: usize,
    /// Most entries of a row in a step.
    pub(super) entries: usize,
    /// Most thread blocks.
    pub(super) blocks: usize,
    /// Bytes of shared memory.
    pub(super) shared: usize,
}

shared! {
    #[derive(Debug, bytemuck::Pod, bytemuck::Zeroable)]
    pub(super) Part = "Part" of "sptrsv/colours/boxes.cu" { cell: u32, nx: u32, ny: u32, nz: u32, value: u32, row: u32, step: u32, steps: u32, event: u32, rows: u32, pad: [u32; 2] }
    #[derive(Debug, bytemuck::Pod, bytemuck::Zeroable)]
    pub(super) Listed = "Listed" of "sptrsv/colours/boxes.cu" { first: u32, count: u32, pieces: u32, size: u32 }
}

/// All tables of the kernel.
pub(super) struct Plan {
    pub(super) division: Division,
    pub(super) colours: usize,
    pub(super) parts: Vec<Part>,
    pub(super) steps: Vec<[u32; 4]>,
    pub(super) most_steps: usize,
    pub(super) rows: Vec<u16>,
    /// Distances in shared memory, in bytes.
    pub(super) lists: Vec<i32>,
    pub(super) events: Vec<u32>,
    pub(super) from: Vec<u32>,
    pub(super) to: Vec<u16>,
    /// For L and then for U', of each colour.
    pub(super) listed: Vec<Listed>,
    /// Distances between cells.
    pub(super) distances: Vec<i32>,
    pub(super) starts: Vec<[u32; 4]>,
    /// Numbers that are handed over.
    pub(super) published: usize,
    /// Stored values.
    pub(super) values: usize,
}

/// The rows of a part.
pub(super) struct Own {
    /// Cells, colour by colour.
    cells: Vec<u32>,
    /// Places of rows in shared memory, of colours that are filled up.
    places: Vec<u16>,
    /// First of each colour, and one past the last.
    starts: Vec<u32>,
    /// Which cells of each colour others read for L and for U'.
    pub(super) published: Vec<[Range<u32>; 2]>,
}

impl Own {
    pub(super) fn of(&self, colour: usize) -> Range<usize> {
        self.starts[colour] as usize..self.starts[colour + 1] as usize
    }

    /// Place of the first row of each colour, where colours are filled up, and of all.
    pub(super) fn filled(&self) -> Vec<u32> {
        let mut at = 0;
        let mut filled = vec![0];
        for w in self.starts.windows(2) {
            at += (w[1] - w[0]).next_multiple_of(WARP as u32);
            filled.push(at);
        }
        filled
    }
}

/// What goes from part to part: of each hand-over where a cell comes from, and its place.
type HandOvers = Vec<Vec<(u32, u16)>>;

/// What all parts have in common.
pub(super) struct Common<'a> {
    lists: &'a Lists,
    division: &'a Division,
    pub(super) shape: Shape,
    pub(super) colours: usize,
    pub(super) listed: Vec<Listed>,
    /// First piece of the kernel's lists of each colour of L and of U'.
    pub(super) pieces: Vec<u32>,
}

impl Plan {
    /// `None` where the parts have no room for the cells, or there are less than three colours.
    pub(super) fn new(lists: &Lists, shape: Shape) -> Option<Self> {
        let colours = lists.of[0].len();
        let (offsets, masks) = lists.masks()?;
        if colours < 3 || shape.team > MOST {
            return None;
        }
        let listed = listed(lists, shape.entries);
        let pieces: Vec<u32> = running(listed.iter().map(|l| l.pieces as usize))?;
        let in_lists = *pieces.last()? as usize * shape.entries;
        if in_lists / shape.entries > MOST {
            return None;
        }
        let slots = |cells: usize| cells.div_ceil(colours).div_ceil(shape.team) + 2;
        let most_steps = |cells: usize| slots(cells) * *pieces.last().unwrap_or(&0) as usize;
        // numbers take nearly all of it
        let tables = 4 * in_lists + 16 * most_steps(shape.shared / 8 / 2);
        let room = shape.shared.checked_sub(tables)? / 8;
        let division = Division::new(lists.extents, lists.reach(), shape.blocks, room & !1)?;
        let mut common = Common { lists, division: &division, shape, colours, listed, pieces };
        let parts = 0..division.count();
        let cells: Vec<Vec<[Vec<u32>; 4]>> =
            Threads::Pool.map(parts.len(), 1, |p| common.cells(p, &offsets, &masks));
        let some = division.count() / 2;
        let division = division.at_least(room, |d| accesses(d, lists, some, &cells[some]));
        common.division = &division;
        let own: Vec<Own> = Threads::Pool.map(cells.len(), 1, |p| common.own(p, &cells[p]));
        let published = |own: &Own| {
            own.published.iter().flatten().map(ExactSizeIterator::len).collect::<Vec<_>>()
        };
        let places = running(own.iter().flat_map(published))?;
        let all = *places.last()?;
        if all > PLACES {
            return None;
        }
        let places = |part: usize| &places[part * 2 * colours..];
        let published_at = places_of_cells(lists, &own, places);
        let work = |part: usize| {
            let brought = common.brought(part, &offsets, &masks, &published_at);
            (brought, common.steps(&own[part], places(part)))
        };
        let work: Vec<(HandOvers, Steps)> = Threads::Pool.map(parts.len(), 1, work);
        let (in_bytes, distances) = (common.byte_distances(), common.distances());
        let listed = common.listed;
        let mut plan = Self {
            division,
            colours,
            parts: Vec::new(),
            steps: Vec::new(),
            most_steps: 0,
            rows: Vec::with_capacity(lists.row.len()),
            lists: in_bytes,
            events: Vec::new(),
            from: Vec::new(),
            to: Vec::new(),
            distances,
            listed,
            starts: Vec::new(),
            published: all as usize,
            values: 0,
        };
        for (part, (own, work)) in own.iter().zip(work).enumerate() {
            plan.add(lists, part, own, work)?;
        }
        let bytes = 8 * plan.division.cells + 16 * plan.most_steps + 4 * plan.lists.len();
        (bytes <= shape.shared).then_some(plan)
    }

    /// Puts what a part does behind the others.
    fn add(
        &mut self,
        lists: &Lists,
        part: usize,
        own: &Own,
        (brought, steps): (HandOvers, Steps),
    ) -> Option<()> {
        let filled = own.filled();
        if filled[self.colours] as usize / WARP > MOST {
            return None;
        }
        let [first, end] = self.division.bounds(part);
        let number = |n: usize| u32::try_from(n).ok();
        let [nx, ny, nz] = std::array::from_fn(|axis| (end[axis] - first[axis]) as u32);
        self.parts.push(Part {
            cell: lists.number(first),
            nx,
            ny,
            nz,
            value: number(self.values)?,
            row: number(self.rows.len())?,
            step: number(self.steps.len())?,
            steps: number(steps.all.len())?,
            event: number(self.events.len())?,
            rows: filled[self.colours],
            pad: [0; 2],
        });
        for c in 0..self.colours {
            let rows = own.of(c).len() as u32;
            self.starts.push([filled[c], rows, steps.first[0][c], steps.first[1][c]]);
        }
        self.rows.extend_from_slice(&own.places);
        self.most_steps = self.most_steps.max(steps.all.len());
        self.values += steps.values;
        self.steps.extend(steps.all);
        for cells in brought {
            self.events.push(number(self.from.len())?);
            self.from.extend(cells.iter().map(|(from, _)| from));
            self.to.extend(cells.iter().map(|(_, to)| to));
        }
        self.events.push(number(self.from.len())?);
        number(self.values).map(|_| ())
    }

    /// Hand-overs of a solve, the first of which is of r.
    pub(super) fn hand_overs(&self) -> usize {
        2 * (self.colours - 1)
    }
}

/// For L and for U', where each cell that others read is handed over, of parts whose colours have such `places`.
fn places_of_cells<'a>(
    lists: &Lists,
    own: &[Own],
    places: impl Fn(usize) -> &'a [u32] + Sync,
) -> [Vec<AtomicU32>; 2] {
    let nowhere = || Threads::Pool.map(lists.row.len(), 1 << 12, |_| AtomicU32::new(0));
    let at: [Vec<AtomicU32>; 2] = [nowhere(), nowhere()];
    Threads::Pool.for_each(own.len(), 1, |part| {
        let own = &own[part];
        for (c, published) in own.published.iter().enumerate() {
            let cells = &own.cells[own.of(c)];
            for (upper, range) in published.iter().enumerate() {
                let cells = &cells[range.start as usize..range.end as usize];
                for (place, &cell) in (places(part)[2 * c + upper]..).zip(cells) {
                    at[upper][cell as usize].store(place, Ordering::Relaxed);
                }
            }
        }
    });
    at
}

/// Pieces of the lists of each colour of L, then of U'. The first colour has no L, the last no U'.
fn listed(lists: &Lists, entries: usize) -> Vec<Listed> {
    let last = lists.of[0].len() - 1;
    let mut first = 0;
    let mut all = Vec::new();
    for (upper, of) in lists.of.iter().enumerate() {
        for (c, list) in of.iter().enumerate() {
            let none = c == if upper == 1 { last } else { 0 };
            let pieces = if none { 0 } else { list.len().div_ceil(entries).max(1) };
            let size = list.len().div_ceil(pieces.max(1)).max(1);
            let count = list.len() as u32;
            all.push(Listed { first, count, pieces: pieces as u32, size: size as u32 });
            first += count;
        }
    }
    all
}

/// Sums of what comes before each, and of all.
fn running(of: impl Iterator<Item = usize>) -> Option<Vec<u32>> {
    let (mut all, mut sums) = (0_usize, vec![0]);
    for n in of {
        all += n;
        sums.push(u32::try_from(all).ok()?);
    }
    Some(sums)
}

impl Common<'_> {
    fn byte_distances(&self) -> Vec<i32> {
        let mut bytes = Vec::new();
        for (list, listed) in self.lists.of.iter().flatten().zip(&self.listed) {
            for piece in 0..listed.pieces as usize {
                let entries = list.iter().skip(piece * listed.size as usize);
                let far = entries.take(listed.size as usize).map(|&o| 8 * self.division.apart(o));
                bytes.extend(far);
                bytes.resize(bytes.len().next_multiple_of(self.shape.entries), 0);
                // a colour without entries has a piece, too
                if list.is_empty() {
                    bytes.resize(bytes.len() + self.shape.entries, 0);
                }
            }
        }
        bytes
    }

    fn distances(&self) -> Vec<i32> {
        let [nx, ny, _] = self.lists.extents;
        let far = |&[x, y, z]: &Cell| x + nx * (y + ny * z);
        self.lists.of.iter().flatten().flatten().map(far).collect()
    }

    /// Whether rows of some cells read a cell for L and for U'.
    fn read_by(
        &self,
        cell: Cell,
        offsets: &[Cell],
        masks: &[Vec<u64>; 2],
        some: impl Fn(Cell) -> bool,
    ) -> [bool; 2] {
        let mut read = [false; 2];
        for (bit, o) in offsets.iter().enumerate() {
            let by = std::array::from_fn(|k| cell[k] - o[k]);
            if some(by) {
                let c = self.lists.colour[self.lists.number(by) as usize] as usize;
                (0..2).for_each(|t| read[t] |= masks[t][c] >> bit & 1 == 1);
            }
        }
        read
    }

    /// The cells of a part, colour by colour: those that others read for L alone, for both, for U' alone, and
    /// those that nobody else reads.
    fn cells(&self, part: usize, offsets: &[Cell], masks: &[Vec<u64>; 2]) -> Vec<[Vec<u32>; 4]> {
        let (lists, division) = (self.lists, self.division);
        let bounds = division.bounds(part);
        let [first, end] = bounds;
        let reach = lists.reach();
        let inner = [
            std::array::from_fn(|k| first[k] + reach[k]),
            std::array::from_fn(|k| end[k] - reach[k]),
        ];
        let other = |by| lists.has(by) && !within(bounds, by);
        let read_by_others = |cell: Cell| {
            if within(inner, cell) { [false; 2] } else { self.read_by(cell, offsets, masks, other) }
        };
        let mut sorted = vec![[(); 4].map(|()| Vec::new()); self.colours];
        for z in first[2]..end[2] {
            for y in first[1]..end[1] {
                for x in first[0]..end[0] {
                    let cell = lists.number([x, y, z]);
                    let colour = lists.colour[cell as usize] as usize;
                    let class = match read_by_others([x, y, z]) {
                        // all read r in its place
                        _ if colour == 0 => 3,
                        [true, false] => 0,
                        [true, true] => 1,
                        [false, true] => 2,
                        [false, false] => 3,
                    };
                    sorted[colour][class].push(cell);
                }
            }
        }
        sorted
    }

    /// The cells of a part. What others read comes first in a colour, and cells that threads read together
    /// are in banks of their own.
    fn own(&self, part: usize, cells: &[[Vec<u32>; 4]]) -> Own {
        let first = self.division.bounds(part)[0];
        let place = |&cell: &u32| self.division.place(first, self.lists.cell(cell));
        let (starts, published) = (vec![0], Vec::new());
        let mut own = Own { cells: Vec::new(), places: Vec::new(), starts, published };
        for classes in cells {
            let [lower, both, upper, _] = [0, 1, 2, 3].map(|class| classes[class].len() as u32);
            own.published.push([0..lower + both, lower..lower + both + upper]);
            for cells in classes {
                own.cells.extend(in_turn(cells, |cell| place(&cell) % BANKS));
            }
            own.starts.push(own.cells.len() as u32);
        }
        let filled = own.filled();
        for c in 0..cells.len() {
            own.places.extend(own.cells[own.of(c)].iter().map(|cell| place(cell) as u16));
            own.places.resize(filled[c + 1] as usize, self.division.origin as u16);
        }
        own
    }

    /// What a part brings from others at each hand-over. Of the first colour it is r;
    /// then L's of the others but the last, that one's, U's of the others but the first.
    fn brought(
        &self,
        part: usize,
        offsets: &[Cell],
        masks: &[Vec<u64>; 2],
        published_at: &[Vec<AtomicU32>; 2],
    ) -> HandOvers {
        let (lists, division) = (self.lists, self.division);
        let bounds = division.bounds(part);
        let [first, end] = division.around(part, lists.extents);
        let mut events = vec![Vec::new(); 2 * (self.colours - 1)];
        let mut add = |cell: Cell| {
            let needed = self.read_by(cell, offsets, masks, |by| within(bounds, by));
            let number = lists.number(cell);
            let (c, to) =
                (lists.colour[number as usize] as usize, division.place(bounds[0], cell) as u16);
            let at = |t: usize| published_at[t][number as usize].load(Ordering::Relaxed);
            if needed[0] {
                events[c].push((if c == 0 { number } else { at(0) }, to));
            }
            if needed[1] {
                events[2 * (self.colours - 1) - c].push((at(1), to));
            }
        };
        for z in first[2]..end[2] {
            for y in first[1]..end[1] {
                let beside = within([bounds[0], bounds[1]], [bounds[0][0], y, z]);
                let own = if beside { bounds[0][0]..bounds[1][0] } else { first[0]..first[0] };
                (first[0]..end[0]).filter(|x| !own.contains(x)).for_each(|x| add([x, y, z]));
            }
        }
        for event in &mut events {
            event.sort_unstable();
        }
        events
    }
}

/// Accesses to shared memory for what a part's rows read at one distance.
fn accesses(division: &Division, lists: &Lists, part: usize, cells: &[[Vec<u32>; 4]]) -> usize {
    let first = division.bounds(part)[0];
    let of_class = |cells: &Vec<u32>| {
        let mut of = [0; BANKS];
        for &cell in cells {
            of[division.place(first, lists.cell(cell)) % BANKS] += 1;
        }
        of.into_iter().max().unwrap_or(0)
    };
    cells.iter().flatten().map(of_class).sum()
}

/// Cells of one bank after the other in turn, as long as there are any.
fn in_turn(cells: &[u32], bank: impl Fn(u32) -> usize) -> impl Iterator<Item = u32> {
    let mut of = vec![Vec::new(); BANKS];
    for &cell in cells {
        of[bank(cell)].push(cell);
    }
    let most = of.iter().map(Vec::len).max().unwrap_or(0);
    (0..most).flat_map(move |at| of.iter().filter_map(|v| v.get(at)).copied().collect::<Vec<_>>())
}
