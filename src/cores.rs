//! Which processor a thread gets when there are fewer threads than processors.

use core_affinity::CoreId;

/// The processors of this process, in the order in which threads take them: one of each core first, then
/// those that share a core with an earlier one. Empty where the system does not tell.
pub(crate) fn in_order() -> Vec<CoreId> {
    let siblings = |id: &CoreId| {
        let path = format!("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", id.id);
        std::fs::read_to_string(path).unwrap_or_default()
    };
    let mut cores = core_affinity::get_core_ids().unwrap_or_default();
    cores.sort_by_cached_key(|id| (place_among(&siblings(id), id.id), id.id));
    cores
}

/// How many of a list such as `0,16` or `0-1` come before `number`.
fn place_among(list: &str, number: usize) -> usize {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.trim().parse().ok()?;
        let last: usize = last.trim().parse().ok()?;
        // those from `first` to `last` that are below `number`
        Some(number.min(last.saturating_add(1)).saturating_sub(first))
    };
    list.split(',').filter_map(range).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_come_behind_the_first_of_their_core() {
        assert_eq!([0, 16].map(|n| place_among("0,16\n", n)), [0, 1]);
        assert_eq!([2, 3].map(|n| place_among("2-3\n", n)), [0, 1]);
        assert_eq!([0, 1, 8, 9].map(|n| place_among("0-1,8-9", n)), [0, 1, 2, 3]);
        assert_eq!(place_among("", 5), 0);
        let order: Vec<usize> = in_order().iter().map(|id| id.id).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), order.len());
    }
}
