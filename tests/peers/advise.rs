//! `advise --with-peers`: methods of peers in the ranking, with the reasons of those that are not.

use bilu_bench::base::status::Status;
use bilu_bench::config::Experiment;
use bilu_bench::record::read::read;

use super::common::program::{ran, text};
use super::{END, HELLO, Peers, SETUP, SOLVE, SYSTEM, X};

/// Ends after the version where that is all that is asked for.
const VERSION: &str = r#"[ "$1" = --version ] && exit"#;

/// A peer with a multigrid method that `advise` tries, and one for other systems.
fn multigrid(peers: &Peers, name: &str, lines: &[&str]) {
    peers.script(name, &[&[HELLO, VERSION], lines].concat());
    let methods = "[solver]\ncg = 'c'\ngmres = 'g'\n[precond]\n'external:amg' = 'amg'\n[advise]\n\
                   cg = 'external:amg'\ngmres = 'external:amg'\n";
    peers.describe(name, &format!("['./{name}.sh']"), methods);
}

/// What `advise` prints for [`SYSTEM`] with Jacobi alone, beside these peers.
fn advice(peers: &Peers, names: &str, more: &[&str]) -> String {
    let base = ["advise", SYSTEM, "-q", "--time-budget", "20", "--with-peers", names];
    // which precision of the factors or which block size is the faster one on 64 unknowns is chance
    let set =
        ["precond=jacobi", "backend=cpu", "solver=cg", "factor-precision=float64", "block-size=1"];
    let set = set.map(|setting| ["--set", setting]).concat();
    text(&ran(&mut peers.program(&[&base[..], &set, more].concat()), 0).stdout)
}

#[test]
fn the_method_of_a_peer_wins_and_its_experiment_runs() {
    let peers = Peers::new();
    let setup = r#"echo '{"setup": {"seconds": 2e-7}}'"#;
    let solve = r#"echo '{"solve": {"seconds": 3e-7}}'"#;
    multigrid(&peers, "fast", &[setup, solve, X, END]);
    multigrid(&peers, "slow", &[SETUP, SOLVE, X, END]);
    multigrid(&peers, "crash", &["echo 'no memory left' >&2", "exit 3"]);
    multigrid(
        &peers,
        "wrong",
        &[setup, solve, r#"(head -c 128 x.npy; head -c 512 /dev/zero) > "$1/x.npy""#, END],
    );
    let amg =
        "[solver]\ncg = 'c'\n[precond]\n'external:amg' = 'amg'\n[advise]\ncg = 'external:amg'\n";
    peers.describe("missing", "['./no-such-program']", amg);
    peers.script("plain", &[HELLO]);
    let table = advice(&peers, "all", &["-o", "best.toml"]);

    // rank: the peer is the first row, and ours takes as many times as long as the sentence says
    let head = table.lines().position(|l| l.contains("of the best")).unwrap();
    let first = table.lines().nth(head + 2).unwrap();
    assert!(first.contains("500.0 ± 0.0 ns") && first.contains(" 1.00 "), "{table}");
    let sentence = table.lines().find(|l| l.starts_with("cg with amg of fast, ")).unwrap();
    let (_, rest) = sentence.split_once(", the best of peers, takes ").unwrap();
    let (ratio, rest) = rest.split_once(" of the time of ").unwrap();
    let (ours, rest) = rest.split_once(" cg cpu").unwrap();
    assert_eq!(ours, "jacobi b=1", "{table}");
    assert!(rest.starts_with(", the best without peers (setup included)"), "{table}");
    // single times where ours takes more than ten times as long
    let ratio: f64 = ratio.trim_start_matches('~').parse().unwrap();
    assert!(ratio < 0.5, "{table}");

    // a row for each, with the reason
    let row = |name: &str| {
        let of = table.lines().skip_while(|l| *l != "Methods of peers");
        let mut found = of.filter(|l| l.split_whitespace().next() == Some(name));
        found.next().unwrap_or_else(|| panic!("{name} in {table}")).trim().to_owned()
    };
    assert!(row("fast").contains(" cg ") && row("fast").contains(" rounds"), "{table}");
    assert!(row("slow").ends_with("takes longer"), "{table}");
    assert!(row("crash").ends_with("exit code 3: no memory left"), "{table}");
    assert!(row("wrong").contains("false-convergence: true residual 1.0e0 where"), "{table}");
    assert!(row("missing").contains("cannot start `./no-such-program`"), "{table}");
    assert!(row("plain").ends_with("names no method for `advise` that suits"), "{table}");

    let (cases, _) = Experiment::open(&peers.path("best.toml")).unwrap().cases().unwrap();
    let case = &cases[0];
    assert_eq!(
        (cases.len(), &*case.backend, &*case.solver, &*case.precond),
        (1, "external:fast", "cg", "external:amg")
    );
    let run = ["run", "best.toml", "-q", "--max-repetitions", "1", "-o", "again.jsonl"];
    ran(&mut peers.program(&run), 0);
    let again = read(&peers.path("again.jsonl")).unwrap().records;
    assert_eq!((again[0].status, &again[0].case), (Status::Converged, case));
    assert_eq!(again[0].times.total_s, Some(5e-7));
}

#[test]
fn peers_that_do_not_win_leave_the_advice_as_it_is() {
    let peers = Peers::new();
    multigrid(&peers, "slow", &[SETUP, SOLVE, X, END]);
    let table = advice(&peers, "slow", &["-o", "best.toml"]);
    let sentence = "every method of a peer fails or takes more than 2 times the best";
    assert!(table.contains(sentence), "{table}");
    let (cases, _) = Experiment::open(&peers.path("best.toml")).unwrap().cases().unwrap();
    assert_eq!(cases[0].backend, "cpu");

    let unknown = ["advise", SYSTEM, "--with-peers", "slo"];
    let said = text(&ran(&mut peers.program(&unknown), 2).stderr);
    assert!(said.starts_with("error: --with-peers: unknown peer `slo`"), "{said}");
    let backend = ["advise", SYSTEM, "--set", "backend=external:slow"];
    let said = text(&ran(&mut peers.program(&backend), 2).stderr);
    assert!(said.contains("--with-peers tries the methods of peers"), "{said}");
}
