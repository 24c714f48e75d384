//! The ranks of this job, as the launcher tells them.

use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use super::communicator::{Communicator, OneRank};
use crate::base::error::Result;

/// Environment variables in which Open MPI, MPICH and Slurm's PMI tell the number of ranks, and which this one is.
const NAMES: [[&str; 2]; 2] =
    [["OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"], ["PMI_SIZE", "PMI_RANK"]];

fn told(which: usize) -> Option<usize> {
    NAMES.iter().find_map(|names| std::env::var(names[which]).ok()?.parse().ok())
}

/// Ranks that a launcher such as `mpirun` started, 1 without one.
pub fn ranks() -> usize {
    told(0).unwrap_or(1).max(1)
}

/// The number of this rank among them, from 0.
pub fn rank() -> usize {
    told(1).unwrap_or(0)
}

/// Ends a rank behind the first, of an error that all have met and the first tells: launchers end every rank when
/// one has failed, so the first has half a second to tell it.
pub(crate) fn left_to_first(code: u8) -> ExitCode {
    std::thread::sleep(Duration::from_millis(500));
    ExitCode::from(code)
}

/// Ends all ranks of the job with exit code 1, whatever they do.
pub(crate) fn end_job() -> ! {
    #[cfg(feature = "mpi")]
    super::world::abort();
    std::process::exit(1)
}

/// The ranks of the job; this process alone if no launcher started several.
///
/// # Errors
/// When there are several, and the program was built without MPI.
pub(crate) fn communicator() -> Result<Rc<dyn Communicator>> {
    if ranks() == 1 {
        return Ok(Rc::new(OneRank));
    }
    #[cfg(feature = "mpi")]
    return Ok(Rc::new(super::world::world()?));
    #[cfg(not(feature = "mpi"))]
    Err(without_mpi())
}

/// The error of a program without MPI.
#[cfg(not(feature = "mpi"))]
pub(crate) fn without_mpi() -> crate::Error {
    crate::Error::run("this program was built without the feature `mpi`").hint(
        "install Open MPI (`apt-get install libopenmpi-dev openmpi-bin libclang-dev`) and build \
         with `cargo build --release --features mpi`",
    )
}
