//! Porous flow through layers of rock (Gupta et al. 2015; Vuik, Segal and Meijerink 1999).

use super::convdiff3d::check_seven_points;
use super::diffusion::{Boundary, Diffusion};
use super::generator::{Arguments, Generated, Generator, Parameter, Piece, Word};
use super::splitmix::mix;
use crate::base::error::{Error, Result};

/// `-div(kappa grad p) = f` on NX x NY x NZ cells, x fastest: layers across z, as equal as cells allow,
/// kappa 1 (sandstone) and `1 / contrast` (shale) in turn, from z = 0 on.
pub(super) static GENERATOR: Generator = Generator {
    name: "layered",
    summary: "porous flow through layers of alternating permeability; right-hand side `own`",
    dimensions: 3,
    parameters: &[
        Parameter { key: "layers", default: 16.0, summary: "layers across z, 1 to NZ" },
        Parameter { key: "contrast", default: 1000.0, summary: "of the permeabilities, 1 to 1e12" },
        Parameter { key: "seed", default: 1.0, summary: "of `own`, 0 to 2^53" },
    ],
    words: &[Word {
        key: "boundary",
        default: "top",
        summary: "top (p = 0 at z = 0, else no flow), dirichlet, fixed or neumann",
    }],
    presets: &[],
    check: check_seven_points,
    build,
};

fn build(arguments: &Arguments, piece: Piece) -> Result<Generated> {
    check_seven_points(arguments)?;
    let size = arguments.size;
    let [nx, ny, nz] = size;
    let layers = GENERATOR.whole(arguments, "layers", 1, nz as u64)? as usize;
    let seed = GENERATOR.whole(arguments, "seed", 0, 1 << 53)?;
    let contrast = arguments.get("contrast");
    if !(1.0..=1e12).contains(&contrast) {
        let message = format!("`layered`: `contrast={contrast}` is outside 1 to 1e12");
        return Err(Error::input(message));
    }
    let boundary = Boundary::find(GENERATOR.name, arguments.word("boundary"))?;
    let of_layer =
        |z: usize| if (z * layers / nz).is_multiple_of(2) { 1.0 } else { 1.0 / contrast };
    let kappa = |cell: usize| of_layer(cell / (nx * ny));
    Diffusion { size, kappa: &kappa, along: [1.0; 3], boundary, storage: 0.0 }
        .assemble(mix(seed ^ 0x6c61_7965), piece)
}

#[cfg(test)]
mod tests {
    use crate::problem::samples::{matrix, no_problem};

    #[test]
    fn layers_alternate_and_harmonic_means_join_them() {
        let a = matrix("layered:2x1x6,layers=3,contrast=1e4");
        let upper = |i: usize| -a.get(i, i + 2).unwrap();
        let (sand, shale) = (1.0, 1e-4);
        let face = 2.0 / (1.0 + 1e4);
        let want = [sand, face, shale, face, sand];
        for (z, want) in want.iter().enumerate() {
            assert!((upper(2 * z) - want).abs() < 1e-15, "{z}");
        }
        // the first layer lies under the face with p = 0: two neighbours and that face
        assert_eq!(a.get(0, 0), Some(1.0 + 1.0 + 2.0));
    }

    #[test]
    fn more_layers_than_cells_are_refused() {
        let message = no_problem("layered:4x4x8,layers=9").to_string();
        assert_eq!(message, "`layered`: `layers=9` is not a whole number from 1 to 8");
        let message = no_problem("layered:4x4x8,layers=2,contrast=0");
        assert_eq!(message.to_string(), "`layered`: `contrast=0` is outside 1 to 1e12");
    }
}
