//! Interiors of subdomains and interfaces between them: an order of elimination in which subdomains depend on
//! few others (Hysom and Pothen 1999, 2001).

use serde::{Deserialize, Serialize};

use super::colours;
use crate::base::threads::Threads;
use crate::matrix::pattern::Pattern;

/// The order in which block rows are eliminated: interiors of all subdomains, then interfaces by colours of
/// the subdomains. Within a stage they keep their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elimination {
    /// First block row of each subdomain, and their end.
    starts: Vec<usize>,
    /// First block row of each subdomain that is at an interface; those behind it are, too.
    interfaces: Vec<usize>,
    /// Colour of each subdomain.
    colours: Vec<u32>,
}

/// Which of two coupled block rows of different subdomains is at an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
    /// Both.
    Both,
    /// The one of the subdomain with the lower number.
    Lower,
}

impl Elimination {
    /// Colours of block rows at interfaces, so that two subdomains of a colour are more than `reach` couplings
    /// apart: for ILU(k), whose fill goes over paths of k + 1, without fill between them at k + 1. `graph` is
    /// symmetric, in the order of the subdomains. Also returns the old block row at each place, for in each
    /// subdomain the interior moves before the interface.
    pub fn new(graph: &Pattern, starts: &[usize], of: Sides, reach: usize) -> (Self, Vec<u32>) {
        let mut subdomain = vec![0_u32; graph.rows()];
        for (s, w) in starts.windows(2).enumerate() {
            subdomain[w[0]..w[1]].fill(s as u32);
        }
        let outside = |row: usize| {
            let own = subdomain[row];
            let mut near = graph.row(row).iter().map(|&j| subdomain[j as usize]);
            match of {
                Sides::Both => near.any(|other| other != own),
                Sides::Lower => near.any(|other| other > own),
            }
        };
        let outside: Vec<bool> = (0..graph.rows()).map(outside).collect();
        let (mut order, mut interfaces) = (Vec::with_capacity(graph.rows()), Vec::new());
        let mut seen = vec![u32::MAX; graph.rows()];
        let (mut near_ptr, mut near) = (vec![0], Vec::new());
        for (s, w) in starts.windows(2).enumerate() {
            let rows = w[0] as u32..w[1] as u32;
            let (interface, interior): (Vec<u32>, Vec<u32>) =
                rows.partition(|&row| outside[row as usize]);
            order.extend(interior);
            interfaces.push(order.len());
            order.extend(&interface);
            let found = reached(graph, interface, reach, s as u32, &mut seen);
            let found = found.into_iter().filter(|&row| outside[row as usize]);
            let mut found: Vec<u32> = found.map(|row| subdomain[row as usize]).collect();
            found.sort_unstable();
            found.dedup();
            near.extend(found);
            near_ptr.push(near.len() as u32);
        }
        let colours = colours(Threads::One, &Pattern::new(near_ptr, near));
        (Self { starts: starts.to_vec(), interfaces, colours }, order)
    }

    /// Stage of a block row: 0 in an interior.
    pub fn stage(&self, row: usize) -> usize {
        let s = self.starts.partition_point(|&start| start <= row) - 1;
        if row < self.interfaces[s] { 0 } else { 1 + self.colours[s] as usize }
    }

    /// Stages: one, and one of each colour.
    pub fn stages(&self) -> usize {
        2 + self.colours.iter().max().map_or(0, |&c| c as usize)
    }

    /// The parts of a subdomain, its interior and its interface, each with its stage; empty ones, too.
    pub fn parts(&self, subdomain: usize) -> [(usize, std::ops::Range<usize>); 2] {
        let [start, end] = [self.starts[subdomain], self.starts[subdomain + 1]];
        let interface = self.interfaces[subdomain];
        [(0, start..interface), (1 + self.colours[subdomain] as usize, interface..end)]
    }

    /// All block rows in the order of their elimination.
    pub fn order(&self) -> Vec<u32> {
        let rows = self.starts.last().copied().unwrap_or(0);
        let mut order: Vec<u32> = (0..rows as u32).collect();
        order.sort_by_key(|&row| self.stage(row as usize));
        order
    }
}

/// Rows within `reach` couplings of `layer`. `seen` marks with `mark` what this call has visited.
fn reached(
    graph: &Pattern,
    mut layer: Vec<u32>,
    reach: usize,
    mark: u32,
    seen: &mut [u32],
) -> Vec<u32> {
    let mut found = Vec::new();
    for _ in 0..reach {
        let mut next = Vec::new();
        for &j in layer.iter().flat_map(|&row| graph.row(row as usize)) {
            if std::mem::replace(&mut seen[j as usize], mark) != mark {
                next.push(j);
            }
        }
        found.extend(&next);
        layer = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::{Partition, ReadAs};
    use crate::matrix::pattern::block_pattern;
    use crate::problem::load;
    use crate::symbolic::partition::divide;

    #[test]
    fn two_halves_of_a_line_have_one_row_each_at_the_interface() {
        let a = load("poisson3d:6x1x1", ReadAs::Expanded).unwrap().matrix;
        let (found, order) = Elimination::new(&block_pattern(&a), &[0, 3, 6], Sides::Both, 1);
        assert_eq!(order, [0, 1, 2, 4, 5, 3]);
        let stages: Vec<usize> = (0..6).map(|row| found.stage(row)).collect();
        assert_eq!((stages, found.stages()), (vec![0, 0, 1, 0, 0, 2], 3));
        assert_eq!(found.order(), [0, 1, 3, 4, 2, 5]);
        assert_eq!(found.parts(1), [(0, 3..5), (2, 5..6)]);
        let (found, order) = Elimination::new(&block_pattern(&a), &[0, 3, 6], Sides::Lower, 1);
        let stages: Vec<usize> = (0..6).map(|row| found.stage(row)).collect();
        assert_eq!((order, stages), ((0..6).collect(), vec![0, 0, 1, 0, 0, 0]));
        assert_eq!(found.parts(1), [(0, 3..6), (1, 6..6)]);
    }

    #[test]
    fn farther_couplings_need_more_colours() {
        let problem = load("poisson3d:12", ReadAs::Expanded).unwrap();
        let divided = divide(&problem.matrix, Partition::Boxes, problem.grid, 27, false).unwrap();
        let a = problem.matrix.permuted(divided.order.as_ref().unwrap());
        for (reach, stages) in [(1, 3), (2, 5), (3, 9)] {
            let (found, order) =
                Elimination::new(&block_pattern(&a), &divided.starts, Sides::Both, reach);
            assert_eq!(found.stages(), stages, "reach {reach}");
            // the box in the middle has an interior of 2 x 2 x 2
            assert_eq!(found.parts(13)[0].1.len(), 8);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..1728));
        }
    }
}
