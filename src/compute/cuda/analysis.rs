//! What is known of both triangles of factors from their patterns.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::device::Device;
use super::lattice::Lattice;
use super::schedules::{Order, Steps};
use super::storage::{Structure, Triangles};
use super::symbolic::{Boxed, Place};
use super::tiles::{LARGEST_BLOCK, Tile};
use crate::base::error::Result;
use crate::base::measure::spans::span;
use crate::base::threads::Threads;
use crate::symbolic::{FillPattern, Schedule, Stencil};

/// Compute capability with bulk copies.
const OLDEST_ARCH: (i32, i32) = (9, 0);

/// The stencils of both triangles, `None` for an empty one; or why there are none.
pub(super) type Stencils = std::result::Result<[Option<Stencil>; 2], &'static str>;

/// Rows of a pattern as plans look at them: of a box those of a smaller one that are alike, so that nobody has to make
/// its own on the host.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    /// The rows that are looked at.
    pub(super) pattern: &'a FillPattern,
    cells: Option<&'a [u16]>,
}

impl<'a> Rows<'a> {
    /// Those of a pattern as they are.
    pub(super) fn of(pattern: &'a FillPattern) -> Self {
        Self { pattern, cells: None }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.cells.map_or_else(|| self.pattern.rows(), <[u16]>::len)
    }

    /// The row of the pattern that is looked at for row `i`.
    #[inline]
    pub(super) fn alike(&self, i: usize) -> usize {
        self.cells.map_or(i, |cells| cells[i] as usize)
    }

    /// Blocks of row `i` of L, D and U.
    #[inline]
    pub(super) fn length(&self, i: usize) -> usize {
        let (at, FillPattern { lower, upper, .. }) = (self.alike(i), self.pattern);
        lower.row(at).len() + 1 + upper.row(at).len()
    }
}

/// Of so many rows the length of which `shortest` are at most as long, and the largest one; zeros without rows.
pub(super) fn lengths(
    rows: usize,
    length: impl Fn(usize) -> usize + Sync,
    shortest: usize,
) -> [usize; 2] {
    let longer = |most: usize, i| most.max(length(i));
    let longest = Threads::Pool.fold(rows, 4096, || 0, longer, usize::max);
    // how many rows have each length
    let none = || vec![0usize; longest + 1];
    let count = |mut counts: Vec<usize>, i: usize| {
        counts[length(i)] += 1;
        counts
    };
    let sum = |mut a: Vec<usize>, b: Vec<usize>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    let mut left = shortest;
    let counts = Threads::Pool.fold(rows, 4096, none, count, sum);
    let common = counts.into_iter().position(|count| {
        left = left.saturating_sub(count);
        left == 0
    });
    [common.unwrap_or(longest), longest]
}

/// What is known of both triangles from their patterns.
pub(super) struct Analysis {
    pattern: Arc<FillPattern>,
    /// L and U, where they are on the device already.
    pub(super) triangles: Option<Triangles>,
    /// The factors of a stencil on a box, where they are.
    pub(super) boxed: Option<Boxed>,
    /// Where steps are found.
    pub(super) place: Place,
    schedules: OnceCell<[Schedule; 2]>,
    steps: OnceCell<[Rc<Steps>; 2]>,
    stencils: OnceCell<Stencils>,
    lattice: OnceCell<Option<Lattice>>,
    /// Steps of the longest chains of dependencies in parts of L, by the runs of rows and their parts: a choice and a plan
    /// ask for the same.
    pub(super) chains: RefCell<HashMap<[Vec<u32>; 2], u32>>,
}

impl Analysis {
    pub(super) fn new(pattern: &Arc<FillPattern>, place: Place) -> Self {
        Self {
            pattern: Arc::clone(pattern),
            triangles: None,
            boxed: None,
            place,
            schedules: OnceCell::new(),
            steps: OnceCell::new(),
            stencils: OnceCell::new(),
            lattice: OnceCell::new(),
            chains: RefCell::default(),
        }
    }

    /// The same of a pattern that the device has made.
    pub(super) fn of_triangles(
        d: &Device,
        pattern: &Arc<FillPattern>,
        triangles: Triangles,
        boxed: Option<Boxed>,
    ) -> Self {
        let mut new =
            Self { triangles: Some(triangles), boxed, ..Self::new(pattern, Place::Device) };
        if let Some(Boxed { told, .. }) = &new.boxed {
            let find = || told.stencils.clone();
            new.stencils = OnceCell::from(suited(d, pattern.block_size(), find, pattern));
        }
        new
    }

    /// The same with one grouping of the rows for both solves: the sets of their order.
    pub(super) fn of_sets(pattern: &Arc<FillPattern>, sets: &Schedule) -> Self {
        let forward = sets.in_place();
        let backward = forward.reversed();
        let schedules = OnceCell::from([forward, backward]);
        Self { schedules, ..Self::new(pattern, Place::Host) }
    }

    /// Rows for plans.
    pub(super) fn rows(&self) -> Rows<'_> {
        match &self.boxed {
            Some(Boxed { told, cells, .. }) => Rows { pattern: &told.small, cells: Some(cells) },
            None => Rows::of(&self.pattern),
        }
    }

    /// Schedules of the forward and the backward solve, found at the first call.
    pub(super) fn schedules(&self) -> &[Schedule; 2] {
        let p = &self.pattern;
        self.schedules.get_or_init(|| {
            let both = || rayon::join(|| Schedule::lower(p), || Schedule::upper(p));
            span("schedules", both).into()
        })
    }

    /// The same on the device, where they are found unless the host has them or is to find them.
    pub(super) fn steps(&self, d: &Device, f: &Structure) -> Result<Option<&[Rc<Steps>; 2]>> {
        if !self.place.on_device(self.pattern.rows()) || self.schedules.get().is_some() {
            return Ok(None);
        }
        if self.steps.get().is_none() {
            let line = self.boxed.as_ref().and_then(Boxed::line);
            let of = |p, backward| Steps::new(d, p, backward, line).map(Rc::new);
            let both = d.span("steps", || Ok([of(&*f.lower, false)?, of(&*f.upper, true)?]))?;
            let _ = self.steps.set(both);
        }
        Ok(self.steps.get())
    }

    /// The rows in groups of which each needs those before it alone: the levels of the forward solve, or of a stencil the
    /// steps of its march, which are told without a look at the rows.
    pub(super) fn forward_order(&self, d: &Device, f: &Structure) -> Result<Order<'_>> {
        let known = self.schedules.get().is_some();
        if !known && let Ok([Some(lower), _]) = self.stencils(d, f.block_size) {
            let order = d.span("order of a march", || Steps::of_march(d, lower))?;
            return Ok(Order::Device(Rc::new(order)));
        }
        self.order_of_levels(d, f)
    }

    /// The rows by the levels of the forward solve, on the device or the host.
    pub(super) fn order_of_levels(&self, d: &Device, f: &Structure) -> Result<Order<'_>> {
        Ok(match self.steps(d, f)? {
            Some([lower, _]) => Order::Device(Rc::clone(lower)),
            None => Order::Host(Cow::Borrowed(&self.schedules()[0])),
        })
    }

    /// Levels of the forward and the backward solve, for which a grid needs no schedules: those of its march, of which
    /// rows at the faces may not need the last few.
    pub(super) fn levels(&self, d: &Device, f: &Structure) -> [usize; 2] {
        let p = &self.pattern;
        if p.blocks() == p.rows() {
            return [p.rows().min(1); 2];
        }
        if self.schedules.get().is_none()
            && let Ok([Some(lower), Some(upper)]) = self.stencils(d, f.block_size)
        {
            return [lower, upper].map(|s| s.shortest_march().levels(s.extents));
        }
        // a device that fails does so again when a plan is made
        match self.steps(d, f) {
            Ok(Some(both)) => both.each_ref().map(|steps| steps.count),
            _ => [0, 1].map(|i: usize| self.schedules()[i].levels()),
        }
    }

    /// Those levels as they are, where they have been found.
    pub(super) fn known_levels(&self) -> Option<[usize; 2]> {
        let on_device = || self.steps.get().map(|both| both.each_ref().map(|steps| steps.count));
        let on_host = self.schedules.get().map(|both| both.each_ref().map(Schedule::levels));
        on_host.or_else(on_device)
    }

    /// The grid that L is, looked for at the first call.
    pub(super) fn lattice(&self) -> Option<&Lattice> {
        let find = || match (&self.boxed, self.stencils.get()) {
            (Some(Boxed { told, .. }), _) => Lattice::of_box(told),
            (None, Some(Ok([Some(lower), _]))) => Lattice::of_stencil(lower),
            _ => Lattice::of(self.pattern.lower.view()),
        };
        self.lattice.get_or_init(|| span("lattice", find)).as_ref()
    }

    /// The stencils, looked for at the first call.
    pub(super) fn stencils(&self, d: &Device, block_size: usize) -> &Stencils {
        let find = || span("stencils", || stencils(d, &self.pattern, block_size));
        self.stencils.get_or_init(find)
    }
}

/// The stencils of both triangles, `None` for an empty one; fails when a triangle is not one
/// stencil on a box.
fn stencils(d: &Device, pattern: &FillPattern, block_size: usize) -> Stencils {
    let find = || {
        let (lower, upper) = (pattern.lower.view(), pattern.upper.view());
        rayon::join(|| Stencil::of_lower(lower), || Stencil::of_upper(upper)).into()
    };
    suited(d, block_size, find, pattern)
}

/// Those that `find` finds, where there are kernels for them.
fn suited(
    d: &Device,
    block_size: usize,
    find: impl FnOnce() -> [Option<Stencil>; 2],
    pattern: &FillPattern,
) -> Stencils {
    if d.arch() < OLDEST_ARCH {
        return Err("the GPU is older than compute capability 9.0");
    }
    if block_size > LARGEST_BLOCK {
        return Err("blocks are larger than 32");
    }
    let [lower, upper] = find();
    if lower.is_none() && pattern.lower.entries() > 0
        || upper.is_none() && pattern.upper.entries() > 0
    {
        return Err("the factors are not one stencil on a box");
    }
    let fits = |s: &Stencil| Tile::of_solve(block_size, s).is_some();
    if !lower.iter().chain(&upper).all(fits) {
        return Err("the stencil reaches too far for a tile");
    }
    Ok([lower, upper])
}
