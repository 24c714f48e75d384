//! Approximate minimum degree: little fill (Amestoy, Davis and Duff, *An approximate minimum degree
//! ordering algorithm*, SIAM J. Matrix Anal. Appl. 17, 1996), by the crate `amd`.

use amd::Control;

use super::{Advised, Method, Task};
use crate::matrix::pattern::Pattern;

pub(super) const METHOD: Method = Method {
    name: "min-degree",
    summary: "approximate minimum degree: little fill",
    make: |task| Ok(order(task)),
    advised: Some(Advised { instead_of: None }),
    ..Method::PLAIN
};

fn order(task: &Task) -> Vec<u32> {
    min_degree(&task.graph())
}

/// The nodes of a symmetric pattern with all diagonals.
pub(super) fn min_degree(graph: &Pattern) -> Vec<u32> {
    let signed = |v: &[u32]| v.iter().map(|&v| i64::from(v)).collect::<Vec<_>>();
    let (starts, columns) = (signed(&graph.row_ptr), signed(&graph.col_ind));
    let found = amd::order(graph.rows() as i64, &starts, &columns, &Control::default());
    let (order, ..) = found.expect("columns increase and are below the number of rows");
    order.into_iter().map(|i| i as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::LevelRule;
    use crate::base::threads::Threads;
    use crate::matrix::pattern::permuted;
    use crate::symbolic::iluk;
    use crate::symbolic::ordering::tests::{graph, pattern};

    /// Entries of L of a complete factorisation.
    fn fill(p: &Pattern, order: &[u32]) -> usize {
        let p = permuted(Threads::One, p, order);
        iluk(&p, 120, LevelRule::Min, usize::MAX).unwrap().lower.entries()
    }

    #[test]
    fn trees_and_paths_fill_nothing() {
        let tree: Vec<(u32, u32)> = (1..200).map(|i| (i, (i * 7919) % i)).collect();
        let p = graph(200, &tree);
        assert_eq!(fill(&p, &min_degree(&p)), 199);
        let star: Vec<(u32, u32)> = (1..600).map(|i| (0, i)).collect();
        let p = graph(600, &star);
        let order = min_degree(&p);
        assert_eq!((fill(&p, &order), order[599]), (599, 0));
    }

    #[test]
    fn grids_fill_far_less_than_in_their_own_order() {
        // of a square grid with a band of 24: 24 * 24 * 24 entries in its own order
        let p = pattern("poisson3d:24x24x1");
        let natural: Vec<u32> = (0..576).collect();
        let (own, found) = (fill(&p, &natural), fill(&p, &min_degree(&p)));
        assert!(own > 13_000 && found < own / 2, "{found} of {own}");
    }

    #[test]
    fn a_clique_is_one_variable_after_the_first_pivot() {
        let all: Vec<(u32, u32)> = (0..8).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
        assert_eq!(min_degree(&graph(8, &all)).len(), 8);
    }
}
