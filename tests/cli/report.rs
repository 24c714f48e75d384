//! `report`, `plot --kind`, `man` and `docs` through the program, and the page in a browser where one is.

use std::path::Path;
use std::process::Command as Process;

use assert_cmd::Command;
use bilu_bench::base::status::Status;
use bilu_bench::case::Case;
use bilu_bench::record::Record;
use bilu_bench::record::output::{Existing, Outputs};
use resvg::tiny_skia::Pixmap;
use roxmltree::Document;

/// Runs the program in `folder`; exit code, standard output and error.
fn run(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::cargo_bin("bilu-bench").unwrap();
    let output = command.args(arguments).current_dir(folder).env("NO_COLOR", "1").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn record(backend: &str, fill: usize, iterations: usize, solve_s: f64) -> Record {
    let case = Case { backend: backend.into(), fill, ..Case::default() };
    let mut r = Record { case, status: Status::Converged, ..Record::default() };
    r.size.n = 216_000;
    r.size.nnz = 1_490_400;
    r.times.symbolic_s = Some(0.01);
    r.times.numeric_s = Some(0.03);
    r.times.setup_s = Some(0.04);
    r.times.solve_s = Some(solve_s);
    r.times.total_s = Some(0.04 + solve_s);
    r.times.ms_per_iteration = Some(1e3 * solve_s / iterations as f64);
    r.times.repetitions = 1;
    r.convergence.iterations = iterations;
    r.environment.device = format!("device of {backend}");
    r.environment.cpu = "a processor".into();
    r
}

fn write(folder: &Path, name: &str) {
    let mut outputs = Outputs::open(&[folder.join(name)], Existing::Refuse).unwrap();
    for fill in 0..4 {
        outputs.add(&record("cpu", fill, 60 - 10 * fill, 1.0)).unwrap();
        outputs.add(&record("cuda", fill, 60 - 10 * fill, 0.25)).unwrap();
    }
}

/// Body of a page as XML.
fn body(page: &str) -> String {
    let inner = page.split_once("<body>").unwrap().1.rsplit_once("</body>").unwrap().0;
    format!("<body>{inner}</body>")
}

#[test]
fn a_folder_becomes_a_page_with_its_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::create_dir(folder.join("results")).unwrap();
    write(folder, "results/runs.csv");
    let cut = std::fs::read_to_string(folder.join("results/runs.csv")).unwrap();
    let bad = cut.lines().take(3).collect::<Vec<_>>().join("\n").replacen("converged", "fine", 1);
    std::fs::write(folder.join("results/second.csv"), bad).unwrap();

    let (code, out, said) = run(folder, &["report", "results", "-o", "r.html", "--title", "Mine"]);
    assert_eq!((code, out.as_str()), (Some(0), ""));
    assert!(said.starts_with("note: results/second.csv:2: unknown variant `fine`"), "{said}");
    let page = std::fs::read_to_string(folder.join("r.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<h1>Mine</h1>"));
    let text = body(&page);
    let document = Document::parse(&text).unwrap();
    // the numbers of the first figure: speedups of 4, and 1.04 over 0.29 with the setup
    let figure = document.descendants().find(|n| n.attribute("id") == Some("speedup-1")).unwrap();
    let rows: Vec<Vec<&str>> = figure
        .descendants()
        .filter(|n| n.has_tag_name("tr"))
        .map(|row| row.children().map(|cell| cell.text().unwrap_or_default()).collect())
        .collect();
    assert_eq!(rows[0], ["panel", "", "cuda"]);
    assert_eq!(rows[1], ["solve", "k 0", "4.000"]);
    assert_eq!(rows[5], ["time to solution", "k 0", "3.586"]);
    // bars as high as these numbers: four on the left, four on the right
    let svg = figure.descendants().find(|n| n.tag_name().name() == "svg").unwrap();
    let bars: Vec<f64> = svg
        .descendants()
        .filter(|n| n.tag_name().name() == "rect" && n.attribute("class") == Some("f-vermilion"))
        .map(|n| n.attribute("height").unwrap().parse().unwrap())
        .collect();
    // the first is that of the legend
    assert_eq!(bars.len(), 9);
    assert!((bars[5] / bars[1] - (1.04 / 0.29) / 4.0).abs() < 0.01, "{bars:?}");

    // once more, over the old one, from a file
    let again = ["report", "results/runs.csv", "-o", "r.html"];
    let (code, _, said) = run(folder, &again);
    let why = "error: `r.html` exists already\nhint: --force overwrites it\n";
    assert_eq!((code, said.as_str()), (Some(2), why));
    let (code, _, said) = run(folder, &[&again[..], &["--force"]].concat());
    assert_eq!((code, said.as_str()), (Some(0), ""));
}

#[test]
fn figures_of_a_kind_are_files_with_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "runs.csv");
    let words =
        ["plot", "--kind", "speedup", "runs.csv", "-o", "s.svg", "-o", "s.png", "-o", "s.csv"];
    let (code, _, said) = run(folder, &words);
    assert_eq!((code, said.as_str()), (Some(0), "s.svg: Speedup over cpu: runs\n"));
    let image = Pixmap::decode_png(&std::fs::read(folder.join("s.png")).unwrap()).unwrap();
    assert!(image.width() > 800);
    let numbers = std::fs::read_to_string(folder.join("s.csv")).unwrap();
    assert_eq!(
        numbers.lines().nth(1),
        Some("Speedup over cpu: runs,solve,cuda,measured,k 0,,0,4,,,,speedup")
    );
    // a panel for each backend, so one figure; every kind there is something for
    for kind in ["phases", "frontier", "profile"] {
        let name = format!("{kind}.svg");
        let (code, _, said) = run(folder, &["plot", "--kind", kind, "runs.csv", "-o", &name]);
        assert_eq!(code, Some(0), "{said}");
    }
    let (code, _, said) = run(folder, &["plot", "--kind", "history", "runs.csv", "-o", "h.svg"]);
    assert_eq!(code, Some(2));
    assert!(
        said.starts_with("error: the files have nothing for a figure `history`\nhint: "),
        "{said}"
    );
    let (code, _, said) = run(folder, &["plot", "--kind", "phase", "runs.csv", "-o", "h.svg"]);
    assert_eq!(code, Some(2));
    assert!(
        said.starts_with(
            "error: --kind: unknown kind of figure `phase`\nhint: did you mean `phases`?"
        ),
        "{said}"
    );
}

#[test]
fn what_cannot_be_reported_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "runs.csv");
    std::fs::create_dir(folder.join("empty")).unwrap();
    let refused = |arguments: &[&str]| {
        let (code, _, said) = run(folder, arguments);
        assert_eq!(code, Some(2), "{said}");
        said
    };
    assert_eq!(
        refused(&["report", "runs.csv", "-o", "r.pdf"]),
        "error: --output: `r.pdf` is no name of a page\nhint: pages end in .html\n"
    );
    assert_eq!(
        refused(&["report", "empty", "-o", "r.html"]),
        "error: no results were found\nhint: give .csv, .jsonl or .json files, or their folder\n"
    );
    assert!(
        refused(&["report", "nowhere", "-o", "r.html"]).starts_with("error: cannot read `nowhere`")
    );
    assert!(
        refused(&["report", "runs.csv", "-o", "no/r.html"])
            .starts_with("error: cannot write `no/r.html`")
    );
    assert!(!folder.join("r.html").exists());
}

#[test]
fn compare_takes_a_percentage_beyond_which_it_fails() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let side = |name: &str, factor: f64| {
        let mut outputs = Outputs::open(&[folder.join(name)], Existing::Refuse).unwrap();
        let mut r = record("cpu", 0, 20, factor);
        r.times.repetitions = 10;
        r.times.solve_low_s = Some(0.99 * factor);
        r.times.solve_high_s = Some(1.01 * factor);
        outputs.add(&r).unwrap();
    };
    side("a.csv", 1.0);
    side("b.csv", 1.3);
    let code = |flag: &str| run(folder, &["compare", "a.csv", "b.csv", flag]).0;
    assert_eq!(code("--fail-on-regression"), Some(1));
    // 1.274 at least, of which the machine may have drifted 5 %
    assert_eq!(code("--fail-on-regression=20"), Some(1));
    assert_eq!(code("--fail-on-regression=25"), Some(0));
    let still = ["compare", "a.csv", "b.csv", "--fail-on-regression=25", "--drift", "0"];
    assert_eq!(run(folder, &still).0, Some(1));
    let (status, _, said) = run(folder, &["compare", "a.csv", "b.csv", "--fail-on-regression=x"]);
    assert_eq!(status, Some(2));
    assert!(said.starts_with("error: --fail-on-regression: `x` is not a number"), "{said}");
    let (_, out, _) = run(folder, &["compare", "a.csv", "b.csv"]);
    assert!(
        out.contains("overall: slower, 1.300 (1.274 to 1.326) over 1 case with an interval"),
        "{out}"
    );
}

#[test]
fn manual_pages_name_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let (code, page, _) = run(folder.path(), &["man"]);
    assert_eq!(code, Some(0));
    assert!(
        page.contains(".TH bilu-bench 1") && page.contains("bilu\\-bench\\-report(1)"),
        "{page}"
    );
    assert_eq!(run(folder.path(), &["man", "pages"]).0, Some(0));
    let one = std::fs::read_to_string(folder.path().join("pages/bilu-bench-compare.1")).unwrap();
    assert!(one.contains("fail\\-on\\-regression"), "{one}");
    let (code, text, _) = run(folder.path(), &["docs", "csv"]);
    assert_eq!((code, text.lines().next()), (Some(0), Some("# Columns of CSV files")));
}

/// A browser without a window, where one is installed.
fn browser() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names.into_iter().find(|name| Process::new(name).arg("--version").output().is_ok())
}

#[test]
fn a_browser_shows_the_page_light_and_dark() {
    let Some(browser) = browser() else {
        eprintln!("skipped: no chromium, chromium-browser or google-chrome");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "runs.csv");
    assert_eq!(run(folder, &["report", "runs.csv", "-o", "r.html"]).0, Some(0));
    let page = format!("file://{}", folder.join("r.html").display());
    let shot = |name: &str, flags: &[&str]| {
        let image = folder.join(name);
        let profile = format!("--user-data-dir={}", folder.join("profile").display());
        let status = Process::new(browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", &profile])
            .args(flags)
            .arg(format!("--screenshot={}", image.display()))
            .arg(&page)
            .output()
            .unwrap();
        assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
        Pixmap::decode_png(&std::fs::read(image).unwrap()).unwrap()
    };
    let colour = |image: &Pixmap, x: u32, y: u32| {
        let p = image.pixel(x, y).unwrap();
        (p.red(), p.green(), p.blue())
    };
    let has = |image: &Pixmap, wanted: (u8, u8, u8)| {
        image.pixels().iter().filter(|p| (p.red(), p.green(), p.blue()) == wanted).count()
    };
    let size = "--window-size=1200,6000";
    let light = shot("light.png", &[size, "--blink-settings=preferredColorScheme=1"]);
    let dark = shot("dark.png", &[size, "--blink-settings=preferredColorScheme=0"]);
    assert_eq!((colour(&light, 2, 2), colour(&dark, 2, 2)), ((255, 255, 255), (20, 24, 30)));
    // bars of `cuda` in the colours of either page
    let (vermilion, orange) = ((213, 94, 0), (255, 138, 61));
    assert!(has(&light, vermilion) > 5000 && has(&light, orange) == 0);
    assert!(has(&dark, orange) > 5000 && has(&dark, vermilion) == 0);
    // a narrow window has the colours of the figures in it too, and its edge is free
    let narrow = shot("narrow.png", &["--window-size=500,6000"]);
    assert!(has(&narrow, vermilion) > 1000);
    assert!((0..narrow.height()).all(|y| colour(&narrow, 1, y) == (255, 255, 255)));
}

/// Height of a screen, in pixels, and how many of them the page may have.
const SCREEN: (u32, u32) = (800, 30);

#[test]
fn the_page_of_the_committed_results_has_at_most_thirty_screens() {
    let Some(browser) = browser() else {
        eprintln!("skipped: no chromium, chromium-browser or google-chrome");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("r.html");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let arguments = ["report", "results", "--rows", "20", "-o", page.to_str().unwrap()];
    assert_eq!(run(root, &arguments).0, Some(0));
    let image = folder.path().join("r.png");
    let most = SCREEN.0 * SCREEN.1;
    let status = Process::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("--window-size=1280,{}", most + SCREEN.0))
        .arg(format!("--screenshot={}", image.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
    let image = Pixmap::decode_png(&std::fs::read(image).unwrap()).unwrap();
    let background = image.pixel(1, 1);
    let drawn = |y: &u32| (0..image.width()).any(|x| image.pixel(x, *y) != background);
    let last = (0..image.height()).rev().find(drawn).unwrap();
    assert!(last > SCREEN.0 && last < most, "{last} pixels");
}
