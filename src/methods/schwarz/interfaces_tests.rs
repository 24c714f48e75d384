//! What ranks find beside what is found of the whole matrix.

use super::*;
use crate::base::choices::Partition;
use crate::compute::distributed::communicator::threads::on_ranks;
use crate::compute::distributed::moves::renumbered;
use crate::matrix::Csr;
use crate::methods::schwarz::exact::tests::random;
use crate::problem::samples::problem;
use crate::symbolic::partition::{divide, divide_exactly, sides};
use crate::symbolic::scalar_order;

/// On 1, 2, 3, 4 and 6 ranks, for fill levels 0 to 3.
fn as_of_the_whole(
    a: &Csr,
    grid: Option<[usize; 3]>,
    (how, count): (Partition, usize),
    what: &str,
) {
    let b = a.block_size();
    let base = divide(a, how, grid, count, true).unwrap();
    let rows = a.rows() / b;
    let of_base = base.order.clone().unwrap_or_else(|| (0..rows as u32).collect());
    let from = a.permuted(&scalar_order(&of_base, b)).in_blocks(b);
    for fill in (0..=3).flat_map(|k| [0, 1].map(|more| FillLevels { k, more })) {
        let (divided, whole) = divide_exactly(a, how, grid, count, fill).unwrap();
        let to = a.permuted(&divided.unknowns(b).unwrap()).in_blocks(b);
        for ranks in [1, 2, 3, 4, 6].into_iter().filter(|&ranks| ranks <= count) {
            let layout = Layout::new(&base.starts, b, ranks).unwrap();
            let found = on_ranks(ranks, |rank| {
                let (me, starts) = (rank.rank(), layout.rank_starts());
                let part = layout.part_of(&from, me);
                let of = sides(how, count);
                let threads = Threads::when(fill.k % 2 == 1);
                let (found, order) = interfaces(threads, &rank, &part, &layout, (of, fill));
                assert_eq!(found, whole, "{what}, {fill:?}, {ranks} ranks");
                let moved = renumbered(threads, &rank, &part, starts, &order);
                assert_eq!(moved, layout.part_of(&to, me), "{what}, {fill:?}, {ranks} ranks");
                order.into_iter().map(|row| starts[me] as u32 + row).collect::<Vec<u32>>()
            });
            let order = found.concat().into_iter().map(|row| of_base[row as usize]);
            assert!(order.eq(divided.order.clone().unwrap()), "{what}, {fill:?}, {ranks} ranks");
        }
    }
}

#[test]
fn grids_are_put_in_order_as_by_one_rank() {
    for (spec, b, how, count) in [
        ("poisson3d:12x9x10", 1, Partition::Boxes, 8),
        ("poisson3d:12", 1, Partition::Boxes, 27),
        ("poisson3d:4", 1, Partition::Boxes, 64),
        ("convdiff3d:9x8x7,px=0.3", 1, Partition::Rows, 5),
        ("convdiff3d:9x8x7,px=0.3", 1, Partition::Rows, 2),
        ("blockpoisson3d:6x5x7,b=3", 3, Partition::Boxes, 6),
        ("poisson3d:16x16x1", 2, Partition::Rows, 7),
    ] {
        let problem = problem(spec);
        let a = problem.matrix.clone().in_blocks(b);
        as_of_the_whole(&a, problem.grid, (how, count), &format!("{spec} {how:?}"));
    }
}

#[test]
fn patterns_that_are_not_symmetric_are_put_in_order_as_by_one_rank() {
    for seed in 0..40 {
        let b = 1 + seed as usize % 3;
        let a = random(90 * b, 1 + seed as usize / 3 % 3, seed).in_blocks(b);
        let count = 2 + seed as usize % 7;
        as_of_the_whole(&a, None, (Partition::Rows, count), &format!("seed {seed}"));
    }
}
