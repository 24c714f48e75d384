#![no_main]

#[allow(dead_code, reason = "each target uses one reader")]
#[path = "../readers.rs"]
mod readers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| readers::formats(data));
