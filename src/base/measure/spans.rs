//! Where the parts of a setup spend their time: nested spans, printed as they end where `BILU_BENCH_SPANS` is set.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::Instant;

use super::{now, seconds_since};

/// Environment variable that turns spans on.
const SPANS: &str = "BILU_BENCH_SPANS";

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Whether spans are printed.
pub(crate) fn on() -> bool {
    static ON: OnceLock<bool> = OnceLock::new();
    *ON.get_or_init(|| std::env::var_os(SPANS).is_some_and(|value| !value.is_empty()))
}

/// What `f` returns; its seconds are printed as those of `name`.
pub(crate) fn span<R>(name: &str, f: impl FnOnce() -> R) -> R {
    if !on() {
        return f();
    }
    let depth = DEPTH.replace(DEPTH.get() + 1);
    let start: Instant = now();
    let result = f();
    eprintln!("{:indent$}{name} {:.3} ms", "", 1e3 * seconds_since(start), indent = 2 * depth);
    DEPTH.set(depth);
    result
}
