//! Colours of the cells of a box by a linear form modulo their number.
//!
//! Where a pattern is a stencil on a box, cells a distance d apart are coupled for some d alone. These
//! generate a lattice, whose coordinates k (x, y and z themselves, where it has all cells) give a cell the
//! colour `a k1 + b k2 + c k3 mod m`, with the least m for which no d has the colour 0. The cells of a colour
//! are evenly spaced, and so are their neighbours of any other.

use rayon::prelude::*;

use super::{Pattern, Stencil, Threads};

/// Distance between two cells, or a cell.
type Cell = [i32; 3];

/// Most colours that are looked for: with more of them first fit is as good.
const MOST_COLOURS: i32 = 48;

/// Most distances of coupled cells.
const MOST_DISTANCES: usize = 1024;

/// A colouring of all cells of a box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lattice {
    /// Cells along x, y and z.
    extents: [usize; 3],
    /// Generators of the distances: the one along z may have parts along y and x, that along y one along x.
    /// Zeros where no distance leads along an axis.
    basis: [Cell; 3],
    form: Cell,
    /// Number of colours.
    pub colours: usize,
}

impl Lattice {
    /// For the rows of `|A|^q`, where `a`, symmetric and with all diagonals, is a stencil on a box; with the
    /// number of couplings of a row inside of it. `None` where it is not or the colours would be too many.
    pub fn of_power(a: &Pattern, q: usize) -> Option<(Self, usize)> {
        let stencil = Stencil::of_lower(a.view())?;
        let fits = |d: &Cell| (0..3).all(|k| (d[k].unsigned_abs() as usize) < stencil.extents[k]);
        let mut reached = vec![[0; 3]];
        let mut step = 0..1;
        for _ in 0..q {
            for at in step.clone() {
                for o in &stencil.offsets {
                    let d = std::array::from_fn(|k| reached[at][k] + o[k]);
                    if !reached.contains(&d) {
                        reached.push(d);
                    }
                }
                if reached.len() > MOST_DISTANCES {
                    return None;
                }
            }
            step = step.end..reached.len();
        }
        reached.retain(fits);
        let couplings = reached.len() - 1;
        Some((Self::new(stencil.extents, &reached)?, couplings))
    }

    /// For some cells of a box, `rows`, coupled as `p` says, whose rows are numbers among them.
    pub fn of_cells(
        threads: Threads,
        extents: [usize; 3],
        rows: &[u32],
        p: &Pattern,
    ) -> Option<Self> {
        let add = |mut seen: Vec<Cell>, i: usize| {
            let from = cell(extents, rows[i]);
            for (at, &j) in p.row(i).iter().enumerate() {
                let to = cell(extents, rows[j as usize]);
                let d = std::array::from_fn(|k| to[k] - from[k]);
                // most rows have what the first had, in its order
                if seen.get(at) != Some(&d) && !seen.contains(&d) {
                    seen.push(d);
                    if seen.len() > MOST_DISTANCES {
                        return None;
                    }
                }
            }
            Some(seen)
        };
        let merge = |mut a: Vec<Cell>, b: Vec<Cell>| {
            for d in b {
                if !a.contains(&d) {
                    a.push(d);
                }
            }
            (a.len() <= MOST_DISTANCES).then_some(a)
        };
        let distances = match threads {
            Threads::One => (0..rows.len()).try_fold(Vec::new(), add),
            Threads::Pool => (0..rows.len())
                .into_par_iter()
                .with_min_len(4096)
                .try_fold(Vec::new, add)
                .try_reduce(Vec::new, merge),
        };
        Self::new(extents, &distances?)
    }

    /// The fewest colours for `distances`, which are symmetric.
    fn new(extents: [usize; 3], distances: &[Cell]) -> Option<Self> {
        let basis = generators(distances);
        // of two opposite ones one is enough
        let forward = distances.iter().filter(|d| [d[2], d[1], d[0]] > [0; 3]);
        let steps: Vec<Cell> = forward.map(|&d| coordinates(&basis, d)).collect();
        let fits = |m: i32, form: Cell| steps.iter().all(|&k| product(form, k) % m != 0);
        (1..=MOST_COLOURS).find_map(|m| {
            // the mirrored form has the same colours
            let forms =
                (0..=m / 2).flat_map(|a| (0..m).flat_map(move |b| (0..m).map(move |c| [a, b, c])));
            let form = forms.into_iter().find(|&form| fits(m, form))?;
            Some(Self { extents, basis, form, colours: m as usize })
        })
    }

    /// The colour of each of `rows`, from 0; every one up to the highest is there.
    pub fn colours_of(&self, threads: Threads, rows: &[u32]) -> Vec<u32> {
        let of = |&i: &u32| {
            let k = coordinates(&self.basis, cell(self.extents, i));
            product(self.form, k).rem_euclid(self.colours as i32) as u32
        };
        let mut colour: Vec<u32> = match threads {
            Threads::One => rows.iter().map(of).collect(),
            Threads::Pool => rows.par_iter().with_min_len(4096).map(of).collect(),
        };
        // in a small box some are not
        let mut new = vec![0; self.colours];
        colour.iter().for_each(|&c| new[c as usize] = 1);
        if new.contains(&0) {
            let mut used = 0;
            for new in &mut new {
                (*new, used) = (used, used + *new);
            }
            colour.iter_mut().for_each(|c| *c = new[*c as usize]);
        }
        colour
    }

    /// The colours of all cells.
    pub fn colours_of_all(&self, threads: Threads) -> Vec<u32> {
        let n: usize = self.extents.iter().product();
        self.colours_of(threads, &(0..n as u32).collect::<Vec<_>>())
    }
}

/// The cell of row i.
fn cell([nx, ny, _]: [usize; 3], i: u32) -> Cell {
    let i = i as usize;
    [i % nx, i / nx % ny, i / nx / ny].map(|c| c as i32)
}

fn product(form: Cell, k: Cell) -> i32 {
    (0..3).map(|axis| form[axis] * k[axis]).sum()
}

/// Triangular generators of what `distances` generate.
fn generators(distances: &[Cell]) -> [Cell; 3] {
    let mut basis = [[0; 3]; 3];
    let less = |v: Cell, times: i32, b: Cell| std::array::from_fn(|k| v[k] - times * b[k]);
    for &d in distances {
        let mut v = d;
        for axis in [2, 1, 0] {
            // Euclid's algorithm along the axis
            while v[axis] != 0 {
                let b = basis[axis];
                if b[axis] == 0 {
                    (basis[axis], v) = (v, [0; 3]);
                } else {
                    (basis[axis], v) = (less(v, v[axis] / b[axis], b), b);
                    if basis[axis][axis] == 0 {
                        std::mem::swap(&mut basis[axis], &mut v);
                    }
                }
            }
        }
    }
    for axis in 0..3 {
        if basis[axis][axis] < 0 {
            basis[axis] = basis[axis].map(|b| -b);
        }
        for under in (0..axis).rev() {
            let b = basis[under];
            if b[under] != 0 {
                basis[axis] = less(basis[axis], basis[axis][under].div_euclid(b[under]), b);
            }
        }
    }
    basis
}

/// Coordinates of a cell, without what lies between the lattice's points: those of cells a distance of the
/// lattice apart differ by its coordinates.
fn coordinates(basis: &[Cell; 3], cell: Cell) -> Cell {
    let (mut left, mut k) = (cell, [0; 3]);
    for axis in [2, 1, 0] {
        let b = basis[axis];
        if b[axis] != 0 {
            k[axis] = left[axis].div_euclid(b[axis]);
            left = std::array::from_fn(|at| left[at] - k[axis] * b[at]);
        }
    }
    k
}
