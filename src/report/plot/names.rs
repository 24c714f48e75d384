//! Names of systems in figures: a matrix file is called by the end of its path.

use std::collections::{BTreeSet, HashMap};

use crate::matrix::file::ENDINGS;
use crate::record::Record;

/// The shortest names that tell the matrices and the right-hand sides of some records apart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(HashMap<String, String>);

impl Names {
    /// Of everything that `records` were run on.
    pub(crate) fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let cases = records.into_iter().map(|r| &r.case);
        let (mut matrices, mut sides) = (BTreeSet::new(), BTreeSet::new());
        for case in cases {
            matrices.insert(case.matrix.as_str());
            sides.insert(case.rhs.as_str());
        }
        let mut names = HashMap::new();
        // a right-hand side may be called as its matrix
        for specs in [matrices, sides] {
            let specs: Vec<&str> = specs.into_iter().collect();
            names.extend(shortest(&specs));
        }
        Self(names)
    }

    /// The name of `spec`, a matrix or a right-hand side: itself where it is no file.
    pub(crate) fn get<'a>(&'a self, spec: &'a str) -> &'a str {
        self.0.get(spec).map_or(spec, String::as_str)
    }
}

/// Each of `specs` that is a file with its shortest name that no other one has.
fn shortest(specs: &[&str]) -> Vec<(String, String)> {
    let forms: Vec<Vec<String>> = specs.iter().map(|spec| forms(spec)).collect();
    // how many have a name in one of their forms
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for own in &forms {
        for form in own.iter().collect::<BTreeSet<_>>() {
            *counts.entry(form).or_default() += 1;
        }
    }
    let name = |(spec, own): (&&str, &Vec<String>)| {
        let found = own.iter().find(|form| counts[form.as_str()] == 1)?;
        Some(((*spec).to_owned(), found.clone()))
    };
    specs.iter().zip(&forms).filter_map(name).collect()
}

/// What a matrix may be called, shortest first: of `/a/b.mtx.gz` these are `b`, `a/b`, `b.mtx.gz` and
/// the path. What is no file has one name.
fn forms(spec: &str) -> Vec<String> {
    let (kind, path) = match spec.split_once(':') {
        Some((kind, path)) if !kind.contains('/') => (&spec[..=kind.len()], path),
        _ => ("", spec),
    };
    let Some(stem) = stem(path) else { return vec![spec.to_owned()] };
    let tails = |path: &str| -> Vec<String> {
        let ends = path.rmatch_indices('/').map(|(at, _)| at + 1);
        ends.map(|at| format!("{kind}{}", &path[at..])).collect()
    };
    let mut forms = tails(stem);
    // without the root, that of a relative path is its last
    if !stem.starts_with('/') {
        forms.push(format!("{kind}{stem}"));
    }
    forms.extend(tails(path).into_iter().take(1));
    forms.push(spec.to_owned());
    forms
}

/// The path of a file of a matrix or a vector without its extensions.
fn stem(path: &str) -> Option<&str> {
    let mut endings = ENDINGS.iter().chain(&[".npy"]).rev();
    let stem = endings.find_map(|ending| path.strip_suffix(ending));
    stem.filter(|stem| !stem.is_empty() && !stem.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(specs: &[&str]) -> Vec<String> {
        let found: HashMap<String, String> = shortest(specs).into_iter().collect();
        specs.iter().map(|spec| found.get(*spec).map_or(*spec, |n| n.as_str()).to_owned()).collect()
    }

    #[test]
    fn files_are_called_by_their_base_names() {
        let specs = ["/home/me/matrices/orsreg_1.mtx.gz", "a/watt_1.mtx", "poisson3d:8", "b.mtx"];
        assert_eq!(names(&specs), ["orsreg_1", "watt_1", "poisson3d:8", "b"]);
        assert_eq!(
            names(&["file:/x/y/own_rhs.mtx", "fem-p1:/x/a.mtx"]),
            ["file:own_rhs", "fem-p1:a"]
        );
        // no matrix files
        assert_eq!(names(&["/x/.mtx", "/dev/zero"]), ["/x/.mtx", "/dev/zero"]);
    }

    #[test]
    fn equal_base_names_get_the_shortest_end_that_differs() {
        let specs = ["/a/old/m.mtx", "/b/new/m.mtx.gz", "/b/new/n.mtx"];
        assert_eq!(names(&specs), ["old/m", "new/m", "n"]);
        assert_eq!(names(&["/a/x/m.mtx", "/b/x/m.mtx"]), ["a/x/m", "b/x/m"]);
        assert_eq!(names(&["m.mtx", "x/m.mtx"]), ["m.mtx", "x/m"]);
        // one folder holds both forms of a file
        assert_eq!(names(&["/a/m.mtx", "/a/m.mtx.gz"]), ["m.mtx", "m.mtx.gz"]);
        // the catalogue's keeps its name
        assert_eq!(names(&["watt_1", "/a/watt_1.mtx.gz"]), ["watt_1", "a/watt_1"]);
    }
}
