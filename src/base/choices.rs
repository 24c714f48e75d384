//! Choices that a case names and the layers below it act on, each with the words of flags, TOML and records.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Largest block size.
pub(crate) const MAX_BLOCK_SIZE: usize = 128;

/// Largest fill level; levels are held in 8 bits.
pub const MAX_FILL: usize = 120;

/// Most subdomains.
pub(crate) const MAX_SUBDOMAINS: usize = 1 << 20;

/// How a symmetric Matrix Market file is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAs {
    /// Both triangles: the matrix the file means.
    #[default]
    Expanded,
    /// Only the stored triangle, taken as a general matrix (as Yang et al., Table 2, seem to have).
    AsStored,
}

/// What becomes of entries that a file stores although they are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Zeros {
    /// They belong to the pattern, as simulators mean them: a later step may fill them.
    #[default]
    Keep,
    /// They are removed, so that the pattern is that of the nonzeros (Yang et al., section 2.1).
    Drop,
}

/// How rows and columns are scaled before anything is computed, each by a power of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// Not at all.
    #[default]
    None,
    /// The largest magnitude of each row becomes about 1.
    Rows,
    /// Those of each row and of each column do (Ruiz 2001); a symmetric matrix stays symmetric.
    Ruiz,
}

/// How the fill level of an entry is updated during the symbolic phase of ILU(k).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum LevelRule {
    /// `level(i,j) = min(level(i,j), level(i,p) + level(p,j) + 1)`: the textbook rule
    /// (Yang et al., formula 2; Saad, section 10.3.3).
    #[default]
    Min,
    /// The last update wins, without the minimum; original entries are kept. This gives the
    /// published iteration counts of Yang et al., Table 1.
    Overwrite,
}

/// On which side of the matrix the preconditioner acts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Solve `M^-1 A x = M^-1 b`; the monitored residual is the preconditioned one.
    Left,
    /// Solve `A M^-1 u = b`, `x = M^-1 u`; the monitored residual is the true one.
    #[default]
    Right,
}

/// How GMRES makes a new basis vector orthogonal to the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Orthogonalisation {
    /// Classical Gram-Schmidt, twice from where the basis has lost half its digits of orthogonality on.
    #[default]
    Cgs,
    /// Classical Gram-Schmidt, always twice.
    Cgs2,
    /// Modified Gram-Schmidt.
    Mgs,
    /// Classical Gram-Schmidt twice, the second pass of a vector together with the first one of the next: one
    /// reduction a step.
    OneReduce,
}

/// How block rows are divided among subdomains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Partition {
    /// Ranges of the given order with equal numbers of entries.
    #[default]
    Rows,
    /// Boxes of the grid.
    Boxes,
    /// Parts of the graph of couplings, with few couplings between them and about equal numbers of entries.
    Graph,
}

/// Where the solve of a step of a sequence starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Guess {
    /// From zero.
    #[default]
    Zero,
    /// From the solution of the step before.
    Last,
}

/// What a case runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum RunKind {
    /// Setup and solves.
    #[default]
    Solve,
    /// The product `y = A x` alone.
    Spmv,
}

/// Storage format of the matrix in the product `y = A x`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// The one of `csr` and `bsr` that holds fewer bytes.
    #[default]
    Auto,
    /// Scalar compressed sparse rows.
    Csr,
    /// Block compressed sparse rows with the case's block size.
    Bsr,
    /// ELLPACK for the entries that a third of the rows have, COO for the others.
    Hyb,
    /// Sliced ELLPACK with sorted windows.
    Sell,
    /// Whole diagonals, COO for entries of sparsely filled ones.
    Dia,
    /// Block diagonals of a box grid with wells (Al-Mouhamed and Khan 2017, section 6).
    Bdia,
}

/// In which numbers the factors are stored for the triangular solves. They are made in float64, and
/// all arithmetic with them is in float64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum FactorPrecision {
    /// 8 bytes.
    #[default]
    Float64,
    /// 4 bytes, rounded to nearest.
    Float32,
    /// 2 bytes with 8 significant bits, on CPUs with a scale for each row of a block row.
    Bfloat16,
    /// 2 bytes with 11 significant bits and such a scale; on CPUs.
    Float16,
    /// Each block row in float16, float32 or float64, as the condition numbers of diagonal blocks allow; on CPUs.
    Adaptive,
}

impl FactorPrecision {
    /// Bytes of a number; the most where rows differ.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Float64 | Self::Adaptive => 8,
            Self::Float32 => 4,
            Self::Bfloat16 | Self::Float16 => 2,
        }
    }

    /// Those in which GPUs solve with factors, the widest first.
    pub const ON_GPU: [Self; 3] = [Self::Float64, Self::Float32, Self::Bfloat16];

    /// Whether GPUs solve with factors that are stored so.
    #[must_use]
    pub fn on_gpu(self) -> bool {
        Self::ON_GPU.contains(&self)
    }
}

/// How FGBILU (Luo et al. 2015) is executed on a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum FgbiluStyle {
    /// The backend's own: point after point on one thread, hyperplanes on all cores, on a GPU the best
    /// block ILU(0) there is for the grid.
    #[default]
    Auto,
    /// A thread per matrix element, every step a kernel (Algorithms 4, 6 and 7).
    Acc,
    /// A kernel per hyperplane, steps joined by shared memory (Algorithms 8, 9 and 10); up to 32
    /// unknowns per point.
    Cl,
    /// Our block ILU(0) with tiles that march through the box (`wavefront`).
    Tiles,
}

/// How a Krylov method is executed on a GPU. The method and, but for rounding, its iterates are the
/// same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Execution {
    /// A kernel per step of the method; scalars stay on the device, one read an iteration. The only
    /// one on a CPU.
    #[default]
    Fused,
    /// As calls of a library: a kernel per operation, and every scalar is read back at once.
    Calls,
    /// The kernels of several iterations recorded as a CUDA graph and replayed; residuals are looked
    /// at after each replay.
    Graph,
    /// One kernel for the whole solve.
    Persistent,
}
