//! A combination of settings in a few words.

use std::fmt::Write as _;

use crate::case::{Case, Setting};
use crate::config::AXES;

/// Settings that are named where they are used and not the default.
const NAMED: &[&str] =
    &["shift", "level-rule", "orthogonalisation", "factor-precision", "trisolve", "execution"];

/// The searched settings that are used, in a few words.
pub(crate) fn describe(case: &Case) -> String {
    let Case { precond, fill, block_size, ordering, solver, restart, backend, .. } = case;
    let mut words = precond.clone();
    for (setting, word) in [
        (Setting::Fill, format!(" k={fill}")),
        (Setting::BlockSize, format!(" b={block_size}")),
        (Setting::Ordering, format!(" {ordering}")),
    ] {
        if case.uses(setting) {
            words.push_str(&word);
        }
    }
    _ = write!(words, " {solver}");
    if case.uses(Setting::Restart) {
        _ = write!(words, "({restart})");
    }
    _ = write!(words, " {backend}");
    let default = Case::default();
    for axis in AXES.iter().filter(|a| NAMED.contains(&a.name) && case.uses_named(a.name)) {
        let word = (axis.text)(case);
        if word != (axis.text)(&default) {
            _ = write!(words, " {}={word}", axis.name);
        }
    }
    words
}
