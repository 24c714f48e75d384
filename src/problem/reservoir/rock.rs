//! Permeability and porosity of the cells, and the geometry of the box.

use std::ops::Range;

use super::noise::{normal, smooth};
use crate::base::error::{Error, Result};
use crate::problem::field;
use crate::problem::splitmix::mix;

/// Edges of a cell in depth and along the layers, m.
pub(super) const EDGES: [f64; 3] = [4.0, 20.0, 20.0];
/// Vertical over horizontal permeability.
const ANISOTROPY: f64 = 0.1;
/// Median permeability of the generated fields, mD.
const MEDIAN: f64 = 100.0;
/// Porosity at the median permeability; it grows with the tenth root.
const POROSITY: f64 = 0.2;
/// Names of the generated fields.
const FIELDS: [&str; 3] = ["layered", "lognormal", "uniform"];

/// Cells `J x H x I`, depth fastest, and what they are made of.
#[derive(Debug)]
pub(super) struct Rock {
    /// Cells in depth and along the layers.
    pub(super) size: [usize; 3],
    /// Cells whose rock is kept; that of others is made when it is asked for.
    near: Range<usize>,
    made: Made,
    /// Horizontal permeability of each cell that is kept, mD; zero where no fluid flows.
    permeability: Vec<f64>,
    /// Porosity times net over gross.
    porosity: Vec<f64>,
}

/// A generated field.
#[derive(Clone, Copy, Debug)]
enum Field {
    Uniform,
    Layered,
    Lognormal,
}

/// What the permeability of a cell is made of.
#[derive(Clone, Copy, Debug)]
struct Made {
    field: Field,
    size: [usize; 3],
    sigma: f64,
    stream: u64,
}

impl Made {
    fn permeability(self, cell: usize) -> f64 {
        let Self { field, size, sigma, stream } = self;
        let log = match field {
            Field::Uniform => 0.0,
            Field::Layered => normal(mix(stream ^ (cell % size[0]) as u64)),
            Field::Lognormal => smooth(stream, at(size, cell)),
        };
        MEDIAN * (sigma * log).exp()
    }
}

impl Rock {
    /// The field called `field`, or of a file, with the standard deviation `sigma` of its logarithm
    /// where it is generated; the cells `near` are kept, of a file all.
    pub(super) fn new(
        size: [usize; 3],
        field: &str,
        sigma: f64,
        seed: u64,
        near: Range<usize>,
    ) -> Result<Self> {
        let stream = mix(seed ^ 0x726f_636b);
        let fields = [Field::Layered, Field::Lognormal, Field::Uniform];
        let known = FIELDS.iter().zip(fields).find(|(name, _)| **name == field);
        let Some((_, field)) = known else { return Self::read(size, field) };
        let made = Made { field, size, sigma, stream };
        let permeability: Vec<f64> = near.clone().map(|cell| made.permeability(cell)).collect();
        let porosity = permeability.iter().map(|&k| porosity(k)).collect();
        Ok(Self { size, near, made, permeability, porosity })
    }

    /// A file of cells, along the first direction of the layers fastest, depth last.
    fn read(size: [usize; 3], field: &str) -> Result<Self> {
        let Some(listed) = field::read(field, size, "the grid is written depth first")? else {
            return Err(Error::unknown("permeability field", field, &FIELDS)
                .hint("one of layered, lognormal, uniform, or a CSV file with a column `permx`"));
        };
        let [depth, h, i] = size;
        let mut rock = Self {
            size,
            near: 0..listed.len(),
            made: Made { field: Field::Uniform, size, sigma: 0.0, stream: 0 },
            permeability: vec![0.0; listed.len()],
            porosity: vec![POROSITY; listed.len()],
        };
        for (count, from) in listed.iter().enumerate() {
            let cell = count / (h * i) + depth * (count % (h * i));
            rock.permeability[cell] = from.permeability;
            rock.porosity[cell] = from.porosity.unwrap_or_else(|| porosity(from.permeability))
                * from.net.unwrap_or(1.0);
        }
        Ok(rock)
    }

    /// Volume of the pores of a cell that is kept, m^3.
    pub(super) fn pore_volume(&self, cell: usize) -> f64 {
        EDGES.iter().product::<f64>() * self.porosity[cell - self.near.start]
    }

    /// Depth of the middle of a cell below the top, m.
    pub(super) fn depth(&self, cell: usize) -> f64 {
        ((cell % self.size[0]) as f64 + 0.5) * EDGES[0]
    }

    /// Transmissibility over Darcy's constant of the face between two neighbours in the direction
    /// `axis`, mD m: the harmonic mean of their permeabilities times area over distance.
    pub(super) fn face(&self, axis: usize, cells: [usize; 2]) -> f64 {
        let [a, b] = cells.map(|cell| self.permeability(cell));
        let area: f64 = EDGES.iter().product::<f64>() / EDGES[axis];
        let mean = if a + b > 0.0 { 2.0 * a * b / (a + b) } else { 0.0 };
        mean * if axis == 0 { ANISOTROPY } else { 1.0 } * area / EDGES[axis]
    }

    /// Horizontal permeability of a cell, mD.
    pub(super) fn permeability(&self, cell: usize) -> f64 {
        if self.near.contains(&cell) {
            self.permeability[cell - self.near.start]
        } else {
            self.made.permeability(cell)
        }
    }
}

/// Place of a cell in depth and along the layers.
pub(super) fn at([depth, h, _]: [usize; 3], cell: usize) -> [usize; 3] {
    [cell % depth, cell / depth % h, cell / depth / h]
}

/// Porosity where only the permeability is known.
fn porosity(permeability: f64) -> f64 {
    (POROSITY * (permeability / MEDIAN).powf(0.1)).clamp(0.02, 0.4)
}
