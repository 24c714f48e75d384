//! Interfaces last, found by ranks each of which has its own rows alone: what
//! [`Elimination::interfaces`] finds of the whole matrix. All calls are collective.

use std::ops::Range;

use crate::base::threads::Threads;
use crate::compute::distributed::Layout;
use crate::compute::distributed::communicator::Communicator;
use crate::compute::distributed::halo::{ask, ask_each};
use crate::compute::distributed::moves::{PIECE, all_of, values};
use crate::compute::distributed::part::Part;
use crate::matrix::pattern::{Pattern, block_pattern_on};
use crate::symbolic::interfaces::{Elimination, FillLevels, Sides, Work, take_whole};
use crate::symbolic::{colours, mirrors, symmetrised};

/// Interiors of all subdomains, then interfaces by colours of the subdomains, farther apart than fill goes
/// ([`Elimination::interfaces`]). `part` has the rows of a rank in the order of the layout. Also returns the block rows
/// of this rank, counted from its first, in their new order.
pub(crate) fn interfaces(
    threads: Threads,
    communicator: &dyn Communicator,
    part: &Part,
    layout: &Layout,
    (of, fill): (Sides, FillLevels),
) -> (Elimination, Vec<u32>) {
    let point = block_pattern_on(threads, part.matrix());
    let mine = part.places();
    let has_diagonal = |i: usize| point.row(i).binary_search(&(i as u32)).is_ok();
    // no other row is known, and none of these lacks a coupling that another one has
    let whole = part.entries() == part.matrix().nnz()
        && mirrors(threads, &point, mine.clone())
        && threads.all(mine.len(), LEAST, |i| has_diagonal(mine.start + i));
    let mirrored = (!whole).then(|| symmetrised(threads, &point));
    let known = mirrored.as_ref().unwrap_or(&point);
    let graph = Graph::new(communicator, part, layout, (&point, known));
    let mut outside = graph.outside(threads, of);
    let near = all_of(communicator, &graph.near(communicator, &outside, fill.reach()));
    let mut near: Vec<[u32; 2]> =
        near.chunks_exact(2).map(|pair| [pair[0] as u32, pair[1] as u32]).collect();
    near.sort_unstable();
    near.dedup();
    let ends = (0..=layout.count()).map(|s| near.partition_point(|pair| (pair[0] as usize) < s));
    let row_ptr: Vec<u32> = ends.map(|end| end as u32).collect();
    let columns: Vec<u32> = near.into_iter().map(|pair| pair[1]).collect();
    let colours = colours(Threads::One, &Pattern::new(row_ptr, columns));
    let (mut order, mut counts) = (Vec::with_capacity(outside.len()), Vec::new());
    for (s, rows) in graph.subdomains() {
        let coupled = |row: usize| graph.reaches(rows.start + row, (s, &rows), Sides::Both);
        take_whole((colours[s], fill), &mut outside[rows.clone()], coupled);
        let (interface, interior): (Vec<u32>, Vec<u32>) =
            rows.map(|row| row as u32).partition(|&row| outside[row as usize]);
        counts.push(interior.len() as f64);
        order.extend(interior);
        order.extend(interface);
    }
    let interiors = all_of(communicator, &counts);
    let efficiency = graph.efficiency(communicator, &outside, &colours);
    let starts = layout.starts();
    let mut first: Vec<usize> = (starts.iter().zip(interiors))
        .flat_map(|(&start, interior)| [start as usize, start as usize + interior as usize])
        .collect();
    first.push(starts[layout.count()] as usize);
    let stages: Vec<u32> = colours.iter().flat_map(|colour| [0, 1 + colour]).collect();
    (Elimination::of_parts(&first, &stages, fill.more, efficiency), order)
}

/// Rows that a thread looks at.
const LEAST: usize = 4096;

/// The symmetric graph of a rank's rows.
struct Graph<'a> {
    part: &'a Part,
    layout: &'a Layout,
    rank: usize,
    /// Couplings by places of the part.
    known: &'a Pattern<'a>,
    /// Rows, counted from the first, and those of others that are coupled with them there alone; ascending.
    more: Vec<(u32, u64)>,
}

impl<'a> Graph<'a> {
    /// `point` is the pattern of the part, `known` the same with mirrored entries.
    fn new(
        communicator: &dyn Communicator,
        part: &'a Part,
        layout: &'a Layout,
        (point, known): (&Pattern, &'a Pattern<'a>),
    ) -> Self {
        let (rank, size) = (communicator.rank(), communicator.size());
        let (starts, mine) = (layout.rank_starts(), part.places());
        let owner = |row: u64| starts.partition_point(|&start| start <= row) - 1;
        let (mut left, mut more) = (mine.clone(), Vec::new());
        loop {
            let (mut out, mut filled) = (vec![Vec::new(); size], 0);
            while filled < PIECE / 8
                && let Some(at) = left.next()
            {
                let row = part.number(at) as f64;
                for place in point.row(at).iter().map(|&place| place as usize) {
                    if !mine.contains(&place) {
                        let column = part.number(place);
                        out[owner(column)].extend([column as f64, row]);
                        filled += 2;
                    }
                }
            }
            let pairs = ask_each(communicator, &out).numbers;
            for pair in pairs.chunks_exact(2) {
                let [row, other] = [pair[0] as u64, pair[1] as u64];
                let at = (row - part.own().start) as usize;
                let of_row = known.row(mine.start + at);
                let found =
                    part.place(other).is_some_and(|j| of_row.binary_search(&(j as u32)).is_ok());
                if !found {
                    more.push((at as u32, other));
                }
            }
            if !communicator.any(!left.is_empty()) {
                break;
            }
        }
        more.sort_unstable();
        Self { part, layout, rank, known, more }
    }

    /// Numbers of this rank's subdomains, each with its rows, counted from the first of the rank.
    fn subdomains(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let (starts, first) = (self.layout.starts(), self.part.own().start);
        let row = move |start: u64| (start - first) as usize;
        self.layout.subdomains(self.rank).map(move |s| (s, row(starts[s])..row(starts[s + 1])))
    }

    /// The subdomain of a row of any rank.
    fn subdomain(&self, row: u64) -> u32 {
        (self.layout.starts().partition_point(|&start| start <= row) - 1) as u32
    }

    /// Places of those that the part knows to be coupled with a row.
    fn places(&self, row: usize) -> &[u32] {
        self.known.row(self.part.places().start + row)
    }

    /// Where others are among `more`.
    fn more_of(&self, row: usize) -> Range<usize> {
        let at = |row: usize| self.more.partition_point(|&(of, _)| (of as usize) < row);
        if self.more.is_empty() { 0..0 } else { at(row)..at(row + 1) }
    }

    /// Numbers of all that are coupled with a row.
    fn coupled(&self, row: usize) -> impl Iterator<Item = u64> {
        let more = self.more[self.more_of(row)].iter().map(|&(_, other)| other);
        self.places(row).iter().map(|&place| self.part.number(place as usize)).chain(more)
    }

    /// Whether each row is at an interface.
    fn outside(&self, threads: Threads, of: Sides) -> Vec<bool> {
        let mut outside = Vec::with_capacity(self.part.places().len());
        for (s, rows) in self.subdomains() {
            let reaches = |i: usize| self.reaches(rows.start + i, (s, &rows), of);
            outside.extend(threads.map(rows.len(), LEAST, reaches));
        }
        outside
    }

    /// Whether a row of subdomain `s`, which has the rows `own`, is coupled with another one.
    #[inline]
    fn reaches(&self, row: usize, (s, own): (usize, &Range<usize>), of: Sides) -> bool {
        // places ascend as numbers do
        let first = self.part.places().start;
        let places = (first + own.start) as u32..(first + own.end) as u32;
        let numbers = self.layout.starts()[s]..self.layout.starts()[s + 1];
        let mut more = self.more[self.more_of(row)].iter();
        match of {
            Sides::Both => {
                self.places(row).iter().any(|place| !places.contains(place))
                    || more.any(|(_, other)| !numbers.contains(other))
            }
            Sides::Lower => {
                self.places(row).last().is_some_and(|&place| place >= places.end)
                    || more.any(|&(_, other)| other >= numbers.end)
            }
        }
    }

    /// Pairs of a subdomain and another one (or itself) at whose interface are rows of this rank within `reach`
    /// couplings of the interface of the first.
    fn near(&self, communicator: &dyn Communicator, outside: &[bool], reach: usize) -> Vec<f64> {
        let own = self.part.own();
        let starts = self.layout.rank_starts();
        // subdomain and row, ascending
        let of_rank = self.subdomains();
        let mut layer: Vec<(u32, u32)> = of_rank
            .flat_map(|(s, rows)| rows.map(move |row| (s as u32, row as u32)))
            .filter(|&(_, row)| outside[row as usize])
            .collect();
        let (mut before, mut found) = (Vec::new(), Vec::new());
        // what is reached from a subdomain has its mark
        let (mut seen, mut mark) = (vec![0_u32; outside.len()], 0);
        for _ in 0..reach {
            let mut next = Vec::new();
            let mut away: Vec<(u64, u32)> = Vec::new();
            for of_subdomain in layer.chunk_by(|a, b| a.0 == b.0) {
                mark += 1;
                for &(s, row) in of_subdomain {
                    for other in self.coupled(row as usize) {
                        if !own.contains(&other) {
                            away.push((other, s));
                            continue;
                        }
                        let at = (other - own.start) as usize;
                        if std::mem::replace(&mut seen[at], mark) != mark {
                            next.push((s, at as u32));
                        }
                    }
                }
            }
            away.sort_unstable();
            away.dedup();
            let at = |start: u64| 2 * away.partition_point(|&(row, _)| row < start);
            let counts: Vec<usize> = starts.windows(2).map(|w| at(w[1]) - at(w[0])).collect();
            let pairs = away.iter().flat_map(|&(row, s)| [row as f64, f64::from(s)]);
            let arrived = ask(communicator, &counts, pairs).numbers;
            let pair = |of: &[f64]| (of[1] as u32, (of[0] as u64 - own.start) as u32);
            next.extend(arrived.chunks_exact(2).map(pair));
            next.sort_unstable();
            next.dedup();
            // what is coupled with a layer is in it, before or behind it
            let known = |pair: &(u32, u32), of: &[(u32, u32)]| of.binary_search(pair).is_ok();
            next.retain(|pair| !known(pair, &layer) && !known(pair, &before));
            let reached = next.iter().filter(|&&(_, row)| outside[row as usize]);
            found.extend(reached.map(|&(s, row)| (s, self.subdomain(own.start + u64::from(row)))));
            found.sort_unstable();
            found.dedup();
            before = std::mem::replace(&mut layer, next);
        }
        found.into_iter().flat_map(|(s, other)| [f64::from(s), f64::from(other)]).collect()
    }

    /// See [`Elimination::efficiency`].
    fn efficiency(
        &self,
        communicator: &dyn Communicator,
        outside: &[bool],
        colours: &[u32],
    ) -> f64 {
        let flags: Vec<f64> = outside.iter().map(|&outside| f64::from(u8::from(outside))).collect();
        let (others, mine) = (self.part.others(), self.part.places());
        let wanted = others.iter().copied().chain(self.more.iter().map(|&(_, other)| other));
        let flags = values(communicator, self.layout.rank_starts(), &flags, wanted);
        let stage = |s: u32, outside: bool| if outside { 1 + colours[s as usize] } else { 0 };
        let mut work = Work::default();
        let mut entries = Vec::new();
        for (s, rows) in self.subdomains() {
            let mut of_stage = [0_usize; 2];
            let own = mine.start + rows.start..mine.start + rows.end;
            for row in rows {
                let (s, places, more) = (s as u32, self.places(row), self.more_of(row));
                let part = [stage(s, outside[row]), s];
                of_stage[usize::from(outside[row])] += places.len() + more.len();
                let mut wait = |number: u64, outside: bool| {
                    let other = self.subdomain(number);
                    if other != s && stage(other, outside) > part[0] {
                        work.send(part, other);
                    }
                };
                let away = |place: &usize| !own.contains(place);
                for place in places.iter().map(|&place| place as usize).filter(away) {
                    let number = self.part.number(place);
                    if mine.contains(&place) {
                        wait(number, outside[place - mine.start]);
                    } else {
                        let ghost = if place < mine.start { place } else { place - mine.len() };
                        wait(number, flags[ghost] > 0.0);
                    }
                }
                more.for_each(|at| wait(self.more[at].1, flags[others.len() + at] > 0.0));
            }
            for (outside, sum) in [false, true].into_iter().zip(of_stage) {
                entries.extend([f64::from(stage(s as u32, outside)), s as f64, sum as f64]);
            }
        }
        work.sent.sort_unstable();
        work.sent.dedup();
        let number = |v: f64| v as u32;
        let sent: Vec<f64> = work.sent.concat().into_iter().map(f64::from).collect();
        let [entries, sent] = [entries, sent].map(|own| all_of(communicator, &own));
        let entries = entries.chunks_exact(3);
        Work {
            entries: entries.map(|of| ([of[0], of[1]].map(number), of[2] as usize)).collect(),
            sent: sent.chunks_exact(3).map(|of| [of[0], of[1], of[2]].map(number)).collect(),
        }
        .efficiency(self.layout.count())
    }
}

#[cfg(test)]
#[path = "interfaces_tests.rs"]
mod tests;
