//! Ctrl-C: the first one asks the run to stop at the next stage, the second one ends the program.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};

/// Exit code after Ctrl-C.
pub const EXIT_CODE: u8 = 130;

static REQUESTS: AtomicUsize = AtomicUsize::new(0);

/// Installs the handler and returns the number of requests so far. Call it once.
pub fn install() -> Result<&'static AtomicUsize> {
    ctrlc::set_handler(|| {
        if REQUESTS.fetch_add(1, Ordering::SeqCst) > 0 {
            std::process::exit(i32::from(EXIT_CODE));
        }
    })
    .map_err(|e| Error::run(format!("cannot handle Ctrl-C: {e}")))?;
    Ok(&REQUESTS)
}
