//! Copy bandwidth of the host: the roof of everything that only moves bytes.

use std::collections::HashMap;
use std::sync::Mutex;

use rayon::prelude::*;

use super::{median, timed};
use crate::cores;

/// Bytes of each of the two arrays: far beyond any cache.
const ARRAY_BYTES: usize = 128 << 20;

/// Passes; the median counts.
const PASSES: usize = 7;

/// Bandwidth of `y = x` in GB/s (1e9), reads and writes counted, on `threads` threads, each on
/// a core of its own where there are as many. Measured once per thread count and remembered.
pub fn copy_bandwidth(threads: usize) -> f64 {
    static KNOWN: Mutex<Option<HashMap<usize, f64>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *known.get_or_insert_default().entry(threads).or_insert_with(|| measure(threads))
}

fn measure(threads: usize) -> f64 {
    let n = ARRAY_BYTES / 8;
    let x = vec![1.0f64; n];
    let mut y = vec![2.0f64; n];
    let cores = cores::in_order();
    let pin = move |i: usize| {
        if threads <= cores.len() {
            core_affinity::set_for_current(cores[i]);
        }
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).start_handler(pin).build();
    let part = n.div_ceil(threads.max(1));
    let mut pass = || match &pool {
        Ok(pool) if threads > 1 => pool.install(|| {
            y.par_chunks_mut(part).zip(x.par_chunks(part)).for_each(|(y, x)| y.copy_from_slice(x));
        }),
        _ => y.copy_from_slice(&x),
    };
    let samples: Vec<f64> = (0..PASSES).map(|_| timed(&mut pass).1).collect();
    let seconds = median(&samples).map_or(f64::INFINITY, |m| m.value);
    std::hint::black_box(&y);
    2.0 * ARRAY_BYTES as f64 / seconds / 1e9
}
