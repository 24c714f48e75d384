//! `list`, `doctor`, `completions`, `reproduce` without a paper, `compare`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use assert_cmd::Command;
use bilu_bench::base::status::Status;
use bilu_bench::case::Case;
use bilu_bench::methods::registry;
use bilu_bench::record::Record;
use bilu_bench::record::output::{Existing, Outputs};
use serde_json::Value;

fn bilu() -> Command {
    let mut command = Command::cargo_bin("bilu-bench").unwrap();
    command.env("NO_COLOR", "1");
    command
}

/// Standard output of a call that must succeed.
fn printed(arguments: &[&str]) -> String {
    let output = bilu().args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What `reproduce` prints without a paper: all experiments, of which `list` has the names.
const TABLES: &str = "\
almouhamed/factors    Al-Mouhamed and Khan 2017, section 6.4 with preconditioners: BiCGStab as one kernel beside many
almouhamed/fig7       Al-Mouhamed and Khan 2017, Figure 7: the product with Bdia against size, k = 2, 50 wells
almouhamed/fig8a      Al-Mouhamed and Khan 2017, Figure 8a: products by format, GH-b
almouhamed/fig8b      Al-Mouhamed and Khan 2017, Figure 8b: products by format, GH-h, k = 2
almouhamed/fig9a      Al-Mouhamed and Khan 2017, Figure 9a: BiCGStab by format
almouhamed/large      Products by format on systems far larger than a GPU's cache, GH-b and GH-h
almouhamed/launches   Al-Mouhamed and Khan 2017, sections 6.4 and 7.3: BiCGStab as one kernel beside many
almouhamed/qmr        Al-Mouhamed and Khan 2017, section 7.4: QMR beside BiCGStab
gupta/bubbly128-1     Gupta et al. 2015, bubbly flow: 128^3 cells with 1 bubble, first level x deflation
gupta/bubbly128-9     Gupta et al. 2015, bubbly flow: 128^3 cells with 9 bubbles, first level x deflation
gupta/bubbly32        Gupta et al. 2015, bubbly flow: 32^3 cells with 8 bubbles, first level x deflation
gupta/frontier        Every preconditioner of one matrix, deflated or not: iterations against the time of each
gupta/ilut            ILUT and drop tolerances beside ILU(k): layers and bubbles on 64^3 cells
gupta/layered         Gupta et al. 2015, layered porous flow: 63 x 64 x 64 cells, 16 layers, first level x deflation
gupta/layered-large   Gupta et al. 2015, layered porous flow: 127 x 128 x 128 cells, 16 layers, first level x deflation
gupta/reservoirs      Pressure equations on the permeability of SPE9, SPE10 (model 1) and Norne, first level x deflation
luo/figure10          Luo et al. 2015, Figure 10: time per point from n = 4 to 32, 3 corrections
luo/figure9           Luo et al. 2015, Figure 9: time per point from 15 x 15 x 15 to 65 x 65 x 65 points, n = 6, 3 corrections
luo/table1            Luo et al. 2015, Table 1: sum of squares of the residual per correction, 51 x 97 x 63 points, n = 6
luo/table3            Luo et al. 2015, Table 3: time per point and speedup, n = 6
luo/table4            Luo et al. 2015, Tables 2 and 4: work per thread, throughput and rate, n = 6
orderings/generated   Orderings of generated grids: levels, fill and iterations
orderings/real        Orderings of real systems: levels, fill and iterations
scaling/reservoirs    Ranks: strong scaling on reservoir simulations
scaling/strong        Ranks: strong scaling of block ILU(k)
scaling/subdomains    Iterations against the number of subdomains
scaling/weak          Ranks: weak scaling of block ILU(k), 80^3 points on each
trisolve/block-grids  Triangular solves and factorisation: 7-point grids, dense blocks of 3, 4 and 8
trisolve/general      Triangular solves and factorisation: general patterns
trisolve/point-grids  Triangular solves and factorisation: 7-point grids, scalar
trisolve/real         Triangular solves and factorisation: 21 real matrices, by points and in blocks
trisolve/reservoirs   Triangular solves and factorisation: reservoir simulations
yang/table1           Yang et al. 2016, Table 1: 3D Poisson equation, 1,728,000 unknowns
yang/table2           Yang et al. 2016, Table 2: parabolic_fem, 525,825 unknowns
yang/table3           Yang et al. 2016, Table 3: atmosmodd, 1,270,432 unknowns
";

#[test]
fn list_has_every_registry() {
    let value: Value = serde_json::from_str(&printed(&["list", "--json"])).unwrap();
    let names = |section: &str| -> Vec<String> {
        let items = value[section].as_array().unwrap().iter();
        items.map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    let registered =
        |names: registry::Names| names.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    assert_eq!(names("solvers"), registered(registry::SOLVERS));
    assert_eq!(names("preconditioners"), registered(registry::PRECONDITIONERS));
    assert_eq!(names("orderings"), registered(registry::ORDERINGS));
    assert!(names("solvers").contains(&"gmres".into()));
    assert_eq!(names("backends"), ["cpu", "cpu-mt", "cuda", "cusparse", "mpi", "mpi-cuda"]);
    assert_eq!(names("trisolves"), registered(registry::TRISOLVES));
    assert_eq!(names("fgbilu-styles"), ["auto", "acc", "cl", "tiles"]);
    assert_eq!(names("executions"), ["fused", "calls", "graph", "persistent"]);
    assert_eq!(names("formats"), ["auto", "csr", "bsr", "hyb", "sell", "dia", "bdia", "all"]);
    let experiments: Vec<&str> =
        TABLES.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names("experiments"), experiments);
    assert_eq!((names("settings").len(), names("columns").len()), (35, 144));
    let text = printed(&["list", "formats"]);
    assert_eq!(text.lines().next(), Some("formats"));
    assert_eq!(text.lines().count(), 9);
}

#[test]
fn reproduce_without_a_paper_lists_the_tables() {
    assert_eq!(printed(&["reproduce"]), TABLES);
}

#[test]
fn doctor_tells_the_version_and_whether_there_is_a_gpu() {
    let value: Value = serde_json::from_str(&printed(&["doctor", "--json"])).unwrap();
    let version = value["program"]["version"].as_str().unwrap();
    assert!(version.starts_with(env!("CARGO_PKG_VERSION")), "{version}");
    assert!(value["processor"]["threads available"].as_u64().unwrap() >= 1);
    assert!(value["memory"]["total GiB"].as_f64().unwrap() > 0.0);
    let gpu = value["gpu"].as_object().unwrap();
    if gpu.contains_key("cuda") {
        assert!(gpu["cuda"].as_str().unwrap().ends_with("the CPU backends work"), "{gpu:?}");
    } else {
        assert!(gpu.contains_key("cuda driver"), "{gpu:?}");
    }
    assert!(printed(&["doctor"]).starts_with("program\n  version"));
    if !cfg!(feature = "cuda") {
        return;
    }
    // found, or what to do about it
    let nvrtc = gpu["nvrtc"].as_str().unwrap();
    assert!(
        nvrtc.split('.').all(|part| part.parse::<u32>().is_ok())
            || nvrtc.contains("BILU_BENCH_NVRTC_DIR"),
        "{nvrtc}"
    );
    let cusparse = gpu["cusparse"].as_str().unwrap();
    assert!(
        cusparse.split('.').all(|part| part.parse::<u32>().is_ok())
            || cusparse.starts_with("cuSPARSE was not found on this machine; "),
        "{cusparse}"
    );
    let gpus = gpu.keys().filter(|name| name.starts_with("device ")).count();
    assert_eq!(gpu.contains_key("copy GB/s"), gpus > 0, "{gpu:?}");
    let kernels = value["folders"]["compiled kernels"].as_str().unwrap();
    assert!(kernels == "off" || kernels.contains("cubins, "), "{kernels}");
}

#[test]
fn the_self_test_counts_its_comparisons() {
    let test = |more: &[&str]| {
        let mut words = vec!["doctor", "--self-test", "--quick", "--backend", "cpu-mt"];
        words.extend(more);
        printed(&words)
    };
    let summary = test(&["--seed", "5"]);
    let all = test(&["--seed", "5", "--verbose"]);
    let lines: Vec<&str> = all.lines().collect();
    assert_eq!(lines.last(), summary.lines().last().as_ref());
    assert!(lines[..lines.len() - 1].iter().all(|line| line.starts_with("ok ")), "{all}");
    assert!(
        summary.starts_with("self-test of ")
            && summary.ends_with(&format!(": {} comparisons agree, seed 5\n", lines.len() - 1)),
        "{summary}"
    );
    assert_eq!(summary.lines().count(), 1);
    assert_ne!(test(&[]), test(&[]), "the seed is another one each time");
    let products = test(&["--seed", "5", "--verbose", "--only", "products"]);
    let (lines, last) = products.trim_end().rsplit_once('\n').unwrap();
    assert!(lines.lines().all(|line| line.starts_with("ok product, residual")), "{products}");
    let executions = test(&["--seed", "5", "--verbose", "--only", "executions"]);
    let (lines, last_of_executions) = executions.trim_end().rsplit_once('\n').unwrap();
    assert!(lines.lines().all(|line| line.starts_with("ok Fused: ")), "{executions}");
    assert!(
        lines.contains("ok Fused: qmr, apart: breakdown: Breakdown(\"delta is zero"),
        "{lines}"
    );
    assert!(last_of_executions.ends_with(" comparisons agree, seed 5"), "{last_of_executions}");
    let preconditioners = test(&["--seed", "5", "--verbose", "--only", "preconditioners"]);
    for part in [
        "deflation levelset-subdomain:2, projection",
        "mcilu:p=1",
        "fsai:power=2",
        "sweeps:sweeps=2",
    ] {
        assert!(preconditioners.contains(&format!("ok {part}, ")), "{part}: {preconditioners}");
    }
    // sparse products are of setups, those of the formats are not
    assert!(preconditioners.contains("ok product, chain of 37"), "{preconditioners}");
    assert!(!preconditioners.contains("ok product, residual"), "{preconditioners}");
    // fifteen random matrices, and five others in up to six formats
    assert!(lines.lines().count() > 30 && last.contains("agree"), "{products}");
}

#[test]
fn the_self_test_refuses_what_it_cannot_test() {
    let refused = |arguments: &[&str], code: i32| {
        let output = bilu().arg("doctor").args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(
        refused(&["--self-test", "--backend", "gpu"], 2),
        "error: --backend: unknown backend `gpu`\n\
         hint: did you mean `cpu`? known: cpu, cpu-mt, cuda, cusparse, mpi, mpi-cuda\n"
    );
    assert_eq!(
        refused(&["--self-test", "--backend", "mpi"], 2),
        "error: --backend: `mpi` has no operations of its own\nhint: its ranks compute as `cpu` does\n"
    );
    assert!(refused(&["--seed", "1"], 2).contains("--self-test"));
    assert_eq!(
        refused(&["--self-test", "--backend", "cpu-mt", "--trisolve", "auto,levels"], 2),
        "error: --trisolve: the backend `cpu-mt` has no triangular solves `levels`\n\
         hint: omit it: this backend has one algorithm\n"
    );
    match bilu_bench::compute::available("cuda") {
        Ok(()) => eprintln!("skipped: there is a GPU"),
        Err(why) => {
            let text = refused(&["--self-test", "--backend", "cuda"], 1);
            assert!(text.starts_with(&format!("error: {why}\n")), "{text}");
            for part in ["stencils", "pencils"] {
                let text = refused(&["--self-test", "--quick", "--only", part], 2);
                let what = format!(
                    "`{part}` needs the backend `cuda`: `cpu-mt` has no algorithms for boxes"
                );
                let hint = format!("there is no GPU to test: {why}");
                assert_eq!(text, format!("error: --only: {what}\nhint: {hint}\n"));
            }
        }
    }
}

/// What a shell is offered for the last word.
fn offered(words: &[&str]) -> Vec<String> {
    let index = words.len();
    let mut command = bilu();
    command.env("BILU_BENCH_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", index.to_string());
    let output = command.env("_CLAP_IFS", "\n").args(["--", "bilu-bench"]).args(words).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn completions_offer_flags_and_values() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = printed(&["completions", shell]);
        assert!(script.contains("BILU_BENCH_COMPLETE"), "{script}");
    }
    assert_eq!(offered(&["run", "--level"]), ["--level-rule"]);
    assert_eq!(offered(&["run", "--solver", "gmres,bi"]), ["gmres,bicgstab"]);
    assert_eq!(offered(&["obstacle", "--mode", "as"]), ["async"]);
    assert_eq!(offered(&["matrix", "info", "blockp"]), ["blockpoisson3d:"]);
    assert_eq!(offered(&["reproduce", "yang/table1"]), ["yang/table1"]);
    assert_eq!(offered(&["list", "pre"]), ["preconditioners"]);
    assert_eq!(offered(&["plot", "--kind", "front"]), ["frontier"]);
    assert_eq!(offered(&["run", "poisson"]), ["poisson3d:"]);
}

/// What a terminal of `columns` shows of a command; `None` without `script`.
fn on_terminal(columns: usize, arguments: &str) -> Option<String> {
    let program = bilu().get_program().to_owned();
    let command = format!("stty cols {columns}; exec '{}' {arguments}", program.display());
    let mut script = std::process::Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).env("NO_COLOR", "1").env_remove("COLUMNS");
    let output = script.stdin(Stdio::null()).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    Some(String::from_utf8(output.stdout).unwrap().replace('\r', ""))
}

#[cfg(target_os = "linux")]
#[test]
fn tables_fit_the_terminal_and_say_what_they_leave_out() {
    let run = "run poisson3d:6 --fill 0..1 --block-size 1,2 --max-repetitions 1 -q";
    let Some(narrow) = on_terminal(80, run) else {
        eprintln!("skipped: there is no `script` here");
        return;
    };
    let rows = |text: &str| -> Vec<String> {
        text.lines().filter(|l| l.contains(" | ") || l.contains("-+-")).map(str::to_owned).collect()
    };
    let heads = |text: &str| -> Vec<String> {
        rows(text)[0].split('|').map(|head| head.trim().to_owned()).collect()
    };
    assert!(rows(&narrow).iter().all(|row| row.chars().count() <= 80), "{narrow}");
    assert_eq!(rows(&narrow).len(), 6);
    let kept = heads(&narrow);
    for head in ["block", "k", "solve", "total", "iterations", "status"] {
        assert!(kept.contains(&head.to_owned()), "{narrow}");
    }
    let left = narrow.lines().find_map(|l| l.strip_prefix("left out for want of room: ")).unwrap();
    let left = left.strip_suffix("; `--columns all` shows them").unwrap();
    let last = narrow.lines().last().unwrap();
    assert!(last.starts_with("fastest: block ") && last.contains(", k "), "{last}");
    let all = heads(&on_terminal(80, &format!("{run} --columns all")).unwrap());
    let gone: Vec<&str> = left.split(", ").collect();
    let expected: Vec<_> = all.iter().filter(|h| !gone.contains(&h.as_str())).cloned().collect();
    assert_eq!((kept.len() + gone.len(), kept), (all.len(), expected));
    // nothing is left out where there is room, or no terminal
    assert_eq!(heads(&on_terminal(250, run).unwrap()), all);
    let words: Vec<&str> = run.split_whitespace().collect();
    assert_eq!(heads(&printed(&words)), all);
    let list = on_terminal(100, "matrix list").unwrap();
    assert!(list.lines().all(|line| line.chars().count() <= 100), "{list}");
}

#[test]
fn columns_are_chosen_by_head_or_name() {
    let run = ["run", "poisson3d:6", "--fill", "0..1", "--max-repetitions", "1", "-q", "--columns"];
    let table = printed(&[&run[..], &["k,iterations,block,true-residual,backend"]].concat());
    let lines: Vec<&str> = table.lines().skip_while(|line| !line.contains('|')).collect();
    assert_eq!(lines[0], " k | iterations | block | true-residual | backend");
    assert!(lines[2].starts_with(" 0 |          8 |     1 | ") && lines[2].ends_with(" | cpu"));
    let refused = bilu().args(run).arg("k,aply-s").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(refused.stderr).unwrap(),
        "error: --columns: unknown column `aply-s`\n\
         hint: did you mean `apply-s`? heads of the table and `bilu-bench list columns` are known, \
         and `all`\n"
    );
}

#[test]
fn help_names_the_values_and_defaults() {
    let help = printed(&["run", "--help"]);
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let solvers: Vec<&str> = registry::SOLVERS.iter().map(|(name, _)| *name).collect();
    let line = format!("Solver: {} [default: gmres]", solvers.join(", "));
    assert!(words.contains(&line), "{help}");
    assert!(words.contains("inclusive ranges 0..3"), "{help}");
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_error() {
    let program = bilu().get_program().to_owned();
    let mut child = std::process::Command::new(program)
        .args(["completions", "zsh"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut message = String::new();
    child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    assert!(child.wait().unwrap().success(), "{message}");
    assert_eq!(message, "");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let program = bilu().get_program().to_owned();
    let output = std::process::Command::new(program)
        .args(["completions", "zsh"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: cannot write to `standard output`: No space left on device (os error 28)\n"
    );
}

fn record(fill: usize, solve_s: f64, half_width: f64) -> Record {
    let mut record = Record { case: Case { fill, ..Case::default() }, ..Record::default() };
    record.times.solve_s = Some(solve_s);
    record.times.solve_low_s = Some(solve_s - half_width);
    record.times.solve_high_s = Some(solve_s + half_width);
    record.times.repetitions = 10;
    record.convergence.iterations = 20;
    record
}

fn file(folder: &Path, name: &str, records: &[Record]) -> String {
    let path: PathBuf = folder.join(name);
    let mut outputs = Outputs::open(std::slice::from_ref(&path), Existing::Refuse).unwrap();
    for record in records {
        outputs.add(record).unwrap();
    }
    path.display().to_string()
}

#[test]
fn compare_judges_each_case_and_fails_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let old =
        [record(0, 1.0, 0.01), record(1, 1.0, 0.01), record(2, 1.0, 0.3), record(3, 1.0, 0.01)];
    let mut new =
        [record(0, 1.3, 0.01), record(1, 0.7, 0.01), record(2, 1.3, 0.3), record(3, 1.0, 0.01)];
    let a = file(folder.path(), "a.csv", &old);
    let b = file(folder.path(), "b.jsonl", &new);
    let verdicts = |a: &str, b: &str| -> Vec<String> {
        let rows: Vec<Value> =
            serde_json::from_str(&printed(&["compare", a, b, "--format", "json"])).unwrap();
        rows.iter().map(|row| row["verdict"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(verdicts(&a, &b), ["slower", "faster", "unclear", "same"]);
    bilu().args(["compare", &a, &b, "--fail-on-regression"]).assert().code(1);
    bilu().args(["compare", &a, &a, "--fail-on-regression"]).assert().code(0);
    bilu().args(["compare", &a, &b, "--fail-on-regression", "--threshold", "50"]).assert().code(0);
    new[3].status = Status::Diverged;
    let c = file(folder.path(), "c.json", &new[3..]);
    assert_eq!(verdicts(&a, &c), ["broken"]);
    bilu().args(["compare", &a, &c, "--fail-on-regression"]).assert().code(1);
}

#[test]
fn versus_takes_the_sides_from_several_files() {
    let folder = tempfile::tempdir().unwrap();
    let of = |backend: &str, apply_s| {
        let mut r = record(0, 1.0, 0.01);
        r.case.backend = backend.into();
        r.traffic.apply_s = Some(apply_s);
        r
    };
    let a = file(folder.path(), "a.csv", &[of("cuda", 0.5e-3)]);
    let b = file(folder.path(), "b.json", &[of("cusparse", 3e-3), of("cpu", 1.0)]);
    let rows: Vec<Value> =
        serde_json::from_str(&printed(&["versus", &a, &b, "--format", "json"])).unwrap();
    assert_eq!((rows.len(), rows[0]["apply-ratio"].as_f64()), (1, Some(6.0)));
    let output = bilu().args(["versus", &a]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: no system has records of both `cuda` and `cusparse`\n\
         hint: `bilu-bench run --backend cuda,cusparse --trisolve all -o FILE` makes them\n"
    );
}

#[test]
fn compare_says_why_it_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let a = file(folder.path(), "a.csv", &[record(0, 1.0, 0.01)]);
    let b = file(folder.path(), "b.csv", &[record(1, 1.0, 0.01)]);
    let error = |arguments: &[&str]| {
        let output = bilu().arg("compare").args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(
        error(&[&a, &b]),
        format!(
            "error: `{a}` and `{b}` have no case in common\n\
             hint: --by SETTINGS joins on fewer settings, such as `--by matrix,block-size,fill`\n"
        )
    );
    assert!(
        error(&[&a, &b, "--by", "blocksize"]).starts_with(
            "error: --by: unknown setting `blocksize`\nhint: did you mean `block-size`?"
        )
    );
    assert_eq!(error(&[&a, &a, "--threshold", "x"]), "error: --threshold: `x` is not a number\n");
    assert!(error(&[&a, "no.csv"]).starts_with("error: cannot read `no.csv`: "));
    let mut untimed = record(0, 1.0, 0.01);
    untimed.times.solve_s = None;
    let c = file(folder.path(), "c.csv", &[untimed]);
    assert_eq!(
        error(&[&a, &c]),
        format!(
            "error: {c}: no record has a value in the column `solve-s`: there is nothing to compare\n\
             hint: `bilu-bench run -o FILE` writes the column; was it removed?\n"
        )
    );
}

#[test]
fn the_installed_program_is_small() {
    const MOST: u64 = 25_000_000;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = root.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let release: toml::Table = text.parse().unwrap();
    let release = release["profile"]["release"].as_table().unwrap();
    assert_eq!(release["strip"].as_str(), Some("symbols"));
    assert!(!release.contains_key("debug"));
    // the one that was built last, unless that was with other settings
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("release/bilu-bench");
    let age = |path: &Path| std::fs::metadata(path).and_then(|m| m.modified());
    match (age(&built), age(&manifest)) {
        (Ok(of_program), Ok(of_settings)) if of_program > of_settings => {
            let bytes = std::fs::metadata(&built).unwrap().len();
            assert!(bytes <= MOST, "{}: {bytes} bytes", built.display());
        }
        _ => eprintln!("skipped: no release build with these settings"),
    }
}
