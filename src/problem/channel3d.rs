//! One implicit step of an incompressible turbulent channel flow: a block system of a flow solver.

use crate::base::error::{Error, Result};

use super::convdiff3d::{CENTRE, LOWER, SEVEN_POINT};
use super::generator::{Arguments, Generated, Generator, Parameter, Piece};
use super::splitmix::{mix, uniform};
use super::stencil;

/// The operator of one backward Euler step in pseudo-time for the channel between two walls, by
/// artificial compressibility (Chorin 1968), on I x J x K cells; unknowns of a cell are consecutive,
/// cells x fastest. Block systems like those of Luo et al. 2015, whose own are not published.
///
/// # Equations
///
/// Unknowns q = (u, v, w, p) for n = 4; k and omega of Wilcox's model (1988) follow for n = 6. Through
/// a face with the unit normal m and the volume flux `U = (u, v, w) . m`,
///
/// ```text
/// dq/dtau + div F = div G - H
/// F.m = (u U + mx p, v U + my p, w U + mz p, beta^2 U, k U, omega U)
/// G   = (nu + nut) d(u, 2 v, w)/dy, 0, (nu + nut/2) dk/dy, (nu + nut/2) domega/dy   (thin layer)
/// H   = (0, 0, 0, 0, 0.09 k omega, 0.075 omega^2)                                   (destruction)
/// ```
///
/// in units of the half height, the velocity at the centre line and the density, with beta = 1. The
/// eddy viscosity `nut = k / omega` and the production of turbulence are lagged, the pressure does
/// not occur in the Jacobians.
///
/// # Operator
///
/// First-order upwind finite volumes: a face of area S between a cell and its neighbour adds
/// `S A+` to the cell's own block and `S A-` to the block of the neighbour, where A is dF.m/dq at
/// the mean of both states, m pointing outwards, and `A+- = (A +- |A|) / 2`. A has the eigenvalues
/// U (n - 2 times) and `U +- c`, `c^2 = U^2 + beta^2`, so `B = A - U I` obeys `B^3 = c^2 B` and
///
/// ```text
/// |A| = |U| I + U/c B + (c - |U|)/c^2 B^2
/// ```
///
/// Faces normal to y add the Jacobian of G. The own block adds the Jacobian of H and `V / dtau` on
/// its diagonal, where `dtau = cfl V / (sum over axes of (|U| + c) S + 4 (nu + nut) S / h in y)`.
/// Rows are integrals over cells, not divided by the volume V. Outside the box nothing changes in a
/// step: boundary values are lagged, at the walls with the velocity zero at half a cell's distance.
///
/// # State
///
/// The box is 2 pi x 2 x pi (Moser, Kim and Mansour 1999), cells equal in x and z, in y stretched as
/// `tanh(2.5 s) / tanh 2.5`, s in [-1, 1]. Mean velocity of Reichardt (1951), eddy viscosity of Cess
/// (1958) at the friction Reynolds number `retau`, omega by the root of the squares of its wall
/// and logarithmic limits, `6 nu / (0.075 y^2)` and `u_tau / (0.3 * 0.41 y)`, and `k = nut omega`.
/// Velocities fluctuate from cell to cell, uniformly with the variance `2 k / 3` for each direction;
/// k and omega by 25 %.
///
/// # Convergence
///
/// A larger `cfl` makes the system harder. With the default, block ILU(0), 51x97x63 cells, n = 6 and a
/// right-hand side of ones the sum of squares of the residual falls by 17.0 orders of magnitude in 19
/// iterative corrections after the first estimate; Luo et al. (Table 1) have 17.6 on as many cells.
///
/// # Larger n
///
/// As Luo et al. (section 4.3), systems on the same grid are stacked block-diagonally: every even n
/// up to 32 is a sum of at most two fours, which come first, and sixes. Their off-diagonal zeros are
/// stored. System s of the stack has the fluctuations of the seed `seed + s`.
pub(super) static GENERATOR: Generator = Generator {
    name: "channel3d",
    summary: "implicit step of a turbulent channel flow: 7-point cells, n x n blocks",
    dimensions: 3,
    parameters: &[
        Parameter { key: "n", default: 6.0, summary: "unknowns of a cell, even, 4 to 32" },
        Parameter { key: "seed", default: 1.0, summary: "of the fluctuations, 0 to 2^53" },
        Parameter { key: "cfl", default: 10.0, summary: "pseudo-time step, 0.001 to 1e6" },
        Parameter { key: "retau", default: 395.0, summary: "friction Reynolds number, 100 to 1e6" },
    ],
    words: &[],
    presets: &[],
    check: |arguments| {
        stencil::entries(arguments.size, &SEVEN_POINT, unknowns_of_cell(arguments)?).map(drop)
    },
    build,
};

/// Speed of sound of the artificial compressibility, squared.
const BETA2: f64 = 1.0;
/// Constants of Wilcox's model: destruction of k and omega; both diffuse with half of nut.
const BETA_STAR: f64 = 0.09;
const BETA_OMEGA: f64 = 0.075;
const SIGMA: f64 = 0.5;
/// Stretching of the grid.
const STRETCH: f64 = 2.5;
/// Unknowns of a cell in one system at most.
const MOST: usize = 6;
/// Place of the pressure, of k and of omega among them.
const P: usize = 3;
const K: usize = 4;
const OMEGA: usize = 5;
/// The wall-normal axis.
const Y: usize = 1;

fn build(arguments: &Arguments, piece: Piece) -> Result<Generated> {
    let size = arguments.size;
    if let Some(axis) = size.iter().position(|&cells| cells < 2) {
        let name = ["x", "y", "z"][axis];
        return Err(Error::input(format!("`channel3d`: 1 cell in {name}: at least 2 are needed"))
            .hint(GENERATOR.usage()));
    }
    let n = unknowns_of_cell(arguments)?;
    let seed = GENERATOR.whole(arguments, "seed", 0, 1 << 53)?;
    let cfl = GENERATOR.within(arguments, "cfl", 1e-3, 1e6)?;
    let retau = GENERATOR.within(arguments, "retau", 100.0, 1e6)?;
    let channel = Channel::new(size, cfl, retau);
    let systems = stack(n);
    let fill = |cell: [usize; 3], point: usize, block: &mut [f64]| {
        block.fill(0.0);
        let mut first = 0;
        for (s, &unknowns) in systems.iter().enumerate() {
            let stream = mix(seed + s as u64);
            let mut part = Block { entries: block, row: n, first, unknowns };
            channel.block(stream, cell, point, &mut part);
            first += unknowns;
        }
    };
    stencil::block_matrix(size, &SEVEN_POINT, n, piece, fill)
}

fn unknowns_of_cell(arguments: &Arguments) -> Result<usize> {
    let n = GENERATOR.whole(arguments, "n", 4, 32)? as usize;
    if n.is_multiple_of(2) {
        return Ok(n);
    }
    let message = format!("`channel3d`: `n={n}` is no sum of fours and sixes");
    Err(Error::input(message).hint("choose an even number from 4 to 32"))
}

/// Unknowns of the systems whose stack has `n`, even and at least 4.
fn stack(n: usize) -> Vec<usize> {
    let fours = match n % 6 {
        4 => 1,
        2 => 2,
        _ => 0,
    };
    let mut systems = vec![4; fours];
    systems.resize(fours + (n - 4 * fours) / 6, 6);
    systems
}

/// The block of one system inside a block of the stack.
struct Block<'a> {
    entries: &'a mut [f64],
    /// Length of a row of the stack.
    row: usize,
    /// Its first unknown.
    first: usize,
    unknowns: usize,
}

impl Block<'_> {
    /// Adds to entry (i, j); unknowns that the system does not have are left out.
    fn add(&mut self, i: usize, j: usize, value: f64) {
        if i < self.unknowns && j < self.unknowns {
            self.entries[(self.first + i) * self.row + self.first + j] += value;
        }
    }

    fn add_diagonal(&mut self, scale: f64, values: [f64; MOST]) {
        for (i, value) in values.into_iter().enumerate() {
            self.add(i, i, scale * value);
        }
    }

    fn add_flux(&mut self, scale: f64, axis: usize, flux: &FluxJacobian) {
        self.add_diagonal(scale, [flux.diagonal; MOST]);
        for i in 0..MOST {
            self.add(i, axis, scale * flux.velocity[i]);
            self.add(i, P, scale * flux.pressure[i]);
        }
    }
}

/// The state of a cell or face, without the pressure.
#[derive(Clone, Copy, Debug, PartialEq)]
struct State {
    velocity: [f64; 3],
    k: f64,
    omega: f64,
}

impl State {
    fn mean(&self, other: &Self) -> Self {
        let mean = |a: f64, b: f64| 0.5 * (a + b);
        let velocity = [0, 1, 2].map(|d| mean(self.velocity[d], other.velocity[d]));
        Self { velocity, k: mean(self.k, other.k), omega: mean(self.omega, other.omega) }
    }

    fn at_wall(&self) -> Self {
        Self { velocity: [0.0; 3], k: 0.0, omega: self.omega }
    }

    fn eddy_viscosity(&self) -> f64 {
        self.k / self.omega
    }

    /// Speed of sound across faces normal to `axis`.
    fn sound(&self, axis: usize) -> f64 {
        self.velocity[axis].hypot(BETA2.sqrt())
    }
}

/// `diagonal I + velocity m' + pressure e_p'`: the form of A, |A| and A+-, where m is the unit vector
/// of the velocity across the face and `e_p` that of the pressure.
#[derive(Clone, Copy, Debug)]
struct FluxJacobian {
    diagonal: f64,
    velocity: [f64; MOST],
    pressure: [f64; MOST],
}

impl FluxJacobian {
    /// A of a face normal to `axis`.
    fn new(state: &State, axis: usize) -> Self {
        let [u, v, w] = state.velocity;
        let mut pressure = [0.0; MOST];
        pressure[axis] = 1.0;
        pressure[P] = -state.velocity[axis];
        Self {
            diagonal: state.velocity[axis],
            velocity: [u, v, w, BETA2, state.k, state.omega],
            pressure,
        }
    }

    /// `|A|`, from A.
    fn modulus(&self, state: &State, axis: usize) -> Self {
        let flow = self.diagonal;
        let c = state.sound(axis);
        let (first, second) = (flow / c, (c - flow.abs()) / (c * c));
        let mut modulus = Self { diagonal: flow.abs(), ..*self };
        for i in 0..MOST {
            let (s, t) = (self.velocity[i], self.pressure[i]);
            // columns of B^2: B s = U s + beta^2 t, B t = s - U t
            modulus.velocity[i] = first * s + second * (flow * s + BETA2 * t);
            modulus.pressure[i] = first * t + second * (s - flow * t);
        }
        modulus
    }

    /// A+ for `sign` 1, A- for -1.
    fn split(state: &State, axis: usize, sign: f64) -> Self {
        let a = Self::new(state, axis);
        let modulus = a.modulus(state, axis);
        let half = |a: f64, b: f64| 0.5 * (a + sign * b);
        Self {
            diagonal: half(a.diagonal, modulus.diagonal),
            velocity: std::array::from_fn(|i| half(a.velocity[i], modulus.velocity[i])),
            pressure: std::array::from_fn(|i| half(a.pressure[i], modulus.pressure[i])),
        }
    }
}

/// Mean flow in a layer of cells, and the layer's place.
#[derive(Clone, Copy, Debug)]
struct Layer {
    centre: f64,
    height: f64,
    u: f64,
    k: f64,
    omega: f64,
}

/// Grid and mean flow.
struct Channel {
    size: [usize; 3],
    cfl: f64,
    viscosity: f64,
    /// Cell sizes in x and z.
    width: [f64; 2],
    layers: Vec<Layer>,
}

impl Channel {
    fn new(size: [usize; 3], cfl: f64, retau: f64) -> Self {
        use std::f64::consts::PI;
        let friction = 1.0 / reichardt(retau);
        let viscosity = friction / retau;
        let face = |j: usize| {
            1.0 + (STRETCH * (2.0 * j as f64 / size[Y] as f64 - 1.0)).tanh() / STRETCH.tanh()
        };
        let layer = |j: usize| {
            let (below, above) = (face(j), face(j + 1));
            let centre = 0.5 * (below + above);
            let wall = centre.min(2.0 - centre);
            let omega = (6.0 * viscosity / (BETA_OMEGA * wall * wall))
                .hypot(friction / (BETA_STAR.sqrt() * 0.41 * wall));
            let k = viscosity * cess(wall, retau) * omega;
            let u = friction * reichardt(wall * retau);
            Layer { centre, height: above - below, u, k, omega }
        };
        Self {
            size,
            cfl,
            viscosity,
            width: [2.0 * PI / size[0] as f64, PI / size[2] as f64],
            layers: (0..size[Y]).map(layer).collect(),
        }
    }

    /// Writes the block of `cell` with its neighbour number `point` of the seven points.
    fn block(&self, stream: u64, cell: [usize; 3], point: usize, block: &mut Block) {
        let own = self.state(stream, cell);
        if point == CENTRE {
            self.add_cell(&own, cell[Y], block);
            for axis in 0..3 {
                for upwards in [false, true] {
                    self.add_face(stream, cell, axis, upwards, true, block);
                }
            }
        } else if let Some(axis) = LOWER.iter().position(|&lower| lower == point) {
            self.add_face(stream, cell, axis, false, false, block);
        } else {
            self.add_face(stream, cell, point - CENTRE - 1, true, false, block);
        }
    }

    /// Adds what a face of `cell` contributes to the block of the cell itself (`own`) or of the
    /// neighbour behind the face.
    fn add_face(
        &self,
        stream: u64,
        cell: [usize; 3],
        axis: usize,
        upwards: bool,
        own: bool,
        block: &mut Block,
    ) {
        let here = self.state(stream, cell);
        let neighbour = if upwards {
            (cell[axis] + 1 < self.size[axis]).then(|| cell[axis] + 1)
        } else {
            cell[axis].checked_sub(1)
        };
        let face = match neighbour {
            Some(at) => {
                let mut other = cell;
                other[axis] = at;
                here.mean(&self.state(stream, other))
            }
            None if axis == Y => here.at_wall(),
            None => here,
        };
        let area = self.area(cell[Y], axis);
        // against the axis A is -A, so A+ is -(A-)
        let outwards = if upwards { 1.0 } else { -1.0 };
        let side = if own { outwards } else { -outwards };
        block.add_flux(outwards * area, axis, &FluxJacobian::split(&face, axis, side));
        if axis == Y {
            let layer = self.layers[cell[Y]];
            let distance = neighbour
                .map_or(0.5 * layer.height, |j| (self.layers[j].centre - layer.centre).abs());
            let scale = if own { area / distance } else { -area / distance };
            block.add_diagonal(scale, self.diffusion(face.eddy_viscosity()));
        }
    }

    /// Diffusivities of the unknowns across a face normal to y.
    fn diffusion(&self, eddy: f64) -> [f64; MOST] {
        let (flow, turbulence) = (self.viscosity + eddy, self.viscosity + SIGMA * eddy);
        [flow, 2.0 * flow, flow, 0.0, turbulence, turbulence]
    }

    /// Adds the pseudo-time term and the destruction of turbulence in a cell of layer j.
    fn add_cell(&self, state: &State, j: usize, block: &mut Block) {
        let height = self.layers[j].height;
        let convection: f64 = (0..3)
            .map(|axis| (state.velocity[axis].abs() + state.sound(axis)) * self.area(j, axis))
            .sum();
        let diffusion = 4.0 * (self.viscosity + state.eddy_viscosity()) * self.area(j, Y) / height;
        block.add_diagonal((convection + diffusion) / self.cfl, [1.0; MOST]);
        let volume = height * self.area(j, Y);
        block.add(K, K, volume * BETA_STAR * state.omega);
        block.add(K, OMEGA, volume * BETA_STAR * state.k);
        block.add(OMEGA, OMEGA, volume * 2.0 * BETA_OMEGA * state.omega);
    }

    /// Area of the faces normal to `axis` of cells in layer j.
    fn area(&self, j: usize, axis: usize) -> f64 {
        let ([x, z], y) = (self.width, self.layers[j].height);
        [y * z, x * z, x * y][axis]
    }

    fn state(&self, stream: u64, [x, y, z]: [usize; 3]) -> State {
        let [nx, ny, _] = self.size;
        let cell = mix(stream ^ (x + nx * (y + ny * z)) as u64);
        let fluctuation = |i: usize| 2.0 * uniform(cell, i) - 1.0;
        let layer = self.layers[y];
        // uniform in +-a has the variance a^2 / 3
        let amplitude = (2.0 * layer.k).sqrt();
        let velocity = [0, 1, 2].map(|d| amplitude * fluctuation(d));
        State {
            velocity: [layer.u + velocity[0], velocity[1], velocity[2]],
            k: layer.k * (1.0 + 0.25 * fluctuation(3)),
            omega: layer.omega * (1.0 + 0.25 * fluctuation(4)),
        }
    }
}

/// Mean velocity over friction velocity at `y` wall units.
fn reichardt(y: f64) -> f64 {
    (0.41 * y).ln_1p() / 0.41 + 7.8 * (1.0 - (-y / 11.0).exp() - y / 11.0 * (-y / 3.0).exp())
}

/// Eddy viscosity over viscosity at the distance `wall` from the nearer wall.
fn cess(wall: f64, retau: f64) -> f64 {
    let eta2 = (1.0 - wall) * (1.0 - wall);
    let damping = -(-wall * retau / 25.4).exp_m1();
    let mixing = 0.426 * retau / 3.0 * (1.0 - eta2) * (1.0 + 2.0 * eta2) * damping;
    // (sqrt(1 + m^2) - 1) / 2 without cancellation
    0.5 * mixing * mixing / (1.0 + mixing.hypot(1.0))
}

#[cfg(test)]
#[path = "channel3d_tests.rs"]
mod tests;
