//! From a spec to what it names.

use std::path::PathBuf;

use crate::base::choices::ReadAs;
use crate::base::error::{Error, Result};
use crate::base::input::Compression;
use crate::matrix::cache::Cache;
use crate::matrix::lower_triangle;

use super::Problem;
use super::catalogue::{self, Entry};
use super::field;
use super::file::{self, Folders, own_rhs_path};
use super::generator::{Arguments, GENERATORS, Generator};

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
    /// A Matrix Market file, or `-` for standard input.
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
        if let Some(generator) = Generator::find(name) {
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

    /// The same on few cells, where it is generated on many: what is wrong with its arguments shows there.
    /// Arguments that ask for many cells (layers, room for wells) can fail in small, and only there.
    pub fn in_small(&self) -> Option<Self> {
        let Self::Generated { spec, generator, arguments } = self else { return None };
        let cells: usize = arguments.size.iter().product();
        (cells > FEW).then(|| {
            let mut arguments = arguments.clone();
            arguments.size = arguments.size.map(|cells| cells.min(EDGE));
            Self::Generated { spec: spec.clone(), generator, arguments }
        })
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
                let made = (generator.build)(arguments)?;
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
        None => format!("put `{name}.mtx.gz` in a folder named by {}", file::MATRICES),
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
