//! Reads the description of a peer. Every error names file, line and column.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::{Method, Peer, Values, declarable};
use crate::base::error::{Error, Result};
use crate::config::Axis;
use crate::config::source::{Entry, Source, text};
use crate::config::sweep::axis;

/// Keys of the file.
const KEYS: [&str; 7] =
    ["summary", "command", "environment", "matrix-market", "solver", "precond", "advise"];
/// Stands for every value of a setting.
const ANY: &str = "any";
/// The key of a method's name in the words of the peer.
const WORD: &str = "word";

impl Peer {
    /// Reads the description of the peer called `name`.
    ///
    /// # Errors
    /// When the file cannot be read, or something in it is wrong.
    pub(crate) fn open(name: &str, path: &Path) -> Result<Self> {
        let contents = text(path)?;
        let file = std::path::absolute(path).map_err(|e| Error::io("find", path, &e))?;
        let beside = |_: &str| unreachable!("no key names a file to read");
        let shown = path.display().to_string();
        let source = Source { name: &shown, text: &contents, folder: None, beside: &beside };
        Self::parse(name, &source).map(|peer| Self { file, ..peer })
    }

    pub(super) fn parse(name: &str, source: &Source<'_>) -> Result<Self> {
        let mut peer = Self { name: name.to_owned(), ..Self::default() };
        let mut best = Vec::new();
        for (key, value) in source.document()? {
            match &**key.get_ref() {
                "summary" => peer.summary = source.string(&value)?,
                "command" => peer.command = source.strings(&value)?,
                "environment" => {
                    for (name, value) in source.table(value, "a table of variables")? {
                        let word = source.string(&value)?;
                        peer.environment.push((name.get_ref().to_string(), word));
                    }
                }
                "matrix-market" => {
                    let flag = value.get_ref().as_bool();
                    peer.matrix_market = flag.ok_or_else(|| {
                        source.error(value.span(), Error::input("expected true or false"))
                    })?;
                }
                "solver" => peer.solvers = methods(source, value, axis("solver")?)?,
                "precond" => peer.preconditioners = methods(source, value, axis("precond")?)?,
                "advise" => best = in_order(source.table(value, "a table of solvers")?),
                _ => return Err(source.unknown(&key, "key", &KEYS)),
            }
        }
        let given = [
            ("command", peer.command.first().is_some_and(|program| !program.is_empty())),
            ("[solver]", !peer.solvers.is_empty()),
            ("[precond]", !peer.preconditioners.is_empty()),
        ];
        match given.iter().find(|(_, given)| !given) {
            None => {
                peer.best = peer.pairs(source, best)?;
                Ok(peer)
            }
            Some((what, _)) => {
                let error = Error::input(format!("a peer needs {what}")).in_file(source.name);
                Err(error.hint("docs/peers.md shows a description"))
            }
        }
    }
}

impl Peer {
    /// Its best methods: solvers with the preconditioners of each, all of which it has.
    fn pairs(&self, source: &Source<'_>, best: Vec<Entry<'_>>) -> Result<Vec<(String, String)>> {
        let known = |what, methods, of: &str, word: &str, span: Range<usize>| {
            let name = axis(of)?.canonical(word).map_err(|e| source.error(span.clone(), e))?;
            let found = self.method(what, methods, &name);
            found.map_err(|why| source.error(span, Error::input(why)))?;
            Ok::<_, Error>(name)
        };
        let mut pairs = Vec::new();
        for (key, value) in best {
            let solver = known("solver", &self.solvers, "solver", key.get_ref(), key.span())?;
            for (word, span) in source.words(&value)? {
                let of = (&self.preconditioners, "precond");
                let precond = known("preconditioner", of.0, of.1, &word, span)?;
                pairs.push((solver.clone(), precond));
            }
        }
        Ok(pairs)
    }
}

/// As they stand in the file.
fn in_order(mut entries: Vec<Entry<'_>>) -> Vec<Entry<'_>> {
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// The methods of a table; `of` is the setting that names them.
fn methods(
    source: &Source<'_>,
    value: Spanned<DeValue<'_>>,
    of: &'static Axis,
) -> Result<Vec<Method>> {
    let mut methods: Vec<Method> = Vec::new();
    for (key, value) in in_order(source.table(value, "a table of methods")?) {
        let name = of.canonical(key.get_ref()).map_err(|e| source.error(key.span(), e))?;
        if methods.iter().any(|method| method.name == name) {
            let message = format!("`{name}` is given twice");
            return Err(source.error(key.span(), Error::input(message)));
        }
        methods.push(method(source, name, value)?);
    }
    Ok(methods)
}

/// `"word"`, or `{ word = "word", side = ["left", "right"] }`.
fn method(source: &Source<'_>, name: String, value: Spanned<DeValue<'_>>) -> Result<Method> {
    if !value.get_ref().is_table() {
        return Ok(Method { name, word: source.string(&value)?, settings: Vec::new() });
    }
    let mut method = Method { word: name.clone(), name, settings: Vec::new() };
    for (key, value) in in_order(source.table(value, "a table")?) {
        if &**key.get_ref() == WORD {
            method.word = source.string(&value)?;
        } else {
            method.settings.push(values(source, &key, value)?);
        }
    }
    Ok(method)
}

/// The values of a setting: one or a list as in a sweep, `"any"`, or a table from ours to the peer's.
fn values(
    source: &Source<'_>,
    key: &Spanned<DeString<'_>>,
    value: Spanned<DeValue<'_>>,
) -> Result<Values> {
    let Some(axis) = declarable().find(|axis| axis.name == &**key.get_ref()) else {
        let known: Vec<&str> =
            std::iter::once(WORD).chain(declarable().map(|axis| axis.name)).collect();
        return Err(source.unknown(key, "setting of a peer's method", &known));
    };
    if value.get_ref().is_table() {
        let mut known = Vec::new();
        for (own, value) in in_order(source.table(value, "a table")?) {
            let text = axis.canonical(own.get_ref()).map_err(|e| source.error(own.span(), e))?;
            known.push((text, source.string(&value)?));
        }
        let shown = known.iter().map(|(own, _)| own.as_str()).collect::<Vec<_>>().join(", ");
        return Ok(Values { axis, shown, known: Some(known) });
    }
    let words = source.words(&value)?;
    let mut known = Vec::new();
    for (word, span) in &words {
        if word == ANY {
            return Ok(Values { axis, shown: ANY.into(), known: None });
        }
        let texts = axis.texts(std::slice::from_ref(word));
        let texts = texts.map_err(|e| source.error(span.clone(), e))?;
        known.extend(texts.into_iter().map(|text| (text.clone(), text)));
    }
    let shown = words.into_iter().map(|(word, _)| word).collect::<Vec<_>>().join(", ");
    Ok(Values { axis, shown, known: Some(known) })
}
