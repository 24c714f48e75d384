//! Checks before a result file is opened for writing: matrices that cannot be read, right-hand sides that do not
//! fit, blocks that are too large, records of other systems.

use itertools::Itertools as _;

use crate::base::error::{Error, Kind, Result};
use crate::base::units::plural;
use crate::bench::engine::{Observer, Runner, Solvers, check_block_sizes, one_system};
use crate::bench::run;
use crate::case::Case;
use crate::matrix::cache::Cache;
use crate::matrix::hash::{matrix_hash, vector_hash};
use crate::problem::{self, Folders, Problem, Source};
use crate::record::{Record, contents};

/// The records of a result file that is resumed.
#[derive(Clone, Debug)]
pub(crate) struct Earlier {
    pub file: String,
    pub records: Vec<Record>,
}

/// A matrix that cannot be used, and why.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    /// Its name in the cases.
    pub matrix: String,
    /// The error of the matrix or its right-hand side.
    pub error: Box<Error>,
}

/// Loads every system of `cases` that is in a file, one after the other, and checks what is asked of it.
/// Generated ones are built if that is cheap, and otherwise at a smaller size. The system of
/// `first`, the case that runs first, is loaded last and, with `keep`, stays in `solvers`, so that one system
/// alone is not read twice. Stops early when `going` returns false.
///
/// # Errors
/// At the first system that is invalid or differs from that of its earlier records. A system that does not fit
/// into memory is not an error: it yields a record.
pub(crate) fn check(
    cases: &[Case],
    first: Option<&Case>,
    earlier: &[Earlier],
    keep: bool,
    solvers: &mut Solvers,
    observer: &mut dyn Observer,
    going: &dyn Fn() -> bool,
) -> Result<(), Broken> {
    let mut systems: Vec<&Case> = Vec::new();
    for case in cases {
        let new = !systems.iter().any(|known| one_system(known, case));
        let is_step = first_step(cases, case).is_some_and(|first| !one_system(first, case));
        // of later steps those with records, whose systems must be the same
        let has_record = || earlier.iter().any(|of| of.records.iter().any(|r| r.case == *case));
        if new && (!is_step || has_record()) {
            systems.push(case);
        }
    }
    for case in cases.iter().unique_by(|case| &case.rhs) {
        let columns = problem::several::stated_columns(&case.rhs).unwrap_or(1);
        let broken = |error| Broken { matrix: case.matrix.clone(), error: Box::new(error) };
        let of_rhs = cases.iter().filter(|other| other.rhs == case.rhs);
        check_columns(of_rhs, columns).map_err(broken)?;
    }
    check_steps(cases, going)?;
    // the one that runs first comes last
    systems.sort_by_key(|system| first.is_some_and(|first| one_system(system, first)));
    for system in systems {
        if !going() {
            break;
        }
        let first = first.filter(|first| one_system(system, first));
        let of = System { case: first.unwrap_or(system), cases, earlier };
        let keep = keep && first.is_some();
        let checked = of.check(keep, solvers, observer);
        let broken = |error| Broken { matrix: system.matrix.clone(), error: Box::new(error) };
        solvers.kept = checked.map_err(broken)?.map(|problem| (system.clone(), problem));
    }
    Ok(())
}

/// The first of `cases` that is of the sequence of `case`; `None` where that is of none.
fn first_step<'a>(cases: &'a [Case], case: &Case) -> Option<&'a Case> {
    let alike = |other: &&Case| !case.sequence.is_empty() && other.sequence == case.sequence;
    cases.iter().find(alike)
}

/// Looks at the sizes of all steps in files that are not read before it is their turn, and whether each has the
/// right-hand side that it needs.
///
/// # Errors
/// At the first file with another size than that of the first step, or without its right-hand side.
fn check_steps(cases: &[Case], going: &dyn Fn() -> bool) -> Result<(), Broken> {
    for first in cases.iter().filter(|case| is_first(cases, case)) {
        let own: Vec<&Case> = cases.iter().filter(|c| c.sequence == first.sequence).collect();
        let with_rhs = own.iter().any(|case| case.rhs == "own");
        let mut size = None;
        for (number, matrix) in own.iter().map(|case| &case.matrix).unique().enumerate() {
            if !going() {
                return Ok(());
            }
            let found = problem::sequence::check_step(matrix, number, size, with_rhs);
            let broken = |error| Broken { matrix: matrix.clone(), error: Box::new(error) };
            size = size.or(found.map_err(broken)?);
        }
    }
    Ok(())
}

/// Refuses cases that cannot be solved for so many right-hand sides; those of solvers for one have a row that says
/// so where another solver of the sweep can.
fn check_columns<'a>(cases: impl Iterator<Item = &'a Case>, columns: usize) -> Result<()> {
    if columns <= 1 {
        return Ok(());
    }
    let (mut solved, mut first) = (false, None);
    for case in cases {
        match run::several::refused(case, columns) {
            Some(why) if run::several::solver_alone(case) => first = first.or(Some(why)),
            Some(why) => return Err(Error::input(why)),
            None => solved = true,
        }
    }
    match first.filter(|_| !solved) {
        Some(why) => Err(Error::input(why)),
        None => Ok(()),
    }
}

fn is_first(cases: &[Case], case: &Case) -> bool {
    first_step(cases, case).is_some_and(|first| std::ptr::eq(first, case))
}

/// One system of the cases.
struct System<'a> {
    case: &'a Case,
    cases: &'a [Case],
    earlier: &'a [Earlier],
}

impl System<'_> {
    /// Loads and checks it; returns it if it is to be kept.
    fn check(
        &self,
        keep: bool,
        solvers: &mut Solvers,
        observer: &mut dyn Observer,
    ) -> Result<Option<Problem>> {
        let source = Source::find(&self.case.matrix, &Folders::from_env())?;
        let fits = |rhs: &&str| !rhs.starts_with("file:");
        let small = match source.in_small(!run::divided(self.case)) {
            // it will be a record
            Err(why) if why.kind() == Kind::Memory => return Ok(None),
            small => small?.filter(|_| !keep && self.right_hand_sides().iter().all(fits)),
        };
        if let Some(small) =
            small.and_then(|small| small.load(self.case.read_as, &Cache::off()).ok())
        {
            // what is wrong with its arguments would have shown; its size is none of the system's
            for spec in self.right_hand_sides() {
                self.right_hand_side(&small, spec)?;
            }
            return Ok(None);
        }
        observer.loading(&self.case.matrix);
        let mut problem = None;
        let loaded = match solvers.ranks(self.case) {
            Some(ranks) => ranks.load(self.case).map(|of| (of.n, of.nnz, Some(of.matrix_hash))),
            None => solvers.load(self.case).map(|loaded| {
                let (n, nnz) = (loaded.matrix.rows(), loaded.matrix.nnz());
                let hash = (!self.earlier.is_empty()).then(|| matrix_hash(&loaded.matrix));
                problem = Some(loaded);
                (n, nnz, hash)
            }),
        };
        let (n, nnz, hash) = match loaded {
            // the next one may be smaller
            Err(why) if why.kind() == Kind::Memory => return Ok(None),
            loaded => loaded?,
        };
        check_block_sizes(self.cases, &self.case.matrix, n)?;
        let mut record = Record { case: self.case.clone(), ..Record::default() };
        (record.size.n, record.size.nnz, record.hash.matrix_hash) = (n, nnz, hash);
        for spec in self.right_hand_sides() {
            let hash = match &problem {
                Some(problem) => vector_hash(&self.right_hand_side(problem, spec)?),
                None => solvers.ranks.ranks.right_hand_side(spec)?,
            };
            spec.clone_into(&mut record.case.rhs);
            record.hash.rhs_hash = Some(hash);
            for Earlier { file, records } in self.earlier {
                contents::refuse_others(file, records.iter(), &record)?;
            }
        }
        for Earlier { file, records } in self.earlier {
            let count = contents::unchecked(records.iter(), &record);
            if count > 0 {
                let (name, count) = (&self.case.matrix, plural(count, "record"));
                observer.remark(&format!(
                    "{file}: {count} of `{name}` without a hash: of the matrix only n and nnz are compared"
                ));
            }
        }
        if !keep {
            solvers.ranks.clear()?;
        }
        Ok(problem.filter(|_| keep))
    }

    /// The right-hand sides that `spec` names, where every case that has them can be solved for so many.
    fn right_hand_side(&self, problem: &Problem, spec: &str) -> Result<Vec<f64>> {
        let b = problem::right_hand_sides(problem, spec)?;
        let columns = b.len() / problem.matrix.rows().max(1);
        let cases = self.cases.iter().filter(|case| one_system(case, self.case));
        check_columns(cases.filter(|case| case.rhs == spec), columns).map(|()| b)
    }

    /// The right-hand sides of its cases, each once.
    fn right_hand_sides(&self) -> Vec<&str> {
        let cases = self.cases.iter().filter(|case| one_system(case, self.case));
        cases.map(|case| &*case.rhs).unique().collect()
    }
}
