//! The pressure equation on a field of permeability from a file.

use super::convdiff3d::check_seven_points;
use super::diffusion::{Boundary, Diffusion};
use super::field;
use super::generator::{Arguments, Generated, Generator, Parameter, Piece, Word};
use super::splitmix::mix;
use crate::base::error::{Error, Result};
use crate::base::parse::shown;

/// What is said about the field.
const FIELD: &str =
    "`field=` names a CSV file with a column `permx`, by path or in BILU_BENCH_MATRICES";

/// `-div(K grad p) + c p = f` on the NX x NY x NZ cells of a file with the column `permx`, x fastest.
///
/// `vertical` is the factor of the permeability in z, times the square of a cell's width over its
/// height; `storage` is c over the mean permeability of the active cells, what a time step of a
/// compressible fluid adds. Cells that are not active are equations of their own.
pub(super) static GENERATOR: Generator = Generator {
    name: "permeability",
    summary: "pressure equation on a permeability field of a CSV file; right-hand side `own`",
    dimensions: 3,
    parameters: &[
        Parameter { key: "vertical", default: 2.5, summary: "factor in z, 1e-6 to 1e6" },
        Parameter { key: "storage", default: 1e-6, summary: "on the diagonal, 0 to 1e6" },
        Parameter { key: "seed", default: 1.0, summary: "of `own`, 0 to 2^53" },
    ],
    words: &[
        Word {
            key: "field",
            default: "",
            summary: "CSV file with `permx`, or its name in a folder",
        },
        Word {
            key: "boundary",
            default: "neumann",
            summary: "neumann (no flow), fixed, dirichlet or top",
        },
    ],
    presets: &[],
    check: check_seven_points,
    build,
};

fn build(arguments: &Arguments, piece: Piece) -> Result<Generated> {
    let size = arguments.size;
    let seed = GENERATOR.whole(arguments, "seed", 0, 1 << 53)?;
    let of = |key: &str, min: f64| {
        let value = arguments.get(key);
        let outside = || {
            format!("`permeability`: `{key}={}` is outside {min} to 1e6", shown(&value.to_string()))
        };
        (min..=1e6).contains(&value).then_some(value).ok_or_else(|| Error::input(outside()))
    };
    let (vertical, storage) = (of("vertical", 1e-6)?, of("storage", 0.0)?);
    let boundary = Boundary::find(GENERATOR.name, arguments.word("boundary"))?;
    let name = arguments.word("field");
    if name.is_empty() {
        return Err(Error::input("`permeability` needs `field=FILE`").hint(FIELD));
    }
    let found = field::read(name, size, "the grid is written in the file's order, x fastest")?;
    let cells = found.ok_or_else(|| {
        Error::input(format!("`permeability`: no permeability field `{name}`")).hint(FIELD)
    })?;
    let kappa: Vec<f64> = cells.iter().map(|c| c.permeability).collect();
    let active = kappa.iter().filter(|&&k| k > 0.0).count();
    let mean = kappa.iter().sum::<f64>() / active.max(1) as f64;
    Diffusion {
        size,
        kappa: &|cell| kappa[cell],
        along: [1.0, 1.0, vertical],
        boundary,
        storage: storage * mean,
    }
    .assemble(mix(seed ^ 0x7065_726d), piece)
}

#[cfg(test)]
mod tests {
    use crate::problem::samples::{matrix, no_problem};

    #[test]
    fn fields_are_read_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.csv");
        std::fs::write(&path, "actnum,permx\n1,1\n1,3\n1,5\n0,7\n").unwrap();
        let spec = format!("permeability:2x2x1,storage=0,field={}", path.display());
        let a = matrix(&spec);
        let (x, y) = (1.5, 2.0 * 5.0 / 6.0);
        assert_eq!(a.row(0), (&[0, 1, 2][..], &[x + y, -x, -y][..]));
        assert_eq!(a.get(3, 3), Some(1.0));
        let wrong = no_problem(&spec.replace("2x2x1", "2x2x2"));
        assert_eq!(wrong.message(), "4 cells in the file, 2x2x2 = 8 in the grid");
    }

    #[test]
    fn a_missing_field_is_named() {
        let message = no_problem("permeability:2x2x1,field=nowhere");
        assert_eq!(message.to_string(), "`permeability`: no permeability field `nowhere`");
        assert_eq!(message.exit_code(), 2);
        let message = no_problem("permeability:3");
        assert_eq!(message.to_string(), "`permeability` needs `field=FILE`");
    }
}
