//! `bilu-bench matrix` through the library.

use std::path::Path;

use bilu_bench::base::error::Error;
use bilu_bench::cli::matrix::{MatrixArgs, run_to};
use clap::Parser;

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    matrix: MatrixArgs,
}

/// What the command prints.
fn run(args: &[&str]) -> Result<String, Error> {
    let cli = Cli::parse_from(["matrix"].iter().chain(args));
    let mut out = Vec::new();
    run_to(&cli.matrix, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn json(args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&run(args).unwrap()).unwrap()
}

#[test]
fn list_shows_generators_and_catalogue() {
    let text = run(&["list"]).unwrap();
    let line =
        |start: &str| text.lines().find(|l| l.trim_start().starts_with(start)).unwrap().to_owned();
    let words =
        |start: &str| line(start).split('|').map(|w| w.trim().to_owned()).collect::<Vec<_>>();
    assert_eq!(
        words("fem-p1"),
        [
            "fem-p1",
            "N or NXxNY",
            "dt",
            "parabolic_fem",
            "heat equation, one implicit step: M + dt K of linear triangles on a rectangle"
        ]
    );
    let fem = words("parabolic_fem");
    assert_eq!(fem[..5], ["parabolic_fem", "525825", "3674625", "yes", ""]);
    assert_eq!(fem[6], "fem-p1:parabolic_fem");

    let all = json(&["list", "--json"]);
    assert_eq!(all["generators"].as_array().unwrap().len(), 10);
    assert_eq!(all["generators"][1]["parameters"][0]["key"], "b");
    assert_eq!(all["generators"][3]["presets"][0], "atmosmodd");
    assert_eq!(all["generators"][2]["parameters"][0]["default"], 6.0);
    assert_eq!(all["generators"][4]["parameters"][0]["default"], 0.01);
    assert_eq!(all["generators"][5]["words"][0]["default"], "lognormal");
    let catalogue = all["catalogue"].as_array().unwrap();
    assert_eq!(catalogue.len(), 52);
    let steam = catalogue.iter().find(|e| e["name"] == "steam2").unwrap();
    assert_eq!((&steam["block"], &steam["explicit-zeros"]), (&4.into(), &8100.into()));
}

#[test]
fn info_describes_a_generated_matrix() {
    let text = run(&["info", "poisson3d:4x3x2", "--fill", "0..1"]).unwrap();
    assert_eq!(
        text,
        "\
matrix             poisson3d:4x3x2
rows               24
entries            116, 0 of them zero
entries per row    4 to 6, 4.83 on average
bandwidth          12 below, 12 above
pattern symmetry   100.0 %
numeric symmetry   100.0 %, largest difference 0.00e0 of the largest entry
values             1.000e0 to 6.000e0 in magnitude, zeros aside
row scaling        1.000e0, the largest norm (magnitude) over the smallest
column scaling     1.000e0, the largest norm (magnitude) over the smallest
zero rows          0
zero columns       0
diagonal           0 missing, 0 zero
weakest diagonal   row 6, 1.200e0 of the sum of the others
dominant rows      100.0 %, 100.0 % strictly
natural block size 1 (116 blocks, 100.0 % full)
grid               4 x 3 x 2, nearest neighbours
right-hand side    none

 block size | k | factor blocks |  fill | L levels | U levels 
------------+---+---------------+-------+----------+----------
          1 | 0 |           116 | 1.000 |        7 |        7 
          1 | 1 |           174 | 1.500 |       11 |       11 
"
    );
}

#[test]
fn info_names_rows_that_are_zero_or_weak() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    let head = "%%MatrixMarket matrix coordinate real general\n4 4 6\n";
    let entries = "1 1 1e-3\n1 2 2e3\n2 2 4.0\n2 1 -1.0\n3 4 0.0\n4 4 1.0\n";
    std::fs::write(&path, format!("{head}{entries}")).unwrap();
    let text = run(&["info", path.to_str().unwrap(), "--fill", "none"]).unwrap();
    let expected = "\
values             1.000e-3 to 2.000e3 in magnitude, zeros aside
row scaling        2.000e3, the largest norm (magnitude) over the smallest
column scaling     2.000e3, the largest norm (magnitude) over the smallest
zero rows          1, the first is 3
zero columns       1, the first is 3
diagonal           1 missing, 0 zero
weakest diagonal   row 1, 5.000e-7 of the sum of the others
";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn info_names_the_largest_asymmetry() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    let head = "%%MatrixMarket matrix coordinate real general\n3 3 6\n";
    // (1, 2) is further off, (2, 3) more so beside what its rows hold
    let entries = "1 1 1e3\n1 2 20\n2 1 10\n2 2 50\n2 3 -0.5\n3 3 0.25\n";
    std::fs::write(&path, format!("{head}{entries}")).unwrap();
    let file = path.to_str().unwrap();
    let text = run(&["info", file, "--fill", "none"]).unwrap();
    let line = "largest asymmetry  1.0e0 relative: (2, 3) is -0.5, (3, 2) is 0\n";
    assert!(text.contains(line), "{text}");
    let info = json(&["info", file, "--fill", "none", "--json"]);
    let largest = serde_json::json!({
        "row": 2, "column": 3, "value": -0.5, "mirrored": 0.0, "relative": 1.0
    });
    assert_eq!(info["symmetry"]["largest"], largest);
    let info = json(&["info", "poisson3d:3", "--fill", "none", "--json"]);
    assert_eq!(info["symmetry"]["largest"], serde_json::Value::Null);
}

#[test]
fn info_shows_a_division() {
    let division =
        ["info", "poisson3d:4x4x2", "--fill", "none", "--subdomains", "4", "--partition"];
    let text = run(&[&division[..], &["boxes"]].concat()).unwrap();
    let expected = "
partition          boxes, 4 subdomains, block size 1
cut                32 blocks, 20.0 % of all
halo               32 block rows, at most 8 of one subdomain
neighbours         2.0 on average, at most 2
imbalance          1.000, the most entries over the mean
block rows         8 to 8 of a subdomain
interface rows     24
";
    assert!(text.ends_with(expected), "{text}");
    let info = json(&[&division[..], &["boxes", "--json"]].concat());
    let expected = serde_json::json!({
        "block-size": 1, "subdomains": 4, "cut": 32, "cut-share": 0.2, "halo": 32, "largest-halo": 8,
        "mean-neighbours": 2.0, "most-neighbours": 2, "imbalance": 1.0, "fewest-rows": 8,
        "most-rows": 8, "interface-rows": 24,
    });
    assert_eq!(info["division"], expected);
    assert_eq!(json(&["info", "poisson3d:3", "--json"]).get("division"), None);
    // the graph has no better cut than these boxes
    let graph = json(&[&division[..], &["graph", "--json"]].concat());
    assert_eq!(
        (&graph["division"]["cut"], &graph["division"]["most-rows"]),
        (&32.into(), &8.into())
    );
    let blocks = json(&[&division[..], &["rows", "--block-size", "4", "--json"]].concat());
    let of = |key: &str| blocks["division"][key].clone();
    // eight lines of four points, two of a subdomain
    assert_eq!((of("cut"), of("halo"), of("interface-rows")), (12.into(), 12.into(), 8.into()));
    let error =
        run(&["info", "poisson3d:2", "--partition", "rows", "--subdomains", "9"]).unwrap_err();
    assert_eq!(error.to_string(), "9 subdomains of 8 block rows");
    for wrong in [&["--partition", "rows"][..], &["--subdomains", "2"], &["--block-size", "2"]] {
        let arguments = ["matrix", "info", "poisson3d:2"].iter().chain(wrong);
        assert!(Cli::try_parse_from(arguments).is_err(), "{wrong:?}");
    }
    let bad = ["matrix", "info", "a", "--partition", "graph", "--subdomains", "0"];
    let Err(error) = Cli::try_parse_from(bad) else { panic!("0 subdomains") };
    assert!(error.to_string().contains("`0` is outside 1 to 1048576"), "{error}");
}

#[test]
fn info_as_json_holds_the_same() {
    let info = json(&["info", "fem-p1:6x4", "--read-as", "as-stored", "--fill", "none", "--json"]);
    assert_eq!((&info["n"], &info["nnz"]), (&24.into(), &77.into()));
    assert_eq!((&info["upper-bandwidth"], &info["lower-bandwidth"]), (&0.into(), &7.into()));
    assert_eq!((&info["symmetry"]["pattern"], &info["grid"]), (&0.0.into(), &().into()));
    assert_eq!((&info["factors"], &info["has-own-rhs"]), (&serde_json::json!([]), &false.into()));
    let info = json(&["info", "poisson3d:3", "--fill", "2", "--json"]);
    let scaling = serde_json::json!({
        "smallest": 1.0,
        "largest": 6.0,
        "rows": 1.0,
        "columns": 1.0,
        "zero-rows": { "count": 0, "first": null },
        "zero-columns": { "count": 0, "first": null },
        "weakest-diagonal": { "row": 14, "ratio": 1.0 },
    });
    assert_eq!(info["scaling"], scaling);
    assert_eq!(info["factors"].as_array().unwrap().len(), 1);
    assert_eq!(info["factors"][0]["k"], 2);
    assert!(info["factors"][0]["outcome"]["factor-blocks"].as_u64().unwrap() > 135);
}

#[test]
fn generated_and_converted_files_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (a, gz) = (at("p.mtx"), at("q.mtx.gz"));
    let printed = run(&["generate", "poisson3d:5", "-o", &a, "--rhs", "a-ones"]).unwrap();
    assert_eq!(printed, format!("{a}\n{}\n", at("p_rhs.mtx")));
    let info = json(&["info", &a, "--json", "--fill", "none"]);
    assert_eq!((&info["nnz"], &info["has-own-rhs"]), (&725.into(), &true.into()));
    assert_eq!(info["grid"]["size"], serde_json::json!([5, 5, 5]));

    run(&["convert", &a, &gz, "--symmetric"]).unwrap();
    let stored = json(&["info", &gz, "--read-as", "as-stored", "--json", "--fill", "none"]);
    assert_eq!(stored["nnz"], 425);
    assert_eq!(json(&["info", &gz, "--json", "--fill", "none"])["nnz"], 725);
    let general = at("lower.mtx");
    run(&["convert", &gz, &general, "--as-stored"]).unwrap();
    assert_eq!(json(&["info", &general, "--json", "--fill", "none"])["nnz"], 425);
    let text = std::fs::read_to_string(Path::new(&general)).unwrap();
    assert!(
        text.starts_with("%%MatrixMarket matrix coordinate real general\n125 125 425\n1 1 6.0\n")
    );
}

#[test]
fn errors_name_what_is_wrong() {
    let message = |args: &[&str]| run(args).unwrap_err().to_string();
    assert_eq!(
        message(&["generate", "poisson3d:2", "-o", "a.txt"]),
        "`a.txt` is not the name of a file of a matrix that is written"
    );
    assert_eq!(
        message(&["generate", "tests/data/mm/sym.mtx", "-o", "a.mtx"]),
        "`tests/data/mm/sym.mtx` is a file, not a generator"
    );
    let convert = message(&["convert", "convdiff3d:3,px=0.5", "/tmp/a.mtx", "--symmetric"]);
    assert_eq!(
        convert,
        "the matrix is not symmetric: (1, 2) is -0.5, (2, 1) is -1.5, 1.7e-1 apart, and the tolerance is 1e-12"
    );
    for (fill, what) in
        [("3..1", "write `0..3`, `2` or `none`"), ("0..999", "fill level 999 is above 120")]
    {
        let error = Cli::try_parse_from(["matrix", "info", "poisson3d:2", "--fill", fill]);
        assert!(error.err().unwrap().to_string().contains(what), "{fill}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let cli = Cli::parse_from(["matrix", "list"]);
    assert_eq!(run_to(&cli.matrix, &mut Closed), Ok(()));
}

#[test]
fn files_that_are_there_are_overwritten_only_with_force() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (a, rhs, b) = (at("a.mtx"), at("a_rhs.mtx"), at("b.mtx"));
    for path in [&rhs, &b] {
        std::fs::write(path, "kept").unwrap();
    }
    let generate = ["generate", "poisson3d:3", "-o", &a, "--rhs", "ones"];
    let convert = ["convert", "poisson3d:3", &b];
    for (command, path) in [(&generate[..], &rhs), (&convert[..], &b)] {
        let error = run(command).unwrap_err();
        assert_eq!(error.to_string(), format!("`{path}` exists already"));
        assert_eq!(error.hint_text(), Some("--force overwrites it"));
        assert_eq!(std::fs::read_to_string(path).unwrap(), "kept");
    }
    assert!(!Path::new(&a).exists(), "neither of the two is written");
    for (command, path) in [(&generate[..], &rhs), (&convert[..], &b)] {
        run(&[command, &["--force"]].concat()).unwrap();
        assert!(std::fs::read_to_string(path).unwrap().starts_with("%%MatrixMarket matrix "));
    }
    let error = run(&["generate", "poisson3d:3", "-o", &at("none/a.mtx")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot write `{}`: there is no folder `{}`", at("none/a.mtx"), at("none"))
    );
}

#[cfg(unix)]
#[test]
fn a_matrix_goes_through_a_pipe() {
    use std::os::unix::fs::FileTypeExt;

    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("a.mtx");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let read = {
        let pipe = pipe.clone();
        std::thread::spawn(move || std::fs::read_to_string(pipe).unwrap())
    };
    run(&["generate", "poisson3d:2", "-o", &pipe.display().to_string()]).unwrap();
    assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo(), "it stays a pipe");
    assert!(
        read.join().unwrap().starts_with("%%MatrixMarket matrix coordinate real general\n8 8 ")
    );
}
