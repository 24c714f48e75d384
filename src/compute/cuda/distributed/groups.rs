//! Rows of a rank's factors in groups, each solved with at once: a triangular system of its own, and the couplings of
//! its rows with those of other groups and ranks.

use std::ops::Range;
use std::sync::Arc;

use crate::compute::distributed::StagePart;
use crate::matrix::pattern::Pattern;
use crate::symbolic::FillPattern;

/// Rows of a subdomain in one stage.
#[derive(Debug)]
pub(super) struct Group {
    /// The stage in which the solves take it.
    pub(super) stage: usize,
    /// Its block rows in the vectors of the rank.
    pub(super) own: Range<usize>,
    /// Number of each in the factors.
    pub(super) rows: Range<usize>,
    /// Couplings among them.
    pub(super) pattern: Arc<FillPattern>,
    /// Those of L and of U'.
    pub(super) split: [Split; 2],
}

/// Which entries of a triangle of the rank are among the rows of a group, and which lead out of it.
#[derive(Debug)]
pub(super) struct Split {
    /// Of each entry of the group's triangle its number in that of the rank.
    pub(super) entries: Vec<u32>,
    pub(super) couplings: Couplings,
}

/// Rows that are coupled with others, in the order of elimination.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Couplings {
    /// The rows, counted in the group.
    pub(super) rows: Vec<u32>,
    /// Start of each row's couplings; one more than rows.
    pub(super) row_ptr: Vec<u32>,
    /// Places of the others.
    pub(super) columns: Vec<u32>,
    /// Entries of the triangle of the rank.
    pub(super) entries: Vec<u32>,
}

impl Couplings {
    /// The same couplings of all of `count` rows.
    pub(super) fn of_all(&self, count: usize) -> Self {
        let mut row_ptr = vec![0; count + 1];
        for (at, &row) in self.rows.iter().enumerate() {
            row_ptr[row as usize + 1] = self.row_ptr[at + 1] - self.row_ptr[at];
        }
        for i in 0..count {
            row_ptr[i + 1] += row_ptr[i];
        }
        let (columns, entries) = (self.columns.clone(), self.entries.clone());
        Self { rows: (0..count as u32).collect(), row_ptr, columns, entries }
    }
}

/// All rows of the rank, and where the values of rows are: own ones as in the vectors of the rank, behind them those of
/// other ranks.
#[derive(Debug)]
pub(super) struct Groups {
    pub(super) all: Vec<Group>,
    /// Place of each block row of the factors.
    pub(super) places: Vec<u32>,
    /// Own block rows.
    pub(super) own: usize,
}

impl Groups {
    /// The groups of factors on `pattern` whose rows of other ranks have no part.
    pub(super) fn new(pattern: &FillPattern, stages: &[Vec<StagePart>]) -> Self {
        let b = pattern.block_size();
        let own = |part: &StagePart| part.at / b..part.at / b + part.rows.len();
        let placed = |(stage, parts): (usize, &'_ Vec<StagePart>)| {
            parts.iter().map(|part| (stage, own(part), part.rows.clone())).collect::<Vec<_>>()
        };
        let mut parts: Vec<_> = stages.iter().enumerate().flat_map(placed).collect();
        parts.sort_by_key(|(_, own, _)| own.start);
        let own = parts.last().map_or(0, |(_, own, _)| own.end);
        let mut places = vec![u32::MAX; pattern.rows()];
        for (_, own, rows) in &parts {
            rows.clone().zip(own.clone()).for_each(|(row, place)| places[row] = place as u32);
        }
        let others = places.iter_mut().filter(|place| **place == u32::MAX);
        others.zip(own as u32..).for_each(|(place, number)| *place = number);
        let group = |(stage, own, rows): (usize, Range<usize>, Range<usize>)| {
            Group::new(stage, own, rows, pattern, &places)
        };
        let all = parts.into_iter().map(group).collect();
        Self { all, places, own }
    }

    /// No groups of factors all of whose rows are own ones, in their order.
    pub(super) fn none(pattern: &FillPattern) -> Self {
        let own = pattern.rows();
        Self { all: Vec::new(), places: (0..own as u32).collect(), own }
    }

    /// Numbers of the groups in each of so many stages.
    pub(super) fn of_stages(&self, stages: usize) -> Vec<Vec<usize>> {
        let mut of = vec![Vec::new(); stages];
        self.all.iter().enumerate().for_each(|(g, group)| of[group.stage].push(g));
        of
    }
}

impl Group {
    fn new(
        stage: usize,
        own: Range<usize>,
        rows: Range<usize>,
        pattern: &FillPattern,
        places: &[u32],
    ) -> Self {
        let places_of = own.start as u32..own.end as u32;
        let ((lower, of_lower), (upper, of_upper)) = rayon::join(
            || split(&pattern.lower, rows.clone(), places, &places_of),
            || split(&pattern.upper, rows.clone(), places, &places_of),
        );
        let pattern = Arc::new(FillPattern::new(lower, upper, Vec::new()));
        Self { stage, own, rows, pattern, split: [of_lower, of_upper] }
    }
}

/// Entries of a triangle in some rows, of which those at the places `own` are a triangle of their own.
fn split(
    triangle: &Pattern,
    rows: Range<usize>,
    places: &[u32],
    own: &Range<u32>,
) -> (Pattern<'static>, Split) {
    let view = triangle.view();
    let most = rows.clone().map(|row| view.range(row).len()).sum();
    let (mut row_ptr, mut col_ind) = (Vec::with_capacity(rows.len() + 1), Vec::with_capacity(most));
    let mut entries = Vec::with_capacity(most);
    let mut couplings = Couplings { row_ptr: vec![0], ..Couplings::default() };
    let mut unsorted: Vec<(u32, u32)> = Vec::new();
    row_ptr.push(0);
    for (i, row) in rows.enumerate() {
        let (first, coupled) = (col_ind.len(), couplings.columns.len());
        for (e, &j) in view.range(row).zip(view.row(row)) {
            let place = places[j as usize];
            if own.contains(&place) {
                col_ind.push(place - own.start);
                entries.push(e as u32);
            } else {
                couplings.columns.push(place);
                couplings.entries.push(e as u32);
            }
        }
        if !col_ind[first..].is_sorted() {
            unsorted.clear();
            unsorted.extend(col_ind[first..].iter().copied().zip(entries[first..].iter().copied()));
            unsorted.sort_unstable();
            for (at, &(column, entry)) in unsorted.iter().enumerate() {
                (col_ind[first + at], entries[first + at]) = (column, entry);
            }
        }
        row_ptr.push(col_ind.len() as u32);
        if couplings.columns.len() > coupled {
            couplings.rows.push(i as u32);
            couplings.row_ptr.push(couplings.columns.len() as u32);
        }
    }
    let pattern = Pattern::new(row_ptr, col_ind).in_blocks(triangle.block_size());
    (pattern, Split { entries, couplings })
}

#[cfg(test)]
#[path = "groups_tests.rs"]
mod tests;
