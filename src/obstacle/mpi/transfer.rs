//! Nonblocking halo transfers between ranks.

use std::ffi::{c_int, c_void};
use std::ops::DerefMut;

use mpi::ffi;

use crate::compute::distributed::world::{double, everyone};

/// A transfer in flight, or none.
pub(super) struct Request(ffi::MPI_Request);

impl Request {
    pub(super) fn none() -> Self {
        // SAFETY: a constant of the library
        Self(unsafe { ffi::RSMPI_REQUEST_NULL })
    }

    /// Whether it has completed; it is reset then.
    pub(super) fn test(&mut self) -> bool {
        let mut flag = 0;
        // SAFETY: the request is one of ours or none
        unsafe {
            ffi::MPI_Test(&raw mut self.0, &raw mut flag, ffi::RSMPI_STATUS_IGNORE);
        }
        flag != 0
    }

    /// Waits for all.
    pub(super) fn wait<'a>(requests: impl Iterator<Item = &'a mut Self>) {
        let mut list: Vec<ffi::MPI_Request> = requests
            // SAFETY: a constant of the library
            .map(|r| std::mem::replace(&mut r.0, unsafe { ffi::RSMPI_REQUEST_NULL }))
            .collect();
        // SAFETY: the list holds our requests, all of them are none afterwards
        unsafe {
            ffi::MPI_Waitall(list.len() as c_int, list.as_mut_ptr(), ffi::RSMPI_STATUSES_IGNORE);
        }
    }

    /// Cancels a receive without a matching send.
    pub(super) fn cancel(&mut self) {
        // SAFETY: a receipt of ours that is under way
        unsafe {
            ffi::MPI_Cancel(&raw mut self.0);
            ffi::MPI_Wait(&raw mut self.0, ffi::RSMPI_STATUS_IGNORE);
        }
    }
}

/// Buffer of a message. It does not move or change its length while a transfer is in flight.
pub trait Message: DerefMut<Target = [f64]> {}

impl Message for Box<[f64]> {}

/// Halo messages to or from a neighbour.
pub(super) struct Transfer<M> {
    pub(super) numbers: M,
    pub(super) request: Request,
}

impl<M: Message> Transfer<M> {
    pub(super) fn new(numbers: M) -> Self {
        Self { numbers, request: Request::none() }
    }

    pub(super) fn send(&mut self, to: usize, tag: c_int) {
        // SAFETY: the buffer lives and is left alone until the request has ended
        unsafe {
            ffi::MPI_Isend(
                self.numbers.as_ptr().cast::<c_void>(),
                self.numbers.len() as c_int,
                double(),
                to as c_int,
                tag,
                everyone(),
                &raw mut self.request.0,
            );
        }
    }

    pub(super) fn receive(&mut self, from: usize, tag: c_int) {
        // SAFETY: as above
        unsafe {
            ffi::MPI_Irecv(
                self.numbers.as_mut_ptr().cast::<c_void>(),
                self.numbers.len() as c_int,
                double(),
                from as c_int,
                tag,
                everyone(),
                &raw mut self.request.0,
            );
        }
    }
}
