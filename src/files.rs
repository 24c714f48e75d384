//! Files that appear whole under their names, or not at all.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// Symbolic links followed to a file that is not there yet.
const LINKS: usize = 40;

/// A temporary file that, once it has its name, may be read by whom the user's mask allows.
pub(crate) fn temporary_in(folder: &Path) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".bilu-bench-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(Permissions::from_mode(0o666)); // less the umask
    }
    // the temporary name, which the error holds, says nothing to the user
    builder.tempfile_in(folder).map_err(|e| {
        let cause = e.get_ref().and_then(|e| e.source()?.downcast_ref::<std::io::Error>());
        let code = cause.and_then(std::io::Error::raw_os_error);
        code.map_or(e, std::io::Error::from_raw_os_error)
    })
}

/// Lets `content` write a temporary file and then gives it the name `path`; yields it. A file that was
/// there is replaced where it lies behind symbolic links, and its permissions stay. What is no file (a
/// device, a pipe) is written to and stays what it is.
///
/// # Errors
/// Those of the system and of `content`. A file that was there is as it was then.
pub(crate) fn replace(
    path: &Path,
    content: impl FnOnce(&mut File) -> std::io::Result<()>,
) -> std::io::Result<File> {
    let (target, before) = target(path)?;
    if before.as_ref().is_some_and(is_stream) {
        let mut stream = OpenOptions::new().write(true).open(path)?;
        content(&mut stream)?;
        return Ok(stream);
    }
    let mut file = temporary_in(folder_of(&target).unwrap_or(Path::new(".")))?;
    if let Some(before) = before {
        file.as_file().set_permissions(before.permissions())?;
    }
    content(file.as_file_mut())?;
    Ok(file.persist(target)?)
}

/// Whether `path` leads to something that is neither a file nor a folder.
pub(crate) fn leads_to_stream(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| is_stream(&m))
}

/// Refuses a file that holds something, unless it may be overwritten (`force`).
///
/// # Errors
/// When it does.
pub(crate) fn refuse_existing(path: &Path, force: bool) -> Result<()> {
    if !force && std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() > 0) {
        return Err(exists(path).hint("--force overwrites it"));
    }
    Ok(())
}

/// Refuses a path whose folder is not there.
///
/// # Errors
/// Names the path and the folder.
pub(crate) fn check_folder(path: &Path) -> Result<()> {
    match folder_of(path).filter(|folder| !folder.is_dir()) {
        None => Ok(()),
        Some(folder) => {
            let (path, folder) = (path.display(), folder.display());
            Err(Error::input(format!("cannot write `{path}`: there is no folder `{folder}`"))
                .hint("create it first"))
        }
    }
}

/// The folder that `path` names; none for a bare name.
fn folder_of(path: &Path) -> Option<&Path> {
    path.parent().filter(|folder| !folder.as_os_str().is_empty())
}

/// That a file exists already.
pub(crate) fn exists(path: &Path) -> Error {
    Error::input(format!("`{}` exists already", path.display()))
}

fn is_stream(metadata: &Metadata) -> bool {
    !metadata.is_file() && !metadata.is_dir()
}

/// What `path` leads to past symbolic links, and what is there.
fn target(path: &Path) -> std::io::Result<(PathBuf, Option<Metadata>)> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok((path.canonicalize()?, Some(metadata))),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let mut target = path.to_owned();
            for _ in 0..LINKS {
                let Ok(next) = std::fs::read_link(&target) else { break };
                target = target.parent().unwrap_or(Path::new("")).join(next);
            }
            Ok((target, None))
        }
        Err(e) => Err(e),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    use super::*;

    fn write(path: &Path, text: &str) -> std::io::Result<File> {
        replace(path, |file| file.write_all(text.as_bytes()))
    }

    #[test]
    fn a_file_keeps_its_permissions_and_links_to_it_stay_links() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, new, to_new] =
            ["file", "link", "sub/new", "to-new"].map(|name| folder.path().join(name));
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        std::fs::write(&file, "before").unwrap();
        symlink("file", &link).unwrap();
        symlink("sub/new", &to_new).unwrap();
        for mode in [0o600, 0o640, 0o666] {
            std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            write(&link, "after").unwrap();
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o7777, mode);
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "after");
        write(&to_new, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&new).unwrap(), "new");
        assert!(link.is_symlink() && to_new.is_symlink() && !new.is_symlink());
        replace(&file, |_| Err(ErrorKind::Other.into())).unwrap_err();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "after");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "no file is left behind");
    }

    #[test]
    fn what_is_no_file_stays_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        // a socket cannot be opened; pipes, which can, are in the tests over the program
        write(&socket, "text").unwrap_err();
        assert!(std::fs::metadata(&socket).unwrap().file_type().is_socket());
        assert!(leads_to_stream(&socket) && !leads_to_stream(folder.path()));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
