use super::*;

const GOOD: &str = r#"
title = "A paper"
[[claim]]
id = "a"
source = "Table 1"
says = "it is fast"
verdict = "reproduced"
measured = "{min} times"
rows.cpu = { file = "results/a.csv", where = "backend=cpu k>=1" }
rows.gpu = { file = ["results/a.csv", "results/b.csv"], where = "backend!=cpu", least = "gpu.solve-s" }
per = ["fill|k"]
value = "cpu.solve-s / gpu.solve-s"
holds = "min > 1"

[[claim]]
id = "b"
source = "Table 2"
says = "it is large"
verdict = "missing"
missing = "needs a GPU"
"#;

fn error(from: &str, to: &str) -> Error {
    assert!(GOOD.contains(from), "{from}");
    parse("p", "claims.toml", &GOOD.replace(from, to)).unwrap_err()
}

#[test]
fn a_file_is_read() {
    let claims = parse("p", "claims.toml", GOOD).unwrap();
    assert_eq!((claims.title.as_str(), claims.claims.len()), ("A paper", 2));
    let Basis::Records(evidence) = &claims.claims[0].basis else { panic!() };
    assert_eq!(evidence.sets.len(), 2);
    assert_eq!(evidence.per, [["fill", "k"]]);
    let Basis::Missing(reason) = &claims.claims[1].basis else { panic!() };
    assert_eq!(reason, "needs a GPU");
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let message = |from: &str, to: &str| error(from, to).to_string();
    assert_eq!(
        message("says = \"it is f", "sais = \"it is f"),
        "claims.toml:6:1: unknown key `sais`"
    );
    assert_eq!(
        message("\"reproduced\"", "\"reproducd\""),
        "claims.toml:7:11: unknown verdict `reproducd`"
    );
    assert_eq!(
        message("cpu.solve-s /", "cpv.solve-s /"),
        "claims.toml:12:9: unknown row set `cpv`"
    );
    assert_eq!(
        message("gpu.solve-s\"\nholds", "gpu\"\nholds"),
        "claims.toml:12:9: expected a number or set.column in `cpu.solve-s / gpu` before ``"
    );
    assert_eq!(message("min > 1", "min is 1"), "claims.toml:13:9: `min is 1` is no condition");
    assert_eq!(message("{min}", "{least}"), "claims.toml:8:1: unknown summary `least`");
    assert_eq!(
        message("backend=cpu k", "backend k"),
        "claims.toml:9:46: `backend` is no condition on a column"
    );
    assert_eq!(
        message("missing = \"needs", "caveat = \"needs"),
        "claims.toml:15:1: a claim needs `missing`"
    );
    assert_eq!(message("id = \"b\"", "id = \"a\""), "claims.toml:15: claim `a` is given twice");
    assert_eq!(message("holds = ", "exceeds = "), "claims.toml:3:1: a claim needs `holds`");
}

#[test]
fn filters_compare_text_and_numbers() {
    let accepts = |word: &str, cell: &str| Filter::parse(word).unwrap().accepts(cell);
    assert!(accepts("k=1|2", "2.0") && !accepts("k=1|2", "3"));
    assert!(accepts("m!=a", "b") && !accepts("m!=a|b", "b"));
    assert!(accepts("matrix=poisson3d:4,px=3", "poisson3d:4,px=3"));
    assert!(accepts("m~bias=half", "x,bias=half") && accepts("m!~bias", "x"));
    assert!(accepts("n>=1e3", "1000") && !accepts("n<=10", "") && accepts("n<=10", "-2"));
}
