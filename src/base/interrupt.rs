//! Ctrl-C: the first one asks the run to stop at the next stage, or the reading of a file at its next
//! block; the second one ends the program.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::error::{Error, Result, STOPPED};

static REQUESTS: AtomicUsize = AtomicUsize::new(0);

/// See [`told_with`].
static WORK: Mutex<Option<String>> = Mutex::new(None);

/// Files that are being read.
static READINGS: AtomicUsize = AtomicUsize::new(0);

/// Installs the handler and returns the number of requests so far. Call it once.
///
/// # Errors
/// When the system refuses it.
pub fn install() -> Result<&'static AtomicUsize> {
    handle(|| {
        if let Ok(Some(work)) = WORK.lock().as_deref() {
            anstream::eprintln!("asked to stop: {work}");
        }
        REQUESTS.fetch_add(1, Ordering::SeqCst) > 0
    })?;
    Ok(&REQUESTS)
}

/// What is said at a request to stop: what runs now, where others may end this process for that of another.
pub(crate) fn told_with(work: Option<String>) {
    *WORK.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = work;
}

/// As [`install`], for commands that look for requests only while they read a file: at any other time
/// the first one ends the program.
///
/// # Errors
/// As [`install`].
pub(crate) fn install_for_reading() -> Result<()> {
    handle(|| {
        let again = REQUESTS.fetch_add(1, Ordering::SeqCst) > 0;
        let reading = READINGS.load(Ordering::SeqCst) > 0;
        if !reading && !again {
            anstream::eprintln!("stopped");
        }
        again || !reading
    })
}

/// Ends the program at a request for which `at_once` holds.
fn handle(at_once: impl Fn() -> bool + Send + 'static) -> Result<()> {
    ctrlc::set_handler(move || {
        if at_once() {
            std::process::exit(i32::from(STOPPED));
        }
    })
    .map_err(|e| Error::run(format!("cannot handle Ctrl-C: {e}")))
}

/// Asks to stop, as Ctrl-C does: for a request that a library took.
pub fn request() {
    REQUESTS.fetch_add(1, Ordering::SeqCst);
}

/// Whether the user asked to stop.
pub fn requested() -> bool {
    REQUESTS.load(Ordering::SeqCst) > 0
}

/// A file is being read, and requests are looked for, as long as this lives.
#[derive(Debug)]
pub(crate) struct Reading(());

impl Reading {
    pub(crate) fn begin() -> Self {
        READINGS.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        READINGS.fetch_sub(1, Ordering::SeqCst);
    }
}
