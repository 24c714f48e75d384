//! A set of small integers that is filled in any order and walked in increasing order.

/// Bit set with two summary layers: insertion is a store or three, and stepping to the next member
/// touches a handful of words however sparse the set is.
pub(super) struct OrderedSet {
    /// `layers[l]` has one bit per nonzero word of `layers[l - 1]`.
    layers: [Vec<u64>; 3],
    /// Nonzero words of the top layer lie from `lowest` to `highest`.
    lowest: usize,
    highest: usize,
}

impl OrderedSet {
    /// Empty set for members below `n`.
    pub(super) fn new(n: usize) -> Self {
        let words = |bits: usize| vec![0u64; bits.div_ceil(64).max(1)];
        let bottom = words(n);
        let middle = words(bottom.len());
        let top = words(middle.len());
        Self { layers: [bottom, middle, top], lowest: usize::MAX, highest: 0 }
    }

    /// Adds `i`.
    #[inline]
    pub(super) fn insert(&mut self, i: u32) {
        let at = i as usize;
        let [bottom, middle, top] = &mut self.layers;
        let word = &mut bottom[at >> 6];
        if *word == 0 {
            middle[at >> 12] |= 1 << (at >> 6 & 63);
            top[at >> 18] |= 1 << (at >> 12 & 63);
            self.lowest = self.lowest.min(at >> 18);
            self.highest = self.highest.max(at >> 18);
        }
        *word |= 1 << (at & 63);
    }

    /// Appends all members to `out` in increasing order, and removes them.
    pub(super) fn drain(&mut self, out: &mut Vec<u32>) {
        let [bottom, middle, top] = &mut self.layers;
        for t in self.lowest..=self.highest {
            for group in bits(std::mem::take(&mut top[t])) {
                let group = t << 6 | group;
                for word in bits(std::mem::take(&mut middle[group])) {
                    let word = group << 6 | word;
                    for member in bits(std::mem::take(&mut bottom[word])) {
                        out.push((word << 6 | member) as u32);
                    }
                }
            }
        }
        (self.lowest, self.highest) = (usize::MAX, 0);
    }

    /// Smallest member at or above `from`.
    #[inline]
    pub(super) fn next(&self, from: u32) -> Option<u32> {
        let [bottom, middle, top] = &self.layers;
        let from = from as usize;
        let word = from >> 6;
        if word >= bottom.len() {
            return None;
        }
        let bits = bottom[word] & (!0 << (from & 63));
        if bits != 0 {
            return Some((word << 6) as u32 + bits.trailing_zeros());
        }
        let word = next_set(middle, word + 1).or_else(|| {
            let group = next_word(top, ((word + 1) >> 6) + 1)?;
            Some((group << 6) + middle[group].trailing_zeros() as usize)
        })?;
        Some((word << 6) as u32 + bottom[word].trailing_zeros())
    }

    /// Removes all members, which must be the ones that `members` yields.
    #[inline]
    pub(super) fn clear(&mut self, members: &[u32]) {
        for &i in members {
            let mut at = i as usize;
            for layer in &mut self.layers {
                at >>= 6;
                layer[at] = 0;
            }
        }
    }
}

/// Positions of the set bits of a word.
#[inline]
pub(super) fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = word.trailing_zeros() as usize;
        word = if word == 0 { return None } else { word & (word - 1) };
        Some(at)
    })
}

/// Position of the first set bit at or above `from` within the word that holds `from`.
#[inline]
fn next_set(layer: &[u64], from: usize) -> Option<usize> {
    let word = from >> 6;
    let bits = layer.get(word)? & (!0 << (from & 63));
    (bits != 0).then(|| (word << 6) + bits.trailing_zeros() as usize)
}

/// Position of the first set bit at or above `from`, in as many words as it takes.
#[inline]
fn next_word(layer: &[u64], from: usize) -> Option<usize> {
    if let Some(at) = next_set(layer, from) {
        return Some(at);
    }
    let first = (from >> 6) + 1;
    let (word, bits) = layer.get(first..)?.iter().enumerate().find(|(_, bits)| **bits != 0)?;
    Some(((first + word) << 6) + bits.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn walks_like_a_btree(members in prop::collection::btree_set(0u32..600_000, 0..60)) {
            let mut set = OrderedSet::new(600_000);
            members.iter().rev().for_each(|&i| set.insert(i));
            let mut walked = vec![];
            let mut at = set.next(0);
            while let Some(i) = at {
                walked.push(i);
                at = set.next(i + 1);
            }
            prop_assert_eq!(&walked, &members.iter().copied().collect::<Vec<_>>());
            set.clear(&walked);
            prop_assert_eq!(set.next(0), None);
            for turn in [1, 2] {
                for &i in &members {
                    set.insert(i / turn);
                }
                let mut drained = vec![];
                set.drain(&mut drained);
                let expected: BTreeSet<u32> = members.iter().map(|&i| i / turn).collect();
                prop_assert_eq!(drained, expected.into_iter().collect::<Vec<_>>());
                prop_assert_eq!(set.next(0), None);
            }
        }
    }

    #[test]
    fn steps_over_far_gaps() {
        let members = BTreeSet::from([0, 63, 64, 4095, 4096, 262_143, 262_144, 20_000_000]);
        let mut set = OrderedSet::new(20_000_001);
        for &i in &members {
            set.insert(i);
        }
        let mut at = 0;
        for &i in &members {
            assert_eq!(set.next(at), Some(i));
            at = i + 1;
        }
        assert_eq!(set.next(at), None);
    }
}
