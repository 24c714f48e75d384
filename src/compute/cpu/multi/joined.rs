//! Two passes of block CG on one thread, each of which takes several multivectors through the caches once: what follows
//! on a chunk of rows is done while the chunk is there. Numbers are those of one operation after the other.

use std::ops::Range;

use super::super::ilu::BlockIlu;
use super::super::shared::Shared;
use super::super::spmv::Rows;
use super::energy::Energy;
use super::grams::{Kind, add_up, gram_of_chunk};
use super::updates::{chunk, distance, update_chunk};
use super::{rows, solves};
use crate::compute::multivectors::{Own, Step};

/// Numbers of a piece of a vector. What follows on a piece finds two vectors in a second-level cache of 1 MiB; in shorter
/// pieces operations spend more of their time on the first lines, for which nobody has asked.
const PIECE: usize = 1 << 15;

/// Numbers of whole chunks of block rows that make up a piece.
fn piece(columns: usize, block_size: usize) -> usize {
    let some = chunk(columns) * block_size;
    (PIECE / some).max(1) * some
}

/// `X += P add`, `P = own + Z coef`, `Z = A P` and `gram = P' Z`: P is new as far as the next rows of A reach, and as
/// far as Z is what it was.
pub(super) fn directions(
    a: Rows,
    columns: usize,
    step: &Step,
    [x, p, z]: [&mut [f64]; 3],
    gram: &mut [f64],
) {
    let of_row = rows::checked(a, columns, p, z);
    assert!(x.len() == p.len() && z.len() == p.len());
    let (n, far, chunk) = (p.len(), distance(p.len()), chunk(columns));
    let piece = piece(columns, a.block_size);
    let mut part = vec![0.0; gram.len()];
    gram.fill(0.0);
    let mut new = 0;
    for from in (0..n).step_by(piece) {
        let to = n.min(from + piece);
        let last = a.last_column(from / of_row..to / of_row).map_or(0, |j| (j + 1) * of_row);
        while new < last.max(to) {
            let some = new..n.min(new + chunk);
            let p = &mut p[some.clone()];
            if let Some(add) = step.add {
                let basis = std::iter::once(&*p);
                update_chunk(columns, far, Own::Kept, basis, add, &mut x[some.clone()]);
            }
            update_chunk(columns, far, step.own, std::iter::once(&z[some.clone()]), step.coef, p);
            new = some.end;
        }
        rows::some_rows(a, columns, p, None, from / of_row, &mut z[from..to]);
        for (p, z) in p[from..to].chunks(chunk).zip(z[from..to].chunks(chunk)) {
            gram_of_chunk(columns, Kind::Symmetric, 0, p, z, &mut part);
            add_up(gram, &part);
        }
    }
}

/// `W = own + Q coef`, `Q = (L D U')^-1 W`, and `Q' W`, of symmetric factors as `Y' D^-1 Y` with `Y = L^-1 W`, and
/// `W' W` one after the other in `grams`, with factors that have blocks of numbers.
pub(super) fn residuals(
    (ilu, symmetric): (&BlockIlu, bool),
    columns: usize,
    (own, coef): (Own, &[f64]),
    [w, q]: [&mut [f64]; 2],
    grams: &mut [f64],
) {
    assert!(q.len() == w.len());
    let (n, far, chunk, small) = (w.len(), distance(w.len()), chunk(columns), columns * columns);
    let of_row = ilu.pattern.block_size() * columns;
    let piece = piece(columns, ilu.pattern.block_size());
    let block_rows = |some: &Range<usize>| (some.start / of_row) as u32..(some.end / of_row) as u32;
    let (of_q, of_w) = grams.split_at_mut(small);
    let mut part = vec![0.0; small];
    let mut energy = symmetric.then(|| Energy::new(ilu, columns));
    of_w.fill(0.0);
    of_q.fill(0.0);
    for from in (0..n).step_by(piece) {
        let some = from..n.min(from + piece);
        if let Some(energy) = &energy {
            energy.ask(from, some.len());
        }
        for at in some.clone().step_by(chunk) {
            let of_chunk = at..n.min(at + chunk);
            let w = &mut w[of_chunk.clone()];
            update_chunk(columns, far, own, std::iter::once(&q[of_chunk]), coef, w);
            gram_of_chunk(columns, Kind::Symmetric, 0, w, w, &mut part);
            add_up(of_w, &part);
        }
        solves::forward_rows(ilu, columns, w, Shared::new(q), block_rows(&some));
        if let Some(energy) = &mut energy {
            energy.add(from, &q[some], of_q);
        }
    }
    if energy.is_some() {
        return solves::backward_rows(ilu, columns, Shared::new(q), 0..(n / of_row) as u32);
    }
    // rows come from the last to the first, sums are of chunks from the first to the last
    let before = if far == 0 { 0 } else { -(size_of::<f64>() as isize * piece as isize) };
    let mut parts = vec![0.0; n.div_ceil(chunk) * small];
    for from in (0..n).step_by(piece).rev() {
        let some = from..n.min(from + piece);
        solves::backward_rows(ilu, columns, Shared::new(q), block_rows(&some));
        for at in some.step_by(chunk) {
            let (q, w) = (&q[at..n.min(at + chunk)], &w[at..n.min(at + chunk)]);
            let part = &mut parts[at / chunk * small..][..small];
            gram_of_chunk(columns, Kind::Any, before, q, w, part);
        }
    }
    parts.chunks_exact(small).for_each(|part| add_up(of_q, part));
}
