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

/// Bytes of the last-level caches that the processors with these numbers have; those that share one count
/// it once. `None` where the system does not tell.
pub(crate) fn last_level_cache(processors: &[usize]) -> Option<usize> {
    let mut found: Vec<Cache> = processors.iter().filter_map(|&cpu| last_of(cpu)).collect();
    found.sort();
    found.dedup();
    (!found.is_empty()).then(|| found.iter().map(|cache| cache.bytes).sum()).or_else(by_instruction)
}

/// A cache: its level, the processors that share it and its size.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cache {
    level: u32,
    shared: String,
    bytes: usize,
}

/// The last cache of a processor as Linux lists it.
fn last_of(cpu: usize) -> Option<Cache> {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    let cache = |entry: std::fs::DirEntry| {
        let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).ok();
        let level = read("level")?.trim().parse().ok()?;
        let bytes = size(read("size")?.trim())?;
        Some(Cache { level, shared: read("shared_cpu_list")?.trim().to_owned(), bytes })
    };
    std::fs::read_dir(folder).ok()?.flatten().filter_map(cache).max_by_key(|cache| cache.level)
}

/// Bytes of `491520K` or `32M`.
fn size(text: &str) -> Option<usize> {
    let unit = match text.chars().last()? {
        'K' => 1 << 10,
        'M' => 1 << 20,
        _ => return text.parse().ok(),
    };
    text[..text.len() - 1].parse::<usize>().ok()?.checked_mul(unit)
}

/// One instance of the last cache as the processor tells it.
fn by_instruction() -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    {
        let caches = raw_cpuid::CpuId::new().get_cache_parameters()?;
        let last = caches
            .filter(|c| c.cache_type() != raw_cpuid::CacheType::Instruction)
            .max_by_key(raw_cpuid::CacheParameter::level)?;
        let ways = last.associativity() * last.physical_line_partitions();
        Some(ways * last.coherency_line_size() * last.sets())
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
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
    fn caches_have_a_size() {
        assert_eq!(size("491520K"), Some(480 << 20));
        assert_eq!(
            ["32M", "512", "", "K", "lots"].map(size),
            [Some(32 << 20), Some(512), None, None, None]
        );
        let all: Vec<usize> = in_order().iter().map(|id| id.id).collect();
        // those of more processors are never less
        if let (Some(one), Some(many)) =
            (all.first().and_then(|&cpu| last_level_cache(&[cpu])), last_level_cache(&all))
        {
            assert!(many >= one && one > 0, "{one} {many}");
        }
    }

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
