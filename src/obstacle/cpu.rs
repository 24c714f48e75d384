//! One line of a projected relaxation; mirrors `kernels/obstacle/sweep.cu`, bit for bit.

use crate::compute::cpu::multiversion::multiversion;
use crate::compute::cpu::stream::{LANES, Stream};
use crate::obstacle::Coefficients;

pub use crate::compute::cpu::stream::fence;

/// Input of a line: its old values with one more at each end, those of the adjacent lines, the right-hand
/// side divided by the diagonal entry, and the lower bound.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    /// From x = -1 to x = nx.
    pub own: &'a [f64],
    /// Line y - 1.
    pub south: &'a [f64],
    /// Line y + 1.
    pub north: &'a [f64],
    /// Slice z - 1.
    pub rear: &'a [f64],
    /// Slice z + 1.
    pub front: &'a [f64],
    /// Right-hand side over the diagonal entry.
    pub source: &'a [f64],
    /// Lower bound.
    pub floor: &'a [f64],
}

/// Points of a line that get new values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Select {
    /// All.
    All,
    /// Those of even x.
    Even,
    /// Those of odd x.
    Odd,
}

/// Monitored quantities of a relaxation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Change {
    /// Sum of the squared changes.
    pub squared: f64,
    /// Largest `|min(A u - g, u - phi)|` before the relaxation.
    pub complementarity: f64,
}

/// New values of a line into `out`, which begins on a cache line; points that are not selected keep
/// their old ones. With `stream` the stores bypass the caches. The complementarity residual is computed on
/// request.
///
/// # Panics
/// When a line is shorter than `out`.
pub(crate) fn relax(
    c: Coefficients,
    lines: Lines<'_>,
    select: Select,
    complementarity: bool,
    stream: bool,
    out: &mut [f64],
) -> Change {
    match (select, complementarity, stream) {
        (Select::All, false, true) => relax_as(As::<2, false, true>, c, lines, out),
        (Select::All, true, true) => relax_as(As::<2, true, true>, c, lines, out),
        (Select::All, false, false) => relax_as(As::<2, false, false>, c, lines, out),
        (Select::All, true, false) => relax_as(As::<2, true, false>, c, lines, out),
        (Select::Even, false, _) => relax_as(As::<0, false, false>, c, lines, out),
        (Select::Even, true, _) => relax_as(As::<0, true, false>, c, lines, out),
        (Select::Odd, false, _) => relax_as(As::<1, false, false>, c, lines, out),
        (Select::Odd, true, _) => relax_as(As::<1, true, false>, c, lines, out),
    }
}

/// Compile-time parameters of a relaxation.
trait Kind: Copy {
    /// Parity of the points that get new values; 2 for all.
    const PARITY: usize;
    const COMPLEMENTARITY: bool;
    const STREAM: bool;
}

#[derive(Clone, Copy)]
struct As<const PARITY: usize, const COMPLEMENTARITY: bool, const STREAM: bool>;

impl<const P: usize, const C: bool, const S: bool> Kind for As<P, C, S> {
    const PARITY: usize = P;
    const COMPLEMENTARITY: bool = C;
    const STREAM: bool = S;
}

multiversion! { fn relax_as[K: Kind](kind: K, c: Coefficients, lines: Lines<'_>, out: &mut [f64]) -> Change = relax_body }

/// Sums and maxima of the lanes.
#[derive(Clone, Copy)]
struct Lanes {
    squared: [f64; LANES],
    worst: [f64; LANES],
}

/// New values of a cache line of points, from their neighbours in x, their old values, those of the
/// lines around, source and floor.
#[inline(always)]
fn relax_lanes<K: Kind>(
    c: Coefficients,
    [west, centre, east]: [&[f64; LANES]; 3],
    [south, north, rear, front]: [&[f64; LANES]; 4],
    [source, floor]: [&[f64; LANES]; 2],
    lanes: &mut Lanes,
) -> [f64; LANES] {
    let mut new = [0.0; LANES];
    for l in 0..LANES {
        // chunks begin at even x
        let chosen = K::PARITY == 2 || l % 2 == K::PARITY;
        let around = ((west[l] + east[l]) + (south[l] + north[l])) + (rear[l] + front[l]);
        let free = source[l] + c.share * around;
        let v = if free > floor[l] { free } else { floor[l] };
        new[l] = if chosen { v } else { centre[l] };
        let step = new[l] - centre[l];
        lanes.squared[l] += step * step;
        if K::COMPLEMENTARITY && chosen {
            let (residual, gap) = (c.centre * (centre[l] - free), centre[l] - floor[l]);
            let least = (if residual < gap { residual } else { gap }).abs();
            lanes.worst[l] = if least > lanes.worst[l] { least } else { lanes.worst[l] };
        }
    }
    new
}

#[inline(always)]
fn relax_body<K: Kind, S: Stream>(
    s: S,
    _: K,
    c: Coefficients,
    lines: Lines<'_>,
    out: &mut [f64],
) -> Change {
    let n = out.len();
    let Lines { own, south, north, rear, front, source, floor } = lines;
    let all = [
        &own[..n],
        &own[1..=n],
        &own[2..n + 2],
        &south[..n],
        &north[..n],
        &rear[..n],
        &front[..n],
        &source[..n],
        &floor[..n],
    ];
    let mut lanes = Lanes { squared: [0.0; LANES], worst: [0.0; LANES] };
    let whole = all.map(|line| line.as_chunks::<LANES>().0);
    let (chunks, rest) = out.as_chunks_mut::<LANES>();
    let count = chunks.len();
    let [west, centre, east, south, north, rear, front, source, floor] =
        whole.map(|line| &line[..count]);
    for i in 0..count {
        let x = [&west[i], &centre[i], &east[i]];
        let around = [&south[i], &north[i], &rear[i], &front[i]];
        let new = relax_lanes::<K>(c, x, around, [&source[i], &floor[i]], &mut lanes);
        if K::STREAM { s.stream(&new, &mut chunks[i]) } else { chunks[i] = new }
    }
    if !rest.is_empty() {
        // zeros behind the end stay zero and change nothing
        let ends = all.map(|line| {
            let mut end = [0.0; LANES];
            end[..rest.len()].copy_from_slice(&line[count * LANES..]);
            end
        });
        let [west, centre, east, south, north, rear, front, source, floor] = ends.each_ref();
        let around = [south, north, rear, front];
        let x = [west, centre, east];
        let new = relax_lanes::<K>(c, x, around, [source, floor], &mut lanes);
        rest.copy_from_slice(&new[..rest.len()]);
    }
    let fold = |v: [f64; LANES], f: fn(f64, f64) -> f64| {
        f(f(f(v[0], v[4]), f(v[2], v[6])), f(f(v[1], v[5]), f(v[3], v[7])))
    };
    let Lanes { squared, worst } = lanes;
    Change { squared: fold(squared, |a, b| a + b), complementarity: fold(worst, f64::max) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_the_formula_says_for_every_length_and_selection() {
        let c = Coefficients { centre: 8.0, share: 0.125 };
        for n in [1, 7, 8, 9, 16, 29] {
            let line = |seed: f64| -> Vec<f64> {
                (0..n + 2).map(|i| (seed * (i as f64 + 1.0)).sin()).collect()
            };
            let [own, south, north, rear, front, source] = [0.3, 0.5, 0.7, 1.1, 1.3, 1.7].map(line);
            let floor = vec![-0.1; n];
            let lines = Lines {
                own: &own,
                south: &south,
                north: &north,
                rear: &rear,
                front: &front,
                source: &source,
                floor: &floor,
            };
            for (select, chosen) in [
                (Select::All, [true, true]),
                (Select::Even, [true, false]),
                (Select::Odd, [false, true]),
            ] {
                let (mut expected, mut squared, mut worst) = (Vec::new(), 0.0, 0.0_f64);
                for i in 0..n {
                    let sum =
                        ((own[i] + own[i + 2]) + (south[i] + north[i])) + (rear[i] + front[i]);
                    let free = source[i] + 0.125 * sum;
                    let old = own[i + 1];
                    let new = if chosen[i % 2] { free.max(-0.1) } else { old };
                    expected.push(new);
                    squared += (new - old) * (new - old);
                    if chosen[i % 2] {
                        worst = worst.max((8.0 * (old - free)).min(old + 0.1).abs());
                    }
                }
                let mut out = crate::base::memory::Buffer::<f64>::zeros(n);
                let streams: &[bool] =
                    if select == Select::All { &[true, false] } else { &[false] };
                for &stream in streams {
                    let change = relax(c, lines, select, true, stream, &mut out);
                    fence();
                    assert_eq!(out[..], expected, "{n} {select:?}");
                    assert!((change.squared - squared).abs() <= 1e-14 * squared, "{n} {select:?}");
                    assert_eq!(change.complementarity, worst, "{n} {select:?}");
                    let plain = relax(c, lines, select, false, stream, &mut out);
                    assert_eq!((plain.squared, plain.complementarity), (change.squared, 0.0));
                }
            }
        }
    }
}
