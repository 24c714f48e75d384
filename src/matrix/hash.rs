//! Hashes of what matrices and vectors hold.

use std::hash::Hasher;

use twox_hash::XxHash3_64;

use super::Csr;

/// Bytes that are hashed at a time.
const STEP: usize = 1 << 16;

/// XXH3 (64 bits) of the numbers of rows and columns, the row pointers, the columns and the bits of the
/// values, little endian; 16 hexadecimal digits.
pub fn matrix_hash(a: &Csr) -> String {
    let mut hasher = XxHash3_64::new();
    for number in [a.rows(), a.cols()] {
        hasher.write(&(number as u64).to_le_bytes());
    }
    array(&mut hasher, a.row_ptr(), |v| v.to_le_bytes());
    array(&mut hasher, a.col_ind(), |v| v.to_le_bytes());
    array(&mut hasher, a.values(), |v| v.to_le_bytes());
    format!("{:016x}", hasher.finish())
}

/// XXH3 (64 bits) of the bits of the values, likewise.
pub fn vector_hash(values: &[f64]) -> String {
    let mut hasher = XxHash3_64::new();
    array(&mut hasher, values, |v| v.to_le_bytes());
    format!("{:016x}", hasher.finish())
}

/// The same of what comes in parts: the bytes of its numbers, one after the other, little endian. A matrix of more
/// entries than 32 bits count has the lower 32 bits of its row pointers in its hash.
#[derive(Default)]
pub struct Parts(XxHash3_64);

impl Parts {
    /// Takes the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// The hash of all.
    pub fn finish(self) -> String {
        format!("{:016x}", self.0.finish())
    }
}

fn array<V, const N: usize>(hasher: &mut XxHash3_64, values: &[V], bytes: impl Fn(&V) -> [u8; N]) {
    let mut block = Vec::with_capacity(STEP);
    for values in values.chunks(STEP / N) {
        block.clear();
        for v in values {
            block.extend_from_slice(&bytes(v));
        }
        hasher.write(&block);
    }
}
