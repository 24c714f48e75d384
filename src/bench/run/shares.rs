//! What the first rank sends the others of a system.

use std::sync::Arc;

use crate::base::error::Result;
use crate::compute::distributed::Layout;
use crate::compute::distributed::communicator::Communicator;
use crate::matrix::Csr;
use crate::methods::schwarz::with_overlap;
use crate::symbolic::interfaces::Elimination;

/// Tells all ranks the order of exact factors; collective.
pub(super) fn share(order: Option<&mut Elimination>, communicator: &dyn Communicator) {
    if let Some(order) = order {
        let mut bytes = bytemuck::cast_slice(&order.given).to_vec();
        communicator.broadcast(0, &mut bytes);
        order.given = bytemuck::pod_collect_to_vec(&bytes);
    }
}

/// Rows of a rank and of the overlap around them, and its part of the right-hand side, as bytes.
pub(super) struct Part;

impl Part {
    pub(super) fn bytes(
        a: &Csr,
        b: &[f64],
        layout: &Layout,
        overlap: usize,
        rank: usize,
    ) -> Vec<u8> {
        let own = layout.unknowns(rank);
        let size = a.block_size();
        let blocks = (own.start / size) as u32..(own.end / size) as u32;
        let mut inside = vec![false; a.rows() / size];
        let blocks = with_overlap(a, blocks, overlap, &mut inside);
        let rows = || blocks.iter().flat_map(|&r| r as usize * size..(r as usize + 1) * size);
        let entries: usize = rows().map(|row| a.row(row).0.len()).sum();
        let counts = [blocks.len() as u64, entries as u64];
        let mut bytes =
            Vec::with_capacity(16 + 8 * blocks.len() * size + 12 * entries + 8 * own.len());
        bytes.extend_from_slice(bytemuck::cast_slice(&counts));
        bytes.extend_from_slice(bytemuck::cast_slice(&blocks));
        for row in rows() {
            bytes.extend_from_slice(&(a.row(row).0.len() as u32).to_ne_bytes());
        }
        rows().for_each(|row| bytes.extend_from_slice(bytemuck::cast_slice(a.row(row).0)));
        rows().for_each(|row| bytes.extend_from_slice(bytemuck::cast_slice(a.row(row).1)));
        bytes.extend_from_slice(bytemuck::cast_slice(&b[own]));
        bytes
    }

    /// The matrix, whose other rows are empty, and the right-hand side.
    pub(super) fn read(bytes: &[u8], n: usize, block_size: usize) -> Result<(Arc<Csr>, Vec<f64>)> {
        let (counts, rest) = bytes.split_at(16);
        let [blocks, entries] = [0, 8].map(|at| {
            let word = counts[at..at + 8].try_into().expect("eight bytes");
            u64::from_ne_bytes(word) as usize
        });
        let (of_blocks, rest) = rest.split_at(4 * blocks);
        let (lengths, rest) = rest.split_at(4 * blocks * block_size);
        let (columns, rest) = rest.split_at(4 * entries);
        let (values, b) = rest.split_at(8 * entries);
        let of_blocks: Vec<u32> = bytemuck::pod_collect_to_vec(of_blocks);
        let lengths: Vec<u32> = bytemuck::pod_collect_to_vec(lengths);
        let mut row_ptr = vec![0_u32; n + 1];
        for (at, length) in lengths.into_iter().enumerate() {
            let row = of_blocks[at / block_size] as usize * block_size + at % block_size;
            row_ptr[row + 1] = length;
        }
        for row in 0..n {
            row_ptr[row + 1] += row_ptr[row];
        }
        let (columns, values) =
            (bytemuck::pod_collect_to_vec(columns), bytemuck::pod_collect_to_vec(values));
        let a = Csr::new(n, n, row_ptr, columns, values)?.in_blocks(block_size);
        Ok((Arc::new(a), bytemuck::pod_collect_to_vec(b)))
    }
}
