//! A computation of fixed work, whose time says how fast the machine is at the moment, and how long threads wait
//! for a processor.

use std::hint::black_box;
use std::path::Path;

use super::{median, timed, without_peak};
use crate::base::error::Result;
use crate::base::memory::Buffer;
use crate::base::threads::{Threads, on_each};

/// Builds that check themselves, whose times are of no use, do this part of the work.
const PART: usize = if cfg!(debug_assertions) { 64 } else { 1 };

/// Rows of its sparse matrix.
const ROWS: usize = (1 << 15) / PART;

/// Entries of a row.
const IN_A_ROW: usize = 20;

/// Entries of the vector, among which the rows move from its begin to its end.
const VECTOR: usize = (1 << 16) / PART;

/// Entries of the vector among which those of one row lie.
const BAND: usize = (1 << 12) / PART;

/// Products of a pass.
const PRODUCTS: usize = 2;

/// Steps of its recurrences in a pass.
const STEPS: usize = 150_000 / PART;

/// Passes, of which the median counts.
const PASSES: usize = 3;

/// Its data: 8 MiB, more than the caches of a core, as the matrices and factors are that are measured.
struct Reference {
    columns: Buffer<u32>,
    values: Buffer<f64>,
    x: Buffer<f64>,
}

impl Reference {
    fn new() -> Result<Self> {
        let entries = ROWS * IN_A_ROW;
        let (mut columns, mut values) = (Buffer::try_zeros(entries)?, Buffer::try_zeros(entries)?);
        let mut x = Buffer::try_zeros(VECTOR)?;
        // Knuth's generator: the same numbers everywhere
        let mut state = 1_u64;
        for (at, (column, value)) in columns.iter_mut().zip(values.iter_mut()).enumerate() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let high = (state >> 33) as usize;
            *column = ((at / IN_A_ROW * VECTOR / ROWS + high % BAND) % VECTOR) as u32;
            *value = (high % 1024) as f64 / 1024.0;
        }
        for (i, x) in x.iter_mut().enumerate() {
            *x = (i % 512) as f64 / 512.0;
        }
        Ok(Self { columns, values, x })
    }

    /// The fixed work: products of the matrix and the vector, bound by caches and memory, and recurrences side by
    /// side, bound by the arithmetic of a core.
    fn pass(&self) -> f64 {
        let mut sum = 0.0;
        for _ in 0..PRODUCTS {
            let rows = self.columns.chunks_exact(IN_A_ROW).zip(self.values.chunks_exact(IN_A_ROW));
            for (columns, values) in black_box(rows) {
                let terms = columns.iter().zip(values);
                sum += terms.map(|(column, value)| value * self.x[*column as usize]).sum::<f64>();
            }
        }
        let (mut x, factor) = ([0.25; 16], black_box(0.75));
        for _ in 0..STEPS {
            for x in &mut x {
                *x = *x * factor + 0.25;
            }
        }
        sum + x.iter().sum::<f64>()
    }

    /// Seconds of a pass without those in which others had the processor.
    fn seconds(&self) -> f64 {
        let pass = || {
            let (waited, all) = timed(|| {
                let before = own_wait();
                black_box(self.pass());
                Some(own_wait()? - before?)
            });
            all - waited.unwrap_or(0.0)
        };
        let samples: Vec<f64> = (0..PASSES).map(|_| pass()).collect();
        median(&samples).map_or(0.0, |m| m.value)
    }
}

/// Seconds of the reference computation, on each of the threads at once: of the slowest. Time in which others
/// had a processor is left out, where the system tells it. `None` where there is no memory for it.
pub(crate) fn reference_seconds(threads: Threads) -> Option<f64> {
    without_peak(|| {
        let reference = Reference::new().ok()?;
        of_each(threads, || reference.seconds()).into_iter().reduce(f64::max)
    })
}

/// Seconds that each of the threads has been ready to run so far while others had the processors; `None` where
/// the system does not tell.
pub(crate) fn waits(threads: Threads) -> Option<Vec<f64>> {
    of_each(threads, own_wait).into_iter().collect()
}

fn of_each<R: Send>(threads: Threads, work: impl Fn() -> R + Sync) -> Vec<R> {
    match threads {
        Threads::One => vec![work()],
        Threads::Pool => on_each(|_| work()),
    }
}

fn own_wait() -> Option<f64> {
    wait_of(Path::new("/proc/thread-self/schedstat"))
}

/// Seconds that a thread has been ready to run while others had the processors, from its `schedstat` (Linux).
pub(crate) fn wait_of(schedstat: &Path) -> Option<f64> {
    waited(&std::fs::read_to_string(schedstat).ok()?)
}

/// The second of the numbers: nanoseconds on a processor, nanoseconds before one, turns.
fn waited(text: &str) -> Option<f64> {
    Some(text.split_whitespace().nth(1)?.parse::<u64>().ok()? as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_counts() {
        assert_eq!(waited("782469 3500000000 6\n"), Some(3.5));
        assert_eq!((waited("782469"), waited("1 x 2"), waited("")), (None, None, None));
    }

    #[test]
    fn the_work_is_the_same_everywhere() {
        let (a, b) = (Reference::new().unwrap(), Reference::new().unwrap());
        assert_eq!((&a.columns[..], &a.values[..]), (&b.columns[..], &b.values[..]));
        // rows of the first and the last band
        assert!(a.columns[..IN_A_ROW].iter().all(|column| (*column as usize) < BAND));
        assert!(a.columns.iter().all(|column| (*column as usize) < VECTOR));
        let mut plain = 0.0;
        for (column, value) in a.columns.iter().zip(a.values.iter()) {
            plain += PRODUCTS as f64 * value * a.x[*column as usize];
        }
        // the recurrences end at 1
        assert!(((plain + 16.0) / a.pass() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn each_thread_has_its_time() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        if let Some(waits) = pool.install(|| waits(Threads::Pool)) {
            assert!(waits.len() == 3 && waits.iter().all(|s| *s >= 0.0), "{waits:?}");
        }
        assert!(pool.install(|| reference_seconds(Threads::Pool)).unwrap() > 0.0);
        assert!(reference_seconds(Threads::One).unwrap() > 0.0);
    }
}
