//! Products over ranks that are threads, beside those of one CPU thread in the given order.

use std::rc::Rc;

use super::*;
use crate::base::choices::Partition;
use crate::case::Case;
use crate::compute::Vectors as _;
use crate::compute::cpu::Cpu;
use crate::compute::distributed::Layout;
use crate::compute::distributed::communicator::{Communicator, threads::on_ranks};
use crate::compute::distributed::moves::with_layers;
use crate::methods::schwarz::Choice;
use crate::methods::schwarz::exact::tests::random;
use crate::methods::schwarz::order::Ordered;
use crate::problem::samples::{positive, problem};
use crate::symbolic::ordering::{reordered, restored};

/// A matrix as its source has it, and in the order of its subdomains.
struct System {
    source: Arc<Csr>,
    /// The block row of the source at each place.
    order: Vec<u32>,
    a: Csr,
    starts: Vec<usize>,
}

impl System {
    fn new(a: &Csr, b: usize, grid: Option<[usize; 3]>, (how, count): (Partition, usize)) -> Self {
        let source = Arc::new(a.in_blocks(b));
        let divided = Ordered::new(&source, how, grid, count, Choice::Jacobi, 0).unwrap().divided;
        let order = divided.order.unwrap_or_else(|| (0..(a.rows() / b) as u32).collect());
        let a = source.permuted(&scalar_order(&order, b)).in_blocks(b);
        Self { source, order, a, starts: divided.starts }
    }

    /// `M^-1 r` on so many ranks in the order of the source, or why there is none on each of them.
    fn applied(&self, ranks: usize, case: &Case) -> Result<Vec<f64>, Vec<String>> {
        let b = self.a.block_size();
        let unknowns = scalar_order(&self.order, b);
        let r = reordered(&positive(self.a.rows()), &unknowns);
        let of_ranks = on_ranks(ranks, |rank| {
            let layout = Layout::new(&self.starts, b, ranks).unwrap();
            let own = layout.unknowns(Communicator::rank(&rank));
            let k = Distributed::new(Cpu::sequential(), Rc::new(rank), layout);
            let (communicator, layout) = (&**k.communicator(), k.layout());
            let part = layout.part_of(&self.a, communicator.rank());
            let reach = precond::reach(&case.precond).unwrap();
            let part = with_layers(communicator, &part, layout.rank_starts(), reach).unwrap();
            let given = |place: usize| u64::from(self.order[part.number(place) as usize]);
            let given: Arc<[u64]> = (0..part.blocks()).map(given).collect();
            let settings = case.preconditioning();
            let m = OfProducts::new(&k, &part, Some(&given), &settings, &mut ())
                .map_err(|why| format!("{why:?}"))?;
            let (mut v, mut z) = (k.vector(own.len()).unwrap(), k.vector(own.len()).unwrap());
            k.upload(&r[own], &mut v);
            m.apply(&k, &v, &mut z);
            assert!(m.bytes(&k).moved > 16 * self.a.rows());
            Ok((z.to_vec(), m.size(&k).factor_entries))
        });
        let (found, failures): (Vec<_>, Vec<_>) = of_ranks.into_iter().partition(Result::is_ok);
        if !failures.is_empty() {
            assert!(found.is_empty(), "each rank hears of a failure");
            return Err(failures.into_iter().filter_map(Result::err).collect());
        }
        let found: Vec<_> = found.into_iter().flatten().collect();
        assert!(found.iter().all(|(_, entries)| *entries == found[0].1));
        let z: Vec<f64> = found.iter().flat_map(|(z, _)| z).copied().collect();
        let mut z = restored(&z, &unknowns);
        z.push(found[0].1.unwrap() as f64);
        Ok(z)
    }

    /// The same of one CPU thread.
    fn expected(&self, case: &Case) -> Vec<f64> {
        let (k, n) = (&Cpu::sequential(), self.source.rows());
        let setup = precond::lookup::<Cpu>(&case.precond).unwrap();
        let settings = &case.preconditioning();
        let m = setup(Setup { k, a: &self.source, settings, phases: &mut () }).unwrap();
        let (mut v, mut z) = (k.vector(n).unwrap(), k.vector(n).unwrap());
        k.upload(&positive(n), &mut v);
        m.apply(k, &v, &mut z);
        let entries = m.size(k).factor_entries.unwrap() as f64;
        z.iter().copied().chain([entries]).collect()
    }
}

fn case(precond: &str) -> Case {
    Case { precond: precond.into(), ..Case::default() }
}

fn compare(name: &str, system: &System, precond: &str) {
    let case = case(precond);
    let (want, of_one) = (system.expected(&case), system.applied(1, &case).unwrap());
    let near = |(x, y): (&f64, &f64)| (x - y).abs() <= 1e-12 * y.abs();
    assert!(of_one.iter().zip(&want).all(near), "{name} {precond}");
    if system.starts.len() == 2 {
        assert_eq!(of_one, want, "{name} {precond}");
        return;
    }
    for ranks in 2..=4 {
        assert_eq!(system.applied(ranks, &case).unwrap(), of_one, "{name} {precond} {ranks}");
    }
}

#[test]
fn matrices_are_those_of_one_device_and_bits_depend_on_the_subdomains_alone() {
    let any =
        ["chebyshev", "chebyshev:degree=7", "tns", "tns:order=3", "tns:order=3,form=explicit"];
    let definite = ["fsai", "fsai:power=3"];
    let divisions = [(Partition::Rows, 1), (Partition::Rows, 5), (Partition::Graph, 5)];
    let boxes = [(Partition::Boxes, 4)];
    for division in divisions {
        let system = System::new(&random(140, 4, 3), 1, None, division);
        for precond in any {
            compare("random", &system, precond);
        }
    }
    for (spec, b, definite) in [
        ("blockpoisson3d:5x4x6,b=3", 3, &[][..]),
        ("layered:6x5x7,layers=3", 1, &definite),
        ("layered:6x5x6,layers=3", 2, &definite),
    ] {
        let of = problem(spec);
        for division in divisions.into_iter().chain(boxes) {
            let system = System::new(&of.matrix, b, of.grid, division);
            for precond in any.iter().chain(definite) {
                compare(spec, &system, precond);
            }
        }
    }
}

#[test]
fn a_row_without_a_pivot_has_its_number_in_the_given_order_on_every_rank() {
    let of = problem("poisson3d:6");
    let mut a = Csr::clone(&of.matrix);
    let (row, first) = (77, a.row_ptr()[77] as usize);
    let at = first + a.row(row).0.iter().position(|&j| j as usize == row).unwrap();
    a.values_mut()[at] = 0.0;
    for division in [(Partition::Rows, 4), (Partition::Boxes, 4)] {
        let system = System::new(&a, 1, of.grid, division);
        for precond in ["chebyshev", "tns"] {
            for ranks in [1, 2, 4] {
                let said = system.applied(ranks, &case(precond)).unwrap_err();
                assert_eq!(said.len(), ranks);
                let of_row = said.iter().filter(|why| why.contains("row: 77,")).count();
                let elsewhere = said.iter().filter(|why| *why == "Elsewhere").count();
                assert!(of_row > 0 && of_row + elsewhere == ranks, "{said:?}");
            }
        }
    }
}
