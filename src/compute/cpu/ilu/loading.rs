//! Block rows of A as a factorisation takes them: block by block, column by column.

use super::super::block::BlockSize;
use super::Job;
use super::workspace::Places;

/// Copies block row i of A into the row's blocks, with zeros where A has none; entries outside the pattern are dropped.
#[inline(always)]
pub(super) fn load<K: BlockSize>(size: K, job: &Job, i: usize, places: &Places, row: &mut [f64]) {
    let (b, bb) = (size.b(), size.b() * size.b());
    // which of the row's blocks a block of A is
    let at = |block: u32| {
        let at = (places.get(block) as usize).checked_sub(1);
        at.filter(|_| places.window.holds(i, block))
    };
    let known = job.whole.map(|whole| whole.row(i));
    let all = |blocks: &[u32]| {
        let places = blocks.iter().map(|&block| places.get(block) as usize);
        blocks.len() * bb == row.len() && places.eq(1..=blocks.len())
    };
    if !known.is_some_and(all) {
        row.fill(0.0);
    }
    if let Some(blocks) = known {
        let start = job.a.row_ptr()[i * b] as usize;
        let values = &job.a.values()[start..start + blocks.len() * bb];
        for (e, &block) in blocks.iter().enumerate() {
            if let Some(at) = at(block) {
                transposed(size, values, [blocks.len() * b, e * b], &mut row[at * bb..][..bb]);
            }
        }
    } else if let Some((columns, values)) = job.a.whole_blocks(i, b) {
        for e in (0..columns.len()).step_by(b) {
            if let Some(at) = at(columns[e] / b as u32) {
                transposed(size, values, [columns.len(), e], &mut row[at * bb..][..bb]);
            }
        }
    } else {
        for r in 0..b {
            let (columns, values) = job.a.row(i * b + r);
            for (&j, &v) in columns.iter().zip(values) {
                if let Some(at) = at(j / b as u32) {
                    row[at * bb + j as usize % b * b + r] = v;
                }
            }
        }
    }
    let diagonal = (places.get(i as u32) as usize - 1) * bb;
    for r in 0..b {
        row[diagonal + r * b + r] += job.shift;
    }
}

/// The block from column `first` on of rows of `width` values each, column by column.
#[inline(always)]
fn transposed<K: BlockSize>(size: K, values: &[f64], [width, first]: [usize; 2], to: &mut [f64]) {
    let b = size.b();
    for r in 0..b {
        let from = &values[r * width + first..][..b];
        for c in 0..b {
            to[c * b + r] = from[c];
        }
    }
}
