//! A stencil of entries on a box, marched over with eight lanes per row (`kernels/ilu/stencil/long.cu`).

use super::march::given::Given;
use super::march::{Kind, Marched, exchanged};
use super::stencil_entries::MOST_OFFSETS;
use super::{Algorithm, Description};
use crate::compute::cuda::sources::{STENCIL_LONG, Variant};
use crate::compute::cuda::tiles::Tile;

const ABOUT: Description = Description {
    name: "stencil-long",
    summary: "eight lanes per row, a warp per stage of a row",
    takes: "entries, more than five offsets, or some missing at the faces",
    source: Some(&STENCIL_LONG),
};

pub(super) static ALGORITHM: Algorithm =
    Algorithm { about: ABOUT, variants: |s| KIND.variants(s), new: |s| Ok(KIND.factorise(s)) };

static KIND: Kind = Kind {
    source: &STENCIL_LONG,
    blocks: 1..=1,
    most_offsets: usize::MAX,
    variant,
    prepare: exchanged,
};

fn variant(m: &Marched, given: &Given) -> Option<(Tile, Variant)> {
    if !m.lacks_entries() && m.stencil.offsets.len() <= MOST_OFFSETS {
        return None;
    }
    let tile = Tile::of_long_rows(&m.stencil, given.count(), m.multiprocessors)?;
    let mut variant = given.variant(1, &m.stencil, &tile);
    for (name, lines) in ["LOWER_AT", "UPPER_AT"].into_iter().zip(&m.lines) {
        let list: Vec<String> = lines.iter().map(|lines| lines.0.to_string()).collect();
        variant.lists.push((name, list.join(",")));
    }
    Some((tile, variant))
}
