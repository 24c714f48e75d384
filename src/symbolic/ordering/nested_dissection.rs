//! Nested dissection with separators from level structures: little fill and few levels (George and
//! Liu, *An automatic nested dissection algorithm for irregular finite element problems*, SIAM J.
//! Numer. Anal. 15, 1978).

use super::levels::{Levels, Search};
use super::min_degree::min_degree;
use super::{Advised, Method, Task};
use crate::matrix::pattern::Pattern;

/// Parts up to this size are not cut; minimum degree orders them.
const LEAF: usize = 100;
/// A separator leaves at least this share of a part on either side, where levels allow it.
const LEAST_SHARE: f64 = 0.35;
/// Levels below which a part is too compact to be cut.
const FEWEST_LEVELS: usize = 4;

pub(super) const METHOD: Method = Method {
    name: "nested-dissection",
    summary: "separators last: little fill, few levels",
    make: |task| Ok(order(task)),
    advised: Some(Advised { instead_of: None }),
    ..Method::PLAIN
};

fn order(task: &Task) -> Vec<u32> {
    nested_dissection(&task.graph())
}

/// A part still to be ordered, and the first of the places in the order that are its own.
struct Job {
    nodes: Vec<u32>,
    first: usize,
}

/// The nodes of a symmetric pattern.
pub(super) fn nested_dissection(graph: &Pattern) -> Vec<u32> {
    let n = graph.rows();
    let mut order = vec![0; n];
    let mut search = Search::new(graph);
    let mut place = vec![u32::MAX; n];
    let mut parts = 0;
    let mut jobs = vec![Job { nodes: (0..n as u32).collect(), first: 0 }];
    while let Some(Job { nodes, first }) = jobs.pop() {
        let Some(&start) = nodes.first() else { continue };
        parts += 1;
        for &i in &nodes {
            search.part[i as usize] = parts;
        }
        if nodes.len() <= LEAF {
            leaf(graph, &nodes, &mut place, &mut order[first..]);
            continue;
        }
        let levels = search.peripheral_levels(start);
        if levels.nodes.len() < nodes.len() {
            // a component and the rest, neither of which the other is coupled to
            parts += 1;
            for &i in &levels.nodes {
                search.part[i as usize] = parts;
            }
            let rest = nodes.into_iter().filter(|&i| search.part[i as usize] != parts).collect();
            jobs.push(Job { nodes: rest, first: first + levels.nodes.len() });
            jobs.push(Job { nodes: levels.nodes, first });
            continue;
        }
        if levels.count() < FEWEST_LEVELS {
            leaf(graph, &nodes, &mut place, &mut order[first..]);
            continue;
        }
        let [before, after, separator] = cut(&search, &levels);
        let last = first + before.len() + after.len();
        order[last..last + separator.len()].copy_from_slice(&separator);
        // no part is numbered 0 any more
        for &i in &separator {
            search.part[i as usize] = 0;
        }
        jobs.push(Job { first: first + before.len(), nodes: after });
        jobs.push(Job { nodes: before, first });
    }
    order
}

/// Cuts a connected part at the smallest of its middle levels: what is before, after, and between.
fn cut(search: &Search, levels: &Levels) -> [Vec<u32>; 3] {
    let all = levels.nodes.len() as f64;
    let middle = |d: &usize| {
        let (before, after) = (levels.start[*d] as f64, all - levels.start[d + 1] as f64);
        before >= LEAST_SHARE * all && after >= LEAST_SHARE * all
    };
    let half = levels.start.partition_point(|&start| 2 * start <= levels.nodes.len()) - 1;
    let inner = 1..levels.count() - 1;
    let at = inner
        .clone()
        .filter(middle)
        .min_by_key(|&d| levels.level(d).len())
        .unwrap_or_else(|| half.clamp(inner.start, inner.end - 1));
    // of the level only what touches the next one has to be in the separator
    let beyond = levels.start[at + 1]..levels.start[at + 2];
    let next: std::collections::HashSet<u32> = levels.nodes[beyond].iter().copied().collect();
    let touches = |i: &u32| search.graph.row(*i as usize).iter().any(|j| next.contains(j));
    let (separator, kept): (Vec<u32>, Vec<u32>) = levels.level(at).iter().partition(|i| touches(i));
    let mut before = levels.nodes[..levels.start[at]].to_vec();
    before.extend(kept);
    [before, levels.nodes[levels.start[at + 1]..].to_vec(), separator]
}

/// Orders a small part by minimum degree. `place` is `u32::MAX` everywhere before and after.
fn leaf(graph: &Pattern, nodes: &[u32], place: &mut [u32], order: &mut [u32]) {
    for (at, &i) in (0..).zip(nodes) {
        place[i as usize] = at;
    }
    let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
    for &i in nodes {
        let start = col_ind.len();
        let inside = graph.row(i as usize).iter().map(|&j| place[j as usize]);
        col_ind.extend(inside.filter(|&at| at != u32::MAX));
        col_ind[start..].sort_unstable();
        row_ptr.push(col_ind.len() as u32);
    }
    let part = Pattern::new(row_ptr, col_ind);
    for (to, at) in order.iter_mut().zip(min_degree(&part)) {
        *to = nodes[at as usize];
    }
    for &i in nodes {
        place[i as usize] = u32::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::LevelRule;
    use crate::base::threads::Threads;
    use crate::matrix::pattern::permuted;
    use crate::symbolic::ordering::tests::{graph, pattern};
    use crate::symbolic::{iluk, schedule};

    #[test]
    fn a_plane_fills_less_and_has_fewer_levels() {
        let p = pattern("poisson3d:40x40x1");
        let factors = |order: &[u32]| {
            let p = permuted(Threads::One, &p, order);
            iluk(&p, 120, LevelRule::Min, usize::MAX).unwrap()
        };
        let own = factors(&(0..1600).collect::<Vec<u32>>());
        let dissected = factors(&nested_dissection(&p));
        let entries = [&own, &dissected].map(|f| f.lower.entries());
        assert!(entries[1] < entries[0] / 2, "{entries:?}");
        let levels = [&own, &dissected].map(schedule::levels_lower);
        assert_eq!(levels[0], 1600);
        assert!(levels[1] < 400, "{levels:?}");
    }

    #[test]
    fn separators_part_what_is_before_and_after() {
        let path: Vec<(u32, u32)> = (0..300).map(|i| (i, i + 1)).collect();
        let p = graph(301, &path);
        let mut search = Search::new(&p);
        let levels = search.peripheral_levels(7);
        let [before, after, separator] = cut(&search, &levels);
        assert_eq!((separator.len(), before.len() + after.len()), (1, 300));
        assert!(before.len().min(after.len()) >= 105);
        let side = |i: &u32| before.contains(i);
        let across = |i: usize| p.row(i).iter().any(|j| side(j) != side(&(i as u32)));
        assert!(after.iter().all(|&i| p.row(i as usize).iter().all(|j| !side(j))));
        assert_eq!((0..301).filter(|&i| across(i)).count(), 2);
    }
}
