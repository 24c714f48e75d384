//! Tables as lists of columns: a head, and what stands under it in each row.

use crate::case::Case;
use crate::config::sweep::Axis;
use crate::report::cells::head;
use crate::report::{Head, Sheet};

type Cell<'a, T> = Box<dyn FnMut(&T) -> String + 'a>;

/// The columns of a table that has a row for each `T`.
pub(crate) struct Columns<'a, T>(Vec<(Head, Cell<'a, T>)>);

impl<'a, T> Columns<'a, T> {
    pub(crate) fn new() -> Self {
        Self(Vec::new())
    }

    /// A column for each of these settings of a row's case.
    pub(super) fn settings(axes: &[&'static Axis], case: impl Fn(&T) -> &Case + Copy + 'a) -> Self {
        let add = |all: Self, axis: &&'static Axis| {
            let text = axis.text;
            all.column(head(axis), move |row| text(case(row)))
        };
        axes.iter().fold(Self::new(), add)
    }

    pub(super) fn column(mut self, head: Head, cell: impl FnMut(&T) -> String + 'a) -> Self {
        self.0.push((head, Box::new(cell)));
        self
    }

    pub(crate) fn number(
        self,
        head: impl Into<String>,
        cell: impl FnMut(&T) -> String + 'a,
    ) -> Self {
        self.column(Head::number(head), cell)
    }

    pub(crate) fn words(
        self,
        head: impl Into<String>,
        cell: impl FnMut(&T) -> String + 'a,
    ) -> Self {
        self.column(Head::words(head), cell)
    }

    /// These columns and behind them `others`.
    pub(super) fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    pub(super) fn into_heads(self) -> impl Iterator<Item = Head> {
        self.0.into_iter().map(|(head, _)| head)
    }

    /// The table of `items`, without the columns that have no content.
    pub(super) fn sheet(self, items: impl IntoIterator<Item = T>) -> Sheet {
        let mut sheet = self.whole(items);
        sheet.drop_empty_columns();
        sheet
    }

    /// The table of `items` with all columns.
    pub(crate) fn whole(mut self, items: impl IntoIterator<Item = T>) -> Sheet {
        let mut row = |item| self.0.iter_mut().map(|(_, cell)| cell(&item)).collect();
        let rows = items.into_iter().map(&mut row).collect();
        Sheet { rows, columns: self.into_heads().collect(), ..Sheet::default() }
    }
}
