//! `kernels`: compiles the CUDA kernels and shows their registers, shared memory and spills.

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use std::process::ExitCode;
use std::time::Instant;

use cudarc::driver::{DriverError, result, sys};
use serde_json::{Map, Value, json};

use crate::base::error::{Error, Result};
use crate::base::threads::Threads;
use crate::base::units::seconds;
use crate::cli::output;
use crate::cli::tune::counts;
use crate::compute::cuda::nvrtc::KernelReport;
use crate::compute::cuda::sources::Source;
use crate::compute::cuda::{nvrtc, sources};
use crate::report::build::Columns;
use crate::report::{Report, ReportFormat};

#[derive(Debug, clap::Args)]
#[command(after_help = "Needs NVRTC of the CUDA toolkit, but no GPU. BILU_BENCH_NVRTC_DIR names \
                        the folder of libnvrtc when the loader does not find it.")]
pub(super) struct KernelsArgs {
    /// Architecture to compile for, such as `sm_80` [default: that of the first GPU, else `sm_90`]
    #[arg(long, value_name = "ARCH")]
    arch: Option<String>,

    /// Unknowns per block, 1 to 128: lists and ranges
    #[arg(long, value_name = "SIZES", default_value = "1..8,16,25,32")]
    block_size: String,

    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Compiles every source and prints the table. Fails after the table when a source does not compile.
pub(super) fn run(args: &KernelsArgs) -> Result<ExitCode> {
    let arch = match &args.arch {
        Some(text) => parse_arch(text).map_err(|e| e.in_file("--arch"))?,
        None => first_gpu().unwrap_or((9, 0)),
    };
    let sizes = counts(&args.block_size, 1, 128).map_err(|e| e.in_file("--block-size"))?;
    let version = nvrtc::version()?;
    let programs: Vec<Program> =
        Threads::Pool.each(programs(&sizes), |(source, size)| Program::compile(source, size, arch));
    let mut report = report(&programs);
    report.sheets[0].preamble =
        vec![format!("{}, NVRTC {}.{}", nvrtc::arch_name(arch), version.0, version.1)];
    let format = if args.json { ReportFormat::Json } else { ReportFormat::Table };
    output::tables(&report, format)?;
    let errors: Vec<&Error> = programs.iter().filter_map(|p| p.kernels.as_ref().err()).collect();
    for error in &errors {
        output::error(error);
    }
    Ok(if errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// `sm_90` as (9, 0): the last digit is the minor number.
fn parse_arch(text: &str) -> Result<(i32, i32)> {
    let number = text.strip_prefix("sm_").filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
    match number.map(|digits| (digits.len(), digits.parse::<i32>())) {
        Some((2..=3, Ok(number))) => Ok((number / 10, number % 10)),
        _ => Err(Error::input(format!("`{text}` is not an architecture"))
            .hint("give a compute capability: `sm_80` for 8.0, `sm_90`, `sm_100` for 10.0")),
    }
}

/// Compute capability of device 0, if there is one.
fn first_gpu() -> Option<(i32, i32)> {
    // SAFETY: only searches for the library; every other call panics without it, so it comes first
    let driver = unsafe { sys::is_culib_present() };
    driver.then(|| result::init().and_then(|()| capability(0)).ok()).flatten()
}

/// Major and minor number of the compute capability of a device, once the driver is initialised.
pub(super) fn capability(ordinal: i32) -> Result<(i32, i32), DriverError> {
    use sys::CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
    };
    let device = result::device::get(ordinal)?;
    // SAFETY: `device` was returned by the driver above
    let of = |attribute| unsafe { result::device::get_attribute(device, attribute) };
    Ok((of(MAJOR)?, of(MINOR)?))
}

/// Every source with each of its block sizes; sources without a block size once.
fn programs(sizes: &[usize]) -> Vec<(&'static Source, Option<usize>)> {
    let of = |source: &&'static Source| -> Vec<(&'static Source, Option<usize>)> {
        let Some(of) = &source.sizes else { return vec![(*source, None)] };
        let sizes = sizes.iter().filter(|size| of.contains(size));
        sizes.map(|size| (*source, Some(*size))).collect()
    };
    sources::ALL.iter().flat_map(of).collect()
}

/// A source compiled for a block size.
struct Program {
    source: &'static Source,
    block_size: Option<usize>,
    seconds: f64,
    kernels: Result<Vec<KernelReport>>,
}

impl Program {
    fn compile(source: &'static Source, block_size: Option<usize>, arch: (i32, i32)) -> Self {
        let start = Instant::now();
        let compiled = nvrtc::compile(source, block_size.unwrap_or(1), arch);
        let seconds = start.elapsed().as_secs_f64();
        Self { source, block_size, seconds, kernels: compiled.map(|c| c.kernels()) }
    }
}

/// A row of the table: a source, one of its kernels, and whether it is the first.
type Row<'a> = (&'a Program, Result<&'a KernelReport, &'a Error>, bool);

fn report(programs: &[Program]) -> Report {
    let mut rows: Vec<Row> = Vec::new();
    for program in programs {
        match &program.kernels {
            Ok(all) => rows.extend(all.iter().enumerate().map(|(i, k)| (program, Ok(k), i == 0))),
            Err(error) => rows.push((program, Err(error), true)),
        }
    }
    let of = |number: fn(&KernelReport) -> usize| {
        move |(_, kernel, _): &Row| kernel.map_or(String::new(), |k| number(k).to_string())
    };
    let objects = rows.iter().map(|(program, kernel, _)| object(program, *kernel)).collect();
    let sheet = Columns::new()
        .words("source", |(program, ..): &Row| program.source.name.to_owned())
        .words("kernel", |(_, kernel, _)| kernel.map_or("does not compile", |k| &k.name).to_owned())
        .number("block size", |(program, ..)| {
            program.block_size.map_or(String::new(), |b| b.to_string())
        })
        .number("registers", of(|k| k.registers))
        .number("shared B", of(|k| k.shared))
        .number("stack B", of(|k| k.stack))
        .number("spill stores B", of(|k| k.spill_stores))
        .number("spill loads B", of(|k| k.spill_loads))
        // that of the whole source
        .number(
            "time",
            |(program, _, first)| if *first { seconds(program.seconds) } else { String::new() },
        )
        .whole(rows);
    Report { sheets: vec![sheet], rows: objects }
}

/// A row of the JSON array; bytes, and seconds of the whole source.
fn object(program: &Program, kernel: Result<&KernelReport, &Error>) -> Map<String, Value> {
    let of = |number: fn(&KernelReport) -> usize| kernel.ok().map(number);
    let object = json!({
        "source": program.source.name,
        "kernel": kernel.ok().map(|k| &k.name),
        "block_size": program.block_size,
        "registers": of(|k| k.registers),
        "shared": of(|k| k.shared),
        "stack": of(|k| k.stack),
        "spill_stores": of(|k| k.spill_stores),
        "spill_loads": of(|k| k.spill_loads),
        "compile_seconds": program.seconds,
        "error": kernel.err().map(ToString::to_string),
    });
    match object {
        Value::Object(map) => map,
        _ => unreachable!("made as an object"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_compute_capabilities() {
        assert_eq!(parse_arch("sm_90"), Ok((9, 0)));
        assert_eq!(parse_arch("sm_89"), Ok((8, 9)));
        assert_eq!(parse_arch("sm_120"), Ok((12, 0)));
        for text in ["90", "sm_", "sm_9", "sm_90a", "sm_+9", "sm_1000", "compute_90"] {
            let error = parse_arch(text).unwrap_err();
            assert_eq!(error.to_string(), format!("`{text}` is not an architecture"));
        }
    }

    #[test]
    fn sources_without_blocks_are_compiled_once() {
        let all = programs(&counts("2,1..3,2", 1, 128).unwrap());
        let of = |name: &str| -> Vec<Option<usize>> {
            all.iter().filter(|(s, _)| s.name == name).map(|(_, size)| *size).collect()
        };
        assert_eq!(of(sources::VECTOR.name), [None]);
        assert_eq!(of(sources::SPMV.name), [Some(1), Some(2), Some(3)]);
        assert!(counts("1,129", 1, 128).is_err());
    }

    #[test]
    fn rows_of_kernels_and_of_failures_have_the_same_shape() {
        let kernel = |name: &str, registers| KernelReport {
            name: name.into(),
            registers,
            shared: 256,
            ..KernelReport::default()
        };
        let program = |block_size, kernels| Program {
            source: &sources::SPMV,
            block_size,
            seconds: 0.25,
            kernels,
        };
        let report = report(&[
            program(Some(4), Ok(vec![kernel("a", 32), kernel("b", 40)])),
            program(None, Err(Error::run("`spmv/csr.cu` does not compile"))),
        ]);
        let cells: Vec<String> = report.sheets[0].rows.iter().map(|r| r.join("|")).collect();
        let expected = [
            "spmv/csr|a|4|32|256|0|0|0|250.0 ms",
            "spmv/csr|b|4|40|256|0|0|0|",
            "spmv/csr|does not compile|||||||250.0 ms",
        ];
        assert_eq!(cells, expected);
        assert_eq!(report.keys().len(), 10);
        assert!(report.rows.iter().all(|row| row.len() == 10));
        assert_eq!(report.rows[1]["registers"], 40);
        assert_eq!(report.rows[2]["error"], "`spmv/csr.cu` does not compile");
        assert_eq!(report.rows[2]["registers"], Value::Null);
    }
}
