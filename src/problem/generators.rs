//! Registry of the generators.

use super::generator::Generator;
use super::{
    blockpoisson3d, bubbly, channel3d, convdiff3d, fem_p1, layered, obstacle, permeability,
    poisson3d, reservoir,
};

/// Every generator; a new one is a new file and a line here.
pub static GENERATORS: &[&Generator] = &[
    &poisson3d::GENERATOR,
    &blockpoisson3d::GENERATOR,
    &channel3d::GENERATOR,
    &convdiff3d::GENERATOR,
    &fem_p1::GENERATOR,
    &reservoir::GENERATOR,
    &bubbly::GENERATOR,
    &layered::GENERATOR,
    &permeability::GENERATOR,
    &obstacle::GENERATOR,
];

/// The generator called `name`.
pub fn find(name: &str) -> Option<&'static Generator> {
    GENERATORS.iter().copied().find(|g| g.name == name)
}
