//! Tells the program which source revision and compiler made it, so that every result names them,
//! embeds the experiments under `configs/`, the kernels and the fonts of figures, compressed, and collects what the
//! algorithms of triangular solves say of themselves.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use flate2::Compression;
use flate2::write::ZlibEncoder;

fn main() {
    for path in SOURCES {
        println!("cargo:rerun-if-changed={path}");
    }
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let compiler = output(&rustc, &["-V"]).unwrap_or_else(|| "unknown rustc".into());
    println!("cargo:rustc-env=BILU_BENCH_REVISION={}", revision(&root));
    println!("cargo:rustc-env=BILU_BENCH_COMPILER={compiler}");
    println!("cargo:rustc-env=BILU_BENCH_TARGET={}", env::var("TARGET").unwrap_or_default());
    pack("configs", &below(&root.join("configs"), &["toml", "csv"]));
    pack("kernels", &below(&root.join("kernels"), &["cu"]));
    pack("headers", &below(&root.join("kernels"), &["cuh"]));
    let fonts = [("regular", dejavu::sans::regular()), ("bold", dejavu::sans::bold())];
    pack("fonts", &fonts.map(|(name, bytes)| (name.to_owned(), bytes.to_vec())));
    describe(&root.join("src/compute/cuda/sptrsv"), "trisolves.rs");
    let variable = |name| env::var(name).unwrap_or_default();
    if variable("PROFILE") == "release"
        && variable("DEBUG") == "false"
        && linker_takes(&rustc, FOLD)
    {
        println!("cargo:rustc-link-arg-bins={FOLD}");
    }
}

/// Keeps one of all functions with the same instructions. Debuggers and profilers would name the wrong ones.
const FOLD: &str = "-Wl,--icf=all";

/// Whether programs can be linked with `argument`: LLD, the linker of rustc on x86-64 Linux, knows options that that of
/// GNU does not.
fn linker_takes(rustc: &str, argument: &str) -> bool {
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    write("probe.rs", b"fn main() {}");
    let mut probe = Command::new(rustc);
    probe.current_dir(&folder).args(["probe.rs", "-C", &format!("link-arg={argument}")]);
    if let Ok(target) = env::var("TARGET") {
        probe.args(["--target", &target]);
    }
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        probe.args(["-C", &format!("linker={linker}")]);
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    probe.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    probe.output().is_ok_and(|output| output.status.success())
}

/// What the program is made of.
const SOURCES: [&str; 7] =
    ["build.rs", "Cargo.toml", "Cargo.lock", "src", "kernels", "configs", "matrices"];

/// Short commit hash, with `-dirty` when tracked files of [`SOURCES`] differ from it. A crate unpacked from a
/// registry has no repository of its own (one around it is not meant), only the hash that
/// `cargo package` left; without that it is `unknown`.
fn revision(root: &Path) -> String {
    if !root.join(".git").exists() {
        return packaged_revision(root).unwrap_or_else(|| "unknown".into());
    }
    // not the index, which a mere `git status` writes
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = output("git", &["rev-parse", "--git-path", file])
            && Path::new(&path).exists()
        {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let Some(hash) = output("git", &["rev-parse", "--short=12", "HEAD"]) else {
        return "unknown".into();
    };
    let status = ["--no-optional-locks", "status", "--porcelain", "--untracked-files=no", "--"];
    let changed = output("git", &[&status[..], &SOURCES].concat());
    if changed.is_some_and(|files| !files.is_empty()) { format!("{hash}-dirty") } else { hash }
}

/// The commit in `.cargo_vcs_info.json`, which `cargo package` writes.
fn packaged_revision(root: &Path) -> Option<String> {
    let text = fs::read_to_string(root.join(".cargo_vcs_info.json")).ok()?;
    let hash = text.split("\"sha1\"").nth(1)?.split('"').nth(1)?;
    (hash.len() >= 12 && hash.bytes().all(|b| b.is_ascii_hexdigit())).then(|| hash[..12].to_owned())
}

/// Standard output of a program, or `None` when it cannot be run or fails.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The path below `folder` and the bytes of every file there that ends in one of `endings`.
fn below(folder: &Path, endings: &[&str]) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    collect(folder, endings, &mut files);
    files.sort();
    let read = |file: PathBuf| {
        let name = file.strip_prefix(folder).expect("collected below it");
        let name = name.to_str().expect("names in the repository are UTF-8").replace('\\', "/");
        (name, fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display())))
    };
    files.into_iter().map(read).collect()
}

/// Writes `list`, which `base::embedded` reads: of each file a line with its path, one with its length, its bytes,
/// all compressed.
fn pack(list: &str, files: &[(String, Vec<u8>)]) {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    for (name, bytes) in files {
        write!(packed, "{name}\n{}\n", bytes.len()).expect("memory grows");
        packed.write_all(bytes).expect("memory grows");
    }
    write(list, &packed.finish().expect("memory grows"));
}

/// Writes `list`: the `ABOUT` of every file in `folder` that the registry in its `mod.rs` names, and a constant
/// for each. The files are compiled with the feature `cuda` alone.
fn describe(folder: &Path, list: &str) {
    let read = |name: &str| {
        let path = folder.join(format!("{name}.rs"));
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    let between = |text: &str, from: &str, to: &str| {
        let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("no `{from}`"));
        rest.split_once(to).unwrap_or_else(|| panic!("no `{to}`")).0.to_owned()
    };
    let (mut all, mut constants) = (String::new(), String::new());
    let registry = between(&read("mod"), "\nregistry! {", "}");
    for module in registry.split(',').map(str::trim).filter(|module| !module.is_empty()) {
        let about = between(&read(module), "const ABOUT: Description = Description {", "\n};");
        writeln!(all, "    Description {{{about}\n    }},").expect("a string grows");
        let (name, constant) = (between(&about, "name: \"", "\""), module.to_uppercase());
        writeln!(constants, "    /// `{name}`.\n    pub const {constant}: Self = Self({name:?});")
            .expect("a string grows");
    }
    let descriptions = format!("const DESCRIPTIONS: &[Description] = &[\n{all}];\n");
    write(list, format!("{descriptions}impl Trisolve {{\n{constants}}}\n").as_bytes());
}

fn write(list: &str, content: &[u8]) {
    let target = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join(list);
    fs::write(target, content).expect("OUT_DIR can be written");
}

fn collect(folder: &Path, endings: &[&str], files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, endings, files);
        } else if path.extension().is_some_and(|e| endings.iter().any(|ending| e == *ending)) {
            files.push(path);
        }
    }
}
