//! Deflation vectors: which unknowns each of them is one on.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::Choice;
use super::choice::OVER_RANKS;
use crate::base::error::{Error, Result};
use crate::base::memory;
use crate::base::threads::Threads;
use crate::matrix::pattern::block_pattern_on;
use crate::matrix::{Csr, Rows};
use crate::symbolic::grid::detect_grid;
use crate::symbolic::stencil::coordinates;

/// An unknown on which no vector is one.
pub(super) const NONE: u32 = u32::MAX;

/// Diagonal entries that differ by more than this factor lie on two sides of a jump.
const JUMP: f64 = 10.0;

/// Row sums below this part of the diagonal are rounding.
const ROUNDING: f64 = 1e-12;

/// What is said where A has the constants in its null space.
pub(super) const SINGULAR: &str = "A is singular: the last deflation vector is left out";

/// Piecewise constant vectors: 1 on their own unknowns, 0 elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Vectors {
    /// The vector of each unknown, or [`u32::MAX`].
    pub of: Vec<u32>,
    /// Number of vectors.
    pub count: usize,
    /// What a reader of the results needs to know.
    pub remarks: Vec<String>,
}

impl Vectors {
    /// The vectors of a `choice` for `a` with blocks of `b`; each component of a block has vectors of
    /// its own. `grid` is the box of the block rows, where it is known.
    ///
    /// Boxes need a grid: without one it is looked for in the pattern, and if there is none, equal
    /// ranges of rows take their place. Regions are the connected sets of block rows whose diagonals
    /// do not differ by more than a factor of ten from neighbour to neighbour. Rows that nothing is
    /// coupled to belong to no vector; and where A has the constants in its null space the last
    /// vector is left out, because the sum of all is a constant (Tang and Vuik 2007).
    ///
    /// # Errors
    /// When there would be more boxes than points, or more vectors than unknowns.
    pub fn new(
        threads: Threads,
        choice: Choice,
        a: &Csr,
        grid: Option<[usize; 3]>,
    ) -> Result<Self> {
        let b = a.block_size();
        let rows = a.rows() / b;
        let mut remarks = Vec::new();
        let mut of_boxes = |boxes: [usize; 3]| {
            let known = grid.filter(|g| g.iter().product::<usize>() == rows);
            let grid = known.or_else(|| detect_grid(a).map(|found| found.size));
            if grid.is_none() {
                remarks.push("no grid: subdomains are ranges of rows".to_owned());
            }
            boxed(threads, rows, boxes, grid)
        };
        let (mut points, mut count) = match choice {
            Choice::None => (vec![NONE; rows], 0),
            Choice::Subdomains(_) => return Err(Error::input(OVER_RANKS)),
            Choice::Subdomain(boxes) => (of_boxes(boxes)?, boxes.iter().product()),
            Choice::LevelSet => regions(threads, a, None),
            Choice::LevelSetSubdomain(boxes) => regions(threads, a, Some(&of_boxes(boxes)?)),
        };
        if matches!(choice, Choice::Subdomain(_)) {
            let coupled = coupled(threads, a, 0..rows);
            points.iter_mut().zip(coupled).filter(|(_, c)| !c).for_each(|(p, _)| *p = NONE);
            count = numbered(&mut points);
        }
        let mut of = points;
        if b > 1 {
            let of_point = |&p: &u32| {
                (0..b as u32).map(move |c| if p == NONE { NONE } else { p * b as u32 + c })
            };
            of = of.iter().flat_map(of_point).collect();
        }
        let mut count = count * b;
        if count > 0 && constants_vanish(threads, a, 0..a.rows()) {
            remarks.push(SINGULAR.to_owned());
            count -= 1;
            of.iter_mut().filter(|v| **v == count as u32).for_each(|v| *v = NONE);
        }
        if count > a.rows() {
            return Err(too_many(count, a.rows()));
        }
        Ok(Self { of, count, remarks })
    }
}

fn too_many(vectors: usize, rows: usize) -> Error {
    Error::input(format!("{vectors} deflation vectors for {rows} rows"))
        .hint("choose fewer subdomains")
}

/// The box of each point, numbered as the points are.
fn boxed(
    threads: Threads,
    rows: usize,
    boxes: [usize; 3],
    grid: Option<[usize; 3]>,
) -> Result<Vec<u32>> {
    let count: usize = boxes.iter().product();
    if count > rows {
        return Err(too_many(count, rows));
    }
    let Some(size) = grid else {
        return Ok((0..rows).map(|i| (i as u64 * count as u64 / rows as u64) as u32).collect());
    };
    if let Some(d) = (0..3).find(|&d| boxes[d] > size[d]) {
        let axis = ["x", "y", "z"][d];
        let message = format!("{} subdomains in {axis} for {} points", boxes[d], size[d]);
        return Err(Error::input(message).hint("write the boxes as `4x2x1`"));
    }
    let of_point = |i: usize| {
        let at = coordinates(size, i);
        let [x, y, z] = [0, 1, 2].map(|d| at[d] * boxes[d] / size[d]);
        (x + boxes[0] * (y + boxes[1] * z)) as u32
    };
    Ok(threads.map(rows, 1024, of_point))
}

/// Whether anything is coupled to each of some block rows.
pub(super) fn coupled(threads: Threads, a: &Csr, blocks: Range<usize>) -> Vec<bool> {
    let b = a.block_size();
    let outside = |i: usize| {
        let (columns, values) = a.row(i);
        columns.iter().zip(values).any(|(&j, &v)| j as usize / b != i / b && v != 0.0)
    };
    let first = blocks.start;
    threads.map(blocks.len(), 1024, |i| ((first + i) * b..(first + i + 1) * b).any(outside))
}

/// Numbers the sets, whose own numbers are below that of members, in the order of their first members;
/// returns how many there are.
fn numbered(set: &mut [u32]) -> usize {
    let mut number = vec![NONE; set.len()];
    let mut count = 0;
    for s in set.iter_mut().filter(|s| **s != NONE) {
        let new = &mut number[*s as usize];
        if *new == NONE {
            *new = count;
            count += 1;
        }
        *s = *new;
    }
    count as usize
}

/// The connected regions of coupled block rows of one size of diagonal and, where there are some, of one box.
fn regions(threads: Threads, a: &Csr, of_box: Option<&[u32]>) -> (Vec<u32>, usize) {
    /// Rows whose sets a task numbers.
    const PART: usize = 1 << 14;
    let b = a.block_size();
    let rows = a.rows() / b;
    let diagonal = |r| a.get(r, r).unwrap_or(0.0).abs();
    let size = threads.map(rows, 1024, |i| (i * b..(i + 1) * b).map(diagonal).fold(0.0, f64::max));
    let pattern = block_pattern_on(threads, a);
    let coupled = coupled(threads, a, 0..rows);
    let near = |i: usize| {
        let (size, pattern, coupled) = (&size, &pattern, &coupled);
        let before = pattern.row(i).iter().map(|&j| j as usize).take_while(move |&j| j < i);
        let alike = move |j: usize| size[i] <= JUMP * size[j] && size[j] <= JUMP * size[i];
        let near = move |j: usize| coupled[i] && coupled[j] && alike(j);
        before.filter(move |&j| near(j) && of_box.is_none_or(|of| of[i] == of[j]))
    };
    let parent = threads.map(rows, 1024, |i| AtomicU32::new(i as u32));
    threads.for_each(rows, 1024, |i| {
        near(i).fold(i, |own, j| unite(&parent, own, j));
    });
    // a root is the first member of its set, so that sets are numbered in the order of their roots
    let is_root = |i: usize| coupled[i] && parent[i].load(Relaxed) == i as u32;
    let parts = rows.div_ceil(PART);
    let own = |part: usize| part * PART..((part + 1) * PART).min(rows);
    let counts = threads.map(parts, 1, |part| own(part).filter(|&i| is_root(i)).count());
    let mut number = memory::zeroed::<u32>(rows);
    let (mut count, mut tasks) = (0, Vec::with_capacity(parts));
    for ((part, to), of_part) in number.chunks_mut(PART).enumerate().zip(counts) {
        tasks.push((part, count as u32, to));
        count += of_part;
    }
    threads.each(tasks, |(part, mut next, to): (usize, u32, &mut [u32])| {
        for (i, to) in own(part).zip(to) {
            *to = next;
            next += u32::from(is_root(i));
        }
    });
    let set = |i: usize| if coupled[i] { number[root(&parent, i)] } else { NONE };
    (threads.map(rows, 1024, set), count)
}

/// Joins the set that `i` was the root of with that of `j`, while other threads join others. The lower root, which is
/// returned, is that of both, so that what is found does not depend on the order (Jaiganesh and Burtscher, HPDC 2018).
fn unite(parent: &[AtomicU32], mut i: usize, mut j: usize) -> usize {
    loop {
        j = root(parent, j);
        if i == j {
            return i;
        }
        let (low, high) = (i.min(j), i.max(j));
        if parent[high].compare_exchange(high as u32, low as u32, Relaxed, Relaxed).is_ok() {
            return low;
        }
        // `i` or `j` has just been given another root
        i = root(parent, i);
    }
}

/// The root of `i`; paths are halved on the way.
fn root(parent: &[AtomicU32], mut i: usize) -> usize {
    loop {
        let up = parent[i].load(Relaxed) as usize;
        if up == i {
            return i;
        }
        let next = parent[up].load(Relaxed);
        if next as usize != up {
            parent[i].store(next, Relaxed);
        }
        i = up;
    }
}

/// Whether those of some rows that are of coupled unknowns sum up to zero.
pub(super) fn constants_vanish(threads: Threads, a: &Csr, rows: Range<usize>) -> bool {
    let sums_to_nothing = |i: usize| {
        let (columns, values) = a.row(i);
        let alone = columns.iter().zip(values).all(|(&j, &v)| j as usize == i || v == 0.0);
        let size: f64 = values.iter().map(|v| v.abs()).sum();
        alone || values.iter().sum::<f64>().abs() <= ROUNDING * size
    };
    threads.all(rows.len(), 1024, |i| sums_to_nothing(rows.start + i))
}

/// The unknowns of each vector, one behind the other in increasing order, and where each vector's begin, with
/// the end of the last.
pub(super) fn by_piece(threads: Threads, vectors: &Vectors) -> (Vec<u32>, Vec<usize>) {
    /// Unknowns that a task sorts.
    const TASK: usize = 1 << 17;
    let (of, count) = (&vectors.of, vectors.count);
    let sorted = |task: usize| {
        let range = task * TASK..((task + 1) * TASK).min(of.len());
        let (mut start, mut inside) = (vec![0_usize; count + 1], 0);
        for &piece in of[range.clone()].iter().filter(|&&piece| piece != NONE) {
            start[piece as usize + 1] += 1;
            inside += 1;
        }
        (0..count).for_each(|piece| start[piece + 1] += start[piece]);
        let (mut next, mut unknowns) = (start.clone(), memory::zeroed::<u32>(inside));
        for i in range.filter(|&i| of[i] != NONE) {
            let at = &mut next[of[i] as usize];
            unknowns[*at] = i as u32;
            *at += 1;
        }
        (start, unknowns)
    };
    let tasks = of.len().div_ceil(TASK);
    let tasks: Vec<(Vec<usize>, Vec<u32>)> = threads.map(tasks, 1, sorted);
    let mut start = vec![0; count + 1];
    for (of_task, _) in &tasks {
        start.iter_mut().zip(of_task).for_each(|(sum, own)| *sum += own);
    }
    let mut unknowns = memory::zeroed::<u32>(start[count]);
    let (mut left, mut pieces) = (&mut unknowns[..], Vec::with_capacity(count));
    for piece in start.windows(2) {
        let (own, others) = left.split_at_mut(piece[1] - piece[0]);
        pieces.push(own);
        left = others;
    }
    let gather = |(piece, mut to): (usize, &mut [u32])| {
        for (of_task, from) in &tasks {
            let from = &from[of_task[piece]..of_task[piece + 1]];
            let (own, others) = to.split_at_mut(from.len());
            own.copy_from_slice(from);
            to = others;
        }
    };
    threads.each(pieces.into_iter().enumerate().collect(), gather);
    (unknowns, start)
}

/// `A Z`: entries that are nothing but rounding are left out, so that the rows within a piece are empty
/// where A conserves.
pub(super) fn applied(threads: Threads, a: &Csr, vectors: &Vectors) -> Result<Csr> {
    let size = [a.rows(), vectors.count];
    Csr::by_rows(threads, size, Vec::new, |terms: &mut Vec<(u32, f64)>, i, to| {
        let (columns, values) = a.row(i);
        let piece = |j: &u32| vectors.of[*j as usize];
        let first = columns.first().map_or(NONE, piece);
        if columns.iter().all(|j| piece(j) == first) {
            push_sum(to, first, values.iter().copied());
            return Ok(());
        }
        terms.clear();
        terms.extend(columns.iter().map(piece).zip(values.iter().copied()));
        terms.sort_by_key(|term| term.0);
        for of_column in terms.chunk_by(|p, q| p.0 == q.0) {
            push_sum(to, of_column[0].0, of_column.iter().map(|term| term.1));
        }
        Ok(())
    })
}

/// The sum of a row's entries in a piece, unless it is nothing but rounding.
fn push_sum(to: &mut Rows, piece: u32, values: impl Iterator<Item = f64>) {
    let (sum, sizes) = values.fold((0.0, 0.0), |(sum, sizes), v| (sum + v, sizes + v.abs()));
    if piece != NONE && f64::abs(sum) > ROUNDING * sizes {
        to.push(piece, sum);
    }
}

/// `-Z`.
pub(super) fn negative(threads: Threads, vectors: &Vectors) -> Csr {
    Csr::one_each(threads, &vectors.of, vectors.count, -1.0)
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::problem::samples::{matrix, problem};

    fn vectors(spec: &str, choice: &str, b: usize) -> Result<Vectors> {
        let p = problem(spec);
        Vectors::new(Threads::Pool, choice.parse().unwrap(), &p.matrix.in_blocks(b), p.grid)
    }

    #[test]
    fn boxes_are_boxes_and_components_have_their_own() {
        let v = vectors("poisson3d:4x2x2", "subdomain:2x1x2", 1).unwrap();
        assert_eq!(v.of, [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3]);
        assert_eq!((v.count, v.remarks.len()), (4, 0));
        let v = vectors("blockpoisson3d:2x1x1,b=3", "subdomain:2x1x1", 3).unwrap();
        assert_eq!((v.of, v.count), (vec![0, 1, 2, 3, 4, 5], 6));
        // without its grid the box is found in the pattern
        let a = matrix("poisson3d:4x3x2");
        let found = Vectors::new(Threads::One, Choice::Subdomain([2, 1, 1]), &a, None).unwrap();
        assert_eq!(found.of[..8], [0, 0, 1, 1, 0, 0, 1, 1]);
        let a = matrix("fem-p1:6x5");
        let ranges = Vectors::new(Threads::One, Choice::Subdomain([3, 1, 1]), &a, None).unwrap();
        assert_eq!(ranges.count, 3);
    }

    #[test]
    fn regions_are_bubbles_and_layers() {
        let bubbly = |choice| vectors("bubbly:24,bubbles=3,radius=0.12", choice, 1).unwrap();
        let v = bubbly("levelset");
        assert_eq!(v.count, 4); // and the liquid
        let of_liquid = v.of.iter().filter(|&&l| l == 0).count();
        assert!(of_liquid > 12_000 && of_liquid < 13_824);
        // pieces of bubbles and of the liquid in eight boxes
        let pieces = bubbly("levelset-subdomain:2");
        assert!(pieces.count > 8 + 3 && pieces.count <= 8 + 3 * 8, "{}", pieces.count);
        let layers = vectors("layered:5x4x12,layers=6,contrast=1e5", "levelset", 1).unwrap();
        assert_eq!(layers.count, 6);
        assert!(layers.of.iter().enumerate().all(|(i, &l)| l as usize == i / 40));
    }

    #[test]
    fn a_singular_matrix_loses_one_vector() {
        let v = vectors("bubbly:8,bubbles=0,boundary=neumann", "subdomain:2", 1).unwrap();
        assert_eq!((v.count, v.of[511]), (7, NONE));
        assert_eq!(v.remarks, ["A is singular: the last deflation vector is left out"]);
        let v = vectors("bubbly:8,bubbles=0", "subdomain:2", 1).unwrap();
        assert_eq!((v.count, v.of[511]), (8, 7));
    }

    #[test]
    fn unknowns_are_sorted_by_their_pieces() {
        let of: Vec<u32> = (0..400_000_u32)
            .map(|i| if i % 11 == 3 { NONE } else { i.wrapping_mul(2_654_435_761) >> 20 })
            .map(|p| if p == NONE { NONE } else { p % 7 })
            .collect();
        let v = Vectors { of, count: 8, remarks: Vec::new() };
        for threads in [Threads::One, Threads::Pool] {
            let (unknowns, start) = by_piece(threads, &v);
            assert_eq!((start.len(), start[0], start[7]), (9, 0, start[8]));
            for piece in 0..8 {
                let want = (0..v.of.len() as u32).filter(|&i| v.of[i as usize] == piece as u32);
                assert!(unknowns[start[piece]..start[piece + 1]].iter().copied().eq(want));
            }
        }
    }

    /// Regions by walks from row to row, in the order of their first rows.
    fn walked(a: &Csr, of_box: &[u32]) -> Vec<u32> {
        let size: Vec<f64> = (0..a.rows()).map(|i| a.get(i, i).unwrap().abs()).collect();
        let (mut of, mut count) = (vec![NONE; a.rows()], 0);
        let coupled = coupled(Threads::One, a, 0..a.rows());
        for start in 0..a.rows() {
            if of[start] != NONE || !coupled[start] {
                continue;
            }
            let mut left = vec![start];
            of[start] = count;
            while let Some(i) = left.pop() {
                for &j in a.row(i).0 {
                    let j = j as usize;
                    let ratio = size[i].max(size[j]) / size[i].min(size[j]);
                    let alike = ratio <= JUMP && of_box[i] == of_box[j];
                    if alike && coupled[j] && of[j] == NONE {
                        of[j] = count;
                        left.push(j);
                    }
                }
            }
            count += 1;
        }
        of
    }

    #[test]
    fn threads_find_the_regions_of_a_walk() {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        for pairs in [300, 3_000, 5_500] {
            let n = 6_000_usize;
            let mut rows = vec![std::collections::BTreeMap::new(); n];
            for (i, row) in rows.iter_mut().enumerate() {
                row.insert(i as u32, if rng.random_bool(0.8) { 1.0 } else { 100.0 });
            }
            for _ in 0..pairs {
                let [i, j] = [0, 1].map(|_| rng.random_range(0..n));
                if i != j {
                    rows[i].insert(j as u32, -0.5);
                    rows[j].insert(i as u32, -0.5);
                }
            }
            // rows of a boundary, which others may see, keep their diagonal alone
            for (i, row) in rows.iter_mut().enumerate().filter(|(i, _)| i % 10 == 3) {
                row.iter_mut().filter(|(j, _)| **j != i as u32).for_each(|(_, v)| *v = 0.0);
            }
            let made = Csr::by_rows(
                Threads::One,
                [n, n],
                || (),
                |(), i, to| {
                    rows[i].iter().for_each(|(&j, &v)| to.push(j, v));
                    Ok::<_, Error>(())
                },
            );
            let a = made.unwrap();
            let of_box: Vec<u32> = (0..n as u32).map(|i| i / 4_000).collect();
            let want = walked(&a, &of_box);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
            for _ in 0..5 {
                let (found, count) = pool.install(|| regions(Threads::Pool, &a, Some(&of_box)));
                assert_eq!(found, want, "{pairs}");
                let of_want = want.iter().filter(|&&s| s != NONE).max();
                assert_eq!(count, of_want.map_or(0, |&last| last as usize + 1));
            }
            assert_eq!(regions(Threads::One, &a, Some(&of_box)).0, want);
        }
    }

    #[test]
    fn too_many_vectors_are_refused() {
        let message = |spec, choice| vectors(spec, choice, 1).unwrap_err().to_string();
        assert_eq!(message("poisson3d:3", "subdomain:4"), "64 deflation vectors for 27 rows");
        assert_eq!(message("poisson3d:9x9x2", "subdomain:3"), "3 subdomains in z for 2 points");
    }

    #[test]
    fn only_rows_at_interfaces_see_the_pieces() {
        let p = problem("layered:4x4x8,layers=4,contrast=1e7");
        let v = Vectors::new(Threads::One, Choice::LevelSet, &p.matrix, p.grid).unwrap();
        let az = applied(Threads::One, &p.matrix, &v).unwrap();
        // in each layer of 2 cells both are at an interface, in the first one at the boundary
        assert_eq!((az.cols(), az.row(0).0.len()), (4, 1));
        let single =
            Vectors::new(Threads::One, Choice::Subdomain([1; 3]), &p.matrix, p.grid).unwrap();
        let az = applied(Threads::Pool, &p.matrix, &single).unwrap();
        // p = 0 at the top alone
        assert_eq!(az.nnz(), 16);
    }
}
