//! Number of threads set by the environment.

use std::ffi::OsStr;

use crate::base::error::{Error, Result};
use crate::base::input::say;

/// Environment variables with the number of threads of setups and of reading, the first that is set.
const NAMES: [&str; 2] = ["RAYON_NUM_THREADS", "RAYON_RS_NUM_CPUS"];

/// Starts the thread pool with the number of threads that the environment sets, up to a limit.
///
/// # Errors
/// When the value is not a number, or the threads cannot be started.
pub(super) fn start() -> Result<()> {
    let given = NAMES.into_iter().find_map(|name| Some((name, std::env::var_os(name)?)));
    let Some((name, value)) = given else { return Ok(()) };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let Some(asked) = parsed(name, &value)? else { return Ok(()) };
    let threads = asked.min(most(processors));
    if threads < asked {
        say(&format!("note: {name}={asked}: {threads} threads on {processors} processors"));
    }
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().map_err(|e| {
        Error::run(format!("cannot start {threads} threads: {e}"))
            .hint(format!("{name} says how many"))
    })
}

/// Largest number of threads: oversubscription is allowed within limits, to measure its cost.
fn most(processors: usize) -> usize {
    (4 * processors).max(16)
}

/// Parses a number of threads; `None` for the default.
fn parsed(name: &str, value: &OsStr) -> Result<Option<usize>> {
    let text = value.to_string_lossy();
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits && !text.is_empty() {
        return Err(Error::input(format!("`{text}` is not a number of threads"))
            .in_file(name)
            .hint("a whole number; 0 or nothing for one of each processor"));
    }
    // more digits than fit are far too many threads
    let asked = if text.is_empty() { 0 } else { text.parse().unwrap_or(usize::MAX) };
    Ok((asked > 0).then_some(asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads_are_read_and_bounded() {
        let parsed = |text: &str| parsed("N", OsStr::new(text)).map_err(|e| e.to_string());
        assert_eq!((parsed(""), parsed("0"), parsed("7")), (Ok(None), Ok(None), Ok(Some(7))));
        assert_eq!(parsed("99999999999999999999"), Ok(Some(usize::MAX)));
        for text in ["-1", "two", "1.5", " 2"] {
            assert_eq!(parsed(text), Err(format!("N: `{text}` is not a number of threads")));
        }
        assert_eq!((most(1), most(2), most(64)), (16, 16, 256));
    }
}
