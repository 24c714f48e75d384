//! Matrices of the host that are on the device, to be found by others who need them there.

use std::rc::{Rc, Weak as WeakRc};
use std::sync::{Arc, Weak};

use cudarc::driver::CudaSlice;

use super::compressed::Compressed;
use super::storage::DevicePattern;
use crate::matrix::{Csr, WeakCsr};

/// Copies of matrices, as long as somebody has them.
#[derive(Default)]
pub(super) struct Copies(Vec<Copied>);

struct Copied {
    of: WeakCsr,
    size: [usize; 2],
    pattern: Weak<DevicePattern>,
    val: WeakRc<CudaSlice<f64>>,
}

impl Copies {
    /// `there` is a copy of `a`.
    pub(super) fn add(&mut self, a: &Csr, there: &Compressed) {
        self.0.retain(|copied| copied.val.strong_count() > 0);
        self.0.push(Copied {
            of: a.downgrade(),
            size: [there.rows, there.entries],
            pattern: Arc::downgrade(&there.pattern),
            val: Rc::downgrade(&there.val),
        });
    }

    /// The copy of `a`.
    pub(super) fn find(&self, a: &Csr) -> Option<Compressed> {
        self.0.iter().filter(|copied| copied.of.is(a)).find_map(|copied| {
            let [rows, entries] = copied.size;
            let (pattern, val) = (copied.pattern.upgrade()?, copied.val.upgrade()?);
            Some(Compressed { rows, entries, pattern, val })
        })
    }

    /// The rows of `a`, where a matrix with its pattern has been copied.
    pub(super) fn pattern(&self, a: &Csr) -> Option<Arc<DevicePattern>> {
        let mut like = self.0.iter().filter(|copied| copied.of.pattern.is(a.pattern()));
        like.find_map(|copied| copied.pattern.upgrade())
    }

    /// Values that are about to be overwritten are no copy any more.
    pub(super) fn forget(&mut self, val: &Rc<CudaSlice<f64>>) {
        self.0.retain(|copied| copied.val.as_ptr() != Rc::as_ptr(val));
    }
}
