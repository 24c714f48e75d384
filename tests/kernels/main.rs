//! The CUDA kernels compiled to machine code for an H200, which needs NVRTC but no GPU:
//! `scripts/fetch-nvrtc.sh` gets it.
#![cfg(feature = "cuda")]

mod code;
mod launches;
mod structs;

use assert_cmd::Command;
use bilu_bench::case::{FactorPrecision, LevelRule, ReadAs};
use bilu_bench::compute::cuda::nvrtc::Compiled;
use bilu_bench::compute::cuda::sources::{Source, Variant};
use bilu_bench::compute::cuda::{
    factor_variants, in_kernel_variants, largest_variant, largest_variants, nvrtc,
    product_variants, resident_variant, setup_variants, sources, stencil_variant,
};
use bilu_bench::matrix::pattern::block_pattern;
use bilu_bench::methods::solver;
use bilu_bench::obstacle::cuda::obstacle_variants;
use bilu_bench::problem;
use bilu_bench::symbolic::{FillPattern, Stencil, iluk};
use rayon::prelude::*;
use serde_json::Value;

/// Compute capability of the H200.
const ARCH: (i32, i32) = (9, 0);

/// Those of other GPUs: A100, RTX 30 and 40, B200, RTX 50.
const OTHERS: [(i32, i32); 5] = [(8, 0), (8, 6), (8, 9), (10, 0), (12, 0)];

/// Sources without kernels below compute capability 9.0: they take thread block clusters.
const CLUSTERS: [&str; 4] =
    ["ilu/stencil/entries", "ilu/stencil/blocks", "ilu/stencil/long", "sptrsv/wavefront"];

/// Bytes that kernels may spill on other GPUs: registers are measured out for the H200.
const ELSEWHERE: usize = 64;

/// Block sizes the kernels must do well: the common ones, and the large ones of the papers.
const ALL_BLOCK_SIZES: [usize; 11] = [1, 2, 3, 4, 5, 6, 7, 8, 16, 25, 32];

/// Some of each kind: points, odd and even blocks, those of a warp.
const SOME_BLOCK_SIZES: [usize; 5] = [1, 3, 4, 8, 32];

/// File for hashes of the machine code of all block sizes (`scripts/same-code.sh`).
const CODE_HASHES: &str = "BILU_BENCH_CODE_HASHES";

/// Those that are compiled: all where hashes are asked for.
fn block_sizes() -> &'static [usize] {
    match std::env::var_os(CODE_HASHES) {
        Some(_) => &ALL_BLOCK_SIZES,
        None => &SOME_BLOCK_SIZES,
    }
}

/// A kernel, its block size (0 by default where there is none) and its macros.
type Spilling = (&'static str, usize, &'static [(&'static str, usize)]);

/// Rows of three fills in tiles of 8 x 2 columns.
const LONG_ROWS: &[(&str, usize)] = &[
    ("SHEAR", 3),
    ("ALPHA", 4),
    ("BETA", 1),
    ("PATCH_Y", 4),
    ("PATCH_Z", 1),
    ("WARPS_Y", 2),
    ("WARPS_Z", 2),
];

/// Kernels that may spill, each with the reason.
const ALLOWED_SPILLS: &[Spilling] = &[
    // 8 bytes, of kernels that were measured so
    ("qmr", 3, &[("FORMAT", 2), ("PRECOND", 1), ("THREADS", 512)]),
    ("qmr", 3, &[("FORMAT", 2), ("PRECOND", 0), ("THREADS", 512)]),
    ("qmr", 4, &[("FORMAT", 2), ("PRECOND", 1), ("THREADS", 512)]),
    ("qmr", 4, &[("FORMAT", 2), ("PRECOND", 0), ("THREADS", 512)]),
    // 36 bytes, likewise
    ("stencil_factor", 1, LONG_ROWS),
];

/// Bytes that kernels may spill which lay factors out, once for a factorisation.
const ONCE: usize = 24;

/// Bytes that methods with triangular factors may spill: while they solve, their own state lies aside.
const ASIDE: usize = 128;

/// Whether NVRTC is there. Where it has to be, that it is not fails the test.
fn has_nvrtc() -> bool {
    let Err(error) = nvrtc::version() else { return true };
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    let required = set("CI") || set("BILU_BENCH_REQUIRE_NVRTC");
    assert!(!required, "{error} ({})", error.hint_text().unwrap_or_default());
    eprintln!("skipped: {error}; scripts/fetch-nvrtc.sh gets it");
    false
}

/// What is wrong with a program, one line each.
fn faults(compiled: &Compiled, variant: &Variant) -> Vec<String> {
    let kernels = compiled.kernels();
    let mut faults: Vec<String> = compiled.warnings().map(str::to_owned).collect();
    if kernels.is_empty() || !compiled.cubin.starts_with(b"\x7fELF") {
        faults.push("no kernels".into());
    }
    for k in kernels {
        let allowed = ALLOWED_SPILLS.contains(&(&k.name, variant.block_size, &variant.defines));
        let aside = variant.defines.contains(&("PRECOND", 2)) && k.spill_stores <= ASIDE;
        let once = k.name.starts_with("wavefront_store_") && k.spill_stores <= ONCE;
        if k.spills() && !allowed && !aside && !once {
            let (stores, loads) = (k.spill_stores, k.spill_loads);
            faults.push(format!("{} spills: {stores} bytes stored, {loads} loaded", k.name));
        }
        if !k.spills() && k.stack > 0 {
            faults.push(format!("{} indexes an array of each thread: {} bytes", k.name, k.stack));
        }
        if !k.spills() && allowed {
            faults.push(format!("{} no longer spills: take it off the list", k.name));
        }
    }
    faults
}

/// What is wrong with a program for another GPU.
fn faults_elsewhere(compiled: &Compiled, source: &Source, arch: (i32, i32)) -> Vec<String> {
    let old = arch < ARCH;
    // what is for clusters alone declares constants that nothing else uses
    let unused = |line: &&str| old && line.contains("warning #177-D");
    let mut faults: Vec<String> =
        compiled.warnings().filter(|line| !unused(line)).map(str::to_owned).collect();
    let kernels = compiled.kernels();
    if kernels.is_empty() != (old && CLUSTERS.contains(&source.name)) {
        faults.push(format!("{} kernels", kernels.len()));
    }
    for k in kernels.iter().filter(|k| k.spill_stores > ELSEWHERE) {
        faults.push(format!("{} spills {} bytes", k.name, k.spill_stores));
    }
    faults
}

/// The pattern of ILU(k) factors of a 7-point matrix.
fn factors(fill: usize, rule: LevelRule) -> FillPattern {
    let a = problem::load("poisson3d:12", ReadAs::Expanded).unwrap().matrix;
    iluk(&block_pattern(&a), fill, rule, usize::MAX).unwrap()
}

/// Its stencil.
fn stencil(fill: usize, rule: LevelRule) -> Stencil {
    Stencil::of_lower(factors(fill, rule).lower.view()).expect("a box")
}

/// Every source with every variant that is compiled for some matrix.
fn programs() -> Vec<(&'static Source, Variant)> {
    let block_sizes = block_sizes();
    let sizes = |source: &Source| match &source.sizes {
        Some(of) => block_sizes.iter().copied().filter(|b| of.contains(b)).collect(),
        None => vec![0],
    };
    let plain = |s: &&'static Source| {
        sizes(s).into_iter().map(|b| (*s, b.into())).collect::<Vec<(&Source, Variant)>>()
    };
    let mut programs: Vec<(&Source, Variant)> = sources::ALL.iter().flat_map(plain).collect();
    // the solves are also compiled for the lengths of rows
    let largest = block_sizes.iter().map(|b| largest_variant(*b));
    programs.extend(largest.map(|variant| (&sources::TRSV, variant)));
    // the wavefronts for stencils: factors of 7-point ones for each block size, filled ones for some
    let stencils =
        block_sizes.iter().map(|&b| (b, 0)).chain([(1, 1), (1, 2), (1, 3), (4, 1), (8, 3)]);
    let marched =
        stencils.filter_map(|(b, fill)| stencil_variant(b, &stencil(fill, LevelRule::Min)));
    programs.extend(marched.map(|variant| (&sources::WAVEFRONT, variant)));
    // where lines alternate, a warp has one of four kinds of columns
    let stencils = [(1, 2), (1, 3), (2, 2), (3, 3), (4, 2), (8, 2), (8, 3)];
    let alternating = stencils
        .iter()
        .filter_map(|(b, k)| stencil_variant(*b, &stencil(*k, LevelRule::Overwrite)));
    programs.extend(alternating.map(|variant| (&sources::WAVEFRONT, variant)));
    // the factorisations, with tiles for the H200, and for a small GPU
    let patterns = [0, 1, 2, 3].map(|fill| factors(fill, LevelRule::Min));
    for (b, pattern) in block_sizes.iter().flat_map(|b| patterns.iter().map(move |p| (*b, p))) {
        for program in [132, 1].into_iter().flat_map(|mp| factor_variants(b, pattern, mp)) {
            if !programs.contains(&program) {
                programs.push(program);
            }
        }
    }
    // and the solves in parts
    let largest = block_sizes.iter().flat_map(|b| largest_variants(*b));
    programs.extend(largest.map(|variant| (&sources::PARTITIONED, variant)));
    let resident = block_sizes.iter().filter_map(|b| resident_variant(*b));
    programs.extend(resident.map(|variant| (&sources::PARTITIONED, variant)));
    // and the solvers in one kernel for formats and preconditioners, for the blocks of reservoirs
    let in_kernel = |b| solver::persistent().flat_map(move |method| in_kernel_variants(method, b));
    programs.extend([1, 2, 3, 4, 8].into_iter().flat_map(in_kernel));
    // and the sweeps of the obstacle problem
    programs.extend(obstacle_variants());
    // and the products in all formats, as they are chosen usually
    programs.extend(block_sizes.iter().flat_map(|b| product_variants(*b)));
    // and what setups compute with, for all groups of threads
    programs.extend(setup_variants());
    // and those that solve with narrower factors, which take fewer registers, or more to widen them
    let narrower =
        [(FactorPrecision::Float32, &[1, 3, 8, 32][..]), (FactorPrecision::Bfloat16, &[1, 3])];
    for (precision, sizes) in narrower {
        let of_blocks = programs.iter().filter(|(source, variant)| {
            [&sources::TRSV, &sources::WAVEFRONT, &sources::PARTITIONED].contains(source)
                && sizes.contains(&variant.block_size)
                && !variant.defines.is_empty()
                && variant.defines.iter().all(|(name, _)| !name.starts_with("FACTOR_"))
        });
        let stored = |(source, variant): &(&'static Source, Variant)| {
            (*source, variant.clone().storing(precision))
        };
        let of_blocks: Vec<_> = of_blocks.map(stored).collect();
        programs.extend(of_blocks);
        let others = [(&sources::PENCILS, 0), (&sources::NARROW, 0), (&sources::COLOUR_BOXES, 0)];
        let others = others.into_iter().chain([(&sources::COUPLINGS, 3), (&sources::COLOURS, 1)]);
        programs.extend(others.map(|(source, b)| (source, Variant::from(b).storing(precision))));
    }
    programs
}

#[test]
fn every_kernel_compiles_without_warnings_and_spills() {
    if !has_nvrtc() {
        return;
    }
    let compiled: Vec<(Vec<String>, String)> = programs()
        .into_par_iter()
        .map(|(source, variant)| {
            let (faults, line) = match nvrtc::compile(source, variant.clone(), ARCH) {
                Ok(compiled) => {
                    let kernels = compiled.kernels();
                    let kernels: Vec<&str> = kernels.iter().map(|k| k.name.as_str()).collect();
                    (faults(&compiled, &variant), code::line(&kernels, &variant, &compiled.cubin))
                }
                Err(error) => (vec![error.to_string()], String::new()),
            };
            let named = |fault| format!("{}, {variant:?}: {fault}", source.name);
            (faults.into_iter().map(named).collect(), line)
        })
        .collect();
    let (faults, mut lines): (Vec<_>, Vec<_>) = compiled.into_iter().unzip();
    let faults = faults.concat();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    if let Some(path) = std::env::var_os(CODE_HASHES) {
        lines.sort_unstable();
        std::fs::write(path, lines.join("\n") + "\n").unwrap();
    }
}

#[test]
fn every_source_compiles_for_other_gpus() {
    if !has_nvrtc() {
        return;
    }
    // as every source is compiled without a plan, once
    let variants =
        sources::ALL.iter().map(|s| (*s, Variant::from(s.sizes.as_ref().map_or(0, |_| 3))));
    let all: Vec<_> = variants.flat_map(|v| OTHERS.map(|arch| (v.clone(), arch))).collect();
    let faults: Vec<String> = all
        .into_par_iter()
        .flat_map_iter(|((source, variant), arch)| {
            let found = match nvrtc::compile(source, variant.clone(), arch) {
                Ok(compiled) => faults_elsewhere(&compiled, source, arch),
                Err(error) => vec![error.to_string()],
            };
            found.into_iter().map(move |fault| format!("{}, {arch:?}: {fault}", source.name))
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// 64 products of 64 values in at most 32 registers, and a variable that nothing uses.
const SPILLING: Source = Source {
    name: "spilling",
    sizes: Some(1..=64),
    text: Some(
        r#"
extern "C" __global__ void __launch_bounds__(1024, 2) spilling(double* x, int n) {
  int unused;
  double v[16 * BS];
  #pragma unroll
  for (int i = 0; i < 16 * BS; ++i) v[i] = x[i * n + threadIdx.x];
  #pragma unroll
  for (int i = 0; i < 16 * BS; ++i) x[i * n + threadIdx.x] = v[i] * v[(i * 7 + 1) % (16 * BS)];
}
"#,
    ),
};

/// An array that is indexed when the kernel runs.
const INDEXED: Source = Source {
    name: "indexed",
    sizes: None,
    text: Some(
        r#"
extern "C" __global__ void indexed(int* x) {
  int v[64];
  for (int i = 0; i < 64; ++i) v[i] = x[i];
  for (int i = 0; i < 64; ++i) v[v[i]] += i;
  x[0] = v[x[64]];
}
"#,
    ),
};

#[test]
fn the_check_sees_arrays_of_each_thread() {
    if !has_nvrtc() {
        return;
    }
    let compiled = nvrtc::compile(&INDEXED, 0, ARCH).unwrap();
    let found = faults(&compiled, &0.into());
    assert_eq!(found, ["indexed indexes an array of each thread: 256 bytes"]);
}

#[test]
fn the_check_sees_warnings_and_spills() {
    if !has_nvrtc() {
        return;
    }
    let compiled = nvrtc::compile(&SPILLING, 4, ARCH).unwrap();
    let kernels = compiled.kernels();
    assert_eq!((kernels.len(), kernels[0].registers), (1, 32));
    let found = faults(&compiled, &4.into());
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("spilling.cu(3): warning #177-D"), "{found:?}");
    assert!(found[1].starts_with("spilling spills: "), "{found:?}");
}

#[test]
fn hashes_are_those_of_the_code() {
    if !has_nvrtc() {
        return;
    }
    let line = |name, text: &str| {
        let source = Source { name, text: Some(text.to_owned().leak()), sizes: None };
        let compiled = nvrtc::compile(&source, 0, ARCH).unwrap();
        code::line(&["k"], &0.into(), &compiled.cubin)
    };
    let text = "extern \"C\" __global__ void k(int* x) { *x = 1; }";
    let lower = format!("// a line above\n\n{text}");
    assert_eq!(line("a", text), line("folder/b", &lower));
    assert_ne!(line("a", text), line("a", &text.replace('1', "2")));
}

#[test]
fn errors_name_source_line_and_block_size() {
    if !has_nvrtc() {
        return;
    }
    let source = |sized: bool| Source {
        name: "bad",
        text: Some("// line 1\n__device__ int b = c;\n"),
        sizes: sized.then_some(1..=64),
    };
    let message = |sized, arch| nvrtc::compile(&source(sized), 4, arch).unwrap_err().to_string();
    let undefined = "bad.cu(2): error: identifier \"c\" is undefined";
    assert_eq!(
        message(true, ARCH),
        format!("`bad.cu` does not compile for sm_90, block size 4: {undefined}")
    );
    assert_eq!(message(false, ARCH), format!("`bad.cu` does not compile for sm_90: {undefined}"));
    assert_eq!(
        message(false, (1, 2)),
        "`bad.cu` does not compile for sm_12: \
         nvrtc: error: invalid value for --gpu-architecture (-arch)"
    );
}

fn kernels(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("bilu-bench").unwrap();
    command.arg("kernels").args(arguments).env("NO_COLOR", "1");
    command
}

/// Exit code, standard output and error.
fn outcome(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_command_shows_every_kernel() {
    if !has_nvrtc() {
        return;
    }
    let arguments = ["--arch", "sm_90", "--block-size", "2,3", "--json"];
    let (code, stdout, stderr) = outcome(&mut kernels(&arguments));
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let rows: Vec<Value> = serde_json::from_str(&stdout).unwrap();
    for source in sources::ALL {
        let of_source = rows.iter().filter(|row| row["source"] == source.name);
        let mut sizes: Vec<Value> = of_source.map(|row| row["block_size"].clone()).collect();
        sizes.dedup();
        let expected =
            if source.sizes.is_some() { vec![2.into(), 3.into()] } else { vec![Value::Null] };
        assert_eq!(sizes, expected, "{}", source.name);
    }
    assert!(rows.iter().all(|row| row["registers"].as_u64() > Some(0)), "{stdout}");

    let (code, stdout, _) = outcome(&mut kernels(&["--arch", "sm_90", "--block-size", "2"]));
    assert_eq!(code, Some(0));
    let (major, minor) = nvrtc::version().unwrap();
    assert_eq!(stdout.lines().next().unwrap(), format!("sm_90, NVRTC {major}.{minor}"));
    let of_size = rows.iter().filter(|row| row["block_size"] != 3);
    let body = stdout.lines().filter(|line| line.starts_with(' ')).count();
    assert_eq!(body, of_size.count() + 1, "{stdout}");
}

#[test]
fn the_command_shows_every_failure() {
    if !has_nvrtc() {
        return;
    }
    let arguments = ["--arch", "sm_10", "--block-size", "2", "--json"];
    let (code, stdout, stderr) = outcome(&mut kernels(&arguments));
    assert_eq!(code, Some(1));
    let rows: Vec<Value> = serde_json::from_str(&stdout).unwrap();
    let messages: Vec<&str> = rows.iter().map(|row| row["error"].as_str().unwrap()).collect();
    assert_eq!(messages.len(), sources::ALL.len());
    for message in messages {
        assert!(stderr.contains(&format!("error: {message}\n")), "{message}\n{stderr}");
    }
}

#[test]
fn the_command_tells_that_nvrtc_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().display();
    let absent = folder.path().join("absent");
    for (path, why) in [
        (folder.path(), format!("no libnvrtc-builtins.so in `{there}`")),
        (&absent, format!("`{}`: No such file or directory (os error 2)", absent.display())),
    ] {
        let (code, stdout, stderr) =
            outcome(kernels(&["--arch", "sm_90"]).env("BILU_BENCH_NVRTC_DIR", path));
        assert_eq!((code, stdout.as_str()), (Some(1), ""));
        assert_eq!(
            stderr,
            format!(
                "error: BILU_BENCH_NVRTC_DIR: NVRTC cannot be loaded: {why}\n\
                 hint: the variable names a folder with libnvrtc.so and libnvrtc-builtins.so of \
                 one version\n"
            )
        );
    }
}

#[test]
fn the_command_refuses_bad_arguments() {
    for (arguments, message) in [
        (
            ["--arch", "90"],
            "--arch: `90` is not an architecture\nhint: give a compute capability: `sm_80` for 8.0, `sm_90`, `sm_100` for 10.0",
        ),
        (["--block-size", "0"], "--block-size: `0` is outside 1 to 128"),
    ] {
        let (code, stdout, stderr) = outcome(&mut kernels(&arguments));
        assert_eq!((code, stdout.as_str()), (Some(2), ""));
        assert_eq!(stderr, format!("error: {message}\n"));
    }
}
