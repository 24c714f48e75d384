//! The names that a user may write, gathered for `list`, help texts and error messages. Each list is
//! kept where its members are.

/// Names with one-line summaries.
pub type Names = &'static [(&'static str, &'static str)];

/// Solvers.
pub const SOLVERS: Names = crate::methods::solver::NAMES;

/// Preconditioners.
pub const PRECONDITIONERS: Names = crate::methods::precond::NAMES;

/// Backends.
pub const BACKENDS: Names = crate::compute::NAMES;

/// Orderings.
pub const ORDERINGS: Names = crate::symbolic::ordering::NAMES;

/// Storage formats of the matrix in the product.
pub(crate) const FORMATS: Names = &[
    ("auto", "the one of csr and bsr that holds fewer bytes"),
    ("csr", "scalar compressed sparse rows"),
    ("bsr", "block compressed sparse rows with the case's block size"),
    ("hyb", "ELLPACK for the entries that a third of the rows have, COO for the others"),
    ("sell", "sliced ELLPACK, rows sorted by length within windows"),
    ("dia", "whole diagonals, COO for the entries of sparsely filled ones"),
    ("bdia", "block diagonals of a box grid without indices, and wells behind the cells"),
    ("all", "each of these formats, one after the other"),
];

/// Variants of triangular solves on a GPU.
pub const TRISOLVES: Names = crate::compute::trisolve::NAMES;

/// Executions of FGBILU on a GPU.
pub(crate) const FGBILU_STYLES: Names = &[
    ("auto", "the backend's own; the only one on a CPU"),
    ("acc", "a thread per matrix element, every step a kernel (Luo et al., Algorithms 4, 6, 7)"),
    ("cl", "fused kernels with shared memory (Luo et al., Algorithms 8, 9, 10)"),
    ("tiles", "our block ILU(0): tiles of the box march through it"),
];

/// Executions of a solver on a GPU.
pub(crate) const EXECUTIONS: Names = &[
    ("fused", "a kernel per step, one read an iteration; the only one on a CPU"),
    ("calls", "a kernel per operation, every scalar read back, as with a library"),
    ("graph", "several iterations of bicgstab or qmr replayed as one CUDA graph"),
    ("persistent", "bicgstab and qmr as one kernel (Al-Mouhamed and Khan, section 6.4)"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parse::choices;
    use crate::case::{Execution, FgbiluStyle, Format};

    #[test]
    fn every_format_is_described() {
        let names: Vec<&str> = FORMATS.iter().map(|(name, _)| *name).collect();
        let (all, formats) = names.split_last().unwrap();
        assert_eq!(
            (*all, formats),
            ("all", &choices::<Format>()[..].iter().map(String::as_str).collect::<Vec<_>>()[..])
        );
    }

    #[test]
    fn every_style_is_described() {
        let names: Vec<&str> = FGBILU_STYLES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, choices::<FgbiluStyle>());
    }

    #[test]
    fn every_execution_is_described() {
        let names: Vec<&str> = EXECUTIONS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, choices::<Execution>());
    }
}
