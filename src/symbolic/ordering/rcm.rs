//! Reverse Cuthill-McKee: a small bandwidth (Cuthill and `McKee` 1969; reversed by George 1971), each
//! component from a pseudo-peripheral node.

use super::levels::Search;
use super::{Advised, Method, Task};
use crate::matrix::pattern::Pattern;

pub(super) const METHOD: Method = Method {
    name: "rcm",
    summary: "reverse Cuthill-McKee: small bandwidth",
    make: |task| Ok(order(task)),
    advised: Some(Advised { instead_of: None }),
    ..Method::PLAIN
};

fn order(task: &Task) -> Vec<u32> {
    rcm(&task.graph())
}

/// The nodes of a symmetric pattern; components keep the order of their first nodes.
pub(super) fn rcm(graph: &Pattern) -> Vec<u32> {
    let n = graph.rows();
    let mut search = Search::new(graph);
    let mut order: Vec<u32> = Vec::with_capacity(n);
    let mut numbered = vec![false; n];
    let mut next: Vec<u32> = Vec::new();
    for node in 0..n as u32 {
        if numbered[node as usize] {
            continue;
        }
        let root = search.peripheral_levels(node).nodes[0];
        let first = order.len();
        order.push(root);
        numbered[root as usize] = true;
        let mut at = first;
        while at < order.len() {
            let row = graph.row(order[at] as usize);
            next.clear();
            next.extend(row.iter().filter(|&&j| !numbered[j as usize]));
            next.sort_unstable_by_key(|&j| (search.degree(j), j));
            for &j in &next {
                numbered[j as usize] = true;
            }
            order.append(&mut next);
            at += 1;
        }
        order[first..].reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::threads::Threads;
    use crate::matrix::pattern::permuted;
    use crate::symbolic::ordering::tests::{bandwidth, graph, pattern};

    fn narrowed(p: &Pattern) -> usize {
        bandwidth(&permuted(Threads::One, p, &rcm(p)))
    }

    #[test]
    fn bandwidths_of_known_graphs() {
        // a path in any numbering, and a ring
        let path: Vec<(u32, u32)> = (0..100).map(|i| (i * 37 % 101, (i + 1) * 37 % 101)).collect();
        assert_eq!(narrowed(&graph(101, &path)), 1);
        let ring: Vec<(u32, u32)> = (0..101).map(|i| (i * 37 % 101, (i + 1) * 37 % 101)).collect();
        assert_eq!(narrowed(&graph(101, &ring)), 2);
        // a star has its hub beside half of its points at best; Cuthill-McKee begins at a point
        let star: Vec<(u32, u32)> = (1..9).map(|i| (0, i)).collect();
        assert_eq!(narrowed(&graph(9, &star)), 7);
        // a grid of m x n, m <= n: at best m; from a corner, diagonals of m and one more
        for grid in ["poisson3d:5x40x1", "poisson3d:40x5x1"] {
            assert!([5, 6].contains(&narrowed(&pattern(grid))), "{grid}");
        }
        // both components of two paths that alternate
        let two: Vec<(u32, u32)> = (0..48).map(|i| (i, i + 2)).collect();
        assert_eq!(narrowed(&graph(50, &two)), 1);
    }

    #[test]
    fn components_keep_their_order() {
        let p = graph(6, &[(0, 2), (2, 4), (1, 3), (3, 5)]);
        let order = rcm(&p);
        let mut first: Vec<u32> = order[..3].to_vec();
        first.sort_unstable();
        assert_eq!(first, [0, 2, 4]);
    }
}
