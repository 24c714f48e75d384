//! Patterns that are one stencil on a box, and the order in which a triangle of such a pattern can be
//! solved as a wavefront.

use super::march::{KINDS, March};
use crate::base::threads::Threads;
use crate::matrix::pattern::{Pattern, PatternView};

/// Offsets of a stencil at most.
const MOST_OFFSETS: usize = 64;
/// Reach of a stencil along an axis at most.
const FARTHEST: i64 = 64;
/// Columns of cells along x below which nothing can be gained from the box.
const FEWEST_COLUMNS: usize = 32;
/// Lines of a task: for fewer a thread takes longer to begin.
const FEW_LINES: usize = 128;
/// Entries of the stencil on the whole box over entries there are, at most: what is stored in vain, as a fraction.
const MOST_WASTE: [usize; 2] = [5, 2];

/// A strict triangle, or a whole pattern, whose rows are the cells of a box in natural order, x fastest, and whose entries
/// all lie at constant offsets, cut off at the faces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stencil {
    /// Cells along x, y and z.
    pub extents: [usize; 3],
    /// Offsets `[dx, dy, dz]` from a cell to those it depends on, all earlier in natural order;
    /// sorted by z, y, x. Not every cell has all of them.
    pub offsets: Vec<[i32; 3]>,
    /// For each offset the lines that have it: where rows alternate along y and z, not all.
    pub parities: Vec<Parities>,
}

/// Kinds of lines of a box by the parities of y and z, one bit each: bit y % 2 + 2 (z % 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parities(pub u8);

impl Parities {
    /// Every line.
    pub const ALL: Self = Self(0b1111);

    /// The kind of the line at y and z.
    fn kind(y: usize, z: usize) -> Self {
        Self(1 << (y % 2 + 2 * (z % 2)))
    }

    /// The kinds of which a box has no line.
    fn absent([_, ny, nz]: [usize; 3]) -> Self {
        Self(if ny < 2 { 0b1010 } else { 0 } | if nz < 2 { 0b1100 } else { 0 })
    }
}

/// Kinds of lines of a box, one bit each: bit 0 is the first line of the first plane, bit 1 the other lines of that
/// plane, bit 2 the first lines of the other planes, bit 3 all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines(pub u8);

impl Lines {
    /// Every line.
    pub const ALL: Self = Self(0b1111);

    /// The kind of the line at y and z.
    fn kind(y: usize, z: usize) -> Self {
        Self(1 << (usize::from(y > 0) + 2 * usize::from(z > 0)))
    }
}

/// Rows of a strict triangle, in the order of the solve.
struct Rows<'a> {
    pattern: PatternView<'a>,
    backward: bool,
}

impl Rows<'_> {
    fn len(&self) -> usize {
        self.pattern.row_ptr.len() - 1
    }

    /// Rows that row `i` depends on, counted in the order of the solve.
    fn row(&self, i: usize) -> impl Iterator<Item = usize> {
        let n = self.len();
        let turn = move |i: usize| if self.backward { n - 1 - i } else { i };
        self.pattern.row(turn(i)).iter().map(move |&j| turn(j as usize))
    }

    fn has(&self, i: usize, j: usize) -> bool {
        self.row(i).any(|there| there == j)
    }
}

/// Cells along x, y and z of a box whose cells are `n` rows in natural order, x fastest, if rows are `coupled`
/// to the one before them along each axis: a line ends where a row is not coupled to the one before it, a plane
/// where it is not to the one a line before.
pub(crate) fn box_extents(n: usize, coupled: impl Fn(usize, usize) -> bool) -> Option<[usize; 3]> {
    let ends = |width: usize| (width..n).find(|&i| !coupled(i, i - width)).unwrap_or(n);
    let nx = ends(1).max(1);
    let plane = if nx == n { n } else { ends(nx) };
    let is_box = nx >= 2 && plane.is_multiple_of(nx) && n.is_multiple_of(plane);
    is_box.then(|| [nx, plane / nx, n / plane])
}

impl Stencil {
    /// The same offsets in all lines.
    pub fn uniform(extents: [usize; 3], offsets: Vec<[i32; 3]>) -> Self {
        let parities = vec![Parities::ALL; offsets.len()];
        Self { extents, offsets, parities }
    }

    /// The stencil of a strictly lower triangle; of a whole pattern with offsets to both sides.
    pub fn of_lower(pattern: PatternView) -> Option<Self> {
        Self::of(&Rows { pattern, backward: false })
    }

    /// The stencil of a strictly upper triangle whose box is turned around: cell i of the stencil is
    /// row n - 1 - i of the pattern.
    pub(crate) fn of_upper(pattern: PatternView) -> Option<Self> {
        Self::of(&Rows { pattern, backward: true })
    }

    fn of(rows: &Rows) -> Option<Self> {
        let n = rows.len();
        let extents = box_extents(n, |i, j| rows.has(i, j))?;
        if n / extents[0] < FEWEST_COLUMNS {
            return None;
        }
        let new = Self::occurring(rows, extents)?;
        new.is_worth_it(rows.pattern.entries()).then_some(new)
    }

    /// What occurs in a triangle of a box, an `upper` one turned around; `None` when there are too many offsets or one
    /// reaches too far, or the rows show another box.
    pub(super) fn of_box(pattern: PatternView, extents: [usize; 3], upper: bool) -> Option<Self> {
        let rows = Rows { pattern, backward: upper };
        let shown = box_extents(rows.len(), |i, j| rows.has(i, j))?;
        if shown == extents { Self::occurring(&rows, extents) } else { None }
    }

    /// All offsets that occur, and in which lines.
    fn occurring(rows: &Rows, extents: [usize; 3]) -> Option<Self> {
        let found = offsets(rows, extents)?;
        let absent = Parities::absent(extents);
        let (offsets, parities) =
            found.into_iter().map(|(d, p)| (d, Parities(p.0 | absent.0))).unzip();
        Some(Self { extents, offsets, parities })
    }

    /// The same in a box of other extents, between whose lines an even number is put.
    pub(super) fn in_box(self, extents: [usize; 3]) -> Self {
        Self { extents, ..self }
    }

    /// Whether a pattern with so many entries gains from the box, which is stored as if it had all of its kinds of lines.
    pub(super) fn is_worth_it(&self, entries: usize) -> bool {
        let [nx, ny, nz] = self.extents;
        let [most, of] = MOST_WASTE;
        let of_kinds: usize = self.parities.iter().map(|p| p.0.count_ones() as usize).sum();
        ny * nz >= FEWEST_COLUMNS && of * of_kinds * nx * ny * nz <= most * KINDS * entries
    }

    /// The pattern that has all entries which lead into the box.
    pub(super) fn pattern(&self) -> Pattern<'static> {
        let [nx, ny, nz] = self.extents.map(|n| n as i32);
        let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
        for (z, y, x) in (0..nz)
            .flat_map(|z| (0..ny).map(move |y| (z, y)))
            .flat_map(|(z, y)| (0..nx).map(move |x| (z, y, x)))
        {
            let start = col_ind.len();
            let inside = |o: &&[i32; 3]| {
                (0..nx).contains(&(x + o[0]))
                    && (0..ny).contains(&(y + o[1]))
                    && (0..nz).contains(&(z + o[2]))
            };
            let place = |o: &[i32; 3]| (((z + o[2]) * ny + y + o[1]) * nx + x + o[0]) as u32;
            col_ind.extend(self.offsets.iter().filter(inside).map(place));
            col_ind[start..].sort_unstable();
            row_ptr.push(col_ind.len() as u32);
        }
        Pattern::new(row_ptr, col_ind)
    }

    /// Whether a triangle with so many entries has all that lead into the box.
    pub(crate) fn is_complete(&self, entries: usize) -> bool {
        let inside = |o: &[i32; 3]| -> usize {
            let along =
                |axis: usize| self.extents[axis].saturating_sub(o[axis].unsigned_abs() as usize);
            (0..3).map(along).product()
        };
        self.offsets.iter().map(inside).sum::<usize>() == entries
    }

    /// [`Stencil::of_lower`] of a pattern that has all entries which lead into the box; `None` also where some
    /// are lacking. Rows are compared with what they would be, which is much faster than to look for offsets.
    pub fn complete(threads: Threads, pattern: PatternView) -> Option<Self> {
        let rows = Rows { pattern, backward: false };
        let extents = box_extents(rows.len(), |i, j| rows.has(i, j))?;
        if extents[1] * extents[2] < FEWEST_COLUMNS || i32::try_from(rows.len()).is_err() {
            return None;
        }
        let [nx, ny, nz] = extents.map(|n| n as i32);
        let centre = (nz / 2 * ny + ny / 2) * nx + nx / 2;
        let apart = |&j: &u32| {
            let [x, y, z] = cell(extents, j);
            [x - nx / 2, y - ny / 2, z - nz / 2]
        };
        let offsets: Vec<[i32; 3]> = pattern.row(centre as usize).iter().map(apart).collect();
        let far = |o: &[i32; 3]| o.iter().any(|&d| i64::from(d).abs() > FARTHEST);
        if offsets.len() > MOST_OFFSETS || offsets.iter().any(far) {
            return None;
        }
        let of_line = |line: usize| {
            let (y, z) = (line as i32 % ny, line as i32 / ny);
            let within =
                |o: &&[i32; 3]| (0..ny).contains(&(y + o[1])) && (0..nz).contains(&(z + o[2]));
            let led = |o: &[i32; 3]| (o[0], (o[2] * ny + o[1]) * nx + o[0]);
            // no allocation: the first one of a thread takes longer than the look at its lines
            let (mut room, mut count) = ([(0, 0); MOST_OFFSETS], 0);
            for led in offsets.iter().filter(within).map(led) {
                room[count] = led;
                count += 1;
            }
            let there = &room[..count];
            // between these all offsets lead into the box
            let first = there.iter().map(|(dx, _)| -dx).max().unwrap_or(0).max(0);
            let last = nx - there.iter().map(|(dx, _)| *dx).max().unwrap_or(0).max(0);
            let (start, mut x) = (line * nx as usize, 0);
            while x < nx {
                let i = start + x as usize;
                let inside = there.iter().filter(|(dx, _)| (0..nx).contains(&(x + dx)));
                let columns = inside.map(|(_, far)| (i as i32 + far) as u32);
                if !columns.eq(pattern.row(i).iter().copied()) {
                    return false;
                }
                x += 1;
                if x > first && x < last {
                    // rows that repeat one that is right are right
                    x += pattern.repeating(i + 1..start + last as usize) as i32;
                }
            }
            true
        };
        let lines = extents[1] * extents[2];
        let whole = threads.all(lines, 16, of_line);
        let new = Self::uniform(extents, offsets);
        (whole && new.is_worth_it(pattern.entries())).then_some(new)
    }

    /// The stencil of blocks of `block_size` cells along x, of a pattern that has all entries which lead into the box;
    /// `None` where a block would have cells of two lines.
    pub(super) fn in_blocks(self, block_size: usize) -> Option<Self> {
        let Self { extents: [nx, ny, nz], offsets, .. } = self;
        if !nx.is_multiple_of(block_size) {
            return None;
        }
        let b = block_size as i32;
        let of = |&[dx, dy, dz]: &[i32; 3]| (0..b).map(move |x| [(x + dx).div_euclid(b), dy, dz]);
        let mut offsets: Vec<[i32; 3]> = offsets.iter().flat_map(of).collect();
        offsets.sort_unstable_by_key(|d| [d[2], d[1], d[0]]);
        offsets.dedup();
        Some(Self::uniform([nx / block_size, ny, nz], offsets))
    }

    /// Levels of a triangle with so many entries, where it has all that lead into the box and each is a step
    /// from one level to the next; `None` elsewhere.
    pub fn levels(&self, entries: usize) -> Option<usize> {
        let march = self.march();
        let unit = |axis: usize| std::array::from_fn(|k| if k == axis { -1 } else { 0 });
        // then a cell without any is the first, and all ways there are equally long
        let first =
            (0..3).all(|axis| self.extents[axis] == 1 || self.offsets.contains(&unit(axis)));
        let alike = march.offsets.iter().all(|&o| march.delay(o) == 1);
        (first && alike && self.is_complete(entries)).then(|| march.levels(self.extents))
    }

    /// In which lines of the box the rows of a triangle have an entry at each offset, or opposite to it for an
    /// `upper` one. `None` when it lacks some that lead into the box elsewhere than on the first line of
    /// planes or in the first plane, or in a part of such lines only.
    pub fn lines(&self, triangle: PatternView, upper: bool) -> Option<Vec<Lines>> {
        let [nx, ny, nz] = self.extents;
        let sign = if upper { -1 } else { 1 };
        let opposite = |o: &[i32; 3]| o.map(|d| sign * d);
        let place = |i: usize| cell(self.extents, i as u32);
        let entries = triangle.entries();
        let none = || vec![Lines(0); self.offsets.len()];
        let inner = Lines::kind(1, 1);
        // all that occur in rows of a kind
        let of_line = |mut seen: Vec<Lines>, line: usize| {
            let kind = Lines::kind(line % ny, line / ny);
            if kind == inner {
                return seen;
            }
            for i in line * nx..(line + 1) * nx {
                let from = place(i);
                for &j in triangle.row(i) {
                    let to = place(j as usize);
                    let d = std::array::from_fn(|k| to[k] - from[k]);
                    if let Some(at) = self.offsets.iter().position(|o| opposite(o) == d) {
                        seen[at].0 |= kind.0;
                    }
                }
            }
            seen
        };
        let either = |mut a: Vec<Lines>, b: Vec<Lines>| {
            for (a, b) in a.iter_mut().zip(b) {
                a.0 |= b.0;
            }
            a
        };
        let mut lines = if self.is_complete(entries) {
            vec![Lines::ALL; self.offsets.len()]
        } else {
            Threads::Pool.fold(ny * nz, FEW_LINES, none, of_line, either)
        };
        for lines in &mut lines {
            lines.0 |= inner.0;
        }
        // and there they are in all rows
        (self.entries(&lines, upper) == entries).then_some(lines)
    }

    /// Entries of a triangle that has those at each offset in these lines of the box, wherever they lead into it; at the
    /// opposite of each offset for an `upper` one.
    pub(super) fn entries(&self, lines: &[Lines], upper: bool) -> usize {
        let [nx, ny, nz] = self.extents;
        let sign = if upper { -1 } else { 1 };
        let among = |n: usize, d: i32, first: bool| {
            let range = if first { 0..1 } else { 1..n };
            range.filter(|&c| (0..n as i64).contains(&(c as i64 + i64::from(d)))).count()
        };
        let count = |(o, lines): (&[i32; 3], &Lines)| -> usize {
            let [dx, dy, dz] = o.map(|d| sign * d);
            let columns = |first_y: bool, first_z: bool| {
                let there =
                    lines.0 & Lines::kind(usize::from(!first_y), usize::from(!first_z)).0 > 0;
                usize::from(there) * among(ny, dy, first_y) * among(nz, dz, first_z)
            };
            let kinds = [(true, true), (true, false), (false, true), (false, false)];
            nx.saturating_sub(dx.unsigned_abs() as usize)
                * kinds.iter().map(|&(y, z)| columns(y, z)).sum::<usize>()
        };
        self.offsets.iter().zip(lines).map(count).sum()
    }

    /// An order of the solve, the same for all lines.
    pub fn march(&self) -> March {
        let most = |steps: &mut dyn Iterator<Item = i32>, least: i32| steps.fold(least, i32::max);
        let up = |a: i32, b: i32| a.div_euclid(b) + i32::from(a.rem_euclid(b) > 0);
        let in_plane = || self.offsets.iter().filter(|o| o[2] == 0 && o[1] < 0);
        let across = || self.offsets.iter().filter(|o| o[2] < 0);
        let shear = most(&mut across().map(|o| up(o[1], -o[2])), 0);
        let alpha = most(&mut in_plane().map(|o| up(o[0] + 1, -o[1])), 1);
        let steps = |o: &[i32; 3]| up(o[0] + 1 + alpha * (o[1] + shear * o[2]), -o[2]);
        let beta = most(&mut across().map(steps), 1);
        let mut offsets: Vec<[i32; 3]> =
            self.offsets.iter().map(|o| [o[0], o[1] + shear * o[2], o[2]]).collect();
        let march = |offsets| March {
            shear: shear as usize,
            alpha: alpha as usize,
            beta: beta as usize,
            offsets,
            kinds: None,
        };
        let order = march(Vec::new());
        offsets.sort_by_key(|&o| std::cmp::Reverse(order.delay(o)));
        march(offsets)
    }

    /// The order of the solve with the fewest steps: where lines have different offsets, it may differ by their kinds.
    pub fn shortest_march(&self) -> March {
        let uniform = self.march();
        let of = |kind: usize| -> Vec<[i32; 3]> {
            // y' and y have the same parity where the shear of z is even
            let (y, z) = (kind % 2 + uniform.shear * (kind / 2), kind / 2);
            let there = self.offsets.iter().zip(&self.parities);
            let own = there.filter(|(_, p)| p.0 & Parities::kind(y, z).0 > 0);
            own.map(|(o, _)| [o[0], o[1] + uniform.shear as i32 * o[2], o[2]]).collect()
        };
        let alike = self.parities.iter().all(|p| *p == Parities::ALL);
        let by_kind: [Vec<[i32; 3]>; KINDS] = std::array::from_fn(of);
        if alike || by_kind.iter().any(Vec::is_empty) {
            return uniform;
        }
        let shorter = uniform.by_kind(&by_kind, self.extents);
        shorter.filter(|m| m.levels(self.extents) < uniform.levels(self.extents)).unwrap_or(uniform)
    }
}

/// Coordinates of cell i of a box in natural order, x fastest.
pub(crate) fn coordinates([nx, ny, _]: [usize; 3], i: usize) -> [usize; 3] {
    [i % nx, i / nx % ny, i / nx / ny]
}

/// The cell of row i of a box: its coordinates, of which differences can be taken.
pub(super) fn cell(extents: [usize; 3], i: u32) -> [i32; 3] {
    coordinates(extents, i as usize).map(|c| c as i32)
}

/// All offsets that occur, each with the lines that have it, or `None` when there are too many or one leaves the box.
fn offsets(rows: &Rows, extents: [usize; 3]) -> Option<Vec<([i32; 3], Parities)>> {
    let (nx, pattern) = (extents[0], rows.pattern);
    let lines = extents[1] * extents[2];
    let place = |i: usize| cell(extents, i as u32);
    let sign = if rows.backward { -1 } else { 1 };
    let of_line = |line: usize| {
        let mut seen: Vec<[i32; 3]> = Vec::new();
        let (mut i, end) = (line * nx, (line + 1) * nx);
        while i < end {
            let (from, columns) = (place(i), pattern.row(i));
            for (at, &j) in columns.iter().enumerate() {
                let to = place(j as usize);
                let d: [i64; 3] = std::array::from_fn(|k| sign * i64::from(to[k] - from[k]));
                if d.iter().any(|d| d.abs() > FARTHEST) {
                    return None;
                }
                let d = d.map(|d| d as i32);
                // entries of one row follow those of the row before: look there first
                if seen.get(at) != Some(&d) && !seen.contains(&d) {
                    if seen.len() == MOST_OFFSETS {
                        return None;
                    }
                    seen.push(d);
                }
            }
            // rows that repeat this one have its offsets until a column comes to the end of its line
            let before_end = columns.iter().map(|&j| nx - 1 - j as usize % nx).min().unwrap_or(nx);
            i += 1 + pattern.repeating(i + 1..end).min(before_end);
        }
        // counted in the order of the solve
        let at = if rows.backward { lines - 1 - line } else { line };
        let kind = Parities::kind(at % extents[1], at / extents[1]);
        Some(seen.into_iter().map(|d| (d, kind)).collect())
    };
    let merge = |mut a: Vec<([i32; 3], Parities)>, b: Vec<([i32; 3], Parities)>| {
        for (d, lines) in b {
            match a.iter_mut().find(|(known, _)| *known == d) {
                Some((_, known)) => known.0 |= lines.0,
                None => a.push((d, lines)),
            }
        }
        (a.len() <= MOST_OFFSETS).then_some(a)
    };
    let mut all = Threads::Pool.fold(
        lines,
        FEW_LINES,
        || Some(Vec::new()),
        |all, line| merge(all?, of_line(line)?),
        |a, b| merge(a?, b?),
    )?;
    all.sort_by_key(|(d, _)| [d[2], d[1], d[0]]);
    Some(all)
}

#[cfg(test)]
#[path = "stencil_tests.rs"]
mod tests;
