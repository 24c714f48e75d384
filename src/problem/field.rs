//! Files of what the cells of a reservoir are made of.

use std::path::{Path, PathBuf};

use super::folders::Folders;
use crate::base::error::{Error, Result};
use crate::base::input;
use crate::base::input::{Lines, Stream};

/// Endings of the files.
const ENDINGS: [&str; 2] = [".csv", ".csv.gz"];

/// Bytes of a line at most.
const LONGEST: usize = 1 << 20;

/// One cell of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cell {
    /// Horizontal permeability, mD; zero where the cell is not active.
    pub(super) permeability: f64,
    /// Porosity, where the file has it and it is positive.
    pub(super) porosity: Option<f64>,
    /// Net over gross, likewise.
    pub(super) net: Option<f64>,
}

/// The cells of the file that `field` names, a path or a name in one of the folders of matrices, in
/// the order of the file: columns `permx` and, where it has them, `poro`, `ntg` and `actnum`. The
/// name of the file comes with them.
///
/// # Errors
/// When there is no such file (`None`), it is broken, or it does not have as many cells as `size`;
/// `hint` says how sizes are written.
pub(super) fn read(field: &str, size: [usize; 3], hint: &str) -> Result<Option<Vec<Cell>>> {
    let Some(path) = path(field) else { return Ok(None) };
    let name = path.display().to_string();
    let cells = size.iter().product();
    let open = Stream::open(&path)?;
    let text: Box<dyn std::io::Read> = if path.extension().is_some_and(|e| e == "gz") {
        Box::new(flate2::read::MultiGzDecoder::new(open))
    } else {
        Box::new(open)
    };
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(Lines::new(text, LONGEST));
    let broken = |e: csv::Error| {
        let line = e.position().map_or(1, |p| p.line() as usize);
        let stopped = match e.kind() {
            csv::ErrorKind::Io(e) => input::stopped(&name, e),
            _ => None,
        };
        stopped.unwrap_or_else(|| Error::input(e.to_string()).at(name.clone(), line, None))
    };
    let header = reader.headers().map_err(broken)?.clone();
    let column = |what: &str| header.iter().position(|c| c == what);
    let permx = column("permx")
        .ok_or_else(|| Error::input("there is no column `permx`").in_file(name.clone()))?;
    let others = [column("actnum"), column("poro"), column("ntg")];
    let mut all = Vec::new();
    let mut count = 0_usize;
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let line = record.position().map_or(0, |p| p.line() as usize);
        let number = |at: usize| {
            let text = record.get(at).unwrap_or_default();
            text.parse::<f64>().ok().filter(|v| *v >= 0.0 && v.is_finite()).ok_or_else(|| {
                Error::input(format!("`{text}` is not a number from 0 on")).at(
                    name.clone(),
                    line,
                    Some(at + 1),
                )
            })
        };
        if count < cells {
            let [active, porosity, net] = others.map(|at| at.map(&number).transpose());
            let permeability = number(permx)? * if active? == Some(0.0) { 0.0 } else { 1.0 };
            let positive = |v: Option<f64>| v.filter(|&v| v > 0.0);
            all.push(Cell { permeability, porosity: positive(porosity?), net: positive(net?) });
        }
        count += 1;
    }
    if count == cells {
        return Ok(Some(all));
    }
    let [x, y, z] = size;
    let message = format!("{count} cells in the file, {x}x{y}x{z} = {cells} in the grid");
    Err(Error::input(message).in_file(name).hint(hint))
}

/// The file that `field` names where systems are looked for.
pub(super) fn path(field: &str) -> Option<PathBuf> {
    find(field, &Folders::from_env())
}

/// The file that `field` names.
fn find(field: &str, folders: &Folders) -> Option<PathBuf> {
    let path = Path::new(field);
    if path.is_file() {
        return Some(path.into());
    }
    let places = folders.search.iter().chain(&folders.data);
    let mut files = places.flat_map(|f| ENDINGS.map(|e| f.join(format!("{field}{e}"))));
    files.find(|f| f.is_file())
}
