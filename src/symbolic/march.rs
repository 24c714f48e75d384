//! The order in which a triangle that is a stencil on a box can be solved as a wavefront.

/// How a triangle is solved as a wavefront: with `y' = y + shear z`, no dependency points forward in
/// y' or z, and `t = x + alpha y' + beta z` grows along every dependency: t is the level of the cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct March {
    /// Steps of y' per z.
    pub shear: usize,
    /// Levels per step of y'.
    pub alpha: usize,
    /// Levels per step of z at constant y'.
    pub beta: usize,
    /// Offsets `[dx, dy', dz]`, those waited for longest first.
    pub offsets: Vec<[i32; 3]>,
}

impl March {
    /// Levels between a cell and the one at `offset` from it, at least 1.
    pub fn delay(&self, offset: [i32; 3]) -> i32 {
        -(offset[0] + self.alpha as i32 * offset[1] + self.beta as i32 * offset[2])
    }

    /// Levels of a box.
    pub fn levels(&self, [nx, ny, nz]: [usize; 3]) -> usize {
        nx + self.alpha * (ny - 1 + self.shear * (nz - 1)) + self.beta * (nz - 1)
    }

    /// Levels between a cell and the earliest one it depends on.
    pub(crate) fn longest_delay(&self) -> usize {
        self.offsets.iter().map(|&o| self.delay(o)).max().unwrap_or(0) as usize
    }

    /// How far the offsets reach back along axis 1 (y') or 2 (z).
    pub fn depth(&self, axis: usize) -> usize {
        self.offsets.iter().map(|o| -o[axis]).max().unwrap_or(0).max(0) as usize
    }
}
