//! Preconditioners that are applied by products with sparse matrices alone. A device makes the matrices; they are
//! applied on that device, or over ranks, each of which has rows of them.

pub(crate) use super::approximate::Operator;
use super::diagonal::Diagonal;
use super::options::Options;
use super::{Phase, Ready, Setup};
use crate::compute::preconditioner::{Preconditioner, SetupFailure};
use crate::compute::{Backend, Operations};
use crate::matrix::Csr;

/// How a preconditioner is the same over ranks as on one device.
#[derive(Clone, Copy)]
pub(crate) enum Undivided {
    /// Not at all: each subdomain has its own.
    No,
    /// By factors that are eliminated in stages.
    Factors,
    /// By products with matrices. Rows of these depend on rows of A at most so many couplings away.
    Products(fn(&Options) -> usize),
}

/// What a device makes of a matrix.
pub(crate) struct Made<K: Backend> {
    /// In the order in which [`Stored::take`] has them.
    pub(crate) matrices: Vec<K::Sparse>,
    /// Whether the transpose of the last one follows.
    pub(crate) mirrored: bool,
    /// Whether `D^-1` is applied, too.
    pub(crate) diagonal: bool,
    /// Largest sum of a row, where that is asked for; over ranks it becomes that of all rows.
    pub(crate) largest: f64,
}

impl<K: Backend> Made<K> {
    /// Matrices alone.
    pub(super) fn of<const N: usize>(matrices: [K::Sparse; N]) -> Self {
        Self { matrices: matrices.into(), mirrored: false, diagonal: false, largest: 0.0 }
    }
}

/// The same, stored where it is applied.
pub(crate) struct Stored<K: Operations> {
    pub(crate) operators: Vec<Operator<K>>,
    pub(crate) diagonal: Option<Box<dyn Preconditioner<K>>>,
    pub(crate) largest: f64,
    /// Of the vectors here.
    pub(crate) unknowns: usize,
    pub(crate) options: Options,
}

impl<K: Operations> Stored<K> {
    /// The matrices.
    pub(super) fn take<const N: usize>(&mut self) -> [Operator<K>; N] {
        let all = std::mem::take(&mut self.operators).try_into();
        let Ok(all) = all else { unreachable!("as many as were made") };
        all
    }
}

/// Makes the matrices on a device.
pub(crate) type Make<K> = fn(&mut Setup<K>) -> Result<Made<K>, SetupFailure>;

/// Makes of stored matrices what applies them.
pub(crate) type Apply<K> = fn(&K, Stored<K>) -> Ready<K>;

/// The setup on one device.
pub(super) fn on_device<K: Backend + 'static>(
    mut s: Setup<K>,
    make: Make<K>,
    apply: Apply<K>,
) -> Ready<K> {
    let Made { mut matrices, mirrored, diagonal, largest } = make(&mut s)?;
    let last = matrices.last().filter(|_| mirrored);
    if let Some(transposed) = last.map(|a| s.k.transposed(a)).transpose()? {
        matrices.push(transposed);
    }
    s.phases.begin(Phase::Analysis);
    let stored = matrices.into_iter().map(|a| Operator::new(s.k, a));
    let stored = Stored {
        operators: stored.collect::<Result<_, _>>()?,
        diagonal: if diagonal { Some(inverse_diagonal(s.k, s.a)?) } else { None },
        largest,
        unknowns: s.a.rows(),
        options: s.options()?,
    };
    apply(s.k, stored)
}

/// `D^-1` of a matrix.
pub(crate) fn inverse_diagonal<K: Backend + 'static>(k: &K, a: &Csr) -> Ready<K> {
    Ok(Box::new(Diagonal::new(k, a)?))
}

#[cfg(test)]
mod tests {
    use super::super::{METHODS, all_undivided, of_products, reach};
    use super::*;
    use crate::compute::cpu::Cpu;

    #[test]
    fn what_consists_of_products_says_so() {
        for method in METHODS {
            let made = of_products::<Cpu, Cpu>(method.name).is_some();
            let says = matches!(method.undivided, Undivided::Products(_));
            assert_eq!(says, made, "{}", method.name);
            assert_eq!(reach(method.name).is_some(), made, "{}", method.name);
        }
        assert_eq!(all_undivided(), ["bilu", "fsai", "tns", "chebyshev"]);
        let of = ["chebyshev:degree=9", "tns:order=3", "tns:form=explicit,order=3", "fsai:power=3"];
        assert_eq!(of.map(|spec| reach(spec).unwrap()), [1, 1, 6, 3]);
        assert_eq!(["bilu", "no-such", "tns:no-such=1"].map(reach), [None; 3]);
    }
}
