//! Orders of elimination over subdomains, in stages. Interiors of subdomains before interfaces between them make an
//! order in which subdomains depend on few others (Hysom and Pothen 1999, 2001).

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::colours;
use crate::base::threads::Threads;
use crate::matrix::pattern::Pattern;

/// The order in which block rows are eliminated, and stages of it. Within a stage a subdomain depends on others by
/// earlier stages alone. Block rows are numbered subdomain by subdomain, in each stage by stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Elimination {
    /// First block row of each part, and the end of the last; a part is what a subdomain has in a stage.
    first: Vec<usize>,
    /// Stage of each part.
    stage: Vec<u32>,
    /// Number of each block row in the order of elimination, where that is not stage by stage. Not serialised: ranks
    /// know the numbers of their rows.
    #[serde(skip)]
    pub given: Vec<u32>,
    /// Levels of fill that rows and columns at interfaces have more than others.
    more: usize,
    /// Work of a subdomain divided by that of the longest chain of stages, in entries of the graph.
    pub efficiency: f64,
}

/// Which of two coupled block rows of different subdomains is at an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
    /// Both.
    Both,
    /// The one of the subdomain with the lower number.
    Lower,
}

/// Levels of fill of factors with interfaces last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillLevels {
    /// Highest level.
    pub k: usize,
    /// Levels more where a row or a column is at an interface.
    pub more: usize,
}

impl FillLevels {
    /// The same level everywhere.
    pub fn of(k: usize) -> Self {
        Self { k, more: 0 }
    }

    /// Highest level at an interface.
    pub fn highest(self) -> usize {
        self.k + self.more
    }

    /// Couplings of the longest path over which there is fill.
    pub fn reach(self) -> usize {
        self.highest() + 1
    }
}

impl Elimination {
    /// Parts that begin at the block rows `first`, which end with the last row's end; empty ones are left out.
    pub(crate) fn of_parts(first: &[usize], stage: &[u32], more: usize, efficiency: f64) -> Self {
        let mut made =
            Self { first: Vec::new(), stage: Vec::new(), given: Vec::new(), more, efficiency };
        for (rows, &stage) in first.windows(2).zip(stage) {
            if rows[0] < rows[1] {
                made.first.push(rows[0]);
                made.stage.push(stage);
            }
        }
        made.first.extend(first.last());
        made
    }

    /// Interiors of all subdomains, then interfaces by colours of the subdomains; within a stage block rows keep
    /// their order. Two subdomains of a colour are farther apart than fill goes, which for ILU(k) is over paths of
    /// k + 1 couplings. `graph` is symmetric, in the order of the
    /// subdomains. Also returns the old block row at each place, for in each subdomain the interior moves before
    /// the interface.
    ///
    /// A subdomain of the first colour waits for nobody: if only its interface is coupled with others, all of its rows
    /// are eliminated in the stage of that, in their order; on a grid they stay a box. With fill only where
    /// the interface comes last in that order: else the fill would be another, and iterations are more; nowhere where
    /// interfaces have more fill.
    pub fn interfaces(
        graph: &Pattern,
        starts: &[usize],
        of: Sides,
        fill: FillLevels,
    ) -> (Self, Vec<u32>) {
        let subdomain = subdomains(starts);
        let outside = |row: usize| {
            let own = subdomain[row];
            let mut near = graph.row(row).iter().map(|&j| subdomain[j as usize]);
            match of {
                Sides::Both => near.any(|other| other != own),
                Sides::Lower => near.any(|other| other > own),
            }
        };
        let mut outside: Vec<bool> = (0..graph.rows()).map(outside).collect();
        let mut seen = vec![u32::MAX; graph.rows()];
        let (mut near_ptr, mut near) = (vec![0], Vec::new());
        for (s, w) in starts.windows(2).enumerate() {
            let rows = w[0] as u32..w[1] as u32;
            let interface: Vec<u32> = rows.filter(|&row| outside[row as usize]).collect();
            let found = reached(graph, interface, fill.reach(), s as u32, &mut seen);
            let found = found.into_iter().filter(|&row| outside[row as usize]);
            let mut found: Vec<u32> = found.map(|row| subdomain[row as usize]).collect();
            found.sort_unstable();
            found.dedup();
            near.extend(found);
            near_ptr.push(near.len() as u32);
        }
        let colours = colours(Threads::One, &Pattern::new(near_ptr, near));
        let (mut order, mut first) = (Vec::with_capacity(graph.rows()), Vec::new());
        for (s, w) in starts.windows(2).enumerate() {
            let coupled =
                |row: usize| graph.row(row).iter().any(|&j| subdomain[j as usize] != s as u32);
            take_whole((colours[s], fill), &mut outside[w[0]..w[1]], |row| coupled(w[0] + row));
            let rows = w[0] as u32..w[1] as u32;
            let (interface, interior): (Vec<u32>, Vec<u32>) =
                rows.partition(|&row| outside[row as usize]);
            first.push(order.len());
            order.extend(interior);
            first.push(order.len());
            order.extend(interface);
        }
        first.push(order.len());
        let of_row = |(&s, &outside): (&u32, &bool)| {
            if outside { 1 + colours[s as usize] } else { 0 }
        };
        let stage: Vec<u32> = subdomain.iter().zip(&outside).map(of_row).collect();
        let efficiency = efficiency(graph, &subdomain, &stage);
        let of_parts: Vec<u32> = colours.iter().flat_map(|colour| [0, 1 + colour]).collect();
        (Self::of_parts(&first, &of_parts, fill.more, efficiency), order)
    }

    /// Levels of fill of ILU(k) in this order.
    pub fn fill(&self, k: usize) -> FillLevels {
        FillLevels { k, more: self.more }
    }

    /// Stage of a block row.
    pub fn stage(&self, row: usize) -> usize {
        self.stage[self.first.partition_point(|&first| first <= row) - 1] as usize
    }

    /// Stages.
    pub fn stages(&self) -> usize {
        self.stage.iter().max().map_or(0, |&stage| stage as usize + 1)
    }

    /// The parts among block rows of whole subdomains, each with its stage.
    pub fn parts(&self, rows: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
        let [from, to] = [rows.start, rows.end].map(|at| self.first.partition_point(|&f| f < at));
        (from..to).map(|at| (self.stage[at] as usize, self.first[at]..self.first[at + 1]))
    }

    /// Ascends in the order of elimination.
    pub fn key(&self, row: usize) -> (usize, usize) {
        match self.given.get(row) {
            Some(&given) => (0, given as usize),
            None => (self.stage(row), row),
        }
    }

    /// All block rows in the order of their elimination.
    pub fn order(&self) -> Vec<u32> {
        let rows = self.first.last().copied().unwrap_or(0);
        let mut order: Vec<u32> = (0..rows as u32).collect();
        order.sort_by_key(|&row| self.key(row as usize));
        order
    }
}

/// Puts all rows of a subdomain with its interface where [`Elimination::interfaces`] does; `coupled` tells which are
/// coupled with other subdomains.
pub(crate) fn take_whole(
    (colour, fill): (u32, FillLevels),
    outside: &mut [bool],
    coupled: impl Fn(usize) -> bool,
) {
    let mut rows = outside.iter().enumerate();
    if colour == 0
        && fill.more == 0
        && (fill.k == 0 || outside.is_sorted())
        && outside.contains(&true)
        && rows.all(|(row, &outside)| outside || !coupled(row))
    {
        outside.fill(true);
    }
}

/// Of each block row the number of its subdomain.
pub(super) fn subdomains(starts: &[usize]) -> Vec<u32> {
    let mut subdomain = vec![0; starts.last().copied().unwrap_or(0)];
    for (s, w) in starts.windows(2).enumerate() {
        subdomain[w[0]..w[1]].fill(s as u32);
    }
    subdomain
}

/// What subdomains do in each stage, and what they wait for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work {
    /// Entries of the graph in a stage of a subdomain, in parts.
    pub entries: Vec<([u32; 2], usize)>,
    /// Stages of subdomains for which another one waits: stage, subdomain, other.
    pub sent: Vec<[u32; 3]>,
}

impl Work {
    /// Adds a row of so many entries in a stage of a subdomain.
    pub(crate) fn add(&mut self, [stage, subdomain]: [u32; 2], entries: usize) {
        match self.entries.last_mut() {
            Some((part, sum)) if *part == [stage, subdomain] => *sum += entries,
            _ => self.entries.push(([stage, subdomain], entries)),
        }
    }

    /// Adds that `other` waits for what a subdomain does in a stage.
    pub(crate) fn send(&mut self, [stage, subdomain]: [u32; 2], other: u32) {
        if self.sent.last() != Some(&[stage, subdomain, other]) {
            self.sent.push([stage, subdomain, other]);
        }
    }

    /// See [`Elimination::efficiency`]: one of `count` subdomains begins a stage when it has done the one before, and
    /// has what the stage before that of another has for it.
    pub(crate) fn efficiency(self, count: usize) -> f64 {
        let Self { entries: mut work, mut sent } = self;
        let all: usize = work.iter().map(|(_, entries)| entries).sum();
        work.sort_unstable();
        sent.sort_unstable();
        let (mut done, mut sent) = (vec![0; count], sent.into_iter().peekable());
        let mut received = Vec::new();
        for stage in work.chunk_by(|a, b| a.0[0] == b.0[0]) {
            for ([_, s], entries) in stage {
                done[*s as usize] += entries;
            }
            while let Some([_, from, to]) = sent.next_if(|message| message[0] == stage[0].0[0]) {
                received.push((to as usize, done[from as usize]));
            }
            received.drain(..).for_each(|(to, when)| done[to] = when.max(done[to]));
        }
        let longest = done.into_iter().max().unwrap_or(0);
        all as f64 / (count * longest).max(1) as f64
    }
}

/// See [`Work::efficiency`].
pub(super) fn efficiency(graph: &Pattern, subdomain: &[u32], stage: &[u32]) -> f64 {
    let count = subdomain.iter().max().map_or(0, |&last| last as usize + 1);
    let mut work = Work::default();
    for (row, (&s, &t)) in subdomain.iter().zip(stage).enumerate() {
        work.add([t, s], graph.row(row).len());
        for &j in graph.row(row) {
            let (other, later) = (subdomain[j as usize], stage[j as usize]);
            if other != s && later > t {
                work.send([t, s], other);
            }
        }
    }
    work.efficiency(count)
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
        let (found, order) =
            Elimination::interfaces(&block_pattern(&a), &[0, 3, 6], Sides::Both, FillLevels::of(0));
        assert_eq!(order, [0, 1, 2, 4, 5, 3]);
        let stages: Vec<usize> = (0..6).map(|row| found.stage(row)).collect();
        // the first waits for nobody and stays whole
        assert_eq!((stages, found.stages()), (vec![1, 1, 1, 0, 0, 2], 3));
        assert_eq!(found.order(), [3, 4, 0, 1, 2, 5]);
        assert!(found.parts(3..6).eq([(0, 3..5), (2, 5..6)]));
        // of 16 entries the second interface waits for 8 and has 3
        assert_eq!(found.efficiency, 8.0 / 11.0);
        let (found, order) = Elimination::interfaces(
            &block_pattern(&a),
            &[0, 3, 6],
            Sides::Lower,
            FillLevels::of(0),
        );
        let stages: Vec<usize> = (0..6).map(|row| found.stage(row)).collect();
        assert_eq!((order, stages), ((0..6).collect(), vec![1, 1, 1, 0, 0, 0]));
        assert!(found.parts(3..6).eq([(0, 3..6)]));
    }

    #[test]
    fn farther_couplings_need_more_colours() {
        let problem = load("poisson3d:12", ReadAs::Expanded).unwrap();
        let divided = divide(&problem.matrix, Partition::Boxes, problem.grid, 27, false).unwrap();
        let a = problem.matrix.permuted(divided.order.as_ref().unwrap());
        for (k, stages) in [(0, 3), (1, 5), (2, 9)] {
            let (found, order) = Elimination::interfaces(
                &block_pattern(&a),
                &divided.starts,
                Sides::Both,
                FillLevels::of(k),
            );
            assert_eq!(found.stages(), stages, "k {k}");
            // the box in the middle has an interior of 2 x 2 x 2
            let rows = divided.starts[13]..divided.starts[14];
            assert_eq!(found.parts(rows).next().unwrap().1.len(), 8);
            // that at the corner waits for nobody
            let rows = divided.starts[0]..divided.starts[1];
            let first: Vec<_> = found.parts(rows).map(|(stage, of)| (stage, of.len())).collect();
            let expected = if k == 0 { vec![(1, 64)] } else { vec![(0, 27), (1, 37)] };
            assert_eq!(first, expected, "k {k}");
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..1728));
        }
    }
}
