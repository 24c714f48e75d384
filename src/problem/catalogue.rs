//! The catalogue of known matrices, `matrices/index.toml`.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// A matrix with what is published about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Entry {
    /// Name, unique.
    pub name: String,
    /// Group in the SuiteSparse collection; none when it is not there.
    pub group: Option<String>,
    /// Rows and columns.
    pub n: usize,
    /// Nonzero entries of the whole matrix, both triangles.
    pub nnz: usize,
    /// Further entries that are stored but zero.
    #[serde(default)]
    pub explicit_zeros: usize,
    /// Whether the values are symmetric.
    pub symmetric: bool,
    /// Whether it is symmetric positive definite; none when not published.
    pub positive_definite: Option<bool>,
    /// What it comes from.
    pub kind: String,
    /// Unknowns per grid point or node, where known.
    pub block: Option<usize>,
    /// A generated matrix of the same size.
    pub twin: Option<String>,
    /// Where it is from.
    pub source: String,
    /// Licence of the data.
    pub licence: String,
}

#[derive(Deserialize)]
struct Index {
    matrix: Vec<Entry>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    toml::from_str(include_str!("../../matrices/index.toml")).expect("a test reads the index")
});

/// All matrices, in the order of the file.
pub fn entries() -> &'static [Entry] {
    &INDEX.matrix
}

/// The matrix called `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    entries().iter().find(|e| e.name == name)
}

impl Entry {
    /// Whether a coordinate file with this size line can be the matrix: `stored` entries of an
    /// n x n matrix, of which one triangle where `symmetric`.
    ///
    /// A triangle holds half of the off-diagonal entries and up to n diagonal ones.
    pub fn fits(&self, rows: usize, cols: usize, stored: usize, symmetric: bool) -> bool {
        let all = self.nnz + self.explicit_zeros;
        let entries =
            if symmetric { all.div_ceil(2)..=usize::midpoint(all, self.n) } else { all..=all };
        rows == self.n && cols == self.n && entries.contains(&stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::choices::ReadAs;
    use crate::matrix::cache::Cache;
    use crate::problem::{Folders, Source};

    #[test]
    fn index_is_complete_and_names_are_unique() {
        let names: std::collections::BTreeSet<_> = entries().iter().map(|e| &e.name).collect();
        assert_eq!((names.len(), entries().len()), (52, 52));
        for e in entries() {
            assert!(e.n > 0 && e.nnz > 0 && !e.kind.is_empty() && !e.source.is_empty());
            assert!(e.block.is_none_or(|b| e.n.is_multiple_of(b)), "{}", e.name);
        }
    }

    #[test]
    fn twins_have_the_size_of_their_matrix() {
        let twins: Vec<_> = entries().iter().filter(|e| e.twin.is_some()).collect();
        let names: Vec<_> = twins.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["parabolic_fem", "atmosmodd"]);
        for e in twins {
            let source = Source::find(e.twin.as_ref().unwrap(), &Folders::default()).unwrap();
            let matrix = source.load(ReadAs::Expanded, &Cache::off()).unwrap().matrix;
            assert_eq!((matrix.rows(), matrix.nnz()), (e.n, e.nnz), "{}", e.name);
        }
    }

    #[test]
    fn size_lines_are_compared_with_the_published_counts() {
        let fem = find("parabolic_fem").unwrap();
        assert!(fem.fits(525_825, 525_825, 2_100_225, true));
        assert!(!fem.fits(525_825, 525_825, 2_100_226, true));
        assert!(!fem.fits(525_825, 525_825, 2_100_225, false));
        let steam = find("steam2").unwrap();
        assert!(steam.fits(600, 600, 13_760, false));
        assert!(!steam.fits(600, 600, 5_660, false));
    }
}
