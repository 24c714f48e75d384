//! A random order from `ChaCha8`: what an ordering is worth shows beside it.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::{Method, Parameter, Task};
use crate::base::error::{Error, Result};

/// Where none is given.
const SEED: u64 = 1;

pub(super) const METHOD: Method = Method {
    name: "random",
    summary: "random order of the blocks; `random:SEED` from another seed than 1",
    make: |task| Ok(order(task)),
    parameter: Some(seed),
    ..Method::PLAIN
};

fn seed(text: Option<&str>) -> Result<Parameter> {
    let Some(text) = text else { return Ok(Parameter::Seed(SEED)) };
    text.parse().map(Parameter::Seed).map_err(|_| {
        Error::input(format!("`{text}` is not a seed"))
            .hint("a seed is an integer from 0 to 2^64 - 1")
    })
}

fn order(task: &Task) -> Vec<u32> {
    // an incomplete last block stays where it is, so that the seed decides all others
    let mut blocks: Vec<u32> = (0..task.full_blocks() as u32).collect();
    let Parameter::Seed(seed) = task.parameter else { unreachable!("it is read with its seed") };
    blocks.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    blocks.extend(task.full_blocks() as u32..task.blocks() as u32);
    blocks
}
