//! The tables as the kernel reads them: values laid out and a solve, thread by thread, against the triangles
//! themselves.

use rand::{Rng, SeedableRng};

use super::division::within;
use super::lists::Lists;
use super::plan::steps::{ENDS, FIRST, LAST, PLACES, SCALE_FIRST, SCALE_LAST};
use super::plan::{Plan, Shape, WARP};
use crate::base::choices::ReadAs;
use crate::base::threads::Threads;
use crate::compute::cuda::sptrsv::colours::slices::tests::coloured_by;
use crate::matrix::pattern::{Pattern, block_pattern};
use crate::problem::load;
use crate::symbolic::{Colouring, FillPattern, Rest, Schedule, multi_elimination};

const SHAPE: Shape = Shape { team: 64, entries: 8, blocks: 40, shared: 40_000 };

/// Factors with random numbers on a pattern.
struct Factors {
    pattern: FillPattern,
    lower: Vec<f64>,
    upper: Vec<f64>,
    diagonal: Vec<f64>,
}

impl Factors {
    fn new(pattern: FillPattern, seed: u64) -> (Self, Vec<f64>) {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let mut random =
            |n: usize| (0..n).map(|_| rng.random_range(-0.3..0.3)).collect::<Vec<f64>>();
        let (lower, upper) = (random(pattern.lower.entries()), random(pattern.upper.entries()));
        let (diagonal, r) = (random(pattern.rows()), random(pattern.rows()));
        (Self { pattern, lower, upper, diagonal }, r)
    }

    /// z, by rows of the factors.
    fn solved(&self, r: &[f64]) -> Vec<f64> {
        let n = self.pattern.rows();
        let mut x = r.to_vec();
        let row = |p: &Pattern, val: &[f64], x: &[f64], i: usize, start: f64| {
            p.view()
                .range(i)
                .fold(start, |sum, at| (-val[at]).mul_add(x[p.col_ind[at] as usize], sum))
        };
        for i in 0..n {
            x[i] = row(&self.pattern.lower, &self.lower, &x, i, x[i]);
        }
        for i in (0..n).rev() {
            x[i] = row(&self.pattern.upper, &self.upper, &x, i, x[i] * self.diagonal[i]);
        }
        x
    }
}

/// A step as the kernel unpacks it.
#[derive(Clone, Copy)]
struct Step([u32; 4]);

impl Step {
    fn is(self, what: u32) -> bool {
        self.0[2] & what != 0
    }
    fn row(self) -> usize {
        (self.0[1] & 0x3ff) as usize * WARP
    }
    fn rows(self) -> usize {
        (self.0[1] >> 10 & 0x3ff) as usize
    }
    fn published(self) -> std::ops::Range<usize> {
        (self.0[3] >> 22) as usize..(self.0[1] >> 20) as usize
    }
    fn entries(self) -> usize {
        (self.0[2] & 0xff).trailing_ones() as usize
    }
    fn list(self) -> usize {
        (self.0[2] >> 14 & 0x3ff) as usize * SHAPE.entries
    }
    fn scales(self) -> bool {
        self.is(SCALE_FIRST | SCALE_LAST)
    }
    /// Place of the first value of thread t; its diagonal is a warp before.
    fn value(self, t: usize) -> usize {
        let each = (self.0[2] >> 24) as usize;
        self.0[0] as usize + t / WARP * each * WARP + t % WARP
    }
}

/// `colour_boxes_values`.
fn laid_out(plan: &Plan, lists: &Lists, order: &[u32], f: &Factors) -> Vec<f64> {
    let mut to = vec![0.0; plan.values];
    let triangles = [(&f.pattern.lower, &f.lower), (&f.pattern.upper, &f.upper)];
    for (k, p) in plan.parts.iter().enumerate() {
        for (upper, (pattern, val)) in triangles.into_iter().enumerate() {
            for c in 0..plan.colours {
                let list = plan.listed[upper * plan.colours + c];
                let start = plan.starts[k * plan.colours + c];
                for q in (0..start[1] as usize).filter(|_| list.pieces > 0) {
                    let row = p.row as usize + start[0] as usize + q;
                    let place = i32::from(plan.rows[row]) - plan.division.origin;
                    let (pitch, layer) = (plan.division.pitch, plan.division.layer);
                    let [nx, ny, _] = lists.extents;
                    let cell = p.cell as i32
                        + place / layer * (nx * ny)
                        + place % layer / pitch * nx
                        + place % layer % pitch;
                    let row = lists.row[cell as usize] as usize;
                    let (slot, t) = (q / SHAPE.team, q % SHAPE.team);
                    let first = (p.step + start[2 + upper]) as usize + slot * list.pieces as usize;
                    let steps = &plan.steps[first..first + list.pieces as usize];
                    for step in steps.iter().map(|&s| Step(s)).filter(|s| s.scales()) {
                        to[p.value as usize + step.value(t) - WARP] = f.diagonal[row];
                    }
                    for at in pattern.view().range(row) {
                        let far = order[pattern.col_ind[at] as usize] as i32 - cell;
                        let of = &plan.distances[list.first as usize..][..list.count as usize];
                        let e = of.iter().position(|&d| d == far).expect("a distance of the list");
                        let step = Step(steps[e / list.size as usize]);
                        let before = e % list.size as usize;
                        let place = p.value as usize + step.value(t) + before * WARP;
                        assert_eq!(to[place], 0.0, "two values in one place");
                        to[place] = val[at];
                    }
                }
            }
        }
    }
    to
}

/// `colour_boxes`: z by cells.
fn emulated(plan: &Plan, lists: &Lists, val: &[f64], r: &[f64]) -> Vec<f64> {
    let mut x = vec![vec![0.0; plan.division.cells]; plan.parts.len()];
    let mut published = vec![f64::NAN; plan.published];
    let place =
        |k: usize, cell: u32| plan.division.place(plan.division.bounds(k)[0], lists.cell(cell));
    let holds = |k: usize, cell: u32| within(plan.division.bounds(k), lists.cell(cell));
    let part = |cell: u32| (0..plan.parts.len()).find(|&k| holds(k, cell)).expect("a part");
    for cell in 0..r.len() as u32 {
        x[part(cell)][place(part(cell), cell)] = r[cell as usize];
    }
    let event = |k: usize, e: usize| {
        let first = plan.parts[k].event as usize + e;
        plan.events[first] as usize..plan.events[first + 1] as usize
    };
    for (k, x) in x.iter_mut().enumerate() {
        for at in event(k, 0) {
            x[plan.to[at] as usize] = r[plan.from[at] as usize];
        }
    }
    let mut next: Vec<u32> = plan.parts.iter().map(|p| p.step).collect();
    let mut sums = vec![vec![0.0; SHAPE.team]; plan.parts.len()];
    for e in 1..=plan.hand_overs() {
        for (k, p) in plan.parts.iter().enumerate() {
            let mut ended = false;
            while !ended && next[k] < p.step + p.steps {
                let step = Step(plan.steps[next[k] as usize]);
                next[k] += 1;
                for t in 0..step.rows() {
                    let own = plan.rows[p.row as usize + step.row() + t] as usize;
                    let first = p.value as usize + step.value(t);
                    let mut sum = if step.is(FIRST) { x[k][own] } else { sums[k][t] };
                    sum *= if step.is(SCALE_FIRST) { val[first - WARP] } else { 1.0 };
                    for u in 0..step.entries() {
                        let there = x[k][(own as i32 + plan.lists[step.list() + u] / 8) as usize];
                        sum = (-val[first + u * WARP]).mul_add(there, sum);
                    }
                    if step.is(LAST) {
                        sum *= if step.is(SCALE_LAST) { val[first - WARP] } else { 1.0 };
                        x[k][own] = sum;
                        if step.published().contains(&t) {
                            let place = (step.0[3] as usize + t) % PLACES as usize;
                            assert!(published[place].is_nan(), "published twice");
                            published[place] = sum;
                        }
                    }
                    sums[k][t] = sum;
                }
                ended = step.is(ENDS);
            }
            assert_eq!(ended, e < plan.hand_overs(), "part {k}, hand-over {e}");
        }
        for (k, x) in x.iter_mut().enumerate().filter(|_| e < plan.hand_overs()) {
            for at in event(k, e) {
                let v = published[plan.from[at] as usize];
                assert!(!v.is_nan(), "part {k} brings what is not there at hand-over {e}");
                x[plan.to[at] as usize] = v;
            }
        }
    }
    let all = next.iter().zip(&plan.parts).all(|(&next, p)| next == p.step + p.steps);
    assert!(all, "steps are left");
    (0..r.len() as u32).map(|cell| x[part(cell)][place(part(cell), cell)]).collect()
}

/// Solves on a pattern in the order of its sets, as the kernel does and row by row: the farthest apart.
fn difference(pattern: FillPattern, sets: &Schedule) -> (f64, Plan) {
    let (ends, order) = (&sets.level_ptr, &sets.rows);
    let lists = Lists::new(&pattern, ends, order).expect("a lattice");
    let plan = Plan::new(&lists, SHAPE).expect("room");
    let (f, r) = Factors::new(pattern, 7);
    let val = laid_out(&plan, &lists, order, &f);
    let mut by_cell = vec![0.0; r.len()];
    for (&cell, &v) in order.iter().zip(&r) {
        by_cell[cell as usize] = v;
    }
    let z = emulated(&plan, &lists, &val, &by_cell);
    let differences =
        f.solved(&r).into_iter().zip(order).map(|(want, &cell)| (z[cell as usize] - want).abs());
    (differences.fold(0.0, f64::max), plan)
}

#[test]
fn steps_and_hand_overs_solve_what_the_triangles_say() {
    for (spec, parts) in
        [("bubbly:31x23x22", 40), ("poisson3d:64x70x1", 36), ("poisson3d:9x40x13", 30)]
    {
        let (pattern, sets) = coloured_by(spec, 1, Colouring::Lattice);
        let entries = pattern.blocks() - pattern.rows();
        let (difference, plan) = difference(pattern, &sets);
        // columns are in the order of the rows
        assert_eq!(difference, 0.0, "{spec}");
        assert!(plan.parts.len() >= parts, "{spec}: {} parts", plan.parts.len());
        let stored = plan.values as f64 / entries as f64;
        assert!(stored < 2.5, "{spec}: {stored} values for an entry");
    }
}

#[test]
fn sets_and_colours_of_what_they_leave_are_solved_for() {
    let a = load("bubbly:31x23x22", ReadAs::Expanded).unwrap().matrix;
    let rest = Rest::Coloured(Colouring::Lattice);
    let point = block_pattern(&a);
    let found = multi_elimination(Threads::One, &point, 1, rest, usize::MAX).unwrap();
    let (difference, plan) = difference(found.pattern, &found.sets);
    // the set's neighbours are of all colours: sums in another order
    assert!(difference < 1e-14 && plan.colours == 7, "{difference}");
}

#[test]
fn rows_that_wait_for_later_colours_are_refused() {
    let (pattern, sets) = coloured_by("bubbly:31x23x22", 1, Colouring::Lattice);
    let lists = |ends: &[u32], order: &[u32]| Lists::new(&pattern, ends, order);
    assert!(lists(&sets.level_ptr, &sets.rows).is_some());
    // a colour with cells of the next one: their columns are of it, too, where its own rows have none
    let mut ends = sets.level_ptr.clone();
    ends[3] += 40;
    assert!(lists(&ends, &sets.rows).is_none());
}

#[test]
fn what_has_no_lattice_or_no_room_is_refused() {
    let lists = |spec: &str, how| {
        let (pattern, sets) = coloured_by(spec, 1, how);
        Lists::new(&pattern, &sets.level_ptr, &sets.rows)
    };
    assert!(lists("bubbly:31x23x22", Colouring::FirstFit).is_none());
    let lists = lists("bubbly:31x23x22", Colouring::Lattice).unwrap();
    assert!(Plan::new(&lists, Shape { shared: 4_000, ..SHAPE }).is_none());
    assert!(Plan::new(&lists, Shape { blocks: 1, ..SHAPE }).is_none());
}

#[test]
fn rows_that_are_read_together_are_in_banks_of_their_own() {
    let (pattern, sets) = coloured_by("bubbly:128", 1, Colouring::Lattice);
    let lists = Lists::new(&pattern, &sets.level_ptr, &sets.rows).unwrap();
    let shape = Shape { blocks: 132, shared: 230_000, team: 640, entries: 8 };
    let plan = Plan::new(&lists, shape).unwrap();
    let (mut accesses, mut least) = (0, 0);
    for half in plan.rows.chunks(16) {
        let mut of = [0; 16];
        for &place in half {
            of[place as usize % 16] += 1;
        }
        // places that fill up a colour are equal
        let filling = half.iter().filter(|&&place| i32::from(place) == plan.division.origin);
        if filling.count() < 2 {
            accesses += of.into_iter().max().unwrap();
            least += 1;
        }
    }
    let mean = f64::from(accesses) / f64::from(least);
    assert!(mean < 1.15, "{mean} accesses for one");
}
