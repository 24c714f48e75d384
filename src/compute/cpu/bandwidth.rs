//! Bandwidth of the host's memory: the roof of everything that only moves bytes.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::base::cores;
use crate::base::measure::{memory_free, timed};
use crate::base::memory::zeroed;
use crate::compute::cpu::stream;

/// What the memory of this host yields on some threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bandwidth {
    /// Of `y = x` in GB/s (1e9), reads and writes counted, in the faster of two ways.
    pub copy_gbps: f64,
    /// Which that was.
    pub method: &'static str,
    /// Of reading alone, `sum(x)`, in GB/s.
    pub read_gbps: f64,
    /// Bytes of each of the two arrays.
    pub array_bytes: usize,
    /// Bytes of the last-level caches that the threads have, where the system tells.
    pub cache_bytes: Option<usize>,
    /// Whether what is read was taken out of the caches before each pass.
    pub flushed: bool,
}

impl Bandwidth {
    /// What it was measured with, in a line.
    pub fn described(&self) -> String {
        let mib = |bytes: usize| bytes >> 20;
        let of = match self.cache_bytes {
            None => "of unknown caches".to_owned(),
            Some(cache) if self.flushed => {
                format!("taken out of the last-level cache of {} MiB before each pass", mib(cache))
            }
            Some(cache) if self.array_bytes / CACHES >= cache => {
                format!("{CACHES} times the last-level cache of {} MiB or more", mib(cache))
            }
            Some(cache) => format!(
                "less than {CACHES} times the last-level cache of {} MiB: no more memory is free or asked \
                 for, and the numbers may be too high",
                mib(cache)
            ),
        };
        format!("{} copy, 2 arrays of {} MiB, {of}", self.method, mib(self.array_bytes))
    }
}

/// An array has this many times the bytes of the last-level caches, so that a pass finds nothing of the one
/// before (`McCalpin`'s rule for STREAM).
const CACHES: usize = 4;

/// Bytes of an array where caches are small or unknown.
const LEAST: usize = 128 << 20;

/// Part of the free memory that both arrays may take.
const SHARE: usize = 4;

/// Bytes of the largest arrays that are measured with on the way; the system needs a second for pages of a
/// few GiB. Larger caches are flushed instead.
const QUICK: usize = 512 << 20;

/// Bytes of an array, however little memory is free.
const SMALLEST: usize = 8 << 20;

/// Environment variable with the most bytes of an array, for tests of the program, to which bandwidth does not matter.
const MOST_BYTES: &str = "BILU_BENCH_COPY_BYTES";

/// Arrays have a multiple of so many bytes.
const UNIT: usize = 1 << 16;

/// Bytes of a timed piece; larger arrays are timed in pieces.
const PIECE: usize = 256 << 20;

/// Pieces that are timed in each way; the fastest counts, since all that disturbs makes them slower.
const SAMPLES: usize = 3;

/// Bytes of the smallest pages.
const PAGE: usize = 4096;

/// Ways of copying.
const METHODS: [&str; 2] = ["streaming", "plain"];

/// [`Bandwidth::copy_gbps`] on `threads` threads.
pub(crate) fn copy_bandwidth(threads: usize) -> f64 {
    bandwidth(threads).copy_gbps
}

/// Bandwidth on `threads` threads, each on a core of its own where there are as many. Measured once per
/// thread count and remembered. It takes some tenths of a second: where four times the caches are more than
/// 512 MiB, arrays are smaller and what is read is flushed from the caches.
pub fn bandwidth(threads: usize) -> Bandwidth {
    static KNOWN: Mutex<Option<HashMap<usize, Bandwidth>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *known.get_or_insert_default().entry(threads).or_insert_with(|| measure(threads, 1, QUICK))
}

/// The same with arrays of four times the caches, whatever that takes.
pub(crate) fn bandwidth_beyond_caches(threads: usize) -> Bandwidth {
    measure(threads, 1, usize::MAX)
}

/// Copy bandwidth of one thread in GB/s while `processes` of this host measure at the same time: they share
/// its cache and its memory.
#[cfg(feature = "mpi")]
pub(crate) fn copy_bandwidth_beside(processes: usize) -> f64 {
    measure(1, processes.max(1), QUICK).copy_gbps
}

/// Bytes of an array: beyond `cache`, within `free`, and whether what is read has to be flushed because that
/// would be more than `most`.
fn array_bytes(cache: Option<usize>, free: usize, processes: usize, most: usize) -> (usize, bool) {
    let beyond = cache.unwrap_or(0).saturating_mul(CACHES).max(LEAST);
    let flushed = beyond > most && stream::can_flush();
    let wanted = if flushed { LEAST } else { beyond };
    let bytes = wanted.min(free / SHARE / 2) / processes;
    // whole cache lines for each thread of many
    (bytes.max(SMALLEST).next_multiple_of(UNIT), flushed)
}

/// The most bytes that the user wants.
fn most_bytes() -> usize {
    let asked = std::env::var(MOST_BYTES).ok().and_then(|bytes| bytes.parse::<usize>().ok());
    asked.map_or(usize::MAX, |bytes| bytes.max(UNIT) / UNIT * UNIT)
}

/// Threads that each do their own part of the work.
struct Crew {
    pool: Option<rayon::ThreadPool>,
    threads: usize,
}

impl Crew {
    /// Threads on cores of their own, where there are as many.
    fn new(threads: usize) -> Self {
        let cores = super::pinned(threads);
        let pin = move |i: usize| {
            if let Some(&core) = cores.get(i) {
                core_affinity::set_for_current(core);
            }
        };
        let builder = rayon::ThreadPoolBuilder::new().num_threads(threads).start_handler(pin);
        let pool = if threads > 1 { builder.build().ok() } else { None };
        Self { threads: pool.as_ref().map_or(1, |_| threads), pool }
    }

    /// Does `work` on the parts of both slices, a thread each and always the same.
    fn each(&self, x: &mut [f64], y: &mut [f64], work: impl Fn(&mut [f64], &mut [f64]) + Sync) {
        let part = x.len().div_ceil(self.threads).next_multiple_of(LINE);
        let Some(pool) = &self.pool else { return work(x, y) };
        let parts: Vec<_> =
            x.chunks_mut(part).zip(y.chunks_mut(part)).map(|part| Mutex::new(Some(part))).collect();
        pool.broadcast(|context| {
            let part = parts.get(context.index()).and_then(|part| part.lock().ok()?.take());
            if let Some((x, y)) = part {
                work(x, y);
            }
        });
    }
}

/// Numbers of a cache line.
const LINE: usize = 8;

/// `n` numbers from the beginning of a cache line on.
fn on_lines(v: &mut [f64], n: usize) -> &mut [f64] {
    let skipped = v.as_ptr().align_offset(8 * LINE);
    &mut v[skipped..skipped + n]
}

fn measure(threads: usize, processes: usize, most: usize) -> Bandwidth {
    let threads = threads.max(1);
    let cores = cores::in_order();
    let used: Vec<usize> = cores.iter().take(threads).map(|core| core.id).collect();
    let cache_bytes = cores::last_level_cache(&used);
    let (array_bytes, flushed) = array_bytes(cache_bytes, memory_free(), processes, most);
    let array_bytes = array_bytes.min(most_bytes());
    let crew = Crew::new(threads);
    let n = array_bytes / 8;
    let (mut x, mut y) = (zeroed::<f64>(n + LINE), zeroed::<f64>(n + LINE));
    let (x, y) = (on_lines(&mut x, n), on_lines(&mut y, n));
    let piece = n.div_ceil((array_bytes / PIECE).max(1)).next_multiple_of(LINE);
    let mut pieces: Vec<_> = x.chunks_mut(piece).zip(y.chunks_mut(piece)).collect();
    for (x, y) in &mut pieces {
        // pages are those of the thread that writes first
        crew.each(x, y, |x, y| {
            x.fill(1.0);
            y.iter_mut().step_by(PAGE / 8).for_each(|y| *y = 2.0);
        });
    }
    let prepare = |x: &mut [f64], y: &mut [f64]| {
        if flushed {
            crew.each(x, y, |x, _| stream::flush(x));
        }
    };
    // what a plain copy writes may stay in a cache that is larger
    let methods = if flushed { 1 } else { METHODS.len() };
    let mut best = [0.0_f64; METHODS.len()];
    let count = pieces.len();
    for turn in 0..count.max(SAMPLES * methods) {
        let (x, y) = &mut pieces[turn % count];
        let bytes = 16.0 * x.len() as f64;
        let method = turn % methods;
        prepare(x, y);
        let ((), seconds) = timed(|| match METHODS[method] {
            "plain" => crew.each(x, y, |x, y| y.copy_from_slice(x)),
            _ => crew.each(x, y, |x, y| {
                stream::copy(bytemuck::cast_slice(x), bytemuck::cast_slice_mut(y));
                stream::fence();
            }),
        });
        best[method] = best[method].max(bytes / seconds / 1e9);
    }
    let mut read_gbps = 0.0_f64;
    for turn in 0..SAMPLES {
        let (x, y) = &mut pieces[turn % count];
        let bytes = 8.0 * x.len() as f64;
        prepare(x, y);
        let ((), seconds) = timed(|| {
            crew.each(x, y, |x, _| {
                std::hint::black_box(stream::sum(x));
            });
        });
        read_gbps = read_gbps.max(bytes / seconds / 1e9);
    }
    std::hint::black_box(&pieces);
    let (method, copy_gbps) =
        METHODS.into_iter().zip(best).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(("", 0.0));
    Bandwidth { copy_gbps, method, read_gbps, array_bytes, cache_bytes, flushed }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn arrays_are_four_times_the_cache_where_there_is_room() {
        let free = 20 << 30;
        let all = |cache, free, processes| array_bytes(cache, free, processes, usize::MAX).0;
        assert_eq!(all(Some(480 * MIB), free, 1), 1920 * MIB);
        assert_eq!(all(Some(8 * MIB), free, 1), 128 * MIB);
        assert_eq!(all(None, free, 1), 128 * MIB);
        // both together a quarter of what is free, and a share of that among processes
        assert_eq!(all(Some(480 * MIB), 4 << 30, 1), 512 * MIB);
        assert_eq!(all(Some(480 * MIB), free, 4), 480 * MIB);
        assert_eq!(all(Some(480 * MIB), 0, 1), 8 * MIB);
        assert_eq!(all(Some(480 * MIB), usize::MAX, 1), 1920 * MIB);
        // in a hurry
        let quick = |cache: usize| array_bytes(Some(cache * MIB), free, 1, QUICK);
        assert_eq!(quick(128), (512 * MIB, false));
        assert_eq!(quick(480).0, if stream::can_flush() { 128 * MIB } else { 1920 * MIB });
    }

    #[test]
    fn what_was_measured_with_is_described() {
        let of = |array_bytes: usize, cache: Option<usize>| {
            let cache_bytes = cache.map(|mib| mib * MIB);
            let method = "streaming";
            let flushed = array_bytes == 64 * MIB;
            let gbps = (1.0, 2.0);
            Bandwidth {
                copy_gbps: gbps.0,
                method,
                read_gbps: gbps.1,
                array_bytes,
                cache_bytes,
                flushed,
            }
            .described()
        };
        assert_eq!(
            of(1920 * MIB, Some(480)),
            "streaming copy, 2 arrays of 1920 MiB, 4 times the last-level cache of 480 MiB or more"
        );
        assert_eq!(
            of(512 * MIB, Some(480)),
            "streaming copy, 2 arrays of 512 MiB, less than 4 times the last-level cache of 480 MiB: no \
             more memory is free or asked for, and the numbers may be too high"
        );
        assert_eq!(
            of(64 * MIB, Some(480)),
            "streaming copy, 2 arrays of 64 MiB, taken out of the last-level cache of 480 MiB before each pass"
        );
        assert_eq!(of(128 * MIB, None), "streaming copy, 2 arrays of 128 MiB, of unknown caches");
    }

    #[test]
    fn every_thread_works_on_a_part_of_its_own_and_all_of_it_is_done() {
        for threads in [1, 2, 3] {
            let crew = Crew::new(threads);
            let (mut x, mut y) = (vec![1.0; 1000], vec![0.0; 1000]);
            crew.each(&mut x, &mut y, |x, y| {
                let name = rayon::current_thread_index().map_or(0.0, |i| i as f64);
                y.iter_mut().zip(x).for_each(|(y, x)| *y = *x + name);
            });
            let part = 1000_usize.div_ceil(threads).next_multiple_of(LINE);
            let expected: Vec<f64> = (0..1000).map(|i| 1.0 + (i / part) as f64).collect();
            assert_eq!(y, expected, "{threads}");
        }
    }
}
