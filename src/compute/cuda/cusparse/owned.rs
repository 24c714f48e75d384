//! Descriptors and infos of cuSPARSE, destroyed when dropped.

use std::ptr;

use cudarc::cusparse::sys::{self, cusparseStatus_t as Status};

use super::symbol::call;
use super::{DevicePattern, Diagonal, Handle, NUMBERS, Triangle};
use crate::base::error::Result;

/// An opaque pointer of cuSPARSE together with the function that frees it.
pub(super) struct Owned<T: Copy> {
    raw: T,
    destroy: fn(T) -> Status,
}

impl<T: Copy> Owned<T> {
    /// The pointer, valid as long as `self`.
    pub(super) fn raw(&self) -> T {
        self.raw
    }
}

impl<T: Copy> Drop for Owned<T> {
    fn drop(&mut self) {
        // an error of work that ran before shows up here; whoever waits for that work reports it
        let _ = (self.destroy)(self.raw);
    }
}

/// Functions that make and free one kind of argument-less object.
macro_rules! owned {
    ($(#[$doc:meta])* $function:ident: $type:ident, $create:ident, $destroy:ident) => {
        $(#[$doc])*
        pub(super) fn $function() -> Result<Owned<sys::$type>> {
            let mut raw = ptr::null_mut();
            call!($create(&raw mut raw))?;
            Ok(Owned {
                raw,
                // SAFETY: made above, freed once; a library that makes such objects frees them
                destroy: |raw| unsafe { sys::$destroy(raw) },
            })
        }
    };
}

owned! {
    /// A handle, bound to the current context.
    handle: cusparseHandle_t, cusparseCreate, cusparseDestroy
}
owned! {
    /// A descriptor of the older functions: a general matrix, indices from 0.
    matrix_descriptor: cusparseMatDescr_t, cusparseCreateMatDescr, cusparseDestroyMatDescr
}
owned! {
    /// What csrilu02's analysis found.
    csrilu02_info: csrilu02Info_t, cusparseCreateCsrilu02Info, cusparseDestroyCsrilu02Info
}
owned! {
    /// What bsrilu02's analysis found.
    bsrilu02_info: bsrilu02Info_t, cusparseCreateBsrilu02Info, cusparseDestroyBsrilu02Info
}
owned! {
    /// What bsrsv2's analysis found.
    bsrsv2_info: bsrsv2Info_t, cusparseCreateBsrsv2Info, cusparseDestroyBsrsv2Info
}
owned! {
    /// What `SpSV`'s analysis found.
    spsv_descriptor: cusparseSpSVDescr_t, cusparseSpSV_createDescr, cusparseSpSV_destroyDescr
}

/// A descriptor of the older functions for one triangle of a matrix.
pub(super) fn triangular_descriptor(
    triangle: Triangle,
    diagonal: Diagonal,
) -> Result<Owned<sys::cusparseMatDescr_t>> {
    let descriptor = matrix_descriptor()?;
    call!(cusparseSetMatFillMode(descriptor.raw(), triangle.fill_mode()))?;
    call!(cusparseSetMatDiagType(descriptor.raw(), diagonal.diag_type()))?;
    Ok(descriptor)
}

/// A dense vector of `n` numbers of the generic functions, at `values` until told otherwise.
pub(super) fn dense_vector(n: usize, values: *mut f64) -> Result<Owned<sys::cusparseDnVecDescr_t>> {
    let mut raw = ptr::null_mut();
    call!(cusparseCreateDnVec(&raw mut raw, n as i64, values.cast(), NUMBERS))?;
    // SAFETY: made above, freed once
    Ok(Owned { raw, destroy: |raw| unsafe { sys::cusparseDestroyDnVec(raw.cast_const()) } })
}

/// Arrays of a sliced matrix, which stay the caller's.
pub(super) struct Slices {
    pub(super) rows: usize,
    pub(super) entries: usize,
    /// Entries and what fills up short rows.
    pub(super) stored: usize,
    /// Rows of a slice.
    pub(super) height: usize,
    /// Start of each slice in the other two, and the end.
    pub(super) offsets: *mut i32,
    pub(super) col_ind: *mut i32,
    pub(super) values: *mut f64,
}

/// A square sparse matrix of the generic functions in sliced ELLPACK.
pub(super) fn sliced_matrix(a: &Slices) -> Result<Owned<sys::cusparseSpMatDescr_t>> {
    let index = sys::cusparseIndexType_t::CUSPARSE_INDEX_32I;
    let base = sys::cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ZERO;
    let mut raw = ptr::null_mut();
    call!(cusparseCreateSlicedEll(
        &raw mut raw,
        a.rows as i64,
        a.rows as i64,
        a.entries as i64,
        a.stored as i64,
        a.height as i64,
        a.offsets.cast(),
        a.col_ind.cast(),
        a.values.cast(),
        index,
        index,
        base,
        NUMBERS,
    ))?;
    // SAFETY: made above, freed once
    Ok(Owned { raw, destroy: |raw| unsafe { sys::cusparseDestroySpMat(raw.cast_const()) } })
}

/// A sparse matrix of the generic functions over arrays that stay the caller's: CSR for blocks of
/// one, BSR with column-major blocks for larger ones.
pub(super) fn sparse_matrix(
    handle: &Handle,
    pattern: &DevicePattern,
    values: *mut f64,
) -> Result<Owned<sys::cusparseSpMatDescr_t>> {
    let index = sys::cusparseIndexType_t::CUSPARSE_INDEX_32I;
    let base = sys::cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ZERO;
    let (rows, entries) = (pattern.rows() as i64, pattern.entries() as i64);
    let columns = pattern.columns() as i64;
    let (row_ptr, col_ind) = pattern.indices(handle);
    let (b, order) = (pattern.block_size() as i64, sys::cusparseOrder_t::CUSPARSE_ORDER_COL);
    let mut raw = ptr::null_mut();
    // the two differ by the size of blocks and the order in them
    macro_rules! create {
        ($name:ident [$($size:expr),*] [$($order:expr),*]) => {
            call!($name(
                &raw mut raw,
                rows,
                columns,
                entries,
                $($size,)*
                row_ptr.cast(),
                col_ind.cast(),
                values.cast(),
                index,
                index,
                base,
                NUMBERS,
                $($order),*
            ))
        };
    }
    match b {
        1 => create!(cusparseCreateCsr [] [])?,
        _ => create!(cusparseCreateBsr [b, b] [order])?,
    }
    // SAFETY: made above, freed once
    Ok(Owned { raw, destroy: |raw| unsafe { sys::cusparseDestroySpMat(raw.cast_const()) } })
}
