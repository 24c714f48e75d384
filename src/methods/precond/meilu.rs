//! Multi-elimination ILU (Saad 1996; Gupta et al. 2015): a maximal independent set of rows is
//! eliminated exactly, `A = [D F; E C]` with a diagonal D, then one of `C - E D^-1 F`, and so on; what
//! is left is solved with a simpler preconditioner.

use super::bilu::room;
use super::options::{COLOURING, Parameter, Range};
use super::ordered::{self, Change, Plan};
use super::work::{Phased, host, rows};
use super::{Method, Phase, Ready, Setup, Variants, jacobi};
use crate::compute::Backend;
use crate::compute::preconditioner::SetupFailure;
use crate::matrix::pattern::block_pattern_on;
use crate::symbolic::{
    Colouring, Eliminated, Rest, eliminated as eliminated_cells, multi_elimination, symmetrised,
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "levels",
        default: "1",
        range: Range::Whole(1, 8),
        summary: "independent sets that are eliminated one after the other",
    },
    Parameter {
        key: "last",
        default: jacobi::METHOD.name,
        range: Range::Words(&[jacobi::METHOD.name, "sgs", "ilu"]),
        summary: "for what is left: block Jacobi, multicolour SGS or multicolour ILU(0,1)",
    },
    COLOURING,
];

pub(crate) const METHOD: Method = Method {
    name: "meilu",
    summary: "multi-elimination ILU with maximal independent sets",
    parameters: PARAMETERS,
    work: Phased {
        symbolic: Some(host("independent sets, what is left of them, its colours")),
        analysis: Some(host("factors laid out colour by colour")),
        numeric: Some(rows("A put in order, then factored")),
    },
    variants: Variants {
        all: &["", "last=sgs", "last=ilu"],
        compared: &["last=ilu,colouring=first-fit", "levels=3,last=ilu"],
        ..Variants::PLAIN
    },
    ..ordered::BASE
};

#[allow(clippy::needless_pass_by_value)] // signature of the registry
pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    let options = s.options()?;
    let (levels, last) = (options.whole("levels"), options.word("last").to_owned());
    let b = s.a.block_size();
    let how = Colouring::named(options.word("colouring"));
    let rest = if last == jacobi::METHOD.name { Rest::Diagonal } else { Rest::Coloured(how) };
    s.phases.begin(Phase::Symbolic);
    let [limit, each, free] = room(s.k, s.a);
    let found = s.k.on_host(|threads| {
        let stored = block_pattern_on(threads, s.a);
        if levels == 1
            && let Some(found) = eliminated_cells(threads, &stored, rest, limit)
        {
            return Ok((found, b == 1));
        }
        let point = symmetrised(threads, &stored);
        let mirrored = b == 1 && point.entries() == stored.entries();
        multi_elimination(threads, &point, levels, rest, limit).map(|found| (found, mirrored))
    });
    let (Eliminated { sets, pattern, sizes }, mirrored) =
        found.map_err(|at| SetupFailure::TooLarge { at, needed: each * at.entries, free })?;
    let change: Option<Change<K>> = match &*last {
        "sgs" => Some(Box::new(move |k, a| k.with_gauss_seidel(a, &sizes))),
        _ => None,
    };
    ordered::setup(s, Plan { sets, pattern, mirrored: !mirrored, change })
}
