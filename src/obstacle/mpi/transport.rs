//! Halo exchange between ranks: direct stores into the neighbour's memory where both have a GPU of the same
//! host and the system lets processes share its memory, messages otherwise.

use super::super::case::Split;
use super::super::field::{Extent, Layout};
use super::super::part::Face;
use crate::base::error::{Error, Result};
use crate::base::input::say_once;
use crate::compute::distributed::communicator::HANDLE;
use crate::compute::distributed::world::{OfHost, World, all_or_none, gather, reduce};

/// A node that can write the memory of its neighbours in z, and whose memory they can write.
pub trait Direct {
    /// The handle with which a neighbour opens this node's memory, after earlier writes there are complete.
    ///
    /// # Errors
    /// When the system does not let processes share the memory.
    fn offer(&mut self) -> Result<[u8; HANDLE]>;
    /// Opens the memory, of layout `layout`, of the neighbour at a face.
    ///
    /// # Errors
    /// When it cannot be opened.
    fn open(&mut self, face: Face, of: &[u8; HANDLE], layout: Layout) -> Result<()>;
    /// Closes the memory of the neighbour at a face; none of this node's sweeps is in flight.
    fn close(&mut self, face: Face);
    /// Signals a step to all neighbours whose memory is open, and waits until the signals are written.
    ///
    /// # Errors
    /// When a signal cannot be written.
    fn signal(&mut self) -> Result<()>;
    /// Whether the neighbour at a face has signalled as many steps.
    ///
    /// # Errors
    /// When this node's own memory cannot be read.
    fn signalled(&self, face: Face) -> Result<bool>;
    /// Called once the transports are settled: whether any halo goes as a message.
    fn settle(&mut self, messages: bool);
}

/// Information about a rank that all others receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RankInfo {
    /// The first rank of its host.
    host: u64,
    /// Handle of its memory, if it can be shared.
    handle: Option<[u8; HANDLE]>,
}

impl RankInfo {
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
        infos: &'a [Self],
        own: usize,
        other: usize,
        reason: &mut FallbackReason,
    ) -> Option<&'a [u8; HANDLE]> {
        if infos[own].host != infos[other].host {
            let (a, b) = (own.min(other), own.max(other));
            reason.caused_by(Error::run(format!("ranks {a} and {b} are on different hosts")));
            return None;
        }
        if infos[other].handle.is_none() {
            reason.follows(format!("rank {other} cannot share its memory"));
        }
        infos[other].handle.as_ref()
    }
}

/// Why halos of a rank go as messages: an error of its own, or a consequence of another rank's error, which is
/// reported only if no rank has an error of its own.
#[derive(Default)]
struct FallbackReason {
    cause: Option<Error>,
    effect: Option<Error>,
}

impl FallbackReason {
    fn caused_by(&mut self, e: Error) {
        self.cause.get_or_insert(e);
    }

    fn follows(&mut self, what: String) {
        self.effect.get_or_insert_with(|| Error::run(what));
    }

    /// The reason to report, over all ranks.
    fn of_all(self) -> Option<Error> {
        let [cause, effect] =
            [self.cause, self.effect].map(|own| all_or_none(own.map_or(Ok(()), Err)).err());
        cause.or(effect)
    }
}

/// The transports between a rank and its neighbours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Transports {
    /// Faces with direct stores into the neighbour's memory.
    pub(super) direct: Vec<Face>,
    /// The value of the column `transport-used`, over all ranks.
    pub(super) used: Option<&'static str>,
}

impl Transports {
    /// Messages at all faces.
    pub(super) fn messages(world: World) -> Self {
        Self { direct: Vec::new(), used: used(0.0, (world.size() - 1) as f64) }
    }

    /// Direct stores where both neighbours can; a collective call. The first rank prints a note why other halos
    /// go as messages.
    pub(super) fn find(world: World, split: Split, m: usize, node: &mut dyn Direct) -> Self {
        let OfHost { host, .. } = world.of_host();
        let offer = node.offer();
        let info = RankInfo { host: host as u64, handle: offer.as_ref().ok().copied() };
        let infos: Vec<RankInfo> = gather(info.to_bytes()).iter().map(RankInfo::of_bytes).collect();
        let own = world.rank();
        let sides: Vec<(Face, usize)> = Face::ALL
            .into_iter()
            .filter_map(|face| Some((face, face.neighbour(split, own)?)))
            .collect();
        let mut reason = FallbackReason::default();
        let mut opened = Vec::new();
        for &(face, other) in sides.iter().filter(|_| offer.is_ok()) {
            let layout = Layout::of(&Extent::of_node(m, split, other));
            let Some(handle) = RankInfo::between(&infos, own, other, &mut reason) else { continue };
            match node.open(face, handle, layout) {
                Ok(()) => opened.push(face),
                Err(e) => reason.caused_by(e),
            }
        }
        if let Err(e) = offer
            && !sides.is_empty()
        {
            reason.caused_by(e);
        }
        // test that a write arrives
        if let Err(e) = node.signal() {
            opened.drain(..).for_each(|face| node.close(face));
            reason.caused_by(e);
        }
        reduce(&mut [], &mut []);
        let mut arrived = [0_u8; Face::ALL.len()];
        for &face in &opened {
            // a signal that cannot be read counts as missing
            arrived[face as usize] = u8::from(node.signalled(face).unwrap_or(false));
        }
        let all = gather(arrived);
        let both = |face: Face, other: usize| {
            arrived[face as usize] == 1 && all[other][face.opposite() as usize] == 1
        };
        let mut direct = Vec::new();
        for &(face, other) in &sides {
            if both(face, other) {
                direct.push(face);
            } else if opened.contains(&face) {
                node.close(face);
                let (a, b) = (own.min(other), own.max(other));
                reason.follows(format!("writes of ranks {a} and {b} do not reach each other"));
            }
        }
        node.settle(direct.len() < sides.len());
        let mut counts = [direct.len() as f64, (sides.len() - direct.len()) as f64];
        reduce(&mut counts, &mut []);
        if let Some(why) = reason.of_all().filter(|_| own == 0) {
            say_once(&format!("note: halos go as messages between ranks: {why}"));
        }
        Self { direct, used: used(counts[0], counts[1]) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_info_is_read_back() {
        let mut handle = [0; HANDLE];
        handle.iter_mut().zip(7..).for_each(|(to, byte)| *to = byte);
        for info in [
            RankInfo { host: 3, handle: Some(handle) },
            RankInfo { host: u64::MAX - 1, handle: None },
            RankInfo { host: 0, handle: Some([0; HANDLE]) },
        ] {
            assert_eq!(RankInfo::of_bytes(&info.to_bytes()), info);
        }
    }

    #[test]
    fn transports_are_direct_within_a_host_and_where_memory_is_shared() {
        let info = |host, byte: Option<u8>| RankInfo { host, handle: byte.map(|b| [b; HANDLE]) };
        let infos = [info(0, Some(1)), info(0, Some(2)), info(0, None), info(3, Some(4))];
        let between = |own, other| {
            let mut reason = FallbackReason::default();
            let handle = RankInfo::between(&infos, own, other, &mut reason).map(|handle| handle[0]);
            let text = |e: Option<Error>| e.map(|e| e.to_string()).unwrap_or_default();
            (handle, text(reason.cause), text(reason.effect))
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
