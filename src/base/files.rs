//! Files that appear whole under their names, or not at all.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::base::error::{Error, Result};

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
        let text = e.to_string();
        match (code, text.split_once(" at path ")) {
            (Some(code), _) => std::io::Error::from_raw_os_error(code),
            (None, Some((what, _))) => std::io::Error::new(e.kind(), what),
            (None, None) => e,
        }
    })
}

/// New contents of a file, whole beside it under a temporary name, until [`commit`](Self::commit) gives
/// them its name.
pub(crate) enum Replacement {
    /// With the name that they are to have.
    Beside(NamedTempFile, PathBuf),
    /// What is no file (a device, a pipe) was written to at once.
    Stream(File),
}

impl Replacement {
    /// Lets `content` write the new contents of `path`. A file that is there is to be replaced where it lies
    /// behind symbolic links, and to keep its permissions.
    ///
    /// # Errors
    /// Those of the system and of `content`. The file is as it was then.
    pub(crate) fn new(
        path: &Path,
        content: impl FnOnce(&mut File) -> std::io::Result<()>,
    ) -> std::io::Result<Self> {
        let (target, before) = target(path)?;
        if before.as_ref().is_some_and(is_stream) {
            let mut stream = OpenOptions::new().write(true).open(path)?;
            content(&mut stream)?;
            return Ok(Self::Stream(stream));
        }
        if before.as_ref().is_some_and(Metadata::is_dir) {
            return Err(ErrorKind::IsADirectory.into());
        }
        let mut file = temporary_in(folder_of(&target).unwrap_or(Path::new(".")))?;
        if let Some(before) = before {
            file.as_file().set_permissions(before.permissions())?;
        }
        content(file.as_file_mut())?;
        Ok(Self::Beside(file, target))
    }

    /// Puts them in the place of the file; yields it.
    ///
    /// # Errors
    /// Those of the system. The file is as it was then.
    pub(crate) fn commit(self) -> std::io::Result<File> {
        match self {
            Self::Beside(file, target) => Ok(file.persist(target)?),
            Self::Stream(stream) => Ok(stream),
        }
    }
}

/// Lets `content` write a temporary file and then gives it the name `path`; yields it. See [`Replacement`].
///
/// # Errors
/// Those of the system and of `content`. A file that was there is as it was then.
pub(crate) fn replace(
    path: &Path,
    content: impl FnOnce(&mut File) -> std::io::Result<()>,
) -> std::io::Result<File> {
    Replacement::new(path, content)?.commit()
}

/// Writes a file as a whole; one that was there stays until all of the new one is on disk.
///
/// # Errors
/// Names the file, and says that a full disk left it as it was.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = replace(path, |file| {
        file.write_all(bytes)?;
        synchronised(file)
    });
    written.map(drop).map_err(|e| {
        let error = Error::io("write", path, &e);
        match e.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                error.hint("there is no room for it; what was there before is as it was")
            }
            _ => error,
        }
    })
}

/// Waits until what was written is on disk; pipes and character devices have none.
pub(crate) fn synchronised(file: &File) -> std::io::Result<()> {
    match file.sync_data() {
        Err(e) if e.kind() == ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}

/// Whether a new file could be made at `path`, without making it.
///
/// # Errors
/// Those of the system.
pub(crate) fn probe(path: &Path) -> std::io::Result<()> {
    let (target, _) = target(path)?;
    temporary_in(folder_of(&target).unwrap_or(Path::new("."))).map(drop)
}

/// Whether two paths lead to one file, by symbolic links, by hard links or because they are two ways to
/// write the same. Devices and pipes are shared, and not meant.
pub(crate) fn same(a: &Path, b: &Path) -> bool {
    match (std::fs::metadata(a), std::fs::metadata(b)) {
        (Ok(one), Ok(other)) => {
            let linked = || a.canonicalize().ok() == b.canonicalize().ok();
            !is_stream(&one) && one_inode(&one, &other).unwrap_or_else(linked)
        }
        (Err(_), Err(_)) => place(a).is_some_and(|place_of_a| place(b) == Some(place_of_a)),
        _ => false,
    }
}

/// Whether `file` is what `path` leads to still.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(one), Ok(other)) => one_inode(&one, &other).unwrap_or(true),
        _ => false,
    }
}

/// Where a file that is not there would be made.
fn place(path: &Path) -> Option<PathBuf> {
    let (target, _) = target(path).ok()?;
    let folder = folder_of(&target).unwrap_or(Path::new(".")).canonicalize().ok()?;
    Some(folder.join(target.file_name()?))
}

/// Whether both are of one file; `None` where the system has no numbers for files.
#[cfg(unix)]
#[allow(clippy::unnecessary_wraps, reason = "other systems cannot tell")]
fn one_inode(a: &Metadata, b: &Metadata) -> Option<bool> {
    use std::os::unix::fs::MetadataExt;
    Some((a.dev(), a.ino()) == (b.dev(), b.ino()))
}

#[cfg(not(unix))]
fn one_inode(_: &Metadata, _: &Metadata) -> Option<bool> {
    None
}

/// Refuses outputs of which one is an input, or two are one file.
///
/// # Errors
/// Names both.
pub(crate) fn refuse_overlap(outputs: &[impl AsRef<Path>], inputs: &[PathBuf]) -> Result<()> {
    for (i, output) in outputs.iter().enumerate() {
        let output = output.as_ref();
        if let Some(input) = inputs.iter().find(|input| same(output, input)) {
            return Err(Error::input(match output.display().to_string() {
                name if *name == *input.display().to_string() => {
                    format!("`{name}` is read, and cannot be written as well")
                }
                name => {
                    format!("`{name}` is the same file as `{}`, which is read", input.display())
                }
            })
            .hint("write to another file"));
        }
        let twin = outputs[..i].iter().map(AsRef::as_ref).find(|twin| same(twin, output));
        if let Some(twin) = twin.filter(|twin| *twin != output) {
            let (a, b) = (twin.display(), output.display());
            return Err(
                Error::input(format!("`{b}` is the same file as `{a}`")).hint("give it once")
            );
        }
    }
    Ok(())
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
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    use super::*;

    fn put(path: &Path, text: &str) -> std::io::Result<File> {
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
            put(&link, "after").unwrap();
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o7777, mode);
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "after");
        put(&to_new, "new").unwrap();
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
        put(&socket, "text").unwrap_err();
        assert!(std::fs::metadata(&socket).unwrap().file_type().is_socket());
        assert!(leads_to_stream(&socket) && !leads_to_stream(folder.path()));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn one_file_under_two_names_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a"), "").unwrap();
        std::fs::write(at("b"), "").unwrap();
        std::fs::hard_link(at("a"), at("hard")).unwrap();
        symlink("a", at("soft")).unwrap();
        symlink("new", at("to-new")).unwrap();
        let one = |a: &str, b: &str| same(&at(a), &at(b));
        assert!(one("a", "a") && one("a", "hard") && one("hard", "soft") && one("new", "to-new"));
        assert!(one("a", "./a") && one("new", "./new"));
        assert!(!one("a", "b") && !one("a", "new") && !one("new", "newer") && !one("no/a", "a"));
        assert!(!same(Path::new("/dev/null"), Path::new("/dev/null")), "a stream is shared");

        let refused = |outputs: &[&str], inputs: &[&str]| {
            let [outputs, inputs] = [outputs, inputs].map(|n| n.iter().map(|n| at(n)).collect());
            let outputs: Vec<PathBuf> = outputs;
            let error = refuse_overlap(&outputs, &inputs).err()?;
            Some(error.to_string().replace(&format!("{}/", folder.path().display()), ""))
        };
        assert_eq!(refused(&["b"], &["a", "hard"]), None);
        assert_eq!(refused(&["b", "b"], &[]), None, "it is dropped elsewhere");
        let found = refused(&["a"], &["a"]);
        assert_eq!(found.as_deref(), Some("`a` is read, and cannot be written as well"));
        let found = refused(&["b", "soft"], &["hard"]);
        assert_eq!(found.as_deref(), Some("`soft` is the same file as `hard`, which is read"));
        let found = refused(&["a", "b", "hard"], &[]);
        assert_eq!(found.as_deref(), Some("`hard` is the same file as `a`"));
    }

    #[test]
    fn a_write_that_fails_half_way_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "before").unwrap();
        let full = |file: &mut File| {
            file.write_all(b"half of wh")?;
            Err(ErrorKind::StorageFull.into())
        };
        assert_eq!(replace(&path, full).unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no file is left behind");
        super::write(&path, b"after").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "after");
    }
}
