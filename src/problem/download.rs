//! Fetching matrices from the SuiteSparse Matrix Collection.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::read::GzDecoder;
use tar::EntryType;
use tempfile::NamedTempFile;

use crate::base::error::{Error, Result};
use crate::base::files;
use crate::base::files::temporary_in;
use crate::matrix::cache::sha256;
use crate::matrix::market;

use super::catalogue::{self, Entry};

/// Environment variable with another server that is laid out like the collection.
pub(crate) const SUITESPARSE: &str = "BILU_BENCH_SUITESPARSE";
/// The collection.
pub const BASE_URL: &str = "https://sparse.tamu.edu";

/// Most bytes of an archive.
const LARGEST: u64 = 8 << 30;
/// Most bytes of text for each stored entry, and for what precedes them.
const ENTRY_BYTES: u64 = 80;
const COMMENT_BYTES: u64 = 1 << 20;

/// Fetches the matrix called `name` into `folder` and yields the path of its file.
///
/// `base_url` stands for the server, [`BASE_URL`] or what `BILU_BENCH_SUITESPARSE` says. The
/// archive is streamed to a temporary file; only the matrix and its right-hand side are unpacked,
/// and they get their names when the size line agrees with the catalogue. The SHA-256 of the
/// matrix is written beside it. `progress` is told the bytes received and the bytes announced.
///
/// # Errors
/// When the name is unknown or not in the collection, the server cannot be reached or does not
/// have it, or the archive is not what the catalogue says.
pub fn get(
    name: &str,
    base_url: &str,
    folder: &Path,
    progress: &mut dyn FnMut(u64, Option<u64>),
) -> Result<PathBuf> {
    let Some(entry) = catalogue::find(name) else {
        let names: Vec<&str> = catalogue::entries().iter().map(|e| e.name.as_str()).collect();
        let hint = match crate::base::error::nearest(name, &names) {
            Some(best) => format!("did you mean `{best}`? `bilu-bench matrix list` shows all"),
            None => "`bilu-bench matrix list` shows all".into(),
        };
        return Err(Error::input(format!("unknown catalogue matrix `{name}`")).hint(hint));
    };
    let Some(group) = &entry.group else {
        return Err(Error::input(format!("`{name}` cannot be fetched: it is not in SuiteSparse"))
            .hint(format!("its source: {}", entry.source)));
    };
    let url = format!("{}/MM/{group}/{name}.tar.gz", base_url.trim_end_matches('/'));
    std::fs::create_dir_all(folder).map_err(|e| Error::io("create", folder, &e))?;
    let archive = fetch(entry, &url, folder, progress)?;
    unpack(entry, &url, archive.path(), folder)
}

/// Adds what to do instead.
fn or_twin(entry: &Entry, error: Error) -> Error {
    match &entry.twin {
        Some(twin) => error.hint(format!("use the twin `{twin}`, which needs no download")),
        None => error.hint("check the network, or choose a server with --base-url"),
    }
}

/// Streams `url` to a temporary file in `folder`.
fn fetch(
    entry: &Entry,
    url: &str,
    folder: &Path,
    progress: &mut dyn FnMut(u64, Option<u64>),
) -> Result<NamedTempFile> {
    let failed = |why: String| or_twin(entry, Error::input(format!("cannot fetch {url}: {why}")));
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_connect(Some(Duration::from_secs(20)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        .user_agent(concat!("bilu-bench/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let response = agent.get(url).call().map_err(|e| failed(e.to_string()))?;
    let announced = response
        .headers()
        .get("content-length")
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.parse::<u64>().ok());
    let mut body = response.into_body().into_reader();
    let cannot_write = |e: &std::io::Error| Error::io("write into", folder, e);
    let mut file = temporary_in(folder).map_err(|e| cannot_write(&e))?;
    let mut received = 0;
    let mut block = vec![0; 1 << 16];
    loop {
        let count = body.read(&mut block).map_err(|e| failed(format!("broken off: {e}")))?;
        if count == 0 {
            break;
        }
        file.write_all(&block[..count]).map_err(|e| cannot_write(&e))?;
        received += count as u64;
        progress(received, announced);
        if received > LARGEST {
            return Err(failed(format!("more than {LARGEST} bytes")));
        }
    }
    match announced {
        Some(total) if total != received => {
            Err(failed(format!("broken off after {received} of {total} bytes")))
        }
        _ => Ok(file),
    }
}

/// Takes the matrix and its right-hand side out of `archive` and moves them into `folder`.
fn unpack(entry: &Entry, url: &str, archive: &Path, folder: &Path) -> Result<PathBuf> {
    let name = &entry.name;
    let bad = |what: String| Error::input(format!("{url} is not usable: {what}"));
    let broken = |e: &std::io::Error| bad(format!("the archive is damaged: {e}"));
    let cannot_write = |e: &std::io::Error| Error::io("write into", folder, e);
    let limit = COMMENT_BYTES + ENTRY_BYTES * (entry.nnz + entry.explicit_zeros + entry.n) as u64;
    let wanted = [format!("{name}.mtx"), format!("{name}_b.mtx")];
    let mut found: [Option<NamedTempFile>; 2] = [None, None];

    let file = File::open(archive).map_err(|e| Error::io("open", archive, &e))?;
    let mut archive = tar::Archive::new(GzDecoder::new(file));
    for member in archive.entries().map_err(|e| broken(&e))? {
        let member = member.map_err(|e| broken(&e))?;
        let path = member.path().map_err(|e| broken(&e))?.into_owned();
        if !is_harmless(&path) {
            return Err(bad(format!("it holds the path `{}`", path.display())));
        }
        let Some(slot) = wanted.iter().position(|w| path == Path::new(name).join(w)) else {
            continue;
        };
        if member.header().entry_type() != EntryType::Regular {
            return Err(bad(format!("`{}` is not a regular file", path.display())));
        }
        if member.size() > limit {
            let (path, size) = (path.display(), member.size());
            return Err(bad(format!("`{path}` is too large: {size} bytes, at most {limit}")));
        }
        let mut out = temporary_in(folder).map_err(|e| cannot_write(&e))?;
        copy(member, out.as_file_mut(), &broken, &cannot_write)?;
        found[slot] = Some(out);
    }
    // to the end of the stream, where its checksum is
    std::io::copy(&mut archive.into_inner(), &mut std::io::sink()).map_err(|e| broken(&e))?;

    let [matrix, rhs] = found;
    let matrix = matrix.ok_or_else(|| bad(format!("it does not hold `{name}/{name}.mtx`")))?;
    let size = market::read_size(matrix.path()).map_err(|e| bad(e.message().to_owned()))?;
    let symmetric = size.symmetry != market::Symmetry::General;
    if !entry.fits(size.rows, size.cols, size.entries, symmetric) {
        return Err(bad(format!(
            "it declares {} x {} with {} entries, which is not the {name} of the catalogue",
            size.rows, size.cols, size.entries
        )));
    }
    let digest = File::open(matrix.path()).and_then(|mut f| sha256(&mut f));
    let digest = digest.map_err(|e| Error::io("read", matrix.path(), &e))?;
    let note = folder.join(format!("{name}.mtx.sha256"));
    files::write(&note, format!("{digest}  {name}.mtx\n").as_bytes())?;
    for (file, name) in [rhs, Some(matrix)].into_iter().zip([&wanted[1], &wanted[0]]) {
        if let Some(file) = file {
            file.persist(folder.join(name)).map_err(|e| cannot_write(&e.error))?;
        }
    }
    Ok(folder.join(&wanted[0]))
}

/// Copies with the errors of both sides kept apart.
fn copy(
    mut from: impl Read,
    to: &mut File,
    broken: &impl Fn(&std::io::Error) -> Error,
    cannot_write: &impl Fn(&std::io::Error) -> Error,
) -> Result<()> {
    let mut block = vec![0; 1 << 16];
    loop {
        match from.read(&mut block).map_err(|e| broken(&e))? {
            0 => return Ok(()),
            count => to.write_all(&block[..count]).map_err(|e| cannot_write(&e))?,
        }
    }
}

/// Whether a path of an archive stays below the folder it is unpacked in.
fn is_harmless(path: &Path) -> bool {
    use std::path::Component::{CurDir, Normal};
    path.components().all(|c| matches!(c, Normal(_) | CurDir))
}
