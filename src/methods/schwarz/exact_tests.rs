//! Factors over ranks that are threads, beside those of one CPU thread in the same order.

use std::rc::Rc;

use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::*;
use crate::base::choices::{FactorPrecision, Partition, ReadAs};
use crate::base::parse::choice_name;
use crate::case::{Case, Ordering};
use crate::compute::Factors as _;
use crate::compute::Vectors as _;
use crate::compute::cpu::Cpu;
use crate::compute::distributed::Layout;
use crate::compute::distributed::communicator::{Communicator, threads::on_ranks};
use crate::matrix::pattern::block_pattern;
use crate::problem::load;
use crate::symbolic::ordering::{reordered, restored};
use crate::symbolic::partition::divide_exactly;

/// A matrix as its source has it and in the order of its subdomains, and that of their elimination.
struct System {
    source: Csr,
    /// The ordering of one device.
    ordering: Vec<u32>,
    /// The unknown of the source at each place of `a`.
    unknowns: Vec<u32>,
    a: Csr,
    starts: Vec<usize>,
    order: Elimination,
}

fn system(a: &Csr, grid: Option<[usize; 3]>, how: Partition, count: usize, k: usize) -> System {
    let b = a.block_size();
    let (divided, order) = divide_exactly(a, how, grid, count, k).unwrap();
    let unknowns = divided.unknowns(b).unwrap();
    let named: Ordering =
        format!("subdomains:{count},partition={}", choice_name(&how)).parse().unwrap();
    let ordering = named.for_fill(k).order(a, grid).unwrap();
    let (source, a) = (a.clone(), a.permuted(&unknowns).in_blocks(b));
    System { source, ordering, unknowns, a, starts: divided.starts, order }
}

/// Rows of a few entries at random places, neither symmetric nor in any order.
fn random(n: usize, per_row: usize, seed: u64) -> Csr {
    let mut rng = SmallRng::seed_from_u64(seed);
    let (mut row_ptr, mut col_ind, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        let near = |rng: &mut SmallRng| (i + n + rng.random_range(0..12) - 6) % n;
        let mut columns: Vec<usize> = (0..per_row).map(|_| near(&mut rng)).collect();
        columns.push(i);
        columns.sort_unstable();
        columns.dedup();
        for j in columns {
            col_ind.push(j as u32);
            values.push(if i == j { 8.0 } else { rng.random_range(-1.0..1.0) });
        }
        row_ptr.push(col_ind.len() as u32);
    }
    Csr::new(n, n, row_ptr, col_ind, values).unwrap()
}

fn numbers(n: usize) -> Vec<f64> {
    (0..n).map(|i| 1.0 + ((i * 7919 + 13) % 1009) as f64 / 1009.0).collect()
}

/// On so many ranks.
fn applied(ranks: usize, system: &System, case: &Case) -> Vec<f64> {
    let System { unknowns, a, starts, order, .. } = system;
    let (r, b) = (reordered(&numbers(a.rows()), unknowns), a.block_size());
    let of_ranks = on_ranks(ranks, |rank| {
        let layout = Layout::new(starts, b, ranks).unwrap();
        let own = layout.unknowns(Communicator::rank(&rank));
        let k = Distributed::new(Cpu::sequential(), Rc::new(rank), layout);
        let m = Exact::new(&k, a, order, &case.preconditioning(), &mut ()).unwrap();
        let (mut v, mut z) = (k.vector(own.len()).unwrap(), k.vector(own.len()).unwrap());
        k.upload(&r[own.clone()], &mut v);
        m.apply(&k, &v, &mut z);
        // a second time, after what the first has left
        m.apply(&k, &v, &mut z);
        let size = m.size(&k);
        (z.to_vec(), size.factor_blocks.unwrap())
    });
    let blocks = of_ranks[0].1;
    assert!(of_ranks.iter().all(|rank| rank.1 == blocks));
    let z: Vec<f64> = of_ranks.into_iter().flat_map(|rank| rank.0).collect();
    let mut z = restored(&z, unknowns);
    z.push(blocks as f64);
    z
}

/// By one thread that factorises the matrix in the ordering of its own.
fn expected(System { source, ordering, .. }: &System, case: &Case) -> Vec<f64> {
    let permuted = source.permuted(ordering).in_blocks(source.block_size());
    let pattern =
        iluk_on(Threads::One, &block_pattern(&permuted), case.fill, LevelRule::Min, usize::MAX);
    let pattern = Arc::new(pattern.unwrap());
    let k = Cpu::sequential();
    let mut ilu = k.ilu_analyse(&pattern, Trisolve::AUTO, case.factor_precision).unwrap();
    k.ilu_factor(&mut ilu, &permuted, case.shift).unwrap();
    let r = reordered(&numbers(source.rows()), ordering);
    let (mut v, mut z) = (k.vector(r.len()).unwrap(), k.vector(r.len()).unwrap());
    k.upload(&r, &mut v);
    k.ilu_apply(&ilu, &v, &mut z);
    let mut z = restored(&z, ordering);
    z.push(pattern.blocks() as f64);
    z
}

fn same_bits(system: &System, case: &Case, what: &str) {
    let expected = expected(system, case);
    for ranks in [1, 2, 3, 4].into_iter().filter(|&ranks| ranks < system.starts.len()) {
        let found = applied(ranks, system, case);
        let other = found.iter().zip(&expected).position(|(f, e)| f.to_bits() != e.to_bits());
        assert_eq!(other, None, "{what}, k {}, {ranks} ranks", case.fill);
    }
}

#[test]
fn any_number_of_ranks_has_the_bits_of_one_thread() {
    for (spec, b, how, count) in [
        ("poisson3d:12x9x10", 1, Partition::Boxes, 8),
        ("convdiff3d:9x8x7,px=0.3", 1, Partition::Rows, 5),
        ("convdiff3d:9x8x7,px=0.3", 1, Partition::Rows, 2),
        ("blockpoisson3d:6x5x7,b=3", 3, Partition::Boxes, 6),
        ("poisson3d:16x16x1", 2, Partition::Rows, 4),
        ("poisson3d:12", 1, Partition::Boxes, 27),
        ("fem-p1:24x17", 1, Partition::Graph, 7),
        ("blockpoisson3d:6x5x7,b=3", 3, Partition::Graph, 5),
    ] {
        let problem = load(spec, ReadAs::Expanded).unwrap();
        for fill in 0..=3 {
            let a = problem.matrix.clone().in_blocks(b);
            let system = system(&a, problem.grid, how, count, fill);
            for factor_precision in [FactorPrecision::Float64, FactorPrecision::Float32] {
                let case = Case { fill, factor_precision, shift: 0.01, ..Case::default() };
                same_bits(&system, &case, spec);
            }
        }
    }
}

#[test]
fn patterns_that_are_not_symmetric_have_the_bits_of_one_thread() {
    for seed in 0..12 {
        for fill in 0..=4 {
            let a = random(130, 1 + seed as usize % 3, seed);
            for how in [Partition::Rows, Partition::Graph] {
                let system = system(&a, None, how, 4 + seed as usize % 3, fill);
                let what = format!("seed {seed}, {how:?}");
                same_bits(&system, &Case { fill, ..Case::default() }, &what);
            }
        }
    }
}

#[test]
fn the_first_row_without_a_pivot_is_told_by_its_rank_alone() {
    let line = |zero: usize| {
        let (mut row_ptr, mut col_ind, mut values) = (vec![0_u32], Vec::new(), Vec::new());
        for i in 0..12_u32 {
            for j in i.saturating_sub(1)..(i + 2).min(12) {
                col_ind.push(j);
                values.push(if i as usize == zero {
                    0.0
                } else {
                    f64::from(1 + 2 * u32::from(i == j))
                });
            }
            row_ptr.push(col_ind.len() as u32);
        }
        Csr::new(12, 12, row_ptr, col_ind, values).unwrap()
    };
    for (zero, row, teller) in [(5, 5, 1), (1, 1, 0), (10, 10, 3)] {
        let System { a, starts, order, .. } = system(&line(zero), None, Partition::Rows, 4, 0);
        for ranks in [2, 4] {
            let said = on_ranks(ranks, |rank| {
                let layout = Layout::new(&starts, 1, ranks).unwrap();
                let k = Distributed::new(Cpu::sequential(), Rc::new(rank), layout);
                let case = Case::default();
                match Exact::new(&k, &a, &order, &case.preconditioning(), &mut ()) {
                    Ok(_) => None,
                    Err(SetupFailure::Breakdown(Breakdown::Singular(block))) => Some(block.row),
                    Err(other) => panic!("{other:?}"),
                }
            });
            let mut only = vec![None; ranks];
            only[teller * ranks / 4] = Some(row);
            assert_eq!(said, only, "row {zero} on {ranks} ranks");
        }
    }
}
