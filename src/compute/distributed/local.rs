//! What a device of a rank does beside the operations of one alone: sums by subdomain, and values for others.

use std::ops::Range;
use std::sync::Arc;

use super::communicator::{Communicator, Message};
use super::constants::Constants;
use crate::base::choices::FactorPrecision;
use crate::base::error::Result;
use crate::compute::{Backend, Breakdown, Bytes, FactorInfo, Trisolve};
use crate::matrix::Csr;
use crate::symbolic::FillPattern;

/// Rows of a matrix that have entries outside their subdomain, in compressed rows of unknowns; columns count in
/// the ghost values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coupling {
    /// Unknowns of this rank, ascending.
    pub rows: Vec<u32>,
    /// Start of each row's entries; one more than `rows`.
    pub row_ptr: Vec<u32>,
    /// Places among the ghost values, in the order of the global columns.
    pub columns: Vec<u32>,
    /// Values.
    pub values: Vec<f64>,
}

impl Coupling {
    /// Bytes held, all of which a product reads; it reads and writes y there, too.
    pub fn bytes(&self) -> usize {
        12 * self.columns.len() + 8 * self.rows.len()
    }
}

/// What a rank sends to others, and what they send to it, again and again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Unknowns whose values are sent, message by message.
    pub sent: Vec<u32>,
    /// The messages, at most one to each rank.
    pub to: Vec<Message>,
    /// Those that are received, at most one from each rank.
    pub from: Vec<Message>,
    /// Unknowns of this rank whose values stand behind those received.
    pub own: Vec<u32>,
}

impl Route {
    /// Numbers that are received.
    pub fn received(&self) -> usize {
        self.from.iter().map(|message| message.len).sum()
    }
}

/// Consecutive block rows of a subdomain that are eliminated in one stage: their numbers in the factors, and their
/// first unknown in the vectors of the rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagePart {
    /// The subdomain, counted in the rank.
    pub subdomain: usize,
    /// Rows of the factors.
    pub rows: Range<usize>,
    /// First unknown.
    pub at: usize,
}

/// How factors that are made stage by stage are solved with.
#[derive(Clone, Copy, Debug)]
pub struct StagedSolves {
    /// The algorithm, where the device has a choice.
    pub trisolve: Trisolve,
    /// Numbers in which factors are stored.
    pub precision: FactorPrecision,
    /// Whether there is one subdomain in all: then there is nobody to wait for.
    pub alone: bool,
}

/// The device of a rank. `starts` are the first unknowns of the rank's subdomains and their end; a sum over a
/// subdomain depends on its numbers alone, bit for bit.
pub trait Local: Backend {
    /// Numbers of unknowns, where the device reads them.
    type Places;
    /// Rows that are coupled with others, where the device reads them.
    type Coupled;
    /// Values on their way between vectors and messages.
    type Transfer;
    /// Sums over subdomains that the host does not have yet, one after the other.
    type Partials: Default;
    /// Vectors that are constant on pieces of the rank.
    type Constants;
    /// Factors that are made, and solved with, stage by stage.
    type StagedIlu: FactorInfo;

    /// Takes numbers of unknowns over.
    ///
    /// # Errors
    /// Without memory for them.
    fn places(&self, of: Vec<u32>) -> Result<Self::Places>;
    /// Takes coupled rows over.
    ///
    /// # Errors
    /// As above.
    fn coupled(&self, of: Coupling) -> Result<Self::Coupled>;
    /// Transfers on routes, which all ranks have in the same order; collective, also where it fails.
    ///
    /// # Errors
    /// As above.
    fn transfers(
        &self,
        communicator: &dyn Communicator,
        routes: Vec<Route>,
    ) -> Result<Vec<Self::Transfer>>;
    /// How values get from one device to another, where that is worth a word.
    fn transport(_of: &Self::Transfer) -> Option<&'static str> {
        None
    }
    /// Begins to send what others need of x; does not wait for the device.
    fn send(&self, of: &mut Self::Transfer, x: &Self::Vector);
    /// Ends the exchange that [`send`](Self::send) began; the ghost values: those received, then those of own
    /// unknowns.
    fn receive<'a>(&self, of: &'a mut Self::Transfer) -> &'a Self::Vector;

    /// Appends `x . y` over each subdomain.
    fn partial_dots(
        &self,
        x: &Self::Vector,
        y: &Self::Vector,
        starts: &[usize],
        out: &mut Self::Partials,
    );
    /// Appends `basis[j] . w` over each subdomain, vector by vector.
    fn partial_multi_dots(
        &self,
        basis: &[Self::Vector],
        w: &Self::Vector,
        starts: &[usize],
        out: &mut Self::Partials,
    );
    /// `w -= sum_j coef[j] basis[j]`; appends `w . w` over each subdomain.
    fn partial_multi_axpy(
        &self,
        basis: &[Self::Vector],
        coef: &[f64],
        w: &mut Self::Vector,
        starts: &[usize],
        out: &mut Self::Partials,
    );
    /// The sums, of which none are left; waits. They are no numbers after an operation has failed.
    fn take(&self, partials: &mut Self::Partials) -> Vec<f64>;

    /// `y += sign C g`.
    fn add_coupling(
        &self,
        c: &Self::Coupled,
        sign: f64,
        ghosts: &Self::Vector,
        y: &mut Self::Vector,
    );
    /// Takes constants on pieces over.
    ///
    /// # Errors
    /// Without memory for them.
    fn constants(&self, of: Constants) -> Result<Self::Constants>;
    /// `Z' v` of the vectors of this rank, piece by piece; waits. They are no numbers after an operation has failed.
    fn sums_of_constants(&self, z: &Self::Constants, v: &Self::Vector) -> Vec<f64>;
    /// `x += Z y`, y having a number for each vector of all ranks.
    fn add_constants(&self, z: &Self::Constants, y: &Self::Vector, x: &mut Self::Vector);
    /// Bytes of `Z' v` and `x += Z y` together.
    fn constants_bytes(&self, z: &Self::Constants) -> Bytes;
    /// `to[i]` is the unknown `places[i]` of `from`, and behind its end one of `ghosts`.
    fn extend(
        &self,
        from: &Self::Vector,
        ghosts: &Self::Vector,
        places: &Self::Places,
        to: &mut Self::Vector,
    );
    /// `to[first + i] = from[places[i]]`.
    fn restrict(
        &self,
        from: &Self::Vector,
        places: &Self::Places,
        first: usize,
        to: &mut Self::Vector,
    );
    /// `to[places[i]] = values[i]`.
    fn scatter(&self, values: &Self::Vector, places: &Self::Places, to: &mut Self::Vector);

    /// Prepares factors on a pattern whose rows are made stage by stage. Rows of no stage belong to others, who
    /// send what is needed of them. A choice of the device may depend on each subdomain's rows, not on what else the
    /// rank has.
    ///
    /// # Errors
    /// Without memory for them.
    fn ilu_in_stages(
        &self,
        pattern: &Arc<FillPattern>,
        stages: Vec<Vec<StagePart>>,
        solves: StagedSolves,
    ) -> Result<Self::StagedIlu>;
    /// A vector of solves with the factors: what is known of all of their rows.
    ///
    /// # Errors
    /// Without memory for it.
    fn ilu_vector(&self, ilu: &Self::StagedIlu) -> Result<Self::Vector>;
    /// Which block row of such a vector is row `row` of the factors.
    fn ilu_place(&self, ilu: &Self::StagedIlu, row: usize) -> usize;
    /// As [`ilu_factor`](crate::compute::Factors::ilu_factor); `between(t, blocks)` follows stage t. `shift` is that
    /// of every diagonal entry. Returns the first row of each range that has no pivot, after which the others may go
    /// on; where all have one, the first of each that leaves the range of float32.
    fn ilu_factor_in_stages(
        &self,
        ilu: &mut Self::StagedIlu,
        a: &Csr,
        shift: f64,
        between: &mut dyn FnMut(usize, &mut dyn FactorBlocks),
    ) -> Vec<Breakdown>;
    /// `L v = r` in the rows of a stage, r being in the order of the rank; z is what the backward solves are to give.
    fn ilu_forward(
        &self,
        ilu: &Self::StagedIlu,
        stage: usize,
        r: &Self::Vector,
        v: &mut Self::Vector,
        z: &mut Self::Vector,
    );
    /// `U' z = D^-1 v` in the rows of a stage, z being in the order of the rank. What other ranks have of z is in v.
    fn ilu_backward(
        &self,
        ilu: &Self::StagedIlu,
        stage: usize,
        v: &mut Self::Vector,
        z: &mut Self::Vector,
    );
}

/// Blocks of factors while they are made. Place i is the inverse diagonal block of row i, place n + e of n rows the
/// entry e of U'.
pub trait FactorBlocks {
    /// Copies blocks, column-major.
    fn read(&mut self, places: &[u32], out: &mut [f64]);
    /// Sets blocks.
    fn write(&mut self, places: &[u32], from: &[f64]);
}
