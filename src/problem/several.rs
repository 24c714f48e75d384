//! How several right-hand sides are written: `NAME*COUNT`.

use crate::base::error::{Error, Result};
use crate::compute::multivectors::MOST_COLUMNS;

/// `NAME*COUNT` as its parts; other specs have no count.
///
/// # Errors
/// When the count is not one of columns.
pub(super) fn counted(spec: &str) -> Result<(&str, Option<usize>)> {
    let digits =
        |(_, count): &(&str, &str)| !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit());
    let Some((name, count)) = spec.rsplit_once('*').filter(digits) else {
        return Ok((spec, None));
    };
    match count.parse() {
        Ok(count @ 1..=MOST_COLUMNS) => Ok((name, Some(count))),
        _ => Err(Error::input(format!(
            "right-hand side `{spec}`: 1 to {MOST_COLUMNS} can be solved for at once"
        ))),
    }
}

/// The name of a right-hand side in a spec that may have a count.
pub(crate) fn name(spec: &str) -> &str {
    counted(spec).map_or(spec, |(name, _)| name)
}

/// Columns of the right-hand sides that `spec` names, as far as the name tells.
pub(crate) fn stated_columns(spec: &str) -> Option<usize> {
    counted(spec).ok().and_then(|(_, count)| count)
}
