//! Two colours, where two are enough: as on five- and seven-point grids.

use super::levels::Search;
use super::{Advised, Method, Task, multicolour};
use crate::base::error::{Error, Result};
use crate::matrix::pattern::Pattern;
use crate::symbolic::by_set;

pub(super) const METHOD: Method = Method {
    name: "red-black",
    summary: "two colours, where two are enough: fewest levels on a seven-point grid",
    make: order,
    advised: Some(Advised { instead_of: Some(multicolour::METHOD.name) }),
    ..Method::PLAIN
};

fn order(task: &Task) -> Result<Vec<u32>> {
    let graph = task.graph();
    match two_colours(&graph) {
        Ok(colour) => Ok(by_set(&colour)),
        Err([i, j]) => Err(Error::input(format!(
            "ordering `red-black`: two colours are not enough, block rows {i} and {j} close a ring \
             of odd length"
        ))
        .hint("`multicolour` takes as many colours as are needed")),
    }
}

/// The colour of each node; two coupled ones (from 1) where there would have to be a third.
fn two_colours(graph: &Pattern) -> Result<Vec<u32>, [usize; 2]> {
    let n = graph.rows();
    let mut search = Search::new(graph);
    let mut colour = vec![u32::MAX; n];
    for node in 0..n {
        if colour[node] == u32::MAX {
            let levels = search.levels(node as u32);
            for d in 0..levels.count() {
                for &j in levels.level(d) {
                    colour[j as usize] = d as u32 % 2;
                }
            }
        }
    }
    for i in 0..n {
        let alike = |j: &&u32| **j as usize != i && colour[**j as usize] == colour[i];
        if let Some(&j) = graph.row(i).iter().find(alike) {
            return Err([i + 1, j as usize + 1]);
        }
    }
    Ok(colour)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbolic::ordering::tests::{graph, pattern};

    #[test]
    fn grids_have_two_colours_and_triangles_have_not() {
        let colour = two_colours(&pattern("poisson3d:4x3x5")).unwrap();
        for (i, c) in colour.into_iter().enumerate() {
            assert_eq!(c as usize, (i % 4 + i / 4 % 3 + i / 12) % 2);
        }
        assert_eq!(two_colours(&graph(4, &[(1, 2), (2, 3), (3, 1)])), Err([3, 4]));
        assert_eq!(two_colours(&graph(3, &[])), Ok(vec![0; 3]));
    }
}
