//! Figures through the program: from the TOML file of an experiment to SVG and PNG, and again from
//! stored records.

use std::path::Path;

use assert_cmd::Command;
use roxmltree::Document;

const FIGURE: &str = "\
title = \"Small systems\"

[[sweep]]
matrix = [\"poisson3d:4\", \"poisson3d:6\", \"poisson3d:8\"]
fill = [0, 1]
backend = \"cpu\"

[figure]
x = \"points\"
x-axis = \"log\"
y = [\"solve-time\", \"factorisation\"]
csv = \"published.csv\"
citation = \"a paper\"
";

const PUBLISHED: &str = "\
quantity,series,x,y
solve-time,another machine,64,0.5
solve-time,another machine,512,4
factorisation,its limit,,0.25
";

/// A folder with one paper of a figure and a table.
fn papers() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let paper = folder.path().join("mine");
    std::fs::create_dir(&paper).unwrap();
    let write = |name: &str, text: &str| std::fs::write(paper.join(name), text).unwrap();
    write("figure1.toml", FIGURE);
    write("published.csv", PUBLISHED);
    write("table1.toml", "[[sweep]]\nmatrix = \"poisson3d:5\"\nbackend = \"cpu\"\n");
    folder
}

/// Runs the program in `folder`; exit code and standard error.
fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::cargo_bin("bilu-bench").unwrap();
    let output = command
        .args(arguments)
        .args(["--configs", "."])
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn reproduce(folder: &Path, name: &str, more: &[&str]) -> (Option<i32>, String) {
    let words = ["reproduce", name, "--max-repetitions", "1", "--quiet"];
    run(folder, &[&words, more].concat())
}

fn texts<'a>(document: &'a Document<'_>) -> Vec<&'a str> {
    let texts = document.descendants().filter(|n| n.has_tag_name("text"));
    texts.map(|n| n.text().unwrap().trim()).collect()
}

#[test]
fn a_paper_goes_to_a_folder_with_its_figures() {
    let papers = papers();
    let folder = papers.path();
    assert_eq!(reproduce(folder, "mine", &["--output", "out/"]), (Some(0), String::new()));
    let out = folder.join("out");
    let mut names: Vec<String> = std::fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let figure = ["csv", "md", "png", "svg"].map(|e| format!("figure1.{e}"));
    let table = ["csv", "md"].map(|e| format!("table1.{e}"));
    assert_eq!(names, [figure.as_slice(), &table].concat());
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    assert_eq!(read("figure1.csv").lines().count(), 1 + 6);
    assert_eq!(read("table1.csv").lines().count(), 1 + 1);
    assert!(read("figure1.md").starts_with("## Small systems\n"));

    let svg = read("figure1.svg");
    let document = Document::parse(&svg).unwrap();
    let texts = texts(&document);
    for (text, count) in [
        ("Small systems", 1),
        ("cpu 0", 1),
        ("cpu 1", 1),
        ("another machine", 1),
        ("its limit", 1),
        ("grid points", 2),
        ("time of the solve (ms)", 1),
        ("factorisation (µs per point)", 1),
        ("published: a paper", 1),
    ] {
        assert_eq!(texts.iter().filter(|t| **t == text).count(), count, "{text}: {texts:?}");
    }
    // a line of three sizes per series in each panel
    let lines = document.descendants().filter(|n| {
        n.has_tag_name("polyline")
            && ["#0072B2", "#D55E00"].contains(&n.attribute("stroke").unwrap())
            && n.attribute("points").unwrap().split_whitespace().count() == 3
    });
    assert_eq!(lines.count(), 4);

    // width and height stand behind the signature and the name of the first chunk
    let png = std::fs::read(out.join("figure1.png")).unwrap();
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let side = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    let root = document.root_element();
    let wanted = |name| 2 * root.attribute(name).unwrap().parse::<u32>().unwrap();
    assert_eq!((side(16), side(20)), (wanted("width"), wanted("height")));

    // again from the records, alike to the byte
    let again = ["plot", "out/figure1.csv", "-o", "again.svg", "-o", "again.png"];
    assert_eq!(run(folder, &again), (Some(0), String::new()));
    assert_eq!(std::fs::read_to_string(folder.join("again.svg")).unwrap(), svg);
    assert_eq!(std::fs::read(folder.join("again.png")).unwrap(), png);

    // other quantities
    let other = ["plot", "out/figure1.csv", "--show", "block-size", "-o", "other.svg"];
    assert_eq!(run(folder, &other), (Some(0), String::new()));
    let other = std::fs::read_to_string(folder.join("other.svg")).unwrap();
    assert!(other.contains("unknowns per point n") && !other.contains("another machine"));

    // what is there is kept, and the figure drawn again
    std::fs::remove_file(out.join("figure1.svg")).unwrap();
    let resumed = reproduce(folder, "mine/figure1", &["--output", "out", "--resume"]);
    assert_eq!(resumed, (Some(0), String::new()));
    assert_eq!(read("figure1.svg"), svg);
    let (code, said) = reproduce(folder, "mine/figure1", &["--output", "out"]);
    assert_eq!(code, Some(2));
    assert!(said.starts_with("error: `out/figure1.csv` exists already\n"), "{said}");
}

#[test]
fn a_smaller_grid_says_so() {
    let papers = papers();
    let folder = papers.path();
    let scaled = reproduce(folder, "mine/figure1", &["--output", "out/", "--scale", "0.5"]);
    assert_eq!(scaled, (Some(0), String::new()));
    let svg = std::fs::read_to_string(folder.join("out/figure1.svg")).unwrap();
    let wanted = "not the paper's size: the grid is poisson3d:4, the paper's is poisson3d:8";
    let document = Document::parse(&svg).unwrap();
    assert!(texts(&document).contains(&wanted), "{svg}");
    // cases of another size do not tell which figure they are of
    let (code, said) = run(folder, &["plot", "out/figure1.csv", "-o", "a.svg"]);
    assert_eq!(code, Some(2));
    let wanted = "error: the cases are not all of one figure\n\
                  hint: give --experiment with one of: mine/figure1\n";
    assert_eq!(said, wanted);
    let named = ["plot", "out/figure1.csv", "-o", "a.svg", "--experiment", "mine/figure1"];
    assert_eq!(run(folder, &named), (Some(0), String::new()));
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let papers = papers();
    let folder = papers.path();
    assert_eq!(reproduce(folder, "mine/table1", &["--output", "t.csv"]).0, Some(0));
    let refused = |arguments: &[&str]| {
        let (code, said) = run(folder, arguments);
        assert_eq!(code, Some(2), "{said}");
        said
    };
    assert_eq!(
        refused(&["plot", "t.csv", "-o", "a.pdf"]),
        "error: --output: `a.pdf` is no name of a figure\nhint: figures end in .svg or .png, \
         their numbers in .csv\n"
    );
    assert_eq!(
        refused(&["plot", "t.csv", "-o", "a.svg", "--experiment", "mine/table1"]),
        "error: the experiment has no figure\nhint: figures: mine/figure1\n"
    );
    assert_eq!(
        refused(&["plot", "t.csv", "-o", "a.svg", "--experiment", "mine"]),
        "error: --experiment: `mine` is a paper\nhint: name one of: mine/figure1\n"
    );
    let names = ["plot", "t.csv", "-o", "a.svg", "--experiment", "mine/figure1", "--show", "slove"];
    assert!(refused(&names).starts_with("error: --show: unknown quantity `slove`\n"));
    assert!(refused(&["plot", "no.csv", "-o", "a.svg"]).contains("no.csv"));
    let both = ["--output", "out/", "--output", "b.csv"];
    let (code, said) = reproduce(folder, "mine", &both);
    assert_eq!(code, Some(2));
    assert_eq!(said, "error: --output: `out/` is a folder\nhint: give one folder, or files\n");
}
