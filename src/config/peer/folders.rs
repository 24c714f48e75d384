//! Folders in which descriptions of peers are looked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use directories::ProjectDirs;

use super::Peer;
use crate::base::error::{Error, Result};
use crate::base::external::external;
use crate::compute;

/// Environment variable with the folders, separated as in `PATH`.
pub(crate) const VARIABLE: &str = "BILU_BENCH_PEERS";

/// The folder of the repository, from its root.
const OWN: &str = "scripts/peers";

/// The folder of the command line.
static GIVEN: OnceLock<PathBuf> = OnceLock::new();

/// Searches this folder first. Call it once.
///
/// # Errors
/// When there is no such folder.
pub(crate) fn give_folder(folder: &Path) -> Result<()> {
    let absolute = std::path::absolute(folder).map_err(|e| Error::io("find", folder, &e))?;
    if !absolute.is_dir() {
        let name = folder.display();
        return Err(Error::input(format!("there is no folder `{name}`")).in_file("--peers"));
    }
    // a second call would be of the same command line
    GIVEN.get_or_init(|| absolute);
    Ok(())
}

/// Folders with descriptions `NAME.toml`, searched in this order.
#[derive(Clone, Debug)]
pub(crate) struct Folders(pub(crate) Vec<PathBuf>);

impl Folders {
    /// That of the command line, those of `BILU_BENCH_PEERS`, the program's data folder, and `scripts/peers` of
    /// the working directory.
    pub(crate) fn known() -> Self {
        let listed = std::env::var_os(VARIABLE).unwrap_or_default();
        let listed = std::env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty());
        let data =
            ProjectDirs::from("", "", "bilu-bench").map(|dirs| dirs.data_dir().join("peers"));
        let own = std::path::absolute(OWN).ok();
        let folders = GIVEN.get().cloned().into_iter().chain(listed).chain(data).chain(own);
        Self(folders.collect())
    }

    /// The descriptions by their names.
    fn files(&self) -> BTreeMap<String, PathBuf> {
        let mut found = BTreeMap::new();
        for folder in &self.0 {
            for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path())
            {
                let name = path.file_stem().and_then(|name| name.to_str());
                if path.extension().is_some_and(|e| e == "toml")
                    && path.is_file()
                    && let Some(name) = name
                {
                    found.entry(name.to_owned()).or_insert(path);
                }
            }
        }
        found
    }

    /// The peer called `name`.
    ///
    /// # Errors
    /// When there is none, or its description is wrong.
    pub(super) fn find(&self, name: &str) -> Result<Peer> {
        let files = self.files();
        if let Some(file) = files.get(name) {
            return Peer::open(name, file);
        }
        let known: Vec<&str> = files.keys().map(String::as_str).collect();
        let error = Error::unknown("peer", name, &known);
        let where_to =
            format!("it is described in `{name}.toml`, in a folder of --peers or {VARIABLE}");
        Err(if known.is_empty() { error.hint(where_to) } else { error })
    }
}

/// As [`compute::available`], of peers, too: that a peer is described, not that its program runs.
///
/// # Errors
/// As [`find`].
pub(crate) fn available(backend: &str) -> Result<()> {
    match external(backend) {
        Some(peer) => find(peer).map(drop),
        None => compute::available(backend),
    }
}

/// The peer called `name` in the known folders.
///
/// # Errors
/// As [`Folders::find`].
pub(crate) fn find(name: &str) -> Result<Peer> {
    Folders::known().find(name)
}

/// The peers of these names, or with `all` every one in the known folders.
///
/// # Errors
/// As [`find`], of a name.
pub(crate) fn named(names: &[String]) -> Result<Vec<(String, Result<Peer>)>> {
    let mut found: Vec<(String, Result<Peer>)> = Vec::new();
    for name in names {
        let name = external(name).unwrap_or(name);
        let more = if name == "all" { all() } else { vec![(name.to_owned(), Ok(find(name)?))] };
        for peer in more {
            if found.iter().all(|(known, _)| *known != peer.0) {
                found.push(peer);
            }
        }
    }
    Ok(found)
}

/// Every peer in the known folders, by name.
pub(crate) fn all() -> Vec<(String, Result<Peer>)> {
    let files = Folders::known().files();
    files
        .into_iter()
        .map(|(name, file)| {
            let peer = Peer::open(&name, &file);
            (name, peer)
        })
        .collect()
}
