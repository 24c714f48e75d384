//! A random order from `ChaCha8`: what an ordering is worth shows beside it.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::{Method, Task};

pub(super) const METHOD: Method = Method {
    name: "random",
    summary: "random order of the blocks; `random:SEED` from another seed than 1",
    make: |task| Ok(order(task)),
    seeded: true,
    ..Method::PLAIN
};

fn order(task: &Task) -> Vec<u32> {
    // an incomplete last block stays where it is, so that the seed decides all others
    let mut blocks: Vec<u32> = (0..task.full_blocks() as u32).collect();
    blocks.shuffle(&mut ChaCha8Rng::seed_from_u64(task.seed));
    blocks.extend(task.full_blocks() as u32..task.blocks() as u32);
    blocks
}
