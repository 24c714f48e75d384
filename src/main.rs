//! Command line of `bilu-bench`.

fn main() {}
