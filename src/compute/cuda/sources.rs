//! The CUDA sources, embedded, one entry per file of `kernels/`.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use crate::base::choices::FactorPrecision;
use crate::base::embedded::unpack_texts;

/// A file of kernels, compiled at run time.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Path below `kernels/` without its ending.
    pub name: &'static str,
    /// What is compiled in place of the file.
    pub text: Option<&'static str>,
    /// Block sizes that it is compiled for, as the macro `BS`; `None` when it knows of none.
    pub sizes: Option<RangeInclusive<usize>>,
}

impl Source {
    /// What is compiled; empty where there is no such file, which a test refuses.
    pub fn text(&self) -> &'static str {
        let is_this = |(path, _): &&(&str, &str)| path.strip_suffix(".cu") == Some(self.name);
        self.text.unwrap_or_else(|| FILES.iter().find(is_this).map_or("", |(_, text)| text))
    }
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
        match precision {
            FactorPrecision::Float32 => self.defines.push(("FACTOR_FLOAT", 1)),
            FactorPrecision::Bfloat16 => self.defines.push(("FACTOR_BFLOAT16", 1)),
            _ => {}
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
                text: None,
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
    VECTOR, "vectors/operations", None;
    HANDOVER, "runtime/handover", None;
    SUMS, "distributed/sums", None;
    HALO, "distributed/halo", None;
    STAGES, "distributed/stages", None;
    COUPLINGS, "distributed/couplings", ANY;
    NARROW, "sptrsv/narrow", None;
    SPARSE, "setup/sparse", None;
    SYMBOLIC, "setup/symbolic", None;
    ROW_SYSTEMS, "setup/row_systems", None;
    SPMV, "spmv/csr", ANY;
    FORMATS, "spmv/formats", None;
    BDIA, "spmv/bdia", ANY;
    BICGSTAB, "krylov/bicgstab", ANY;
    QMR, "krylov/qmr", ANY;
    ILU, "ilu/rows", ANY;
    STENCIL_ILU, "ilu/stencil/entries", None;
    STENCIL_BLOCKS, "ilu/stencil/blocks", Some(2..=4);
    STENCIL_LONG, "ilu/stencil/long", None;
    VENDOR, "cusparse/layouts", ANY;
    TRSV, "sptrsv/slices", ANY;
    COLOURS, "sptrsv/colours/slices", ANY;
    COLOUR_STREAM, "sptrsv/colours/stream", None;
    COLOUR_BOXES, "sptrsv/colours/boxes", None;
    WAVEFRONT, "sptrsv/wavefront", ANY;
    PENCILS, "sptrsv/pencils", None;
    PARTITION, "sptrsv/partition", None;
    PARTITIONED, "sptrsv/partitioned", ANY;
    FGBILU_ACC, "fgbilu/acc", ANY;
    FGBILU_CL, "fgbilu/cl", ANY;
    OBSTACLE, "obstacle/sweep", None;
    OBSTACLE_BLOCKED, "obstacle/blocked", None;
}

/// Path below `kernels/` and text.
type Files = LazyLock<Vec<(&'static str, &'static str)>>;

static FILES: Files =
    LazyLock::new(|| unpack_texts(include_bytes!(concat!(env!("OUT_DIR"), "/kernels"))));

/// Headers that the sources may include.
pub static HEADERS: Files =
    LazyLock::new(|| unpack_texts(include_bytes!(concat!(env!("OUT_DIR"), "/headers"))));

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kernel_file_is_a_source_and_every_source_a_file() {
        let files: BTreeSet<&str> =
            FILES.iter().filter_map(|(path, _)| path.strip_suffix(".cu")).collect();
        assert_eq!(ALL.iter().map(|source| source.name).collect::<BTreeSet<_>>(), files);
        assert!(ALL.iter().all(|source| !source.text().is_empty()));
    }
}
