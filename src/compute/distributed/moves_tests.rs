use std::sync::Arc;

use super::*;
use crate::compute::distributed::communicator::threads::on_ranks;
use crate::matrix::Csr;

/// First block row of a rank's in the tests: numbers of unknowns have more than 32 bits.
const FIRST: u64 = 5_000_000_000;

/// Row i of a chain of blocks of two, one of whose neighbours is far away.
fn row(i: u64) -> Vec<(u64, f64)> {
    let value = |j: u64| 1.0 / (1 + (i * 7919 + j * 104_729) % 1009) as f64;
    let mut columns = vec![i, i ^ 1, i + 2, i - 2, 2 * FIRST + (i + 17) % 24];
    columns.retain(|j| (2 * FIRST..2 * FIRST + 24).contains(j));
    columns.sort_unstable();
    columns.dedup();
    columns.into_iter().map(|j| (j, value(j))).collect()
}

/// The block rows of a range, of one unknown or two.
fn part(rows: std::ops::Range<u64>, block_size: u64) -> Part {
    let mut builder = Builder::new(rows.start..rows.end, block_size as usize);
    for i in rows.start * block_size..rows.end * block_size {
        builder.push(i, row(i).into_iter());
    }
    builder.finish(u64::MAX).unwrap()
}

/// Every known row by its number, with the numbers of its columns.
fn rows_of(part: &Part) -> Vec<(u64, Vec<(u64, f64)>)> {
    let a = part.matrix();
    let of_row = |at: usize| {
        let (columns, values) = a.row(at);
        let columns = columns.iter().map(|&column| part.unknown(column as usize));
        (part.unknown(at), columns.zip(values.iter().copied()).collect())
    };
    (0..a.rows()).filter(|&at| !a.row(at).0.is_empty()).map(of_row).collect()
}

#[test]
fn rows_beyond_32_bits_move_to_their_owners() {
    // 24 unknowns, of which each block of two moves; the ranks have them unevenly before
    let new = |i: u64| 2 * FIRST + ((i / 2 - FIRST) * 5 + 3) % 12 * 2 + i % 2;
    let before = [0, 3, 3, 17, 24].map(|at| 2 * FIRST + at);
    let after = [0, 5, 6, 12, 12].map(|at| FIRST + at);
    let found = on_ranks(4, |rank| {
        let me = rank.rank();
        let from = part(before[me]..before[me + 1], 1);
        let b: Vec<f64> = (before[me]..before[me + 1]).map(|i| i as f64).collect();
        let (rows, vectors) = moved(&rank, (&from, &[&b]), |at| new(from.unknown(at)), (&after, 2));
        let part = rows.finish_on(Threads::when(me % 2 == 1), u64::MAX).unwrap();
        assert_eq!(part.own(), after[me]..after[me + 1]);
        let own: Vec<u64> = part.unknowns().map(|at| part.unknown(at)).collect();
        assert_eq!(vectors.len(), 1);
        (rows_of(&part), own.into_iter().zip(vectors[0].clone()).collect::<Vec<_>>())
    });
    let (rows, b): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    let mut old: Vec<u64> = (2 * FIRST..2 * FIRST + 24).collect();
    old.sort_by_key(|&i| new(i));
    for ((row_of, entries), &i) in rows.concat().iter().zip(&old) {
        let mut want: Vec<(u64, f64)> = row(i).into_iter().map(|(j, v)| (new(j), v)).collect();
        want.sort_by_key(|entry| entry.0);
        assert_eq!((*row_of, entries), (new(i), &want));
    }
    assert_eq!(rows.concat().len(), 24);
    assert_eq!(b.concat(), old.iter().map(|&i| (new(i), i as f64)).collect::<Vec<_>>());
}

#[test]
fn layers_and_values_come_from_their_owners() {
    let starts = [0, 5, 6, 12].map(|at| FIRST + at);
    on_ranks(3, |rank| {
        let me = rank.rank();
        let own = part(starts[me]..starts[me + 1], 2);
        for layers in 0..3 {
            let near = with_layers(&rank, &own, &starts, layers).unwrap();
            let mut blocks: Vec<u64> = (starts[me]..starts[me + 1]).collect();
            for _ in 0..layers {
                let next = blocks.iter().flat_map(|&block| [2 * block, 2 * block + 1]);
                let next: Vec<u64> = next.flat_map(row).map(|(j, _)| j / 2).collect();
                blocks.extend(next);
                blocks.sort_unstable();
                blocks.dedup();
            }
            let unknowns = blocks.iter().flat_map(|&block| [2 * block, 2 * block + 1]);
            let want: Vec<_> = unknowns.map(|i| (i, row(i))).collect();
            assert_eq!(rows_of(&near), want, "{layers} layers of rank {me}");
        }
        let unknowns = starts.map(|start| 2 * start);
        let number = |i: u64| (i - 2 * FIRST) as f64;
        let x: Vec<f64> = (unknowns[me]..unknowns[me + 1]).map(number).collect();
        let wanted = (0..30).map(|i| 2 * FIRST + (i * 7 + me as u64) % 24);
        let found = values(&rank, &unknowns, &x, wanted.clone());
        assert_eq!(found, wanted.map(number).collect::<Vec<_>>());
    });
}

#[test]
fn the_first_rank_takes_what_the_others_make_in_turn() {
    let lengths = [3, 0, PIECE / 4 + 5];
    let taken = on_ranks(3, |rank| {
        let me = rank.rank();
        let mut all = Vec::new();
        let make = |of: Range<usize>| {
            assert!(4 * of.len() <= PIECE);
            of.flat_map(|i| ((me << 28 | i) as u32).to_le_bytes()).collect()
        };
        in_turn(&rank, (lengths[me], 4), make, |bytes| all.extend_from_slice(bytes));
        let whole: Vec<f64> = (0..23).map(f64::from).collect();
        let starts = [0, 9, 9, 25];
        let own = dealt(&rank, if me == 0 { &whole } else { &[] }, &starts);
        assert_eq!(own, whole[starts[me] as usize..(starts[me + 1] as usize).min(23)]);
        let (read, said) = read_and_dealt(&rank, &starts, |take| {
            for of in [0..7, 7..7, 7..10, 10..23] {
                take(&whole[of]);
            }
            "read"
        });
        assert_eq!((read, said), (own, (me == 0).then_some("read")));
        all
    });
    let numbers = (0..3).flat_map(|rank| (0..lengths[rank]).map(move |i| (rank << 28 | i) as u32));
    assert!(taken[0].iter().copied().eq(numbers.flat_map(u32::to_le_bytes)));
    assert!(taken[1].is_empty());
}

#[test]
fn one_rank_that_fails_is_known_to_all() {
    let said = on_ranks(3, |rank| {
        let own = match rank.rank() {
            1 => Err(Error::memory("no room")),
            rank => Ok(rank),
        };
        agreed(&rank, own).unwrap_err()
    });
    assert!(said.iter().all(|e| e.kind() == Kind::Memory && e.message() == "no room"));
    let none = Csr::new(0, 0, vec![0], Vec::new(), Vec::new()).unwrap();
    assert_eq!(Part::of_whole(&Arc::new(none), 0..0).entries(), 0);
}
