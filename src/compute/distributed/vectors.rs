//! Vectors over ranks: each holds its own part, and sums are added up over subdomains in their order, so that
//! they do not depend on the number of ranks.

use super::Distributed;
use super::communicator::Gathering;
use super::local::Local;
use crate::base::error::Result;
use crate::compute::{Coef, Slot, Step, Vectors};

/// Sums of this rank's subdomains that are not yet added up over all.
pub(super) struct Pending {
    slot: Slot,
    /// Whether the root of the sum is meant.
    root: bool,
    partial: Vec<f64>,
}

/// Sums that are being added up.
pub(super) struct Started {
    pending: Vec<Pending>,
    gathering: Box<dyn Gathering>,
}

/// Whether one of the sums goes to a slot that is needed.
fn has(pending: &[Pending], needed: &impl Fn(Slot) -> bool) -> bool {
    pending.iter().any(|p| needed(p.slot))
}

impl<K: Local> Distributed<K> {
    fn later(&self, slot: Slot, root: bool, partial: Vec<f64>) {
        self.pending.borrow_mut().push(Pending { slot, root, partial });
    }

    /// What this rank says of sums, and how many numbers each rank has to say.
    fn own(&self, pending: &[Pending]) -> (Vec<f64>, Vec<usize>) {
        let mut own: Vec<f64> = pending.iter().flat_map(|p| p.partial.iter().copied()).collect();
        own.push(f64::from(u8::from(self.asked.get())));
        let entries = pending.len();
        (own, self.parts_of_ranks().map(|parts| entries * parts + 1).collect())
    }

    /// Adds up what all ranks have said of sums.
    fn add_up(&self, pending: &[Pending], all: &[f64]) {
        let mut sums = vec![0.0; pending.len()];
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
        let value = |(p, sum): (&Pending, &f64)| {
            Step::set(p.slot, Coef::Host(if p.root { sum.sqrt() } else { *sum }))
        };
        let steps: Vec<Step> = pending.iter().zip(&sums).map(value).collect();
        steps.chunks(crate::compute::scalar::MOST_STEPS).for_each(|s| self.local.scalars(s));
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
            self.reductions.set(self.reductions.get() + 1);
            let all = self.timed(|| self.communicator.all_gather(&own, &counts));
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
        let start = self.local.mark();
        let result = work();
        let seconds = self.local.seconds(&start, &self.local.mark());
        self.seconds[0].set(self.seconds[0].get() + seconds);
        result
    }

    fn parts(&self) -> usize {
        self.starts.len() - 1
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
        self.need_of(&[a, b], &[]);
        self.local.axpby(a, x, b, y);
    }

    fn scale(&self, a: Coef, x: &mut K::Vector) {
        self.need_of(&[a], &[]);
        self.local.scale(a, x);
    }

    fn dot(&self, x: &K::Vector, y: &K::Vector, out: Slot) {
        let mut partial = vec![0.0; self.parts()];
        self.local.partial_dots(x, y, &self.starts, &mut partial);
        self.later(out, false, partial);
    }

    fn norm(&self, x: &K::Vector, out: Slot) {
        let mut partial = vec![0.0; self.parts()];
        self.local.partial_dots(x, x, &self.starts, &mut partial);
        self.later(out, true, partial);
    }

    fn multi_dot(&self, basis: &[K::Vector], w: &K::Vector, out: Slot) {
        let parts = self.parts();
        let mut partial = vec![0.0; parts * basis.len()];
        self.local.partial_multi_dots(basis, w, &self.starts, &mut partial);
        for (j, partial) in partial.chunks(parts).enumerate() {
            self.later(out.plus(j), false, partial.to_vec());
        }
    }

    fn multi_axpy_norm(&self, basis: &[K::Vector], coef: Slot, w: &mut K::Vector, norm_out: Slot) {
        let mut coefficients = vec![0.0; basis.len()];
        self.read(coef, &mut coefficients);
        let mut partial = vec![0.0; self.parts()];
        self.local.partial_multi_axpy(basis, &coefficients, w, &self.starts, &mut partial);
        self.later(norm_out, true, partial);
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
        self.local.ratio(out, num, den);
    }

    fn scalars(&self, steps: &[Step]) {
        for step in steps {
            self.need_of(&[step.a, step.b], &[step.out]);
        }
        self.local.scalars(steps);
    }

    fn read(&self, first: Slot, out: &mut [f64]) {
        let slots = first.0..first.plus(out.len()).0;
        self.need(|slot| slots.contains(&slot.0));
        self.local.read(first, out);
    }
}
