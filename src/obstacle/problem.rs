//! The discretised problem: coefficients, source and obstacle (sections 2 and 5 of the paper).
//!
//! In each time step of length k find u >= phi with
//!
//! ```text
//! b.grad v - eta lap v + (c + 1/k) v - g >= 0,   v >= phi,   one of them an equality
//! g = f + v_prev / k,   f = cos(2 pi x) cos(4 pi y) cos(6 pi z),   v = 0 on the boundary
//! ```
//!
//! on the unit cube. With `a = b.x / (2 eta)` and `v = e^a u` the convection is gone:
//!
//! ```text
//! grad v = e^a (grad u + u b / (2 eta))
//! lap v  = e^a (lap u + b.grad u / eta + |b|^2 u / (4 eta^2))
//! b.grad v - eta lap v = e^a (-eta lap u + |b|^2 u / (4 eta))
//! ```
//!
//! so `-eta lap u + (|b|^2 / (4 eta) + c + 1/k) u >= e^-a g` and `u >= e^-a phi`. The paper prints
//! `v = e^-a u` beside the same a and the same right-hand side `e^-a g`; the sign of the first is
//! wrong, with it the first derivatives add up to `2 b.grad u` and stay.

use std::f64::consts::PI;

use super::case::{Case, MAX_POINTS, Method, Mode, Split, StopOn, Transport};
use crate::base::error::{Error, Result};
use crate::matrix::hash::vector_hash;

/// Names of the obstacles with what they are, for help and errors.
pub(crate) const OBSTACLES: &[(&str, &str)] = &[
    ("zero", "phi = 0, the paper's"),
    ("none", "no obstacle: the linear problem"),
    ("flat:V", "phi = V, at most 0"),
    ("hill:H", "phi = H (1 - 4 r^2), r the distance to the centre of the cube, H positive"),
];

/// A lower bound of the solution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Obstacle {
    /// None.
    Absent,
    /// The same everywhere.
    Flat(f64),
    /// A paraboloid of this height in the centre, 0 on the sphere inside the cube and below 0 outside.
    Hill(f64),
}

impl Obstacle {
    /// Reads `zero`, `none`, `flat:V` or `hill:H`.
    ///
    /// # Errors
    /// When there is no such obstacle, or it is above the boundary value 0.
    pub fn parse(text: &str) -> Result<Self> {
        let (name, value) = text.split_once(':').map_or((text, None), |(n, v)| (n, Some(v)));
        let number = |word: &str| {
            word.parse().ok().filter(|v: &f64| v.is_finite()).ok_or_else(|| {
                Error::input(format!("obstacle `{text}`: `{word}` is not a finite number"))
            })
        };
        match (name, value) {
            ("zero", None) => Ok(Self::Flat(0.0)),
            ("none", None) => Ok(Self::Absent),
            ("flat", Some(word)) => match number(word)? {
                v if v <= 0.0 => Ok(Self::Flat(v + 0.0)),
                _ => Err(Error::input(format!("obstacle `{text}` is above the boundary value 0"))
                    .hint("u = 0 on the boundary: the obstacle has to be at most 0 there")),
            },
            ("hill", Some(word)) => match number(word)? {
                v if v > 0.0 => Ok(Self::Hill(v)),
                _ => Err(Error::input(format!(
                    "obstacle `{text}`: below 0 in the centre it is above the boundary value 0 in the corners"
                ))
                .hint("give a positive height")),
            },
            _ => {
                let known: Vec<&str> = OBSTACLES.iter().map(|(name, _)| *name).collect();
                Err(Error::unknown("obstacle", text, &known))
            }
        }
    }

    /// Its height at a point of the cube.
    pub fn at(self, [x, y, z]: [f64; 3]) -> f64 {
        match self {
            Self::Absent => f64::NEG_INFINITY,
            Self::Flat(v) => v,
            Self::Hill(h) => {
                let d = [x - 0.5, y - 0.5, z - 0.5];
                h * (1.0 - 4.0 * (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]))
            }
        }
    }
}

/// The two numbers of the iteration: all seven coefficients of the matrix are made of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coefficients {
    /// Diagonal entry: `6 eta/h^2 + |b|^2/(4 eta) + c + 1/k`.
    pub centre: f64,
    /// Entry of a neighbour over `-centre`: `eta/h^2 / centre`.
    pub share: f64,
}

/// A discretised problem. Points are counted from 0: point (i, j, k) is at `h (i+1, j+1, k+1)`.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Points in each direction.
    pub m: usize,
    /// Mesh width.
    pub h: f64,
    /// The matrix.
    pub coefficients: Coefficients,
    /// `1/k`: what the solution of the time step before counts in the right-hand side.
    pub delta: f64,
    /// `e^-a f` at a point is the product of three numbers, one for each direction.
    pub factors: [Vec<f64>; 3],
    /// `e^-a` likewise; empty without convection.
    damping: Option<[Vec<f64>; 3]>,
    obstacle: Obstacle,
}

impl Problem {
    /// The problem of a case.
    ///
    /// # Errors
    /// When a setting is out of range.
    pub fn new(case: &Case) -> Result<Self> {
        let m = case.m;
        if m == 0 || m > MAX_POINTS {
            return Err(Error::input(format!("m {m} is outside 1 to {MAX_POINTS}")));
        }
        let b = convection(&case.convection)?;
        let obstacle = Obstacle::parse(&case.obstacle)?;
        let (eta, h, delta) = (case.eta, 1.0 / (m + 1) as f64, 1.0 / case.time_step);
        let squared = b.iter().map(|b| b * b).sum::<f64>();
        let off = eta / (h * h);
        let centre = 6.0 * off + squared / (4.0 * eta) + case.c + delta;
        let positive = eta > 0.0 && case.time_step > 0.0 && case.c >= 0.0;
        if !(centre.is_finite() && off > 0.0 && positive) {
            return Err(Error::input(format!(
                "eta {eta}, c {} and time-step {} give no M-matrix",
                case.c, case.time_step
            ))
            .hint("eta and the time step have to be positive, c at least 0"));
        }
        let table = |d: usize, f: &dyn Fn(f64) -> f64| -> Vec<f64> {
            let damping = |x: f64| (-b[d] * x / (2.0 * eta)).exp();
            (1..=m).map(|i| i as f64 * h).map(|x| damping(x) * f(x)).collect()
        };
        let waves: [f64; 3] = [2.0, 4.0, 6.0];
        let factors = [0, 1, 2].map(|d| table(d, &|x| (waves[d] * PI * x).cos()));
        let damping = (squared > 0.0).then(|| [0, 1, 2].map(|d| table(d, &|_| 1.0)));
        let coefficients = Coefficients { centre, share: off / centre };
        Ok(Self { m, h, coefficients, delta, factors, damping, obstacle })
    }

    /// The bound of u where it is the same everywhere: always but for hills, and with convection
    /// for heights other than 0.
    pub(crate) fn flat_floor(&self) -> Option<f64> {
        match self.obstacle {
            Obstacle::Absent => Some(f64::NEG_INFINITY),
            Obstacle::Flat(v) if v == 0.0 || self.damping.is_none() => Some(v),
            Obstacle::Flat(_) | Obstacle::Hill(_) => None,
        }
    }

    /// The bound of u at a point: `e^-a phi`.
    pub fn floor(&self, at: [usize; 3]) -> f64 {
        let phi = self.obstacle.at(at.map(|i| (i + 1) as f64 * self.h));
        match &self.damping {
            Some([x, y, z]) if phi.is_finite() => (x[at[0]] * y[at[1]]) * z[at[2]] * phi,
            _ => phi,
        }
    }

    /// `e^-a f` at a point.
    pub fn force(&self, at: [usize; 3]) -> f64 {
        let [x, y, z] = &self.factors;
        (y[at[1]] * z[at[2]]) * x[at[0]]
    }

    /// XXH3 (64 bits) of what is solved: size, coefficients, the source and e^-a by direction, and the bound
    /// along the axes and the diagonal of the cube; u is 0 on the boundary. 16 hexadecimal digits.
    pub fn hash(&self) -> String {
        let Coefficients { centre, share } = self.coefficients;
        let mut numbers = vec![self.m as f64, self.h, centre, share, self.delta];
        let tables = self.factors.iter().chain(self.damping.iter().flatten());
        numbers.extend(tables.flatten());
        let middle = self.m / 2;
        for i in 0..self.m {
            let lines = [[i, middle, middle], [middle, i, middle], [middle, middle, i], [i; 3]];
            numbers.extend(lines.map(|at| self.floor(at)));
        }
        vector_hash(&numbers)
    }

    /// Bytes of a number for each point of the grid.
    pub fn bytes(&self) -> usize {
        8 * self.m * self.m * self.m
    }
}

/// Reads `b1:b2:b3`.
pub(crate) fn convection(text: &str) -> Result<[f64; 3]> {
    let numbers: Vec<f64> = text.split(':').filter_map(|word| word.trim().parse().ok()).collect();
    match <[f64; 3]>::try_from(numbers) {
        Ok(b) if text.split(':').count() == 3 && b.iter().all(|v| v.is_finite()) => Ok(b),
        _ => Err(Error::input(format!("convection `{text}` is not of the form b1:b2:b3"))
            .hint("three numbers, such as `1:0.5:0`")),
    }
}

impl Case {
    /// Finds what cannot be together, before anything runs.
    ///
    /// # Errors
    /// Names the settings and their values.
    pub fn check(&self) -> Result<()> {
        let m = self.m;
        Problem::new(self)?;
        for (name, split) in [("norm-split", Some(self.norm_split)), ("split", self.split)] {
            if let Some(split) = split.filter(|s| s.y > m || s.z > m) {
                return Err(Error::input(format!(
                    "{name} {split} has more parts than the {m} grid points of a direction"
                ))
                .hint("choose a larger m or fewer parts"));
            }
        }
        if !self.check_every.is_multiple_of(self.sweeps_per_pass) {
            let (every, pass) = (self.check_every, self.sweeps_per_pass);
            return Err(Error::input(format!(
                "check-every {every} is no multiple of sweeps-per-pass {pass}"
            ))
            .hint("the iterate can only be tested between passes"));
        }
        if self.sweeps_per_pass > 1 {
            let what = if self.backend != "cuda" {
                Some(format!("on backend `{}`", self.backend))
            } else if self.method != Method::Jacobi || self.mode != Mode::Sync {
                Some("for other methods than synchronous Jacobi".to_owned())
            } else if self.split.is_some_and(|s| s != Split::WHOLE) {
                Some("on several GPUs".to_owned())
            } else if self.stop != StopOn::StepNorm {
                Some("with stop complementarity".to_owned())
            } else {
                None
            };
            if let Some(what) = what {
                return Err(Error::input(format!(
                    "sweeps-per-pass {} cannot be had {what}",
                    self.sweeps_per_pass
                ))
                .hint("it is for synchronous Jacobi with the step norm on one GPU"));
            }
        }
        let single = self.split.is_some_and(|s| s != Split::WHOLE);
        if self.backend == "cpu" && single {
            return Err(Error::input(format!(
                "split {} on backend `cpu`, which is one thread",
                self.split.unwrap_or(Split::WHOLE)
            ))
            .hint("use `cpu-mt`, or leave the split out"));
        }
        if ["cuda", crate::obstacle::MPI_CUDA].contains(&self.backend.as_str())
            && let Some(split) = self.split.filter(|s| s.y > 1)
        {
            return Err(Error::input(format!("split {split} on several GPUs: they share z alone"))
                .hint(format!("use `1x{}`", split.count())));
        }
        let gpus = self.backend == crate::obstacle::MPI_CUDA || self.backend == "cuda" && single;
        if gpus && self.method != Method::Jacobi {
            return Err(Error::input("several GPUs run the Jacobi method alone"));
        }
        if self.transport == Transport::Messages && !crate::obstacle::over_ranks(&self.backend) {
            return Err(Error::input(format!(
                "transport `messages` on backend `{}`, which has no ranks",
                self.backend
            ))
            .hint("it is for `mpi-cuda`; leave it out"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(change: impl FnOnce(&mut Case)) -> Problem {
        let mut case = Case { m: 9, ..Case::default() };
        change(&mut case);
        Problem::new(&case).unwrap()
    }

    #[test]
    fn the_hash_is_that_of_everything_that_is_solved() {
        let hash = problem(|_| {}).hash();
        assert_eq!((hash.len(), &hash), (16, &problem(|case| case.backend = "cuda".into()).hash()));
        let others: [fn(&mut Case); 8] = [
            |case| case.m = 8,
            |case| case.eta = 0.3,
            |case| case.c = 1.0,
            |case| case.time_step = 0.01,
            |case| case.convection = "0:0:1e-9".into(),
            |case| case.obstacle = "none".into(),
            |case| case.obstacle = "flat:-1e-300".into(),
            |case| case.obstacle = "hill:0.5".into(),
        ];
        let mut all: Vec<String> = others.iter().map(|change| problem(change).hash()).collect();
        all.push(hash);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 9);
        // where the source alone is another one
        let mut changed = problem(|_| {});
        changed.factors[2][4] += 0.5;
        assert!(changed.hash() != problem(|_| {}).hash());
    }

    #[test]
    fn coefficients_are_those_of_the_paper() {
        let p = problem(|case| case.m = 256);
        // h = 1/257: 6 eta / h^2 = 1.2 * 66049, and c + 1/0.0066
        let centre = 1.2 * 66049.0 + 1.1 + 1.0 / 0.0066;
        assert!((p.coefficients.centre / centre - 1.0).abs() < 1e-14);
        assert!((p.coefficients.share * centre / (0.2 * 66049.0) - 1.0).abs() < 1e-14);
        assert!((p.delta - 151.515_151_515_151_5).abs() < 1e-12);
        // (1/2, 1/2, 1/2): cos(pi) cos(2 pi) cos(3 pi) = 1
        let p = problem(|_| {});
        assert!((p.force([4, 4, 4]) - 1.0).abs() < 1e-14);
        let at = |i: usize| (i + 1) as f64 / 10.0;
        let f = (2.0 * PI * at(1)).cos() * (4.0 * PI * at(6)).cos() * (6.0 * PI * at(3)).cos();
        assert!((p.force([1, 6, 3]) - f).abs() < 1e-15);
    }

    /// `b.grad v - eta lap v` of a smooth v, and `e^a (-eta lap u + |b|^2/(4 eta) u)` of
    /// `u = e^-a v`, both by central differences of fourth order; with the printed sign the second
    /// is something else.
    #[test]
    fn the_change_of_variables_removes_convection_with_a_plus_and_not_as_printed() {
        let (b, eta): ([f64; 3], f64) = ([1.5, -0.7, 0.4], 0.2);
        let a = |p: [f64; 3]| (b[0] * p[0] + b[1] * p[1] + b[2] * p[2]) / (2.0 * eta);
        let v = |p: [f64; 3]| (1.3 * p[0] + 0.2).sin() * (p[1] * p[1] + 0.5) * (0.7 * p[2]).exp();
        let shifted = |p: [f64; 3], d: usize, s: f64| {
            let mut q = p;
            q[d] += s;
            q
        };
        let s = 1e-3;
        let second = |f: &dyn Fn([f64; 3]) -> f64, p: [f64; 3], d: usize| {
            let at = |k: f64| f(shifted(p, d, k * s));
            (-at(2.0) + 16.0 * at(1.0) - 30.0 * at(0.0) + 16.0 * at(-1.0) - at(-2.0))
                / (12.0 * s * s)
        };
        let first = |f: &dyn Fn([f64; 3]) -> f64, p: [f64; 3], d: usize| {
            let at = |k: f64| f(shifted(p, d, k * s));
            (-at(2.0) + 8.0 * at(1.0) - 8.0 * at(-1.0) + at(-2.0)) / (12.0 * s)
        };
        let b2 = b.iter().map(|b| b * b).sum::<f64>();
        for p in [[0.3, 0.4, 0.6], [0.71, 0.15, 0.52]] {
            let original: f64 =
                (0..3).map(|d| b[d] * first(&v, p, d) - eta * second(&v, p, d)).sum();
            let transformed = |sign: f64| {
                let u = |p: [f64; 3]| (-sign * a(p)).exp() * v(p);
                let lap: f64 = (0..3).map(|d| second(&u, p, d)).sum();
                (sign * a(p)).exp() * (-eta * lap + b2 / (4.0 * eta) * u(p))
            };
            assert!((transformed(1.0) - original).abs() < 1e-6, "{p:?}");
            assert!((transformed(-1.0) - original).abs() > 0.1, "{p:?}");
        }
    }

    #[test]
    fn convection_damps_source_and_obstacle() {
        let p = problem(|case| {
            case.convection = "1:-2:0.5".into();
            case.obstacle = "flat:-0.25".into();
        });
        let a = (1.0 * 0.2 - 2.0 * 0.3 + 0.5 * 0.4) / 0.4;
        let at = [1, 2, 3];
        assert!((p.floor(at) - -0.25 * f64::exp(-a)).abs() < 1e-14);
        assert_eq!(p.flat_floor(), None);
        let plain = problem(|_| {});
        assert!((p.force(at) - f64::exp(-a) * plain.force(at)).abs() < 1e-14);
        let more = p.coefficients.centre - plain.coefficients.centre;
        assert!((more - 5.25 / 0.8).abs() < 1e-9);
        assert_eq!(plain.flat_floor(), Some(0.0));
        let none = problem(|case| case.obstacle = "none".into());
        assert_eq!(
            (none.flat_floor(), none.floor(at)),
            (Some(f64::NEG_INFINITY), f64::NEG_INFINITY)
        );
    }

    #[test]
    fn obstacles_above_the_boundary_value_are_refused() {
        let message = |text| Obstacle::parse(text).unwrap_err().to_string();
        assert_eq!(message("flat:0.1"), "obstacle `flat:0.1` is above the boundary value 0");
        assert_eq!(
            message("hill:-1"),
            "obstacle `hill:-1`: below 0 in the centre it is above the boundary value 0 in the corners"
        );
        assert_eq!(message("flat:x"), "obstacle `flat:x`: `x` is not a finite number");
        assert_eq!(message("zreo"), "unknown obstacle `zreo`");
        let hill = Obstacle::parse("hill:0.02").unwrap();
        assert_eq!(hill.at([0.5; 3]), 0.02);
        for p in [[0.0, 0.5, 0.5], [1.0, 0.2, 0.9], [0.0; 3], [0.3, 1.0, 0.6]] {
            assert!(hill.at(p) <= 0.0, "{p:?}");
        }
    }

    #[test]
    fn settings_out_of_range_are_named() {
        let message = |change: &dyn Fn(&mut Case)| {
            let mut case = Case::default();
            change(&mut case);
            Problem::new(&case).unwrap_err().to_string()
        };
        assert_eq!(message(&|c| c.m = 0), "m 0 is outside 1 to 4096");
        assert_eq!(
            message(&|c| c.eta = -1.0),
            "eta -1, c 1.1 and time-step 0.0066 give no M-matrix"
        );
        assert_eq!(
            message(&|c| c.convection = "1:2".into()),
            "convection `1:2` is not of the form b1:b2:b3"
        );
    }
}
