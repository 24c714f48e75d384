//! The ranks of MPI as a [`Communicator`].

#![allow(unsafe_code, reason = "calls of MPI")]

use std::ffi::c_int;
use std::time::Duration;

use bytemuck::Pod;
use mpi::ffi;

use super::communicator::{Communicator, Exchange, Gathering, Message};
use super::world::{World, double, everyone, give_up};
use crate::base::error::Error;

/// What a message is; the obstacle problem has other numbers.
const ANNOUNCED: c_int = 11;
const SCATTERED: c_int = 12;
const EXCHANGED: c_int = 13;
const COLLECTED: c_int = 14;

/// Bytes of the longest message: counts have 31 bits.
const LONGEST: usize = 1 << 30;

/// Interval at which a rank without work looks for an announcement.
const POLL: Duration = Duration::from_millis(1);

fn send_piece(to: usize, tag: c_int, bytes: &[u8]) {
    let (from, count) = (bytes.as_ptr().cast(), bytes.len() as c_int);
    // SAFETY: the bytes are there until the call returns
    unsafe { ffi::MPI_Send(from, count, ffi::RSMPI_UINT8_T, to as c_int, tag, everyone()) };
}

fn receive_piece(from: usize, tag: c_int, bytes: &mut [u8]) {
    let (to, count) = (bytes.as_mut_ptr().cast(), bytes.len() as c_int);
    // SAFETY: as many bytes as there is room for, all received when the call returns
    unsafe {
        let status = ffi::RSMPI_STATUS_IGNORE;
        ffi::MPI_Recv(to, count, ffi::RSMPI_UINT8_T, from as c_int, tag, everyone(), status);
    }
}

fn send(to: usize, tag: c_int, bytes: &[u8]) {
    send_piece(to, tag, &(bytes.len() as u64).to_le_bytes());
    bytes.chunks(LONGEST).for_each(|piece| send_piece(to, tag, piece));
}

fn receive<T: Pod>(from: usize, tag: c_int) -> Vec<T> {
    let mut len = [0; 8];
    receive_piece(from, tag, &mut len);
    let mut all = vec![T::zeroed(); u64::from_le_bytes(len) as usize / size_of::<T>()];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut all);
    bytes.chunks_mut(LONGEST).for_each(|piece| receive_piece(from, tag, piece));
    all
}

/// See [`Communicator::scatter`].
fn scatter<T: Pod>(world: &World, make: &mut dyn FnMut(usize) -> Vec<T>) -> Vec<T> {
    if World::rank(world) > 0 {
        return receive(0, SCATTERED);
    }
    let others = 1..World::size(world);
    others.for_each(|rank| send(rank, SCATTERED, bytemuck::cast_slice(&make(rank))));
    make(0)
}

/// Counts and places of each rank's numbers.
fn counted(counts: &[usize]) -> [Vec<c_int>; 2] {
    let mut at = 0;
    let place = |&count: &usize| {
        at += count as c_int;
        at - count as c_int
    };
    [counts.iter().map(|&count| count as c_int).collect(), counts.iter().map(place).collect()]
}

impl World {
    /// What the first rank announces next; waits for it.
    #[allow(clippy::unused_self, reason = "whoever has a world has begun MPI")]
    pub(crate) fn announced(&self) -> Vec<u8> {
        loop {
            let mut flag = 0;
            // SAFETY: valid for the write of an integer
            unsafe {
                let status = ffi::RSMPI_STATUS_IGNORE;
                ffi::MPI_Iprobe(0, ANNOUNCED, everyone(), &raw mut flag, status);
            }
            if flag != 0 {
                return receive(0, ANNOUNCED);
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Communicator for World {
    fn rank(&self) -> usize {
        World::rank(self)
    }

    fn size(&self) -> usize {
        World::size(self)
    }

    fn all_gather(&self, own: &[f64], counts: &[usize]) -> Vec<f64> {
        assert_eq!(own.len(), counts[World::rank(self)]);
        let mut all = vec![0.0; counts.iter().sum()];
        let [counts, places] = counted(counts);
        // SAFETY: as many numbers of each rank as there is room for
        unsafe {
            let (from, to) = (own.as_ptr().cast(), all.as_mut_ptr().cast());
            let (counts, places) = (counts.as_ptr(), places.as_ptr());
            let count = own.len() as c_int;
            ffi::MPI_Allgatherv(from, count, double(), to, counts, places, double(), everyone());
        }
        all
    }

    fn start_all_gather(&self, own: Vec<f64>, counts: &[usize]) -> Box<dyn Gathering> {
        assert_eq!(own.len(), counts[World::rank(self)]);
        Box::new(Gather::start(own, counts))
    }

    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) {
        let mut len = bytes.len() as u64;
        let root_of = root as c_int;
        // SAFETY: one number, then as many bytes as it says, everywhere
        unsafe {
            let one = ffi::RSMPI_UINT64_T;
            ffi::MPI_Bcast((&raw mut len).cast(), 1, one, root_of, everyone());
            bytes.resize(len as usize, 0);
            for piece in bytes.chunks_mut(LONGEST) {
                let (at, count) = (piece.as_mut_ptr().cast(), piece.len() as c_int);
                ffi::MPI_Bcast(at, count, ffi::RSMPI_UINT8_T, root_of, everyone());
            }
        }
    }

    fn scatter(&self, make: &mut dyn FnMut(usize) -> Vec<u8>) -> Vec<u8> {
        scatter(self, make)
    }

    fn scatter_numbers(&self, make: &mut dyn FnMut(usize) -> Vec<f64>) -> Vec<f64> {
        scatter(self, make)
    }

    fn gather(&self, own: &[f64], counts: &[usize]) -> Vec<f64> {
        let room = if World::rank(self) == 0 { counts.iter().sum() } else { 0 };
        let mut all = vec![0.0; room];
        let [counts, places] = counted(counts);
        // SAFETY: as many numbers of each rank as the first has room for
        unsafe {
            let (from, to) = (own.as_ptr().cast(), all.as_mut_ptr().cast());
            let (counts, places) = (counts.as_ptr(), places.as_ptr());
            let count = own.len() as c_int;
            ffi::MPI_Gatherv(from, count, double(), to, counts, places, double(), 0, everyone());
        }
        all
    }

    fn collect(&self, from: usize, make: &mut dyn FnMut() -> Vec<u8>) -> Vec<u8> {
        match World::rank(self) {
            0 if from == 0 => make(),
            0 => receive(from, COLLECTED),
            rank => {
                if rank == from {
                    send(0, COLLECTED, &make());
                }
                Vec::new()
            }
        }
    }

    fn announce(&self, task: &[u8]) {
        (1..World::size(self)).for_each(|rank| send(rank, ANNOUNCED, task));
    }

    fn exchange(&self, sent: Vec<Message>, received: Vec<Message>) -> Box<dyn Exchange> {
        Box::new(Persistent::new(&sent, &received))
    }

    fn on_host(&self) -> [usize; 2] {
        let own = self.of_host();
        [own.rank, own.size]
    }

    fn give_up(&self) -> fn(&Error) -> ! {
        give_up
    }
}

/// A gathering under way, with all that MPI reads and writes until its end.
struct Gather {
    own: Vec<f64>,
    all: Vec<f64>,
    counts: [Vec<c_int>; 2],
    request: ffi::MPI_Request,
}

impl Gather {
    fn start(own: Vec<f64>, counts: &[usize]) -> Self {
        // SAFETY: a constant of the library
        let request = unsafe { ffi::RSMPI_REQUEST_NULL };
        let all = vec![0.0; counts.iter().sum()];
        let mut new = Self { own, all, counts: counted(counts), request };
        let (from, to) = (new.own.as_ptr().cast(), new.all.as_mut_ptr().cast());
        let (count, [counts, places]) = (new.own.len() as c_int, &new.counts);
        // SAFETY: as many numbers of each rank as there is room for; the elements of the vectors stay where they
        // are when the struct moves, and no one touches them before the request is complete
        unsafe {
            let (counts, places) = (counts.as_ptr(), places.as_ptr());
            let request = &raw mut new.request;
            ffi::MPI_Iallgatherv(
                from,
                count,
                double(),
                to,
                counts,
                places,
                double(),
                everyone(),
                request,
            );
        }
        new
    }

    fn wait(&mut self) {
        // SAFETY: a request of ours, or none once it is complete
        unsafe { ffi::MPI_Wait(&raw mut self.request, ffi::RSMPI_STATUS_IGNORE) };
    }
}

impl Gathering for Gather {
    fn finish(mut self: Box<Self>) -> Vec<f64> {
        self.wait();
        std::mem::take(&mut self.all)
    }
}

impl Drop for Gather {
    fn drop(&mut self) {
        self.wait();
    }
}

/// Persistent requests over buffers that do not move.
struct Persistent {
    out: Box<[f64]>,
    received: Box<[f64]>,
    requests: Vec<ffi::MPI_Request>,
}

impl Persistent {
    fn new(sent: &[Message], received: &[Message]) -> Self {
        let room = |messages: &[Message]| vec![0.0; messages.iter().map(|m| m.len).sum()].into();
        let mut all = Self { out: room(sent), received: room(received), requests: Vec::new() };
        let (mut at_out, mut at_in) = (all.out.as_mut_ptr(), all.received.as_mut_ptr());
        // SAFETY: each request has its part of a buffer, which lives as long as the request and is left alone
        // while it is active; pieces follow each other within the buffers
        unsafe {
            for &Message { rank, len } in received {
                let mut request = ffi::RSMPI_REQUEST_NULL;
                let (count, from) = (len as c_int, rank as c_int);
                let to = at_in.cast();
                let made = &raw mut request;
                ffi::MPI_Recv_init(to, count, double(), from, EXCHANGED, everyone(), made);
                all.requests.push(request);
                at_in = at_in.add(len);
            }
            for &Message { rank, len } in sent {
                let mut request = ffi::RSMPI_REQUEST_NULL;
                let (count, to) = (len as c_int, rank as c_int);
                let from = at_out.cast();
                let made = &raw mut request;
                ffi::MPI_Send_init(from, count, double(), to, EXCHANGED, everyone(), made);
                all.requests.push(request);
                at_out = at_out.add(len);
            }
        }
        all
    }
}

impl Exchange for Persistent {
    fn outgoing(&mut self) -> &mut [f64] {
        &mut self.out
    }

    fn start(&mut self) {
        // SAFETY: requests of ours that are not active
        unsafe { ffi::MPI_Startall(self.requests.len() as c_int, self.requests.as_mut_ptr()) };
    }

    fn finish(&mut self) -> &[f64] {
        let (count, requests) = (self.requests.len() as c_int, self.requests.as_mut_ptr());
        // SAFETY: requests of ours, complete afterwards
        unsafe { ffi::MPI_Waitall(count, requests, ffi::RSMPI_STATUSES_IGNORE) };
        &self.received
    }

    fn buffers(&mut self) -> Option<[&mut [f64]; 2]> {
        Some([&mut self.out, &mut self.received])
    }
}

impl Drop for Persistent {
    fn drop(&mut self) {
        for request in &mut self.requests {
            // SAFETY: a request of ours that is not active
            unsafe { ffi::MPI_Request_free(request) };
        }
    }
}
