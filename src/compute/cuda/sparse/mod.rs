//! Sparse matrices with which setups compute: on the device for blocks of one, else, and where the device
//! leaves something to the host, there.

mod inverses;
mod orders;
mod products;
mod stored;

use crate::compute::{Breakdown, Platform, Storage};
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use super::analysis::Analysis;
use super::compressed::{Compressed, Factored};
use super::ilu::Factorisation;
use super::{Cuda, Matrix};
use crate::base::choices::Format;
use crate::base::error::{Kind, Result};
use crate::base::measure::memory_free;
use crate::base::threads::Threads;
use crate::compute::cpu::sparse::{
    self as host, diagonal, gauss_seidel, inverses as host_inverses,
};
use crate::compute::preconditioner::SetupFailure;
use crate::compute::setup::{Part, SetupOps, Triangles};
use crate::matrix::pattern::Pattern as HostPattern;
use crate::matrix::{Asymmetry, Csr, Dia};
use crate::symbolic::FillPattern;

/// A matrix on the device, or on the host.
pub struct Sparse(Place<Csr>);

/// A pattern on the device, or on the host.
pub struct Pattern(Place<HostPattern<'static>>);

enum Place<H> {
    Host(H),
    Device(Compressed),
}

impl Sparse {
    fn on_host(matrix: Csr) -> Self {
        Self(Place::Host(matrix))
    }

    fn on_device(rows: Compressed) -> Self {
        Self(Place::Device(rows))
    }

    pub(super) fn device(&self) -> Option<&Compressed> {
        match &self.0 {
            Place::Device(rows) => Some(rows),
            Place::Host(_) => None,
        }
    }
}

impl Cuda {
    /// The matrix on the host.
    pub(super) fn host<'a>(&self, a: &'a Sparse) -> Result<Cow<'a, Csr>> {
        Ok(match &a.0 {
            Place::Host(matrix) => Cow::Borrowed(matrix),
            Place::Device(rows) => Cow::Owned(rows.host(&self.device)?),
        })
    }

    /// What the device made, or else the host of the matrices there.
    fn made<const N: usize, E: From<crate::Error> + Send>(
        &self,
        on_device: Result<Option<Compressed>>,
        of: [&Sparse; N],
        on_host: impl FnOnce([&Csr; N], Threads) -> Result<Csr, E> + Send,
    ) -> Result<Sparse, E> {
        if let Some(rows) = on_device? {
            return Ok(Sparse::on_device(rows));
        }
        let mut there = Vec::with_capacity(N);
        for a in of {
            there.push(self.host(a)?);
        }
        let there: [&Csr; N] = std::array::from_fn(|i| &*there[i]);
        self.on_host(|threads| on_host(there, threads)).map(Sparse::on_host)
    }

    /// A matrix that setups made, for products.
    pub(super) fn for_products(&self, a: Sparse) -> Result<Matrix> {
        let host = match a.0 {
            Place::Host(matrix) => Arc::new(matrix),
            Place::Device(rows) => match rows.stored(&self.device)? {
                Ok(matrix) => return Ok(matrix),
                Err(rows) => Arc::new(rows.host(&self.device)?),
            },
        };
        let diagonals = !self.vendor && host.block_size() == 1 && Dia::suits(&host);
        let format = if diagonals { Format::Dia } else { Format::Auto };
        match self.matrix(&host, format) {
            // the format was chosen by a part of the rows
            Err(e) if e.kind() == Kind::Input && diagonals => self.matrix(&host, Format::Auto),
            stored => stored,
        }
    }
}

/// What `make` makes of a matrix on the device.
fn of_one(
    a: &Sparse,
    make: impl FnOnce(&Compressed) -> Result<Option<Compressed>>,
) -> Result<Option<Compressed>> {
    a.device().map_or(Ok(None), make)
}

/// What `make` makes of two.
fn of_two(
    [a, b]: [&Sparse; 2],
    make: impl FnOnce(&Compressed, &Compressed) -> Result<Option<Compressed>>,
) -> Result<Option<Compressed>> {
    match (a.device(), b.device()) {
        (Some(a), Some(b)) => make(a, b),
        _ => Ok(None),
    }
}

impl SetupOps for Cuda {
    type Sparse = Sparse;
    type Pattern = Pattern;

    fn sparse(&self, a: &Csr) -> Result<Sparse> {
        if a.block_size() == 1 && !self.vendor {
            if let Some(there) = self.stored.borrow().find(a) {
                return Ok(Sparse::on_device(there));
            }
            return Compressed::copied(&self.device, a).map(Sparse::on_device);
        }
        Ok(Sparse::on_host(a.clone()))
    }

    fn entries(&self, a: &Sparse) -> usize {
        match &a.0 {
            Place::Host(a) => a.nnz(),
            Place::Device(a) => a.entries,
        }
    }

    fn to_host(&self, a: &Sparse) -> Result<Csr> {
        Ok(self.host(a)?.into_owned())
    }

    fn asymmetry(&self, a: &Sparse, tolerance: f64) -> Result<Option<Asymmetry>> {
        if let Some(rows) = a.device()
            && rows.regular(&self.device, tolerance)?[1]
        {
            return Ok(None);
        }
        let there = self.host(a)?;
        Ok(self.on_host(|_| there.asymmetry_beyond(tolerance)))
    }

    fn largest_row_sum(&self, a: &Sparse) -> Result<f64> {
        match &a.0 {
            Place::Host(a) => Ok(host::largest_row_sum(a)),
            Place::Device(a) => a.largest_row_sum(&self.device),
        }
    }

    fn transposed(&self, a: &Sparse) -> Result<Sparse> {
        let there = of_one(a, |a| a.transposed(&self.device));
        self.made(there, [a], |[a], _| Ok(a.transposed()))
    }

    fn times(&self, a: &Sparse, b: &Sparse) -> Result<Sparse> {
        let there = of_two([a, b], |a, b| a.times(&self.device, b));
        self.made(there, [a, b], |[a, b], threads| a.times(b, threads))
    }

    fn mean(&self, a: &Sparse, b: &Sparse) -> Result<Sparse> {
        let there = of_two([a, b], |a, b| a.mean(&self.device, b).map(Some));
        self.made(there, [a, b], |[a, b], threads| a.mean(b, threads))
    }

    fn identity_minus(&self, a: &Sparse) -> Result<Sparse> {
        let there = of_one(a, |a| a.identity_minus(&self.device).map(Some));
        self.made(there, [a], |[a], threads| host::identity_minus(threads, a))
    }

    fn scaled(&self, a: &Sparse, part: Part) -> Result<Sparse, SetupFailure> {
        let there = of_one(a, |a| a.scaled(&self.device, part));
        self.made(there, [a], |[a], threads| diagonal::scaled(threads, a, |i, j| part.holds(i, j)))
    }

    fn permuted(&self, a: &Sparse, order: &[u32]) -> Result<Sparse> {
        let there = of_one(a, |a| a.permuted(&self.device, order));
        self.made(there, [a], |[a], threads| Ok(host::permuted(threads, a, order)))
    }

    fn gauss_seidel(&self, a: &Sparse, omega: f64) -> Result<Sparse, SetupFailure> {
        let there = of_one(a, |a| a.gauss_seidel(&self.device, omega));
        self.made(there, [a], |[a], threads| gauss_seidel::product(threads, a, omega))
    }

    fn with_gauss_seidel(&self, a: &Sparse, sizes: &[usize]) -> Result<Sparse, SetupFailure> {
        let there = of_one(a, |a| a.with_gauss_seidel(&self.device, sizes));
        self.made(there, [a], |[a], threads| gauss_seidel::with_rest(threads, a, sizes))
    }

    fn inverse_diagonal(&self, a: &Sparse) -> Result<Sparse, SetupFailure> {
        let there = of_one(a, |a| a.inverse_diagonal(&self.device));
        self.made(there, [a], |[a], threads| diagonal::inverse(threads, a))
    }

    fn lower_power(&self, a: &Sparse, q: usize) -> Result<Pattern, SetupFailure> {
        if let Some(rows) = of_one(a, |a| a.lower_power(&self.device, q))? {
            return Ok(Pattern(Place::Device(rows)));
        }
        let free = self.memory_free().min(memory_free());
        let there = self.host(a)?;
        let found = self.on_host(|threads| host::lower_power(threads, &there, q, free))?;
        Ok(Pattern(Place::Host(found)))
    }

    fn factorised_inverse(&self, a: &Sparse, lower: &Pattern) -> Result<Sparse, SetupFailure> {
        if let (Some(a), Place::Device(lower)) = (a.device(), &lower.0)
            && let Some(g) = a.factorised_inverse(&self.device, lower)?
        {
            return Ok(Sparse::on_device(g));
        }
        let pattern = match &lower.0 {
            Place::Host(pattern) => Cow::Borrowed(pattern),
            Place::Device(rows) => Cow::Owned(rows.pattern(&self.device)?),
        };
        self.made(Ok(None), [a], |[a], threads| host_inverses::factorised(threads, a, &pattern))
    }

    fn least_squares_inverse(&self, mirrored: &Sparse) -> Result<Sparse, SetupFailure> {
        let there = of_one(mirrored, |a| a.least_squares_inverse(&self.device));
        self.made(there, [mirrored], |[a], threads| host_inverses::least_squares(threads, a))
    }

    fn triangular_inverse(&self, lower: &Sparse) -> Result<Sparse, SetupFailure> {
        let there = of_one(lower, |l| l.triangular_inverse(&self.device));
        self.made(there, [lower], |[l], threads| host_inverses::triangular(threads, l))
    }

    fn triangles(
        &self,
        pattern: &Arc<FillPattern>,
        a: &Csr,
        shift: f64,
    ) -> Result<Triangles<Sparse>, SetupFailure> {
        if pattern.block_size() > 1 || self.vendor {
            let made = self.on_host(|threads| host::extracted(threads, pattern, (a, shift)))?;
            let Triangles { lower, inverse_diagonal, upper } = made;
            let of = Sparse::on_host;
            let inverse_diagonal = of(inverse_diagonal);
            return Ok(Triangles { lower: of(lower), inverse_diagonal, upper: of(upper) });
        }
        let d = &*self.device;
        let mut f = Factorisation::new(d, pattern, &Analysis::new(pattern, self.setup), 1)?;
        let shift = if shift == 0.0 { 0.0 } else { shift * a.largest_diagonal() };
        let there = self.stored.borrow().find(a);
        let factors = f.run(d, Factored::Host(a, there.as_ref()), shift)?;
        let factors = factors.map_err(Breakdown::from)?;
        let n = pattern.rows();
        let of = |p, entries, val| {
            Sparse::on_device(Compressed { rows: n, entries, pattern: p, val: Rc::new(val) })
        };
        let [lower, upper] = [pattern.lower.entries(), pattern.upper.entries()];
        Ok(Triangles {
            lower: of(f.structure.lower, lower, factors.lower),
            inverse_diagonal: Sparse::on_device(Compressed::diagonal(d, n, factors.diagonal)?),
            upper: of(f.structure.upper, upper, factors.upper),
        })
    }

    fn operator(&self, a: Sparse) -> Result<Matrix> {
        self.for_products(a)
    }
}
