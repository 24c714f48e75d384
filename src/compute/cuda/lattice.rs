//! Lines of rows and where they lie in planes: grids as they are met, with fill, holes and wells, read off a pattern so
//! that parts of a triangle can be tiles of them (`owners.rs`).

use crate::base::threads::Threads;
use crate::matrix::pattern::PatternView;
use crate::symbolic::{BoxFill, Stencil};

/// Rows of a task.
const PART: usize = 1 << 13;

/// Rows of a line on average, below which a pattern is no grid.
const SHORTEST: usize = 4;

/// Rows that are looked at before all are.
const GLANCE: usize = 512;

/// A share of the couplings, one in so many, that is taken for wells and faults and does not decide.
const FEW: u64 = 50;

/// Shear at most: beyond, tiles are thin.
const LARGEST_SHEAR: usize = 8;

/// Lines of consecutive rows, each of which needs the one before, in planes.
#[derive(Debug, PartialEq)]
pub(super) struct Lattice {
    /// First rows of the lines, and one past the last row.
    starts: Vec<u32>,
    /// y' = y + shear z, and z of each line. Most rows need rows of no larger y' and z.
    at: Vec<[usize; 2]>,
    /// Steps of y' per z.
    shear: usize,
    /// Whether no row needs one of a larger y'.
    exact: bool,
    /// Different y and z.
    extents: [usize; 2],
    /// Rows at a place y, z on average.
    length: f64,
}

/// What a solve in parts depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outline {
    pub(super) parts: f64,
    /// Bounds between parts that a chain of dependencies crosses, about.
    pub(super) crossings: f64,
    /// Levels of the triangle, and of a part by itself.
    pub(super) levels: f64,
    pub(super) window: f64,
    /// Rows of a part over all.
    pub(super) share: f64,
    /// Rows that need some of other parts over all.
    pub(super) far: f64,
}

/// Couplings of a line with an earlier one.
#[derive(Clone, Copy)]
struct Coupling {
    line: usize,
    entries: u32,
}

impl Lattice {
    /// The lines of a strictly lower triangle; `None` when they are short or in no planes.
    pub(super) fn of(lower: PatternView) -> Option<Self> {
        let rows = lower.row_ptr.len() - 1;
        let follows = |i: usize| lower.row(i).last().is_some_and(|&j| j as usize + 1 == i);
        // a glance tells what is far from any grid; an odd distance, so that not all are the first of a line
        let glance = (0..rows).step_by((rows / GLANCE) | 1);
        if 2 * glance.clone().filter(|&i| follows(i)).count() < glance.count() {
            return None;
        }
        // rows that repeat one that follows do, too, and the others do not
        let of_part = |part: usize| {
            let of_part = lower.runs(part * PART..((part + 1) * PART).min(rows));
            let starts = of_part.filter(|run| !follows(run.start)).flatten();
            starts.map(|i| i as u32).collect::<Vec<_>>()
        };
        let mut starts: Vec<u32> = Threads::Pool.map(rows.div_ceil(PART), 1, of_part).concat();
        if starts.len() * SHORTEST > rows {
            return None;
        }
        starts.push(rows as u32);
        let mut of_row = vec![0u32; rows];
        for (line, ends) in starts.windows(2).enumerate() {
            of_row[ends[0] as usize..ends[1] as usize].fill(line as u32);
        }
        let of_line = |line: usize| {
            let mut found: Vec<Coupling> = Vec::new();
            for run in lower.runs(starts[line] as usize..starts[line + 1] as usize) {
                let mut at = 0;
                let alike = run.len() as u32;
                for &j in lower.row(run.start) {
                    // columns j, j + 1 and so on of the rows that are alike, line by line
                    let (mut j, last) = (j, j + alike);
                    while j < last {
                        let line = of_row[j as usize] as usize;
                        let entries = starts[line + 1].min(last) - j;
                        // most often that of the entry before, or the next
                        let is = |c: &Coupling| c.line == line;
                        let near = (at..found.len().min(at + 2)).find(|&c| is(&found[c]));
                        at = near.or_else(|| found.iter().position(is)).unwrap_or(found.len());
                        if at == found.len() {
                            found.push(Coupling { line, entries: 0 });
                        }
                        found[at].entries += entries;
                        j += entries;
                    }
                }
            }
            found.retain(|c| c.line != line);
            found
        };
        let couplings: Vec<Vec<Coupling>> = Threads::Pool.map(starts.len() - 1, 64, of_line);
        Self::on(starts, |line, found| found.clone_from(&couplings[line]))
    }

    /// The same of a stencil on a box, as if no row lacked any of its entries.
    pub(super) fn of_stencil(stencil: &Stencil) -> Option<Self> {
        let [nx, ny, nz] = stencil.extents;
        if nx < SHORTEST {
            return None;
        }
        let mut apart: Vec<([i32; 2], u32)> = Vec::new();
        for &[dx, dy, dz] in stencil.offsets.iter().filter(|o| o[1..] != [0; 2]) {
            let entries = nx.saturating_sub(dx.unsigned_abs() as usize) as u32;
            match apart.iter_mut().find(|(at, _)| *at == [dy, dz]) {
                Some((_, there)) => *there += entries,
                None => apart.push(([dy, dz], entries)),
            }
        }
        let couplings = |line: usize, found: &mut Vec<Coupling>| {
            let (y, z) = ((line % ny) as i32, (line / ny) as i32);
            let coupling = |&([dy, dz], entries): &([i32; 2], u32)| {
                let (y, z) = (y + dy, z + dz);
                let inside = (0..ny as i32).contains(&y) && (0..nz as i32).contains(&z);
                inside.then(|| Coupling { line: z as usize * ny + y as usize, entries })
            };
            found.clear();
            found.extend(apart.iter().filter_map(coupling));
        };
        Self::on((0..=ny * nz).map(|line| (line * nx) as u32).collect(), couplings)
    }

    /// The same of a box that a smaller one tells, in which rows do not reach from face to face.
    pub(super) fn of_box(told: &BoxFill) -> Option<Self> {
        let [nx, ny, nz] = told.extents();
        if nx < SHORTEST {
            return None;
        }
        let of_lines = told.couplings()?;
        let couplings = |line: usize, found: &mut Vec<Coupling>| {
            let of_line = &of_lines[told.line_like(line % ny, line / ny)];
            let coupling = |&([dy, dz], entries): &([i32; 2], u32)| {
                let line = line as i32 + dy + dz * ny as i32;
                Coupling { line: line as usize, entries }
            };
            found.clear();
            found.extend(of_line.iter().map(coupling));
        };
        Self::on((0..=ny * nz).map(|line| (line * nx) as u32).collect(), couplings)
    }

    /// With the first rows of the lines, and one past the last row, and what puts the couplings of a line in place of
    /// those in a list.
    fn on(starts: Vec<u32>, couplings: impl Fn(usize, &mut Vec<Coupling>)) -> Option<Self> {
        let rows = *starts.last()? as usize;
        let near = nearest(starts.len() - 1, &couplings)?;
        let (at, shear, exact) = places(&starts, near, &couplings);
        // lines of cells, which wells are not
        let of_cells = || at.iter().zip(starts.windows(2)).filter(|(_, ends)| is_line(ends));
        let extents = [0, 1].map(|axis| of_cells().map(|(at, _)| at[axis]).max().unwrap_or(0) + 1);
        let mut seen = vec![false; extents[0] * extents[1]];
        of_cells().for_each(|([y, z], _)| seen[y + extents[0] * z] = true);
        let places = seen.into_iter().filter(|&seen| seen).count();
        let length = rows as f64 / places.max(1) as f64;
        let at = at.into_iter().map(|[y, z]| [y + shear * z, z]).collect();
        Some(Self { starts, at, shear, exact, extents, length })
    }

    /// Ways of cutting the lines into at most so many tiles, across the lines of a plane and along the planes.
    pub(super) fn tilings(&self, most: usize) -> impl Iterator<Item = [usize; 2]> {
        let [lines, planes] = self.extents;
        (1..=lines.min(most)).flat_map(move |across| {
            (1..=planes.min(most / across)).map(move |along| [across, along])
        })
    }

    /// Whether no row needs one of a larger y, as where nothing has been filled.
    pub(super) fn is_square(&self) -> bool {
        self.shear == 0
    }

    /// Whether no coupling of planes was left out of account.
    pub(super) fn is_exact(&self) -> bool {
        self.exact
    }

    /// First rows of the lines, and one past the last row.
    pub(super) fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// What tiles mean for a solve.
    pub(super) fn outline(&self, [across, along]: [usize; 2]) -> Outline {
        let [lines, planes] = self.extents;
        let layers = planes.div_ceil(along);
        // y' of a layer of tiles, and of all
        let (of_layer, of_all) =
            (lines + self.shear * (layers - 1), lines + self.shear * (planes - 1));
        let width = of_layer.div_ceil(across);
        let outside = |parts: usize, own: usize| if parts > 1 { 1.0 / own as f64 } else { 0.0 };
        Outline {
            parts: (across * along) as f64,
            crossings: (across * of_all) as f64 / of_layer as f64 + along as f64 - 2.0,
            levels: self.levels(of_all, planes),
            window: self.levels(width, layers),
            share: (width * layers) as f64 / (of_layer * planes) as f64,
            far: (outside(across, width) + outside(along, layers)).min(1.0),
        }
    }

    /// What ranges of rows mean for a solve.
    pub(super) fn outline_of_ranges(&self, parts: usize) -> Outline {
        let [lines, planes] = self.extents;
        let own = (lines * planes) as f64 / parts as f64;
        // levels from a plane to the next
        let plane = (1 + self.shear * (1 + self.shear)) as f64;
        let window = if own < lines as f64 {
            self.length + (1 + self.shear) as f64 * (own - 1.0)
        } else {
            self.levels(lines, 1) + plane * (own / lines as f64 - 1.0)
        };
        Outline {
            parts: parts as f64,
            crossings: parts as f64 - 1.0,
            levels: self.levels(lines + self.shear * (planes - 1), planes),
            window,
            share: 1.0 / parts as f64,
            far: if parts > 1 { (parts as f64 / planes as f64).min(1.0) } else { 0.0 },
        }
    }

    /// Levels of so many y' and planes: a cell waits for those before it in its line, and, as fill reaches as many cells
    /// ahead as y' is sheared, for that many and one of the line before.
    fn levels(&self, lines: usize, planes: usize) -> f64 {
        self.length + ((1 + self.shear) * (lines - 1) + planes - 1) as f64
    }

    /// The tile of each line, of which there are at most `across` times `along`: layers of planes that have like
    /// numbers of rows, and each cut across likewise.
    pub(super) fn tiles(&self, [across, along]: [usize; 2]) -> Vec<u32> {
        let lengths: Vec<usize> = self.starts.windows(2).map(|w| (w[1] - w[0]) as usize).collect();
        let all: Vec<usize> = (0..lengths.len()).collect();
        let layer_of = cut(&all, along, |&line| (self.at[line][1], lengths[line]));
        let mut tile_of = vec![0; lengths.len()];
        let mut layers = vec![Vec::new(); along];
        for (line, layer) in all.into_iter().zip(layer_of) {
            layers[layer].push(line);
        }
        for (layer, lines) in layers.iter().enumerate() {
            let place = cut(lines, across, |&line| (self.at[line][0], lengths[line]));
            for (&line, place) in lines.iter().zip(place) {
                tile_of[line] = (layer * across + place) as u32;
            }
        }
        tile_of
    }
}

/// Whether rows between these ends are a line; those of wells are short.
fn is_line(ends: &[u32]) -> bool {
    (ends[1] - ends[0]) as usize >= SHORTEST
}

/// Cuts things at places, of so many rows each, into `parts` consecutive ones of like numbers of rows; those at one
/// place stay together.
fn cut(things: &[usize], parts: usize, of: impl Fn(&usize) -> (usize, usize)) -> Vec<usize> {
    let places = things.iter().map(|t| of(t).0).max().map_or(0, |most| most + 1);
    let mut rows = vec![0usize; places];
    for thing in things {
        let (place, count) = of(thing);
        rows[place] += count;
    }
    let total: usize = rows.iter().sum();
    let mut before = 0;
    for count in &mut rows {
        let middle = before + *count / 2;
        before += *count;
        *count = (middle * parts / total.max(1)).min(parts - 1);
    }
    things.iter().map(|t| rows[of(t).0]).collect()
}

/// How many lines before it a line of the same plane is at most: from there to the plane before there is a gap.
fn nearest(lines: usize, couplings: impl Fn(usize, &mut Vec<Coupling>)) -> Option<usize> {
    // entries by the logarithm of the lines between
    let mut entries = [0u64; usize::BITS as usize];
    let mut found = Vec::new();
    for line in 0..lines {
        couplings(line, &mut found);
        for c in &found {
            let bucket = usize::BITS - (line - c.line - 1).leading_zeros();
            entries[bucket as usize] += u64::from(c.entries);
        }
    }
    let total: u64 = entries.iter().sum();
    let full: Vec<usize> = (0..entries.len()).filter(|&b| entries[b] * FEW > total).collect();
    let gap = full.windows(2).max_by_key(|pair| pair[1] - pair[0])?;
    (gap[1] - gap[0] > 1).then(|| 1 << gap[0])
}

/// y and z of the lines, the shear that most couplings between planes need, and whether it is enough for all.
fn places(
    starts: &[u32],
    near: usize,
    couplings: impl Fn(usize, &mut Vec<Coupling>),
) -> (Vec<[usize; 2]>, usize, bool) {
    let mut at: Vec<[usize; 2]> = Vec::with_capacity(starts.len() - 1);
    let mut needed = [0u64; LARGEST_SHEAR + 1];
    let mut found = Vec::new();
    for (line, ends) in starts.windows(2).enumerate() {
        couplings(line, &mut found);
        let is_far = |c: &Coupling| line - c.line > near;
        let most = found.iter().filter(|c| is_far(c)).map(|c| c.entries).max().unwrap_or(0);
        // a few entries are those of a well
        let below =
            || found.iter().filter(|c| is_far(c) && 4 * c.entries >= most).map(|c| at[c.line]);
        let beside = || found.iter().filter(|c| !is_far(c)).map(|c| at[c.line]);
        let z_below = below().map(|at| at[1] + 1).max();
        let z_beside = beside().map(|at| at[1]).max();
        let y = below().map(|at| at[0]).min().or_else(|| beside().map(|at| at[0] + 1).max());
        let last = at.last().copied().unwrap_or([0; 2]);
        let own = [y.unwrap_or(last[0]), z_below.max(z_beside).unwrap_or(last[1])];
        for c in found.iter().filter(|c| is_line(ends) && is_far(c) && at[c.line][1] < own[1]) {
            let [y, z] = at[c.line];
            let shear = y.saturating_sub(own[0]).div_ceil(own[1] - z);
            needed[shear.min(LARGEST_SHEAR)] += u64::from(c.entries);
        }
        at.push(own);
    }
    let total: u64 = needed.iter().sum();
    let mut beyond = total;
    let shear = needed.iter().position(|&entries| {
        beyond -= entries;
        beyond * FEW <= total
    });
    (at, shear.unwrap_or(0), beyond == 0)
}

#[cfg(test)]
mod tests;
