//! Sweeps and their cases.

use super::*;

fn set(name: &str, words: &[&str]) -> Result<Sweep> {
    let mut sweep = Sweep::default();
    let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
    axis(name)?.set(&mut sweep, &words)?;
    Ok(sweep)
}

/// The cases of a sweep of these settings.
fn cases(settings: &[(&str, &str)]) -> Vec<Case> {
    let mut sweep = Sweep::default();
    for (name, words) in settings {
        axis(name).unwrap().set(&mut sweep, &[(*words).into()]).unwrap();
    }
    sweep.cases().unwrap()
}

/// The values of the settings `names` in each case.
fn texts(cases: &[Case], names: &str) -> Vec<String> {
    let axes: Vec<&Axis> = names.split(' ').map(|name| axis(name).unwrap()).collect();
    let text = |case| axes.iter().map(|a| (a.text)(case)).collect::<Vec<_>>().join(" ");
    cases.iter().map(text).collect()
}

#[test]
fn the_default_sweep_is_the_default_case() {
    assert_eq!(Sweep::default().cases().unwrap(), [Case::default()]);
}

#[test]
fn matrix_is_outermost_and_backend_innermost() {
    let cases = cases(&[("fill", "0..1"), ("matrix", "p:1,q:2"), ("backend", "cpu,cpu-mt")]);
    let want = "p:1 0 cpu; p:1 0 cpu-mt; p:1 1 cpu; p:1 1 cpu-mt; \
                q:2 0 cpu; q:2 0 cpu-mt; q:2 1 cpu; q:2 1 cpu-mt";
    assert_eq!(texts(&cases, "matrix fill backend").join("; "), want);
}

#[test]
fn sides_multiply_only_the_cases_of_solvers_that_have_them() {
    let cases = cases(&[("side", "left,right"), ("solver", "gmres,bicgstab,cg,qmr,correction")]);
    let want = "gmres left; gmres right; bicgstab right; cg right; qmr left; qmr right; \
                correction right";
    assert_eq!(texts(&cases, "solver side").join("; "), want);
    let alone = Sweep { side: Some(vec![Side::Left]), ..set("solver", &["cg"]).unwrap() };
    assert_eq!(alone.cases().unwrap()[0].side, Side::Right);
}

#[test]
fn settings_multiply_only_the_cases_in_which_they_change_something() {
    let of = cases(&[("precond", "bilu,jacobi,tns,isai"), ("fill", "1..2"), ("shift", "0,0.1")]);
    let want = "bilu 1 0; bilu 1 0.1; bilu 2 0; bilu 2 0.1; jacobi 1 0; jacobi 1 0.1; tns 1 0; \
                isai 1 0; isai 1 0.1; isai 2 0; isai 2 0.1";
    assert_eq!(texts(&of, "precond fill shift").join("; "), want);

    let of =
        cases(&[("solver", "gmres,cg"), ("restart", "10,20"), ("orthogonalisation", "mgs,cgs")]);
    let want = ["gmres 10", "gmres 10", "gmres 20", "gmres 20", "cg 10"];
    assert_eq!(texts(&of, "solver restart"), want);

    // on this system one stagnates and the other does not
    let of = cases(&[("matrix", "reservoir:8"), ("precond", "jacobi"), ("shift", "0,0.1")]);
    assert_eq!(texts(&of, "shift"), ["0", "0.1"]);

    // without fill there is no rule, and coloured factors and diagonals are of either precision
    assert_eq!(cases(&[("fill", "0..1"), ("level-rule", "min,overwrite")]).len(), 3);
    let of = [("precond", "none,mcilu,jacobi"), ("factor-precision", "float64,float32")];
    assert_eq!(cases(&of).len(), 5);
}

#[test]
fn a_right_hand_side_of_two_names_is_one() {
    let sweep = set("rhs", &["random,random:1,random:01,random:2"]).unwrap();
    assert_eq!(sweep.rhs.unwrap(), ["random", "random:2"]);
}

#[test]
fn triangular_solves_multiply_only_the_cases_that_have_them() {
    let of = |algorithms: &str, backends: &str| {
        let cases = cases(&[("trisolve", algorithms), ("backend", backends)]);
        texts(&cases, "backend trisolve").join("; ")
    };
    assert_eq!(of("levels,syncfree", "cpu,cuda"), "cpu auto; cuda levels; cuda syncfree");
    let each = registry::TRISOLVES.iter().filter(|t| !["auto", "all"].contains(&t.0));
    let each: Vec<String> = each.map(|(name, _)| format!("cuda {name}")).collect();
    let want = format!("cusparse auto; {}", each.join("; "));
    assert_eq!(of("all", "cusparse,cuda"), want);
    assert_eq!(of("levels", "cpu,cpu-mt"), "cpu auto; cpu-mt auto");
    assert_eq!(axis("trisolve").unwrap().canonical("levels").unwrap(), "levels");
    let error = axis("trisolve").unwrap().canonical("all").unwrap_err();
    assert_eq!(error.to_string(), "`all` is more than one value");
}

#[test]
fn styles_of_fgbilu_multiply_only_the_cases_that_have_them() {
    let cases = cases(&[
        ("fgbilu-style", "acc,cl"),
        ("precond", "bilu,fgbilu"),
        ("trisolve", "levels,syncfree"),
        ("backend", "cpu,cuda"),
    ]);
    assert_eq!(
        texts(&cases, "precond backend trisolve fgbilu-style"),
        [
            "bilu cpu auto auto",
            "bilu cuda levels auto",
            "bilu cuda syncfree auto",
            "fgbilu cpu auto auto",
            "fgbilu cuda auto acc",
            "fgbilu cuda auto cl",
        ]
    );
}

#[test]
fn settings_of_a_solve_do_not_multiply_products() {
    let kinds = [("kind", "spmv,solve"), ("matrix-format", "all"), ("fill", "0..1")];
    let mut cases = cases(&[&kinds[..], &[("rtol", "1e-3")]].concat());
    assert_eq!(cases.len(), 6 + 2 * 6);
    cases.retain(|c| c.kind == RunKind::Spmv);
    assert_eq!(
        texts(&cases, "matrix-format precond rtol"),
        ["csr", "bsr", "hyb", "sell", "dia", "bdia"].map(|f| format!("{f} none 1e-6"))
    );
}

#[test]
fn axes_are_all_settings_of_a_case() {
    let serde_json::Value::Object(case) = serde_json::to_value(Case::default()).unwrap() else {
        panic!("a case is an object");
    };
    let columns: Vec<&str> = case.keys().map(String::as_str).collect();
    let axes: Vec<&str> = AXES
        .iter()
        .map(|a| match a.name {
            "matrix-format" => "format",
            // the column `threads` is that of what was used
            "threads" => "threads-asked",
            name => name,
        })
        .collect();
    assert_eq!(axes, columns);
}

#[test]
fn every_axis_reads_back_the_text_of_the_default_case() {
    for axis in AXES {
        let text = (axis.text)(&Case::default());
        assert_eq!(axis.canonical(&text).unwrap(), text, "{}", axis.name);
    }
}

#[test]
fn bad_values_are_refused() {
    for (name, word, message) in [
        ("block-size", "0", "`0` is outside 1 to 128"),
        ("block-size", "129", "`129` is outside 1 to 128"),
        ("fill", "-1", "`-1` is outside 0 to 120"),
        ("restart", "0", "`0` is outside 1 to 506"),
        ("restart", "507", "`507` is outside 1 to 506"),
        ("max-iterations", "0", "`0` is outside 1 to 1000000000"),
        ("inner-rtol", "0", "`0` is outside the range: above 0 and below 1"),
        ("inner-rtol", "1", "`1` is outside the range: above 0 and below 1"),
        ("rtol", "1", "`1` is outside the range: at least 0 and below 1"),
        ("shift", "-0.1", "`-0.1` is outside the range: 0 to 1e6"),
        ("shift", "nan", "`nan` is outside the range: 0 to 1e6"),
        ("shift", "serach", "`serach` is not a number"),
        ("drop-tolerance", "-1e-3", "`-1e-3` is outside the range: 0 to 1e6"),
        ("drop-tolerance", "NaN", "`NaN` is outside the range: 0 to 1e6"),
        (
            "precond",
            "ilut:tau=-1",
            "`ilut`: `tau=-1` is outside the range: above 0 and below 1000000",
        ),
        (
            "precond",
            "ilut:tau=nan",
            "`ilut`: `tau=nan` is outside the range: above 0 and below 1000000",
        ),
        (
            "precond",
            "ilut:p=-2",
            "`ilut`: `p=-2` is outside the range: whole numbers from 0 to 1000000",
        ),
        ("scaling", "cols", "unknown scaling `cols`"),
        ("solver", "gmers", "unknown solver `gmers`"),
        ("precond", "billu", "unknown preconditioner `billu`"),
        ("backend", "gpu9", "unknown backend `gpu9`"),
        ("trisolve", "level", "unknown algorithm of triangular solves `level`"),
        ("level-rule", "max", "unknown level rule `max`"),
        ("ordering", "rmc", "unknown ordering `rmc`"),
        ("rhs", "twos", "unknown right-hand side `twos`"),
        ("rhs", "random:x", "right-hand side `random:x`: `x` is not a seed"),
        ("rhs", "file:/no/such", "no such file `/no/such`"),
    ] {
        assert_eq!(set(name, &[word]).unwrap_err().to_string(), message);
    }
    assert_eq!(set("fill", &[]).unwrap_err().to_string(), "empty list");
    assert_eq!(axis("fil").unwrap_err().hint_text().unwrap()[..20], *"did you mean `fill`?");
}

#[test]
fn help_states_the_limits() {
    for (name, limit) in [
        ("block-size", MAX_BLOCK_SIZE),
        ("fill", MAX_FILL),
        ("restart", MAX_RESTART),
        ("max-iterations", MAX_ITERATIONS),
    ] {
        let help = axis(name).unwrap().help;
        assert!(help.ends_with(&format!(" to {limit}")), "{help}");
    }
}

#[test]
fn repetitions_are_named_and_kept_once() {
    let mut sweep = Sweep::default();
    let again = axis("fill").unwrap().set(&mut sweep, &["0..2,1".into(), "2".into()]).unwrap();
    assert_eq!((sweep.fill.unwrap(), again), (vec![0, 1, 2], vec!["1".into(), "2".into()]));
}

#[test]
fn too_large_a_sweep_is_refused_before_it_is_made() {
    let mut sweep = set("fill", &["0..100"]).unwrap();
    axis("max-iterations").unwrap().set(&mut sweep, &["1..1000".into()]).unwrap();
    assert_eq!(sweep.cases().unwrap_err().to_string(), "the sweep has more than 100000 cases");
}
