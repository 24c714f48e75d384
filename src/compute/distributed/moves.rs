//! Rows and values on their way between ranks, in messages of bounded size where there are many. All calls are
//! collective.

use std::ops::Range;

use super::communicator::Communicator;
use super::halo::{Asked, ask, ask_each, messages};
use super::part::{Builder, Part};
use super::rows::Rows;
use crate::base::error::{Error, Kind, Result};
use crate::base::memory;
use crate::base::threads::Threads;
use crate::matrix::pattern::inverse_on;

/// Bytes that are sent at a time.
pub(crate) const PIECE: usize = 4 << 20;

/// What this rank has made, where all have made theirs.
///
/// # Errors
/// This rank's, or that of the first other rank that has one.
pub fn agreed<T>(communicator: &dyn Communicator, own: Result<T>) -> Result<T> {
    /// What an error is, in the order of their words.
    const KINDS: [Kind; 4] = [Kind::Input, Kind::Run, Kind::Memory, Kind::Stopped];
    let word = |e: &Error| {
        let kind = KINDS.iter().position(|kind| *kind == e.kind()).unwrap_or(1);
        format!("{kind}{e}\n{}", e.hint_text().unwrap_or_default())
    };
    let Some(said) = communicator.failure(own.as_ref().err().map(word)) else { return own };
    own.and_then(|_| {
        let (kind, text) = said.split_at(1);
        let (text, hint) = text.split_once('\n').unwrap_or((text, ""));
        let error = match kind {
            "0" => Error::input(text),
            "2" => Error::memory(text),
            "3" => Error::stopped(text),
            _ => Error::run(text),
        };
        Err(if hint.is_empty() { error } else { error.hint(hint) })
    })
}

/// Rows and vectors of `from` for the ranks that own them afterwards: those whose block rows of `block_size` begin at
/// `starts`. `number` is the new number of the unknown at a place of `from`. The rows are still to be [finished](Builder::finish), when those
/// of `from` may be gone.
pub fn moved(
    communicator: &dyn Communicator,
    (from, vectors): (&Part, &[&[f64]]),
    number: impl Fn(usize) -> u64,
    (starts, block_size): (&[u64], usize),
) -> (Builder, Vec<Vec<f64>>) {
    let (me, size) = (communicator.rank(), communicator.size());
    let b = block_size as u64;
    let owner = |row: u64| starts.partition_point(|&start| start <= row / b) - 1;
    let own = starts[me]..starts[me + 1];
    let first = own.start * b;
    let room = ((own.end - own.start) * b) as usize;
    let mut builder = Builder::new(own.clone(), block_size).with_room(room, from.entries());
    let mut arrived = (0..vectors.len()).map(|_| memory::zeroed::<f64>(room)).collect::<Vec<_>>();
    let take = |builder: &mut Builder, arrived: &mut [Vec<f64>], numbers: &[f64]| {
        let mut rest = numbers;
        while let [row, entries, more @ ..] = rest {
            let (row, entries) = (*row as u64, *entries as usize);
            let (of_vectors, more) = more.split_at(vectors.len());
            let (columns, more) = more.split_at(entries);
            let (values, more) = more.split_at(entries);
            for (to, value) in arrived.iter_mut().zip(of_vectors) {
                to[(row - first) as usize] = *value;
            }
            builder.push(row, columns.iter().map(|&c| c as u64).zip(values.iter().copied()));
            rest = more;
        }
    };
    let a = from.matrix();
    let places = from.unknowns();
    let mut left = places.clone().peekable();
    let budget = PIECE / 8 / size;
    let mut out: Vec<Vec<f64>> = vec![Vec::new(); size];
    loop {
        let mut filled = 0;
        out.iter_mut().for_each(Vec::clear);
        while filled < budget
            && let Some(at) = left.next()
        {
            let row = number(at);
            let (columns, values) = a.row(at);
            if own.contains(&(row / b)) {
                for (to, vector) in arrived.iter_mut().zip(vectors) {
                    to[(row - first) as usize] = vector[at - places.start];
                }
                let columns = columns.iter().map(|&column| number(column as usize));
                builder.push(row, columns.zip(values.iter().copied()));
                continue;
            }
            let to: &mut Vec<f64> = &mut out[owner(row)];
            let before = to.len();
            to.extend([row as f64, columns.len() as f64]);
            to.extend(vectors.iter().map(|vector| vector[at - places.start]));
            to.extend(columns.iter().map(|&column| number(column as usize) as f64));
            to.extend(values);
            filled += to.len() - before;
        }
        let more = left.peek().is_some();
        take(&mut builder, &mut arrived, &ask_each(communicator, &out).numbers);
        if !communicator.any(more) {
            break;
        }
    }
    (builder, arrived)
}

/// Values of unknowns by their numbers, `wanted` in any order, from ranks whose unknowns begin at `starts`; `own` are
/// those of this rank.
pub fn values(
    communicator: &dyn Communicator,
    starts: &[u64],
    own: &[f64],
    wanted: impl Iterator<Item = u64> + Clone,
) -> Vec<f64> {
    let (me, size) = (communicator.rank(), communicator.size());
    let owner = |number: u64| starts.partition_point(|&start| start <= number) - 1;
    let at = |number: u64| own[(number - starts[me]) as usize];
    let mut asked = vec![Vec::new(); size];
    for number in wanted.clone() {
        asked[owner(number)].push(number as f64);
    }
    asked[me] = Vec::new();
    let counts: Vec<usize> = asked.iter().map(Vec::len).collect();
    let theirs = ask_each(communicator, &asked);
    let mut replies = communicator.exchange(messages(&theirs.counts, 1), messages(&counts, 1));
    let answers = theirs.numbers.iter().map(|&number| at(number as u64));
    replies.outgoing().iter_mut().zip(answers).for_each(|(to, value)| *to = value);
    replies.start();
    let found = replies.finish();
    let mut next: Vec<usize> = counts
        .iter()
        .scan(0, |end, count| {
            *end += count;
            Some(*end - count)
        })
        .collect();
    let value = |number: u64| match owner(number) {
        rank if rank == me => at(number),
        rank => {
            next[rank] += 1;
            found[next[rank] - 1]
        }
    };
    wanted.map(value).collect()
}

/// The rows of a rank and `layers` of block rows around them, from the ranks whose block rows begin at `starts`.
///
/// # Errors
/// When rows have no place, on any rank.
pub(crate) fn with_layers(
    communicator: &dyn Communicator,
    part: &Part,
    starts: &[u64],
    layers: usize,
) -> Result<Part> {
    let (own, b) = (part.own(), part.block_size() as u64);
    let (mut found, mut others) = (Rows::default(), part.others().to_vec());
    let (mut known, mut near): (Vec<u64>, _) = (Vec::new(), others.clone());
    for _ in 0..layers {
        let before = found.columns().len();
        rows(communicator, part, starts, &near, &mut found);
        known.extend(&near);
        known.sort_unstable();
        near.clear();
        let blocks = found.columns()[before..].iter().map(|column| column / b);
        near.extend(blocks.filter(|block| !own.contains(block)));
        near.sort_unstable();
        near.dedup();
        others.extend(&near);
        near.retain(|block| known.binary_search(block).is_err());
    }
    others.sort_unstable();
    others.dedup();
    agreed(communicator, part.with_rows(&found, others))
}

/// The rows of a rank, of block rows that begin at `starts`, with its own ones in another order: `order[i]` becomes
/// the i-th.
pub(crate) fn renumbered(
    threads: Threads,
    communicator: &dyn Communicator,
    part: &Part,
    starts: &[u64],
    order: &[u32],
) -> Part {
    let (first, new) = (part.own().start, inverse_on(threads, order));
    let numbers: Vec<f64> = new.iter().map(|&at| (first + u64::from(at)) as f64).collect();
    let others = values(communicator, starts, &numbers, part.others().iter().copied());
    let others: Vec<u64> = others.into_iter().map(|number| number as u64).collect();
    part.renumbered(threads, order, &others)
}

/// The numbers of all ranks, in their order.
pub(crate) fn all_of(communicator: &dyn Communicator, own: &[f64]) -> Vec<f64> {
    let counts = communicator.all_gather(&[own.len() as f64], &vec![1; communicator.size()]);
    let counts: Vec<usize> = counts.into_iter().map(|count| count as usize).collect();
    communicator.all_gather(own, &counts)
}

/// Adds the rows of the block rows `wanted` of other ranks, which ascend.
fn rows(
    communicator: &dyn Communicator,
    part: &Part,
    starts: &[u64],
    wanted: &[u64],
    found: &mut Rows,
) {
    let (a, b) = (part.matrix(), part.block_size());
    let at = |start: u64| wanted.partition_point(|&block| block < start);
    let counts: Vec<usize> = starts.windows(2).map(|w| at(w[1]) - at(w[0])).collect();
    let Asked { counts: asked, numbers } =
        ask(communicator, &counts, wanted.iter().map(|&block| block as f64));
    let first = |block: f64| part.unknowns().start + (block as u64 - part.own().start) as usize * b;
    let mut places = numbers.iter().flat_map(|&block| first(block)..first(block) + b);
    let mut lengths = memory::with_capacity(numbers.len() * b);
    let mut sent = Vec::new();
    let mut to: Vec<usize> = Vec::with_capacity(asked.len());
    for count in &asked {
        let before = sent.len();
        for row in places.by_ref().take(count * b) {
            let (columns, values) = a.row(row);
            lengths.push(columns.len() as f64);
            sent.extend(columns.iter().map(|&column| part.unknown(column as usize) as f64));
            sent.extend_from_slice(values);
        }
        to.push(sent.len() - before);
    }
    let mut exchange = communicator.exchange(messages(&asked, b), messages(&counts, b));
    exchange.outgoing().copy_from_slice(&lengths);
    exchange.start();
    let lengths: Vec<usize> = exchange.finish().iter().map(|&length| length as usize).collect();
    let mut all = lengths.iter();
    let from: Vec<usize> =
        counts.iter().map(|count| all.by_ref().take(count * b).map(|len| 2 * len).sum()).collect();
    let mut exchange = communicator.exchange(messages(&to, 1), messages(&from, 1));
    exchange.outgoing().copy_from_slice(&sent);
    drop(sent);
    exchange.start();
    let mut rest = exchange.finish();
    found.reserve(lengths.len(), rest.len() / 2);
    let numbers = wanted.iter().flat_map(|&block| block * b as u64..(block + 1) * b as u64);
    for (row, length) in numbers.zip(lengths) {
        let (columns, more) = rest.split_at(length);
        let (values, more) = more.split_at(length);
        rest = more;
        found.push(row, columns.iter().map(|&column| column as u64), values);
    }
}

/// What `make` makes of `count` things of each rank, some at a time, for the first rank to `take`, rank by rank;
/// each has `bytes` of them at most.
pub(crate) fn in_turn(
    communicator: &dyn Communicator,
    (count, bytes): (usize, usize),
    make: impl Fn(Range<usize>) -> Vec<u8>,
    mut take: impl FnMut(&[u8]),
) {
    let size = communicator.size();
    let step = PIECE / bytes;
    let counts = communicator.all_gather(&[count as f64], &vec![1; size]);
    for (rank, count) in counts.into_iter().enumerate() {
        for first in (0..count as usize).step_by(step) {
            let of = first..(first + step).min(count as usize);
            let sent = communicator.collect(rank, &mut || make(of.clone()));
            take(&sent);
        }
    }
}

/// A vector that the first rank reads, piece by piece, for the ranks whose unknowns begin at `starts`; also what `read`
/// returns there. It hands over the pieces in their order.
pub(crate) fn read_and_dealt<T>(
    communicator: &dyn Communicator,
    starts: &[u64],
    read: impl FnOnce(&mut dyn FnMut(&[f64])) -> T,
) -> (Vec<f64>, Option<T>) {
    let mut own: Vec<f64> = Vec::new();
    // the last byte says whether more follows
    let mut arrive = |bytes: &[u8]| {
        let (&more, values) = bytes.split_last().expect("a word on what follows");
        own.extend(bytemuck::pod_collect_to_vec::<u8, f64>(values));
        more == 1
    };
    if communicator.rank() > 0 {
        while arrive(&communicator.scatter(&mut |_| Vec::new())) {}
        return (own, None);
    }
    let mut first = 0;
    let made = read(&mut |values| {
        for piece in values.chunks(PIECE / 8) {
            let end = first + piece.len() as u64;
            let at = |number: u64| (number.clamp(first, end) - first) as usize;
            let own = communicator.scatter(&mut |rank| {
                let values = &piece[at(starts[rank])..at(starts[rank + 1])];
                let mut message = bytemuck::cast_slice(values).to_vec();
                message.push(1);
                message
            });
            arrive(&own);
            first = end;
        }
    });
    arrive(&communicator.scatter(&mut |_| vec![0]));
    (own, Some(made))
}

/// A vector that the first rank has as a whole, for the ranks whose unknowns begin at `starts`, in pieces.
pub fn dealt(communicator: &dyn Communicator, all: &[f64], starts: &[u64]) -> Vec<f64> {
    let piece = PIECE / 8 / communicator.size();
    let longest = starts.windows(2).map(|w| (w[1] - w[0]) as usize).max().unwrap_or(0);
    let mut own = Vec::new();
    for from in (0..longest).step_by(piece) {
        let bytes = communicator.scatter(&mut |rank| {
            let end = (starts[rank + 1] as usize).min(all.len());
            let at = |place: usize| (starts[rank] as usize + place).min(end);
            bytemuck::cast_slice(&all[at(from)..at(from + piece)]).to_vec()
        });
        own.extend(bytemuck::pod_collect_to_vec::<u8, f64>(&bytes));
    }
    own
}

#[cfg(test)]
#[path = "moves_tests.rs"]
mod tests;
