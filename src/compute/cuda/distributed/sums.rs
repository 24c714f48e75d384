//! Sums over the subdomains of a rank (`kernels/distributed/sums.cu`).

use cudarc::driver::{CudaFunction, CudaSlice, DriverError, LaunchConfig};

use crate::base::error::Result;
use crate::compute::SLOTS;
use crate::compute::cuda::Cuda;
use crate::compute::cuda::device::Device;
use crate::compute::cuda::launch::{Address, MOST, Numbers, address, launch};
use crate::compute::cuda::memory::failed;
use crate::compute::cuda::sources::SUMS;
use crate::compute::cuda::vector::basis_of;

/// Threads of a block, and vectors that one takes; mirror `distributed/sums.cu`.
const THREADS: u32 = 256;
const VECTORS: usize = 4;

/// Entries of a chunk.
const CHUNK: usize = 16 * THREADS as usize;

/// Sums that the host does not have yet.
#[derive(Default)]
pub struct Partials {
    division: Option<Division>,
    sums: Option<CudaSlice<f64>>,
    count: usize,
}

/// The subdomains of a rank in chunks.
struct Division {
    parts: usize,
    chunks: CudaSlice<[u32; 2]>,
    count: usize,
    /// First chunk of each subdomain, and their end.
    first: CudaSlice<u32>,
    /// Sums of chunks for one pass over a basis.
    of_chunks: CudaSlice<f64>,
    dot: CudaFunction,
    dots: CudaFunction,
    axpy: CudaFunction,
    add_up: CudaFunction,
}

/// Chunks of subdomains, and the first of each and their end.
fn chunks(starts: &[usize]) -> (Vec<[u32; 2]>, Vec<u32>) {
    let (mut chunks, mut first) = (Vec::new(), vec![0]);
    for part in starts.windows(2) {
        let of_part = (part[0]..part[1]).step_by(CHUNK);
        chunks.extend(of_part.map(|at| [at as u32, part[1].min(at + CHUNK) as u32]));
        first.push(chunks.len() as u32);
    }
    (chunks, first)
}

impl Division {
    fn new(d: &Device, starts: &[usize]) -> Result<Self> {
        let (chunks, first) = chunks(starts);
        let kernel = |name: &str| d.kernel(&SUMS, 1, name);
        Ok(Self {
            parts: starts.len() - 1,
            count: chunks.len(),
            of_chunks: d.alloc(chunks.len() * MOST)?,
            chunks: d.copied(&chunks)?,
            first: d.copied(&first)?,
            dot: kernel("dot")?,
            dots: kernel("dots")?,
            axpy: kernel("axpy")?,
            add_up: kernel("add_up")?,
        })
    }

    /// Sums of chunks of `m` numbers, added up by subdomain.
    fn add_up(&self, d: &Device, m: usize, out: Address) -> Result<(), DriverError> {
        let config = plane(self.parts, m, 32);
        let count = self.count as u32;
        launch!(d, &self.add_up, config; self.first, count, self.of_chunks, out)
    }
}

fn plane(across: usize, down: usize, threads: u32) -> LaunchConfig {
    LaunchConfig {
        grid_dim: (across as u32, down as u32, 1),
        block_dim: (threads, 1, 1),
        shared_mem_bytes: 0,
    }
}

impl Partials {
    /// Makes room for `more` sums of each subdomain; the chunks, and where the sums go.
    fn room(&mut self, d: &Device, starts: &[usize], more: usize) -> Result<(&Division, Address)> {
        if self.division.is_none() {
            self.division = Some(Division::new(d, starts)?);
        }
        let parts = starts.len() - 1;
        let needed = self.count + more * parts;
        let held = self.sums.as_ref().map_or(0, CudaSlice::len);
        if needed > held {
            let mut larger = d.alloc(needed.max(2 * held).max(MOST * parts))?;
            if let Some(sums) = &self.sums
                && self.count > 0
            {
                let stream = d.stream();
                let (from, mut to) = (sums.slice(..self.count), larger.slice_mut(..self.count));
                stream.memcpy_dtod(&from, &mut to).map_err(|e| failed("cannot copy sums", e))?;
            }
            self.sums = Some(larger);
        }
        let at = address(self.sums.as_ref().expect("just made")) + 8 * self.count as u64;
        self.count = needed;
        Ok((self.division.as_ref().expect("just made"), at))
    }

    /// Appends `basis[j] . w` over each subdomain.
    pub(super) fn dots(
        &mut self,
        d: &Device,
        basis: &[Address],
        w: &CudaSlice<f64>,
        starts: &[usize],
    ) -> Result<()> {
        let (of, mut out) = self.room(d, starts, basis.len())?;
        for pass in basis.chunks(MOST) {
            let (kernel, each) = if pass.len() == 1 { (&of.dot, 1) } else { (&of.dots, VECTORS) };
            let config = plane(of.count, pass.len().div_ceil(each), THREADS);
            let m = pass.len() as u32;
            launch!(d, kernel, config; of.chunks, m, basis_of(pass), *w, of.of_chunks)
                .and_then(|()| of.add_up(d, pass.len(), out))
                .map_err(|e| failed("sums over subdomains", e))?;
            out += 8 * (pass.len() * of.parts) as u64;
        }
        Ok(())
    }

    /// `w -= sum_j coef[j] basis[j]`; appends `w . w` over each subdomain.
    pub(super) fn axpy(
        &mut self,
        d: &Device,
        basis: &[Address],
        coef: &[f64],
        w: &mut CudaSlice<f64>,
        starts: &[usize],
    ) -> Result<()> {
        if basis.is_empty() {
            return self.dots(d, &[address(w)], w, starts);
        }
        let (of, out) = self.room(d, starts, 1)?;
        for (pass, coef) in basis.chunks(MOST).zip(coef.chunks(MOST)) {
            let mut numbers = Numbers { v: [0.0; MOST] };
            numbers.v[..coef.len()].copy_from_slice(coef);
            let (m, config) = (pass.len() as u32, plane(of.count, 1, THREADS));
            launch!(d, &of.axpy, config; of.chunks, m, basis_of(pass), numbers, *w, of.of_chunks)
                .map_err(|e| failed("sums over subdomains", e))?;
        }
        of.add_up(d, 1, out).map_err(|e| failed("sums over subdomains", e))
    }

    /// Copies the sums to the host, of which none are left.
    pub(super) fn take(&mut self, k: &Cuda) -> Result<Vec<f64>> {
        let mut all = vec![0.0; std::mem::take(&mut self.count)];
        let Some(sums) = self.sums.as_ref().filter(|_| !all.is_empty()) else { return Ok(all) };
        if all.len() <= SLOTS {
            k.fetch(sums, &mut all)?;
        } else {
            let (stream, fault) = (k.device.stream(), |e| failed("cannot download", e));
            stream.memcpy_dtoh(&sums.slice(..all.len()), &mut all).map_err(fault)?;
            stream.synchronize().map_err(fault)?;
        }
        Ok(all)
    }

    /// How many sums are there, or should be.
    pub(super) fn appended(&mut self, expected: usize) {
        self.count = self.count.max(expected);
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_begin_with_their_subdomain() {
        let all = |starts: &[usize]| chunks(starts);
        assert_eq!(all(&[0, 3, 3, 5]), (vec![[0, 3], [3, 5]], vec![0, 1, 1, 2]));
        let c = CHUNK as u32;
        let (found, first) = all(&[0, 7, 7 + 2 * CHUNK + 1]);
        assert_eq!(found, [[0, 7], [7, 7 + c], [7 + c, 7 + 2 * c], [7 + 2 * c, 8 + 2 * c]]);
        assert_eq!(first, [0, 1, 4]);
        // the same lengths, whatever lies before
        let (alone, _) = all(&[0, 2 * CHUNK + 1]);
        let lengths = |of: &[[u32; 2]]| of.iter().map(|c| c[1] - c[0]).collect::<Vec<_>>();
        assert_eq!(lengths(&alone), lengths(&found[1..]));
    }
}
