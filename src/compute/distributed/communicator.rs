//! What ranks exchange: sums, decisions and halos.

use crate::base::error::Error;

/// Bytes of the handle with which another process of a host opens memory of a GPU.
pub const HANDLE: usize = 64;

/// The ranks of a job. All calls are collective but those of an [`Exchange`]: every rank makes the same in the
/// same order.
pub trait Communicator {
    /// Number of this rank, from 0.
    fn rank(&self) -> usize;
    /// Ranks in all.
    fn size(&self) -> usize;
    /// The numbers of every rank, `counts[r]` of rank r, in the order of the ranks.
    fn all_gather(&self, own: &[f64], counts: &[usize]) -> Vec<f64>;
    /// Begins an [`all_gather`](Self::all_gather), which goes on while the rank computes. Other calls may come
    /// before its end.
    fn start_all_gather(&self, own: Vec<f64>, counts: &[usize]) -> Box<dyn Gathering> {
        Box::new(Gathered(self.all_gather(&own, counts)))
    }
    /// The bytes of the rank `root`, on every rank.
    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>);
    /// What the first rank makes for each rank, one after the other.
    fn scatter(&self, make: &mut dyn FnMut(usize) -> Vec<u8>) -> Vec<u8>;
    /// As [`scatter`](Self::scatter), of numbers.
    fn scatter_numbers(&self, make: &mut dyn FnMut(usize) -> Vec<f64>) -> Vec<f64> {
        let make = &mut |rank| bytemuck::cast_slice(&make(rank)).to_vec();
        bytemuck::pod_collect_to_vec(&self.scatter(make))
    }
    /// As [`all_gather`](Self::all_gather), on the first rank alone; nothing on the others.
    fn gather(&self, own: &[f64], counts: &[usize]) -> Vec<f64>;
    /// What the rank `from` makes, on the first rank; nothing on the others.
    fn collect(&self, from: usize, make: &mut dyn FnMut() -> Vec<u8>) -> Vec<u8>;
    /// The first rank tells the others what to do next; they wait for it without a processor. Not collective.
    fn announce(&self, _task: &[u8]) {}
    /// Messages to and from other ranks, that are sent again and again.
    fn exchange(&self, sent: Vec<Message>, received: Vec<Message>) -> Box<dyn Exchange>;

    /// Number of this rank among those of its host, and how many these are; collective.
    fn on_host(&self) -> [usize; 2];

    /// What ends all ranks with an error of this one, for which they would wait. Not collective.
    fn give_up(&self) -> fn(&Error) -> !;

    /// What the first rank that failed says of it, on all ranks.
    fn failure(&self, own: Option<String>) -> Option<String> {
        let speaker = self.first(own.is_some())?;
        let mut said = own.unwrap_or_default().into_bytes();
        self.broadcast(speaker, &mut said);
        Some(String::from_utf8_lossy(&said).into_owned())
    }

    /// The largest of the numbers of all ranks.
    fn largest(&self, own: f64) -> f64 {
        let all = self.all_gather(&[own], &vec![1; self.size()]);
        all.into_iter().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Whether any rank says so.
    fn any(&self, own: bool) -> bool {
        self.largest(f64::from(u8::from(own))) > 0.0
    }

    /// The first rank that says so.
    fn first(&self, own: bool) -> Option<usize> {
        let all = self.all_gather(&[f64::from(u8::from(own))], &vec![1; self.size()]);
        all.iter().position(|said| *said > 0.0)
    }
}

/// Numbers of every rank on their way to all.
pub trait Gathering {
    /// Waits for them.
    fn finish(self: Box<Self>) -> Vec<f64>;
}

/// Numbers that are there.
struct Gathered(Vec<f64>);

impl Gathering for Gathered {
    fn finish(self: Box<Self>) -> Vec<f64> {
        self.0
    }
}

/// A message to or from another rank: `len` numbers of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The other rank.
    pub rank: usize,
    /// Its length.
    pub len: usize,
}

/// Messages of one kind; their buffers hold them one behind the other, in the order in which they were named.
pub trait Exchange {
    /// What is sent next.
    fn outgoing(&mut self) -> &mut [f64];
    /// Sends it, and begins to receive.
    fn start(&mut self);
    /// Waits for both, and returns what was received.
    fn finish(&mut self) -> &[f64];
    /// Where [`outgoing`](Self::outgoing) and what is received are, if they stay there as long as this lives. No
    /// message is under way.
    fn buffers(&mut self) -> Option<[&mut [f64]; 2]> {
        None
    }
}

/// One rank, which has nobody to talk to.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneRank;

impl Communicator for OneRank {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn all_gather(&self, own: &[f64], _: &[usize]) -> Vec<f64> {
        own.to_vec()
    }

    fn broadcast(&self, _: usize, _: &mut Vec<u8>) {}

    fn scatter(&self, make: &mut dyn FnMut(usize) -> Vec<u8>) -> Vec<u8> {
        make(0)
    }

    fn gather(&self, own: &[f64], _: &[usize]) -> Vec<f64> {
        own.to_vec()
    }

    fn collect(&self, _: usize, make: &mut dyn FnMut() -> Vec<u8>) -> Vec<u8> {
        make()
    }

    fn exchange(&self, sent: Vec<Message>, received: Vec<Message>) -> Box<dyn Exchange> {
        assert!(sent.is_empty() && received.is_empty(), "there is no other rank");
        Box::new(Nothing)
    }

    fn on_host(&self) -> [usize; 2] {
        [0, 1]
    }

    fn give_up(&self) -> fn(&Error) -> ! {
        |error| panic!("{error}")
    }
}

/// No message.
struct Nothing;

impl Exchange for Nothing {
    fn outgoing(&mut self) -> &mut [f64] {
        &mut []
    }

    fn start(&mut self) {}

    fn finish(&mut self) -> &[f64] {
        &[]
    }
}

/// Ranks that are threads of one process, for tests.
#[cfg(test)]
pub(crate) mod threads {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Barrier, Mutex};

    use super::{Communicator, Error, Exchange, Message};

    /// What the ranks share.
    struct Board {
        barrier: Barrier,
        numbers: Mutex<Vec<Vec<f64>>>,
        bytes: Mutex<Vec<u8>>,
        parts: Mutex<Vec<Vec<u8>>>,
        /// Sender's end of each message in the order of the calls of `exchange`, by (from, to).
        posts: Mutex<Vec<Post>>,
    }

    /// Receiver of a message, with the ranks from and to which it goes.
    type Post = (usize, usize, Receiver<Vec<f64>>);

    pub(crate) struct Rank {
        own: usize,
        size: usize,
        board: Arc<Board>,
    }

    /// Runs `work` on each of `size` ranks; what each returns, in their order.
    pub(crate) fn on_ranks<R: Send>(size: usize, work: impl Fn(Rank) -> R + Sync) -> Vec<R> {
        let board = Arc::new(Board {
            barrier: Barrier::new(size),
            numbers: Mutex::new(vec![Vec::new(); size]),
            bytes: Mutex::default(),
            parts: Mutex::default(),
            posts: Mutex::default(),
        });
        std::thread::scope(|scope| {
            let start = |rank| {
                let (board, work) = (Arc::clone(&board), &work);
                scope.spawn(move || work(Rank { own: rank, size, board }))
            };
            let ranks: Vec<_> = (0..size).map(start).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    impl Communicator for Rank {
        fn rank(&self) -> usize {
            self.own
        }

        fn size(&self) -> usize {
            self.size
        }

        fn all_gather(&self, own: &[f64], counts: &[usize]) -> Vec<f64> {
            assert_eq!(own.len(), counts[self.own]);
            self.board.numbers.lock().unwrap()[self.own] = own.to_vec();
            self.board.barrier.wait();
            let all = self.board.numbers.lock().unwrap().concat();
            self.board.barrier.wait();
            all
        }

        fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) {
            if self.own == root {
                self.board.bytes.lock().unwrap().clone_from(bytes);
            }
            self.board.barrier.wait();
            bytes.clone_from(&self.board.bytes.lock().unwrap());
            self.board.barrier.wait();
        }

        fn scatter(&self, make: &mut dyn FnMut(usize) -> Vec<u8>) -> Vec<u8> {
            if self.own == 0 {
                *self.board.parts.lock().unwrap() = (0..self.size).map(make).collect();
            }
            self.board.barrier.wait();
            let own = std::mem::take(&mut self.board.parts.lock().unwrap()[self.own]);
            self.board.barrier.wait();
            own
        }

        fn gather(&self, own: &[f64], counts: &[usize]) -> Vec<f64> {
            let all = self.all_gather(own, counts);
            if self.own == 0 { all } else { Vec::new() }
        }

        fn collect(&self, from: usize, make: &mut dyn FnMut() -> Vec<u8>) -> Vec<u8> {
            if self.own == from {
                *self.board.bytes.lock().unwrap() = make();
            }
            self.board.barrier.wait();
            let first = self.own == 0;
            let made = if first {
                std::mem::take(&mut *self.board.bytes.lock().unwrap())
            } else {
                Vec::new()
            };
            self.board.barrier.wait();
            made
        }

        fn exchange(&self, sent: Vec<Message>, received: Vec<Message>) -> Box<dyn Exchange> {
            let mut senders = Vec::new();
            for message in &sent {
                let (sender, receiver) = channel();
                senders.push((message.len, sender));
                self.board.posts.lock().unwrap().push((self.own, message.rank, receiver));
            }
            self.board.barrier.wait();
            let take = |message: &Message| {
                let mut posts = self.board.posts.lock().unwrap();
                let of = |p: &Post| (p.0, p.1) == (message.rank, self.own);
                let at = posts.iter().position(of).expect("a message that the other rank sends");
                (message.len, posts.remove(at).2)
            };
            let receivers = received.iter().map(take).collect();
            self.board.barrier.wait();
            let len = sent.iter().map(|m| m.len).sum();
            Box::new(Mail { senders, receivers, out: vec![0.0; len], received: Vec::new() })
        }

        fn on_host(&self) -> [usize; 2] {
            [self.own, self.size]
        }

        fn give_up(&self) -> fn(&Error) -> ! {
            |error| panic!("{error}")
        }
    }

    struct Mail {
        senders: Vec<(usize, Sender<Vec<f64>>)>,
        receivers: Vec<(usize, Receiver<Vec<f64>>)>,
        out: Vec<f64>,
        received: Vec<f64>,
    }

    impl Exchange for Mail {
        fn outgoing(&mut self) -> &mut [f64] {
            &mut self.out
        }

        fn start(&mut self) {
            let mut at = 0;
            for (len, sender) in &self.senders {
                sender.send(self.out[at..at + len].to_vec()).unwrap();
                at += len;
            }
        }

        fn finish(&mut self) -> &[f64] {
            self.received.clear();
            for (len, receiver) in &self.receivers {
                let message = receiver.recv().unwrap();
                assert_eq!(message.len(), *len);
                self.received.extend(message);
            }
            &self.received
        }
    }
}
