//! The text of a TOML file and what is read of it, with places for errors.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::base::error::{Error, Result};
use crate::base::input;
use crate::base::input::Compression;
use crate::base::parse::pieces;
use crate::config::axes;
use crate::problem;

/// Where the text of an experiment and of the files it names comes from.
pub struct Source<'a> {
    /// Name of the file for messages.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
    /// From where paths of matrices and right-hand sides count; none for those that the program carries.
    pub folder: Option<&'a Path>,
    /// Reads a file named relative to it.
    pub beside: &'a dyn Fn(&str) -> Result<String>,
}

impl<'a> Source<'a> {
    /// The whole text as a table.
    ///
    /// # Errors
    /// When it is not TOML: the first message, with its place.
    pub fn document(&self) -> Result<DeTable<'a>> {
        let document = DeTable::parse(self.text).map_err(|e| {
            let message = e.message().lines().next().unwrap_or("not valid TOML").to_owned();
            self.error(e.span().unwrap_or(0..0), Error::input(message))
        })?;
        Ok(document.into_inner())
    }
}

/// Bytes of an experiment, or of a file that it names, at most.
const LARGEST: u64 = 16 << 20;

/// The text of a file, of a pipe or of standard input (`-`).
///
/// # Errors
/// When it cannot be read, is a folder or a device, has more than 16 MiB, or at the first line that is not
/// UTF-8.
pub fn text(path: &Path) -> Result<String> {
    let bytes = input::whole(path, "an experiment", LARGEST)?;
    if let Some(other) = Compression::of(&bytes) {
        return Err(other.refused(&path.display().to_string()));
    }
    String::from_utf8(bytes).map_err(|e| {
        let valid = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let line = memchr::memchr_iter(b'\n', valid).count() + 1;
        Error::input("not valid UTF-8")
            .at(path.display().to_string(), line, None)
            .hint("save the file as UTF-8")
    })
}

impl Source<'_> {
    pub(crate) fn error(&self, span: Range<usize>, error: Error) -> Error {
        let (line, column) = self.place(span);
        error.at(self.name, line, Some(column))
    }

    /// Line and column of the beginning.
    pub(super) fn place(&self, span: Range<usize>) -> (usize, usize) {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        (line, before.rsplit('\n').next().unwrap_or_default().chars().count() + 1)
    }

    pub(crate) fn unknown(&self, key: &Spanned<DeString<'_>>, what: &str, known: &[&str]) -> Error {
        self.error(key.span(), Error::unknown(what, key.get_ref(), known))
    }

    /// Takes what the head of every experiment has, its title and notes; whether `key` is of these.
    pub(crate) fn heading(
        &self,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        title: &mut Option<String>,
        notes: &mut Vec<String>,
    ) -> Result<bool> {
        match &**key.get_ref() {
            "title" => *title = Some(self.string(value)?),
            "notes" => *notes = self.strings(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes `[[sweep]]` and `[settings]` out of `document`: the tables of the sweeps, each with those of the settings that
    /// it has no own value of.
    pub(crate) fn sweeps<'i>(
        &self,
        document: &mut DeTable<'i>,
    ) -> Result<Vec<Spanned<DeValue<'i>>>> {
        let settings = document.remove("settings");
        let settings = settings.map_or(Ok(Vec::new()), |value| self.table(value, "a table"))?;
        let tables = document.remove("sweep");
        let mut tables = tables.map_or(Ok(Vec::new()), |value| self.tables(value))?;
        for table in &mut tables {
            // anything else is refused when it is read
            let DeValue::Table(table) = table.get_mut() else { continue };
            for (key, value) in &settings {
                if !table.contains_key(&**key.get_ref()) {
                    table.insert(key.clone(), value.clone());
                }
            }
        }
        Ok(tables)
    }

    /// The values that a `[[sweep]]` table has for some of `axes`; what was given more than once is
    /// added to `remarks`.
    pub(crate) fn sweep<C, S: Default>(
        &self,
        table: Spanned<DeValue<'_>>,
        axes: &'static [axes::Axis<C, S>],
        remarks: &mut Vec<String>,
    ) -> Result<S> {
        let mut sweep = S::default();
        for (key, value) in self.table(table, "a table")? {
            let Some(axis) = axes.iter().find(|a| a.name == &**key.get_ref()) else {
                let known: Vec<&str> = axes.iter().map(|a| a.name).collect();
                return Err(self.unknown(&key, "setting", &known));
            };
            let mut words = self.words(&value)?;
            for (word, _) in &mut words {
                *word = self.located(axis.name, word);
            }
            for (word, span) in &words {
                // alone first, so that the error points at the one bad item of a list
                axis.set(&mut S::default(), std::slice::from_ref(word))
                    .map_err(|e| self.error(span.clone(), e))?;
            }
            let words: Vec<String> = words.into_iter().map(|(word, _)| word).collect();
            let repeated = axis.set(&mut sweep, &words);
            let repeated = repeated.map_err(|e| self.error(value.span(), e))?;
            remarks.extend(repeated_remark(&format!("{}: {}", self.name, axis.name), &repeated));
        }
        Ok(sweep)
    }

    /// The values of a setting as they are written in `word`, paths among them from where the program runs.
    pub(super) fn located(&self, setting: &str, word: &str) -> String {
        let folder = self.folder.filter(|folder| !folder.as_os_str().is_empty());
        // a wrong list has its error when the setting is read
        let (Some(folder), Ok(values)) = (folder, pieces(word)) else { return word.to_owned() };
        let located = |value: String| match setting {
            "matrix" => problem::located(&value, folder),
            "sequence" => problem::sequence::located(&value, folder),
            "rhs" => problem::located_rhs(&value, folder),
            _ => value,
        };
        values.into_iter().map(located).collect::<Vec<_>>().join(",")
    }

    fn wrong_type(&self, value: &Spanned<DeValue<'_>>, expected: &str) -> Error {
        let found = value.get_ref().type_str();
        self.error(value.span(), Error::input(format!("expected {expected}, found {found}")))
    }

    pub(crate) fn string(&self, value: &Spanned<DeValue<'_>>) -> Result<String> {
        let text = value.get_ref().as_str();
        text.map(str::to_owned).ok_or_else(|| self.wrong_type(value, "a string"))
    }

    /// A string or an array of them.
    pub(crate) fn strings(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>> {
        match value.get_ref() {
            DeValue::Array(items) => items.iter().map(|item| self.string(item)).collect(),
            _ => self.string(value).map(|text| vec![text]),
        }
    }

    pub(crate) fn table<'i>(
        &self,
        value: Spanned<DeValue<'i>>,
        what: &str,
    ) -> Result<Vec<Entry<'i>>> {
        if !value.get_ref().is_table() {
            return Err(self.wrong_type(&value, what));
        }
        match value.into_inner() {
            DeValue::Table(table) => Ok(table.into_iter().collect()),
            _ => Ok(Vec::new()),
        }
    }

    /// One `[name]` or several `[[name]]`.
    pub(crate) fn tables<'i>(
        &self,
        value: Spanned<DeValue<'i>>,
    ) -> Result<Vec<Spanned<DeValue<'i>>>> {
        match value.get_ref() {
            DeValue::Table(_) => return Ok(vec![value]),
            DeValue::Array(_) => {}
            _ => return Err(self.wrong_type(&value, "a table")),
        }
        match value.into_inner() {
            DeValue::Array(items) => Ok(items.into_iter().collect()),
            _ => Ok(Vec::new()),
        }
    }

    /// A scalar as the word that a flag would take.
    pub(super) fn word(&self, value: &Spanned<DeValue<'_>>) -> Result<String> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
            DeValue::Float(number) => Ok(number.as_str().to_owned()),
            _ => Err(self.wrong_type(value, "a string or a number")),
        }
    }

    /// One of `known`, by name.
    pub(super) fn choice<T: Copy>(
        &self,
        value: &Spanned<DeValue<'_>>,
        what: &str,
        known: &[(&str, T)],
    ) -> Result<T> {
        let word = self.string(value)?;
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let found = known.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
        found.ok_or_else(|| self.error(value.span(), Error::unknown(what, &word, &names)))
    }

    /// The text of the file that `value` names, with its name.
    pub(super) fn beside(&self, value: &Spanned<DeValue<'_>>) -> Result<(String, String)> {
        let name = self.string(value)?;
        let text = (self.beside)(&name).map_err(|e| self.error(value.span(), e))?;
        Ok((name, text))
    }

    /// What `parse` makes of a scalar.
    pub(super) fn parsed<T>(
        &self,
        value: &Spanned<DeValue<'_>>,
        parse: impl FnOnce(&str) -> Result<T>,
    ) -> Result<T> {
        parse(&self.word(value)?).map_err(|e| self.error(value.span(), e))
    }

    /// A scalar or an array of scalars, as words with their places.
    pub(crate) fn words(
        &self,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Vec<(String, Range<usize>)>> {
        let one = |v: &Spanned<DeValue<'_>>| Ok((self.word(v)?, v.span()));
        match value.get_ref() {
            DeValue::Array(items) => items.iter().map(one).collect(),
            _ => Ok(vec![one(value)?]),
        }
    }
}

/// The word about values that were given more than once.
pub(crate) fn repeated_remark(place: &str, repeated: &[String]) -> Option<String> {
    (!repeated.is_empty())
        .then(|| format!("{place}: {} given more than once, kept once", repeated.join(", ")))
}

/// A key and its value.
pub(crate) type Entry<'i> = (Spanned<DeString<'i>>, Spanned<DeValue<'i>>);
