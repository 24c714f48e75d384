//! The CUDA sources, embedded, one entry per file of `kernels/`.

use std::ops::RangeInclusive;

use crate::base::choices::FactorPrecision;

/// A file of kernels, compiled at run time.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// File name without its ending.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
    /// Block sizes that it is compiled for, as the macro `BS`; `None` when it knows of none.
    pub sizes: Option<RangeInclusive<usize>>,
}

/// For what a source is compiled: a block size, and macros of the source's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    /// Unknowns per block; the macro `BS` of sized sources.
    pub block_size: usize,
    /// Further macros with their values.
    pub defines: Vec<(&'static str, usize)>,
    /// Macros that are lists, as in braces.
    pub lists: Vec<(&'static str, String)>,
}

impl From<usize> for Variant {
    fn from(block_size: usize) -> Self {
        Self { block_size, defines: Vec::new(), lists: Vec::new() }
    }
}

impl Variant {
    /// The variant whose stored factors are of `precision`.
    #[must_use]
    pub fn storing(mut self, precision: FactorPrecision) -> Self {
        if precision == FactorPrecision::Float32 {
            self.defines.push(("FACTOR_FLOAT", 1));
        }
        self
    }
}

macro_rules! sources {
    ($($constant:ident, $name:literal, $sizes:expr;)*) => {
        $(
            #[doc = concat!("`kernels/", $name, ".cu`.")]
            pub static $constant: Source = Source {
                name: $name,
                text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/", $name, ".cu")),
                sizes: $sizes,
            };
        )*

        /// Every source.
        pub static ALL: &[&Source] = &[$(&$constant),*];
    };
}

/// Any block size.
const ANY: Option<RangeInclusive<usize>> = Some(1..=usize::MAX);

sources! {
    VECTOR, "vector", None;
    HANDOVER, "handover", None;
    NARROW, "narrow", None;
    SPARSE, "sparse", None;
    ROW_SYSTEMS, "row_systems", None;
    SPMV, "spmv", ANY;
    FORMATS, "formats", None;
    BDIA, "bdia", ANY;
    BICGSTAB, "bicgstab", ANY;
    QMR, "qmr", ANY;
    ILU, "ilu", ANY;
    STENCIL_ILU, "stencil_ilu", None;
    STENCIL_BLOCKS, "stencil_blocks", Some(2..=4);
    STENCIL_LONG, "stencil_long", None;
    VENDOR, "vendor", ANY;
    TRSV, "trsv", ANY;
    COLOURS, "colours", ANY;
    COLOUR_STREAM, "colour_stream", None;
    COLOUR_BOXES, "colour_boxes", None;
    WAVEFRONT, "wavefront", ANY;
    PENCILS, "pencils", None;
    PARTITIONED, "partitioned", ANY;
    FGBILU_ACC, "fgbilu_acc", ANY;
    FGBILU_CL, "fgbilu_cl", ANY;
    OBSTACLE, "obstacle", None;
    OBSTACLE_BLOCKED, "obstacle_blocked", None;
}

macro_rules! headers {
    ($($name:literal),*) => {
        /// Headers that the sources may include, by name.
        pub static HEADERS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/", $name)))),*];
    };
}

headers!(
    "absent.cuh",
    "barriers.cuh",
    "colours.cuh",
    "common.cuh",
    "fgbilu.cuh",
    "formats.cuh",
    "grid_barrier.cuh",
    "ilu_blocks.cuh",
    "ilu_jobs.cuh",
    "ilu_large.cuh",
    "ilu_point.cuh",
    "ilu_products.cuh",
    "ilu_rows.cuh",
    "ilu_tasks.cuh",
    "in_kernel.cuh",
    "invert.cuh",
    "multiply.cuh",
    "obstacle.cuh",
    "parts.cuh",
    "pencils.cuh",
    "sparse.cuh",
    "stencil_exchange.cuh",
    "stencil_loader.cuh",
    "stencil_rows.cuh",
    "stencil_shares.cuh",
    "stored.cuh",
    "triangle.cuh",
    "wavefront_carriers.cuh",
    "wavefront_geometry.cuh",
    "wavefront_tile.cuh",
    "wavefront_transport.cuh",
    "wavefront_worker.cuh"
);
