//! The names that a user may write, gathered for `list`, help texts and error messages. Each list is
//! kept where its members are.

/// Names with one-line summaries.
pub type Names = &'static [(&'static str, &'static str)];

/// Solvers.
pub const SOLVERS: Names = crate::solver::NAMES;

/// Preconditioners.
pub const PRECONDITIONERS: Names = crate::precond::NAMES;

/// Backends.
pub const BACKENDS: Names = crate::backend::NAMES;

/// Storage formats of the matrix in the product.
pub const FORMATS: Names = &[
    ("auto", "the one of csr and bsr that holds fewer bytes"),
    ("csr", "scalar compressed sparse rows"),
    ("bsr", "block compressed sparse rows with the case's block size"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Format;
    use crate::config::parse::choices;

    #[test]
    fn every_format_is_described() {
        let names: Vec<&str> = FORMATS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, choices::<Format>());
    }
}
