//! Multicolour ILU(p,q) by the power(q)-pattern method (Lukarski 2012): rows are ordered by the colours
//! of `(|A| + |A'|)^q`, whose entries within a colour are then diagonal, and ILU(p) keeps to that pattern. A
//! colour is a level of the triangular solves.

use super::bilu::room;
use super::options::{COLOURING, Parameter, Range};
use super::ordered::{self, Plan};
use super::work::{Phased, host, rows};
use super::{Advised, Method, Phase, Ready, Setup, Variants};
use crate::base::choices::LevelRule;
use crate::compute::Backend;
use crate::compute::preconditioner::SetupFailure;
use crate::matrix::pattern::{Pattern, TooLarge, block_pattern_on, permuted};
use crate::symbolic::{
    Colouring, FillPattern, Schedule, coloured, colours_of_power, iluk_on, power,
    reordered_triangles, symmetrised, triangles,
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "p",
        default: "0",
        range: Range::Whole(0, 16),
        summary: "fill level of ILU(p)",
    },
    Parameter {
        key: "q",
        default: "0",
        range: Range::Whole(0, 17),
        summary: "power of the pattern that is coloured and that fill keeps to; 0: p + 1",
    },
    Parameter {
        key: "pattern",
        default: "levels",
        range: Range::Words(&["levels", "power"]),
        summary: "levels: fill of ILU(p) within (|A| + |A'|)^q; power: all of it",
    },
    COLOURING,
];

pub(crate) const METHOD: Method = Method {
    name: "mcilu",
    summary: "multicolour block ILU(p,q) by the power(q)-pattern method",
    parameters: PARAMETERS,
    work: Phased {
        symbolic: Some(host("colours, order and fill")),
        analysis: Some(host("factors laid out colour by colour")),
        numeric: Some(rows("A put in order, then factored")),
    },
    variants: Variants {
        all: &["", "p=1"],
        advised: Advised::Always(&["", "p=1"]),
        compared: &["p=1,colouring=first-fit", "p=2,pattern=power"],
    },
    ..ordered::BASE
};

pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    let options = s.options()?;
    let p = options.whole("p");
    let q = match options.whole("q") {
        0 => p + 1,
        q => q,
    };
    let levels = options.word("pattern") == "levels";
    let how = Colouring::named(options.word("colouring"));
    s.phases.begin(Phase::Symbolic);
    let [limit, each, free] = room(s.k, s.a);
    let found = s.k.on_host(|threads| -> Result<_, TooLarge> {
        let point = block_pattern_on(threads, s.a);
        if levels && let Some(found) = coloured(threads, &point, [p, q], how, limit) {
            return Ok(found);
        }
        let coupled = symmetrised(threads, &point);
        let sets =
            Schedule::from_levels_on(threads, &colours_of_power(threads, &coupled, q, how, limit)?);
        if levels && p == 0 && coupled.entries() == point.entries() {
            // all diagonals are there, and no entry is added
            let pattern = reordered_triangles(threads, &point, &sets.rows);
            return Ok((sets, pattern));
        }
        let arranged = permuted(threads, &point, &sets.rows);
        let reach = |limit| power(threads, &arranged, q, limit);
        let pattern = match (levels, q > p) {
            // the path of an entry of level p has p + 1 steps: it is in the power
            (true, true) => iluk_on(threads, &arranged, p, LevelRule::Min, limit)?,
            (true, false) => {
                within(&iluk_on(threads, &arranged, p, LevelRule::Min, limit)?, &reach(limit)?)
            }
            (false, _) => triangles(threads, &reach(limit)?),
        };
        Ok((sets, pattern))
    });
    let (sets, pattern) =
        found.map_err(|at| SetupFailure::TooLarge { at, needed: each * at.entries, free })?;
    ordered::setup(s, Plan { sets, pattern, mirrored: false, change: None })
}

/// The entries of both triangles that `p` holds.
fn within(triangles: &FillPattern, p: &Pattern) -> FillPattern {
    let part = |t: &Pattern| {
        let (mut row_ptr, mut col_ind) = (vec![0], Vec::new());
        for i in 0..t.rows() {
            let inside = |j: &&u32| p.row(i).binary_search(j).is_ok();
            col_ind.extend(t.row(i).iter().filter(inside));
            row_ptr.push(col_ind.len() as u32);
        }
        Pattern::new(row_ptr, col_ind).in_blocks(t.block_size())
    };
    FillPattern::new(part(&triangles.lower), part(&triangles.upper), triangles.no_diagonal.clone())
}
