//! Everything that depends on the pattern of a matrix and never on its values.
//!
//! Fill levels, colours and schedules work on the pattern of the blocks ([`crate::matrix::pattern`]).

mod banded;
mod box_fill;
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
mod march;
mod multi_elimination;
pub mod order;
mod ordered_set;
pub mod ordering;
pub mod partition;
mod pipeline;
mod power;
mod quotient;
mod reordered;
mod repeats;
pub mod schedule;
pub mod stencil;
pub(crate) mod sweep;

pub use box_fill::BoxFill;
pub use cells::{coloured, eliminated};
pub(crate) use colour::independent_set;
pub use colour::{Colouring, colours, colours_of_power};
pub use fill::iluk;
pub(crate) use fill::{iluk_on, iluk_raised};
pub use fill_pattern::FillPattern;
pub use hyperplanes::{GridPattern, NoGrid};
pub use lattice::Lattice;
pub use march::March;
pub use multi_elimination::{Eliminated, Rest, multi_elimination};
pub(crate) use order::{by_set, scalar_order};
pub use power::power;
pub(crate) use power::{is_symmetric, mirrors, symmetrised};
pub(crate) use reordered::reordered_triangles;
pub use reordered::triangles;
pub use schedule::Schedule;
pub(crate) use stencil::box_extents;
pub use stencil::{Lines, Parities, Stencil};
