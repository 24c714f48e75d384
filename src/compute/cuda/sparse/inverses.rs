//! Approximate inverses on the device, each row from a small dense system (`kernels/setup/row_systems.cu`).
//!
//! `None` is what is left to the host: systems that shared memory does not hold, and matrices without such an
//! inverse, of which the host tells why.

use cudarc::driver::{CudaFunction, LaunchConfig};

use crate::base::error::Result;
use crate::compute::cuda::compressed::{Compressed, lanes, of_lanes, run};
use crate::compute::cuda::device::Device;
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::sources::ROW_SYSTEMS;

/// Most unknowns of the systems that are launched together, from the smallest on.
const CLASSES: [usize; 6] = [4, 8, 16, 32, 64, 128];

/// Threads of a block, at most.
const THREADS: usize = 256;

/// Bytes that the driver keeps of each thread block's shared memory.
const RESERVED: usize = 1024;

/// A class of systems: those with more unknowns than `above` and at most `most`.
struct Class {
    above: u32,
    most: u32,
    lanes: usize,
}

/// The classes of rows with up to `longest` unknowns; `None` beyond the last.
fn classes(longest: usize) -> Option<Vec<Class>> {
    if longest > CLASSES[CLASSES.len() - 1] {
        return None;
    }
    let mut above = 0;
    let mut classes = Vec::new();
    for most in CLASSES {
        if above >= longest {
            break;
        }
        let last = most.min(longest);
        classes.push(Class { above: above as u32, most: last as u32, lanes: lanes(most) });
        above = most;
    }
    Some(classes)
}

/// The launch of a kernel for `rows` systems of `room` numbers each; `None` when a thread block cannot have
/// that much shared memory.
fn config(
    d: &Device,
    kernel: &CudaFunction,
    [rows, lanes, room]: [usize; 3],
) -> Result<Option<LaunchConfig>> {
    use cudarc::driver::sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    let most = d.shared_for_values();
    // several thread blocks on a multiprocessor, where systems are small
    let wanted = (most / 4).saturating_sub(RESERVED);
    let warp = 32 / lanes;
    let fitting = |bytes: usize| bytes / (8 * room).max(1) / warp * warp;
    let groups = match fitting(wanted) {
        0 if fitting(most) == 0 => return Ok(None),
        0 => warp,
        groups => groups.min(THREADS / lanes),
    };
    let shared = (8 * room * groups) as u32;
    kernel
        .set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared as i32)
        .map_err(|e| failed("cannot prepare small systems", e))?;
    Ok(Some(LaunchConfig {
        grid_dim: (rows.div_ceil(groups).max(1) as u32, 1, 1),
        block_dim: ((groups * lanes) as u32, 1, 1),
        shared_mem_bytes: shared,
    }))
}

impl Compressed {
    /// G on the lower triangle `pattern`.
    pub(super) fn factorised_inverse(&self, d: &Device, pattern: &Self) -> Result<Option<Self>> {
        let Some(classes) = classes(pattern.longest(d)?) else { return Ok(None) };
        let (g, broken) = (pattern.with_numbers(d)?, d.zeros::<u32>(1)?);
        for Class { above, most, lanes } in classes {
            let kernel = d.kernel(&ROW_SYSTEMS, of_lanes(lanes), "factorised")?;
            let m = most as usize;
            let room = m * m + m;
            let Some(config) = config(d, &kernel, [self.rows, lanes, room])? else {
                return Ok(None);
            };
            let (a, p, room) = (self.argument(), pattern.argument(), room as u32);
            run!(d, kernel, config; a, p, above, most, room, *g.val, broken);
        }
        Ok((d.host(&broken)?[0] == 0).then_some(g))
    }

    /// M' from A', which this is.
    pub(super) fn least_squares_inverse(&self, d: &Device) -> Result<Option<Self>> {
        let Some(classes) = classes(self.longest(d)?) else { return Ok(None) };
        let Some(reach) = self.product(d, self, false, false)? else { return Ok(None) };
        let tall = reach.longest(d)?;
        let (m, broken) = (self.with_numbers(d)?, d.zeros::<u32>(1)?);
        for Class { above, most, lanes } in classes {
            let kernel = d.kernel(&ROW_SYSTEMS, of_lanes(lanes), "least_square_columns")?;
            let room = tall * (most as usize + 1);
            let Some(config) = config(d, &kernel, [self.rows, lanes, room])? else {
                return Ok(None);
            };
            let (a, r, room) = (self.argument(), reach.argument(), room as u32);
            run!(d, kernel, config; a, r, above, most, room, *m.val, broken);
        }
        Ok((d.host(&broken)?[0] == 0).then_some(m))
    }

    /// W on the pattern of the strict triangle of L, which this is, and the diagonal.
    pub(super) fn triangular_inverse(&self, d: &Device) -> Result<Option<Self>> {
        let longest = self.longest(d)?;
        let lanes = lanes(longest);
        let kernel = d.kernel(&ROW_SYSTEMS, of_lanes(lanes), "triangular")?;
        let room = longest.max(1);
        let Some(config) = config(d, &kernel, [self.rows, lanes, room])? else { return Ok(None) };
        let row_ptr = d.alloc(self.rows + 1)?;
        let w = Self::on(d, self.rows, self.entries + self.rows, row_ptr, true)?;
        let (l, room) = (self.argument(), room as u32);
        run!(d, kernel, config; l, room, w.pattern.row_ptr, w.pattern.col_ind, *w.val);
        Ok(Some(w))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_one_class() {
        assert!(classes(129).is_none() && classes(0).unwrap().is_empty());
        for longest in 1..=128 {
            let classes = classes(longest).unwrap();
            for m in 1..=longest as u32 {
                let of = classes.iter().filter(|c| m > c.above && m <= c.most).count();
                assert_eq!(of, 1, "{m} of {longest}");
            }
            assert_eq!(classes.last().unwrap().most as usize, longest);
        }
    }
}
