//! Multi-elimination: independent sets of rows one after the other, each in the graph that the
//! elimination of those before it leaves (Saad, Iterative Methods, 2nd edition, section 12.5).

use super::colour::fewer;
use super::{Colouring, FillPattern, Lattice, Schedule, Stencil, colours, independent_set};
use crate::base::threads::Threads;
use crate::matrix::pattern::rows::{Task, find};
use crate::matrix::pattern::{Pattern, TooLarge};

/// What becomes of the rows that no set holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Of their couplings among each other nothing is kept.
    Diagonal,
    /// All couplings that elimination leaves, in the order of their colours.
    Coloured(Colouring),
}

/// An order in which sets come first, and the pattern of factors in it.
#[derive(Debug)]
pub struct Eliminated {
    /// Rows set by set, those that are left colour by colour behind them; no set is empty.
    pub sets: Schedule,
    /// The exact factors of the sets, and those of the rest on the pattern of what is left.
    pub pattern: FillPattern,
    /// Rows of each independent set, of which later ones may be empty.
    pub sizes: Vec<usize>,
}

/// The rows that are left, what couples them, and which of them are eliminated next.
struct Stage<'a> {
    point: Pattern<'a>,
    rows: Vec<u32>,
    inside: Vec<bool>,
    /// Number of each row of the matrix among `rows`, or [`GONE`].
    number: Vec<u32>,
}

/// No number.
const GONE: u32 = u32::MAX;

impl<'a> Stage<'a> {
    /// Couplings are those of a symmetric pattern with all diagonals, of a matrix of `n` rows.
    fn new(point: Pattern<'a>, rows: Vec<u32>, n: usize) -> Self {
        let mut number = vec![GONE; n];
        (0..).zip(&rows).for_each(|(at, &i)| number[i as usize] = at);
        Self { point, rows, inside: Vec::new(), number }
    }

    /// Rows that are not `inside`.
    fn left(&self) -> Vec<u32> {
        (0..).zip(&self.inside).filter(|(_, inside)| !**inside).map(|(at, _)| at).collect()
    }

    /// Colours of the rows, which are some of those of `whole`: that of the matrix.
    fn colours(&self, threads: Threads, whole: &Pattern, how: Colouring) -> Vec<u32> {
        let of_box =
            |stencil: Stencil| Lattice::of_cells(threads, stencil.extents, &self.rows, &self.point);
        let lattice = match how {
            Colouring::Lattice => Stencil::of_lower(whole.view()).and_then(of_box),
            Colouring::FirstFit => None,
        };
        // first fit seldom finds as few as half a row's couplings
        let sure = |l: &Lattice| 2 * l.colours * self.rows.len() <= self.point.entries();
        if let Some(lattice) = lattice.as_ref().filter(|l| sure(l)) {
            return lattice.colours_of(threads, &self.rows);
        }
        let fitted = colours(threads, &self.point);
        fewer(fitted, lattice.as_ref(), |lattice| lattice.colours_of(threads, &self.rows))
    }

    /// What couples the rows `left` when those inside are gone: those are coupled that were or that had
    /// a row inside in common.
    fn reduced(
        &self,
        threads: Threads,
        left: &[u32],
        limit: usize,
    ) -> Result<Pattern<'static>, TooLarge> {
        let mut new = vec![GONE; self.rows.len()];
        (0..).zip(left).for_each(|(at, &i)| new[i as usize] = at);
        let view = self.point.view();
        let task = Task { rows: left.len(), ..Task::like(&self.point, threads, limit) };
        let found = find(
            task,
            || vec![false; left.len()],
            |seen, i, [out]: &mut [Vec<u32>; 1]| {
                let start = out.len();
                let mut add = |j: u32| {
                    let at = new[j as usize];
                    if at != GONE && !std::mem::replace(&mut seen[at as usize], true) {
                        out.push(at);
                    }
                };
                for &j in view.row(left[i] as usize) {
                    if self.inside[j as usize] {
                        view.row(j as usize).iter().for_each(|&l| add(l));
                    } else {
                        add(j);
                    }
                }
                let row = &mut out[start..];
                for &j in &*row {
                    seen[j as usize] = false;
                }
                row.sort_unstable();
            },
        );
        found.map(|[pattern]| pattern)
    }
}

/// Eliminates `levels` independent sets of the rows of `point`, which must be symmetric with all
/// diagonals. `limit` bounds the entries of the pattern and of those on the way.
///
/// # Errors
/// [`TooLarge`] when the limit is passed.
pub fn multi_elimination(
    threads: Threads,
    point: &Pattern,
    levels: usize,
    rest: Rest,
    limit: usize,
) -> Result<Eliminated, TooLarge> {
    let n = point.rows();
    let all: Vec<u32> = (0..n as u32).collect();
    let whole = Pattern::new(&*point.row_ptr, &*point.col_ind).in_blocks(point.block_size());
    let first = Stage { point: whole, number: all.clone(), rows: all, inside: Vec::new() };
    let mut stages = vec![first];
    let (mut order, mut level_ptr, mut sizes) = (Vec::with_capacity(n), vec![0], Vec::new());
    let end_set = |order: &[u32], level_ptr: &mut Vec<u32>| {
        if order.len() > level_ptr[level_ptr.len() - 1] as usize {
            level_ptr.push(order.len() as u32);
        }
    };
    for level in 1..=levels {
        let stage = stages.last_mut().expect("there is one");
        stage.inside = independent_set(threads, &stage.point);
        let before = order.len();
        let inside = stage.rows.iter().zip(&stage.inside).filter(|(_, inside)| **inside);
        order.extend(inside.map(|(i, _)| *i));
        sizes.push(order.len() - before);
        end_set(&order, &mut level_ptr);
        let left = stage.left();
        let rows: Vec<u32> = left.iter().map(|&i| stage.rows[i as usize]).collect();
        if level == levels && rest == Rest::Diagonal {
            order.extend(&rows);
            end_set(&order, &mut level_ptr);
        } else {
            let reduced = stage.reduced(threads, &left, limit)?;
            stages.push(Stage::new(reduced, rows, n));
        }
    }
    if let Rest::Coloured(how) = rest {
        let last = stages.last().expect("there is one");
        let colours = Schedule::from_levels_on(threads, &last.colours(threads, point, how));
        let before = order.len() as u32;
        order.extend(colours.rows.iter().map(|&i| last.rows[i as usize]));
        level_ptr.extend(colours.level_ptr[1..].iter().map(|end| before + end));
    }
    let pattern = pattern(threads, &order, &stages, limit)?;
    Ok(Eliminated { sets: Schedule { rows: order, level_ptr }, pattern, sizes })
}

/// Each row has its couplings to the sets before its own, and all of those that its own stage has.
fn pattern(
    threads: Threads,
    order: &[u32],
    stages: &[Stage],
    limit: usize,
) -> Result<FillPattern, TooLarge> {
    let place = crate::matrix::inverse_on(threads, order);
    let task = Task { rows: order.len(), ..Task::like(&stages[0].point, threads, limit) };
    let found = find(task, Vec::new, |row: &mut Vec<u32>, at, [lower, upper]| {
        row.clear();
        for stage in stages {
            let i = stage.number[order[at] as usize];
            if i == GONE {
                break;
            }
            // what is coloured in the end has no set
            let own = stage.inside.get(i as usize).is_none_or(|inside| *inside);
            let kept = |j: &&u32| own || stage.inside[**j as usize];
            let coupled = stage.point.row(i as usize).iter().filter(kept);
            row.extend(coupled.map(|&j| place[stage.rows[j as usize] as usize]));
        }
        row.sort_unstable();
        let (before, behind) = row.split_at(row.partition_point(|&j| (j as usize) < at));
        lower.extend_from_slice(before);
        upper.extend(behind.iter().skip_while(|&&j| j as usize == at));
    });
    let [lower, upper] = found?;
    Ok(FillPattern::new(lower, upper, Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::ReadAs;
    use crate::matrix::pattern::block_pattern;
    use crate::problem::load;

    #[test]
    fn the_pattern_is_that_of_dense_elimination() {
        let a = load("fem-p1:9x7", ReadAs::Expanded).unwrap().matrix;
        let (n, point) = (a.rows(), block_pattern(&a));
        let coloured = Rest::Coloured(Colouring::FirstFit);
        for (levels, rest) in
            [(1, Rest::Diagonal), (1, coloured), (3, Rest::Diagonal), (3, coloured)]
        {
            let found = multi_elimination(Threads::One, &point, levels, rest, usize::MAX).unwrap();
            let Eliminated { sets, pattern, sizes } = &found;
            // elimination of the sets, row by row, on a dense pattern in their order
            let mut dense: Vec<Vec<bool>> = (0..n)
                .map(|i| {
                    let row = point.row(sets.rows[i] as usize);
                    (0..n).map(|j| row.contains(&sets.rows[j])).collect()
                })
                .collect();
            let eliminated: usize = sizes.iter().sum();
            for p in 0..eliminated {
                for i in p + 1..n {
                    for j in p + 1..n {
                        dense[i][j] |= dense[i][p] && dense[p][j];
                    }
                }
            }
            for i in 0..n {
                for j in 0..n {
                    let kept = i < eliminated || j < eliminated || rest != Rest::Diagonal;
                    let want = i != j && dense[i][j] && kept;
                    let t = if j < i { &pattern.lower } else { &pattern.upper };
                    let there = t.row(i).binary_search(&(j as u32)).is_ok();
                    assert_eq!(there, want, "{levels}, {rest:?}: ({i}, {j})");
                }
            }
            for set in sets.level_ptr.windows(2) {
                let inside = set[0]..set[1];
                assert!(!inside.is_empty());
                assert!(
                    inside.clone().all(|i| !pattern
                        .lower
                        .row(i as usize)
                        .iter()
                        .any(|j| inside.contains(j)))
                );
            }
            let again = multi_elimination(Threads::Pool, &point, levels, rest, usize::MAX).unwrap();
            assert_eq!((&again.sets, &again.pattern), (sets, pattern));
        }
    }

    #[test]
    fn sets_may_end_before_their_number() {
        // nothing is coupled: the first set is everything
        let p = Pattern::new(vec![0, 1, 2, 3], vec![0, 1, 2]);
        let coloured = Rest::Coloured(Colouring::Lattice);
        let e = multi_elimination(Threads::One, &p, 2, coloured, 10).unwrap();
        assert_eq!(
            (e.sizes, e.sets.level_ptr, e.sets.rows),
            (vec![3, 0], vec![0, 3], vec![0, 1, 2])
        );
        let large = multi_elimination(Threads::One, &p, 1, Rest::Diagonal, 10);
        assert_eq!(large.unwrap().pattern.blocks(), 3);
    }
}
