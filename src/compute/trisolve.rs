//! The algorithms of triangular solves on a GPU. Each describes itself in its file below `cuda/sptrsv`; `build.rs`
//! collects the descriptions, so that a program without the feature `cuda` has them, too.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An algorithm of triangular solves with the factors, by its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Trisolve(&'static str);

/// Factors that an algorithm takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// All.
    Any,
    /// Those of which each triangle is one stencil on a box.
    Stencils,
    /// Scalar ones on a box whose cells are coupled along its axes alone.
    Axes,
}

/// What an algorithm is.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct Description {
    /// Its name.
    pub name: &'static str,
    /// A line about it.
    pub summary: &'static str,
    /// Factors that it takes.
    pub takes: Takes,
    /// Whether it has a launch for each level, of which a long chain has very many.
    pub per_level: bool,
    /// Whether `auto` may choose it.
    pub automatic: bool,
    /// Whether `advise` tries it.
    pub advised: bool,
    /// Largest blocks for which it solves within the kernel of a Krylov method; 0 where it does not.
    pub resident_block: usize,
    /// Whether the solves are those of the vendor's library.
    pub library: bool,
}

impl Description {
    /// What most are.
    pub const PLAIN: Self = Self {
        name: "",
        summary: "",
        takes: Takes::Any,
        per_level: false,
        automatic: false,
        advised: false,
        resident_block: 0,
        library: false,
    };

    /// The algorithm itself.
    #[must_use]
    pub const fn algorithm(&self) -> Trisolve {
        Trisolve(self.name)
    }
}

// `DESCRIPTIONS`, in the order of the registry, and a constant for each algorithm
include!(concat!(env!("OUT_DIR"), "/trisolves.rs"));

/// Algorithms, and the backend's choice.
const COUNT: usize = DESCRIPTIONS.len() + 1;

static ALL: [Trisolve; COUNT] = {
    let mut all = [Trisolve::AUTO; COUNT];
    let mut i = 1;
    while i < COUNT {
        all[i] = DESCRIPTIONS[i - 1].algorithm();
        i += 1;
    }
    all
};

/// The names that a user may write, with one-line summaries.
pub const NAMES: &[(&str, &str)] = &{
    let mut names = [("all", "each of these variants, one after the other"); COUNT + 1];
    names[0] = (Trisolve::AUTO.0, "the backend's best; the only one on a CPU");
    let mut i = 1;
    while i < COUNT {
        names[i] = (DESCRIPTIONS[i - 1].name, DESCRIPTIONS[i - 1].summary);
        i += 1;
    }
    names
};

impl Trisolve {
    /// The backend's best; the only choice on a CPU.
    pub const AUTO: Self = Self("auto");

    /// What it is; `None` for [`AUTO`](Self::AUTO).
    #[must_use]
    pub fn about(self) -> Option<&'static Description> {
        DESCRIPTIONS.iter().find(|about| about.name == self.0)
    }

    /// Algorithms that are so.
    pub fn which(such: fn(&Description) -> bool) -> impl Iterator<Item = Self> {
        DESCRIPTIONS.iter().filter(move |about| such(about)).map(Description::algorithm)
    }

    /// Whether it is an algorithm, not [`AUTO`](Self::AUTO), and such a one.
    pub fn is(self, such: impl Fn(&Description) -> bool) -> bool {
        self.about().is_some_and(such)
    }
}

impl Default for Trisolve {
    fn default() -> Self {
        Self::AUTO
    }
}

/// As the variant of an enum is printed.
impl std::fmt::Debug for Trisolve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (first, rest) = self.0.split_at(1);
        write!(f, "{}{rest}", first.to_uppercase())
    }
}

impl ValueEnum for Trisolve {
    fn value_variants<'a>() -> &'a [Self] {
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, summary) = *NAMES.iter().find(|(name, _)| *name == self.0)?;
        Some(PossibleValue::new(name).help(summary))
    }
}

impl Serialize for Trisolve {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for Trisolve {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let known = ALL.iter().find(|algorithm| algorithm.0 == name).copied();
        known.ok_or_else(|| {
            let names: Vec<String> = ALL.iter().map(|a| format!("`{}`", a.0)).collect();
            let names = names.join(", ");
            de::Error::custom(format!("unknown variant `{name}`, expected one of {names}"))
        })
    }
}
