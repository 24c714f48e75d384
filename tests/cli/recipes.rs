//! The commands of `docs/recipes.md`, run in their order, and the output that the page shows beside theirs.
//! `BILU_BENCH_WRITE_DOCS=1 cargo test --test cli recipes` writes it.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Stands before a block that shows what happens on a machine without a GPU.
const NO_GPU: &str = "<!-- without a GPU -->";

/// A command of a page and what it prints.
#[derive(Debug)]
struct Step {
    /// As in the page: `$ ` before the first line, `> ` before others.
    shown: String,
    command: String,
    output: String,
    no_gpu: bool,
}

/// What a page is made of.
enum Piece {
    Text(String),
    Steps(Vec<Step>),
}

fn pieces(page: &str) -> Vec<Piece> {
    let (mut pieces, mut text, mut steps) = (Vec::new(), String::new(), None::<Vec<Step>>);
    let mut before = "";
    for line in page.lines() {
        match &mut steps {
            None if line == "```console" => {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                steps = Some(Vec::new());
            }
            None => _ = writeln!(text, "{line}"),
            Some(_) if line == "```" => {
                pieces.extend(steps.take().map(Piece::Steps));
                before = "";
                continue;
            }
            Some(known) => {
                let last = known.last_mut();
                if let Some(command) = line.strip_prefix("$ ") {
                    known.push(Step {
                        shown: format!("{line}\n"),
                        command: command.into(),
                        output: String::new(),
                        no_gpu: before == NO_GPU,
                    });
                } else if let Some(more) = line.strip_prefix("> ") {
                    let last = last.expect("a command before its further lines");
                    _ = writeln!(last.shown, "{line}");
                    _ = write!(last.command, "\n{more}");
                } else {
                    _ = writeln!(last.expect("a command before its output").output, "{line}");
                }
            }
        }
        if steps.is_none() {
            before = line;
        }
    }
    assert!(steps.is_none(), "a block without an end");
    pieces.push(Piece::Text(text));
    pieces
}

fn run(command: &str, folder: &Path) -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", folder.join("bin").display()))
        .env("NO_COLOR", "1")
        .env("BILU_BENCH_CACHE", "off")
        .env("COLUMNS", "200")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command}: {}\n{text}", output.status);
    text
}

/// Output without what depends on the machine: times, the lines that name the processor, widths of columns.
fn of_any_machine(output: &str) -> String {
    let mut text = String::new();
    for line in output.lines() {
        const OF_TIMES: [&str; 6] = ["cpu: ", "mpi: ", "cuda: ", "±", "(n: ", "fastest: "];
        if OF_TIMES.iter().any(|start| line.starts_with(start)) || line.is_empty() {
            continue;
        }
        let rule = line.chars().all(|c| "-+| ".contains(c)) && line.contains('-');
        let mut words: Vec<&str> =
            if rule { vec!["---"] } else { line.split_whitespace().collect() };
        for at in (1..words.len()).rev() {
            let unit = words[at].trim_end_matches([',', ';', '.']);
            let number = words[at - 1].trim_matches(['(', '[', ',']).parse::<f64>().is_ok();
            if ["s", "ms", "µs", "ns"].contains(&unit) && number {
                words[at - 1] = "TIME";
                words[at] = "";
            }
        }
        _ = writeln!(text, "{}", words.join(" "));
    }
    text
}

#[test]
fn the_commands_of_the_page_print_what_it_shows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = root.join("docs/recipes.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("bin")).unwrap();
    let program = folder.path().join("bin/bilu-bench");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_bilu-bench"), program).unwrap();
    std::os::unix::fs::symlink(root.join("results"), folder.path().join("results")).unwrap();
    let writes = std::env::var_os("BILU_BENCH_WRITE_DOCS").is_some();
    let (mut written, mut steps) = (String::new(), 0);
    for piece in pieces(&text) {
        match piece {
            Piece::Text(text) => written.push_str(&text),
            Piece::Steps(of_block) => {
                written.push_str("```console\n");
                for step in of_block {
                    let output = run(&step.command, folder.path());
                    let other = step.no_gpu && !output.contains("cuda left out");
                    if other {
                        eprintln!("not compared on a machine with a GPU: {}", step.command);
                    } else if !writes {
                        let (found, shown) =
                            (of_any_machine(&output), of_any_machine(&step.output));
                        assert_eq!(found, shown, "{}", step.command);
                    }
                    _ = write!(
                        written,
                        "{}{}",
                        step.shown,
                        if other { &step.output } else { &output }
                    );
                    steps += 1;
                }
                written.push_str("```\n");
            }
        }
    }
    assert!(steps > 10);
    if writes {
        std::fs::write(page, written.trim_end().to_owned() + "\n").unwrap();
    }
}

#[test]
fn times_and_machines_are_left_aside_and_nothing_else() {
    let a = "cpu: AMD EPYC, 1 thread\n k | iterations\n---+-----\n 0 |  12\n\ntook 3.664 ms\n";
    let b = "cpu: Intel Xeon, 1 thread\n k  | iterations\n----+-----\n 0  | 12\nfastest: k 0\n\ntook 17.1 µs\n";
    assert_eq!(of_any_machine(a), of_any_machine(b));
    assert_ne!(of_any_machine(a), of_any_machine(&b.replace("12", "13")));
    assert_ne!(of_any_machine(a), of_any_machine(&b.replace("took", "takes")));
}
