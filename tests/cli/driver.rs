//! Drivers that cannot be used, played by a library that stands in for libcuda.

use std::path::Path;
use std::process::Command;

/// A driver of CUDA 12.4, and one that finds no device.
const OLD: &str = "int cuDriverGetVersion(int *v) { *v = 12040; return 0; }
int cuInit(unsigned flags) { return 0 * (int)flags; }
int cuDeviceGetCount(int *n) { *n = 0; return 0; }
";
const WITHOUT_DEVICE: &str = "int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuInit(unsigned flags) { return 100 + 0 * (int)flags; }
int cuGetErrorString(int e, const char **s) { *s = \"no CUDA-capable device is detected\"; return 0 * e; }
";

/// Compiles `source` to a libcuda.
fn driver(folder: &Path, source: &str) {
    let file = folder.join("cuda.c");
    std::fs::write(&file, source).unwrap();
    let library = folder.join("libcuda.so.1");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&file);
    assert!(compiler.status().expect("a C compiler, which Rust links with").success());
    std::fs::copy(&library, folder.join("libcuda.so")).unwrap();
}

/// What the program says with this driver: standard output and error, exit code.
fn said(source: &str, arguments: &[&str]) -> (String, Option<i32>) {
    let folder = tempfile::tempdir().unwrap();
    driver(folder.path(), source);
    let output = Command::new(env!("CARGO_BIN_EXE_bilu-bench"))
        .args(arguments)
        .env("NO_COLOR", "1")
        .env("LD_LIBRARY_PATH", folder.path())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), output.status.code())
}

#[test]
fn an_old_driver_is_named_with_what_is_needed() {
    const NEEDED: &str = "the driver is of CUDA 12.4; at least 12.8 is needed";
    let (text, code) = said(OLD, &["doctor"]);
    assert!(text.contains("cuda driver  12.4") && code == Some(0), "{code:?}: {text}");
    let run = ["run", "--matrix", "poisson3d:4", "--backend", "cpu,cuda", "--max-repetitions", "1"];
    let (text, code) = said(OLD, &run);
    // the CPU's case runs as before
    assert!(
        text.contains(&format!("cuda left out: {NEEDED}")) && code == Some(0),
        "{code:?}: {text}"
    );
}

#[test]
fn a_driver_without_a_device_is_told() {
    let (text, code) = said(WITHOUT_DEVICE, &["doctor"]);
    assert!(text.contains("no CUDA-capable device is detected"), "{text}");
    assert_eq!(code, Some(0));
}
