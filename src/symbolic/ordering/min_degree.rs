//! Approximate minimum degree: little fill (Amestoy, Davis and Duff, *An approximate minimum degree
//! ordering algorithm*, SIAM J. Matrix Anal. Appl. 17, 1996).
//!
//! The graph of what is left after each pivot is kept as a quotient graph: an eliminated pivot is an
//! element that stands for all couplings among its neighbours. Variables with the same neighbours
//! are merged, and the degree of a variable is a bound that never needs the union of its elements.

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

/// A row with more than this many times the square root of the order in neighbours comes last, unless
/// it has few.
const DENSE: f64 = 10.0;
/// Neighbours that are few.
const FEW: usize = 16;
/// No node.
const NONE: u32 = u32::MAX;

/// The nodes of a symmetric pattern.
pub(super) fn min_degree(graph: &Pattern) -> Vec<u32> {
    let mut quotient = Quotient::new(graph);
    while let Some(pivot) = quotient.least() {
        quotient.eliminate(pivot);
    }
    quotient.finish()
}

/// Variables by degree, as doubly linked lists.
struct Buckets {
    head: Vec<u32>,
    next: Vec<u32>,
    before: Vec<u32>,
    least: usize,
}

impl Buckets {
    fn new(n: usize) -> Self {
        let none = || vec![NONE; n];
        Self { head: none(), next: none(), before: none(), least: 0 }
    }

    fn insert(&mut self, i: u32, degree: usize) {
        let old = std::mem::replace(&mut self.head[degree], i);
        (self.next[i as usize], self.before[i as usize]) = (old, NONE);
        if old != NONE {
            self.before[old as usize] = i;
        }
        self.least = self.least.min(degree);
    }

    fn remove(&mut self, i: u32, degree: usize) {
        let (next, before) = (self.next[i as usize], self.before[i as usize]);
        if next != NONE {
            self.before[next as usize] = before;
        }
        match before {
            NONE => self.head[degree] = next,
            before => self.next[before as usize] = next,
        }
    }
}

/// The quotient graph. A node is a variable until it is a pivot, then an element until another takes
/// it over; a variable that was merged into another has the weight 0.
struct Quotient {
    /// Of a variable: neighbours that no element stands for.
    variables: Vec<Vec<u32>>,
    /// Of a variable: elements it is in.
    elements: Vec<Vec<u32>>,
    /// Of an element: its variables, merged ones perhaps among them.
    members: Vec<Vec<u32>>,
    /// Rows that a variable stands for.
    weight: Vec<u32>,
    /// Of an element: rows of its variables; 0 when another has taken it over.
    size: Vec<u32>,
    /// Bound of the rows beside its own that a variable is coupled to.
    degree: Vec<usize>,
    buckets: Buckets,
    /// Next row that the same variable stands for, and the last of them.
    link: Vec<u32>,
    tail: Vec<u32>,
    /// Rows of each element outside the pivot's, where `stamp` is the current turn.
    outside: Vec<u32>,
    stamp: Vec<u32>,
    /// Whether a variable is in the pivot's element.
    inside: Vec<bool>,
    turn: u32,
    left: usize,
    order: Vec<u32>,
    dense: Vec<u32>,
}

impl Quotient {
    fn new(graph: &Pattern) -> Self {
        let n = graph.rows();
        let dense_from = FEW.max((DENSE * (n as f64).sqrt()) as usize);
        let is_dense = |i: usize| graph.row(i).len() > dense_from;
        let dense: Vec<u32> = (0..n).filter(|&i| is_dense(i)).map(|i| i as u32).collect();
        let neighbours = |i: usize| -> Vec<u32> {
            if is_dense(i) {
                return Vec::new();
            }
            let others = graph.row(i).iter().copied();
            others.filter(|&j| j as usize != i && !is_dense(j as usize)).collect()
        };
        let variables: Vec<Vec<u32>> = (0..n).map(neighbours).collect();
        let degree: Vec<usize> = variables.iter().map(Vec::len).collect();
        let mut buckets = Buckets::new(n);
        let mut weight = vec![1; n];
        for &i in &dense {
            weight[i as usize] = 0;
        }
        // the last inserted is the first taken: rows of one degree go in their order
        for i in (0..n).rev().filter(|&i| weight[i] > 0) {
            buckets.insert(i as u32, degree[i]);
        }
        Self {
            variables,
            elements: vec![Vec::new(); n],
            members: vec![Vec::new(); n],
            weight,
            size: vec![0; n],
            degree,
            buckets,
            link: vec![NONE; n],
            tail: (0..n as u32).collect(),
            outside: vec![0; n],
            stamp: vec![0; n],
            inside: vec![false; n],
            turn: 0,
            left: n - dense.len(),
            order: Vec::with_capacity(n),
            dense,
        }
    }

    /// A variable of least degree, taken out of its list.
    fn least(&mut self) -> Option<u32> {
        let from = self.buckets.least;
        let degree = (from..self.buckets.head.len()).find(|&d| self.buckets.head[d] != NONE)?;
        let pivot = self.buckets.head[degree];
        self.buckets.least = degree;
        self.buckets.remove(pivot, degree);
        Some(pivot)
    }

    /// Turns a variable into an element.
    fn eliminate(&mut self, pivot: u32) {
        let p = pivot as usize;
        self.number(pivot);
        self.left -= self.weight[p] as usize;
        self.weight[p] = 0;
        let members = self.neighbours_of(p);
        let size: u32 = members.iter().map(|&i| self.weight[i as usize]).sum();
        self.measure_outside(&members);
        let mut kept = Vec::with_capacity(members.len());
        let mut alike: Vec<(u64, u32)> = Vec::with_capacity(members.len());
        let mut rows = size;
        for &i in &members {
            let (bound, key) = self.update(i as usize, p);
            if bound == 0 {
                // coupled to nothing outside the pivot's element: it may follow at once
                let weight = self.weight[i as usize];
                self.number(i);
                self.left -= weight as usize;
                rows -= weight;
                self.weight[i as usize] = 0;
                self.inside[i as usize] = false;
            } else {
                self.degree[i as usize] = bound;
                kept.push(i);
                alike.push((key, i));
            }
        }
        self.merge(&mut alike);
        kept.retain(|&i| self.weight[i as usize] > 0);
        for &i in &kept {
            let i_weight = self.weight[i as usize] as usize;
            // rows of the pivot's element that have followed it are gone
            let within = (rows as usize).saturating_sub(i_weight);
            let bound = self.degree[i as usize] + within;
            let most = self.left.saturating_sub(i_weight);
            self.degree[i as usize] = bound.min(most);
            self.buckets.insert(i, self.degree[i as usize]);
        }
        for &i in &members {
            self.inside[i as usize] = false;
        }
        self.size[p] = rows;
        self.members[p] = kept;
    }

    /// The live variables that a pivot is coupled to, taken out of their lists; its elements are
    /// taken over.
    fn neighbours_of(&mut self, p: usize) -> Vec<u32> {
        let mut found = std::mem::take(&mut self.variables[p]);
        for e in std::mem::take(&mut self.elements[p]) {
            self.size[e as usize] = 0;
            found.append(&mut self.members[e as usize]);
        }
        found.retain(|&i| {
            self.weight[i as usize] > 0 && !std::mem::replace(&mut self.inside[i as usize], true)
        });
        for &i in &found {
            self.buckets.remove(i, self.degree[i as usize]);
        }
        found
    }

    /// For each element that meets the pivot's: its rows outside.
    fn measure_outside(&mut self, members: &[u32]) {
        self.turn += 1;
        for &i in members {
            for &e in &self.elements[i as usize] {
                let e = e as usize;
                if self.size[e] == 0 {
                    continue;
                }
                if self.stamp[e] != self.turn {
                    (self.stamp[e], self.outside[e]) = (self.turn, self.size[e]);
                }
                self.outside[e] -= self.weight[i as usize];
            }
        }
    }

    /// Puts variable i of pivot p's element in order. Returns a bound of the rows outside that element
    /// to which it is coupled, and a key that equal neighbours share.
    fn update(&mut self, i: usize, p: usize) -> (usize, u64) {
        let mut key = p as u64;
        let mut bound = 0_usize;
        let (turn, stamp, outside, sizes) = (self.turn, &self.stamp, &self.outside, &mut self.size);
        self.elements[i].retain(|&e| {
            let e_index = e as usize;
            debug_assert!(sizes[e_index] == 0 || stamp[e_index] == turn);
            // all of it is inside the pivot's element, which stands for it from now on
            if sizes[e_index] == 0 || outside[e_index] == 0 {
                sizes[e_index] = 0;
                return false;
            }
            bound += outside[e_index] as usize;
            key = key.wrapping_add(u64::from(e));
            true
        });
        let (weight, inside) = (&self.weight, &self.inside);
        self.variables[i].retain(|&j| {
            let keep = weight[j as usize] > 0 && !inside[j as usize];
            if keep {
                bound += weight[j as usize] as usize;
                key = key.wrapping_add(u64::from(j));
            }
            keep
        });
        self.elements[i].push(p as u32);
        // what was there before the pivot is another bound
        (if bound == 0 { 0 } else { bound.min(self.degree[i].max(1)) }, key)
    }

    /// Merges variables with the same neighbours; they are found by their keys.
    fn merge(&mut self, alike: &mut [(u64, u32)]) {
        alike.sort_unstable();
        for group in alike.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1) {
            for &(_, i) in group {
                self.variables[i as usize].sort_unstable();
                self.elements[i as usize].sort_unstable();
            }
            for (at, &(_, i)) in group.iter().enumerate() {
                if self.weight[i as usize] == 0 {
                    continue;
                }
                for &(_, j) in &group[at + 1..] {
                    if self.weight[j as usize] > 0 && self.same_neighbours(i as usize, j as usize) {
                        self.absorb(i as usize, j as usize);
                    }
                }
            }
        }
    }

    fn same_neighbours(&self, i: usize, j: usize) -> bool {
        self.elements[i] == self.elements[j] && self.variables[i] == self.variables[j]
    }

    /// Variable i stands for the rows of j from now on.
    fn absorb(&mut self, i: usize, j: usize) {
        self.weight[i] += std::mem::take(&mut self.weight[j]);
        self.link[self.tail[i] as usize] = j as u32;
        self.tail[i] = self.tail[j];
        (self.variables[j], self.elements[j]) = (Vec::new(), Vec::new());
    }

    /// Numbers the rows that a variable stands for.
    fn number(&mut self, variable: u32) {
        let mut row = variable;
        while row != NONE {
            self.order.push(row);
            row = self.link[row as usize];
        }
    }

    fn finish(mut self) -> Vec<u32> {
        self.order.append(&mut self.dense);
        self.order
    }
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
