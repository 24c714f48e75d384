//! Formulas over cells of rows, conditions on their values, and places for numbers in sentences.

use crate::base::error::{Error, Result};
use crate::base::parse;
use crate::base::units::significant;

/// A value made of cells: numbers, `set.column`, `set.column[3]` for a number of a list, `+ - * / ( )`, `abs`, `log10`
/// and `given`, which is 0 where its cell is empty. A hyphen belongs to a name, so a minus stands between spaces.
#[derive(Clone, Debug)]
pub(crate) enum Formula {
    Number(f64),
    /// Set, column, place in a list of numbers.
    Cell(String, String, Option<usize>),
    Binary(char, Box<Self>, Box<Self>),
    Function(fn(f64) -> f64, Box<Self>),
    /// The value, or 0 where there is none.
    Given(Box<Self>),
}

impl Formula {
    /// The formula that `text` writes.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser { text, at: 0 };
        let formula = parser.sum()?;
        if parser.peek().is_some() {
            return Err(parser.unexpected("an operator"));
        }
        Ok(formula)
    }

    /// The names of the sets in it.
    pub(crate) fn sets(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Number(_) => Box::new(std::iter::empty()),
            Self::Cell(set, ..) => Box::new(std::iter::once(set.as_str())),
            Self::Binary(_, a, b) => Box::new(a.sets().chain(b.sets())),
            Self::Function(_, of) | Self::Given(of) => of.sets(),
        }
    }

    /// Its value, `cell` being the number in a column of a set's row; `None` where a cell is empty or the result is
    /// no number.
    pub(crate) fn value(
        &self,
        cell: &impl Fn(&str, &str, Option<usize>) -> Result<Option<f64>>,
    ) -> Result<Option<f64>> {
        let value = match self {
            Self::Number(value) => Some(*value),
            Self::Cell(set, column, place) => cell(set, column, *place)?,
            Self::Function(f, of) => of.value(cell)?.map(f),
            Self::Given(of) => of.value(cell)?.or(Some(0.0)),
            Self::Binary(sign, a, b) => {
                let both = a.value(cell)?.zip(b.value(cell)?);
                both.map(|(a, b)| match sign {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    _ => a / b,
                })
            }
        };
        Ok(value.filter(|v| v.is_finite()))
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn take(&mut self, wanted: &[char]) -> Option<char> {
        let found = self.peek().filter(|c| wanted.contains(c))?;
        self.at += found.len_utf8();
        Some(found)
    }

    fn unexpected(&self, wanted: &str) -> Error {
        let (before, rest) = self.text.split_at(self.at);
        Error::input(format!("expected {wanted} in `{}` before `{rest}`", before.trim_end()))
    }

    fn word(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && !"_-.".contains(c));
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    fn sum(&mut self) -> Result<Formula> {
        let mut left = self.product()?;
        while let Some(sign) = self.take(&['+', '-']) {
            left = Formula::Binary(sign, Box::new(left), Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Formula> {
        let mut left = self.factor()?;
        while let Some(sign) = self.take(&['*', '/']) {
            left = Formula::Binary(sign, Box::new(left), Box::new(self.factor()?));
        }
        Ok(left)
    }

    fn closed(&mut self) -> Result<Formula> {
        let inner = self.sum()?;
        self.take(&[')']).map(|_| inner).ok_or_else(|| self.unexpected("`)`"))
    }

    fn factor(&mut self) -> Result<Formula> {
        if self.take(&['(']).is_some() {
            return self.closed();
        }
        let start = self.peek();
        if start.is_some_and(|c| c.is_ascii_digit()) {
            let word = self.word();
            return Ok(Formula::Number(parse::number(word, "finite", f64::is_finite)?));
        }
        let word = self.word();
        if self.take(&['(']).is_some() {
            let function = match word {
                "abs" => f64::abs,
                "log10" => f64::log10,
                "given" => return Ok(Formula::Given(Box::new(self.closed()?))),
                _ => return Err(Error::unknown("function", word, &["abs", "log10", "given"])),
            };
            return Ok(Formula::Function(function, Box::new(self.closed()?)));
        }
        let Some((set, column)) = word.split_once('.') else {
            return Err(self.unexpected("a number or set.column"));
        };
        let mut place = None;
        if self.take(&['[']).is_some() {
            let word = self.word();
            place = Some(parse::whole(word, 0, usize::MAX)?);
            self.take(&[']']).ok_or_else(|| self.unexpected("`]`"))?;
        }
        Ok(Formula::Cell(set.to_owned(), column.to_owned(), place))
    }
}

/// One number made of all values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Summary {
    Least,
    Most,
    Median,
    /// Geometric mean.
    Mean,
    Count,
    /// How many are above, or below, a number.
    Above(f64),
    Below(f64),
}

impl Summary {
    /// `min`, `max`, `median`, `mean`, `count`, `above 1`, `below 1`.
    fn parse(text: &str) -> Result<Self> {
        let number = |word: &str| parse::number(word, "finite", f64::is_finite);
        Ok(match text.split_whitespace().collect::<Vec<_>>()[..] {
            ["min"] => Self::Least,
            ["max"] => Self::Most,
            ["median"] => Self::Median,
            ["mean"] => Self::Mean,
            ["count"] => Self::Count,
            ["above", than] => Self::Above(number(than)?),
            ["below", than] => Self::Below(number(than)?),
            _ => {
                let known =
                    ["min", "max", "median", "mean", "count", "above NUMBER", "below NUMBER"];
                return Err(Error::unknown("summary", text, &known));
            }
        })
    }

    /// Of `values`, of which there is one at least.
    pub(crate) fn of(&self, values: &[f64]) -> f64 {
        let count = values.len() as f64;
        match self {
            Self::Least => values.iter().copied().fold(f64::INFINITY, f64::min),
            Self::Most => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Self::Median => {
                let mut sorted = values.to_vec();
                sorted.sort_by(f64::total_cmp);
                f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
            }
            Self::Mean => (values.iter().map(|v| v.ln()).sum::<f64>() / count).exp(),
            Self::Count => count,
            Self::Above(than) => values.iter().filter(|v| *v > than).count() as f64,
            Self::Below(than) => values.iter().filter(|v| *v < than).count() as f64,
        }
    }

    fn counts(&self) -> bool {
        matches!(self, Self::Count | Self::Above(_) | Self::Below(_))
    }
}

/// `min >= 0.95 and max <= 1.05`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Condition(Vec<(Summary, &'static str, f64)>);

impl Condition {
    /// The condition that `text` writes.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let one = |part: &str| {
            let sign = ["<=", ">=", "<", ">", "="].into_iter().find(|sign| part.contains(sign));
            let (summary, sign, number) = sign
                .and_then(|sign| part.split_once(sign).map(|(a, b)| (a, sign, b)))
                .ok_or_else(|| {
                    Error::input(format!("`{part}` is no condition")).hint("such as `min >= 1.5`")
                })?;
            let number = parse::number(number.trim(), "finite", f64::is_finite)?;
            Ok((Summary::parse(summary.trim())?, sign, number))
        };
        text.split(" and ").map(one).collect::<Result<_>>().map(Self)
    }

    /// Whether `values`, of which there is one at least, meet it.
    pub(crate) fn holds(&self, values: &[f64]) -> bool {
        self.0.iter().all(|(summary, sign, number)| {
            let value = summary.of(values);
            match *sign {
                "<=" => value <= *number,
                ">=" => value >= *number,
                "<" => value < *number,
                ">" => value > *number,
                _ => value == *number,
            }
        })
    }
}

/// A piece of a sentence: text as it is, or a summary with its digits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    Number(Summary, usize),
    /// The key of the least or the largest value.
    At(Summary),
}

/// Splits `text` at its places for numbers: `{min}`, `{max:2}` with two digits, `{above 1}`, `{at max}` for the key of
/// the largest value.
pub(crate) fn places(text: &str) -> Result<Vec<Piece<'_>>> {
    let (mut rest, mut pieces) = (text, Vec::new());
    while let Some((before, behind)) = rest.split_once('{') {
        let (inner, after) = behind.split_once('}').ok_or_else(|| {
            Error::input(format!("`{{{behind}` has no end")).hint("such as {min}")
        })?;
        pieces.push(Piece::Text(before));
        let (word, digits) = inner.split_once(':').unwrap_or((inner, "3"));
        let digits = parse::whole(digits, 1, 9)?;
        pieces.push(match word.strip_prefix("at ") {
            Some(word) => Piece::At(Summary::parse(word)?),
            None => Piece::Number(Summary::parse(word)?, digits),
        });
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

/// `text` with the numbers of `values`, each with its key.
pub(crate) fn filled(text: &str, values: &[(String, f64)]) -> Result<String> {
    let numbers: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    let piece = |piece: Piece<'_>| match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Number(summary, _) if summary.counts() => format!("{:.0}", summary.of(&numbers)),
        Piece::Number(summary, digits) => significant(summary.of(&numbers), digits),
        Piece::At(summary) => {
            let wanted = summary.of(&numbers);
            values.iter().find(|(_, v)| *v == wanted).map_or(String::new(), |(key, _)| key.clone())
        }
    };
    Ok(places(text)?.into_iter().map(piece).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<f64> {
        let cell = |set: &str, column: &str, place: Option<usize>| {
            if column == "ordering-s" {
                return Ok(None);
            }
            assert_eq!((set, column), ("a", "solve-s"));
            Ok(place.map_or(Some(8.0), |place| Some(place as f64)))
        };
        Formula::parse(text).unwrap().value(&cell).unwrap()
    }

    #[test]
    fn formulas_have_the_usual_precedence_and_hyphens_in_names() {
        assert_eq!(value("1 + 2 * a.solve-s / 4 - 1"), Some(4.0));
        assert_eq!(value("abs((1 - a.solve-s) / 2)"), Some(3.5));
        assert_eq!(value("a.solve-s[3] * log10(1e2)"), Some(6.0));
        assert_eq!(value("1 / (a.solve-s - 8)"), None);
        assert_eq!(value("a.solve-s + a.ordering-s"), None);
        assert_eq!(value("a.solve-s + given(a.ordering-s) + given(a.solve-s)"), Some(16.0));
    }

    #[test]
    fn what_is_wrong_in_a_formula_is_said() {
        let error = |text: &str| Formula::parse(text).unwrap_err().to_string();
        assert_eq!(error("a.b +"), "expected a number or set.column in `a.b +` before ``");
        assert_eq!(error("(a.b"), "expected `)` in `(a.b` before ``");
        assert_eq!(error("a.b a.c"), "expected an operator in `a.b` before `a.c`");
        assert_eq!(error("sin(a.b)"), "unknown function `sin`");
        let error = |text: &str| Condition::parse(text).unwrap_err().to_string();
        assert_eq!(error("min 3"), "`min 3` is no condition");
        assert_eq!(error("mim > 3"), "unknown summary `mim`");
    }

    #[test]
    fn conditions_are_of_all_values() {
        let holds = |text: &str| Condition::parse(text).unwrap().holds(&[1.0, 2.0, 4.0]);
        assert!(holds("min >= 1 and max < 5 and median = 2 and count = 3"));
        assert!(holds("above 1 = 2 and below 1.5 = 1 and mean > 1.99 and mean < 2.01"));
        assert!(!holds("min >= 1 and max < 4"));
    }

    #[test]
    fn sentences_have_the_numbers_and_their_places() {
        let values = [("x".to_owned(), 1.234_56), ("y".to_owned(), 98.7)];
        let text = filled("{min:2} to {max} of {count}, {above 2}, most at {at max}", &values);
        assert_eq!(text.unwrap(), "1.2 to 98.7 of 2, 1, most at y");
        assert_eq!(places("{min").unwrap_err().to_string(), "`{min` has no end");
    }
}
