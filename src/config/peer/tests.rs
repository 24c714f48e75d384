//! Descriptions: what is read of them, what is refused, and the words of cases.

use super::*;
use crate::base::error::Result;
use crate::case::{Orthogonalisation, Shift, Side};
use crate::config::source::Source;

const GOOD: &str = r#"
summary = "A library"
command = ["python3", "peer.py"]
environment = { OMP_NUM_THREADS = "1" }
[solver]
cg = "pcg"
gmres = { word = "fgmres", side = { left = "L", right = "R" }, restart = "10..30" }
"external:direct" = {}
[precond]
none = "none"
bilu = { word = "ilu", fill = "0..2", block-size = [1, 4], shift = "any" }
"external:amg" = "boomeramg"
[advise]
cg = ["external:amg", "none"]
"external:direct" = "none"
"#;

fn parse(text: &str) -> Result<Peer> {
    let beside = |_: &str| unreachable!("no file is named");
    Peer::parse("lib", &Source { name: "lib.toml", text, folder: None, beside: &beside })
}

fn case(change: impl FnOnce(&mut Case)) -> Case {
    let mut case = Case { backend: "external:lib".into(), ..Case::default() };
    change(&mut case);
    case
}

#[test]
fn settings_are_put_into_the_words_of_the_peer() {
    let peer = parse(GOOD).unwrap();
    let words = |change: fn(&mut Case)| {
        let words = peer.words(&case(change))?;
        let texts: Vec<String> =
            words.iter().map(|(name, word)| format!("{name} {word}")).collect();
        Ok::<_, String>(texts.join(", "))
    };
    let plain = "solver fgmres, precond ilu, side R";
    assert_eq!(words(|_| {}).unwrap(), plain);
    let settings =
        |c: &mut Case| (c.fill, c.block_size, c.restart, c.shift) = (2, 4, 30, Shift::Fixed(0.125));
    assert_eq!(words(settings).unwrap(), plain);
    assert_eq!(words(|c| c.side = Side::Left).unwrap(), "solver fgmres, precond ilu, side L");
    // conjugate gradients have neither side nor restart
    let cg = |c: &mut Case| {
        (c.solver, c.precond) = ("cg".into(), "external:amg".into());
        (c.restart, c.fill) = (70, 3);
    };
    assert_eq!(words(cg).unwrap(), "solver pcg, precond boomeramg");
    let direct = |c: &mut Case| {
        (c.solver, c.precond) = ("external:direct".into(), "none".into());
    };
    assert_eq!(words(direct).unwrap(), "solver external:direct, precond none");
}

#[test]
fn what_is_not_declared_is_told() {
    let peer = parse(GOOD).unwrap();
    let told = |change: fn(&mut Case)| peer.words(&case(change)).unwrap_err();
    assert_eq!(
        told(|c| c.solver = "bicgstab".into()),
        "the peer `lib` has no solver `bicgstab`, but cg, gmres, external:direct"
    );
    assert_eq!(
        told(|c| c.precond = "external:gamg".into()),
        "the peer `lib` has no preconditioner `external:gamg`, but none, bilu, external:amg"
    );
    assert_eq!(told(|c| c.fill = 3), "`bilu` of the peer `lib` takes no fill 3, but 0..2");
    assert_eq!(
        told(|c| c.block_size = 2),
        "`bilu` of the peer `lib` takes no block-size 2, but 1, 4"
    );
    assert_eq!(told(|c| c.restart = 9), "`gmres` of the peer `lib` takes no restart 9, but 10..30");
    let mgs = |c: &mut Case| c.orthogonalisation = Orthogonalisation::Mgs;
    assert_eq!(told(mgs), "the peer `lib` has no setting `orthogonalisation`");
    let blocks = |c: &mut Case| (c.precond, c.block_size) = ("external:amg".into(), 3);
    assert_eq!(told(blocks), "the peer `lib` has no setting `block-size`");
}

#[test]
fn descriptions_say_what_a_peer_can_do() {
    assert_eq!(
        parse(GOOD).unwrap().described(),
        "A library; solvers: cg, gmres (side left, right; restart 10..30), external:direct; \
         preconditioners: none, bilu (fill 0..2; block-size 1, 4; shift any), external:amg"
    );
}

#[test]
fn best_methods_are_pairs() {
    let pairs = [("cg", "external:amg"), ("cg", "none"), ("external:direct", "none")];
    let pairs = pairs.map(|(solver, precond)| (solver.to_owned(), precond.to_owned()));
    assert_eq!(parse(GOOD).unwrap().best, pairs);
}

#[test]
fn wrong_descriptions_are_refused_with_their_place() {
    let refused = |from: &str, to: &str| {
        let text = GOOD.replace(from, to);
        assert_ne!(text, GOOD, "{from}");
        let error = parse(&text).unwrap_err();
        (error.to_string(), error.hint_text().unwrap_or_default().to_owned())
    };
    let message = |from: &str, to: &str| refused(from, to).0;
    assert_eq!(refused("summary", "sumary").0, "lib.toml:2:1: unknown key `sumary`");
    let (unknown, hint) = refused("bilu =", "blu =");
    assert_eq!(unknown, "lib.toml:11:1: unknown preconditioner `blu`");
    assert!(hint.starts_with("did you mean `bilu`?"), "{hint}");
    assert_eq!(
        message("restart =", "rtol ="),
        "lib.toml:7:64: unknown setting of a peer's method `rtol`"
    );
    assert_eq!(message("\"0..2\"", "\"0..999\""), "lib.toml:11:31: `999` is outside 0 to 120");
    assert_eq!(message("left =", "lft ="), "lib.toml:7:37: unknown side `lft`");
    assert_eq!(message("command = [", "comm = ["), "lib.toml:3:1: unknown key `comm`");
    assert_eq!(message("[\"python3\", \"peer.py\"]", "[]"), "lib.toml: a peer needs command");
    assert_eq!(message("\"1\" }", "1 }"), "lib.toml:4:35: expected a string, found integer");
    assert_eq!(
        message("external:direct", "external:a/b"),
        "lib.toml:8:1: `external:a/b` is not `external:WORD`"
    );
    assert_eq!(
        message("cg = [\"external:amg\"", "bicgstab = [\"external:amg\""),
        "lib.toml:14:1: the peer `lib` has no solver `bicgstab`, but cg, gmres, external:direct"
    );
    assert_eq!(
        message("[\"external:amg\"", "[\"external:gamg\""),
        "lib.toml:14:7: the peer `lib` has no preconditioner `external:gamg`, but none, bilu, \
         external:amg"
    );
    assert_eq!(
        parse("command = 'a'\n").unwrap_err().to_string(),
        "lib.toml: a peer needs [solver]"
    );
}

#[test]
fn the_first_folder_with_a_description_wins() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [first, second] = [folders[0].path(), folders[1].path()];
    for (folder, name, summary) in
        [(first, "a", "first"), (second, "a", "second"), (second, "b", "second")]
    {
        let text = GOOD.replace("A library", summary);
        std::fs::write(folder.join(format!("{name}.toml")), text).unwrap();
    }
    let known = Folders(vec![first.join("gone"), first.into(), second.into()]);
    assert_eq!(known.find("a").unwrap().summary, "first");
    let b = known.find("b").unwrap();
    assert_eq!((b.name.as_str(), b.file), ("b", second.join("b.toml")));
    let error = known.find("c").unwrap_err();
    assert_eq!((error.to_string(), error.exit_code()), ("unknown peer `c`".into(), 2));
    assert_eq!(error.hint_text(), Some("known: a, b"));
    let error = Folders(Vec::new()).find("c").unwrap_err();
    assert_eq!(
        error.hint_text(),
        Some("it is described in `c.toml`, in a folder of --peers or BILU_BENCH_PEERS")
    );
}
