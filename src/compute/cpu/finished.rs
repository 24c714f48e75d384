//! Counters of finished tasks, for which other threads wait.

use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Condvar, Mutex};

/// How many tasks a thread has finished, on a pair of cache lines of its own, and a place to sleep for those
/// that wait for more.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Finished {
    tasks: AtomicU32,
    sleeping: AtomicU32,
    lock: Mutex<()>,
    more: Condvar,
}

impl Finished {
    /// Lets those go on who wait for `tasks`.
    pub(super) fn finish(&self, tasks: u32) {
        self.tasks.store(tasks, Ordering::Release);
        // either the sleeper sees the counter, or the sleeper is seen here
        fence(Ordering::SeqCst);
        if self.sleeping.load(Ordering::Relaxed) > 0 {
            drop(self.lock.lock());
            self.more.notify_all();
        }
    }

    /// Waits for the counter to reach `tasks`: spins for about as long as it takes to fall asleep and wake
    /// up, then sleeps. What was written before the counter is visible after.
    ///
    /// A thread that yields instead gives the rest of its turn to another process on its core, milliseconds
    /// each time, and one that only spins uses it up without doing anything; who has slept is soon put
    /// before a process that always computes.
    pub(super) fn reached(&self, tasks: u32) {
        const SPINS: u32 = 1000;
        for _ in 0..SPINS {
            if self.tasks.load(Ordering::Acquire) >= tasks {
                return;
            }
            std::hint::spin_loop();
        }
        let poisoned = std::sync::PoisonError::into_inner;
        let mut asleep = self.lock.lock().unwrap_or_else(poisoned);
        self.sleeping.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while self.tasks.load(Ordering::Acquire) < tasks {
            asleep = self.more.wait(asleep).unwrap_or_else(poisoned);
        }
        self.sleeping.fetch_sub(1, Ordering::Relaxed);
    }
}
