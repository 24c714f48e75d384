//! Bisections of graphs that all ranks make for the first one, which has the graph. METIS has one generator of random
//! numbers for all threads of a process: processes share its work.

use crate::base::error::{Error, Result};
use crate::compute::distributed::communicator::Communicator;
use crate::compute::preconditioner::SetupFailure;
use crate::symbolic::partition::bisection::{Bisection, Halves};

/// Bytes of a graph that goes to another rank at most: METIS needs some five times as many.
const MOST: usize = 32 << 20;

/// The first number of a message: that more follow, or that there is nothing left to do.
const WORK: i32 = 1;
const END: i32 = 0;

/// Makes `all` with the help of the other ranks, which [`assist`]; called by the first.
///
/// # Errors
/// What fails here; that something fails on another rank.
pub(super) fn on_ranks(
    communicator: &dyn Communicator,
    all: &[Bisection],
) -> Result<Vec<Halves>, SetupFailure> {
    let ranks = communicator.size();
    let owner = |at: usize| if all[at].bytes() > MOST { 0 } else { at % ranks };
    let of = |rank: usize| (0..all.len()).filter(move |&at| owner(at) == rank);
    communicator.scatter(&mut |rank| {
        let mut numbers = vec![WORK];
        if rank > 0 {
            of(rank).for_each(|at| all[at].to_numbers(&mut numbers));
        }
        bytemuck::cast_slice(&numbers).to_vec()
    });
    let own: Result<Vec<Halves>> = of(0).map(|at| all[at].run()).collect();
    let mut made: Vec<Option<Halves>> = (0..all.len()).map(|_| None).collect();
    let mut complete = true;
    for rank in 1..ranks {
        let answer = numbers(&communicator.collect(rank, &mut Vec::new));
        let mut rest = &answer[..];
        for at in of(rank) {
            complete &= !rest.is_empty();
            made[at] = complete.then(|| Halves::from_numbers(&mut rest));
        }
    }
    of(0).zip(own?).for_each(|(at, halves)| made[at] = Some(halves));
    made.into_iter().collect::<Option<_>>().ok_or(SetupFailure::Elsewhere)
}

/// Makes bisections for the first rank until it has no more; called by the others.
///
/// # Errors
/// What fails here.
pub(super) fn assist(communicator: &dyn Communicator) -> Result<()> {
    let mut failed: Option<Error> = None;
    loop {
        let message = numbers(&communicator.scatter(&mut |_| Vec::new()));
        let (&kind, mut rest) = message.split_first().expect("what to do");
        if kind == END {
            return failed.map_or(Ok(()), Err);
        }
        let mut answer = Vec::new();
        while !rest.is_empty() {
            match Bisection::from_numbers(&mut rest).run() {
                Ok(halves) => halves.to_numbers(&mut answer),
                Err(e) => failed = Some(e),
            }
        }
        if failed.is_some() {
            answer.clear();
        }
        for rank in 1..communicator.size() {
            communicator.collect(rank, &mut || bytemuck::cast_slice(&answer).to_vec());
        }
    }
}

/// Tells the others that there is nothing left to do.
pub(super) fn end(communicator: &dyn Communicator) {
    communicator.scatter(&mut |_| bytemuck::cast_slice(&[END]).to_vec());
}

fn numbers(bytes: &[u8]) -> Vec<i32> {
    bytemuck::pod_collect_to_vec(bytes)
}
