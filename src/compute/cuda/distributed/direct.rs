//! Values that GPUs of one host write into each other's memory (CUDA IPC). Flag words, on which streams wait, order
//! this; the hosts do not wait.

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::rc::Rc;

use cudarc::driver::{CudaSlice, DriverError, result};

use super::places::Places;
use crate::base::error::{Error, Result};
use crate::base::input::say_once;
use crate::compute::cuda::device::Device;
use crate::compute::cuda::ipc::{self, Opened, handle};
use crate::compute::cuda::launch::Address;
use crate::compute::cuda::memory::{Apart, failed};
use crate::compute::distributed::Route;
use crate::compute::distributed::communicator::{Communicator, HANDLE, Message};

/// Names the way of values between GPUs.
const TRANSPORT: &str = "BILU_BENCH_TRANSPORT";

/// Bytes of a cache line: ghost values begin on one, and no two ranks write flag words of the same.
const LINE: usize = 128;

/// Whether GPUs may write each other's memory, as [`TRANSPORT`] says.
///
/// # Errors
/// When it says something else.
pub(super) fn allowed() -> Result<bool> {
    named(&std::env::var_os(TRANSPORT).unwrap_or_default().to_string_lossy())
}

fn named(text: &str) -> Result<bool> {
    match text {
        "" | "auto" => Ok(true),
        "messages" => Ok(false),
        other => Err(Error::input(format!("`{other}` is neither `auto` nor `messages`"))
            .in_file(TRANSPORT)
            .hint("it is how values go between GPUs of ranks")),
    }
}

/// What a flag word counts.
#[derive(Clone, Copy)]
enum Flag {
    /// Exchanges whose values have come.
    Sent,
    /// Exchanges whose values have been read.
    Taken,
}

/// Places in the memory of a rank that others write: for each route the ghost values, twice, since values come while
/// those before are read; then the flag words of each route and rank, and those of a trial.
#[derive(Debug, PartialEq, Eq)]
struct Layout {
    /// Where each route begins.
    routes: Vec<usize>,
    /// From the first ghost values to the second.
    half: usize,
    ranks: usize,
}

impl Layout {
    fn new(routes: &[Route], ranks: usize) -> Self {
        let mut half = 0;
        let begin = |route: &Route| {
            let at = half;
            half += (8 * (route.received() + route.own.len()).max(1)).next_multiple_of(LINE);
            at
        };
        Self { routes: routes.iter().map(begin).collect(), half, ranks }
    }

    fn bytes(&self) -> usize {
        self.flag(self.routes.len() + 1, Flag::Sent, 0)
    }

    fn flag(&self, route: usize, flag: Flag, rank: usize) -> usize {
        2 * self.half + ((2 * route + flag as usize) * self.ranks + rank) * LINE
    }

    /// What the other ranks have to know: the distance of the ghost values, and where those of each rank are in each
    /// route.
    fn told(&self, routes: &[Route]) -> Vec<f64> {
        let mut told = vec![self.half as f64];
        for (route, begin) in routes.iter().zip(&self.routes) {
            let (first, mut at) = (told.len(), *begin);
            told.resize(first + self.ranks, 0.0);
            for &Message { rank, len } in &route.from {
                told[first + rank] = at as f64;
                at += 8 * len;
            }
        }
        told
    }
}

/// Memory that others write, and theirs that this rank writes.
struct Held {
    /// Of all that a job has had.
    number: u64,
    own: Apart,
    /// By rank.
    opened: Vec<Option<Opened>>,
}

thread_local! {
    /// What nobody of this rank uses any more. Others may still write to it.
    static LEFT: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
    static MADE: Cell<u64> = const { Cell::new(0) };
}

/// Frees what all ranks have left. Collective.
fn free_left(d: &Device, communicator: &dyn Communicator) {
    let own: Vec<f64> = LEFT.with_borrow(|left| left.iter().map(|h| h.number as f64).collect());
    let ranks = communicator.size();
    let counts = communicator.all_gather(&[own.len() as f64], &vec![1; ranks]);
    let counts: Vec<usize> = counts.into_iter().map(|count| count as usize).collect();
    if counts.iter().all(|&count| count == 0) {
        return;
    }
    let all = communicator.all_gather(&own, &counts);
    let by_all = |h: &mut Held| all.iter().filter(|&&of| of == h.number as f64).count() == ranks;
    let mut left: Vec<Held> = LEFT.with_borrow_mut(|left| left.extract_if(.., by_all).collect());
    // nothing is on its way from here; if that cannot be told, the memory stays
    let quiet = d.stream().synchronize().is_ok();
    for held in &mut left {
        held.opened.clear();
    }
    if communicator.any(!quiet) {
        std::mem::forget(left);
    }
}

/// The memory of the routes of one call, which they share.
struct Windows {
    held: Option<Held>,
}

impl Windows {
    fn held(&self) -> &Held {
        self.held.as_ref().expect("until it is dropped")
    }

    /// The memory of a rank, as this one sees it.
    fn of(&self, rank: usize) -> Address {
        self.held().opened[rank].as_ref().expect("a rank of a message").at()
    }
}

impl Drop for Windows {
    fn drop(&mut self) {
        LEFT.with_borrow_mut(|left| left.extend(self.held.take()));
    }
}

/// Numbers in memory that somebody else frees.
struct Borrowed(ManuallyDrop<CudaSlice<f64>>);

impl Borrowed {
    /// # Safety
    /// There are so many numbers as long as this lives.
    unsafe fn new(d: &Device, at: Address, len: usize) -> Self {
        // SAFETY: the caller's
        Self(ManuallyDrop::new(unsafe { d.stream().upgrade_device_ptr(at, len) }))
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        // SAFETY: taken once, here
        unsafe { ManuallyDrop::take(&mut self.0) }.leak();
    }
}

/// A message to another rank.
struct Outgoing {
    /// Which of the unknowns that are sent.
    part: Range<usize>,
    /// Where they go, in turns.
    to: [Address; 2],
    /// Flag word of the other rank, and of this one.
    sent: Address,
    taken: Address,
}

/// One from another rank: flag word of this one, and of the other.
struct Incoming {
    sent: Address,
    taken: Address,
}

/// A route on which GPUs write each other's memory.
pub(super) struct Direct {
    // before the memory that it is in
    ghosts: [Borrowed; 2],
    outgoing: Vec<Outgoing>,
    incoming: Vec<Incoming>,
    /// Exchanges begun so far.
    number: u32,
    give_up: fn(&Error) -> !,
    _windows: Rc<Windows>,
}

/// The `routes` of all ranks, where each can write the memory of those that it has to do with. The first rank prints a
/// note where they cannot. Collective.
pub(super) fn connect(
    d: &Device,
    communicator: &dyn Communicator,
    routes: &[Route],
) -> Option<Vec<Direct>> {
    let ranks = communicator.size();
    free_left(d, communicator);
    let layout = Layout::new(routes, ranks);
    let number = MADE.get();
    MADE.set(number + 1);
    let made = on_this_host(communicator).and_then(|()| offer(d, &layout));
    let (own, handle) = all(communicator, made)?;
    let mut told = handle.map(f64::from).to_vec();
    told.extend(layout.told(routes));
    let told_by_all = communicator.all_gather(&told, &vec![told.len(); ranks]);
    let told_by: Vec<&[f64]> = told_by_all.chunks_exact(told.len()).collect();
    // from here on others may have opened it
    let mut held = Held { number, own, opened: (0..ranks).map(|_| None).collect() };
    let opened = open(d, routes, &told_by, &mut held.opened);
    let windows = Windows { held: Some(held) };
    all(communicator, opened)?;
    let told_by: Vec<&[f64]> = told_by.into_iter().map(|told| &told[HANDLE..]).collect();
    let tried = Trial { d, windows: &windows, layout: &layout, routes, told_by: &told_by };
    all(communicator, tried.call(communicator.rank()))?;
    all(communicator, tried.heard())?;
    let (windows, me) = (Rc::new(windows), communicator.rank());
    let direct = |at| Direct::new(d, &windows, (&layout, routes, at), (&told_by, me), communicator);
    Some((0..routes.len()).map(direct).collect())
}

/// What each rank has made, if all have. Collective.
fn all<T>(communicator: &dyn Communicator, made: Result<T>) -> Option<T> {
    let why = communicator.failure(made.as_ref().err().map(Error::to_string));
    if let Some(why) = &why
        && communicator.rank() == 0
    {
        say_once(&format!("note: values between GPUs go through host memory: {why}"));
    }
    made.ok().filter(|_| why.is_none())
}

fn on_this_host(communicator: &dyn Communicator) -> Result<()> {
    match communicator.on_host() {
        [_, here] if here == communicator.size() => Ok(()),
        _ => Err(Error::run("the ranks are on several hosts")),
    }
}

/// Memory of zeros, with which the device has done, and its handle.
fn offer(d: &Device, layout: &Layout) -> Result<(Apart, [u8; HANDLE])> {
    let own = Apart::zeros(d.stream(), layout.bytes())?;
    d.stream().synchronize().map_err(|e| failed("cannot wait for the GPU", e))?;
    let handle = handle(d.stream().context(), own.at())?;
    Ok((own, handle))
}

/// Ranks to or from which there is a message.
fn partners(routes: &[Route]) -> impl Iterator<Item = usize> {
    routes.iter().flat_map(|route| route.to.iter().chain(&route.from)).map(|message| message.rank)
}

/// Opens the memory of all partners.
fn open(
    d: &Device,
    routes: &[Route],
    told_by: &[&[f64]],
    opened: &mut [Option<Opened>],
) -> Result<()> {
    for rank in partners(routes) {
        if opened[rank].is_none() {
            let mut handle = [0; HANDLE];
            handle.iter_mut().zip(told_by[rank]).for_each(|(to, byte)| *to = *byte as u8);
            opened[rank] = Some(Opened::new(d.stream().context(), &handle)?);
        }
    }
    Ok(())
}

/// Where a flag word is in the memory of a rank that told `told`.
fn flag_of(told: &[f64], layout: &Layout, (route, flag, rank): (usize, Flag, usize)) -> u64 {
    let there = Layout { routes: Vec::new(), half: told[0] as usize, ranks: layout.ranks };
    there.flag(route, flag, rank) as u64
}

/// Whether writes of one rank arrive at another.
struct Trial<'a> {
    d: &'a Device,
    windows: &'a Windows,
    layout: &'a Layout,
    routes: &'a [Route],
    told_by: &'a [&'a [f64]],
}

impl Trial<'_> {
    /// Writes to all partners; waits until all is written.
    fn call(&self, me: usize) -> Result<()> {
        let (d, word) = (self.d, (self.routes.len(), Flag::Sent, me));
        let fault = |e| failed("cannot write memory of another process", e);
        for rank in partners(self.routes) {
            let at = self.windows.of(rank) + flag_of(self.told_by[rank], self.layout, word);
            signal(d, at, 1).map_err(fault)?;
        }
        d.stream().synchronize().map_err(fault)
    }

    /// Whether all partners have.
    fn heard(&self) -> Result<()> {
        for rank in partners(self.routes) {
            let at = self.layout.flag(self.routes.len(), Flag::Sent, rank) as u64;
            let mut said = [0_u32];
            // SAFETY: one number at a place of this memory
            unsafe { result::memcpy_dtoh_sync(&mut said, self.windows.held().own.at() + at) }
                .map_err(|e| failed("cannot download", e))?;
            if said != [1] {
                return Err(Error::run(format!("what rank {rank} writes does not arrive")));
            }
        }
        Ok(())
    }
}

impl Direct {
    fn new(
        d: &Device,
        windows: &Rc<Windows>,
        (layout, routes, at): (&Layout, &[Route], usize),
        (told_by, me): (&[&[f64]], usize),
        communicator: &dyn Communicator,
    ) -> Self {
        let (route, own) = (&routes[at], windows.held().own.at());
        let here = |flag, rank| own + layout.flag(at, flag, rank) as u64;
        let there =
            |flag, rank: usize| windows.of(rank) + flag_of(told_by[rank], layout, (at, flag, me));
        let mut first = 0;
        let outgoing = route.to.iter().map(|&Message { rank, len }| {
            let told = told_by[rank];
            let values = windows.of(rank) + told[1 + at * layout.ranks + me] as u64;
            first += len;
            Outgoing {
                part: first - len..first,
                to: [values, values + told[0] as u64],
                sent: there(Flag::Sent, rank),
                taken: here(Flag::Taken, rank),
            }
        });
        let incoming = route.from.iter().map(|&Message { rank, .. }| Incoming {
            sent: here(Flag::Sent, rank),
            taken: there(Flag::Taken, rank),
        });
        let len = (route.received() + route.own.len()).max(1);
        let ghosts = [0, layout.half].map(|half| {
            // SAFETY: so many numbers of this memory, which lives as long as the route
            unsafe { Borrowed::new(d, own + (layout.routes[at] + half) as u64, len) }
        });
        Self {
            ghosts,
            outgoing: outgoing.collect(),
            incoming: incoming.collect(),
            number: 0,
            give_up: communicator.give_up(),
            _windows: Rc::clone(windows),
        }
    }

    /// Writes the unknowns `sent` of x to the other ranks.
    pub(super) fn start(
        &mut self,
        d: &Device,
        sent: &Places,
        x: &CudaSlice<f64>,
    ) -> Result<(), DriverError> {
        self.number = self.number.wrapping_add(1);
        let (now, turn) = (self.number, self.number as usize % 2);
        // whatever reads the ghost values of the exchange before is on this stream
        let mut ordered = self.incoming.iter().try_for_each(|m| signal(d, m.taken, now - 1));
        // where these values go are those of the exchange before that
        let before = now.wrapping_sub(2);
        ordered = ordered.and(self.outgoing.iter().try_for_each(|m| wait(d, m.taken, before)));
        let mut messages = self.outgoing.iter();
        let written = messages.try_for_each(|m| sent.gather_part(d, m.part.clone(), x, m.to[turn]));
        ordered = ordered.and(self.outgoing.iter().try_for_each(|m| signal(d, m.sent, now)));
        self.needed(ordered);
        written
    }

    /// What follows on the stream finds the values of the other ranks.
    pub(super) fn finish(&self, d: &Device) {
        self.needed(self.incoming.iter().try_for_each(|m| wait(d, m.sent, self.number)));
    }

    /// The other ranks would wait for ever.
    fn needed(&self, done: Result<(), DriverError>) {
        done.unwrap_or_else(|e| (self.give_up)(&failed("values between GPUs", e)));
    }

    /// Received values, then those of own unknowns.
    pub(super) fn ghosts(&self) -> &CudaSlice<f64> {
        &self.ghosts[self.number as usize % 2].0
    }
}

/// Writes `number` to a flag word of an open window, behind what is on the stream.
fn signal(d: &Device, at: Address, number: u32) -> Result<(), DriverError> {
    // SAFETY: windows stay open as long as routes live
    unsafe { ipc::signal(d.stream(), at, number) }
}

/// What follows on the stream waits until the flag word of this rank's window is at `number`.
fn wait(d: &Device, at: Address, number: u32) -> Result<(), DriverError> {
    // SAFETY: as above
    unsafe { ipc::wait(d.stream(), at, number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_is_what_the_variable_says() {
        assert_eq!(["", "auto", "messages"].map(named), [true, true, false].map(Ok));
        let error = named("nccl").unwrap_err();
        assert_eq!(
            error.to_string(),
            "BILU_BENCH_TRANSPORT: `nccl` is neither `auto` nor `messages`"
        );
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn ghost_values_and_flag_words_are_apart() {
        let message = |rank, len| Message { rank, len };
        let routes = [
            Route {
                from: vec![message(0, 5), message(2, 20)],
                own: vec![3, 4],
                ..Route::default()
            },
            Route { from: vec![message(2, 1)], ..Route::default() },
            Route::default(),
        ];
        let layout = Layout::new(&routes, 3);
        // 27 numbers are 216 bytes
        assert_eq!(layout, Layout { routes: vec![0, 256, 384], half: 512, ranks: 3 });
        assert_eq!(layout.told(&routes), [512.0, 0.0, 0.0, 40.0, 0.0, 0.0, 256.0, 0.0, 0.0, 0.0]);
        let flags = (0..4).flat_map(|route| {
            let words = |flag| (0..3).map(move |rank| (route, flag, rank));
            words(Flag::Sent).chain(words(Flag::Taken)).collect::<Vec<_>>()
        });
        let at: Vec<usize> = flags.map(|(r, flag, rank)| layout.flag(r, flag, rank)).collect();
        let expected: Vec<usize> = (0..24).map(|i| 1024 + 128 * i).collect();
        assert_eq!(at, expected);
        // of the trial, which has one word for each rank
        assert_eq!(layout.bytes(), 1024 + 128 * 24);
    }
}
