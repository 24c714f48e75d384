//! From a spec to what it names.

use std::path::PathBuf;

use crate::base::choices::ReadAs;
use crate::base::error::{Error, Result};
use crate::base::input::Compression;
use crate::matrix::cache::Cache;
use crate::matrix::lower_triangle;

use super::catalogue::{self, Entry};
use super::file::{self, own_rhs_path};
use super::folders::{self, Folders};
use super::generator::{Arguments, Generator, Piece};
use super::generators::GENERATORS;
use super::{Problem, field};

/// Cells that are made at once, and along an edge of a grid in small.
const FEW: usize = 50_000;
const EDGE: usize = 12;

/// Where a system comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A generator with checked arguments.
    Generated {
        /// The spec as given.
        spec: String,
        /// The generator.
        generator: &'static Generator,
        /// Its arguments.
        arguments: Arguments,
    },
    /// A file, or `-` for standard input.
    File(PathBuf),
}

impl Source {
    /// What `spec` names: a generator with its arguments, a path, or a name whose file is found in
    /// `folders`.
    ///
    /// # Errors
    /// When nothing is called so, or a matrix of the catalogue is not at hand.
    pub fn find(spec: &str, folders: &Folders) -> Result<Self> {
        let (name, text) = spec.split_once(':').map_or((spec, None), |(n, t)| (n, Some(t)));
        if let Some(generator) = crate::problem::generators::find(name) {
            let Some(text) = text else {
                return Err(Error::input(format!("`{name}` needs a size")).hint(generator.usage()));
            };
            let arguments = generator.arguments(text)?;
            return Ok(Self::Generated { spec: spec.into(), generator, arguments });
        }
        if file::is_path(spec) {
            return Ok(Self::File(spec.into()));
        }
        if let Some(path) = folders.find(spec) {
            return Ok(Self::File(path));
        }
        if let Some(packed) = folders.find_packed(spec)
            && let Some(how) = Compression::of_name(&packed)
        {
            return Err(how.refused(&packed.display().to_string()));
        }
        match catalogue::find(spec) {
            Some(entry) => Err(absent(entry)),
            None => Err(unknown(spec)),
        }
    }

    /// The same on few cells, where it is generated on many: what is wrong with its arguments shows there,
    /// but for its size, which is looked at here. Arguments that ask for many cells (layers, room for wells)
    /// can fail in small, and only there. A field of a file has the size of its grid: there is none in small. The size
    /// is looked at where one process is to have the `whole` matrix.
    ///
    /// # Errors
    /// As [`load`](Self::load) where there is no matrix of its size.
    pub(crate) fn in_small(&self, whole: bool) -> Result<Option<Self>> {
        let Self::Generated { spec, generator, arguments } = self else { return Ok(None) };
        let cells: usize = arguments.size.iter().product();
        if cells <= FEW || !self.files().is_empty() {
            return Ok(None);
        }
        if whole {
            generator.check_whole(arguments)?;
        }
        let mut arguments = arguments.clone();
        arguments.size = arguments.size.map(|cells| cells.min(EDGE));
        Ok(Some(Self::Generated { spec: spec.clone(), generator, arguments }))
    }

    /// The files that it is made of.
    pub fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::File(path) => std::iter::once(path.clone()).chain(own_rhs_path(path)).collect(),
            Self::Generated { generator, arguments, .. } => {
                let field = generator.words.iter().find(|word| word.key == "field");
                field.and_then(|word| field::path(arguments.word(word.key))).into_iter().collect()
            }
        }
    }

    /// Makes or reads the system.
    ///
    /// # Errors
    /// As [`super::load`].
    pub fn load(&self, read_as: ReadAs, cache: &Cache) -> Result<Problem> {
        match self {
            Self::File(path) => file::load(path, read_as, cache),
            Self::Generated { spec, generator, arguments } => {
                generator.check_whole(arguments)?;
                let made = (generator.build)(arguments, Piece::WHOLE)?;
                let own_rhs = made.rhs;
                let matrix = match read_as {
                    ReadAs::Expanded => made.matrix,
                    ReadAs::AsStored if made.symmetric => lower_triangle(&made.matrix),
                    ReadAs::AsStored => {
                        let message =
                            format!("`{spec}` is not symmetric: nothing to read as stored");
                        return Err(Error::input(message)
                            .hint("only symmetric matrices store a triangle; read it expanded"));
                    }
                };
                Ok(Problem {
                    name: spec.clone(),
                    matrix: matrix.into(),
                    grid: Some(made.grid),
                    own_rhs,
                    remarks: arguments.remark.map(str::to_owned).into_iter().collect(),
                })
            }
        }
    }
}

/// The error for a matrix that is known but not here.
fn absent(entry: &Entry) -> Error {
    let name = &entry.name;
    let error = Error::input(format!("matrix `{name}` is not on this machine"));
    let get = match &entry.group {
        Some(_) => format!("fetch it with `bilu-bench matrix get {name}`"),
        None => format!("put `{name}.mtx.gz` in a folder named by {}", folders::MATRICES),
    };
    match &entry.twin {
        Some(twin) => error.hint(format!("{get}, or use its twin `{twin}`")),
        None => error.hint(get),
    }
}

fn unknown(spec: &str) -> Error {
    let generators = GENERATORS.iter().map(|g| g.name);
    let names = catalogue::entries().iter().map(|e| e.name.as_str());
    let known: Vec<&str> = generators.chain(names).collect();
    let bare = spec.split(':').next().unwrap_or(spec);
    let hint = match crate::base::error::nearest(bare, &known) {
        Some(best) => format!("did you mean `{best}`? `bilu-bench matrix list` shows all"),
        None => "`bilu-bench matrix list` shows all; a file is named by its path".into(),
    };
    Error::input(format!("unknown matrix `{spec}`")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(spec: &str) -> Source {
        Source::find(spec, &Folders { search: Vec::new(), data: None }).unwrap()
    }

    #[test]
    fn what_is_too_large_is_refused_before_it_is_made_in_small() {
        for spec in [
            "poisson3d:1000",
            "convdiff3d:1000,px=0.5",
            "fem-p1:40000",
            "blockpoisson3d:100,b=64",
            "blockpoisson3d:1600,b=3",
            "channel3d:200,n=12",
            "reservoir:400,k=8",
            "reservoir:1000x1000x1000,k=8",
            "bubbly:900",
            "layered:900",
            "obstacle:900",
            "obstacle:60x60x61",
            "bubbly:60,bubbles=9,radius=0.3",
        ] {
            let source = find(spec);
            let refused = source.in_small(true).err().unwrap_or_else(|| panic!("{spec} in small"));
            assert_eq!(
                refused,
                source.load(ReadAs::Expanded, &Cache::off()).unwrap_err(),
                "{spec}"
            );
        }
    }

    /// Pieces of every generator have the bits of the whole.
    #[test]
    fn pieces_are_rows_of_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.csv");
        let cells: Vec<String> = (0..60).map(|i| (i * 37 % 11).to_string()).collect();
        std::fs::write(&path, format!("permx\n{}\n", cells.join("\n"))).unwrap();
        let field = format!("permeability:5x4x3,field={}", path.display());
        let in_reservoir = format!("reservoir:3x4x5,k=2,field={}", path.display());
        let specs = [
            "poisson3d:5x4x3",
            "blockpoisson3d:4x3x5,b=3",
            "channel3d:3x4x2,n=10",
            "convdiff3d:6x1x4,px=0.3,sigma=2",
            "fem-p1:7x5",
            "reservoir:4x5x6,k=1,wells=0",
            "reservoir:4x5x6,k=3,wells=4",
            "reservoir:4x5x6,k=2,wells=3,step=3",
            "reservoir:4x5x6,k=2,wells=3,rows=eliminated,step=2",
            "reservoir:4x5x6,k=2,wells=3,rows=eliminated,field=layered",
            "reservoir:4x5x6,k=2,at=1x1+5x6,bias=half,field=uniform",
            &in_reservoir,
            "bubbly:8x9x10,bubbles=2",
            "layered:5x4x6,layers=3,boundary=fixed",
            "obstacle:5,b1=1",
            &field,
        ];
        for generator in GENERATORS {
            let of = |spec: &&&str| spec.split(':').next() == Some(generator.name);
            assert!(specs.iter().any(|spec| of(&spec)), "{}", generator.name);
        }
        for spec in specs {
            let Source::Generated { generator, arguments, .. } = find(spec) else { unreachable!() };
            let build = |number, count| (generator.build)(&arguments, Piece { number, count });
            let whole = build(0, 1).unwrap();
            let n = whole.matrix.rows();
            assert_eq!((whole.first, whole.order), (0, n), "{spec}");
            for count in [2, 3, 7, 1000] {
                let (mut next, mut rhs) = (0, Vec::new());
                for number in 0..count {
                    let piece = build(number, count).unwrap();
                    assert!(piece.matrix.rows() == 0 || piece.first == next, "{spec}");
                    assert_eq!((piece.order, piece.grid), (n, whole.grid));
                    for row in 0..piece.matrix.rows() {
                        let (columns, values) = piece.matrix.row(row);
                        let columns: Vec<u32> =
                            columns.iter().map(|&j| piece.columns as u32 + j).collect();
                        let row = (&columns[..], values);
                        assert_eq!(row, whole.matrix.row(next), "{spec}, {count}");
                        next += 1;
                    }
                    rhs.extend(piece.rhs.into_iter().flatten());
                }
                assert_eq!((next, &rhs), (n, whole.rhs.as_ref().unwrap_or(&Vec::new())), "{spec}");
            }
        }
    }

    #[test]
    fn a_field_of_a_file_has_no_smaller_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.csv");
        // as many cells as the grid in small has
        let cells = "1\n".repeat(EDGE * EDGE * EDGE);
        std::fs::write(&path, format!("permx\n{cells}")).unwrap();
        for spec in ["permeability:40,field=", "reservoir:40,k=1,field="] {
            let source = find(&format!("{spec}{}", path.display()));
            assert!(source.in_small(true).unwrap().is_none(), "{spec}");
            let refused = source.load(ReadAs::Expanded, &Cache::off()).unwrap_err();
            assert_eq!(refused.message(), "1728 cells in the file, 40x40x40 = 64000 in the grid");
        }
        assert!(find("poisson3d:36").in_small(true).unwrap().is_none());
        assert!(find("poisson3d:40").in_small(true).unwrap().is_some());
    }
}
