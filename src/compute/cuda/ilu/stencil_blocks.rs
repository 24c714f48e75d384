//! A stencil of small blocks on a box, marched over with a lane per row of a block
//! (`kernels/ilu/stencil/blocks.cu`).

use super::march::{Kind, exchanged};
use super::{Algorithm, Description};
use crate::compute::cuda::sources::STENCIL_BLOCKS;

const ABOUT: Description = Description {
    name: "stencil-blocks",
    summary: "a lane per row of a block; the lanes of a column invert its diagonal block",
    takes: "blocks of 2 to 4 without fill",
    source: Some(&STENCIL_BLOCKS),
};

pub(super) static ALGORITHM: Algorithm =
    Algorithm { about: ABOUT, variants: |s| KIND.variants(s), new: |s| Ok(KIND.factorise(s)) };

/// Larger blocks and more offsets were slower than rows on their own.
static KIND: Kind = Kind {
    source: &STENCIL_BLOCKS,
    blocks: 2..=4,
    most_offsets: 3,
    variant: |marched, given| marched.whole_rows(given),
    prepare: exchanged,
};
