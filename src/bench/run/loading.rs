//! Systems that no rank has as a whole: each generates its own rows, or gets them from the first rank, which reads a
//! file in pieces. All calls are collective.

use std::path::Path;

use super::held::{Held, sum};
use crate::base::choices::{ReadAs, Scaling};
use crate::base::cores;
use crate::base::error::{Error, Result};
use crate::case::{Case, Zeros};
use crate::compute::distributed::communicator::Communicator;
use crate::compute::distributed::launch;
use crate::compute::distributed::moves::{PIECE, agreed, moved, read_and_dealt};
use crate::compute::distributed::part::{Builder, Part};
use crate::compute::over_ranks;
use crate::matrix::market::{Dealer, Dealt};
use crate::matrix::{bsr, file as of_matrix, summed};
use crate::problem::generator::Piece;
use crate::problem::{self, Folders, Source, file, generators};
use crate::symbolic::partition::due;

/// Whether the ranks make or get the rows of a case's system. The first rank has to have it as a whole for another order
/// or scaling of the unknowns, a field of a file, which it alone reads, or a step of a sequence.
pub(crate) fn by_rows(case: &Case) -> bool {
    over_ranks(&case.backend)
        && case.ordering.is_natural()
        && case.scaling == Scaling::None
        && case.read_as == ReadAs::Expanded
        && case.sequence.is_empty()
        && suits(case)
}

/// Whether several ranks make or get them.
pub(crate) fn divided(case: &Case) -> bool {
    by_rows(case) && launch::ranks() > 1
}

/// Whether the source of a case's matrix can be divided.
fn suits(case: &Case) -> bool {
    if !is_generated(&case.matrix) {
        return true;
    }
    let Ok(source) = Source::find(&case.matrix, &Folders::default()) else { return false };
    source.files().is_empty()
}

fn is_generated(spec: &str) -> bool {
    generators::find(spec.split(':').next().unwrap_or_default()).is_some()
}

/// Rows of this rank, of one unknown each, before they are balanced.
struct Rows {
    part: Part,
    order: u64,
    name: String,
    grid: Option<[usize; 3]>,
    own_rhs: Option<Vec<f64>>,
    remarks: Vec<String>,
    /// The file, on the first rank.
    file: Option<std::path::PathBuf>,
}

impl Held {
    /// The system that `spec` names, in blocks of `block_size`: about as many entries on each rank.
    ///
    /// # Errors
    /// As [`crate::problem::load`], on all ranks.
    pub(super) fn load(
        communicator: &dyn Communicator,
        spec: &str,
        block_size: usize,
        zeros: Zeros,
    ) -> Result<Self> {
        let [_, on_host] = communicator.on_host();
        let threads = (cores::in_order().len() / on_host).max(1);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|e| Error::run(format!("cannot start {threads} threads: {e}")));
        let pool = agreed(communicator, pool)?;
        let source = match communicator.rank() {
            rank if rank == 0 || is_generated(spec) => {
                Source::find(spec, &Folders::from_env()).map(Some)
            }
            _ => Ok(None),
        };
        let mut rows = match agreed(communicator, source)? {
            Some(source @ Source::Generated { .. }) => {
                let piece = Piece { number: communicator.rank(), count: communicator.size() };
                let made = pool.install(|| generated(spec, &source, piece));
                agreed(communicator, made)?
            }
            Some(Source::File(path)) => file(communicator, Some(&path), &pool)?,
            None => file(communicator, None, &pool)?,
        };
        let mut dropped = 0;
        if zeros == Zeros::Drop {
            let before = rows.part.entries();
            rows.part = agreed(communicator, rows.part.without_zeros())?;
            dropped = sum(communicator, before - rows.part.entries());
        }
        let mut held = rows.balanced(communicator, block_size)?;
        held.remarks.extend(problem::dropped(dropped as usize));
        Ok(held)
    }
}

/// A piece of a generated system.
fn generated(spec: &str, source: &Source, piece: Piece) -> Result<Rows> {
    let Source::Generated { generator, arguments, .. } = source else { unreachable!("no file") };
    let made = (generator.build)(arguments, piece)?;
    let (first, order) = (made.first as u64, made.order as u64);
    let own = first..first + made.matrix.rows() as u64;
    Ok(Rows {
        part: Builder::of_rows(own, 1, made.matrix, made.columns as u64).finish(order)?,
        order,
        name: spec.to_owned(),
        grid: Some(made.grid),
        own_rhs: made.rhs,
        remarks: arguments.remark.map(str::to_owned).into_iter().collect(),
        file: None,
    })
}

/// What a message says of those that follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    More = 0,
    Nothing = 1,
    Failed = 2,
}

/// This rank's rows of a file that the first rank reads, as many as each other rank has.
fn file(
    communicator: &dyn Communicator,
    path: Option<&Path>,
    pool: &rayon::ThreadPool,
) -> Result<Rows> {
    let size = communicator.size();
    let opened = path.map(|path| {
        let dealer = of_matrix::dealer(path, ReadAs::Expanded, size)?;
        file::check_square(path, dealer.size())?;
        Ok(dealer)
    });
    let mut dealer = agreed(communicator, opened.transpose())?;
    let told = dealer.as_ref().map_or([0; 2], |d| [d.size()[0] as u64, u64::from(d.mirrored())]);
    let mut told: Vec<u8> = told.into_iter().flat_map(u64::to_ne_bytes).collect();
    communicator.broadcast(0, &mut told);
    let [order, mirrored] =
        [0, 8].map(|at| u64::from_ne_bytes(told[at..at + 8].try_into().expect("eight bytes")));
    let starts: Vec<usize> =
        (0..=size).map(|rank| (rank as u128 * u128::from(order) / size as u128) as usize).collect();
    let me = communicator.rank();
    let own = starts[me]..starts[me + 1];
    let mut dealt = Dealt::new(own.clone(), order as usize, mirrored == 1);
    // a rank that has failed gets the rest all the same
    let mut failed = None;
    let mut take = |bytes: &[u8]| {
        if let (Ok(dealt), None) = (&mut dealt, &failed) {
            failed = pool.install(|| dealt.take(bytes)).err();
        }
    };
    agreed(communicator, deal(communicator, dealer.as_mut(), &starts[..size], &mut take))?;
    agreed(communicator, failed.map_or(Ok(()), Err))?;
    let dealt = agreed(communicator, dealt)?;
    let entries = sum(communicator, dealt.entries()) as usize;
    agreed(communicator, dealer.as_ref().map_or(Ok(()), |d| d.check_entries(entries)))?;
    let rows = agreed(communicator, pool.install(|| dealt.finish()))?;
    let place = rows.too_large.map_or([-1.0; 2], |place| place.map(f64::from));
    let places = communicator.all_gather(&place, &vec![2; size]);
    if let Some(place) = places.chunks_exact(2).find(|place| place[0] >= 0.0) {
        let place = [place[0] as u32, place[1] as u32];
        let error = path.map(|path| Dealer::too_large(path, ReadAs::Expanded, place));
        agreed(communicator, error.map_or(Ok(()), Err))?;
    }
    let mut remarks = dealer.as_ref().map_or(Vec::new(), |d| d.remarks().to_vec());
    remarks.extend(summed(sum(communicator, rows.summed) as usize));
    Ok(Rows {
        part: {
            let own = own.start as u64..own.end as u64;
            agreed(communicator, Builder::of_rows(own, 1, rows.matrix, 0).finish(order))?
        },
        order,
        name: path.map(file::stem).unwrap_or_default(),
        grid: None,
        own_rhs: None,
        remarks,
        file: path.map(Path::to_owned),
    })
}

/// Has the first rank read the entries with its `dealer` and `take` what this rank gets, whose rows begin at one of
/// `begins`; collective.
fn deal(
    communicator: &dyn Communicator,
    dealer: Option<&mut Dealer>,
    begins: &[usize],
    take: &mut dyn FnMut(&[u8]),
) -> Result<()> {
    let Some(dealer) = dealer else {
        loop {
            let bytes = communicator.scatter(&mut |_| Vec::new());
            let (&next, entries) = bytes.split_last().expect("a word on what follows");
            take(entries);
            if next != Next::More as u8 {
                return Ok(());
            }
        }
    };
    let mut hand_out = |hands: &mut [Vec<u8>], next: Next| {
        let own = communicator.scatter(&mut |rank| {
            let mut message = std::mem::take(&mut hands[rank]);
            message.push(next as u8);
            message
        });
        take(&own[..own.len() - 1]);
    };
    let read = dealer.read(begins, PIECE, |hands: &mut [Vec<u8>]| hand_out(hands, Next::More));
    let next = if read.is_ok() { Next::Nothing } else { Next::Failed };
    hand_out(&mut vec![Vec::new(); begins.len()], next);
    read
}

impl Rows {
    /// The same rows in blocks, with about as many entries on each rank.
    fn balanced(self, communicator: &dyn Communicator, block_size: usize) -> Result<Held> {
        let Self { part, order, name, grid, own_rhs, mut remarks, file } = self;
        let (size, b) = (communicator.size(), block_size as u64);
        let entries = sum(communicator, part.entries());
        let blocks = order.div_ceil(b);
        let mut starts = vec![0];
        starts.extend(first_rows(communicator, &part, block_size, size));
        starts.push(blocks);
        let me = communicator.rank();
        let stays = block_size == 1 && part.own() == (starts[me]..starts[me + 1]);
        let (part, own_rhs) = if !communicator.any(!stays) {
            (part, own_rhs)
        } else if size == 1 {
            let whole = bsr::pad(part.matrix(), block_size);
            (Part::of_whole(&whole.into(), 0..blocks), own_rhs)
        } else {
            let vectors: Vec<&[f64]> = own_rhs.iter().map(Vec::as_slice).collect();
            let to = (&starts[..], block_size);
            let stay = |at| part.unknown(at);
            let (rows, mut vectors) = moved(communicator, (&part, &vectors), stay, to);
            drop(part);
            let part = agreed(communicator, rows.finish(order))?;
            (part, vectors.pop())
        };
        let mut held =
            Held { name, part, starts, order, entries, grid, own_rhs, remarks: Vec::new() };
        // a file beside the matrix
        if communicator.any(file.is_some()) {
            let (own, used) = read_and_dealt(communicator, &held.unknown_starts(), |take| {
                let path = file.as_deref().expect("the first rank reads it");
                file::own_rhs_to(path, order as usize, &mut remarks, take)
            });
            let used = agreed(communicator, used.unwrap_or(Ok(false)))?;
            held.own_rhs = communicator.any(used).then_some(own);
        }
        held.remarks = remarks;
        Ok(held)
    }
}

/// The first block row of each of `count` ranges but the first before which there are as many entries as are [`due`].
pub(super) fn first_rows(
    communicator: &dyn Communicator,
    part: &Part,
    block_size: usize,
    count: usize,
) -> Vec<u64> {
    let (size, b) = (communicator.size(), block_size as u64);
    let all = communicator.all_gather(&[part.entries() as f64], &vec![1; size]);
    let of_rank = |own: &f64| *own as u64;
    let entries: u64 = all.iter().map(of_rank).sum();
    let before: u64 = all[..communicator.rank()].iter().map(of_rank).sum();
    let (row_ptr, rows) = (part.matrix().row_ptr(), part.unknowns());
    let first = part.first_unknown();
    let end = first + rows.len() as u64;
    // block rows that begin on this rank, and entries before each
    let blocks = first.div_ceil(b)..end.div_ceil(b);
    let until = |block: u64| {
        before + u64::from(row_ptr[rows.start + (block * b - first) as usize] - row_ptr[rows.start])
    };
    let found = due(entries, count).map(|due| {
        let (mut least, mut most) = (blocks.start, blocks.end);
        while least < most {
            let middle = least + (most - least) / 2;
            if until(middle) < due { least = middle + 1 } else { most = middle }
        }
        // none here
        if least < blocks.end { least as f64 } else { f64::INFINITY }
    });
    let found: Vec<f64> = found.collect();
    let parts = found.len();
    let behind = communicator.largest(end as f64) as u64;
    let found = communicator.all_gather(&found, &vec![parts; size]);
    let least = |at: usize| {
        let of_ranks = found.iter().skip(at).step_by(parts);
        let least = of_ranks.fold(f64::INFINITY, |least, v| least.min(*v));
        if least.is_finite() { least as u64 } else { behind.div_ceil(b) }
    };
    (0..parts).map(least).collect()
}
