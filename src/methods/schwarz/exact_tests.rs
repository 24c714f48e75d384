//! Factors over ranks that are threads, beside those of one CPU thread in the same order.

use std::rc::Rc;

use rand::{Rng, SeedableRng, rngs::SmallRng};

use super::*;
use crate::base::choices::{FactorPrecision, Partition};
use crate::base::parse::choice_name;
use crate::case::{Case, Ordering, Shift};
use crate::compute::Vectors as _;
use crate::compute::cpu::Cpu;
use crate::compute::distributed::Layout;
use crate::compute::distributed::communicator::{Communicator, threads::on_ranks};
use crate::compute::distributed::moves::with_layers;
use crate::compute::{Factors as _, Trisolve};
use crate::matrix::pattern::block_pattern;
use crate::methods::schwarz::Choice;
use crate::methods::schwarz::order::Ordered;
use crate::problem::samples::{pattern, positive, problem};
use crate::symbolic::interfaces::FillLevels;
use crate::symbolic::ordering::{reordered, restored};

/// A matrix as its source has it and in the order of its subdomains, and that of their elimination.
struct System {
    source: Csr,
    /// The ordering of one device.
    ordering: Vec<u32>,
    /// The unknown of the source at each place of `a`.
    unknowns: Vec<u32>,
    a: Csr,
    starts: Vec<usize>,
    order: Arc<Elimination>,
}

impl System {
    fn new(
        a: &Csr,
        grid: Option<[usize; 3]>,
        (how, count): (Partition, usize),
        choice: Choice,
        k: usize,
    ) -> Self {
        let b = a.block_size();
        let Ordered { divided, elimination, used } =
            Ordered::new(a, how, grid, count, choice, k).unwrap();
        assert_eq!(used, choice);
        let (order, unknowns) = (elimination.unwrap(), divided.unknowns(b).unwrap());
        let permuted = a.permuted(&unknowns).in_blocks(b);
        let b = b as u32;
        let back = order.order().into_iter().flat_map(|row| row * b..(row + 1) * b);
        let ordering: Vec<u32> = back.map(|i| unknowns[i as usize]).collect();
        if choice == Choice::Natural {
            // the order of elimination is the given one
            assert!(ordering.iter().copied().eq(0..a.rows() as u32));
        } else {
            // that of the ordering on one device
            let how = choice_name(&how);
            let named: Ordering = format!("subdomains:{count},partition={how}").parse().unwrap();
            if choice == Choice::Interface(0) {
                assert_eq!(named.for_fill(k).order(a, grid).unwrap(), ordering);
            }
        }
        let (source, starts, order) = (a.clone(), divided.starts, Arc::new(order));
        Self { source, ordering, unknowns, a: permuted, starts, order }
    }
}

const ALL: [Choice; 3] = [Choice::Interface(0), Choice::Interface(1), Choice::Natural];

/// Rows of a few entries at random places, neither symmetric nor in any order.
pub(in crate::methods::schwarz) fn random(n: usize, per_row: usize, seed: u64) -> Csr {
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

/// What a rank knows of a matrix for factors of such fill.
fn known(k: &Distributed<Cpu>, a: &Csr, fill: FillLevels) -> Part {
    let (communicator, layout) = (&**k.communicator(), k.layout());
    let own = layout.part_of(a, communicator.rank());
    with_layers(communicator, &own, layout.rank_starts(), layers(fill.highest())).unwrap()
}

/// Of each block row that a rank knows its number in the order of elimination, where that is not stage by stage.
fn given(part: &Part, order: &Elimination) -> Option<Arc<[u64]>> {
    let number = |place: usize| u64::from(order.given[part.number(place) as usize]);
    (!order.given.is_empty()).then(|| (0..part.blocks()).map(number).collect())
}

/// On so many ranks.
fn applied(ranks: usize, system: &System, case: &Case) -> Vec<f64> {
    let System { unknowns, a, starts, order, .. } = system;
    let (r, b) = (reordered(&positive(a.rows()), unknowns), a.block_size());
    let of_ranks = on_ranks(ranks, |rank| {
        let layout = Layout::new(starts, b, ranks).unwrap();
        let own = layout.unknowns(Communicator::rank(&rank));
        let k = Distributed::new(Cpu::sequential(), Rc::new(rank), layout);
        let part = known(&k, a, order.fill(case.fill));
        let given = given(&part, order);
        let order = (order, given.as_ref());
        let m = Exact::new(&k, &part, order, &case.preconditioning(), &mut ()).unwrap();
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
fn expected(System { source, ordering, order, .. }: &System, case: &Case) -> Vec<f64> {
    let permuted = source.permuted(ordering).in_blocks(source.block_size());
    let (fill, blocks) = (order.fill(case.fill), block_pattern(&permuted));
    let interiors = order.order().iter().filter(|&&row| order.stage(row as usize) == 0).count();
    let levels = [fill.k, fill.highest()];
    let pattern = iluk_raised(Threads::One, &blocks, levels, interiors, usize::MAX).expect("small");
    let pattern = Arc::new(pattern);
    let k = Cpu::sequential();
    let mut ilu = k.ilu_analyse(&pattern, Trisolve::AUTO, case.factor_precision).unwrap();
    k.ilu_factor(&mut ilu, &permuted, case.shift.fixed()).unwrap();
    let r = reordered(&positive(source.rows()), ordering);
    let (mut v, mut z) = (k.vector(r.len()).unwrap(), k.vector(r.len()).unwrap());
    k.upload(&r, &mut v);
    k.ilu_apply(&ilu, &v, &mut z);
    let mut z = restored(&z, ordering);
    z.push(pattern.blocks() as f64);
    z
}

fn same_bits(system: &System, case: &Case, what: &str) {
    let expected = expected(system, case);
    for ranks in [1, 2, 3, 4, 6].into_iter().filter(|&ranks| ranks < system.starts.len()) {
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
        ("blockpoisson3d:6x5x7,b=2", 2, Partition::Rows, 7),
        ("blockpoisson3d:6x5x7,b=3", 3, Partition::Boxes, 6),
        ("poisson3d:16x16x1", 2, Partition::Rows, 4),
        ("poisson3d:12", 1, Partition::Boxes, 27),
        ("fem-p1:24x17", 1, Partition::Graph, 7),
        ("blockpoisson3d:6x5x7,b=3", 3, Partition::Graph, 5),
    ] {
        let problem = problem(spec);
        for (fill, choice) in (0..=3).flat_map(|fill| ALL.map(|choice| (fill, choice))) {
            let a = problem.matrix.clone().in_blocks(b);
            let system = System::new(&a, problem.grid, (how, count), choice, fill);
            for factor_precision in [FactorPrecision::Float64, FactorPrecision::Float32] {
                let case =
                    Case { fill, factor_precision, shift: Shift::Fixed(0.01), ..Case::default() };
                same_bits(&system, &case, &format!("{spec} {choice}"));
            }
        }
    }
}

#[test]
fn patterns_that_are_not_symmetric_have_the_bits_of_one_thread() {
    for seed in 0..60 {
        let b = 1 + seed as usize % 3;
        let a = random(90 * b, 1 + seed as usize / 3 % 3, seed).in_blocks(b);
        for (fill, choice) in (0..=3).flat_map(|fill| ALL.map(|choice| (fill, choice))) {
            let how = [Partition::Rows, Partition::Graph][seed as usize / 4 % 2];
            let system = System::new(&a, None, (how, 4 + seed as usize % 3), choice, fill);
            let precisions = [FactorPrecision::Float64, FactorPrecision::Float32];
            let factor_precision = precisions[seed as usize / 2 % 2];
            let case = Case { fill, factor_precision, ..Case::default() };
            same_bits(&system, &case, &format!("seed {seed} {choice}"));
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
    for (zero, choice, teller) in [(5, 1), (1, 0), (10, 3)]
        .into_iter()
        .flat_map(|(zero, teller)| ALL.map(|choice| (zero, choice, teller)))
    {
        let System { a, starts, order, .. } =
            System::new(&line(zero), None, (Partition::Rows, 4), choice, 0);
        for ranks in [2, 4] {
            let said = on_ranks(ranks, |rank| {
                let layout = Layout::new(&starts, 1, ranks).unwrap();
                let k = Distributed::new(Cpu::sequential(), Rc::new(rank), layout);
                let case = Case::default();
                let part = known(&k, &a, order.fill(case.fill));
                let given = given(&part, &order);
                let order = (&order, given.as_ref());
                match Exact::new(&k, &part, order, &case.preconditioning(), &mut ()) {
                    Ok(_) => None,
                    Err(SetupFailure::Breakdown(Breakdown::Singular(block))) => Some(block.row),
                    Err(other) => panic!("{other:?}"),
                }
            });
            let mut only = vec![None; ranks];
            only[teller * ranks / 4] = Some(zero);
            assert_eq!(said, only, "row {zero} on {ranks} ranks, {choice}");
        }
    }
}

/// What ranks report of a matrix, with the rank: singular rows, and those out of the range of float32.
fn broken(system: &System, ranks: usize, case: &Case) -> Vec<(usize, Breakdown)> {
    let said = on_ranks(ranks, |rank| {
        let own = Communicator::rank(&rank);
        let layout = Layout::new(&system.starts, system.a.block_size(), ranks).unwrap();
        let k = Distributed::new(Cpu::sequential(), Rc::new(rank), layout);
        let settings = case.preconditioning();
        let part = known(&k, &system.a, system.order.fill(settings.fill));
        let given = given(&part, &system.order);
        let order = (&system.order, given.as_ref());
        match Exact::new(&k, &part, order, &settings, &mut ()) {
            Ok(_) => None,
            Err(SetupFailure::Breakdown(why)) => Some((own, why)),
            Err(other) => panic!("{other:?}"),
        }
    });
    said.into_iter().flatten().collect()
}

#[test]
fn the_first_of_several_broken_rows_in_the_given_order_is_reported() {
    // points of a grid of 4 x 4 x 8, a slice of two planes each; the first of two rows that break is
    // eliminated in a later stage than the other
    let problem = problem("poisson3d:4x4x8");
    let changed = |change: &dyn Fn(usize, usize) -> Option<f64>| {
        let a = &problem.matrix;
        let mut values = Vec::new();
        for i in 0..a.rows() {
            let (columns, of_row) = a.row(i);
            values.extend(
                columns.iter().zip(of_row).map(|(&j, &v)| change(i, j as usize).unwrap_or(v)),
            );
        }
        let (row_ptr, col_ind) = (a.row_ptr().to_vec(), a.col_ind().to_vec());
        Csr::new(a.rows(), a.rows(), row_ptr, col_ind, values).unwrap()
    };
    let (first, second) = (15, 16);
    let empty = |i: usize, _| [first, second].contains(&i).then_some(0.0);
    // (15, 14) becomes a multiplier beyond float32; without the row before it, it has an infinite one
    let large = |i: usize, j: usize| ([(15, 14), (16, 0)].contains(&(i, j))).then_some(1e60);
    let both = |i: usize, j: usize| if i == 100 { Some(0.0) } else { large(i, j) };
    let one = |a: &Csr, case: &Case| {
        let k = Cpu::sequential();
        let pattern = pattern(a, 0);
        let mut ilu = k.ilu_analyse(&pattern, Trisolve::AUTO, case.factor_precision).unwrap();
        k.ilu_factor(&mut ilu, a, 0.0).unwrap_err()
    };
    let single = Case { factor_precision: FactorPrecision::Float32, ..Case::default() };
    let range = Breakdown::Range { row: first };
    for (a, case, row) in [
        (changed(&empty), Case::default(), None),
        (changed(&large), single.clone(), Some(range)),
        (changed(&both), single, None),
    ] {
        let expected = one(&a, &case);
        assert!(row.is_none_or(|row| row == expected), "{expected:?}");
        let system = System::new(&a, None, (Partition::Rows, 4), Choice::Natural, 0);
        let place = |row| system.order.given.iter().position(|&given| given == row).unwrap();
        assert!(system.order.stage(place(16)) < system.order.stage(place(15)));
        for ranks in [1, 2, 4] {
            let said = broken(&system, ranks, &case);
            assert_eq!(said.len(), 1, "{said:?}");
            assert_eq!(said[0].1, expected, "{ranks} ranks");
        }
    }
}
