//! Settings of a case that may take several values, and the cases that their cross product makes: what
//! linear solves ([`sweep`](super::sweep)) and the obstacle problem have in common.

use crate::base::error::{Error, Result};
use crate::base::parse::pieces;

/// One setting of a case `C` that a sweep `S` may vary.
pub struct Axis<C, S> {
    /// Name of the flag (`--name`), the TOML key and the result column.
    pub name: &'static str,
    /// Placeholder of the value in the help text.
    pub metavar: &'static str,
    /// What it means.
    pub help: &'static str,
    /// Accepted names; empty when the values are not a fixed set.
    pub choices: fn() -> Vec<String>,
    /// The value in a case, as it would be written in a flag.
    pub text: fn(&C) -> String,
    /// The values that a sweep gives, as they would be written in flags.
    pub(crate) given: fn(&S) -> Option<Vec<String>>,
    /// See [`Axis::set`].
    pub(crate) set: fn(&mut S, &[String]) -> Result<Vec<String>>,
}

impl<C, S> Axis<C, S> {
    /// Sets this axis of `sweep` to the values that `words` list. Returns the values that were
    /// given more than once and kept once.
    ///
    /// # Errors
    /// When a word is not a value of this axis.
    pub fn set(&self, sweep: &mut S, words: &[String]) -> Result<Vec<String>> {
        (self.set)(sweep, words)
    }

    /// Whether `sweep` has values for this axis.
    pub(crate) fn is_given(&self, sweep: &S) -> bool {
        (self.given)(sweep).is_some()
    }
}

impl<C, S> std::fmt::Debug for Axis<C, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Axis").field(&self.name).finish()
    }
}

impl<C, S> PartialEq for Axis<C, S> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The axis of a list called `name`.
///
/// # Errors
/// When there is none.
pub fn named<C, S>(axes: &'static [Axis<C, S>], name: &str) -> Result<&'static Axis<C, S>> {
    axes.iter().find(|a| a.name == name).ok_or_else(|| {
        let names: Vec<&str> = axes.iter().map(|a| a.name).collect();
        Error::unknown("setting", name, &names)
    })
}

/// Declares `Sweep`, values for each axis of a case, and `AXES`, the axes in the order of the loops: the
/// first is the outermost. `most` is the largest number of cases.
macro_rules! axes {
    ($case:ty, most $most:expr;
     $($field:ident: $type:ty, $name:literal, $metavar:literal, $help:literal,
       $choices:expr, $text:expr, $parse:expr;)*) => {
        /// Values per axis; `None` leaves the default of the case.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Sweep {
            $(#[doc = $help] pub $field: Option<Vec<$type>>,)*
            /// Values that only the word `all` names, as text with the name of their axis.
            pub of_all: Vec<(&'static str, String)>,
        }

        /// Every axis, outermost loop first.
        pub const AXES: &[$crate::config::axes::Axis<$case, Sweep>] =
            &[$($crate::config::axes::Axis {
                name: $name,
                metavar: $metavar,
                help: $help,
                choices: $choices,
                text: |case| ($text)(&case.$field),
                given: |sweep| Some(sweep.$field.as_ref()?.iter().map($text).collect()),
                set: |sweep, words| {
                    let (values, repeated) = $crate::config::axes::values(words, $parse)?;
                    sweep.$field = Some(values);
                    let of_all = $crate::config::axes::of_all::<$type>(words, $parse)?;
                    sweep.of_all.retain(|(name, _)| *name != $name);
                    sweep.of_all.extend(of_all.iter().map(|v| ($name, ($text)(v))));
                    Ok(repeated.iter().map($text).collect())
                },
            }),*];

        impl Sweep {
            /// The axes given in `other` replace those of `self`.
            #[must_use]
            pub(crate) fn overridden_by(&self, other: &Self) -> Self {
                let mut of_all = other.of_all.clone();
                $(if other.$field.is_none() {
                    of_all.extend(self.of_all.iter().filter(|(name, _)| *name == $name).cloned());
                })*
                Self { $($field: other.$field.clone().or_else(|| self.$field.clone()),)* of_all }
            }

            /// Whether `case` has one of the values of each axis that is given.
            pub fn admits(&self, case: &$case) -> bool {
                $(self.$field.as_ref().is_none_or(|values| values.contains(&case.$field)))&&*
            }

            /// Number of cases; `None` when it overflows.
            fn size(&self) -> Option<usize> {
                let mut size = 1_usize;
                $(size = size.checked_mul(self.$field.as_ref().map_or(1, Vec::len))?;)*
                Some(size)
            }

            /// The cross product, in the order of [`AXES`].
            fn product(&self) -> Result<Vec<$case>> {
                if self.size().is_none_or(|size| size > $most) {
                    let most = $most;
                    let many = format!("the sweep has more than {most} cases");
                    return Err(Error::input(many).hint("give fewer values per setting"));
                }
                let mut cases = vec![<$case>::default()];
                $(if let Some(values) = &self.$field {
                    cases = cases
                        .into_iter()
                        .flat_map(|case| values.iter().map(move |value| {
                            let mut case = case.clone();
                            case.$field = value.clone();
                            case
                        }))
                        .collect();
                })*
                Ok(cases)
            }
        }
    };
}
pub(crate) use axes;

/// Parses every piece of every word, without repetitions; second, the repeated values.
pub(crate) fn values<T: PartialEq>(
    words: &[String],
    parse: impl Fn(&str, &mut Vec<T>) -> Result<()>,
) -> Result<(Vec<T>, Vec<T>)> {
    let mut all = Vec::new();
    for word in words {
        for piece in pieces(word)? {
            parse(&piece, &mut all)?;
        }
    }
    if all.is_empty() {
        return Err(Error::input("empty list").hint("give one value or several"));
    }
    let (mut kept, mut repeated) = (Vec::new(), Vec::new());
    for value in all {
        if !kept.contains(&value) {
            kept.push(value);
        } else if !repeated.contains(&value) {
            repeated.push(value);
        }
    }
    Ok((kept, repeated))
}

/// The values that the piece `all` stands for and no other piece does.
pub(crate) fn of_all<T: PartialEq>(
    words: &[String],
    parse: impl Fn(&str, &mut Vec<T>) -> Result<()>,
) -> Result<Vec<T>> {
    let (mut all, mut named) = (Vec::new(), Vec::new());
    for word in words {
        for piece in pieces(word)? {
            parse(&piece, if piece == "all" { &mut all } else { &mut named })?;
        }
    }
    all.retain(|value| !named.contains(value));
    Ok(all)
}

/// The value of a piece that stands for one.
pub(crate) fn one<T>(value: Result<T>, out: &mut Vec<T>) -> Result<()> {
    out.push(value?);
    Ok(())
}
