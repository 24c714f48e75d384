//! Folders in which files of matrices are looked for.

use std::path::PathBuf;

use directories::ProjectDirs;

use crate::base::input::Compression;
use crate::matrix::file::ENDINGS;

/// Environment variable with the folders that are searched for matrices by name, separated as in
/// `PATH`.
pub(super) const MATRICES: &str = "BILU_BENCH_MATRICES";

/// Folders in which a name stands for `NAME.mtx`, `NAME.mtx.gz`, `NAME.npz` and so on.
#[derive(Clone, Debug, Default)]
pub struct Folders {
    /// Searched in this order.
    pub search: Vec<PathBuf>,
    /// Where downloads are put; searched last.
    pub data: Option<PathBuf>,
}

impl Folders {
    /// Those of `BILU_BENCH_MATRICES`, then the program's data folder.
    pub(crate) fn from_env() -> Self {
        let listed = std::env::var_os(MATRICES).unwrap_or_default();
        let search = std::env::split_paths(&listed).filter(|p| !p.as_os_str().is_empty()).collect();
        let data =
            ProjectDirs::from("", "", "bilu-bench").map(|dirs| dirs.data_dir().join("matrices"));
        Self { search, data }
    }

    /// The file of the matrix called `name`.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let folders = self.search.iter().chain(&self.data);
        let files = folders.flat_map(|f| ENDINGS.map(|e| f.join(format!("{name}{e}"))));
        files.into_iter().find(|f| f.is_file())
    }

    /// The file of the matrix called `name` that is packed in a way that is not read.
    pub(super) fn find_packed(&self, name: &str) -> Option<PathBuf> {
        let mut folders = self.search.iter().chain(&self.data);
        let of = |f: &PathBuf| {
            let file = |e| f.join(format!("{name}.mtx{e}"));
            Compression::endings(false).map(file).find(|path| path.is_file())
        };
        folders.find_map(of)
    }
}
