//! Products to be tuned.

use cudarc::driver::CudaSlice;

use super::Formatted;
use super::choices::axes;
use crate::base::choices::Format;
use crate::base::error::{Error, Result};
use crate::base::threads::Threads;
use crate::compute::cuda::device::Device;
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::tune;
use crate::compute::cuda::tune::Tunable;
use crate::compute::tune::Choices;
use crate::compute::tune::descent::Axis;
use crate::matrix::Csr;

/// Largest difference between two choices, relative to the largest entry: sums have another order.
const AGREE: f64 = 1e-12;

/// A matrix and vectors, to be multiplied with one choice after the other.
pub(in crate::compute::cuda) struct Trials {
    matrix: Formatted,
    nnz: usize,
    x: CudaSlice<f64>,
    y: CudaSlice<f64>,
    /// A x with the usual choices.
    want: Vec<f64>,
}

impl Trials {
    /// Of `a` in `format`.
    ///
    /// # Errors
    /// As [`Formatted::new`].
    pub(in crate::compute::cuda) fn new(
        d: &Device,
        a: &Csr,
        block_size: usize,
        format: Format,
    ) -> Result<Self> {
        let mut matrix = Formatted::new(d, &a.in_blocks(block_size), format)?;
        let usual = tune::usual(&axes(format, block_size));
        matrix.kernel = matrix.way.kernel(d, matrix.rows, (format, block_size), usual, false)?;
        // no zeros, which may be multiplied faster
        let x: Vec<f64> = (0..a.rows()).map(|i| (i % 1000) as f64 / 256.0 - 1.5).collect();
        let (x, y) = (d.copied(&x)?, d.zeros(a.rows())?);
        let mut trials = Self { matrix, nnz: a.nnz(), x, y, want: Vec::new() };
        trials.run(d)?;
        trials.want = d.host(&trials.y)?;
        Ok(trials)
    }
}

impl Tunable for Trials {
    fn key(&self) -> String {
        self.matrix.way.key(self.matrix.rows, self.nnz, self.matrix.block_size)
    }

    fn rows(&self) -> usize {
        self.matrix.rows
    }

    fn bytes(&self) -> usize {
        self.matrix.bytes().moved
    }

    fn axes(&self) -> Vec<Axis> {
        axes(self.matrix.format, self.matrix.block_size)
    }

    fn choose(&mut self, d: &Device, choices: &Choices) -> Result<()> {
        let Formatted { way, rows, format, block_size, .. } = &self.matrix;
        self.matrix.kernel = way.kernel(d, *rows, (*format, *block_size), choices.clone(), true)?;
        Ok(())
    }

    fn check(&mut self, d: &Device) -> Result<()> {
        d.mark_absent(&mut self.y)?;
        self.run(d)?;
        let got = d.host(&self.y)?;
        let largest = self.want.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        let differs = |(got, want): (&f64, &f64)| {
            let difference = (got - want).abs();
            difference > AGREE * largest || difference.is_nan()
        };
        match Threads::Pool
            .find_map(got.len(), 1, |i| differs((&got[i], &self.want[i])).then_some(i))
        {
            None => Ok(()),
            Some(i) => Err(Error::run(format!(
                "row {} of the product is {:e}, not {:e}",
                i + 1,
                got[i],
                self.want[i]
            ))),
        }
    }

    fn run(&mut self, d: &Device) -> Result<()> {
        self.matrix.product(d, &self.x, 0, &mut self.y).map_err(|e| failed("product", e))
    }
}

/// A kind of work that can be tuned.
pub struct Subject {
    /// Name on the command line.
    pub name: &'static str,
    /// Makes it for a matrix with a block size.
    pub make: fn(&Device, &Csr, usize) -> Result<Box<dyn Tunable>>,
}

macro_rules! products {
    ($($name:literal: $format:ident),*) => {
        [$(Subject {
            name: $name,
            make: |d, a, b| Ok(Box::new(Trials::new(d, a, b, Format::$format)?)),
        }),*]
    };
}

/// Everything that can be tuned.
pub static SUBJECTS: &[Subject] = &products!("hyb": Hyb, "sell": Sell, "dia": Dia, "bdia": Bdia);
