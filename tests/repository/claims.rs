//! The verdicts of `configs/*/claims.toml` follow from the committed records, and the sentences of pages have the
//! numbers of the records.

use std::path::Path;

use bilu_bench::config::claims::{self, Verdict};
use bilu_bench::config::library::Library;
use bilu_bench::report::claims::{Files, in_page, judge};

/// Pages with the verdicts of a paper.
const PAGES: [(&str, &str); 7] = [
    ("yang", "docs/yang.md"),
    ("luo", "docs/luo.md"),
    ("almouhamed", "docs/almouhamed.md"),
    ("gupta", "docs/gupta.md"),
    ("obstacle", "docs/obstacle.md"),
    ("trisolve", "docs/triangular-solve.md"),
    ("peers", "docs/peers.md"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_verdict_follows_from_the_records() {
    let library = Library::Embedded;
    let files = Files::below(root(), &library);
    let all = claims::of(&library, None).unwrap();
    let papers: Vec<&str> = all.iter().map(|own| own.paper.as_str()).collect();
    for (paper, _) in PAGES {
        assert!(papers.contains(&paper), "{paper}");
    }
    let mut counts = [0; 4];
    for claim in all.iter().flat_map(|own| &own.claims) {
        let judged = judge(claim, &files).unwrap_or_else(|e| panic!("{e}"));
        judged.check().unwrap_or_else(|e| panic!("{e} ({})", e.hint_text().unwrap_or_default()));
        let place = Verdict::NAMES.iter().position(|(_, verdict)| *verdict == judged.verdict);
        counts[place.unwrap()] += 1;
    }
    // reproduced, exceeded, contradicted, missing
    assert_eq!(counts, [31, 16, 33, 5]);
}

#[test]
fn a_wrong_verdict_fails() {
    let library = Library::Embedded;
    let files = Files::below(root(), &library);
    let text = std::fs::read_to_string(root().join("configs/yang/claims.toml")).unwrap();
    let wrong = text.replace("\"contradicted\"", "\"reproduced\"");
    let claims = claims::parse("yang", "claims.toml", &wrong).unwrap();
    let checks = claims.claims.iter().map(|claim| judge(claim, &files).unwrap().check());
    let errors: Vec<String> = checks.filter_map(|c| Some(c.err()?.to_string())).collect();
    assert_eq!(errors.len(), text.matches("\"contradicted\"").count());
    let first =
        "claim `iterations-level-rule` is stated as reproduced, but the records say contradicted";
    assert!(errors[0].ends_with(first), "{errors:?}");
}

#[test]
fn sentences_have_the_numbers_of_the_records() {
    let library = Library::Embedded;
    let files = Files::below(root(), &library);
    let mut count = 0;
    for own in claims::of(&library, None).unwrap() {
        for claim in own.claims.iter().chain(&own.sentences) {
            for (file, text) in judge(claim, &files).unwrap().texts().unwrap() {
                let page = std::fs::read_to_string(root().join(file)).unwrap();
                assert!(page.contains(&text), "{file} does not say `{text}` ({})", claim.id);
                count += 1;
            }
        }
    }
    assert!(count > 20, "{count}");
}

/// `BILU_BENCH_WRITE_DOCS=1 cargo test --test repository claims` writes the tables.
#[test]
fn pages_have_the_verdicts() {
    let library = Library::Embedded;
    let files = Files::below(root(), &library);
    for (paper, page) in PAGES {
        let path = root().join(page);
        let text = std::fs::read_to_string(&path).unwrap();
        let claims = claims::of(&library, Some(paper)).unwrap();
        let current = in_page(&text, &claims[0], &files).unwrap_or_else(|e| panic!("{page}: {e}"));
        if std::env::var_os("BILU_BENCH_WRITE_DOCS").is_some() {
            std::fs::write(&path, &current).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text == current, "{page}: the verdicts are not current");
    }
}

#[test]
fn the_command_shows_verdicts_and_says_what_is_not_there() {
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_bilu-bench"));
        let output = command.arg("claims").args(arguments).current_dir(root()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, _) = run(&["yang", "--format", "csv"]);
    assert_eq!(code, Some(0));
    assert!(out.lines().next().unwrap().starts_with("paper,id,where,claim,verdict,"), "{out}");
    assert!(out.contains("yang,iterations-table1,\"Table 1, column Iteration\""), "{out}");
    let (code, _, err) = run(&["yang", "--root", "/nowhere"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("no folder `results` in `/nowhere`"), "{err}");
    let (code, _, err) = run(&["yagn"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("did you mean `yang`?"), "{err}");
}
