//! Figures as files.

use std::path::Path;

use crate::base::error::{Error, Result};
use crate::base::files;
use crate::report::plot::{Figure, numbers, png, svg};

/// Format of a figure's file, determined by its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Scalable, as text.
    Svg,
    /// An image.
    Png,
    /// Its numbers as rows.
    Csv,
}

impl Form {
    /// The form that the extension of `path` names.
    pub fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|e| e.to_str()) {
            Some("svg") => Ok(Self::Svg),
            Some("png") => Ok(Self::Png),
            Some("csv") => Ok(Self::Csv),
            _ => Err(Error::input(format!("`{}` is no name of a figure", path.display()))
                .hint("figures end in .svg or .png, their numbers in .csv")),
        }
    }
}

/// Refuses, before there is a figure, a path that has no form or cannot be written.
///
/// # Errors
/// When its ending names no form, it is a folder, or there is no folder for it.
pub fn check(path: &Path) -> Result<()> {
    Form::of(path)?;
    if path.is_dir() {
        return Err(
            Error::input(format!("`{}` is a folder", path.display())).hint("name a file in it")
        );
    }
    files::check_folder(path)
}

/// Draws `figure` once and writes it to every path, in the form that its extension names. A file
/// that exists stays until the new one is whole.
pub fn write(figure: &Figure, paths: &[impl AsRef<Path>]) -> Result<()> {
    let text = svg(figure)?;
    for path in paths {
        let path = path.as_ref();
        match Form::of(path)? {
            Form::Svg => files::write(path, text.as_bytes())?,
            Form::Png => files::write(path, &png(&text)?)?,
            Form::Csv => files::write(path, numbers([figure])?.as_bytes())?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_is_the_form() {
        assert_eq!(Form::of(Path::new("a/b.svg")), Ok(Form::Svg));
        assert_eq!(Form::of(Path::new("b.png")), Ok(Form::Png));
        let error = Form::of(Path::new("b.pdf")).unwrap_err();
        assert_eq!(error.to_string(), "`b.pdf` is no name of a figure");
        let error = check(Path::new("/nowhere/a.svg")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot write `/nowhere/a.svg`: there is no folder `/nowhere`"
        );
        assert_eq!(check(Path::new("a.svg")), Ok(()));
        let error = check(Path::new("b.pdf")).unwrap_err();
        assert_eq!(error.hint_text(), Some("figures end in .svg or .png, their numbers in .csv"));
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let error = write(&Figure::default(), &["/nowhere/a.svg"]).unwrap_err();
        assert!(error.to_string().contains("/nowhere/a.svg"), "{error}");
    }
}
