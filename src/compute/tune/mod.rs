//! Choosing how kernels are compiled and launched by measurement (Al-Mouhamed and Khan 2017,
//! section 6.5: block shape, work of a thread, compiler flags).
//!
//! [`descent`] searches, [`store`] keeps what was found; which kernels have choices is the backend's
//! to say (`compute::cuda::tune`).

pub mod descent;
pub mod store;

/// Values of the macros of a kernel, by name.
pub type Choices = std::collections::BTreeMap<String, usize>;

/// `THREADS 256, ROWS 2`, as tables and records have it.
pub fn text(choices: &Choices) -> String {
    let pairs: Vec<String> =
        choices.iter().map(|(name, value)| format!("{} {value}", name.to_lowercase())).collect();
    pairs.join(", ")
}
