use super::*;

fn read(text: &str) -> Result<Experiment> {
    let beside = |name: &str| match name {
        "p.csv" => Ok("b,k,its,t\n1,0,240,26.1\n".to_owned()),
        "h.csv" => Ok("l,a\n0,1e3\n".to_owned()),
        _ => Err(Error::input(format!("no such file `{name}`"))),
    };
    parse(&Source { name: "x.toml", text, folder: None, beside: &beside })
}

fn message(text: &str) -> (String, String) {
    let error = read(text).unwrap_err();
    (error.to_string(), error.hint_text().unwrap_or_default().to_owned())
}

#[test]
fn values_ranges_and_lists_make_the_cross_product() {
    let e = read(
        "title = 't'\nnotes = 'n'\ninferred = ['a', 'b']\n[measure]\nmin-repetitions = 3\nrepeat-values = 2\n\
         [[sweep]]\nblock-size = [1, 2]\nfill = '0..1'\nrtol = 1e-8\n[[sweep]]\nfill = 1\n",
    )
    .unwrap();
    assert_eq!((e.title.as_deref(), e.notes.len(), e.inferred.len()), (Some("t"), 1, 2));
    let measure = e.measure.resolve().unwrap();
    assert_eq!((measure.min_repetitions, measure.repeat_values), (3, 2));
    let (cases, _) = e.cases().unwrap();
    let text: Vec<_> = cases.iter().map(|c| (c.block_size, c.fill, c.rtol)).collect();
    assert_eq!(text, [(1, 0, 1e-8), (1, 1, 1e-8), (2, 0, 1e-8), (2, 1, 1e-8), (1, 1, 1e-6)]);
}

#[test]
fn errors_name_line_and_column() {
    let (text, hint) = message("[[sweep]]\nfill = 0\nblok-size = 1\n");
    assert_eq!(text, "x.toml:3:1: unknown setting `blok-size`");
    assert!(hint.starts_with("did you mean `block-size`?"), "{hint}");
    let (text, hint) = message("[[sweep]]\nsolver = [\"gmres\", \"gmers\"]\n");
    assert_eq!(text, "x.toml:2:20: unknown solver `gmers`");
    assert!(hint.starts_with("did you mean `gmres`?"), "{hint}");
    for (text, error) in [
        ("tilte = ''\n", "x.toml:1:1: unknown key `tilte`"),
        ("[measure]\nfoo = 1\n", "x.toml:2:1: unknown measuring option `foo`"),
        ("[[sweep]]\nfill = -1\n", "x.toml:2:8: `-1` is outside 0 to 120"),
        ("[[sweep]]\nfill = []\n", "x.toml:2:8: empty list"),
        ("[[sweep]]\nfill = true\n", "x.toml:2:8: expected a string or a number, found boolean"),
        ("title = 't'\n", "x.toml: no [[sweep]] table"),
        ("title = 1\n", "x.toml:1:9: expected a string, found integer"),
        (
            "[measure]\nmin-repetitions = 9\nmax-repetitions = 2\n",
            "x.toml:1:1: min-repetitions 9 is more than max-repetitions 2",
        ),
        ("sweep = 3\n", "x.toml:1:9: expected a table, found integer"),
    ] {
        assert_eq!(message(text).0, error);
    }
    assert!(message("title = 'x\n").0.starts_with("x.toml:1:"), "{:?}", message("title = 'x\n"));
}

#[test]
fn histories_and_phases_are_read() {
    let e = read("[[sweep]]\n[history]\ncsv = 'h.csv'\ndigits = 10\ncorrections = 3\n").unwrap();
    let history = e.history.unwrap();
    assert_eq!((history.rows.len(), history.digits, history.corrections), (1, 10, 3));
    let slow = "slow = { device = 'a CPU', backend = 'cpu' }";
    let e = read(&format!("[[sweep]]\n[phases]\nshow = 'series'\nfast = 'a GPU'\n{slow}\n"));
    let phases = e.unwrap().phases.unwrap();
    assert_eq!((phases.show, phases.tasks.len()), (Show::Series, 0));
    assert_eq!(phases.slow, Some(("a CPU".to_owned(), "cpu".to_owned())));
    for (text, error) in [
        ("[history]\ndigits = 1\n", "x.toml:2:1: [history] lacks `csv`"),
        ("[history]\ndigits = 17\n", "x.toml:3:10: `17` is outside 1 to 16"),
        ("[phases]\nshow = 'all'\n", "x.toml:3:8: unknown table of phases `all`"),
        ("[phases]\ncsv = 'h.csv'\n", "h.csv:2: unknown task `0`"),
        (
            "[phases]\nslow = { device = 'a', seconds = 's' }\n",
            "x.toml:3:24: unknown key `seconds`",
        ),
        (
            "[phases]\nslow = { device = 'a' }\n",
            "x.toml:3:8: needs `device` (its name) and `backend`",
        ),
    ] {
        assert_eq!(message(&format!("[[sweep]]\n{text}")).0, error);
    }
}

#[test]
fn published_values_are_read_with_their_keys() {
    let head = "[[sweep]]\n[published]\ncsv = 'p.csv'\niterations = 'its'\n";
    let e = read(&format!("{head}keys = {{ block-size = 'b', fill = 'k' }}\n")).unwrap();
    assert_eq!(e.published.unwrap().rows[0].iterations, 240);
    assert_eq!(
        message(&format!("{head}keys = {{ level = 'k' }}\n")).0,
        "x.toml:5:10: unknown setting `level`"
    );
    assert_eq!(message(&format!("{head}keys = {{ fill = 'kk' }}\n")).0, "p.csv:1: no column `kk`");
    assert_eq!(
        message("[[sweep]]\n[published]\ncsv = 'q.csv'\niterations = 'i'\nkeys = {fill='k'}\n").0,
        "x.toml:3:7: no such file `q.csv`"
    );
    assert_eq!(
        message("[[sweep]]\n[published]\ncsv = 'p.csv'\n").0,
        "x.toml:2:1: [published] lacks `keys`"
    );
}

#[test]
fn settings_are_those_of_every_sweep_that_has_no_own() {
    let text = "[[sweep]]\nfill = 3\n[[sweep]]\nblock-size = [2, 4]\n[settings]\nfill = [1, 1]\nrtol = 1e-8\n";
    let e = read(text).unwrap();
    let (cases, _) = e.cases().unwrap();
    let text: Vec<_> = cases.iter().map(|c| (c.block_size, c.fill, c.rtol)).collect();
    assert_eq!(text, [(1, 3, 1e-8), (2, 1, 1e-8), (4, 1, 1e-8)]);
    assert_eq!(e.remarks, ["x.toml: fill: 1 given more than once, kept once"]);
    let e = read("[settings]\nmatrix = 'poisson3d:9'\n[[sweep]]\nfill = [0, 1, 1]\n[[sweep]]\nfill = [1, 1]\n").unwrap();
    assert_eq!((e.matrix_places[0].1.line, e.cases().unwrap().0.len()), (Some(2), 2));
    assert_eq!(e.remarks.len(), 1);
    for (text, error) in [
        ("[[sweep]]\n[settings]\nfil = 1\n", "x.toml:3:1: unknown setting `fil`"),
        ("[[sweep]]\n[settings]\nfill = -1\n", "x.toml:3:8: `-1` is outside 0 to 120"),
        ("settings = 1\n[[sweep]]\n", "x.toml:1:12: expected a table, found integer"),
        ("[settings]\nfill = 1\n", "x.toml: no [[sweep]] table"),
    ] {
        assert_eq!(message(text).0, error);
    }
}
