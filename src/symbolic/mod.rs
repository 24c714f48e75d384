//! Everything that depends on the pattern of a matrix and never on its values.
//!
//! Fill levels, colours and schedules work on the pattern of the blocks ([`crate::matrix::pattern`]).

mod by_level;
mod cells;
pub mod colour;
mod elimination;
pub mod fill;
mod fill_pattern;
pub mod grid;
pub mod hyperplanes;
pub mod interfaces;
mod lattice;
mod multi_elimination;
pub mod order;
mod ordered_set;
pub mod ordering;
pub mod partition;
mod pipeline;
mod power;
mod reordered;
pub mod schedule;
pub mod stencil;

pub use cells::{coloured, eliminated};
pub use colour::{Colouring, colours, colours_of_power, independent_set};
pub use fill::{iluk, iluk_on};
pub use fill_pattern::FillPattern;
pub use hyperplanes::{GridPattern, NoGrid};
pub use lattice::Lattice;
pub use multi_elimination::{Eliminated, Rest, multi_elimination};
pub use order::{by_set, scalar_order};
pub use power::{is_symmetric, power, symmetrised};
pub use reordered::{reordered_triangles, triangles};
pub use schedule::Schedule;
pub use stencil::{Lines, March, Stencil, box_extents};
