//! A GPU as the device of a rank. Ranks share GPUs where a host has fewer of these.

mod constants;
mod direct;
mod groups;
mod messages;
mod places;
mod solves;
mod stages;
mod sums;
mod transfer;

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream};

use super::Cuda;
use super::device::Device;
use super::launch::address;
use super::memory::failed;
use crate::base::error::Result;
use crate::compute::distributed::communicator::Communicator;
use crate::compute::distributed::{
    self, Coupling, FactorBlocks, Local, Route, StagePart, StagedSolves,
};
use crate::compute::{Breakdown, Bytes};
use crate::matrix::Csr;
use crate::symbolic::FillPattern;
use constants::Constants;
use places::{Coupled, Places};
use stages::StagedIlu;
use sums::Partials;
use transfer::Transfer;

/// The GPU of a rank, and how many ranks have it: rank `rank` of the `ranks` of a host that has `gpus`.
fn share(rank: usize, ranks: usize, gpus: usize) -> [usize; 2] {
    let gpu = rank % gpus;
    [gpu, (gpu..ranks).step_by(gpus).len().max(1)]
}

impl Cuda {
    /// For rank `rank` of the `ranks` of this host, which take its GPUs in turn.
    ///
    /// # Errors
    /// As [`ours`](Self::ours).
    pub fn of_rank(rank: usize, ranks: usize) -> Result<Self> {
        let [gpu, sharers] = share(rank, ranks, Device::count()?);
        let mut k = Self::new(Device::numbered(gpu)?, false)?;
        k.sharers = Some(sharers);
        k.direct = direct::allowed()?;
        Ok(k)
    }

    /// The stream of copies between ranks.
    fn copies(&self) -> Result<&Arc<CudaStream>> {
        if let Some(stream) = self.copies.get() {
            return Ok(stream);
        }
        let stream = self.device.stream().context().new_stream();
        let stream = stream.map_err(|e| failed("cannot make a stream", e))?;
        Ok(self.copies.get_or_init(|| stream))
    }

    fn noted(&self, done: Result<()>) {
        done.unwrap_or_else(|e| self.failed(e));
    }
}

impl Local for Cuda {
    type Places = Places;
    type Coupled = Coupled;
    type Transfer = Transfer;
    type Partials = Partials;
    type Constants = Constants;
    type StagedIlu = StagedIlu;

    fn places(&self, of: Vec<u32>) -> Result<Places> {
        Places::new(&self.device, &of)
    }

    fn coupled(&self, of: Coupling) -> Result<Coupled> {
        Coupled::new(&self.device, &of)
    }

    /// Between GPUs that can write each other's memory, else through the hosts.
    fn transfers(
        &self,
        communicator: &dyn Communicator,
        routes: Vec<Route>,
    ) -> Result<Vec<Transfer>> {
        let d = &self.device;
        let wanted = self.direct && communicator.size() > 1;
        if let Some(all) = wanted.then(|| direct::connect(d, communicator, &routes)).flatten() {
            let each = routes.iter().zip(all);
            return each.map(|(route, direct)| Transfer::direct(d, route, direct)).collect();
        }
        // those of all routes: the other ranks have them, too
        let exchange = |r: &Route| communicator.exchange(r.to.clone(), r.from.clone());
        let exchanges: Vec<_> = routes.iter().map(exchange).collect();
        let (copies, each) = (self.copies()?, routes.iter().zip(exchanges));
        each.map(|(route, exchange)| Transfer::messages(d, copies, route, exchange)).collect()
    }

    fn transport(of: &Transfer) -> Option<&'static str> {
        Some(of.name())
    }

    fn send(&self, of: &mut Transfer, x: &CudaSlice<f64>) {
        self.note("halo", of.start(&self.device, x));
    }

    fn receive<'a>(&self, of: &'a mut Transfer) -> &'a CudaSlice<f64> {
        of.finish(&self.device, &|e| self.note("halo", Err(e)));
        of.ghosts()
    }

    fn partial_dots(
        &self,
        x: &CudaSlice<f64>,
        y: &CudaSlice<f64>,
        starts: &[usize],
        out: &mut Partials,
    ) {
        let expected = out.count() + starts.len() - 1;
        self.noted(out.dots(&self.device, &[address(x)], y, starts));
        out.appended(expected);
    }

    fn partial_multi_dots(
        &self,
        basis: &[CudaSlice<f64>],
        w: &CudaSlice<f64>,
        starts: &[usize],
        out: &mut Partials,
    ) {
        let expected = out.count() + basis.len() * (starts.len() - 1);
        let basis: Vec<_> = basis.iter().map(address).collect();
        self.noted(out.dots(&self.device, &basis, w, starts));
        out.appended(expected);
    }

    fn partial_multi_axpy(
        &self,
        basis: &[CudaSlice<f64>],
        coef: &[f64],
        w: &mut CudaSlice<f64>,
        starts: &[usize],
        out: &mut Partials,
    ) {
        let expected = out.count() + starts.len() - 1;
        let basis: Vec<_> = basis.iter().map(address).collect();
        self.noted(out.axpy(&self.device, &basis, coef, w, starts));
        out.appended(expected);
    }

    fn take(&self, partials: &mut Partials) -> Vec<f64> {
        let count = partials.count();
        match partials.take(self) {
            Ok(sums) if self.failure.borrow().is_none() => return sums,
            Ok(_) => {}
            Err(e) => self.failed(e),
        }
        // which all ranks see in the sum
        vec![f64::NAN; count]
    }

    fn add_coupling(
        &self,
        c: &Coupled,
        sign: f64,
        ghosts: &CudaSlice<f64>,
        y: &mut CudaSlice<f64>,
    ) {
        self.note("halo", c.add(&self.device, sign, ghosts, y));
    }

    fn constants(&self, of: distributed::Constants) -> Result<Constants> {
        Constants::new(self, &of)
    }

    fn sums_of_constants(&self, z: &Constants, v: &CudaSlice<f64>) -> Vec<f64> {
        z.sums(self, v)
    }

    fn add_constants(&self, z: &Constants, y: &CudaSlice<f64>, x: &mut CudaSlice<f64>) {
        z.add(self, y, x);
    }

    fn constants_bytes(&self, z: &Constants) -> Bytes {
        z.bytes(self)
    }

    fn extend(
        &self,
        from: &CudaSlice<f64>,
        ghosts: &CudaSlice<f64>,
        places: &Places,
        to: &mut CudaSlice<f64>,
    ) {
        self.note("overlap", places.extend(&self.device, [from, ghosts], to));
    }

    fn restrict(
        &self,
        from: &CudaSlice<f64>,
        places: &Places,
        first: usize,
        to: &mut CudaSlice<f64>,
    ) {
        let to = address(to) + 8 * first as u64;
        self.note("overlap", places.gather(&self.device, from, to));
    }

    fn scatter(&self, values: &CudaSlice<f64>, places: &Places, to: &mut CudaSlice<f64>) {
        self.note("halo", places.scatter(&self.device, address(values), to));
    }

    fn ilu_in_stages(
        &self,
        pattern: &Arc<FillPattern>,
        stages: Vec<Vec<StagePart>>,
        solves: StagedSolves,
    ) -> Result<StagedIlu> {
        StagedIlu::new(self, pattern, &stages, solves)
    }

    fn ilu_vector(&self, ilu: &StagedIlu) -> Result<CudaSlice<f64>> {
        ilu.vector(&self.device)
    }

    fn ilu_place(&self, ilu: &StagedIlu, row: usize) -> usize {
        ilu.place(row)
    }

    fn ilu_factor_in_stages(
        &self,
        ilu: &mut StagedIlu,
        a: &Csr,
        shift: f64,
        between: &mut dyn FnMut(usize, &mut dyn FactorBlocks),
    ) -> Vec<Breakdown> {
        let made = ilu.factor(&self.device, a, shift, between).unwrap_or_else(|e| {
            self.failed(e);
            Ok(())
        });
        made.err().into_iter().collect()
    }

    fn ilu_forward(
        &self,
        ilu: &StagedIlu,
        stage: usize,
        r: &CudaSlice<f64>,
        v: &mut CudaSlice<f64>,
        z: &mut CudaSlice<f64>,
    ) {
        self.noted(ilu.forward(&self.device, stage, r, [v, z]));
    }

    fn ilu_backward(
        &self,
        ilu: &StagedIlu,
        stage: usize,
        v: &mut CudaSlice<f64>,
        z: &mut CudaSlice<f64>,
    ) {
        self.noted(ilu.backward(&self.device, stage, [v, z]));
    }
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn ranks_of_a_host_take_its_gpus_in_turn() {
        let all = |ranks, gpus| -> Vec<[usize; 2]> {
            (0..ranks).map(|rank| share(rank, ranks, gpus)).collect()
        };
        assert_eq!(all(1, 1), [[0, 1]]);
        assert_eq!(all(2, 4), [[0, 1], [1, 1]]);
        assert_eq!(all(3, 1), [[0, 3], [0, 3], [0, 3]]);
        assert_eq!(all(5, 2), [[0, 3], [1, 2], [0, 3], [1, 2], [0, 3]]);
    }
}
