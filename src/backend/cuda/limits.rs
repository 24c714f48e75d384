//! Limits below those of the hardware, so that tests reach what only large systems reach.

/// Environment variable with limits as `name=number`, separated by commas: `resident` thread blocks
/// of kernels that wait for one another (few of them show a deadlock that many hide), bytes of
/// `shared` memory for the rows of a factorisation, bytes of the list of its `updates`.
const VARIABLE: &str = "BILU_BENCH_LIMITS";

/// `value`, or the limit called `name` where that is lower.
pub(super) fn limited(name: &str, value: usize) -> usize {
    std::env::var(VARIABLE).ok().and_then(|text| find(&text, name)).map_or(value, |l| l.min(value))
}

fn find(text: &str, name: &str) -> Option<usize> {
    let mut limits = text.split(',').filter_map(|limit| limit.split_once('='));
    limits.find(|(key, _)| *key == name)?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_found_by_name() {
        let text = "resident=2,shared=4096";
        assert_eq!(find(text, "resident"), Some(2));
        assert_eq!(find(text, "shared"), Some(4096));
        assert_eq!((find(text, "updates"), find("shared", "shared")), (None, None));
    }
}
