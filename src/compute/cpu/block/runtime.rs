//! Blocks of any size: loops of run-time length over the columns, eight rows in a register.

use super::super::entry::{Entry, scale};
use super::super::simd::Simd;
use super::{BlockSize, Runtime, check_pivot};
use crate::base::choices::MAX_BLOCK_SIZE;

impl BlockSize for Runtime {
    type Segment<S: Simd> = [f64; MAX_BLOCK_SIZE];
    type Factor<'a, S: Simd> = &'a [f64];

    #[inline(always)]
    fn b(self) -> usize {
        self.0
    }
    #[inline(always)]
    fn zero<S: Simd>(self, _: S) -> [f64; MAX_BLOCK_SIZE] {
        [0.0; MAX_BLOCK_SIZE]
    }
    #[inline(always)]
    fn load<S: Simd>(self, _: S, x: &[f64]) -> [f64; MAX_BLOCK_SIZE] {
        let mut segment = [0.0; MAX_BLOCK_SIZE];
        segment[..self.0].copy_from_slice(&x[..self.0]);
        segment
    }
    #[inline(always)]
    fn store<S: Simd>(self, _: S, v: [f64; MAX_BLOCK_SIZE], x: &mut [f64]) {
        x[..self.0].copy_from_slice(&v[..self.0]);
    }
    #[inline(always)]
    fn gemv_add<S: Simd, T: Entry>(
        self,
        s: S,
        a: &[T],
        x: &[f64],
        mut y: [f64; MAX_BLOCK_SIZE],
    ) -> [f64; MAX_BLOCK_SIZE] {
        accumulate::<_, _, false>(s, self.0, a, x, &mut y);
        y
    }
    #[inline(always)]
    fn gemv_sub<S: Simd, T: Entry>(
        self,
        s: S,
        a: &[T],
        x: &[f64],
        mut y: [f64; MAX_BLOCK_SIZE],
    ) -> [f64; MAX_BLOCK_SIZE] {
        accumulate::<_, _, true>(s, self.0, a, x, &mut y);
        y
    }
    #[inline(always)]
    fn scale_add<S: Simd>(
        self,
        s: S,
        scales: &[u16],
        x: [f64; MAX_BLOCK_SIZE],
        mut y: [f64; MAX_BLOCK_SIZE],
    ) -> [f64; MAX_BLOCK_SIZE] {
        for ((y, x), &of) in y.iter_mut().zip(x).zip(&scales[..self.0]) {
            *y = s.madd(scale(of), x, *y);
        }
        y
    }
    #[inline(always)]
    fn factor<S: Simd>(self, _: S, a: &[f64]) -> &[f64] {
        a
    }
    #[inline(always)]
    fn gemm<S: Simd>(self, s: S, a: &[f64], b: &[f64], c: &mut [f64]) {
        let n = self.0;
        c[..n * n].fill(0.0);
        for (bj, cj) in b[..n * n].chunks_exact(n).zip(c[..n * n].chunks_exact_mut(n)) {
            accumulate::<_, _, false>(s, n, a, bj, cj);
        }
    }
    #[inline(always)]
    fn gemm_sub<S: Simd>(self, s: S, a: &[f64], b: &[f64], c: &mut [f64]) {
        let n = self.0;
        for (bj, cj) in b[..n * n].chunks_exact(n).zip(c[..n * n].chunks_exact_mut(n)) {
            accumulate::<_, _, true>(s, n, a, bj, cj);
        }
    }
    #[inline(always)]
    fn invert<S: Simd>(self, s: S, a: &mut [f64]) -> Result<(), (usize, f64)> {
        let b = self.0;
        let a = &mut a[..b * b];
        let (mut row_max, mut swaps) = ([0.0f64; MAX_BLOCK_SIZE], [0; MAX_BLOCK_SIZE]);
        let mut sum = 0.0;
        for column in a.chunks_exact(b) {
            for (m, v) in row_max.iter_mut().zip(column) {
                *m = m.max(v.abs());
                sum += v * 0.0;
            }
        }
        if sum != 0.0 {
            return Err((0, 0.0)); // a NaN or infinite entry
        }
        for k in 0..b {
            let (mut p, mut best) = (k, a[k * b + k].abs());
            for c in k + 1..b {
                let candidate = a[c * b + k].abs();
                if candidate > best {
                    (p, best) = (c, candidate);
                }
            }
            check_pivot(k, best, row_max[k])?;
            swaps[k] = p;
            if p != k {
                let (left, right) = a.split_at_mut(p * b);
                left[k * b..(k + 1) * b].swap_with_slice(&mut right[..b]);
            }
            let inverse = 1.0 / a[k * b + k];
            a[k * b + k] = 1.0;
            for v in &mut a[k * b..(k + 1) * b] {
                *v *= inverse;
            }
            let (left, rest) = a.split_at_mut(k * b);
            let (pivot, right) = rest.split_at_mut(b);
            for column in left.chunks_exact_mut(b).chain(right.chunks_exact_mut(b)) {
                let factor = column[k];
                column[k] = 0.0;
                for (v, &p) in column.iter_mut().zip(&*pivot) {
                    *v = s.madd(-factor, p, *v);
                }
            }
        }
        // swapped columns of A are swapped rows of the inverse
        for k in (0..b).rev() {
            if swaps[k] != k {
                for column in a.chunks_exact_mut(b) {
                    column.swap(k, swaps[k]);
                }
            }
        }
        Ok(())
    }
}

/// `y += A x` or `y -= A x` for n x n blocks: eight rows of y at a time stay in a register.
#[inline(always)]
fn accumulate<S: Simd, T: Entry, const MINUS: bool>(
    s: S,
    n: usize,
    a: &[T],
    x: &[f64],
    y: &mut [f64],
) {
    let (a, x, y) = (&a[..n * n], &x[..n], &mut y[..n]);
    let whole = n - n % 8;
    for r in (0..whole).step_by(8) {
        let mut acc = s.load8::<8>(&y[r..]);
        for (c, &xc) in x.iter().enumerate() {
            let column = T::load8::<S, 8>(s, &a[c * n + r..]);
            acc = if MINUS {
                s.msub8(column, s.splat8(xc), acc)
            } else {
                s.madd8(column, s.splat8(xc), acc)
            };
        }
        s.store8::<8>(acc, &mut y[r..]);
    }
    for r in whole..n {
        for (c, &xc) in x.iter().enumerate() {
            let entry = a[c * n + r].wide();
            y[r] = s.madd(if MINUS { -entry } else { entry }, xc, y[r]);
        }
    }
}
