//! From TOML files and flags to a list of cases.
//!
//! [`sweep::AXES`] is the one list of everything a sweep varies. Flags and TOML both hand words to
//! an axis, which parses and checks them, so the two cannot differ.

pub mod axes;
pub mod claims;
mod csv;
pub mod experiment;
pub mod figure;
pub mod file;
pub mod history;
pub mod keys;
pub mod library;
pub mod marks;
pub mod measure;
pub mod obstacle;
pub(crate) mod peer;
pub mod phases;
pub mod published;
pub mod quantity;
pub mod sampling;
pub mod scale;
pub mod source;
pub mod sweep;
mod values;
pub mod write;

pub use experiment::Experiment;
pub use figure::FigureSpec;
pub use history::History;
pub use phases::Phases;
pub use published::Published;
pub use sweep::{AXES, Axis, Sweep};
