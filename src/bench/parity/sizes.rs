//! How much is compared.

use super::executions::{Methods, Sides};
use crate::case::Format;
use crate::methods::precond;

/// How much is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// Every operation with many sizes: what a change of a kernel must pass.
    #[default]
    Full,
    /// Every operation with few and small sizes, for a check that takes seconds and for tools that
    /// slow every access down.
    Quick,
}

/// The sizes that an extent stands for.
pub(super) struct Sizes {
    /// Lengths of vectors.
    pub(super) vectors: &'static [usize],
    /// Lengths and numbers of basis vectors.
    pub(super) bases: &'static [(usize, usize)],
    /// Unknowns per block: with kernels of their own on the CPU, odd, above 8 and above a warp.
    pub(super) blocks: &'static [usize],
    /// Rows of the largest product.
    pub(super) product_rows: usize,
    /// Fill levels.
    pub(super) fills: &'static [usize],
    /// Block rows of random matrices that are factored, up to and above 8 unknowns per block.
    pub(super) block_rows: [usize; 2],
    /// Matrix that is factored beside the random ones.
    pub(super) grid: &'static str,
    /// Boxes of cells, with unknowns per cell and fill levels, of stencils.
    pub(super) boxes: &'static [([usize; 3], usize, usize)],
    /// The same, of stencils whose lines alternate: their fill is that of the rule `overwrite`.
    pub(super) alternating: &'static [([usize; 3], usize, usize)],
    /// Boxes of cells that are solved in pencils.
    pub(super) pencils: &'static [[usize; 3]],
    /// Boxes of points, with unknowns per point, for FGBILU.
    pub(super) grids: &'static [([usize; 3], usize)],
    /// Block rows and block sizes of matrices with special patterns.
    pub(super) patterns: &'static [(usize, usize)],
    /// Rows of a chain, for algorithms that do not launch a kernel per level.
    pub(super) chain: usize,
    /// Block rows and block sizes of matrices whose factors are stored in float32.
    pub(super) single: &'static [(usize, usize)],
    /// Boxes of stencils whose factors are.
    pub(super) single_boxes: &'static [([usize; 3], usize, usize)],
    /// Block sizes with a singular block.
    pub(super) singular: &'static [usize],
    /// Matrices of the formats for regular patterns, with their block sizes.
    pub(super) reservoirs: &'static [(&'static str, usize)],
    /// Systems and methods for every execution.
    pub(super) methods: &'static [Methods],
    /// Rows of matrices with rows of very different length.
    pub(super) uneven: &'static [usize],
    /// Matrix of the solvers.
    pub(super) system: &'static str,
    /// Systems for every preconditioner, with their block sizes and deflation vectors.
    pub(super) systems: &'static [(&'static str, usize, &'static str)],
    /// Orders of the matrices of setups: those that three divides in blocks of three.
    pub(super) sparse: &'static [usize],
    /// Rows of matrices whose factors are solved with by colours.
    pub(super) coloured: &'static [usize],
    /// Most preconditioners with each solver.
    pub(super) compared: usize,
}

const NONE: &str = precond::none::METHOD.name;
const JACOBI: &str = precond::jacobi::METHOD.name;
const BILU: &str = precond::bilu::METHOD.name;

const FULL: Sizes = Sizes {
    vectors: &[1, 2, 3, 31, 257, 1001, 70_003],
    bases: &[
        (5, 1),
        (1001, 3),
        (70_003, 5),
        (999, 13),
        (4097, 20),
        (333, 24),
        (77, 31),
        (129, 33),
        (65, 70),
    ],
    blocks: &[1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 25, 32, 40],
    product_rows: 3001,
    fills: &[0, 1, 3],
    block_rows: [211, 23],
    grid: "poisson3d:13x7x9",
    boxes: &[
        ([2, 3, 11], 1, 0),
        ([1, 1, 1], 1, 0),
        ([1009, 11, 3], 1, 0),
        ([2, 1, 37], 1, 0),
        ([3, 1, 40], 1, 1),
        ([67, 45, 1], 1, 2),
        ([31, 29, 37], 1, 0),
        ([43, 17, 19], 1, 1),
        ([19, 40, 23], 1, 2),
        ([23, 18, 21], 1, 3),
        ([9, 11, 10], 1, 3),
        ([33, 1, 47], 1, 3),
        ([5, 40, 3], 1, 3),
        ([3, 3, 40], 1, 3),
        ([4, 2, 40], 1, 3),
        ([21, 43, 1], 1, 3),
        ([90, 70, 2], 1, 0),
        ([11, 13, 17], 2, 0),
        ([14, 19, 11], 2, 1),
        ([13, 11, 12], 2, 3),
        ([37, 22, 13], 3, 0),
        ([19, 23, 10], 3, 1),
        ([9, 12, 11], 3, 2),
        ([12, 11, 10], 4, 0),
        ([33, 40, 1], 4, 0),
        ([11, 9, 13], 4, 1),
        ([2, 29, 3], 5, 0),
        ([7, 10, 9], 5, 1),
        ([8, 7, 9], 6, 0),
        ([10, 9, 8], 7, 0),
        ([9, 8, 7], 7, 1),
        ([13, 12, 11], 8, 0),
        ([8, 9, 10], 8, 2),
        ([6, 7, 8], 13, 0),
        ([5, 7, 6], 25, 0),
        ([5, 6, 7], 32, 1),
    ],
    alternating: &[
        ([34, 41, 23], 1, 2),
        ([27, 38, 31], 1, 3),
        ([14, 19, 13], 2, 2),
        ([11, 9, 13], 4, 2),
        ([8, 9, 10], 8, 2),
    ],
    pencils: &[
        [2, 3, 11],
        [16, 8, 12],
        [17, 33, 1],
        [33, 17, 29],
        [31, 29, 37],
        [5, 90, 30],
        [170, 7, 5],
        [61, 63, 59],
        [40, 30, 131],
    ],
    grids: &[
        ([2, 3, 11], 1),
        ([13, 5, 9], 2),
        ([12, 9, 7], 4),
        ([11, 13, 5], 5),
        ([15, 15, 15], 6),
        ([6, 9, 8], 9),
        ([5, 7, 6], 16),
        ([5, 6, 4], 31),
        ([4, 5, 7], 32),
        ([4, 3, 5], 33),
    ],
    patterns: &[(1, 1), (2, 3), (1500, 1), (700, 3), (300, 5), (150, 8), (60, 32)],
    chain: 20_000,
    single: &[(700, 1), (300, 3), (60, 16)],
    single_boxes: &[
        ([31, 29, 37], 1, 0),
        ([23, 18, 21], 1, 3),
        ([9, 12, 11], 3, 2),
        ([13, 12, 11], 8, 0),
        ([5, 7, 6], 25, 0),
    ],
    singular: &[1, 2, 5, 8, 13, 33],
    reservoirs: &[
        ("reservoir:9x10x11,k=1,wells=4", 1),
        ("reservoir:13x9x12,k=2,wells=7", 2),
        ("reservoir:13x9x12,k=2,wells=7,bias=half", 2),
        ("reservoir:8x9x7,k=2,wells=0,bias=half", 2),
        ("reservoir:7x11x13,k=3,wells=6", 3),
        ("reservoir:30x17x19,k=4,wells=9", 4),
        ("reservoir:9x17x5,k=4,wells=9,bias=half", 4),
        ("reservoir:11x12x9,k=8,wells=5", 8),
        ("reservoir:11x5x9,k=8,wells=5,bias=half", 8),
        ("poisson3d:7x1x1", 1),
        ("poisson3d:4x1x6", 1),
        ("blockpoisson3d:9x8x11,b=25", 25),
    ],
    methods: &[
        ("poisson3d:1x1x1", 1, Format::Csr, NONE, Sides::Right),
        ("poisson3d:1x1x1", 1, Format::Csr, JACOBI, Sides::Right),
        ("poisson3d:7x1x5", 1, Format::Csr, JACOBI, Sides::Right),
        ("blockpoisson3d:3x2x1,b=5", 5, Format::Bsr, JACOBI, Sides::Right),
        ("poisson3d:19x17x5", 1, Format::Csr, NONE, Sides::Each),
        ("reservoir:9x10x11,k=1,wells=4,days=0.003", 1, Format::Csr, JACOBI, Sides::Right),
        ("reservoir:9x10x11,k=1,wells=4,days=0.003", 1, Format::Bdia, JACOBI, Sides::Right),
        ("reservoir:13x9x12,k=2,wells=7,days=0.003", 2, Format::Csr, JACOBI, Sides::Right),
        ("reservoir:13x9x12,k=2,wells=7,days=0.003", 2, Format::Bsr, JACOBI, Sides::Each),
        ("reservoir:13x9x12,k=2,wells=7,days=0.003", 2, Format::Hyb, JACOBI, Sides::Right),
        ("reservoir:13x9x12,k=2,wells=7,days=0.003", 2, Format::Dia, JACOBI, Sides::Right),
        ("reservoir:13x9x12,k=2,wells=7,days=0.003", 2, Format::Bdia, JACOBI, Sides::Each),
        ("reservoir:7x11x13,k=3,wells=6,days=0.003", 3, Format::Bsr, JACOBI, Sides::Right),
        ("reservoir:7x11x13,k=3,wells=6,days=0.003", 3, Format::Bdia, JACOBI, Sides::Right),
        ("reservoir:30x17x19,k=4,wells=9,days=0.003", 4, Format::Bsr, JACOBI, Sides::Right),
        ("reservoir:30x17x19,k=4,wells=9,days=0.003", 4, Format::Bdia, JACOBI, Sides::Right),
        ("reservoir:11x12x9,k=8,wells=5,days=0.001", 8, Format::Bsr, JACOBI, Sides::Right),
        ("reservoir:11x12x9,k=8,wells=5,days=0.001", 8, Format::Bdia, JACOBI, Sides::Right),
        // factors: none to solve with, ranges, and tiles, with rows that one, two and more lanes share
        ("poisson3d:1x1x1", 1, Format::Csr, BILU, Sides::Right),
        ("poisson3d:7x1x5", 1, Format::Csr, BILU, Sides::Right),
        ("blockpoisson3d:3x2x1,b=5", 5, Format::Bsr, BILU, Sides::Right),
        ("blockpoisson3d:9x8x7,b=7", 7, Format::Bsr, BILU, Sides::Right),
        ("poisson3d:19x17x5", 1, Format::Csr, BILU, Sides::Each),
        ("poisson3d:31x29x27", 1, Format::Dia, BILU, Sides::Right),
        ("reservoir:9x10x11,k=1,wells=4,days=0.003", 1, Format::Bdia, BILU, Sides::Right),
        ("reservoir:13x9x12,k=2,wells=7,days=0.003", 2, Format::Csr, BILU, Sides::Right),
        ("reservoir:13x9x12,k=2,wells=7,days=0.003", 2, Format::Bsr, BILU, Sides::Right),
        ("reservoir:13x9x12,k=2,wells=7,days=0.003", 2, Format::Hyb, BILU, Sides::Right),
        ("reservoir:13x9x12,k=2,wells=7,days=0.003", 2, Format::Dia, BILU, Sides::Right),
        ("reservoir:13x9x12,k=2,wells=7,days=0.003", 2, Format::Bdia, BILU, Sides::Each),
        ("reservoir:7x11x13,k=3,wells=6,days=0.003", 3, Format::Bdia, BILU, Sides::Right),
        ("reservoir:30x17x19,k=4,wells=9,days=0.003", 4, Format::Bdia, BILU, Sides::Right),
        ("reservoir:11x12x9,k=8,wells=5,days=0.001", 8, Format::Bdia, BILU, Sides::Right),
    ],
    uneven: &[1, 33, 1001, 5000],
    system: "poisson3d:20",
    systems: &[
        ("bubbly:23x19x17,bubbles=3,radius=0.12", 1, "levelset-subdomain:2"),
        ("fem-p1:41x37", 1, "subdomain:5x3x1"),
        ("layered:13x12x16,layers=8,contrast=1e5", 1, "levelset"),
        ("poisson3d:19x18x17", 1, "subdomain:9"),
        ("blockpoisson3d:9x8x7,b=3,reaction=1", 3, "subdomain:2x3x1"),
        ("poisson3d:6x5x16", 8, "subdomain:2"),
    ],
    sparse: &[1, 2, 37, 60, 101, 301],
    coloured: &[1, 33, 1_025, 70_001],
    compared: usize::MAX,
};

const QUICK: Sizes = Sizes {
    vectors: &[1, 33, 1001],
    bases: &[(5, 1), (333, 13), (65, 70)],
    blocks: &[1, 2, 5, 13, 33],
    product_rows: 301,
    fills: &[0, 1],
    block_rows: [41, 5],
    grid: "poisson3d:5x4x3",
    boxes: &[
        ([9, 20, 9], 1, 0),
        ([7, 19, 5], 1, 2),
        ([6, 7, 5], 1, 3),
        ([5, 9, 7], 2, 1),
        ([4, 7, 6], 5, 0),
        ([3, 6, 6], 13, 0),
    ],
    alternating: &[([7, 19, 9], 1, 2), ([4, 8, 7], 5, 2)],
    pencils: &[[9, 20, 9], [18, 6, 7]],
    grids: &[([7, 5, 3], 1), ([5, 4, 6], 6), ([3, 4, 2], 32)],
    patterns: &[(1, 1), (70, 1), (40, 5)],
    chain: 500,
    single: &[(70, 1), (40, 3)],
    single_boxes: &[([9, 20, 9], 1, 0), ([4, 7, 6], 5, 0)],
    singular: &[1, 5],
    reservoirs: &[
        ("reservoir:5x6x3,k=1,wells=3", 1),
        ("reservoir:7x6x8,k=2,wells=3", 2),
        ("reservoir:3x6x5,k=3,wells=2", 3),
        ("reservoir:7x6x8,k=4,wells=3,bias=half", 4),
    ],
    methods: &[
        ("poisson3d:1x1x1", 1, Format::Csr, JACOBI, Sides::Right),
        ("reservoir:5x6x3,k=1,wells=3,days=0.003", 1, Format::Csr, JACOBI, Sides::Right),
        ("reservoir:7x6x8,k=2,wells=3,days=0.003", 2, Format::Bdia, JACOBI, Sides::Each),
        ("reservoir:3x6x5,k=3,wells=2,days=0.003", 3, Format::Bsr, JACOBI, Sides::Right),
        ("reservoir:7x6x8,k=2,wells=3,days=0.003", 2, Format::Bdia, BILU, Sides::Right),
        ("poisson3d:7x6x5", 8, Format::Bsr, BILU, Sides::Right),
    ],
    uneven: &[150],
    system: "poisson3d:6",
    systems: &[
        ("bubbly:7x6x5,bubbles=1,radius=0.2", 1, "levelset-subdomain:2"),
        ("blockpoisson3d:4x3x3,b=3,reaction=1", 3, "subdomain:2"),
    ],
    sparse: &[37, 101],
    coloured: &[67],
    compared: 1,
};

impl Extent {
    pub(super) fn sizes(self) -> &'static Sizes {
        match self {
            Self::Full => &FULL,
            Self::Quick => &QUICK,
        }
    }
}
