//! The order in which a triangle that is a stencil on a box can be solved as a wavefront.

/// Kinds of columns where rows alternate along y and z.
pub(crate) const KINDS: usize = 4;

/// How a triangle is solved as a wavefront: with `y' = y + shear z`, no dependency points forward in
/// y' or z, and `t = x + skew(y', z)` grows along every dependency: t is the level of the cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct March {
    /// Steps of y' per z.
    pub shear: usize,
    /// Levels per period of y'.
    pub alpha: usize,
    /// Levels per period of z at constant y'.
    pub beta: usize,
    /// Offsets `[dx, dy', dz]`, those waited for longest first; with kinds those of each kind, one behind the other.
    pub offsets: Vec<[i32; 3]>,
    /// Where columns are not alike.
    pub kinds: Option<Kinds>,
}

/// Columns of four kinds, y' % 2 + 2 (z % 2): the period is two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// Offsets of each.
    pub counts: [usize; KINDS],
    /// Levels by which each comes after the start of its period.
    pub phases: [usize; KINDS],
}

/// A column of each kind.
const COLUMNS: [[i32; 2]; KINDS] = [[0, 0], [1, 0], [0, 1], [1, 1]];

impl March {
    /// Columns after which they repeat, along y' and z.
    pub fn period(&self) -> usize {
        if self.kinds.is_some() { 2 } else { 1 }
    }

    /// The level of the first cell of column y', z of the box, or of a part of it that starts with a period.
    pub fn skew(&self, y: i32, z: i32) -> i32 {
        let (alpha, beta) = (self.alpha as i32, self.beta as i32);
        match &self.kinds {
            None => alpha * y + beta * z,
            Some(kinds) => {
                let kind = y.rem_euclid(2) + 2 * z.rem_euclid(2);
                alpha * y.div_euclid(2)
                    + beta * z.div_euclid(2)
                    + kinds.phases[kind as usize] as i32
            }
        }
    }

    /// Levels between a cell of a kind and the one at `offset` from it, at least 1.
    fn delay_of(&self, kind: usize, offset: [i32; 3]) -> i32 {
        let [y, z] = COLUMNS[kind];
        self.skew(y, z) - self.skew(y + offset[1], z + offset[2]) - offset[0]
    }

    /// The same where all columns are alike.
    pub fn delay(&self, offset: [i32; 3]) -> i32 {
        self.delay_of(0, offset)
    }

    /// The offsets of each kind, with the kind.
    fn by_kinds(&self) -> impl Iterator<Item = (usize, [i32; 3])> {
        let counts = self.counts();
        let kinds = counts.into_iter().enumerate().flat_map(|(k, n)| std::iter::repeat_n(k, n));
        kinds.zip(self.offsets.iter().copied())
    }

    /// How many offsets each kind has.
    pub fn counts(&self) -> Vec<usize> {
        self.kinds.as_ref().map_or_else(|| vec![self.offsets.len()], |kinds| kinds.counts.to_vec())
    }

    /// Levels of a box.
    pub fn levels(&self, [nx, ny, nz]: [usize; 3]) -> usize {
        let last = |n: usize| n.saturating_sub(self.period())..n;
        let skew = |y: usize, z: usize| self.skew((y + self.shear * z) as i32, z as i32);
        let most = last(nz).flat_map(|z| last(ny).map(move |y| skew(y, z))).max();
        nx + most.unwrap_or(0) as usize
    }

    /// Levels between a cell and the earliest one it depends on.
    pub(crate) fn longest_delay(&self) -> usize {
        self.by_kinds().map(|(kind, o)| self.delay_of(kind, o)).max().unwrap_or(0) as usize
    }

    /// How far the offsets reach back along axis 1 (y') or 2 (z).
    pub fn depth(&self, axis: usize) -> usize {
        self.offsets.iter().map(|o| -o[axis]).max().unwrap_or(0).max(0) as usize
    }

    /// The shortest march over a box for columns of kinds with these offsets `[dx, dy', dz]`, if any has at most twice
    /// the levels per column of this one, in which all are alike.
    pub(super) fn by_kind(
        &self,
        offsets: &[Vec<[i32; 3]>; KINDS],
        extents: [usize; 3],
    ) -> Option<Self> {
        let of = |alpha: usize, beta: usize| {
            let phases = phases(offsets, alpha as i32, beta as i32)?;
            let kinds = Kinds { counts: offsets.each_ref().map(Vec::len), phases };
            let mut march = Self { alpha, beta, kinds: Some(kinds), ..self.clone() };
            march.offsets.clear();
            for (kind, own) in offsets.iter().enumerate() {
                let mut own = own.clone();
                own.sort_by_key(|&o| std::cmp::Reverse(march.delay_of(kind, o)));
                march.offsets.extend(own);
            }
            Some(march)
        };
        let most = 2 * (self.alpha + self.beta);
        let shortest_of = |alpha| (0..=most).find_map(|beta| of(alpha, beta));
        // no dependency points forward in z: a larger beta never takes phases away
        let has_any = |alpha: &usize| phases(offsets, *alpha as i32, most as i32).is_some();
        (1..=most).filter(has_any).filter_map(shortest_of).min_by_key(|march| march.levels(extents))
    }
}

/// The least phases with which every cell comes after those it depends on; `None` where there are none.
fn phases(offsets: &[Vec<[i32; 3]>; KINDS], alpha: i32, beta: i32) -> Option<[usize; KINDS]> {
    let mut phases = [0; KINDS];
    // longest paths through the kinds: a way that is longer goes around a circle
    for _ in 0..=KINDS {
        let before = phases;
        for (kind, own) in offsets.iter().enumerate() {
            let [y, z] = COLUMNS[kind];
            for o in own {
                let (y, z) = (y + o[1], z + o[2]);
                let from = phases[(y.rem_euclid(2) + 2 * z.rem_euclid(2)) as usize];
                let earliest = from + 1 + o[0] + alpha * y.div_euclid(2) + beta * z.div_euclid(2);
                phases[kind] = phases[kind].max(earliest);
            }
        }
        if phases == before {
            return Some(phases.map(|phase| phase as usize));
        }
    }
    None
}
