//! `Y' D^-1 Y` of the forward solve `Y = L^-1 W`: what `Q' W` is where `Q = (L D L')^-1 W`. W is not read for it again.

#![allow(unsafe_code, reason = "instruction sets chosen at run time")]

use std::ops::Range;

use super::super::entry::Entry;
use super::super::ilu::BlockIlu;
use super::super::multiversion::multiversion;
use super::super::parts::Blocks;
use super::super::simd::{Simd, prefetch};
use super::grams::{Kind, add_up, gram_of_chunk, gram_of_strip};
use super::lanes::{Lanes, Strip};
use super::solves::by_strips;
use super::updates::{CHUNKS_PER_TASK, chunk};
use crate::base::threads::Threads;

/// Sums over chunks of block rows, which are added up in order: one thread and many have the same bits, and so have
/// several calls.
pub(super) struct Energy<'a> {
    ilu: &'a BlockIlu,
    columns: usize,
    /// `D^-1 Y` of a chunk, where blocks are of more than one.
    scaled: Vec<f64>,
}

impl<'a> Energy<'a> {
    pub(super) fn new(ilu: &'a BlockIlu, columns: usize) -> Self {
        let scaled = if ilu.pattern.block_size() > 1 { numbers(ilu, columns) } else { 0 };
        Self { ilu, columns, scaled: vec![0.0; scaled] }
    }

    /// Places in `D^-1` for `count` numbers of Y from number `from` on.
    fn places(&self, from: usize, count: usize) -> Range<usize> {
        let of = |number: usize| number / self.columns * self.ilu.pattern.block_size();
        of(from)..of(from + count)
    }

    /// Asks for `D^-1`, which the forward solve does not read.
    pub(super) fn ask(&self, from: usize, count: usize) {
        let places = self.places(from, count);
        by_strips!(self.ilu, self.columns, ask(places.clone()));
    }

    /// `out = Y' D^-1 Y` of the chunk from number `from` on.
    fn of_chunk(&mut self, from: usize, y: &[f64], out: &mut [f64]) {
        let (ilu, columns) = (self.ilu, self.columns);
        let places = self.places(from, y.len());
        if ilu.pattern.block_size() == 1 {
            by_strips!(ilu, columns, weighted(places.clone(), y, out));
            return;
        }
        let scaled = &mut self.scaled[..y.len()];
        by_strips!(ilu, columns, scaled_by(places.clone(), y, scaled));
        gram_of_chunk(columns, Kind::Symmetric, 0, y, scaled, out);
    }

    /// `sums += Y' D^-1 Y` of whole chunks from number `from` on.
    pub(super) fn add(&mut self, from: usize, y: &[f64], sums: &mut [f64]) {
        let some = numbers(self.ilu, self.columns);
        let mut part = vec![0.0; sums.len()];
        for (at, y) in y.chunks(some).enumerate() {
            self.of_chunk(from + at * some, y, &mut part);
            add_up(sums, &part);
        }
    }
}

/// Numbers of a chunk of block rows.
fn numbers(ilu: &BlockIlu, columns: usize) -> usize {
    chunk(columns) * ilu.pattern.block_size()
}

/// `out = Y' D^-1 Y`.
pub(super) fn gram(ilu: &BlockIlu, columns: usize, y: &[f64], parallel: bool, out: &mut [f64]) {
    out.fill(0.0);
    if !parallel {
        return Energy::new(ilu, columns).add(0, y, out);
    }
    let (some, size) = (numbers(ilu, columns), out.len());
    let mut parts = vec![0.0; y.len().div_ceil(some) * size];
    Threads::Pool.chunks(&mut parts, size, CHUNKS_PER_TASK, |at, out| {
        let y = &y[at * some..y.len().min((at + 1) * some)];
        Energy::new(ilu, columns).of_chunk(at * some, y, out);
    });
    parts.chunks_exact(size).for_each(|part| add_up(out, part));
}

fn ask<L: Lanes, T: Entry>(
    _: L,
    _: &BlockIlu,
    blocks: &Blocks<T>,
    strip: Strip,
    places: Range<usize>,
) {
    if strip.at == 0 {
        prefetch(&blocks.inverse_diagonal[places]);
    }
}

fn weighted<L: Lanes, T: Entry>(
    lanes: L,
    _: &BlockIlu,
    blocks: &Blocks<T>,
    strip: Strip,
    places: Range<usize>,
    y: &[f64],
    out: &mut [f64],
) {
    let inverse = &blocks.inverse_diagonal[places];
    assert_eq!(inverse.len() * strip.columns, y.len());
    gram_of_strip(lanes, strip, Kind::Symmetric, 0, y, y, inverse, out);
}

fn scaled_by<L: Lanes, T: Entry>(
    lanes: L,
    ilu: &BlockIlu,
    blocks: &Blocks<T>,
    strip: Strip,
    places: Range<usize>,
    y: &[f64],
    scaled: &mut [f64],
) {
    scale(lanes, &blocks.inverse_diagonal[places], ilu.pattern.block_size(), strip, y, scaled);
}

multiversion! { fn scale[L: Lanes, T: Entry](lanes: L, inverse: &[T], size: usize, strip: Strip, y: &[f64], scaled: &mut [f64]) = scale_body }

/// The columns of the strip in `D^-1 Y`.
#[inline(always)]
fn scale_body<L: Lanes, T: Entry, S: Simd>(
    s: S,
    _: L,
    inverse: &[T],
    size: usize,
    strip: Strip,
    y: &[f64],
    scaled: &mut [f64],
) {
    let strip = strip.known::<L>();
    let some = size * strip.columns;
    let rows = y.chunks_exact(some).zip(scaled.chunks_exact_mut(some));
    for (inverse, (y, scaled)) in inverse.chunks_exact(size * size).zip(rows) {
        for row in 0..size {
            let mut sum = L::zero(s);
            for c in 0..size {
                let y = L::load(s, &y[strip.of_row(c)..][..L::COUNT]);
                sum = L::madd(s, inverse[c * size + row].wide(), y, sum);
            }
            L::store(s, sum, &mut scaled[strip.of_row(row)..][..L::COUNT]);
        }
    }
}
