//! Ranks that a launcher such as `mpirun` started: the first does what the command line says, the others compute
//! with it.

use std::process::ExitCode;

use crate::base::error::{Error, Result};
use crate::compute::distributed::launch;
use crate::compute::over_ranks;

/// Runs a command on the first rank, and what it announces on the others.
///
/// # Errors
/// Those of the command, and on all ranks that the program was built without MPI.
#[cfg(feature = "mpi")]
pub(super) fn lead(command: impl FnOnce() -> Result<ExitCode>) -> Result<ExitCode> {
    use std::rc::Rc;

    use crate::base::interrupt;
    use crate::bench::run::serve;
    use crate::compute::distributed::communicator::Communicator;
    use crate::compute::distributed::world;

    if launch::ranks() == 1 {
        return command();
    }
    let all = world::world()?;
    // the others would wait for a rank that panics
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |what| {
        told(what);
        world::abort();
    }));
    if all.rank() == 0 {
        let done = command();
        all.announce(&[]);
        return done;
    }
    // the first rank is asked to stop, too
    interrupt::install()?;
    let communicator: Rc<dyn Communicator> = Rc::new(all);
    match serve(&communicator, || all.announced()) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => world::give_up(&error),
    }
}

/// The same without MPI: one rank at most.
#[cfg(not(feature = "mpi"))]
pub(super) fn lead(command: impl FnOnce() -> Result<ExitCode>) -> Result<ExitCode> {
    match launch::ranks() {
        1 => command(),
        _ if launch::rank() > 0 => Ok(launch::left_to_first(1)),
        _ => Err(launch::without_mpi()),
    }
}

/// Runs a command that is for one process; refused on several ranks, which would disturb each other.
pub(super) fn alone(name: &str, command: impl FnOnce() -> Result<ExitCode>) -> Result<ExitCode> {
    match launch::ranks() {
        1 => command(),
        _ if launch::rank() > 0 => Ok(launch::left_to_first(2)),
        ranks => Err(Error::input(format!("{ranks} ranks, and `{name}` uses one process"))
            .hint("start it without a launcher such as `mpirun`")),
    }
}

/// Refuses to run on several ranks when none of the `backends` uses them, or in processes of their own.
pub(super) fn check<'a>(mut backends: impl Iterator<Item = &'a str>, isolated: bool) -> Result<()> {
    let ranks = launch::ranks();
    if ranks == 1 {
        return Ok(());
    }
    if !backends.any(over_ranks) {
        return Err(Error::input(format!("{ranks} ranks, and no case that uses them"))
            .hint("name `--backend mpi`, or start the program without `mpirun`"));
    }
    if isolated {
        return Err(Error::input(format!("--isolate on {ranks} ranks"))
            .hint("a process of its own has no ranks: go without it; --case-limit works alone"));
    }
    Ok(())
}
