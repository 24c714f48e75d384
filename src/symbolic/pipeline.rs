//! The given order of elimination in stages, so that subdomains work one behind the other: on slices of a grid the
//! sweep of Koch, Baker and Alcouffe (1992), found from the pattern.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Schedule;
use super::interfaces::{Elimination, efficiency};
use crate::base::memory;
use crate::matrix::pattern::Pattern;

/// Entries of a graph that take as long as a message.
const MESSAGE: f64 = 8192.0;

/// Fewest and most stages in which a subdomain of several does its work, when it waits for nobody.
const PARTS: [f64; 2] = [8.0, 64.0];

/// Share of the efficiency of a chain without gaps from which on no other order of the walk is tried.
const ENOUGH: f64 = 0.95;

impl Elimination {
    /// Stages of the given order. `graph` is symmetric, the pattern of the factors and of their transpose, and
    /// `subdomain` the number of each of its rows. Also returns the given row at each place. The backward solve
    /// takes the stages in the opposite order.
    ///
    /// Stage by stage each subdomain takes its share of rows that depend on other subdomains by earlier stages alone:
    /// first those that come first in a depth-first walk to the rows with most subdomains before them. The walk goes
    /// to these in the given order, in which stages have whole lines of a grid, or by levels, which also serves
    /// subdomains that end within a plane.
    pub fn natural(graph: &Pattern, subdomain: &[u32]) -> (Self, Vec<u32>) {
        let (stage, efficiency) = staged(graph, subdomain);
        let count = stage.iter().max().map_or(0, |&last| last + 1);
        let parts: Vec<u32> =
            subdomain.iter().zip(&stage).map(|(&s, &stage)| s * count + stage).collect();
        // stable: within a part rows ascend
        let Schedule { rows, level_ptr: first } = Schedule::from_levels(&parts);
        let first: Vec<usize> = first.into_iter().map(|at| at as usize).collect();
        let stages: Vec<u32> = (0..first.len() as u32 - 1).map(|part| part % count).collect();
        let mut made = Self::of_parts(&first, &stages, 0, efficiency);
        made.given.clone_from(&rows);
        (made, rows)
    }
}

/// In how many parts a subdomain does `work`, in entries, where `behind` others wait for it one behind the other:
/// (P + D) (work / P + message) is least.
pub(super) fn parts_of(behind: f64, work: f64) -> f64 {
    (behind * work / MESSAGE).sqrt().clamp(PARTS[0], PARTS[1])
}

/// Of each row the most changes of the subdomain on a path of dependencies that ends there, and its level.
fn depths(graph: &Pattern, subdomain: &[u32]) -> Vec<[u32; 2]> {
    let mut depth = memory::zeroed::<[u32; 2]>(graph.rows());
    for i in 0..graph.rows() {
        let (mut crossed, mut level) = (0, 0);
        for j in graph.row(i).iter().map(|&j| j as usize).take_while(|&j| j < i) {
            let changes = u32::from(subdomain[j] != subdomain[i]);
            (crossed, level) = (crossed.max(depth[j][0] + changes), level.max(depth[j][1] + 1));
        }
        depth[i] = [crossed, level];
    }
    depth
}

/// Rows in the order in which a depth-first walk from each of `targets` along dependencies leaves them: each behind
/// all that it depends on, as few as possible before the first target, then before the next.
fn depth_first(graph: &Pattern, targets: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut left = memory::with_capacity(graph.rows());
    let mut next: Vec<u32> = graph.row_ptr[..graph.rows()].to_vec();
    let (mut seen, mut path) = (vec![false; graph.rows()], Vec::new());
    for target in targets {
        if !std::mem::replace(&mut seen[target as usize], true) {
            path.push(target);
        }
        while let Some(&row) = path.last() {
            let at = next[row as usize];
            match graph.col_ind[..graph.row_ptr[row as usize + 1] as usize].get(at as usize) {
                Some(&before) if before < row => {
                    next[row as usize] += 1;
                    if !std::mem::replace(&mut seen[before as usize], true) {
                        path.push(before);
                    }
                }
                _ => left.extend(path.pop()),
            }
        }
    }
    left
}

/// What a subdomain may take.
#[derive(Clone, Default)]
struct Ready {
    /// Places in the order of preference, now and from the next stage on.
    now: BinaryHeap<Reverse<u32>>,
    next: Vec<Reverse<u32>>,
}

/// Stage of each row, and the [efficiency] of these.
fn staged(graph: &Pattern, subdomain: &[u32]) -> (Vec<u32>, f64) {
    let count = subdomain.iter().max().map_or(0, |&last| last as usize + 1);
    let depth = depths(graph, subdomain);
    let most = depth.iter().map(|d| d[0]).max().map_or(0.0, f64::from);
    let work = graph.entries() as f64 / count.max(1) as f64;
    let parts = parts_of(most, work);
    let share = if most > 0.0 { (work / parts) as usize } else { usize::MAX };
    let walk = |level: fn([u32; 2]) -> u32| {
        // of the last subdomains first what comes first
        let by_level =
            Schedule::from_levels(&depth.iter().map(|&of| level(of)).collect::<Vec<_>>());
        let rows = by_level.rows;
        let crossed: Vec<u32> =
            rows.iter().map(|&row| most as u32 - depth[row as usize][0]).collect();
        let targets = Schedule::from_levels(&crossed).rows;
        let preferred = depth_first(graph, targets.into_iter().map(|at| rows[at as usize]));
        let stage = dealt(graph, (subdomain, count), &preferred, share.max(1));
        let efficiency = efficiency(graph, subdomain, &stage);
        (stage, efficiency)
    };
    let given = walk(|_| 0);
    if given.1 >= ENOUGH * parts / (parts + most) {
        return given;
    }
    let by_levels = walk(|[_, level]| level);
    if by_levels.1 > given.1 { by_levels } else { given }
}

/// Stage of each row where the subdomains take their shares of entries, first what comes first in `preferred`.
fn dealt(
    graph: &Pattern,
    (subdomain, count): (&[u32], usize),
    preferred: &[u32],
    share: usize,
) -> Vec<u32> {
    let n = graph.rows();
    let mut place = memory::zeroed::<u32>(n);
    (0..).zip(preferred).for_each(|(at, &row)| place[row as usize] = at);
    let mut lacking: Vec<u32> = (0..n)
        .map(|i| graph.row(i).iter().take_while(|&&j| (j as usize) < i).count() as u32)
        .collect();
    let mut ready = vec![Ready::default(); count];
    for row in (0..n).filter(|&row| lacking[row] == 0) {
        ready[subdomain[row] as usize].now.push(Reverse(place[row]));
    }
    let (mut stage, mut earliest) = (memory::zeroed(n), memory::zeroed(n));
    // subdomains that have something to do
    let mut busy: Vec<usize> = (0..count).filter(|&s| !ready[s].now.is_empty()).collect();
    let mut t = 0;
    while !busy.is_empty() {
        let mut waiting = Vec::new();
        for s in busy {
            let mut taken = 0;
            while taken < share
                && let Some(Reverse(at)) = ready[s].now.pop()
            {
                let row = preferred[at as usize] as usize;
                stage[row] = t;
                taken += graph.row(row).len();
                for j in graph.row(row).iter().map(|&j| j as usize).filter(|&j| j > row) {
                    let other = subdomain[j] as usize;
                    if other != s {
                        earliest[j] = t + 1;
                    }
                    lacking[j] -= 1;
                    if lacking[j] == 0 {
                        let (at, Ready { now, next }) = (Reverse(place[j]), &mut ready[other]);
                        if earliest[j] > t {
                            next.push(at);
                            waiting.push(other);
                        } else {
                            now.push(at);
                        }
                    }
                }
            }
            if !ready[s].now.is_empty() {
                waiting.push(s);
            }
        }
        waiting.sort_unstable();
        waiting.dedup();
        for &s in &waiting {
            let Ready { now, next } = &mut ready[s];
            now.extend(next.drain(..));
        }
        busy = waiting;
        t += 1;
    }
    stage
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::{LevelRule, Partition, ReadAs};
    use crate::base::threads::Threads;
    use crate::problem::load;
    use crate::symbolic::partition::divide;

    /// The stages of a grid, with the stage of each row in the given order.
    fn of_grid(spec: &str, how: Partition, count: usize, k: usize) -> (Elimination, Vec<usize>) {
        let problem = load(spec, ReadAs::Expanded).unwrap();
        let a = &problem.matrix;
        let mut divided = divide(a, how, problem.grid, count, false).unwrap();
        let found = divided.pipeline(Threads::One, a, k, usize::MAX).unwrap();
        let order = divided.order.unwrap();
        assert_eq!(found.given, order);
        let mut stage = vec![0; a.rows()];
        order.iter().enumerate().for_each(|(at, &row)| stage[row as usize] = found.stage(at));
        (found, stage)
    }

    #[test]
    fn slices_of_a_grid_are_swept_in_blocks_of_lines() {
        // 16 x 16 points in each of 32 planes, some 8 in a slice: eight parts with two lines of all its planes
        let (found, stage) = of_grid("poisson3d:16x16x32", Partition::Rows, 4, 0);
        assert_eq!(found.stages(), 8 + 3 + 1);
        assert!(found.efficiency > 0.7, "{}", found.efficiency);
        // the first lines of all planes of the first slice come before its second half
        assert!((0..7).all(|z| stage[z * 256] == 0 && stage[z * 256 + 255] > 5));
        assert_eq!([9, 17, 25].map(|z| stage[z * 256]), [1, 2, 3]);
    }

    #[test]
    fn a_subdomain_depends_on_others_by_earlier_stages() {
        for (how, count, k) in [
            (Partition::Boxes, 8, 0),
            (Partition::Boxes, 8, 1),
            (Partition::Boxes, 4, 2),
            (Partition::Rows, 5, 3),
            (Partition::Rows, 1, 2),
        ] {
            let spec = "poisson3d:8x9x10";
            let problem = load(spec, ReadAs::Expanded).unwrap();
            let (found, stage) = of_grid(spec, how, count, k);
            let divided = divide(&problem.matrix, how, problem.grid, count, false).unwrap();
            let mut subdomain = vec![0; stage.len()];
            for (s, w) in divided.starts.windows(2).enumerate() {
                let of = |at: usize| divided.order.as_ref().map_or(at, |order| order[at] as usize);
                (w[0]..w[1]).for_each(|at| subdomain[of(at)] = s);
            }
            let point = crate::matrix::pattern::block_pattern(&problem.matrix);
            let factors = super::super::iluk(&point, k, LevelRule::Min, usize::MAX).unwrap();
            for (i, j) in (0..stage.len())
                .flat_map(|i| factors.lower.row(i).iter().map(move |&j| (i, j as usize)))
            {
                let waits = usize::from(subdomain[i] != subdomain[j]);
                assert!(stage[j] + waits <= stage[i], "{how:?} {count} {k}: {i} {j}");
            }
            assert_eq!(found.stages() == 1, count == 1);
            assert!(found.efficiency <= 1.0 && found.efficiency > 0.2, "{}", found.efficiency);
        }
    }
}
