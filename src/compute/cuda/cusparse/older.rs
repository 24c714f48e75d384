//! What the older functions (csrilu02, bsrilu02, bsrsv2) all take of a matrix.

use std::ffi::c_int;

use cudarc::cusparse::sys;

use super::{DevicePattern, Handle};

/// A matrix as the older functions take it, valid as long as what it was made of.
#[derive(Clone, Copy)]
pub(super) struct Older {
    pub(super) handle: sys::cusparseHandle_t,
    pub(super) rows: c_int,
    pub(super) entries: c_int,
    pub(super) descriptor: sys::cusparseMatDescr_t,
    pub(super) values: *mut f64,
    pub(super) row_ptr: *mut c_int,
    pub(super) col_ind: *mut c_int,
    pub(super) block_size: c_int,
}

impl Older {
    pub(super) fn new(
        handle: &Handle,
        pattern: &DevicePattern,
        descriptor: sys::cusparseMatDescr_t,
        values: *mut f64,
    ) -> Self {
        let (row_ptr, col_ind) = pattern.indices(handle);
        Self {
            handle: handle.raw(),
            rows: pattern.rows() as c_int,
            entries: pattern.entries() as c_int,
            descriptor,
            values,
            row_ptr,
            col_ind,
            block_size: pattern.block_size() as c_int,
        }
    }
}

/// Calls a function of the family `csrilu02`, `bsrilu02` or `bsrsv2`: the matrix, what the analysis
/// found, and what this function takes beside; `bsrsv2 (alpha)` for one with a coefficient.
macro_rules! older {
    (csrilu02 $name:ident($a:expr, $info:expr; $($rest:expr),*)) => {{
        let a: &Older = &$a;
        call!($name(
            a.handle, a.rows, a.entries, a.descriptor, a.values, a.row_ptr, a.col_ind,
            $info.raw(), $($rest),*
        ))
    }};
    (bsrilu02 $name:ident($a:expr, $info:expr; $($rest:expr),*)) => {{
        let a: &Older = &$a;
        call!($name(
            a.handle, COLUMN, a.rows, a.entries, a.descriptor, a.values, a.row_ptr, a.col_ind,
            a.block_size, $info.raw(), $($rest),*
        ))
    }};
    (bsrsv2 $(($alpha:expr))? $name:ident($a:expr, $info:expr; $($rest:expr),*)) => {{
        let a: &Older = &$a;
        call!($name(
            a.handle, COLUMN, AS_IS, a.rows, a.entries, $($alpha,)? a.descriptor, a.values,
            a.row_ptr, a.col_ind, a.block_size, $info.raw(), $($rest),*
        ))
    }};
}
pub(super) use older;
