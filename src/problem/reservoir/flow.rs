//! Conservation of mass in a cell and at its faces, with derivatives.

use super::dual::Dual;
use super::rock::Rock;

/// Most unknowns of a cell.
pub(super) const MOST: usize = 8;

/// Darcy's constant for mD, m, bar, cP and days.
pub(super) const DARCY: f64 = 0.008_527_02;
/// Bar per metre of a fluid of 1 t/m^3.
pub(super) const GRAVITY: f64 = 0.098_066_5;
/// Pressure of the reference densities and porosity, bar.
pub(super) const REFERENCE: f64 = 200.0;
/// Irreducible saturation of water and of oil.
pub(super) const CONNATE: f64 = 0.2;
pub(super) const RESIDUAL_OIL: f64 = 0.2;
/// Compressibilities of water, oil and rock, 1/bar.
const WATER_COMPRESSIBILITY: f64 = 4.5e-5;
const OIL_COMPRESSIBILITY: f64 = 1e-4;
const ROCK_COMPRESSIBILITY: f64 = 4e-5;
/// Density of water and of the heaviest component of oil, t/m^3; each further one is lighter.
const WATER_DENSITY: f64 = 1.0;
const OIL_DENSITY: f64 = 0.85;
const DENSITY_STEP: f64 = 0.04;
/// Viscosity of water and of the heaviest component of oil, cP; the logarithm of each further one is
/// smaller by the step.
const WATER_VISCOSITY: f64 = 0.5;
const OIL_VISCOSITY: f64 = 2.0;
const VISCOSITY_STEP: f64 = 0.3;
/// Capillary pressure at the irreducible saturation of water, bar; it falls linearly to zero.
const CAPILLARY: f64 = 0.5;

/// One number for each equation or unknown of a cell; those beyond k are zero.
pub(super) type Vector<T> = [T; MOST];

/// The equations of k unknowns per cell, `N >= 2 k` derivatives.
pub(super) struct Flow<'a, const N: usize> {
    /// Unknowns of a cell.
    pub(super) k: usize,
    /// Rock and geometry.
    pub(super) rock: &'a Rock,
    /// Time step in days.
    pub(super) days: f64,
}

/// What flows in a cell.
struct Fluids<const N: usize> {
    pressure: Dual<N>,
    saturation: Dual<N>,
    /// Mass fraction of each component of the oil, the heaviest last.
    fractions: Vector<Dual<N>>,
    /// Densities and mobilities of oil and water.
    oil: (Dual<N>, Dual<N>),
    water: (Dual<N>, Dual<N>),
    capillary: Dual<N>,
}

impl<const N: usize> Flow<'_, N> {
    /// Components of the oil.
    fn components(&self) -> usize {
        self.k.max(2) - 1
    }

    /// The fluids of a cell whose unknowns have the numbers from `first` on among the derivatives.
    fn fluids(&self, state: &Vector<f64>, first: usize) -> Fluids<N> {
        let unknown = |i: usize| Dual::unknown(state[i], first + i);
        let zero = Dual::constant(0.0);
        let pressure = unknown(0);
        let saturation = if self.k > 1 { unknown(1) } else { Dual::constant(CONNATE) };
        let count = self.components();
        let mut fractions = [zero; MOST];
        let mut last = Dual::constant(1.0);
        for (i, fraction) in fractions[..count - 1].iter_mut().enumerate() {
            *fraction = unknown(2 + i);
            last = last - *fraction;
        }
        fractions[count - 1] = last;
        // linear mixing of densities, logarithmic of viscosities
        let (mut density, mut log_viscosity) = (zero, Dual::constant(OIL_VISCOSITY.ln()));
        for (i, &fraction) in fractions[..count].iter().enumerate() {
            let lighter = (count - 1 - i) as f64;
            density = density + fraction * (OIL_DENSITY - DENSITY_STEP * lighter);
            log_viscosity = log_viscosity - fraction * (VISCOSITY_STEP * lighter);
        }
        let above = pressure + -REFERENCE;
        let effective = (saturation + -CONNATE) * (1.0 / (1.0 - CONNATE - RESIDUAL_OIL));
        let rest = -effective + 1.0;
        let oil =
            (density * (above * OIL_COMPRESSIBILITY + 1.0), rest.square() * (-log_viscosity).exp());
        let water = (
            (above * WATER_COMPRESSIBILITY + 1.0) * WATER_DENSITY,
            effective.square() * (1.0 / WATER_VISCOSITY),
        );
        let capillary = if self.k > 1 { rest * CAPILLARY } else { zero };
        Fluids { pressure, saturation, fractions, oil, water, capillary }
    }

    /// Flows of oil and water as the equations have them: all oil, water, components but the last.
    fn equations(&self, fluids: &Fluids<N>, oil: Dual<N>, water: Dual<N>) -> Vector<Dual<N>> {
        let mut of = [Dual::constant(0.0); MOST];
        of[0] = oil;
        if self.k > 1 {
            of[1] = water;
        }
        for i in 2..self.k {
            of[i] = oil * fluids.fractions[i - 2];
        }
        of
    }

    /// Mass in a cell over the time step, t/day.
    pub(super) fn mass(&self, cell: usize, state: &Vector<f64>) -> Vector<Dual<N>> {
        let f = self.fluids(state, 0);
        let pores = ((f.pressure + -REFERENCE) * ROCK_COMPRESSIBILITY + 1.0)
            * (self.rock.pore_volume(cell) / self.days);
        let oil = pores * f.oil.0 * (-f.saturation + 1.0);
        self.equations(&f, oil, pores * f.water.0 * f.saturation)
    }

    /// Flow from a cell to a neighbour, t/day: derivatives by the unknowns of the one, then by those
    /// of the other. `transmissibility` and the difference of their depths belong to the face.
    pub(super) fn through(
        &self,
        [from, to]: [&Vector<f64>; 2],
        transmissibility: f64,
        deeper: f64,
    ) -> Vector<Dual<N>> {
        let (a, b) = (self.fluids(from, 0), self.fluids(to, self.k));
        let weight = |a: Dual<N>, b: Dual<N>| (a + b) * (0.5 * GRAVITY * deeper);
        let drop = a.pressure - b.pressure;
        let oil = drop + weight(a.oil.0, b.oil.0);
        let water = drop - a.capillary + b.capillary + weight(a.water.0, b.water.0);
        // each phase has the mobility of the cell it comes from
        let of = |difference: Dual<N>, a: (Dual<N>, Dual<N>), b: (Dual<N>, Dual<N>)| {
            let (density, mobility) = if difference.value >= 0.0 { a } else { b };
            difference * density * mobility * transmissibility
        };
        let upstream = if oil.value >= 0.0 { &a } else { &b };
        self.equations(upstream, of(oil, a.oil, b.oil), of(water, a.water, b.water))
    }

    /// Flow from a cell into a producing well, t/day: derivatives by the unknowns of the cell, then
    /// by the pressure of the well, `head` below which the cell lies. The sum is of oil and water.
    pub(super) fn produced(
        &self,
        state: &Vector<f64>,
        well: f64,
        head: f64,
        index: f64,
    ) -> (Vector<Dual<N>>, Dual<N>) {
        let f = self.fluids(state, 0);
        let drop = (f.pressure - Dual::unknown(well, self.k) + -head) * index;
        let (oil, water) = (drop * f.oil.0 * f.oil.1, drop * f.water.0 * f.water.1);
        (self.equations(&f, oil, water), oil + water)
    }

    /// Flow from an injecting well into a cell, as [`produced`](Self::produced): water where there
    /// is some among the unknowns, else oil, which meets the mobility of all fluids of the cell.
    pub(super) fn injected(
        &self,
        state: &Vector<f64>,
        well: f64,
        head: f64,
        index: f64,
    ) -> (Vector<Dual<N>>, Dual<N>) {
        let f = self.fluids(state, 0);
        let drop = (Dual::unknown(well, self.k) - f.pressure + head) * index;
        let zero = Dual::constant(0.0);
        let mut into = [zero; MOST];
        let density = if self.k > 1 { f.water.0 } else { f.oil.0 };
        let rate = drop * density * (f.oil.1 + f.water.1);
        into[usize::from(self.k > 1)] = rate;
        (into, rate)
    }
}
