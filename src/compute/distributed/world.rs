//! The ranks of the job, and collective operations.

#![allow(unsafe_code, reason = "calls of MPI")]

use std::ffi::c_int;
use std::sync::OnceLock;

use mpi::ffi;

use crate::base::error::{Error, Result};
use crate::base::input::say;

/// All ranks of the job.
#[derive(Clone, Copy, Debug)]
pub struct World {
    rank: usize,
    size: usize,
}

static WORLD: OnceLock<World> = OnceLock::new();

/// The ranks; starts MPI at the first call.
///
/// # Errors
/// When MPI was ended before.
pub fn world() -> Result<World> {
    if let Some(world) = WORLD.get() {
        return Ok(*world);
    }
    let universe = mpi::initialize().ok_or_else(|| Error::run("MPI cannot be started again"))?;
    // ended below, when the process ends
    std::mem::forget(universe);
    let (mut rank, mut size) = (0, 0);
    // SAFETY: MPI has been started, both are valid for the write of an integer
    unsafe {
        ffi::MPI_Comm_rank(everyone(), &raw mut rank);
        ffi::MPI_Comm_size(everyone(), &raw mut size);
        libc::atexit(end);
    }
    Ok(*WORLD.get_or_init(|| World { rank: rank as usize, size: size as usize }))
}

extern "C" fn end() {
    // SAFETY: MPI was started when this was registered
    unsafe { ffi::MPI_Finalize() };
}

/// Whether MPI has been started.
pub fn started() -> bool {
    WORLD.get().is_some()
}

/// Ends all ranks.
pub(crate) fn abort() {
    if started() {
        // SAFETY: MPI has been started
        unsafe { ffi::MPI_Abort(everyone(), 1) };
    }
}

pub(crate) fn everyone() -> ffi::MPI_Comm {
    // SAFETY: a constant of the library
    unsafe { ffi::RSMPI_COMM_WORLD }
}

pub(crate) fn double() -> ffi::MPI_Datatype {
    // SAFETY: a constant of the library
    unsafe { ffi::RSMPI_DOUBLE }
}

pub(crate) fn word() -> ffi::MPI_Datatype {
    // SAFETY: a constant of the library
    unsafe { ffi::RSMPI_UINT64_T }
}

impl World {
    /// Number of this rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Ranks in all.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The ranks of this host.
    pub(crate) fn of_host(&self) -> OfHost {
        let (mut rank, mut size, mut first) = (0, 0, self.rank as c_int);
        // SAFETY: the communicator lives until it is freed, both are valid for the write of an integer
        unsafe {
            let mut host = ffi::RSMPI_COMM_NULL;
            ffi::MPI_Comm_split_type(
                everyone(),
                ffi::RSMPI_COMM_TYPE_SHARED,
                self.rank as c_int,
                ffi::RSMPI_INFO_NULL,
                &raw mut host,
            );
            ffi::MPI_Comm_rank(host, &raw mut rank);
            ffi::MPI_Comm_size(host, &raw mut size);
            ffi::MPI_Bcast((&raw mut first).cast(), 1, ffi::RSMPI_INT32_T, 0, host);
            ffi::MPI_Comm_free(&raw mut host);
        }
        OfHost { rank: rank as usize, size: size as usize, host: first as usize }
    }

    /// Sum of a value that all ranks measure at the same time.
    pub fn together(&self, measure: impl FnOnce() -> f64) -> Option<f64> {
        reduce(&mut [], &mut []);
        let mut sum = [measure()];
        reduce(&mut sum, &mut []);
        sum[0].is_finite().then_some(sum[0])
    }
}

/// The answer of the first rank.
pub fn agree(answer: bool) -> bool {
    let mut number = c_int::from(answer);
    // SAFETY: one integer each
    unsafe {
        ffi::MPI_Bcast((&raw mut number).cast(), 1, ffi::RSMPI_INT32_T, 0, everyone());
    }
    number != 0
}

/// An error on every rank if any rank has one: its own, or that of the first other rank.
///
/// # Errors
/// As said.
pub(crate) fn all_or_none<T>(own: Result<T>) -> Result<T> {
    /// Bytes of a message, which is a line.
    const LINE: usize = 512;
    let World { rank, size } = world()?;
    let mut first = [if own.is_err() { (size - rank) as f64 } else { 0.0 }];
    reduce(&mut [], &mut first);
    if first[0] == 0.0 {
        return own;
    }
    let speaker = size - first[0] as usize;
    let mut line = [b' '; LINE];
    if let Err(error) = &own {
        line.iter_mut().zip(error.to_string().bytes()).for_each(|(to, from)| *to = from);
    }
    // SAFETY: as many bytes everywhere
    unsafe {
        let bytes = ffi::RSMPI_UINT8_T;
        ffi::MPI_Bcast(
            line.as_mut_ptr().cast(),
            LINE as c_int,
            bytes,
            speaker as c_int,
            everyone(),
        );
    }
    let said = String::from_utf8_lossy(&line);
    own.and_then(|_| Err(Error::run(format!("rank {speaker}: {}", said.trim_end()))))
}

/// The bytes of each rank.
pub(crate) fn gather<const N: usize>(own: [u8; N]) -> Vec<[u8; N]> {
    let size = WORLD.get().map_or(1, |world| world.size);
    let mut all = vec![[0; N]; size];
    // SAFETY: as many bytes of each rank as there is room for
    unsafe {
        let (bytes, count) = (ffi::RSMPI_UINT8_T, N as c_int);
        let (from, to) = (own.as_ptr().cast(), all.as_mut_ptr().cast());
        ffi::MPI_Allgather(from, count, bytes, to, count, bytes, everyone());
    }
    all
}

/// Prints the error of this rank and aborts all, since the others would wait for it.
pub(crate) fn give_up(error: &Error) -> ! {
    say(&format!("error: {error}"));
    if let Some(hint) = error.hint_text() {
        say(&format!("hint: {hint}"));
    }
    abort();
    std::process::exit(error.exit_code().into())
}

/// The ranks of a host.
#[derive(Clone, Copy, Debug)]
pub struct OfHost {
    /// Number of this rank among them.
    pub rank: usize,
    /// How many there are.
    pub size: usize,
    /// The first of them among all ranks, which tells hosts from each other.
    pub host: usize,
}

/// Sums and maxima over all ranks.
pub(crate) fn reduce(sums: &mut [f64], largest: &mut [f64]) {
    // SAFETY: constants of the library
    let operations = unsafe { [ffi::RSMPI_SUM, ffi::RSMPI_MAX] };
    let nothing = sums.is_empty() && largest.is_empty();
    for (numbers, operation) in [sums, largest].into_iter().zip(operations) {
        if numbers.is_empty() {
            continue;
        }
        let mut all = vec![0.0; numbers.len()];
        // SAFETY: both buffers hold as many numbers as are named
        unsafe {
            ffi::MPI_Allreduce(
                numbers.as_ptr().cast(),
                all.as_mut_ptr().cast(),
                numbers.len() as c_int,
                double(),
                operation,
                everyone(),
            );
        }
        numbers.copy_from_slice(&all);
    }
    if nothing {
        // it still waits for all
        // SAFETY: MPI has been started
        unsafe {
            ffi::MPI_Barrier(everyone());
        }
    }
}
