//! How sides go from rank to rank: straight into the neighbour's memory where both have a GPU of one host
//! and the system lets processes share its memory, as messages otherwise.

use std::sync::{Mutex, PoisonError};

use super::super::case::Split;
use super::super::field::{Extent, Layout};
use super::super::part::Face;
use super::world::{OfHost, World, all_or_none, gather, reduce};
use crate::base::error::{Error, Result};
use crate::base::input::say;

/// Bytes by which another process finds memory of a GPU.
pub const HANDLE: usize = 64;

/// A node that can write its neighbours' memory in z, and they its.
pub trait Direct {
    /// What a neighbour needs to open this node's memory; what was written there so far is done.
    ///
    /// # Errors
    /// When the system does not let processes share it.
    fn offer(&mut self) -> Result<[u8; HANDLE]>;
    /// Opens the memory of the neighbour behind a side, which has `layout`.
    ///
    /// # Errors
    /// When it is not in reach.
    fn open(&mut self, face: Face, of: &[u8; HANDLE], layout: Layout) -> Result<()>;
    /// Gives the way through a side up; none of this node's sweeps is under way.
    fn close(&mut self, face: Face);
    /// Tells those whose memory is open of a step; waits until they have been told.
    ///
    /// # Errors
    /// When that fails.
    fn knock(&mut self) -> Result<()>;
    /// Whether the neighbour behind a side has told of as many.
    ///
    /// # Errors
    /// When this node's own memory cannot be read.
    fn was_told(&self, face: Face) -> Result<bool>;
    /// Hears whether any side goes as a message.
    fn settle(&mut self, messages: bool);
}

/// What a rank tells all others of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Card {
    /// The first rank of its host.
    host: u64,
    /// By which its memory can be opened.
    handle: Option<[u8; HANDLE]>,
}

impl Card {
    const BYTES: usize = 8 + 1 + HANDLE;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.host.to_le_bytes());
        bytes[8] = self.handle.is_some().into();
        bytes[9..].copy_from_slice(&self.handle.unwrap_or([0; HANDLE]));
        bytes
    }

    fn of_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let mut host = [0; 8];
        host.copy_from_slice(&bytes[..8]);
        let mut handle = [0; HANDLE];
        handle.copy_from_slice(&bytes[9..]);
        Self { host: u64::from_le_bytes(host), handle: (bytes[8] == 1).then_some(handle) }
    }

    /// The handle by which rank `own` can open the memory of rank `other`, where it can.
    fn between<'a>(
        cards: &'a [Self],
        own: usize,
        other: usize,
        hindrance: &mut Hindrance,
    ) -> Option<&'a [u8; HANDLE]> {
        if cards[own].host != cards[other].host {
            let (a, b) = (own.min(other), own.max(other));
            hindrance.caused_by(Error::run(format!("ranks {a} and {b} are on different hosts")));
            return None;
        }
        if cards[other].handle.is_none() {
            hindrance.follows(format!("rank {other} cannot share its memory"));
        }
        cards[other].handle.as_ref()
    }
}

/// Why a rank has no way to a neighbour: what it found itself, and what follows from what others found, which
/// is said where nobody has found more.
#[derive(Default)]
struct Hindrance {
    cause: Option<Error>,
    effect: Option<Error>,
}

impl Hindrance {
    fn caused_by(&mut self, e: Error) {
        self.cause.get_or_insert(e);
    }

    fn follows(&mut self, what: String) {
        self.effect.get_or_insert_with(|| Error::run(what));
    }

    /// What is said of all ranks' hindrances.
    fn of_all(self) -> Option<Error> {
        let [cause, effect] =
            [self.cause, self.effect].map(|own| all_or_none(own.map_or(Ok(()), Err)).err());
        cause.or(effect)
    }
}

/// The ways of a rank to its neighbours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ways {
    /// Sides that go straight into the neighbour's memory.
    pub(super) direct: Vec<Face>,
    /// What the record says of those of all ranks.
    pub(super) used: Option<&'static str>,
}

impl Ways {
    /// All sides as messages.
    pub(super) fn messages(world: World) -> Self {
        Self { direct: Vec::new(), used: used(0.0, (world.size() - 1) as f64) }
    }

    /// Direct ways where neighbours can have them; all ranks call this together. Why sides go as messages all
    /// the same is a note of the first rank.
    pub(super) fn find(world: World, split: Split, m: usize, node: &mut dyn Direct) -> Self {
        let OfHost { host, .. } = world.of_host();
        let offer = node.offer();
        let card = Card { host: host as u64, handle: offer.as_ref().ok().copied() };
        let cards: Vec<Card> = gather(card.to_bytes()).iter().map(Card::of_bytes).collect();
        let own = world.rank();
        let sides: Vec<(Face, usize)> = Face::ALL
            .into_iter()
            .filter_map(|face| Some((face, face.neighbour(split, own)?)))
            .collect();
        let mut hindrance = Hindrance::default();
        let mut opened = Vec::new();
        for &(face, other) in sides.iter().filter(|_| offer.is_ok()) {
            let layout = Layout::of(&Extent::of_node(m, split, other));
            let Some(handle) = Card::between(&cards, own, other, &mut hindrance) else { continue };
            match node.open(face, handle, layout) {
                Ok(()) => opened.push(face),
                Err(e) => hindrance.caused_by(e),
            }
        }
        if let Err(e) = offer
            && !sides.is_empty()
        {
            hindrance.caused_by(e);
        }
        // whether what is written arrives
        if let Err(e) = node.knock() {
            opened.drain(..).for_each(|face| node.close(face));
            hindrance.caused_by(e);
        }
        reduce(&mut [], &mut []);
        let mut heard = [0_u8; Face::ALL.len()];
        for &face in &opened {
            // a neighbour that cannot be heard was not
            heard[face as usize] = u8::from(node.was_told(face).unwrap_or(false));
        }
        let all = gather(heard);
        let both = |face: Face, other: usize| {
            heard[face as usize] == 1 && all[other][face.opposite() as usize] == 1
        };
        let mut direct = Vec::new();
        for &(face, other) in &sides {
            if both(face, other) {
                direct.push(face);
            } else if opened.contains(&face) {
                node.close(face);
                let (a, b) = (own.min(other), own.max(other));
                hindrance
                    .follows(format!("what ranks {a} and {b} write does not reach each other"));
            }
        }
        node.settle(direct.len() < sides.len());
        let mut ways = [direct.len() as f64, (sides.len() - direct.len()) as f64];
        reduce(&mut ways, &mut []);
        if let Some(why) = hindrance.of_all().filter(|_| own == 0) {
            say_once(&format!("note: sides go as messages between ranks: {why}"));
        }
        Self { direct, used: used(ways[0], ways[1]) }
    }
}

/// The column `transport-used`.
fn used(direct: f64, messages: f64) -> Option<&'static str> {
    match (direct > 0.0, messages > 0.0) {
        (true, true) => Some("direct and messages"),
        (true, false) => Some("direct"),
        (false, true) => Some("messages"),
        (false, false) => None,
    }
}

/// The same for each case is said for the first.
fn say_once(text: &str) {
    static SAID: Mutex<String> = Mutex::new(String::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if *said != text {
        say(text);
        text.clone_into(&mut said);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_read_as_it_was_written() {
        let mut handle = [0; HANDLE];
        handle.iter_mut().zip(7..).for_each(|(to, byte)| *to = byte);
        for card in [
            Card { host: 3, handle: Some(handle) },
            Card { host: u64::MAX - 1, handle: None },
            Card { host: 0, handle: Some([0; HANDLE]) },
        ] {
            assert_eq!(Card::of_bytes(&card.to_bytes()), card);
        }
    }

    #[test]
    fn a_way_is_direct_within_a_host_and_where_memory_is_shared() {
        let card = |host, byte: Option<u8>| Card { host, handle: byte.map(|b| [b; HANDLE]) };
        let cards = [card(0, Some(1)), card(0, Some(2)), card(0, None), card(3, Some(4))];
        let between = |own, other| {
            let mut hindrance = Hindrance::default();
            let handle = Card::between(&cards, own, other, &mut hindrance).map(|handle| handle[0]);
            let text = |e: Option<Error>| e.map(|e| e.to_string()).unwrap_or_default();
            (handle, text(hindrance.cause), text(hindrance.effect))
        };
        let (none, hosts) = (String::new(), "ranks 2 and 3 are on different hosts".to_owned());
        assert_eq!(between(0, 1), (Some(2), none.clone(), none.clone()));
        assert_eq!(between(1, 0), (Some(1), none.clone(), none.clone()));
        let effect = "rank 2 cannot share its memory".to_owned();
        assert_eq!(between(1, 2), (None, none.clone(), effect));
        assert_eq!(between(2, 3), (None, hosts.clone(), none.clone()));
        assert_eq!(between(3, 2), (None, hosts, none));
    }

    #[test]
    fn the_record_names_what_was_used() {
        assert_eq!(used(0.0, 0.0), None);
        assert_eq!(used(6.0, 0.0), Some("direct"));
        assert_eq!(used(0.0, 2.0), Some("messages"));
        assert_eq!(used(4.0, 2.0), Some("direct and messages"));
    }
}
