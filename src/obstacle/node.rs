//! A node on a CPU core: its part of the grid, the sweeps over it and its halo.

use super::case::{Case, Method, Split};
use super::field::{Extent, Field, Layout};
use super::part::{Face, Region};
use super::problem::Problem;
use super::solve::{Monitored, Relaxation, fingerprint};
use crate::base::error::{Error, Result};
use crate::base::memory::Buffer;
use crate::obstacle::cpu::{Change, Lines, Select, fence, relax};

/// Bytes of three slices of a block of lines: they stay in a core's second-level cache while z
/// advances, so that every old value comes from memory once.
const BLOCK_BYTES: usize = 512 << 10;

/// A part of the grid and its iterate.
pub struct Node<'a> {
    case: &'a Case,
    problem: &'a Problem,
    extent: Extent,
    /// The iterate with its ghosts.
    u: Field,
    /// The next iterate of a Jacobi sweep.
    next: Option<Field>,
    /// Right-hand side over the diagonal entry.
    source: Field,
    floor: Option<Field>,
    /// A line of the floor where it is the same everywhere, and one of new values.
    flat: Vec<f64>,
    line: Buffer<f64>,
    /// Whether the sweep computes the complementarity residual.
    with_residual: bool,
    /// Squared changes of the last sweep in each part of `norm-split`.
    squared: Vec<f64>,
    complementarity: f64,
}

/// Numbers for each point that a node holds.
pub fn fields(case: &Case, problem: &Problem) -> usize {
    2 + usize::from(case.method == Method::Jacobi) + usize::from(problem.flat_floor().is_none())
}

impl<'a> Node<'a> {
    /// A node with u = 0.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn new(case: &'a Case, problem: &'a Problem, extent: Extent) -> Result<Self> {
        let layout = Layout::of(&extent);
        let next = (case.method == Method::Jacobi).then(|| Field::zeros(layout)).transpose()?;
        Ok(Self {
            case,
            problem,
            u: Field::zeros(layout)?,
            next,
            source: Field::zeros(layout)?,
            floor: Field::floor(problem, &extent)?,
            flat: vec![problem.flat_floor().unwrap_or_default(); layout.nx],
            line: Buffer::zeros(layout.nx),
            with_residual: false,
            squared: vec![0.0; case.norm_split.count()],
            complementarity: 0.0,
            extent,
        })
    }

    /// Its part of the grid.
    pub fn extent(&self) -> &Extent {
        &self.extent
    }

    /// The iterate.
    pub fn iterate(&self) -> &Field {
        &self.u
    }

    /// Passes the lines of boundary values of a face to `to`, each with its index in the face.
    pub(crate) fn each_line(&self, face: Face, mut to: impl FnMut(usize, &[f64])) {
        let layout = self.layout();
        for (number, at) in face.lines(layout, false).enumerate() {
            to(number * layout.nx, &self.u.data[at..at + layout.nx]);
        }
    }

    /// Lets `from` write the lines of ghost values behind a face.
    pub(crate) fn each_ghost(&mut self, face: Face, mut from: impl FnMut(usize, &mut [f64])) {
        let layout = self.layout();
        for (number, at) in face.lines(layout, true).enumerate() {
            from(number * layout.nx, &mut self.u.data[at..at + layout.nx]);
        }
    }

    fn lines(&self, y: usize, z: usize) -> Lines<'_> {
        let layout = self.u.layout;
        let nx = layout.nx;
        let at = layout.line(y, z);
        let line = |at: usize| &self.u.data[at..at + nx];
        Lines {
            own: &self.u.data[at - 1..=at + nx],
            south: line(at - layout.pitch),
            north: line(at + layout.pitch),
            rear: line(at - layout.slice),
            front: line(at + layout.slice),
            source: &self.source.data[at..at + nx],
            floor: self.floor.as_ref().map_or(&self.flat, |floor| &floor.data[at..at + nx]),
        }
    }

    fn note(&mut self, y: usize, z: usize, change: Change) {
        let (m, split) = (self.extent.m, self.case.norm_split);
        let part = Split::part(m, split.y, self.extent.y.start + y - 1)
            + split.y * Split::part(m, split.z, self.extent.z.start + z - 1);
        self.squared[part] += change.squared;
        self.complementarity = self.complementarity.max(change.complementarity);
    }
}

impl Relaxation for Node<'_> {
    fn begin_step(&mut self) {
        let (problem, centre) = (self.problem, self.problem.coefficients.centre);
        let u = &self.u;
        let layout = u.layout;
        let [fx, fy, fz] = &problem.factors;
        for (k, z) in self.extent.z.clone().enumerate() {
            for (j, y) in self.extent.y.clone().enumerate() {
                let at = layout.line(j + 1, k + 1);
                let yz = fy[y] * fz[z];
                let line = at..at + layout.nx;
                let values = self.source.data[line.clone()].iter_mut().zip(&u.data[line]).zip(fx);
                for ((source, u), x) in values {
                    *source = (problem.delta * u + yz * x) / centre;
                }
            }
        }
    }

    fn passes(&self) -> usize {
        if self.case.method == Method::Jacobi { 1 } else { 2 }
    }

    fn begin_sweep(&mut self, monitored: Monitored) {
        self.with_residual = monitored == Monitored::Complementarity;
        self.squared.fill(0.0);
        self.complementarity = 0.0;
    }

    fn squared(&self) -> &[f64] {
        &self.squared
    }

    fn complementarity(&self) -> f64 {
        self.complementarity
    }

    fn jacobi(&mut self, region: Region) {
        let Layout { ny, nz, pitch, .. } = self.layout();
        let block = (BLOCK_BYTES / (3 * 8 * pitch)).max(8);
        let with_residual = self.with_residual;
        let mut next = self.next.take().expect("Jacobi has a second field");
        let mut line = |node: &mut Self, y: usize, z: usize| {
            let at = node.u.layout.line(y, z);
            let out = &mut next.data[at..at + node.u.layout.nx];
            let change = relax(
                node.problem.coefficients,
                node.lines(y, z),
                Select::All,
                with_residual,
                true,
                out,
            );
            node.note(y, z, change);
        };
        match region {
            Region::Inner => {
                let mut from = 2;
                while from < ny {
                    let to = (from + block).min(ny);
                    for z in 2..nz {
                        (from..to).for_each(|y| line(self, y, z));
                    }
                    from = to;
                }
            }
            Region::Rim => {
                for z in 1..=nz {
                    // whole slices at both ends, the outermost lines between
                    let step = if z == 1 || z == nz { 1 } else { (ny - 1).max(1) };
                    (1..=ny).step_by(step).for_each(|y| line(self, y, z));
                }
            }
        }
        fence();
        self.next = Some(next);
    }

    fn swap(&mut self) {
        if let Some(next) = &mut self.next {
            std::mem::swap(next, &mut self.u);
        }
    }

    fn colour(&mut self, colour: usize) {
        let Layout { ny, nz, nx, pitch, .. } = self.layout();
        let (y0, z0) = (self.extent.y.start, self.extent.z.start);
        let block = (BLOCK_BYTES / (3 * 8 * pitch)).max(8);
        let with_residual = self.with_residual;
        let mut out = std::mem::replace(&mut self.line, Buffer::zeros(0));
        let mut from = 1;
        while from <= ny {
            let to = (from + block).min(ny + 1);
            for z in 1..=nz {
                for y in from..to {
                    let select = match self.case.method {
                        Method::RedBlack
                            if (y0 + y - 1 + z0 + z - 1 + colour).is_multiple_of(2) =>
                        {
                            Select::Even
                        }
                        Method::RedBlack => Select::Odd,
                        _ if (y0 + y - 1) % 2 == colour => Select::All,
                        _ => continue,
                    };
                    let change = relax(
                        self.problem.coefficients,
                        self.lines(y, z),
                        select,
                        with_residual,
                        false,
                        &mut out,
                    );
                    let at = self.u.layout.line(y, z);
                    self.u.data[at..at + nx].copy_from_slice(&out);
                    self.note(y, z, change);
                }
            }
            from = to;
        }
        self.line = out;
    }

    fn look(&mut self) {
        let Layout { ny, nz, nx, .. } = self.layout();
        let mut out = Buffer::<f64>::zeros(nx);
        self.begin_sweep(Monitored::Complementarity);
        for z in 1..=nz {
            for y in 1..=ny {
                let c = self.problem.coefficients;
                let change = relax(c, self.lines(y, z), Select::All, true, false, &mut out);
                self.note(y, z, change);
            }
        }
    }

    fn verify(&mut self) -> (f64, u64, u64) {
        let Layout { ny, nz, .. } = self.layout();
        self.look();
        let contact = |(y, z)| {
            let lines = self.lines(y, z);
            lines.own[1..].iter().zip(lines.floor).filter(|(u, floor)| u <= floor).count()
        };
        let lines = (1..=nz).flat_map(|z| (1..=ny).map(move |y| (y, z)));
        let contact: usize = lines.map(contact).sum();
        (self.complementarity, contact as u64, fingerprint(&self.extent, &self.u))
    }

    fn layout(&self) -> Layout {
        self.u.layout
    }

    fn read_face(&mut self, face: Face, to: &mut [f64]) {
        self.each_line(face, |at, line| to[at..at + line.len()].copy_from_slice(line));
    }

    fn write_ghost(&mut self, face: Face, from: &[f64]) {
        self.each_ghost(face, |at, line| line.copy_from_slice(&from[at..at + line.len()]));
    }
}

/// Rejects a case that does not fit into the memory of `place`, this host or a GPU.
///
/// # Errors
/// With the bytes needed and free.
pub(crate) fn check_memory(needed: usize, free: usize, place: &str) -> Result<()> {
    if needed <= free {
        return Ok(());
    }
    let [needed, free] = [needed, free].map(|bytes| bytes as f64 / 1e9);
    Err(Error::memory(format!("{needed:.1} GB needed on {place}, {free:.1} GB free")))
}
