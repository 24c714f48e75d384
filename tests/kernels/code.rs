//! Hashes of machine code, for `scripts/same-code.sh`.

use std::fmt::Write as _;

use bilu_bench::compute::cuda::sources::Variant;
use sha2::{Digest, Sha256};

/// Sections that name files and lines, or hold options of the compiler, and the tables of names.
const ASIDE: [&str; 9] = [
    ".debug",
    ".nv_debug",
    ".rel.debug",
    ".rel.nv_debug",
    ".rela.debug",
    ".note",
    ".shstrtab",
    ".strtab",
    ".symtab",
];

/// A program without the name of its file: its kernels, what it is compiled for, its hash.
pub(crate) fn line(kernels: &[&str], variant: &Variant, cubin: &[u8]) -> String {
    let Variant { block_size, defines, lists } = variant;
    let mut line = format!("{} {block_size}", kernels.join(","));
    for (name, value) in defines {
        write!(line, " {name}={value}").unwrap();
    }
    for (name, list) in lists {
        write!(line, " {name}={list}").unwrap();
    }
    line.push(' ');
    for byte in hash(cubin) {
        write!(line, "{byte:02x}").unwrap();
    }
    line
}

/// SHA-256 of the sections of a 64-bit ELF file that decide what a GPU does: code, constants, initial
/// values, and what the driver is told of each kernel.
fn hash(cubin: &[u8]) -> [u8; 32] {
    let number = |at: usize, bytes: usize| {
        cubin[at..at + bytes].iter().rev().fold(0, |n, byte| n << 8 | usize::from(*byte))
    };
    let (table, entry, count) = (number(0x28, 8), number(0x3a, 2), number(0x3c, 2));
    let header = |n: usize| table + n * entry;
    let names = number(header(number(0x3e, 2)) + 0x18, 8);
    let mut sections: Vec<(&str, &[u8])> = (0..count)
        .map(|n| {
            let at = names + number(header(n), 4);
            let name = cubin[at..].split(|byte| *byte == 0).next().unwrap();
            let (kind, offset) = (number(header(n) + 4, 4), number(header(n) + 0x18, 8));
            // sections of kind 8 take no room in the file
            let size = if kind == 8 { 0 } else { number(header(n) + 0x20, 8) };
            (std::str::from_utf8(name).unwrap(), &cubin[offset..][..size])
        })
        .filter(|(name, _)| !ASIDE.iter().any(|aside| name.starts_with(aside)))
        .collect();
    sections.sort_unstable();
    assert!(sections.iter().any(|(name, code)| name.starts_with(".text.") && !code.is_empty()));
    let mut hasher = Sha256::new();
    for (name, bytes) in sections {
        hasher.update((name.len() as u64).to_le_bytes());
        hasher.update(name);
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    }
    hasher.finalize().into()
}
