//! A bar for files that take long to read.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::base::measure::now;

/// Reading that is over sooner is not shown.
const LONG: Duration = Duration::from_secs(1);

/// Whether nothing is shown.
static SILENT: AtomicBool = AtomicBool::new(false);

/// All bars of the program, on standard error where that is a terminal.
pub(crate) fn bars() -> &'static MultiProgress {
    static BARS: OnceLock<MultiProgress> = OnceLock::new();
    BARS.get_or_init(MultiProgress::new)
}

/// Shows no bars for files from now on.
pub(crate) fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

/// One line on standard error; an error there is nothing to stop for.
pub(crate) fn say(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Prints a note, but not when it repeats the previous one.
pub(crate) fn say_once(text: &str) {
    static SAID: Mutex<String> = Mutex::new(String::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if *said != text {
        say(text);
        text.clone_into(&mut said);
    }
}

/// How much of a file has been read.
pub(super) struct Progress {
    name: String,
    /// Bytes of the file, where that is known.
    total: Option<u64>,
    done: u64,
    start: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(super) fn new(name: &str, total: Option<u64>) -> Self {
        Self { name: name.into(), total, done: 0, start: now(), bar: None }
    }

    /// Counts `bytes` more, and shows it after a while.
    pub(super) fn advance(&mut self, bytes: u64) {
        self.done += bytes;
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
        } else if self.start.elapsed() >= LONG {
            let shown = !SILENT.load(Ordering::Relaxed) && std::io::stderr().is_terminal();
            let bar = if shown { bars().add(self.begin()) } else { ProgressBar::hidden() };
            self.bar = Some(bar);
        }
    }

    /// A bar that stands where reading does.
    fn begin(&self) -> ProgressBar {
        let template = match self.total {
            Some(_) => {
                "reading {msg} {bar:30} {decimal_bytes}/{decimal_total_bytes}, \
                 {decimal_bytes_per_sec}"
            }
            None => "reading {msg}: {decimal_bytes}, {decimal_bytes_per_sec}",
        };
        let style = ProgressStyle::with_template(template);
        let bar = self.total.map_or_else(ProgressBar::no_length, ProgressBar::new);
        bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
            .with_message(self.name.clone())
            .with_position(self.done)
            .with_elapsed(self.start.elapsed())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
            bars().remove(bar);
        }
    }
}
