//! What a peer answers: an object of JSON a line, `hello`, `setup`, `solve` and `end`.

use serde::Deserialize;
use serde_json::Value;

use crate::base::status::Status;

/// Version of the protocol, which a peer names first.
pub(super) const PROTOCOL: u64 = 1;

/// Most seconds of a phase that are believed.
const MOST_SECONDS: f64 = 1e9;
/// What is kept of a text.
const LONGEST_TEXT: usize = 300;
/// What is shown of a line that is refused.
const SHOWN: usize = 60;

/// Who answers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Hello {
    #[allow(dead_code, reason = "checked before the rest is read")]
    protocol: u64,
    /// Name and version of its library.
    pub(super) version: String,
    /// What it computes on, if not on the host.
    #[serde(default)]
    pub(super) device: Option<String>,
    #[serde(default)]
    pub(super) threads: Option<usize>,
    #[serde(default)]
    pub(super) ranks: Option<usize>,
}

/// A setup, with the seconds of its phases or of all of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(super) struct Setup {
    pub(super) matrix: Option<f64>,
    pub(super) symbolic: Option<f64>,
    pub(super) analysis: Option<f64>,
    pub(super) numeric: Option<f64>,
    /// All phases but `matrix`, where the peer cannot tell them apart.
    pub(super) seconds: Option<f64>,
    pub(super) factor_entries: Option<usize>,
    pub(super) memory_bytes: Option<usize>,
}

/// A timed solve.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Solve {
    seconds: f64,
}

/// How the last solve ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum EndStatus {
    Converged,
    IterationLimit,
    Stagnated,
    Diverged,
    Breakdown,
    OutOfMemory,
    Unsupported,
    Failed,
}

/// The last line.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct End {
    pub(super) status: EndStatus,
    #[serde(default)]
    pub(super) iterations: Option<usize>,
    /// What was monitored last, relative to its initial value.
    #[serde(default)]
    pub(super) residual: Option<f64>,
    #[serde(default)]
    pub(super) reason: Option<String>,
    /// Norms of the monitored residual: initially, then after each iteration.
    #[serde(default)]
    pub(super) history: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    Hello(Hello),
    Setup(Setup),
    Solve(Solve),
    End(End),
}

/// What has been answered so far.
#[derive(Debug, Default)]
pub(super) struct Answer {
    lines: usize,
    pub(super) hello: Option<Hello>,
    pub(super) setups: Vec<Setup>,
    /// Seconds of the timed solves.
    pub(super) solves: Vec<f64>,
    pub(super) end: Option<End>,
    /// The status of an answer that was refused, where it is not [`Status::Failed`].
    pub(super) refused: Option<Status>,
}

/// A text of a peer as a part of a line.
pub(super) fn plain(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().map(plain).take(LONGEST_TEXT).collect()
}

impl Answer {
    /// Takes a line.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn line(&mut self, text: &str) -> Result<(), String> {
        self.lines += 1;
        if text.trim().is_empty() {
            return Ok(());
        }
        self.take(text).map_err(|what| format!("line {} of its answer: {what}", self.lines))
    }

    fn take(&mut self, text: &str) -> Result<(), String> {
        let start = || plain(text).chars().take(SHOWN).collect::<String>();
        let value: Value =
            serde_json::from_str(text).map_err(|_| format!("`{}` is no JSON", start()))?;
        if let Some(version) = value.get("hello").and_then(|hello| hello.get("protocol"))
            && version.as_u64() != Some(PROTOCOL)
        {
            self.refused = Some(Status::Unsupported);
            return Err(format!("protocol {version}, this program speaks {PROTOCOL}"));
        }
        let line = Line::deserialize(value).map_err(|e| {
            let what = e.to_string();
            format!("`{}`: {what}", start())
        })?;
        let wrong = match (&line, &self.hello, self.setups.last(), &self.end) {
            (_, _, _, Some(_)) => Some("`end` was the last"),
            (Line::Hello(_), Some(_), _, _) => Some("a second `hello`"),
            (Line::Hello(_), None, _, _) => None,
            (_, None, _, _) => Some("`hello` comes first"),
            (Line::Solve(_), _, None, _) => Some("`solve` before `setup`"),
            _ => None,
        };
        if let Some(wrong) = wrong {
            return Err(wrong.into());
        }
        match line {
            Line::Hello(hello) => self.hello = Some(hello),
            Line::Setup(setup) => {
                let Setup { matrix, symbolic, analysis, numeric, seconds, .. } = setup;
                let times = [matrix, symbolic, analysis, numeric, seconds];
                times.into_iter().flatten().try_for_each(believed)?;
                self.setups.push(setup);
            }
            Line::Solve(Solve { seconds }) => {
                believed(seconds)?;
                self.solves.push(seconds);
            }
            Line::End(end) => {
                if end.residual.is_some_and(|residual| residual < 0.0) {
                    return Err("a negative residual".into());
                }
                let solved = matches!(end.status, EndStatus::Converged | EndStatus::IterationLimit);
                if solved && end.iterations.is_none() {
                    return Err("`end` without `iterations`".into());
                }
                self.end = Some(end);
            }
        }
        Ok(())
    }
}

/// Checks a time.
fn believed(seconds: f64) -> Result<(), String> {
    if (0.0..=MOST_SECONDS).contains(&seconds) {
        Ok(())
    } else {
        Err(format!("{seconds} is no time in seconds"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &str = r#"{"hello": {"protocol": 1, "version": "lib 2"}}"#;

    fn refused(lines: &[&str]) -> String {
        let mut answer = Answer::default();
        lines.iter().find_map(|line| answer.line(line).err()).expect("something is wrong")
    }

    #[test]
    fn an_answer_is_taken_line_by_line() {
        let mut answer = Answer::default();
        for line in [
            HELLO,
            "",
            r#"{"setup": {"symbolic": 0.5, "numeric": 0.25, "factor-entries": 7}}"#,
            r#"{"setup": {"seconds": 1}}"#,
            r#"{"solve": {"seconds": 2e-3}}"#,
            r#"{"solve": {"seconds": 0}}"#,
            r#"{"end": {"status": "iteration-limit", "iterations": 9, "residual": 0.5}}"#,
        ] {
            answer.line(line).unwrap();
        }
        let hello = answer.hello.unwrap();
        assert_eq!((hello.version.as_str(), hello.threads), ("lib 2", None));
        assert_eq!((answer.setups.len(), answer.setups[0].factor_entries), (2, Some(7)));
        assert_eq!(answer.solves, [2e-3, 0.0]);
        let end = answer.end.unwrap();
        assert_eq!((end.status, end.iterations), (EndStatus::IterationLimit, Some(9)));
        assert_eq!((end.residual, end.history), (Some(0.5), Vec::new()));
    }

    #[test]
    fn rubbish_is_refused_with_its_line() {
        let setup = r#"{"setup": {}}"#;
        assert_eq!(refused(&["warming up"]), "line 1 of its answer: `warming up` is no JSON");
        let nan = r#"{"end": {"status": "converged", "residual": NaN}}"#;
        assert_eq!(refused(&[HELLO, nan]), format!("line 2 of its answer: `{nan}` is no JSON"));
        assert_eq!(refused(&[setup]), "line 1 of its answer: `hello` comes first");
        assert_eq!(refused(&[HELLO, HELLO]), "line 2 of its answer: a second `hello`");
        let solve = r#"{"solve": {"seconds": 1}}"#;
        assert_eq!(refused(&[HELLO, solve]), "line 2 of its answer: `solve` before `setup`");
        let end = r#"{"end": {"status": "breakdown"}}"#;
        assert_eq!(refused(&[HELLO, end, solve]), "line 3 of its answer: `end` was the last");
        let end = r#"{"end": {"status": "converged"}}"#;
        assert_eq!(refused(&[HELLO, end]), "line 2 of its answer: `end` without `iterations`");
        let slow = r#"{"solve": {"seconds": -1.5}}"#;
        let told = "line 3 of its answer: -1.5 is no time in seconds";
        assert_eq!(refused(&[HELLO, setup, slow]), told);
        let unknown = r#"{"setup": {"second": 1}}"#;
        assert!(refused(&[HELLO, unknown]).contains("unknown field `second`"));
        let status = r#"{"end": {"status": "fine"}}"#;
        assert!(refused(&[HELLO, status]).contains("unknown variant `fine`"));
        assert!(refused(&["[1, 2]"]).starts_with("line 1 of its answer: `[1, 2]`: "));
        let long = "x".repeat(70);
        let told = format!("line 1 of its answer: `{}` is no JSON", "x".repeat(60));
        assert_eq!(refused(&[&long]), told);
    }

    #[test]
    fn another_version_of_the_protocol_is_not_supported_whatever_else_it_says() {
        let mut answer = Answer::default();
        let error = answer.line(r#"{"hello": {"protocol": 2, "news": []}}"#).unwrap_err();
        assert_eq!(error, "line 1 of its answer: protocol 2, this program speaks 1");
        assert_eq!(answer.refused, Some(Status::Unsupported));
    }

    #[test]
    fn texts_are_parts_of_a_line() {
        assert_eq!(plain(" a\n\u{1b}[1mb "), "a  [1mb");
        assert_eq!(plain(&"y".repeat(400)).len(), 300);
    }
}
