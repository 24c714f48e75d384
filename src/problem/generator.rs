//! What a generator of matrices is, and how its arguments are written.
//!
//! A spec reads `name:SIZE[,key=value]...` or `name:PRESET[,key=value]...`; SIZE is `60x50x40`, or
//! `60` for the same size in every direction.

use std::fmt::Write as _;
use std::ops::Range;

use crate::base::error::{Error, Result};
use crate::base::parse::shown;
use crate::matrix::Csr;

/// A family of matrices.
#[derive(Debug)]
pub struct Generator {
    /// Name in specs.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// Directions of the grid.
    pub dimensions: usize,
    /// Parameters besides the size.
    pub parameters: &'static [Parameter],
    /// Parameters that are words.
    pub words: &'static [Word],
    /// Named arguments.
    pub presets: &'static [Preset],
    /// Refuses a size for which no process has the matrix as a whole, at once however large it is.
    pub check: fn(&Arguments) -> Result<()>,
    /// Makes a piece of the matrix; its rows do not depend on what else is made.
    pub build: fn(&Arguments, Piece) -> Result<Generated>,
}

/// One of several pieces into which the points of a grid are cut, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which one, from 0.
    pub number: usize,
    /// How many there are.
    pub count: usize,
}

impl Piece {
    /// All in one.
    pub const WHOLE: Self = Self { number: 0, count: 1 };

    /// Its part of so many points.
    pub fn of(self, points: usize) -> Range<usize> {
        let cut = |at: usize| (at as u128 * points as u128 / self.count as u128) as usize;
        cut(self.number)..cut(self.number + 1)
    }

    /// Whether nothing comes behind it.
    pub(crate) fn is_last(self) -> bool {
        self.number + 1 == self.count
    }
}

/// A number a generator takes.
#[derive(Debug)]
pub struct Parameter {
    /// Key in specs.
    pub key: &'static str,
    /// Value when it is not given.
    pub default: f64,
    /// What it is.
    pub summary: &'static str,
}

/// A word a generator takes.
#[derive(Debug)]
pub struct Word {
    /// Key in specs.
    pub key: &'static str,
    /// The word when it is not given.
    pub default: &'static str,
    /// What it is.
    pub summary: &'static str,
}

/// Arguments with a name.
#[derive(Debug)]
pub struct Preset {
    /// Name in specs.
    pub name: &'static str,
    /// What it stands for.
    pub arguments: &'static str,
    /// What a reader of the results needs to know.
    pub remark: &'static str,
}

/// What a generator yields.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The rows; their columns are numbered from `columns` on.
    pub matrix: Csr,
    /// Number of the first of them.
    pub first: usize,
    /// Number of the first column.
    pub columns: usize,
    /// Order of the whole matrix.
    pub order: usize,
    /// Grid of the unknowns or, where several belong together, of their cells; x fastest.
    pub grid: [usize; 3],
    /// Whether the matrix is symmetric.
    pub symmetric: bool,
    /// Right-hand side that belongs to these rows.
    pub rhs: Option<Vec<f64>>,
}

/// Checked arguments of a generator.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// Points of the grid in each direction, 1 beyond the generator's directions.
    pub size: [usize; 3],
    /// Values in the order of [`Generator::parameters`].
    values: Vec<(&'static str, f64)>,
    /// Words in the order of [`Generator::words`].
    words: Vec<(&'static str, String)>,
    /// The remark of the preset used.
    pub remark: Option<&'static str>,
}

impl Arguments {
    /// The parameter `key`, one of the generator's.
    ///
    /// # Panics
    /// When the generator has no such parameter.
    pub fn get(&self, key: &str) -> f64 {
        self.values.iter().find(|v| v.0 == key).expect("a parameter of the generator").1
    }

    /// The word `key`, one of the generator's.
    ///
    /// # Panics
    /// When the generator has no such word.
    pub fn word(&self, key: &str) -> &str {
        &self.words.iter().find(|v| v.0 == key).expect("a word of the generator").1
    }
}

/// Most unknowns and entries of a process: indices have 32 bits.
const LIMIT: u64 = u32::MAX as u64;

/// Most points of a grid: ranks tell each other numbers of rows, which are exact so far.
const MOST_POINTS: u128 = 1 << 50;

impl Generator {
    /// How the size is written.
    pub(crate) fn size_form(&self) -> String {
        format!("N or {}", ["NX", "NY", "NZ"][..self.dimensions].join("x"))
    }

    /// Reads `text`, what follows the colon of a spec.
    ///
    /// # Errors
    /// Names the argument that is missing, unknown, given twice or out of range.
    pub fn arguments(&'static self, text: &str) -> Result<Arguments> {
        let mut words = text.split(',');
        let first = words.next().unwrap_or_default().trim();
        let mut arguments = Arguments {
            size: [1; 3],
            values: self.parameters.iter().map(|p| (p.key, p.default)).collect(),
            words: self.words.iter().map(|w| (w.key, w.default.to_owned())).collect(),
            remark: None,
        };
        match self.presets.iter().find(|p| p.name == first) {
            Some(preset) => {
                let mut words = preset.arguments.split(',');
                arguments.size = self.size(words.next().unwrap_or_default())?;
                arguments.remark = Some(preset.remark);
                self.assign(words, &mut arguments)?;
            }
            None => arguments.size = self.size(first)?,
        }
        self.assign(words, &mut arguments)?;
        Ok(arguments)
    }

    /// The parameter `key` of checked arguments as a whole number.
    ///
    /// # Errors
    /// When it has a fraction or is out of range.
    pub(super) fn whole(
        &self,
        arguments: &Arguments,
        key: &str,
        min: u64,
        max: u64,
    ) -> Result<u64> {
        let value = arguments.get(key);
        if value.fract() == 0.0 && value >= min as f64 && value <= max as f64 {
            return Ok(value as u64);
        }
        Err(Error::input(format!(
            "`{}`: `{key}={}` is not a whole number from {min} to {max}",
            self.name,
            shown(&value.to_string())
        )))
    }

    /// The parameter `key` of checked arguments.
    ///
    /// # Errors
    /// When it is not between the bounds.
    pub(super) fn within(
        &self,
        arguments: &Arguments,
        key: &str,
        min: f64,
        max: f64,
    ) -> Result<f64> {
        let value = arguments.get(key);
        if (min..=max).contains(&value) {
            return Ok(value);
        }
        let (name, value) = (self.name, value.to_string());
        let value = shown(&value);
        Err(Error::input(format!("`{name}`: `{key}={value}` is outside {min} to {max}")))
    }

    fn assign<'a>(
        &self,
        words: impl Iterator<Item = &'a str>,
        arguments: &mut Arguments,
    ) -> Result<()> {
        let mut given = Vec::new();
        for word in words {
            let word = word.trim();
            let (key, text) = word.split_once('=').ok_or_else(|| {
                Error::input(format!("`{}`: `{word}` is not of the form key=value", self.name))
                    .hint(self.usage())
            })?;
            let slot = arguments.values.iter_mut().find(|v| v.0 == key);
            let place = arguments.words.iter_mut().find(|v| v.0 == key);
            if slot.is_none() && place.is_none() {
                let keys: Vec<&str> = self.keys().collect();
                if keys.is_empty() {
                    let message = format!("`{}` has no parameter `{key}`", self.name);
                    return Err(Error::input(message).hint(self.usage()));
                }
                return Err(Error::unknown(&format!("parameter of `{}`", self.name), key, &keys));
            }
            if given.contains(&key) {
                return Err(Error::input(format!("`{}`: `{key}` is given twice", self.name)));
            }
            given.push(key);
            if let Some(place) = place {
                text.clone_into(&mut place.1);
            }
            if let Some(slot) = slot {
                slot.1 = text.parse().ok().filter(|v: &f64| v.is_finite()).ok_or_else(|| {
                    Error::input(format!(
                        "`{}`: `{key}={}` is not a finite number",
                        self.name,
                        shown(text)
                    ))
                })?;
            }
        }
        Ok(())
    }

    /// Keys of the parameters, numbers and words.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.parameters.iter().map(|p| p.key).chain(self.words.iter().map(|w| w.key))
    }

    /// Reads `60`, `60x50x40`.
    fn size(&self, text: &str) -> Result<[usize; 3]> {
        let bad =
            |what: String| Error::input(format!("`{}`: {what}", self.name)).hint(self.usage());
        let known: Vec<&str> = self.presets.iter().map(|p| p.name).collect();
        let mut size = [1_usize; 3];
        let parts: Vec<&str> = text.split('x').collect();
        if text.is_empty() {
            return Err(bad("the size is missing".into()));
        }
        let word = text.starts_with(|c: char| c.is_ascii_alphabetic()) && !text.contains('=');
        if word && !known.is_empty() {
            return Err(Error::unknown(&format!("preset of `{}`", self.name), text, &known));
        }
        if parts.len() != 1 && parts.len() != self.dimensions {
            let (got, want) = (parts.len(), self.dimensions);
            return Err(bad(format!("`{text}` has {got} directions, not {want}")));
        }
        for d in 0..self.dimensions {
            let part = parts[if parts.len() == 1 { 0 } else { d }];
            size[d] = match part.parse::<u32>() {
                Ok(0) => return Err(bad(format!("the size in `{text}` must be positive"))),
                Ok(points) => points as usize,
                Err(_) => {
                    let why = if part.bytes().all(|b| b.is_ascii_digit()) && !part.is_empty() {
                        "is too large"
                    } else {
                        "is not a positive integer"
                    };
                    return Err(bad(format!("`{part}` in the size `{text}` {why}")));
                }
            };
        }
        let points = size.iter().map(|&s| s as u128).product::<u128>();
        if points > MOST_POINTS {
            return Err(bad(format!("{points} unknowns: the limit is {MOST_POINTS}")));
        }
        Ok(size)
    }

    /// Refuses a size at which no process has the matrix as a whole.
    ///
    /// # Errors
    /// When it is too large.
    pub fn check_whole(&self, arguments: &Arguments) -> Result<()> {
        let points = arguments.size.iter().map(|&s| s as u128).product::<u128>();
        if points > u128::from(LIMIT) {
            let message = format!("`{}`: {points} unknowns: the limit is {LIMIT}", self.name);
            return Err(Error::input(message).hint(self.usage()));
        }
        (self.check)(arguments)
    }

    /// The form of a spec.
    pub fn usage(&self) -> String {
        let mut usage = format!("write `{}:{}", self.name, self.size_form().replace(" or ", "|"));
        for key in self.keys() {
            _ = write!(usage, "[,{key}=..]");
        }
        usage.push('`');
        for p in self.presets {
            _ = write!(usage, " or `{}:{}`", self.name, p.name);
        }
        usage
    }
}
