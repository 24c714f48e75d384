//! Colours of the cells of a box by a linear form modulo their number.
//!
//! Where a pattern is a stencil on a box, cells a distance d apart are coupled for some d alone. These
//! generate a lattice, whose coordinates k (x, y and z themselves, where it has all cells) give a cell the
//! colour `a k1 + b k2 + c k3 mod m`, with the least m for which no d has the colour 0. The cells of a colour
//! are evenly spaced, and so are their neighbours of any other.

use super::Stencil;
use super::stencil::cell;
use crate::base::threads::Threads;
use crate::matrix::pattern::Pattern;

/// Distance between two cells, or a cell.
pub(super) type Cell = [i32; 3];

/// Most colours that are looked for: with more of them first fit is as good.
const MOST_COLOURS: i32 = 48;

/// Most distances of coupled cells.
pub(super) const MOST_DISTANCES: usize = 1024;

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
    pub(crate) fn of_power(a: &Pattern, q: usize) -> Option<(Self, usize)> {
        Self::of_stencil(&Stencil::of_lower(a.view())?, q)
    }

    /// The same of a stencil.
    pub(super) fn of_stencil(stencil: &Stencil, q: usize) -> Option<(Self, usize)> {
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
    pub(crate) fn of_cells(
        threads: Threads,
        extents: [usize; 3],
        rows: &[u32],
        p: &Pattern,
    ) -> Option<Self> {
        let add = |seen: Option<Vec<Cell>>, i: usize| {
            let mut seen = seen?;
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
        let none = || Some(Vec::new());
        let distances = threads.fold(rows.len(), 4096, none, add, |a, b| merge(a?, b?));
        Self::new(extents, &distances?)
    }

    /// The fewest colours for `distances`, which are symmetric.
    pub(super) fn new(extents: [usize; 3], distances: &[Cell]) -> Option<Self> {
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
    pub(crate) fn colours_of(&self, threads: Threads, rows: &[u32]) -> Vec<u32> {
        let of = |i: usize| self.colour(cell(self.extents, rows[i])) as u32;
        let mut colour: Vec<u32> = threads.map(rows.len(), 4096, of);
        // in a small box some are not
        let mut new = vec![0; self.colours];
        for &c in &colour {
            new[c as usize] = 1;
        }
        if new.contains(&0) {
            let mut used = 0;
            for new in &mut new {
                (*new, used) = (used, used + *new);
            }
            for c in &mut colour {
                *c = new[*c as usize];
            }
        }
        colour
    }

    /// The colour of a cell in the box or elsewhere: cells a distance of the lattice apart have colours that
    /// differ by a number, modulo that of the colours, which belongs to the distance.
    pub(super) fn colour(&self, cell: Cell) -> usize {
        product(self.form, coordinates(&self.basis, cell)).rem_euclid(self.colours as i32) as usize
    }

    /// Whether `distances` generate no other lattice.
    pub(super) fn is_of(&self, distances: &[Cell]) -> bool {
        generators(distances) == self.basis
    }

    /// Steps along x after which colours come again.
    pub(super) fn period(&self) -> usize {
        self.colours * self.basis[0][0].max(1) as usize
    }

    /// The colours of all cells.
    pub(crate) fn colours_of_all(&self, threads: Threads) -> Vec<u32> {
        let n: usize = self.extents.iter().product();
        self.colours_of(threads, &(0..n as u32).collect::<Vec<_>>())
    }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::choices::ReadAs;
    use crate::matrix::pattern::block_pattern;
    use crate::problem::load;
    use crate::symbolic::colour::tests::coupled_alike;
    use crate::symbolic::{Colouring, colours, colours_of_power, power, symmetrised};

    fn pattern(spec: &str) -> Pattern<'static> {
        let a = load(spec, ReadAs::Expanded).unwrap().matrix;
        symmetrised(Threads::One, &block_pattern(&a)).into_owned()
    }

    #[test]
    fn stencils_have_the_fewest_colours() {
        for (spec, q, count) in [
            ("poisson3d:12x11x10", 1, 2),
            ("poisson3d:12x11x10", 2, 7),
            ("poisson3d:40x33x1", 1, 2),
            ("poisson3d:40x33x1", 2, 5),
            // half of the stencil does not fit in
            ("poisson3d:2x40x33", 2, 6),
            ("fem-p1:20x35", 1, 3),
            ("fem-p1:20x35", 2, 7),
            ("bubbly:9x8x7,bubbles=1,radius=0.2", 2, 7),
        ] {
            let p = pattern(spec);
            let (lattice, _) = Lattice::of_power(&p, q).expect(spec);
            assert_eq!(lattice.colours, count, "{spec}, q {q}");
            let colour = lattice.colours_of_all(Threads::Pool);
            assert_eq!(colour, lattice.colours_of_all(Threads::One));
            let reached = power(Threads::One, &p, q, usize::MAX).unwrap();
            assert_eq!(coupled_alike(&reached, &colour), 0, "{spec}, q {q}");
            let found = colours_of_power(Threads::One, &p, q, Colouring::Lattice, usize::MAX);
            let found = found.unwrap();
            if count == 2 {
                assert_eq!(found, colours(Threads::One, &p), "{spec}");
            }
            assert_eq!(*found.iter().max().unwrap() + 1, count as u32, "{spec}, q {q}");
        }
    }

    #[test]
    fn what_is_no_stencil_on_a_box_is_left_to_first_fit() {
        for spec in ["poisson3d:40x1x1", "poisson3d:3x4x5"] {
            let p = pattern(spec);
            assert_eq!(Lattice::of_power(&p, 2), None, "{spec}");
            let found = |how| colours_of_power(Threads::One, &p, 2, how, usize::MAX).unwrap();
            assert_eq!(found(Colouring::Lattice), found(Colouring::FirstFit), "{spec}");
        }
        // first fit needs the square, a lattice does not
        let p = pattern("poisson3d:12x11x10");
        assert!(colours_of_power(Threads::One, &p, 2, Colouring::FirstFit, 10).is_err());
        assert!(colours_of_power(Threads::One, &p, 2, Colouring::Lattice, 10).is_ok());
    }

    #[test]
    fn generators_are_those_of_the_distances() {
        assert_eq!(
            generators(&[[0, 0, 1], [1, 0, 0], [0, 1, 0], [2, 1, 3]]),
            [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
        );
        // cells of even sums
        let even = generators(&[[1, -1, 0], [0, 1, 1], [1, 0, -1], [0, 2, 0]]);
        assert_eq!(even, [[2, 0, 0], [1, 1, 0], [1, 0, 1]]);
        assert_eq!(coordinates(&even, [3, 2, 1]), [0, 2, 1]);
        assert_eq!(coordinates(&even, [4, 2, 1]), [0, 2, 1]);
        assert_eq!(generators(&[[6, 0, 0], [4, 0, 0]]), [[2, 0, 0], [0; 3], [0; 3]]);
    }

    /// A symmetric pattern with some of the `offsets` in each row of a box.
    fn sparse(extents: [usize; 3], offsets: &[Cell], seed: u64) -> Pattern<'static> {
        let n: usize = extents.iter().product();
        let mut rows = vec![Vec::new(); n];
        for i in 0..n as u32 {
            rows[i as usize].push(i);
            let from = cell(extents, i);
            for (at, o) in offsets.iter().enumerate() {
                let to: Cell = std::array::from_fn(|k| from[k] + o[k]);
                let inside = (0..3).all(|k| to[k] >= 0 && (to[k] as usize) < extents[k]);
                let dice =
                    (u64::from(i) * 31 + at as u64 * 17 + seed).wrapping_mul(0x9e37_79b9) >> 7;
                if inside && !dice.is_multiple_of(8) {
                    let [x, y, z] = to.map(|c| c as usize);
                    let j = ((z * extents[1] + y) * extents[0] + x) as u32;
                    rows[i as usize].push(j);
                    rows[j as usize].push(i);
                }
            }
        }
        let mut p = Pattern::new(vec![0], Vec::new());
        for mut row in rows {
            row.sort_unstable();
            row.dedup();
            p.col_ind.to_mut().extend(row);
            p.row_ptr.to_mut().push(p.col_ind.len() as u32);
        }
        p
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn coupled_cells_have_different_colours(
            extents in prop::array::uniform3(1usize..9),
            offsets in prop::collection::vec(prop::array::uniform3(-2i32..3), 1..6),
            q in 1usize..4,
            seed in 0u64..1000,
        ) {
            let p = sparse(extents, &offsets, seed);
            let reached = power(Threads::One, &p, q, usize::MAX).unwrap();
            // of all cells, by the distances that there are
            let rows: Vec<u32> = (0..p.rows() as u32).collect();
            if let Some(lattice) = Lattice::of_cells(Threads::One, extents, &rows, &reached) {
                let colour = lattice.colours_of_all(Threads::One);
                prop_assert_eq!(coupled_alike(&reached, &colour), 0);
                let used = *colour.iter().max().unwrap() as usize;
                prop_assert!(used < lattice.colours);
                prop_assert!((0..=used as u32).all(|c| colour.contains(&c)));
                let again = Lattice::of_cells(Threads::Pool, extents, &rows, &reached);
                prop_assert_eq!(again.map(|l| l.colours), Some(lattice.colours));
            }
            // by the steps of the stencil
            for how in [Colouring::Lattice, Colouring::FirstFit] {
                let colour = colours_of_power(Threads::One, &p, q, how, usize::MAX).unwrap();
                prop_assert_eq!(coupled_alike(&reached, &colour), 0);
            }
        }
    }
}
