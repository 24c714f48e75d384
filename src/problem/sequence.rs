//! Sequences of systems: matrices of one size, one after the other, as a simulation has them.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use glob::Pattern;

use super::file::{self, is_path, stem};
use super::rhs::no_own;
use super::{Folders, Source, generators};
use crate::base::error::{Error, Result};
use crate::base::input::is_stdin;
use crate::base::parse::whole;
use crate::matrix::file::is_market;
use crate::matrix::market;

/// Most steps of a sequence.
const MOST: usize = 10_000;

/// Matrices of the steps that `word` stands for, in their order: the files of a pattern (`dump_*.mtx.gz`) by the
/// numbers in their names, without the right-hand sides beside them; time steps 1 to N of a generator
/// (`reservoir:20,steps=N`); or one matrix.
///
/// # Errors
/// When nothing is called so, or the generator has no time steps.
pub(crate) fn steps(word: &str) -> Result<Vec<String>> {
    if is_stdin(Path::new(word)) {
        return Err(Error::input("standard input is no step of a sequence").hint("name a file"));
    }
    let (name, arguments) = word.split_once(':').unwrap_or((word, ""));
    if let Some(generator) = generators::find(name) {
        let has_steps = generator.parameters.iter().any(|parameter| parameter.key == "step");
        let (counts, others): (Vec<&str>, Vec<&str>) =
            arguments.split(',').partition(|argument| argument.trim().starts_with("steps="));
        return match counts.as_slice() {
            _ if !has_steps => Err(Error::input(format!("`{name}` has no time steps"))
                .hint("`reservoir:20,steps=20` has; files are named by a pattern")),
            [count] if !others.iter().any(|other| other.trim().starts_with("step=")) => {
                let count = whole(count.trim().trim_start_matches("steps="), 1, MOST)?;
                let all = others.join(",");
                Ok((1..=count).map(|step| format!("{name}:{all},step={step}")).collect())
            }
            _ => Err(Error::input(format!("`{word}` does not say how many time steps"))
                .hint(format!("write `{name}:SIZE,steps=20`"))),
        };
    }
    if is_pattern(word) && !Path::new(word).is_file() {
        files(word)
    } else {
        Ok(vec![word.to_owned()])
    }
}

fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?', '['])
}

/// A word of a sequence that is named in a file of `folder`: a relative path counts from there.
pub(crate) fn located(word: &str, folder: &Path) -> String {
    let name = word.split(':').next().unwrap_or_default();
    let pattern = is_pattern(word) && !folder.join(word).is_file();
    if !pattern || generators::find(name).is_some() || Path::new(word).is_absolute() {
        return super::located(word, folder);
    }
    let folder = Pattern::escape(&folder.display().to_string());
    Path::new(&folder).join(word).display().to_string()
}

/// The matrices that match a pattern.
fn files(pattern: &str) -> Result<Vec<String>> {
    let found = glob::glob(pattern).map_err(|e| {
        Error::input(format!("`{pattern}` is no pattern: {}", e.msg))
            .hint("`*` stands for any characters, `?` for one, `[0-9]` for a digit")
    })?;
    let mut paths = Vec::new();
    for path in found {
        let path = path.map_err(|e| Error::io("read", e.path(), e.error()))?;
        // a link to nothing is a step that is lost
        if path.is_file() || path.symlink_metadata().is_ok_and(|m| m.is_symlink()) && !path.exists()
        {
            paths.push(path);
        }
    }
    let mut steps = Vec::new();
    for path in paths.iter().filter(|path| !is_beside_another(path, &paths)) {
        let text = path.to_str().ok_or_else(|| {
            Error::input(format!("the matrix `{}` has no UTF-8 name", path.display()))
        })?;
        // what has no ending of a matrix is one where its name cannot be another's
        let spec = if is_path(text) { text.to_owned() } else { format!("./{text}") };
        steps.push(spec);
    }
    if steps.is_empty() {
        return Err(Error::input(format!("no matrix matches `{pattern}`")));
    }
    if steps.len() > MOST {
        let message = format!("{} files match `{pattern}`: the limit is {MOST}", steps.len());
        return Err(Error::input(message));
    }
    steps.sort_by(|a, b| by_numbers(a, b));
    Ok(steps)
}

/// Looks at the first lines of the file of a step, from 0: its size must be `expected`, and with `own` there must be a
/// right-hand side beside it. The size; `None` where the step is in no file of Matrix Market: then it is told when the
/// step is loaded.
///
/// # Errors
/// When one of both is not so, or the file cannot be read.
pub(crate) fn check_step(
    matrix: &str,
    number: usize,
    expected: Option<usize>,
    own: bool,
) -> Result<Option<usize>> {
    let Source::File(path) = Source::find(matrix, &Folders::from_env())? else { return Ok(None) };
    let rhs = own.then(|| file::own_rhs_path(&path).ok_or_else(|| no_own(&stem(&path), &[])));
    let rhs = rhs.transpose()?;
    if !is_market(&path)? {
        return Ok(None);
    }
    let size = market::read_size(&path)?;
    file::check_square(&path, [size.rows, size.cols])?;
    if let Some(expected) = expected.filter(|expected| *expected != size.rows) {
        return Err(other_size(&path.display().to_string(), number, size.rows, expected));
    }
    if let Some(rhs) = rhs
        && is_market(&rhs)?
    {
        file::check_length(&rhs, market::read_size(&rhs)?.rows, size.rows)?;
    }
    Ok(Some(size.rows))
}

/// The error of a step, from 0, with another number of unknowns than the first.
pub(crate) fn other_size(matrix: &str, number: usize, rows: usize, first: usize) -> Error {
    let step = number + 1;
    Error::input(format!("step {step} of the sequence has {rows} unknowns, step 1 has {first}"))
        .in_file(matrix)
        .hint("all systems of a sequence have one size")
}

/// Whether a file is called as the right-hand side of another one.
fn is_beside_another(path: &Path, paths: &[PathBuf]) -> bool {
    let own = stem(path);
    let of = ["_rhs", "_b"].into_iter().find_map(|ending| own.strip_suffix(ending));
    of.is_some_and(|of| {
        paths.iter().any(|other| other.parent() == path.parent() && stem(other) == of)
    })
}

/// Order of names in which runs of digits count as numbers: `dump_2` before `dump_10`.
fn by_numbers(a: &str, b: &str) -> Ordering {
    let (mut x, mut y) = (a, b);
    while let (Some(c), Some(d)) = (x.chars().next(), y.chars().next()) {
        let (left, right) = (digits(x), digits(y));
        let order = if left.is_empty() || right.is_empty() {
            (x, y) = (&x[c.len_utf8()..], &y[d.len_utf8()..]);
            c.cmp(&d)
        } else {
            (x, y) = (&x[left.len()..], &y[right.len()..]);
            let [left, right] = [left, right].map(|digits| digits.trim_start_matches('0'));
            left.len().cmp(&right.len()).then(left.cmp(right))
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    x.len().cmp(&y.len()).then_with(|| a.cmp(b))
}

/// The digits that a text begins with.
fn digits(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn files_of_a_pattern_are_in_the_order_of_their_numbers_without_right_hand_sides() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "d_1.mtx",
            "d_2.mtx",
            "d_10.mtx",
            "d_010.mtx",
            "d_2_rhs.mtx",
            "d_10_b.mtx.gz",
            "d_b.mtx",
            "e.mtx",
        ];
        for name in names {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        std::fs::create_dir(folder.path().join("d_3.mtx")).unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let want = ["d_1.mtx", "d_2.mtx", "d_010.mtx", "d_10.mtx", "d_b.mtx"].map(at);
        assert_eq!(steps(&at("d_*")).unwrap(), want);
        // a file that is called as a pattern is one
        std::fs::write(folder.path().join("[x].mtx"), "").unwrap();
        assert_eq!(steps(&at("[x].mtx")).unwrap(), [at("[x].mtx")]);
        let none = at("x*.mtx");
        assert_eq!(steps(&none).unwrap_err().message(), format!("no matrix matches `{none}`"));
        let bad = steps("a[.mtx").unwrap_err();
        assert_eq!(bad.message(), "`a[.mtx` is no pattern: invalid range pattern");
    }

    #[test]
    fn time_steps_are_those_of_a_generator() {
        let made = steps("reservoir:4x5x6,steps=3,k=2").unwrap();
        let want = [1, 2, 3].map(|step| format!("reservoir:4x5x6,k=2,step={step}"));
        assert_eq!(made, want);
        assert_eq!(steps("a/b.mtx").unwrap(), ["a/b.mtx"]);
        let message = |word| steps(word).unwrap_err().to_string();
        assert_eq!(message("poisson3d:4,steps=3"), "`poisson3d` has no time steps");
        let how_many = |word: &str| format!("`{word}` does not say how many time steps");
        for word in ["reservoir:4", "reservoir:4,step=2", "reservoir:4,steps=2,step=1"] {
            assert_eq!(message(word), how_many(word));
        }
        assert_eq!(message("reservoir:4,steps=0"), "`0` is outside 1 to 10000");
        assert_eq!(message("-"), "standard input is no step of a sequence");
    }

    #[test]
    fn relative_patterns_count_from_the_folder_of_their_file() {
        let folder = Path::new("/x[1]");
        assert_eq!(located("d_*.mtx", folder), "/x[[]1[]]/d_*.mtx");
        assert_eq!(located("/y/d_*.mtx", folder), "/y/d_*.mtx");
        assert_eq!(located("d.mtx", folder), "/x[1]/d.mtx");
        assert_eq!(located("reservoir:4,steps=2", folder), "reservoir:4,steps=2");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn names_have_one_order(mut names in prop::collection::vec("[ab_]{0,2}[0-9]{0,3}[ab0-9]{0,3}", 3)) {
            for a in &names {
                for b in &names {
                    prop_assert_eq!(by_numbers(a, b), by_numbers(b, a).reverse());
                    prop_assert_eq!(by_numbers(a, b) == Ordering::Equal, a == b);
                }
            }
            names.sort_by(|a, b| by_numbers(a, b));
            prop_assert!(by_numbers(&names[0], &names[2]) != Ordering::Greater);
        }

        #[test]
        fn numbers_decide(a in 0_u32..2000, b in 0_u32..2000) {
            let [x, y] = [a, b].map(|i| format!("t{i}.mtx"));
            prop_assert_eq!(by_numbers(&x, &y), a.cmp(&b));
        }
    }
}
