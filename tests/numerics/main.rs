//! Methods against dense arithmetic, through the library, and on real matrices.

mod block_ilu;
mod cases;
#[path = "../common/mod.rs"]
mod common;
mod correction;
mod dilu;
mod endings;
mod factor_precision;
mod fgbilu;
mod hard_systems;
mod matrix_market;
mod matrix_problem;
mod matrix_real;
mod obstacle;
#[cfg(feature = "cuda")]
mod obstacle_gpu;
mod oracle;
mod real_matrices;
mod solvers;
mod symbolic;
mod symmetry;
mod two_levels;
