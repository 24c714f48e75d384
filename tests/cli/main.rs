//! The program as its users run it: its flags, files, tables and messages.

mod advise;
mod archives;
mod backends;
#[cfg(unix)]
mod bad_input;
#[path = "../common/mod.rs"]
mod common;
mod download;
#[cfg(all(feature = "cuda", target_os = "linux"))]
mod driver;
#[cfg(unix)]
mod faults;
mod formats;
mod input;
mod matrix;
mod plot;
#[cfg(target_os = "linux")]
mod reading;
#[cfg(unix)]
mod recipes;
#[cfg(unix)]
mod records;
mod report;
mod rounds;
mod run;
mod sequence;
mod several;
mod solution;
mod tools;
mod verdicts;
