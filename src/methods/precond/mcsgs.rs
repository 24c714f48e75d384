//! Multicolour symmetric Gauss-Seidel (Gupta et al. 2015): `M = (D + L) D^-1 (D + U)` in the order of
//! the colours of A; with a relaxation w, SSOR: `(D + w L) D^-1 (D + w U) / (w (2 - w))`.

use super::options::{COLOURING, Parameter, Range};
use super::ordered::{self, Change, Plan};
use super::work::{Phased, host, rows};
use super::{Method, Phase, Ready, Setup, Variants};
use crate::compute::Backend;
use crate::matrix::pattern::block_pattern_on;
use crate::symbolic::{
    Colouring, Schedule, coloured, colours_of_power, reordered_triangles, symmetrised,
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "omega",
        default: "1",
        range: Range::Number(0.0, 2.0),
        summary: "relaxation; other than 1 it is SSOR",
    },
    COLOURING,
];

pub(crate) const METHOD: Method = Method {
    name: "mcsgs",
    summary: "multicolour symmetric Gauss-Seidel, SSOR with omega",
    parameters: PARAMETERS,
    work: Phased {
        symbolic: Some(host("colours and order")),
        analysis: Some(host("factors laid out colour by colour")),
        numeric: Some(rows("A put in order, D + L times D^-1 times D + U, factored")),
    },
    variants: Variants { compared: &["omega=1.3"], ..Variants::PLAIN },
    ..ordered::BASE
};

pub(super) fn setup<K: Backend + 'static>(s: Setup<K>) -> Ready<K> {
    let options = s.options()?;
    let (omega, how) = (options.number("omega"), Colouring::named(options.word("colouring")));
    let b = s.a.block_size();
    s.phases.begin(Phase::Symbolic);
    let (pattern, sets, mirrored) = s.k.on_host(|threads| {
        let stored = block_pattern_on(threads, s.a);
        if let Some((sets, pattern)) = coloured(threads, &stored, [0, 1], how, usize::MAX) {
            return (pattern, sets, b == 1);
        }
        let point = symmetrised(threads, &stored);
        let mirrored = b == 1 && point.entries() == stored.entries();
        let colours = colours_of_power(threads, &point, 1, how, usize::MAX);
        let sets = Schedule::from_levels_on(threads, &colours.expect("there is no power to find"));
        (reordered_triangles(threads, &point, &sets.rows), sets, mirrored)
    });
    let change: Change<K> = Box::new(move |k, a| k.gauss_seidel(a, omega));
    ordered::setup(s, Plan { sets, pattern, mirrored: !mirrored, change: Some(change) })
}
