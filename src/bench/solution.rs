//! Solutions in files of their own: which file a case has, and what is in it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Debug;
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::base::error::{Error, Result};
use crate::base::files;
use crate::base::units::plural;
use crate::config::axes::Axis;
use crate::matrix::{market, npy};
use crate::problem;
use crate::record::output::Existing;
use crate::record::table::Row;

/// The flag, for messages.
const FLAG: &str = "--solution";
/// The placeholder of the number of a case, from 1.
const NUMBER: &str = "case";
/// Most settings that a suggested pattern names.
const SUGGESTED: usize = 3;

/// The file of each case of an experiment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Solutions {
    /// By the case as text.
    files: HashMap<String, PathBuf>,
}

impl Solutions {
    /// Files for the cases of several experiments, which are numbered through. `pattern` is a path with
    /// placeholders in braces, the settings `axes` and `{case}`, the number; braces that are doubled stand
    /// for themselves.
    ///
    /// # Errors
    /// When the name has no known ending or an unknown placeholder, when two cases have one file, when a
    /// file exists already (unless `existing` allows it), is one of `inputs` or has no folder.
    pub(crate) fn plan<C: Debug, S>(
        pattern: &Path,
        axes: &'static [Axis<C, S>],
        experiments: &[Vec<C>],
        existing: Existing,
        inputs: &[PathBuf],
    ) -> Result<Vec<Self>> {
        Self::named(pattern, axes, experiments)
            .and_then(|plans| {
                let files = plans.iter().flat_map(|plan| plan.files.values());
                files.clone().try_for_each(|path| usable(path, existing, inputs)).map(|()| plans)
            })
            .map_err(|e| if e.place().is_none() { e.in_file(FLAG) } else { e })
    }

    fn named<C: Debug, S>(
        pattern: &Path,
        axes: &'static [Axis<C, S>],
        experiments: &[Vec<C>],
    ) -> Result<Vec<Self>> {
        Form::of(pattern)?;
        let pieces = match pattern.to_str() {
            Some(text) => pieces(text, axes)?,
            // bytes that are no text hold no placeholder
            None => Vec::new(),
        };
        let all: Vec<&C> = experiments.iter().flatten().collect();
        if all.len() > 1 && pieces.iter().all(|piece| matches!(piece, Piece::Text(_))) {
            return Err(Error::input(format!(
                "one file, `{}`, for the solutions of {}",
                pattern.display(),
                plural(all.len(), "case")
            ))
            .hint(suggestion(pattern, axes, &all)));
        }
        let (mut plans, mut taken) = (Vec::new(), HashMap::<PathBuf, (usize, String)>::new());
        let mut number = 0;
        for cases in experiments {
            let mut plan = Self::default();
            for case in cases {
                number += 1;
                let path = match pieces.as_slice() {
                    [] => pattern.to_owned(),
                    pieces => name(pieces, case, number),
                };
                let key = format!("{case:?}");
                match taken.get(&path) {
                    Some((first, other)) if *other != key => {
                        let message = format!(
                            "cases {first} and {number} would both be written to `{}`",
                            path.display()
                        );
                        return Err(Error::input(message).hint(suggestion(pattern, axes, &all)));
                    }
                    Some(_) => {}
                    None => _ = taken.insert(path.clone(), (number, key.clone())),
                }
                plan.files.insert(key, path);
            }
            plans.push(plan);
        }
        Ok(plans)
    }

    /// The file of a case.
    pub(crate) fn path<C: Debug>(&self, case: &C) -> Option<&Path> {
        self.files.get(&format!("{case:?}")).map(PathBuf::as_path)
    }

    /// Writes the solution of a case, in rows of `columns` numbers; its file appears whole or not at all.
    pub(crate) fn write<C: Debug>(&self, case: &C, x: &[f64], columns: usize) -> Result<()> {
        let Some(path) = self.path(case) else { return Ok(()) };
        match Form::of(path)? {
            Form::Npy => npy::write_columns(path, x, columns),
            Form::Market => market::write_columns(path, x, columns),
        }
    }

    /// The name under which another process writes the solution of a case, for [`adopt`](Self::adopt).
    pub(crate) fn passed_on_as<C: Debug>(&self, case: &C) -> &'static str {
        match self.path(case).map(Form::of) {
            Some(Ok(Form::Market)) => "x.mtx",
            _ => "x.npy",
        }
    }

    /// Takes over the solution of a case that another process wrote.
    pub(crate) fn adopt<C: Debug>(&self, case: &C, from: &Path) -> Result<()> {
        let Some(path) = self.path(case) else { return Ok(()) };
        let mut file = File::open(from).map_err(|e| Error::io("read", from, &e))?;
        market::atomically(path, |out| std::io::copy(&mut file, out).map(drop))
    }

    /// What there is to say of a case that left no solution.
    pub(crate) fn none<R: Row<Case: Debug>>(&self, record: &R) -> Option<String> {
        let path = self.path(record.case())?.display();
        let (status, why) = record.ending();
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        Some(format!("no solution for `{path}`: {}{why}", status.name()))
    }

    /// What there is to say of `finished` cases, which are not run again, where files of theirs are not
    /// there.
    pub(crate) fn missing<'a, C: Debug + 'a>(
        &self,
        finished: impl Iterator<Item = &'a C>,
    ) -> Option<String> {
        let gone: Vec<_> =
            finished.filter_map(|case| self.path(case)).filter(|path| !path.exists()).collect();
        let first = gone.first()?;
        let others = match gone.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let first = first.display();
        Some(format!("`{first}`{others}: not written, the case is finished and not run again"))
    }
}

/// The flag for a single file, whatever its name.
pub(crate) fn flag(path: &Path) -> [OsString; 2] {
    let name = path.to_str().map(|text| text.replace('{', "{{").replace('}', "}}").into());
    [FLAG.into(), name.unwrap_or_else(|| path.into())]
}

/// How numbers are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Npy,
    Market,
}

impl Form {
    fn of(path: &Path) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        if ends(&[".npy"]) {
            Ok(Self::Npy)
        } else if ends(&[".mtx", ".mtx.gz"]) {
            Ok(Self::Market)
        } else {
            let text = format!("`{}` has no ending of a solution", path.display());
            let hint = "`.npy` is an array of NumPy, `.mtx` or `.mtx.gz` one of Matrix Market";
            Err(Error::input(text).hint(hint))
        }
    }
}

/// Refuses a file that is there already, is read or cannot be made.
fn usable(path: &Path, existing: Existing, inputs: &[PathBuf]) -> Result<()> {
    let same = |input: &PathBuf| match (path.canonicalize(), input.canonicalize()) {
        (Ok(path), Ok(input)) => path == input,
        _ => false,
    };
    if inputs.iter().any(same) {
        return Err(Error::input(format!("`{}` is read by this run", path.display()))
            .hint("write to another file"));
    }
    files::check_folder(path)?;
    files::refuse_existing(path, existing != Existing::Refuse)
}

/// A part of a pattern.
enum Piece<C: 'static, S: 'static> {
    Text(String),
    Number,
    Setting(&'static Axis<C, S>),
}

fn pieces<C, S>(text: &str, axes: &'static [Axis<C, S>]) -> Result<Vec<Piece<C, S>>> {
    let (mut pieces, mut plain) = (Vec::new(), String::new());
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        plain.push_str(&rest[..at]);
        let from = &rest[at..];
        if from.starts_with("{{") || from.starts_with("}}") {
            plain.push_str(&from[..1]);
            rest = &from[2..];
            continue;
        }
        let Some((name, behind)) = from.strip_prefix('{').and_then(|from| from.split_once('}'))
        else {
            return Err(Error::input(format!("`{text}`: a brace without its other one"))
                .hint("a placeholder is written `{fill}`, a brace itself `{{` or `}}`"));
        };
        pieces.push(Piece::Text(std::mem::take(&mut plain)));
        pieces.push(match axes.iter().find(|axis| axis.name == name) {
            Some(axis) => Piece::Setting(axis),
            None if name == NUMBER => Piece::Number,
            None => {
                let known = std::iter::once(NUMBER).chain(axes.iter().map(|axis| axis.name));
                let known: Vec<&str> = known.collect();
                return Err(Error::unknown("placeholder", name, &known));
            }
        });
        rest = behind;
    }
    plain.push_str(rest);
    pieces.push(Piece::Text(plain));
    Ok(pieces)
}

fn name<C, S>(pieces: &[Piece<C, S>], case: &C, number: usize) -> PathBuf {
    let text = |piece: &Piece<C, S>| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Number => number.to_string(),
        Piece::Setting(axis) => in_name(&(axis.text)(case)),
    };
    pieces.iter().map(text).collect::<String>().into()
}

/// A value as a part of a file name: of a path only the name, without its ending.
fn in_name(value: &str) -> String {
    let path = value.strip_prefix("file:").unwrap_or(value);
    // no shell takes it for a pattern
    problem::stem(Path::new(path)).replace(std::path::is_separator, "_").replace('*', "x")
}

/// A pattern that tells the cases apart.
fn suggestion<C, S>(pattern: &Path, axes: &'static [Axis<C, S>], cases: &[&C]) -> String {
    let varies =
        |axis: &&Axis<C, S>| cases.iter().any(|case| (axis.text)(case) != (axis.text)(cases[0]));
    let varying: Vec<String> =
        axes.iter().filter(varies).map(|axis| format!("{{{}}}", axis.name)).collect();
    let name = pattern.to_string_lossy();
    let stem = name.split('{').next().unwrap_or_default();
    let stem = stem.strip_suffix(".npy").or(stem.strip_suffix(".mtx")).unwrap_or(stem);
    let stem = stem.trim_end_matches(['-', '_']);
    let ending =
        if Form::of(pattern).is_ok_and(|form| form == Form::Npy) { ".npy" } else { ".mtx" };
    let numbered = format!("`{stem}-{{{NUMBER}}}{ending}`");
    if varying.is_empty() || varying.len() > SUGGESTED {
        return format!("number them: {numbered}");
    }
    format!("name what varies, `{stem}-{}{ending}`, or number them, {numbered}", varying.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::status::Status;
    use crate::case::Case;
    use crate::config::AXES;
    use crate::record::Record;

    fn plan(pattern: &str, cases: &[Case]) -> Result<Solutions> {
        let cases = vec![cases.to_vec()];
        Solutions::plan(Path::new(pattern), AXES, &cases, Existing::Refuse, &[])
            .map(|mut plans| plans.remove(0))
    }

    fn fills(fills: &[usize]) -> Vec<Case> {
        let case = |&fill| Case { fill, matrix: "some/a.mtx.gz".into(), ..Case::default() };
        fills.iter().map(case).collect()
    }

    fn refused(pattern: &str, cases: &[Case]) -> (String, String) {
        let error = plan(pattern, cases).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        (error.to_string(), error.hint_text().unwrap_or_default().to_owned())
    }

    #[test]
    fn placeholders_are_settings_and_the_number() {
        let cases = fills(&[0, 3]);
        let named = |pattern: &str| {
            let plan = plan(pattern, &cases).unwrap();
            let path = |case| plan.path(case).unwrap().to_str().unwrap().to_owned();
            [path(&cases[0]), path(&cases[1])]
        };
        assert_eq!(
            named("x-{matrix}-{precond}-k{fill}-b{block-size}.npy"),
            ["x-a-bilu-k0-b1.npy", "x-a-bilu-k3-b1.npy"]
        );
        assert_eq!(named("{{x}}{case}.mtx.gz"), ["{x}1.mtx.gz", "{x}2.mtx.gz"]);
        let one = plan("x.npy", &cases[..1]).unwrap();
        assert_eq!(one.path(&cases[0]), Some(Path::new("x.npy")));
        assert_eq!(one.path(&cases[1]), None);
    }

    #[test]
    fn experiments_are_numbered_through() {
        let all = [fills(&[0, 1]), fills(&[2])];
        let pattern = Path::new("x{case}.npy");
        let plans = Solutions::plan(pattern, AXES, &all, Existing::Refuse, &[]).unwrap();
        assert_eq!(plans[1].path(&all[1][0]), Some(Path::new("x3.npy")));
    }

    #[test]
    fn what_would_be_lost_is_refused() {
        let (message, hint) = refused("x.npy", &fills(&[0, 1]));
        assert_eq!(message, "--solution: one file, `x.npy`, for the solutions of 2 cases");
        assert_eq!(hint, "name what varies, `x-{fill}.npy`, or number them, `x-{case}.npy`");
        let mut cases = fills(&[0, 1, 1]);
        cases[1].solver = "cg".into();
        let (message, hint) = refused("x-{fill}.mtx", &cases);
        assert_eq!(message, "--solution: cases 2 and 3 would both be written to `x-1.mtx`");
        assert_eq!(
            hint,
            "name what varies, `x-{fill}-{solver}.mtx`, or number them, `x-{case}.mtx`"
        );
    }

    #[test]
    fn bad_patterns_are_refused() {
        let one = fills(&[0]);
        let (message, hint) = refused("x-{fil}.npy", &one);
        assert_eq!(message, "--solution: unknown placeholder `fil`");
        assert!(hint.starts_with("did you mean `fill`? known: case, matrix, "), "{hint}");
        for broken in ["x-{fill.npy", "x-fill}.npy", "x-{"] {
            let broken = format!("{broken}.npy");
            let (message, _) = refused(&broken, &one);
            assert_eq!(message, format!("--solution: `{broken}`: a brace without its other one"));
        }
        let (message, hint) = refused("x.txt", &one);
        assert_eq!(message, "--solution: `x.txt` has no ending of a solution");
        assert_eq!(hint, "`.npy` is an array of NumPy, `.mtx` or `.mtx.gz` one of Matrix Market");
        let (message, _) = refused("no-such-folder/x.npy", &one);
        assert_eq!(
            message,
            "--solution: cannot write `no-such-folder/x.npy`: there is no folder `no-such-folder`"
        );
    }

    #[test]
    fn files_that_are_there_or_are_read_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.mtx");
        std::fs::write(&path, "before").unwrap();
        let plan = |existing, inputs: &[PathBuf]| {
            Solutions::plan(&path, AXES, &[fills(&[0])], existing, inputs)
                .map_err(|e| e.to_string())
        };
        let name = path.display();
        let exists = format!("--solution: `{name}` exists already");
        assert_eq!(plan(Existing::Refuse, &[]).unwrap_err(), exists);
        plan(Existing::Overwrite, &[]).unwrap();
        plan(Existing::Resume, &[]).unwrap();
        let read = format!("--solution: `{name}` is read by this run");
        let again = folder.path().join(".").join("x.mtx");
        assert_eq!(plan(Existing::Overwrite, &[again]).unwrap_err(), read);
    }

    #[test]
    fn numbers_come_back_bit_for_bit() {
        let folder = tempfile::tempdir().unwrap();
        let x = [1.0 / 3.0, -0.0, 5e-324, 1e300];
        let cases = fills(&[0]);
        for name in ["x.npy", "x.mtx", "x.mtx.gz"] {
            let path = folder.path().join(name);
            let plan = plan(path.to_str().unwrap(), &cases).unwrap();
            plan.write(&cases[0], &x, 1).unwrap();
            let back = if name == "x.npy" {
                let bytes = std::fs::read(&path).unwrap();
                let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
                assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
                assert_eq!((10 + length) % 64, 0);
                let head = std::str::from_utf8(&bytes[10..10 + length]).unwrap();
                assert!(head.ends_with(" \n"), "{head:?}");
                assert_eq!(
                    head.trim_end(),
                    "{'descr': '<f8', 'fortran_order': False, 'shape': (4,), }"
                );
                let numbers = bytes[10 + length..].chunks_exact(8);
                numbers.map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect()
            } else {
                market::read_vector(&path, None).unwrap().values
            };
            assert_eq!(
                x.map(f64::to_bits).to_vec(),
                back.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        let cases = fills(&[0, 1, 2]);
        let plan = plan("gone-{fill}.npy", &cases).unwrap();
        assert_eq!(
            plan.missing(cases.iter()).unwrap(),
            "`gone-0.npy` and 2 more: not written, the case is finished and not run again"
        );
        assert_eq!(plan.missing(cases[..0].iter()), None);
        let (status, reason) = (Status::Breakdown, Some("row 3".to_owned()));
        assert_eq!(
            plan.none(&Record { case: cases[1].clone(), status, reason, ..Record::default() })
                .unwrap(),
            "no solution for `gone-1.npy`: breakdown: row 3"
        );
    }
}
