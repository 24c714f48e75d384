//! Claims of a paper as data: what it says, which committed records bear on it, and the verdict.

pub(crate) mod formula;
mod read;

use crate::base::error::{Error, Place, Result};
use crate::config::library::{CLAIMS, Library};
use crate::config::source::Source;
use formula::{Condition, Formula};

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The measurements agree.
    Reproduced,
    /// They go beyond what was claimed.
    Exceeded,
    /// They disagree.
    Contradicted,
    /// Nothing was measured.
    Missing,
}

impl Verdict {
    /// All verdicts by name.
    pub const NAMES: [(&str, Self); 4] = [
        ("reproduced", Self::Reproduced),
        ("exceeded", Self::Exceeded),
        ("contradicted", Self::Contradicted),
        ("missing", Self::Missing),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, own)| *own == self).map_or("", |(name, _)| name)
    }
}

/// The claims of a paper, or of this program, in the order of the file.
#[derive(Clone, Debug)]
pub struct Claims {
    /// Folder of the paper below `configs/`.
    pub paper: String,
    /// Title above the table.
    pub title: String,
    /// The claims.
    pub claims: Vec<Claim>,
    /// Sentences of pages that state numbers of records and are no claims: of a claim they have the texts alone.
    pub sentences: Vec<Claim>,
}

/// A claim.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Name, unique in its file.
    pub id: String,
    /// Where the paper makes it: table, figure or section.
    pub source: String,
    /// The claim, in our words.
    pub says: String,
    /// The verdict that the file states.
    pub verdict: Verdict,
    /// What restricts the verdict.
    pub caveat: String,
    /// What was measured, with places for its numbers.
    pub measured: String,
    /// The sentence of the first screen; empty for claims that are not shown there.
    pub finding: String,
    /// Files with a sentence that has places for the numbers.
    pub texts: Vec<(String, String)>,
    /// What the verdict rests on.
    pub basis: Basis,
    /// Where it begins in the file.
    pub(crate) place: Place,
}

/// What a verdict rests on.
#[derive(Clone, Debug)]
pub enum Basis {
    /// Why nothing was measured.
    Missing(String),
    /// Records.
    Records(Evidence),
}

/// The rows that bear on a claim, and the quantity that is made of them.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// Named sets of rows.
    pub(crate) sets: Vec<RowSet>,
    /// Columns in which the rows of one value agree, each by its names in the files.
    pub(crate) per: Vec<Vec<String>>,
    /// The value, of a row from each set.
    pub(crate) value: Formula,
    /// The condition on all values under which the claim is reproduced.
    pub(crate) holds: Condition,
    /// The condition under which it is exceeded.
    pub(crate) exceeds: Option<Condition>,
}

/// Rows of files.
#[derive(Clone, Debug)]
pub(crate) struct RowSet {
    /// Its name in formulas.
    pub name: String,
    /// The files, from the root of the repository.
    pub files: Vec<String>,
    /// Conditions that a row meets.
    pub filters: Vec<Filter>,
    /// The value, of the set's own cells, whose least chooses among rows that agree.
    pub least: Option<Formula>,
    /// Whether its one row stands beside every key.
    pub once: bool,
}

/// A condition on a cell: `column=value`, and likewise `!=`, `<=`, `>=`; `~` and `!~` for a part of the text. Several
/// values are separated by bars.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub column: String,
    pub sign: &'static str,
    pub values: Vec<String>,
}

/// Signs of a [`Filter`], longer ones first.
const SIGNS: [&str; 6] = ["!=", "<=", ">=", "!~", "=", "~"];

impl Filter {
    /// The filter that `word` writes.
    fn parse(word: &str) -> Result<Self> {
        let first = SIGNS.iter().filter_map(|sign| Some((word.find(sign)?, *sign)));
        // at one place the longer sign comes first
        let Some((at, sign)) = first.min_by_key(|(at, _)| *at) else {
            return Err(Error::input(format!("`{word}` is no condition on a column"))
                .hint("write column=value, with one of = != <= >= ~ !~"));
        };
        let values = word[at + sign.len()..].split('|').map(str::to_owned).collect();
        Ok(Self { column: word[..at].to_owned(), sign, values })
    }

    /// Whether `cell` meets it.
    pub(crate) fn accepts(&self, cell: &str) -> bool {
        let number = |text: &str| text.parse::<f64>().ok();
        let ordered = |value: &str| number(cell).zip(number(value));
        let equal = |value: &String| cell == value || ordered(value).is_some_and(|(a, b)| a == b);
        let any = |test: &dyn Fn(&String) -> bool| self.values.iter().any(test);
        match self.sign {
            "=" => any(&equal),
            "!=" => !any(&equal),
            "~" => any(&|value| cell.contains(value)),
            "!~" => !any(&|value| cell.contains(value)),
            "<=" => any(&|value| ordered(value).is_some_and(|(a, b)| a <= b)),
            _ => any(&|value| ordered(value).is_some_and(|(a, b)| a >= b)),
        }
    }
}

/// The claims of all papers of `library`, or of one.
///
/// # Errors
/// When a file of claims is wrong, or the paper has none.
pub fn of(library: &Library, paper: Option<&str>) -> Result<Vec<Claims>> {
    let all = library.with_claims()?;
    if let Some(paper) = paper.filter(|paper| !all.iter().any(|own| own == paper)) {
        let known: Vec<&str> = all.iter().map(String::as_str).collect();
        return Err(Error::unknown("paper with claims", paper, &known));
    }
    let chosen = all.iter().filter(|own| paper.is_none_or(|paper| paper == own.as_str()));
    chosen
        .map(|own| {
            let (name, text) = library.text(&format!("{own}/{CLAIMS}.toml"))?;
            parse(own, &name, &text)
        })
        .collect()
}

/// The claims in `text`; `name` stands for the file in messages.
///
/// # Errors
/// At the first key or value that is wrong.
pub fn parse(paper: &str, name: &str, text: &str) -> Result<Claims> {
    let beside = |_: &str| unreachable!("no key names a file to read");
    read::claims(paper, &Source { name, text, folder: None, beside: &beside })
}

#[cfg(test)]
mod tests;
