//! Words that programs beside this one give their own things: `external:WORD`.

use crate::base::error::{Error, Result};

/// What stands before such a word.
pub(crate) const PREFIX: &str = "external:";

/// Longest word.
const LONGEST: usize = 64;

/// The word behind `external:`; `None` for names of this program.
pub fn external(name: &str) -> Option<&str> {
    name.strip_prefix(PREFIX)
}

/// Checks a word as a part of a file name and of a list.
///
/// # Errors
/// When it is empty, long or has other characters than letters, digits and `-_.+`.
pub fn check(name: &str) -> Result<()> {
    let word = external(name).unwrap_or(name);
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    let begins = word.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    if begins && word.len() <= LONGEST && word.chars().all(fits) {
        return Ok(());
    }
    Err(Error::input(format!("`{name}` is not `{PREFIX}WORD`"))
        .hint("a word of at most 64 letters, digits, `-`, `_`, `.` and `+`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_parts_of_file_names() {
        assert_eq!((external("external:a"), external("gmres")), (Some("a"), None));
        for good in ["external:petsc-2", "external:a.b_c+d", "external:7"] {
            assert_eq!(check(good), Ok(()));
        }
        for bad in ["external:", "external:../a", "external:a/b", "external:a b", "external:.a"] {
            let error = check(bad).unwrap_err();
            assert_eq!(error.to_string(), format!("`{bad}` is not `external:WORD`"));
        }
        assert!(check(&format!("external:{}", "x".repeat(65))).is_err());
    }
}
