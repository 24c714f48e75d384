//! Vectors over ranks: each holds its own part, and sums are added up over subdomains in their order, so that
//! they do not depend on the number of ranks. Scalars are on the host, which exchanges the sums: no device is asked
//! for them again, and all ranks have the same.

use super::Distributed;
use super::communicator::Gathering;
use super::local::Local;
use crate::base::error::Result;
use crate::base::measure::{now, seconds_since};
use crate::compute::scalar::{evaluate, quotient};
use crate::compute::{Coef, Slot, Step, Vectors};

/// Sums over all subdomains that are not yet added up.
pub(super) struct Pending {
    /// The first of them.
    slot: Slot,
    /// How many there are.
    count: usize,
    /// Whether their roots are meant.
    root: bool,
}

/// Sums that are being added up.
pub(super) struct Started {
    pending: Vec<Pending>,
    gathering: Box<dyn Gathering>,
}

/// Whether one of the sums goes to a slot that is needed.
fn has(pending: &[Pending], needed: &impl Fn(Slot) -> bool) -> bool {
    pending.iter().any(|p| (0..p.count).any(|j| needed(p.slot.plus(j))))
}

/// How many sums there are.
fn entries(pending: &[Pending]) -> usize {
    pending.iter().map(|p| p.count).sum()
}

impl<K: Local> Distributed<K> {
    /// Notes sums that `work` appends to those of this rank.
    fn later(&self, slot: Slot, count: usize, root: bool, work: impl FnOnce(&K, &mut K::Partials)) {
        work(&self.local, &mut self.partials.borrow_mut());
        self.pending.borrow_mut().push(Pending { slot, count, root });
    }

    /// What this rank says of sums, and how many numbers each rank has to say.
    fn own(&self, pending: &[Pending]) -> (Vec<f64>, Vec<usize>) {
        let mut own = self.local.take(&mut self.partials.borrow_mut());
        own.push(f64::from(u8::from(self.asked.get())));
        let entries = entries(pending);
        (own, self.parts_of_ranks().map(|parts| entries * parts + 1).collect())
    }

    /// Adds up what all ranks have said of sums.
    fn add_up(&self, pending: &[Pending], all: &[f64]) {
        let mut sums = vec![0.0; entries(pending)];
        let (mut at, mut stop) = (0, false);
        for parts in self.parts_of_ranks() {
            for sum in &mut sums {
                all[at..at + parts].iter().for_each(|partial| *sum += partial);
                at += parts;
            }
            stop |= all[at] > 0.0;
            at += 1;
        }
        self.stopped.set(self.stopped.get() || stop);
        let mut slots = self.slots.borrow_mut();
        let mut sums = sums.into_iter();
        for &Pending { slot, count, root } in pending {
            for (j, sum) in sums.by_ref().take(count).enumerate() {
                slots[slot.plus(j).0 as usize] = if root { sum.sqrt() } else { sum };
            }
        }
    }

    /// Waits for the reduction that was started, if one was.
    fn finish(&self) {
        let Some(Started { pending, gathering }) = self.started.take() else { return };
        let all = self.timed(|| gathering.finish());
        self.add_up(&pending, &all);
    }

    /// Adds up sums where one of the slots that are needed waits for them: all pending ones, in one reduction.
    /// The others stay, to be added up with later ones.
    fn need(&self, needed: impl Fn(Slot) -> bool) {
        let pending = has(&self.pending.borrow(), &needed);
        if pending || self.started.borrow().as_ref().is_some_and(|s| has(&s.pending, &needed)) {
            self.finish();
        }
        if pending {
            let pending = self.pending.take();
            let (own, counts) = self.own(&pending);
            let all = self.gathered(&own, &counts);
            self.add_up(&pending, &all);
        }
    }

    /// The same for slots that coefficients or results are.
    fn need_of(&self, coefficients: &[Coef], slots: &[Slot]) {
        let of = |c: &Coef, slot: Slot| match *c {
            Coef::Host(_) => false,
            Coef::Slot(a) | Coef::Reciprocal(a) => a == slot,
            Coef::Ratio(a, b) | Coef::NegRatio(a, b) => a == slot || b == slot,
        };
        self.need(|slot| slots.contains(&slot) || coefficients.iter().any(|c| of(c, slot)));
    }

    /// Work that counts as time of a reduction.
    fn timed<R>(&self, work: impl FnOnce() -> R) -> R {
        let start = now();
        let result = work();
        self.seconds[0].set(self.seconds[0].get() + seconds_since(start));
        result
    }

    /// A coefficient as a number, after the sums that it needs.
    fn number(&self, c: Coef) -> Coef {
        self.need_of(&[c], &[]);
        Coef::Host(c.value(&self.slots.borrow()))
    }
}

impl<K: Local> Vectors for Distributed<K> {
    type Vector = K::Vector;

    fn vector(&self, n: usize) -> Result<K::Vector> {
        self.local.vector(n)
    }

    fn extent(&self, n: usize) -> [usize; 2] {
        let own = self.layout.unknowns(self.communicator.rank());
        debug_assert_eq!(own.len(), n);
        [own.start, self.layout.unknowns(self.layout.ranks() - 1).end]
    }

    fn upload(&self, from: &[f64], to: &mut K::Vector) {
        self.local.upload(from, to);
    }

    fn download(&self, from: &K::Vector, to: &mut [f64]) {
        self.local.download(from, to);
    }

    fn fill(&self, x: &mut K::Vector, value: f64) {
        self.local.fill(x, value);
    }

    fn copy(&self, x: &K::Vector, y: &mut K::Vector) {
        self.local.copy(x, y);
    }

    fn axpby(&self, a: Coef, x: &K::Vector, b: Coef, y: &mut K::Vector) {
        self.local.axpby(self.number(a), x, self.number(b), y);
    }

    fn scale(&self, a: Coef, x: &mut K::Vector) {
        self.local.scale(self.number(a), x);
    }

    fn dot(&self, x: &K::Vector, y: &K::Vector, out: Slot) {
        self.later(out, 1, false, |k, sums| k.partial_dots(x, y, &self.starts, sums));
    }

    fn norm(&self, x: &K::Vector, out: Slot) {
        self.later(out, 1, true, |k, sums| k.partial_dots(x, x, &self.starts, sums));
    }

    fn multi_dot(&self, basis: &[K::Vector], w: &K::Vector, out: Slot) {
        let work = |k: &K, sums: &mut _| k.partial_multi_dots(basis, w, &self.starts, sums);
        self.later(out, basis.len(), false, work);
    }

    fn multi_axpy_norm(&self, basis: &[K::Vector], coef: Slot, w: &mut K::Vector, norm_out: Slot) {
        let mut coefficients = vec![0.0; basis.len()];
        self.read(coef, &mut coefficients);
        self.later(norm_out, 1, true, |k, sums| {
            k.partial_multi_axpy(basis, &coefficients, w, &self.starts, sums);
        });
    }

    fn combine(&self, basis: &[K::Vector], coef: &[f64], x: &mut K::Vector) {
        self.local.combine(basis, coef, x);
    }

    fn begin_reduction(&self) {
        self.finish();
        let pending = self.pending.take();
        if pending.is_empty() {
            return;
        }
        let (own, counts) = self.own(&pending);
        self.reductions.set(self.reductions.get() + 1);
        let gathering = self.timed(|| self.communicator.start_all_gather(own, &counts));
        *self.started.borrow_mut() = Some(Started { pending, gathering });
    }

    fn ratio(&self, out: Slot, num: &[Slot], den: &[Slot]) {
        self.need(|slot| slot == out || num.contains(&slot) || den.contains(&slot));
        let mut slots = self.slots.borrow_mut();
        let product = |of: &[Slot]| of.iter().map(|slot| slots[slot.0 as usize]).product::<f64>();
        slots[out.0 as usize] = quotient(product(num), product(den));
    }

    fn scalars(&self, steps: &[Step]) {
        for step in steps {
            self.need_of(&[step.a, step.b], &[step.out]);
        }
        evaluate(steps, &mut self.slots.borrow_mut());
    }

    fn read(&self, first: Slot, out: &mut [f64]) {
        let slots = first.0..first.plus(out.len()).0;
        self.need(|slot| slots.contains(&slot.0));
        let first = first.0 as usize;
        out.copy_from_slice(&self.slots.borrow()[first..first + out.len()]);
    }
}
