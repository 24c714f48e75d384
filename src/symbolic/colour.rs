//! Colours and independent sets of the graph of a pattern.
//!
//! Both go through the rows in their order and take what the rows before left: the first colour that
//! no neighbour has, or the set where no neighbour is in it. Threads take consecutive rows in turn, and a
//! row waits for its lower neighbours alone: the result is that of one thread.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::{Lattice, power};
use crate::base::threads::{Threads, on_each};
use crate::matrix::pattern::{Pattern, PatternView, TooLarge};

/// Rows that a thread takes at a time: a few lines of a grid, behind which the next thread follows.
const CHUNK: usize = 512;

/// A number that is not found yet.
const UNKNOWN: u32 = u32::MAX;

/// Looks at a number that is to come before the thread lets another one run.
const SPINS: usize = 1 << 10;

/// The colour of each row, from 0, first fit: rows that `p` couples have different ones. The pattern
/// must be symmetric.
pub fn colours(threads: Threads, p: &Pattern) -> Vec<u32> {
    visit(threads, p, |p, colour, i| {
        // as many neighbours, so many colours at most are taken
        let mut taken = [0_u64; 4];
        let mut beyond = Vec::new();
        for &j in p.row(i).iter().take_while(|&&j| (j as usize) < i) {
            let c = colour.of(j);
            match taken.get_mut(c as usize / 64) {
                Some(word) => *word |= 1 << (c % 64),
                None => beyond.push(c),
            }
        }
        let free = taken.iter().enumerate().find(|(_, word)| **word != u64::MAX);
        free.map_or_else(
            || {
                (256..=p.row_ptr.len() as u32)
                    .find(|c| !beyond.contains(c))
                    .expect("fewer colours than rows")
            },
            |(at, word)| 64 * at as u32 + word.trailing_ones(),
        )
    })
}

/// How colours are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colouring {
    /// The first colour that no neighbour has.
    FirstFit,
    /// A linear form of the coordinates, for stencils on a box; else, or where that takes more colours, first
    /// fit.
    Lattice,
}

impl Colouring {
    /// Names of the ways, as parameters of preconditioners have them; the first is the usual one.
    pub const NAMES: &'static [&'static str] = &["lattice", "first-fit"];

    /// The way called `name`, one of [`Colouring::NAMES`].
    pub fn named(name: &str) -> Self {
        if name == "first-fit" { Self::FirstFit } else { Self::Lattice }
    }
}

/// The colour of each row of `|A|^q`, q >= 1, where `coupled` is the pattern of A, symmetric and with all
/// diagonals. `limit` bounds the entries of that power, which a lattice does without.
///
/// # Errors
/// [`TooLarge`] when the limit is passed.
pub fn colours_of_power(
    threads: Threads,
    coupled: &Pattern,
    q: usize,
    how: Colouring,
    limit: usize,
) -> Result<Vec<u32>, TooLarge> {
    let found = match how {
        Colouring::Lattice => Lattice::of_power(coupled, q),
        Colouring::FirstFit => None,
    };
    if let Some((lattice, couplings)) = &found
        && sure(lattice, q, *couplings)
    {
        return Ok(lattice.colours_of_all(threads));
    }
    let fitted = match q {
        1 => colours(threads, coupled),
        _ => colours(threads, &power(threads, coupled, q, limit)?),
    };
    let lattice = found.as_ref().map(|(lattice, _)| lattice);
    Ok(fewer(fitted, lattice, |lattice| lattice.colours_of_all(threads)))
}

/// Whether first fit need not be tried, for `|A|^q` and so many couplings of a row.
pub(super) fn sure(lattice: &Lattice, q: usize, couplings: usize) -> bool {
    // two colours of a grid are those of first fit, which seldom finds as few as half a row's couplings
    match q {
        1 => lattice.colours <= 2,
        _ => 2 * lattice.colours <= couplings,
    }
}

/// What first fit has found, or the colours `of` a lattice with fewer of them.
pub(super) fn fewer(
    fitted: Vec<u32>,
    lattice: Option<&Lattice>,
    of: impl FnOnce(&Lattice) -> Vec<u32>,
) -> Vec<u32> {
    let count = fitted.iter().max().map_or(0, |c| *c as usize + 1);
    lattice.filter(|lattice| lattice.colours < count).map(of).unwrap_or(fitted)
}

/// Whether each row is in the maximal independent set that takes rows in their order. The pattern must
/// be symmetric.
pub(crate) fn independent_set(threads: Threads, p: &Pattern) -> Vec<bool> {
    let inside = visit(threads, p, |p, inside, i| {
        let mut before = p.row(i).iter().take_while(|&&j| (j as usize) < i);
        u32::from(!before.any(|&j| inside.of(j) == 1))
    });
    inside.into_iter().map(|v| v == 1).collect()
}

/// Finds a number for each row from those of its lower neighbours.
fn visit(
    threads: Threads,
    p: &Pattern,
    number: impl Fn(PatternView, Numbers, usize) -> u32 + Sync,
) -> Vec<u32> {
    let n = p.rows();
    let found: Vec<AtomicU32> = (0..n).map(|_| AtomicU32::new(UNKNOWN)).collect();
    let (view, numbers) = (p.view(), Numbers(&found));
    let of = |i: usize| found[i].store(number(view, numbers, i), Ordering::Relaxed);
    if threads == Threads::Pool && n > CHUNK && rayon::current_num_threads() > 1 {
        let next = AtomicUsize::new(0);
        // chunks begin in their order: what a row waits for is done, or being done by a running thread
        on_each(|_| {
            loop {
                let first = next.fetch_add(CHUNK, Ordering::Relaxed);
                if first >= n {
                    break;
                }
                (first..(first + CHUNK).min(n)).for_each(of);
            }
        });
    } else {
        (0..n).for_each(of);
    }
    found.into_iter().map(AtomicU32::into_inner).collect()
}

/// Numbers of rows, each of which is all that is told of its row: nothing else is ordered by it.
#[derive(Clone, Copy)]
struct Numbers<'a>(&'a [AtomicU32]);

impl Numbers<'_> {
    /// That of row j; waits for it.
    #[inline]
    fn of(self, j: u32) -> u32 {
        let number = &self.0[j as usize];
        let mut looks = 0;
        loop {
            match number.load(Ordering::Relaxed) {
                UNKNOWN => {}
                known => return known,
            }
            looks += 1;
            if looks % SPINS == 0 {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::base::choices::ReadAs;
    use crate::matrix::pattern::block_pattern;
    use crate::problem::load;
    use crate::symbolic::power;

    fn pattern(spec: &str, q: usize) -> Pattern<'static> {
        let a = load(spec, ReadAs::Expanded).unwrap().matrix;
        power(Threads::One, &block_pattern(&a), q, usize::MAX).unwrap()
    }

    /// Couplings between rows of one colour.
    pub(in crate::symbolic) fn coupled_alike(p: &Pattern, colour: &[u32]) -> usize {
        let alike = |i: usize| {
            p.row(i).iter().filter(move |&&j| j as usize != i && colour[j as usize] == colour[i])
        };
        (0..p.rows()).map(|i| alike(i).count()).sum()
    }

    #[test]
    fn coupled_rows_have_different_colours() {
        for (spec, q, count) in [
            ("poisson3d:9x8x7", 1, 2),
            ("poisson3d:9x8x7", 2, 8),
            ("fem-p1:20x30", 1, 3),
            ("fem-p1:20x30", 2, 9),
            ("poisson3d:40x1x1", 3, 4),
        ] {
            let p = pattern(spec, q);
            let colour = colours(Threads::One, &p);
            assert_eq!(coupled_alike(&p, &colour), 0, "{spec}, q {q}");
            let used = colour.iter().max().unwrap() + 1;
            assert!(used >= count && used <= 2 * count, "{spec}, q {q}: {used} colours");
            if q == 1 && spec.starts_with("poisson") {
                assert_eq!(used, 2);
            }
        }
    }

    #[test]
    fn colours_beyond_a_few_hundred_are_found_too() {
        // all coupled to all
        let n = 300_u32;
        let p = Pattern::new(
            (0..=n).map(|i| i * n).collect::<Vec<_>>(),
            (0..n * n).map(|e| e % n).collect::<Vec<_>>(),
        );
        assert!(colours(Threads::One, &p).into_iter().eq(0..n));
        let set = independent_set(Threads::One, &p);
        assert!(set[0] && set[1..].iter().all(|inside| !inside));
    }

    #[test]
    fn sets_are_independent_and_maximal() {
        for q in [1, 2] {
            let p = pattern("fem-p1:20x30", q);
            let inside = independent_set(Threads::One, &p);
            for i in 0..p.rows() {
                let near = p.row(i).iter().any(|&j| j as usize != i && inside[j as usize]);
                assert_ne!(inside[i], near, "row {i}");
            }
        }
    }

    #[test]
    fn any_number_of_threads_finds_the_same() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(5).build().unwrap();
        for (spec, q) in [("poisson3d:50x40x12", 1), ("poisson3d:70x9x8", 2), ("fem-p1:90x70", 3)] {
            let p = pattern(spec, q);
            assert!(p.rows() > 5 * CHUNK);
            for _ in 0..20 {
                let found = pool.install(|| colours(Threads::Pool, &p));
                assert_eq!(found, colours(Threads::One, &p), "{spec}, q {q}");
            }
            let found = pool.install(|| independent_set(Threads::Pool, &p));
            assert_eq!(found, independent_set(Threads::One, &p), "{spec}, q {q}");
        }
    }
}
