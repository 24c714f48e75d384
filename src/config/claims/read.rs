//! Reads a file of claims. Every error names file, line and column.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::formula::{Condition, Formula, places};
use super::{Basis, Claim, Claims, Evidence, Filter, RowSet, Verdict};
use crate::base::error::{Error, Place, Result};
use crate::config::source::Source;

/// Keys of `[[claim]]`.
const KEYS: [&str; 14] = [
    "id", "source", "says", "verdict", "caveat", "measured", "finding", "texts", "missing", "rows",
    "per", "value", "holds", "exceeds",
];

pub(super) fn claims(paper: &str, source: &Source<'_>) -> Result<Claims> {
    let mut title = String::new();
    let mut claims: Vec<Claim> = Vec::new();
    let mut sentences = Vec::new();
    for (key, value) in source.document()? {
        match &**key.get_ref() {
            "title" => title = source.string(&value)?,
            "claim" => {
                for table in source.tables(value)? {
                    let own = claim(source, table, true)?;
                    if claims.iter().any(|other| other.id == own.id) {
                        let error = Error::input(format!("claim `{}` is given twice", own.id));
                        return Err(error.at(source.name, own.place.line.unwrap_or(1), None));
                    }
                    claims.push(own);
                }
            }
            "sentence" => {
                for table in source.tables(value)? {
                    sentences.push(claim(source, table, false)?);
                }
            }
            _ => return Err(source.unknown(&key, "key", &["title", "claim", "sentence"])),
        }
    }
    Ok(Claims { paper: paper.to_owned(), title, claims, sentences })
}

/// A claim; one that is not `judged` needs no verdict.
fn claim(source: &Source<'_>, table: Spanned<DeValue<'_>>, judged: bool) -> Result<Claim> {
    let whole = table.span();
    let at = |span: Range<usize>, error: Error| source.error(span, error);
    let mut claim = Claim {
        id: String::new(),
        source: String::new(),
        says: String::new(),
        verdict: Verdict::Missing,
        caveat: String::new(),
        measured: String::new(),
        finding: String::new(),
        texts: Vec::new(),
        basis: Basis::Missing(String::new()),
        place: Place { file: source.name.to_owned(), line: None, column: None },
    };
    claim.place.line = Some(source.place(whole.clone()).0);
    let (mut verdict, mut evidence) = (None, Given::default());
    let mut templates = Vec::new();
    for (key, given) in source.table(table, "a table")? {
        let span = given.span();
        let condition = |text: &str| Condition::parse(text).map_err(|e| at(span.clone(), e));
        match &**key.get_ref() {
            "id" => claim.id = source.string(&given)?,
            "source" => claim.source = source.string(&given)?,
            "says" => claim.says = source.string(&given)?,
            "verdict" => {
                verdict = Some(source.choice(&given, "verdict", &Verdict::NAMES)?);
            }
            "caveat" => claim.caveat = source.string(&given)?,
            "measured" => claim.measured = source.string(&given)?,
            "finding" => claim.finding = source.string(&given)?,
            "missing" => evidence.missing = Some((source.string(&given)?, span)),
            "texts" => {
                for (file, text) in source.table(given, "a table of files and sentences")? {
                    for own in source.strings(&text)? {
                        templates.push((own.clone(), text.span()));
                        claim.texts.push((file.get_ref().to_string(), own));
                    }
                }
                continue;
            }
            "rows" => {
                for (name, rows) in source.table(given, "a table of row sets")? {
                    evidence.sets.push(row_set(source, &name, rows)?);
                }
            }
            "per" => {
                let names = source.strings(&given)?;
                let split = |own: &String| own.split('|').map(str::to_owned).collect();
                evidence.per = names.iter().map(split).collect();
            }
            "value" => {
                let formula = Formula::parse(&source.string(&given)?);
                evidence.value = Some((formula.map_err(|e| at(span.clone(), e))?, span));
            }
            "holds" => evidence.holds = Some(condition(&source.string(&given)?)?),
            "exceeds" => evidence.exceeds = Some(condition(&source.string(&given)?)?),
            _ => return Err(source.unknown(&key, "key", &KEYS)),
        }
        if let "measured" | "finding" = &**key.get_ref() {
            let text = if key.get_ref() == "measured" { &claim.measured } else { &claim.finding };
            templates.push((text.clone(), key.span()));
        }
    }
    for (text, span) in templates {
        places(&text).map_err(|e| at(span, e))?;
    }
    let lacking = |what: &str| at(whole.clone(), Error::input(format!("a claim needs `{what}`")));
    for (what, text) in [("id", &claim.id), ("source", &claim.source), ("says", &claim.says)] {
        if text.is_empty() && judged {
            return Err(lacking(what));
        }
    }
    let verdict = verdict.or((!judged).then_some(Verdict::Reproduced));
    claim.verdict = verdict.ok_or_else(|| lacking("verdict"))?;
    evidence.holds = evidence.holds.or((!judged).then_some(Condition::default()));
    claim.basis = evidence.basis(claim.verdict, at, lacking)?;
    Ok(claim)
}

/// What a claim has of its evidence, some with its place.
#[derive(Default)]
struct Given {
    sets: Vec<RowSet>,
    per: Vec<Vec<String>>,
    value: Option<(Formula, Range<usize>)>,
    holds: Option<Condition>,
    exceeds: Option<Condition>,
    missing: Option<(String, Range<usize>)>,
}

impl Given {
    /// The basis of a claim with this verdict; `at` and `lacking` make errors of a place and of a key.
    fn basis(
        self,
        verdict: Verdict,
        at: impl Fn(Range<usize>, Error) -> Error,
        lacking: impl Fn(&str) -> Error,
    ) -> Result<Basis> {
        let Self { sets, per, value, holds, exceeds, missing } = self;
        match (missing, verdict) {
            (Some((reason, _)), Verdict::Missing) => Ok(Basis::Missing(reason)),
            (Some((_, span)), _) => {
                Err(at(span, Error::input("`missing` needs the verdict missing")))
            }
            (None, Verdict::Missing) => Err(lacking("missing")),
            (None, _) => {
                let (value, span) = value.ok_or_else(|| lacking("value"))?;
                if let Some(name) = value.sets().find(|name| sets.iter().all(|s| s.name != *name)) {
                    let known: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
                    return Err(at(span, Error::unknown("row set", name, &known)));
                }
                let holds = holds.ok_or_else(|| lacking("holds"))?;
                Ok(Basis::Records(Evidence { sets, per, value, holds, exceeds }))
            }
        }
    }
}

/// `NAME = { file = "...", where = "column=value ...", least = "NAME.column", once = true }`.
fn row_set(
    source: &Source<'_>,
    name: &Spanned<DeString<'_>>,
    value: Spanned<DeValue<'_>>,
) -> Result<RowSet> {
    let span = value.span();
    let mut set = RowSet {
        name: name.get_ref().to_string(),
        files: Vec::new(),
        filters: Vec::new(),
        least: None,
        once: false,
    };
    for (key, value) in source.table(value, "a table")? {
        match &**key.get_ref() {
            "file" => set.files = source.strings(&value)?,
            "where" => {
                let text = source.string(&value)?;
                let filters = text.split_whitespace().map(Filter::parse).collect::<Result<_>>();
                set.filters = filters.map_err(|e| source.error(value.span(), e))?;
            }
            "least" => {
                let formula = Formula::parse(&source.string(&value)?);
                set.least = Some(formula.map_err(|e| source.error(value.span(), e))?);
            }
            "once" => {
                let flag = value.get_ref().as_bool();
                let expected =
                    || source.error(value.span(), Error::input("expected true or false"));
                set.once = flag.ok_or_else(expected)?;
            }
            _ => {
                let known = ["file", "where", "least", "once"];
                return Err(source.unknown(&key, "key of a row set", &known));
            }
        }
    }
    if set.files.is_empty() {
        return Err(source.error(span, Error::input("a row set needs `file`")));
    }
    Ok(set)
}
