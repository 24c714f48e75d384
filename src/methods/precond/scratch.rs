//! Vectors that an application needs for itself.

use std::cell::{RefCell, RefMut};

use crate::base::error::Result;
use crate::compute::Operations;

/// `N` vectors; an application borrows them all.
pub(super) struct Scratch<K: Operations, const N: usize>(RefCell<[K::Vector; N]>);

impl<K: Operations, const N: usize> Scratch<K, N> {
    pub(super) fn new(k: &K, n: usize) -> Result<Self> {
        let vectors = (0..N).map(|_| k.vector(n)).collect::<Result<Vec<_>>>()?;
        let Ok(vectors) = vectors.try_into() else { unreachable!("as many as asked for") };
        Ok(Self(RefCell::new(vectors)))
    }

    pub(super) fn borrow(&self) -> RefMut<'_, [K::Vector; N]> {
        self.0.borrow_mut()
    }
}
