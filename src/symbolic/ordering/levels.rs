//! Rooted level structures and pseudo-peripheral nodes (George and Liu, *An implementation of a
//! pseudoperipheral node finder*, ACM Trans. Math. Softw. 5, 1979).

use crate::matrix::pattern::{Pattern, PatternView};

/// The nodes at distance 0, 1, 2, ... from a root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Levels {
    /// Nodes by distance, the root first.
    pub(super) nodes: Vec<u32>,
    /// Start of each distance in `nodes`; one more entry than distances.
    pub(super) start: Vec<usize>,
}

impl Levels {
    /// Number of levels: one more than the largest distance.
    pub(super) fn count(&self) -> usize {
        self.start.len() - 1
    }

    /// The nodes at distance `d`.
    pub(super) fn level(&self, d: usize) -> &[u32] {
        &self.nodes[self.start[d]..self.start[d + 1]]
    }
}

/// Searches a graph breadth first, within parts that it may be cut into.
pub(super) struct Search<'a> {
    pub(super) graph: PatternView<'a>,
    /// A search stays in the part of its root.
    pub(super) part: Vec<u32>,
    /// The search that met each node last.
    met: Vec<u32>,
    searches: u32,
}

impl<'a> Search<'a> {
    /// All of a symmetric pattern is one part.
    pub(super) fn new(graph: &'a Pattern) -> Self {
        let n = graph.rows();
        Self { graph: graph.view(), part: vec![0; n], met: vec![0; n], searches: 0 }
    }

    /// Neighbours of a node, itself among them where its diagonal is stored.
    pub(super) fn degree(&self, node: u32) -> usize {
        self.graph.range(node as usize).len()
    }

    /// What can be reached from `root`, level by level.
    pub(super) fn levels(&mut self, root: u32) -> Levels {
        if self.searches == u32::MAX {
            self.met.fill(0);
            self.searches = 0;
        }
        self.searches += 1;
        let (part, turn) = (self.part[root as usize], self.searches);
        let mut found = Levels { nodes: vec![root], start: vec![0] };
        self.met[root as usize] = turn;
        let mut from = 0;
        while from < found.nodes.len() {
            let end = found.nodes.len();
            found.start.push(end);
            for at in from..end {
                for &j in self.graph.row(found.nodes[at] as usize) {
                    let met = &mut self.met[j as usize];
                    if self.part[j as usize] == part && *met != turn {
                        *met = turn;
                        found.nodes.push(j);
                    }
                }
            }
            from = end;
        }
        found
    }

    /// The level structure of a node far from the others of its component, from `start` on: again
    /// and again from a node of least degree in the last level, as long as that adds levels.
    pub(super) fn peripheral_levels(&mut self, start: u32) -> Levels {
        let mut best = self.levels(start);
        loop {
            let last = best.level(best.count() - 1);
            let Some(&node) = last.iter().min_by_key(|&&j| (self.degree(j), j)) else {
                return best;
            };
            let next = self.levels(node);
            let longer = next.count() > best.count();
            best = next;
            if !longer {
                return best;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbolic::ordering::tests::graph;

    #[test]
    fn a_search_finds_the_ends_of_a_path_and_stays_in_its_part() {
        // 3 - 0 - 4 - 1 - 2 and 5 alone
        let p = graph(6, &[(3, 0), (0, 4), (4, 1), (1, 2)]);
        let mut search = Search::new(&p);
        let levels = search.peripheral_levels(4);
        assert!(levels.nodes == [3, 0, 4, 1, 2] || levels.nodes == [2, 1, 4, 0, 3]);
        assert_eq!(levels.start, [0, 1, 2, 3, 4, 5]);
        assert_eq!(search.levels(4).level(1), [0, 1]);
        assert_eq!(search.peripheral_levels(5).nodes, [5]);
        search.part[4] = 1;
        assert_eq!(search.peripheral_levels(0).nodes.len(), 2);
    }
}
