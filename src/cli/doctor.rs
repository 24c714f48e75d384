//! `doctor`: capabilities of this machine.

#![allow(unsafe_code, reason = "queries of the system")]

mod self_test;

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Map, Value};

use crate::base::error::Result;
use crate::base::measure::system_memory;
use crate::base::units::aligned;
use crate::bench::run::peer::version;
use crate::cli::flags::PeerFlags;
use crate::cli::output;
use crate::compute::cpu::bandwidth;
use crate::compute::cpu::bandwidth::bandwidth_beyond_caches;
use crate::config::peer;
use crate::matrix::cache::Cache;
use crate::problem::Folders;
use crate::record::environment::{COMPILER, CPU, OS, REVISION, TARGET};
use crate::record::table::cell;

#[derive(Debug, clap::Args)]
pub(super) struct DoctorArgs {
    /// As JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    peers: PeerFlags,

    #[command(flatten)]
    self_test: self_test::SelfTestArgs,
}

/// Findings under one heading: name and what was found.
type Findings = Vec<(String, Value)>;

/// Prints the findings, or runs the self-test.
pub(super) fn run(args: &DoctorArgs) -> Result<ExitCode> {
    if args.self_test.asked() {
        return self_test::run(&args.self_test);
    }
    args.peers.apply()?;
    let sections: [(&str, Findings); 6] = [
        ("program", program()),
        ("processor", processor()),
        ("memory", memory()),
        ("gpu", gpu::findings()),
        ("peers", peers()),
        ("folders", folders()),
    ];
    let text = if args.json { as_json(sections) } else { as_text(&sections) };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn finding(name: &str, value: impl Into<Value>) -> (String, Value) {
    (name.to_owned(), value.into())
}

/// The library that each peer found, or why it runs none.
fn peers() -> Findings {
    let found: Findings = peer::all()
        .into_iter()
        .map(|(name, peer)| {
            let version = peer.map_err(|e| e.to_string()).and_then(|peer| version(&peer));
            finding(&name, version.unwrap_or_else(|why| format!("not usable: {why}")))
        })
        .collect();
    if found.is_empty() { vec![finding("described", "none")] } else { found }
}

fn program() -> Findings {
    vec![
        finding("version", REVISION),
        finding("compiler", COMPILER),
        finding("target", TARGET),
        finding("os", OS.as_str()),
    ]
}

fn processor() -> Findings {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut found = vec![finding("cpu", CPU.as_str())];
    found.extend(sysinfo::System::physical_core_count().map(|cores| finding("cores", cores)));
    found.push(finding("threads available", threads));
    found.extend(x86::findings());
    let pinnable = core_affinity::get_core_ids().map_or(0, |ids| ids.len());
    let pinning = if pinnable > 0 { "possible" } else { "not possible here" };
    found.push(finding("pinning", pinning));
    found.extend(numa_nodes().map(|nodes| finding("numa nodes", nodes)));
    found
}

/// NUMA nodes as Linux lists them; `None` elsewhere.
fn numa_nodes() -> Option<usize> {
    let entries = std::fs::read_dir("/sys/devices/system/node").ok()?;
    let is_node =
        |name: &str| name.strip_prefix("node").is_some_and(|n| n.parse::<usize>().is_ok());
    Some(entries.flatten().filter(|e| e.file_name().to_str().is_some_and(is_node)).count())
}

/// The word in brackets of `always [madvise] never`, as Linux lists choices. The program asks for huge pages, which
/// `madvise` and `always` grant.
fn chosen(list: &str) -> Option<&str> {
    list.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Findings, finding};

    /// Vector instructions and caches.
    pub(super) fn findings() -> Findings {
        let levels = [
            ("AVX-512", std::arch::is_x86_feature_detected!("avx512f")),
            (
                "AVX2 and FMA",
                std::arch::is_x86_feature_detected!("avx2")
                    && std::arch::is_x86_feature_detected!("fma"),
            ),
            ("AVX", std::arch::is_x86_feature_detected!("avx")),
        ];
        let best = levels.iter().find(|(_, there)| *there).map_or("SSE2", |(name, _)| name);
        let mut found = vec![finding("simd", best)];
        found.extend(caches().map(|text| finding("caches", text)));
        found
    }

    /// `L1 32 KiB, L2 1 MiB, L3 32 MiB`: data and unified caches, per instance.
    fn caches() -> Option<String> {
        let cpuid = raw_cpuid::CpuId::new();
        let texts: Vec<String> = if let Some(list) = cpuid.get_cache_parameters() {
            list.filter(|c| c.cache_type() != raw_cpuid::CacheType::Instruction)
                .map(|c| {
                    let bytes = c.associativity()
                        * c.physical_line_partitions()
                        * c.coherency_line_size()
                        * c.sets();
                    format!("L{} {} KiB", c.level(), bytes / 1024)
                })
                .collect()
        } else {
            let l1 = cpuid.get_l1_cache_and_tlb_info()?;
            let rest = cpuid.get_l2_l3_cache_and_tlb_info()?;
            vec![
                format!("L1 {} KiB", l1.dcache_size()),
                format!("L2 {} KiB", rest.l2cache_size()),
                format!("L3 {} KiB", u32::from(rest.l3cache_size()) * 512),
            ]
        };
        (!texts.is_empty()).then(|| texts.join(", "))
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod x86 {
    pub(super) fn findings() -> super::Findings {
        Vec::new()
    }
}

fn memory() -> Findings {
    let mut found = Vec::new();
    match system_memory() {
        Some((total, free)) => {
            found.push(finding("total GiB", gib(total)));
            found.push(finding("available GiB", gib(free)));
        }
        None => found.push(finding("available GiB", "unknown: the system does not tell")),
    }
    let pages = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    found.extend(pages.ok().and_then(|list| Some(finding("huge pages", chosen(&list)?))));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let counts = [1, threads];
    for &count in if threads > 1 { &counts[..] } else { &counts[..1] } {
        let on = if count == 1 { "1 thread".to_owned() } else { format!("{count} threads") };
        let measured = bandwidth_beyond_caches(count);
        let quick = bandwidth::bandwidth(count);
        found.push(finding(&format!("copy GB/s, {on}"), rounded(measured.copy_gbps)));
        found.push(finding(&format!("read GB/s, {on}"), rounded(measured.read_gbps)));
        found.push(finding(&format!("measured with, {on}"), measured.described()));
        if quick.flushed {
            let name = format!("copy GB/s in records, {on}");
            found.push(finding(&name, rounded(quick.copy_gbps)));
            found.push(finding(&format!("measured with in records, {on}"), quick.described()));
        }
    }
    found
}

fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Binary gigabytes with one decimal.
fn gib(bytes: usize) -> f64 {
    rounded(bytes as f64 / f64::from(1 << 30))
}

/// Folders in which matrices are searched and stored, and whether they are writable.
fn folders() -> Findings {
    let folders = Folders::from_env();
    let mut found: Findings = folders
        .search
        .iter()
        .map(|folder| {
            let there = if folder.is_dir() { "" } else { ", not there" };
            finding("matrices", format!("{}{there}", folder.display()))
        })
        .collect();
    let cache = Cache::from_env();
    for (name, folder) in [("downloads", folders.data.as_deref()), ("cache", cache.folder())] {
        found.push(finding(name, folder.map_or_else(|| "off".to_owned(), writable)));
    }
    found.extend(gpu::kernels_folder(cache.folder()));
    found
}

/// The folder, and whether files can be created in it or, before it exists, in its parent.
fn writable(folder: &Path) -> String {
    let existing = folder.ancestors().find(|f| f.is_dir()).unwrap_or(folder);
    let state = match (tempfile::tempfile_in(existing).is_ok(), existing == folder) {
        (true, true) => "writable",
        (true, false) => "not there yet, can be made",
        (false, _) => "not writable",
    };
    format!("{}, {state}", folder.display())
}

#[cfg(feature = "cuda")]
mod gpu {
    use cudarc::driver::{DriverError, result, sys};

    use std::path::{Path, PathBuf};

    use serde_json::Value;

    use super::{Findings, finding, gib, rounded, writable};
    use crate::base::error::Error;
    use crate::cli::kernels::capability;
    use crate::compute::cuda::{Device, cubins, cusparse, nvrtc};
    use crate::compute::tune::store;

    /// Driver and devices, or why there are none, and the libraries.
    pub(super) fn findings() -> Findings {
        let mut found = driver();
        let nvrtc = nvrtc::version().map(|(major, minor)| format!("{major}.{minor}"));
        found.push(finding("nvrtc", nvrtc.unwrap_or_else(|e| missing(&e))));
        let cusparse = cusparse::version();
        found.push(finding("cusparse", cusparse.unwrap_or_else(|e| missing(&e))));
        found
    }

    /// Folders of compiled kernels and tuning results, below the cache folder.
    pub(super) fn kernels_folder(cache: Option<&Path>) -> Findings {
        let text = |folder: Option<PathBuf>| folder.map_or_else(|| "off".into(), |f| writable(&f));
        vec![
            finding("compiled kernels", text(cache.map(cubins::folder))),
            finding("tuning", text(cache.map(store::folder))),
        ]
    }

    /// What is missing and what to do, on one line.
    fn missing(error: &Error) -> String {
        match error.hint_text() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        }
    }

    fn driver() -> Findings {
        // SAFETY: only searches for the library; every other call panics without it, so it comes first
        if !unsafe { sys::is_culib_present() } {
            return vec![finding("cuda", "no CUDA driver or GPU found; the CPU backends work")];
        }
        match devices() {
            Ok(found) => found,
            Err(e) => vec![finding(
                "cuda",
                format!("the CUDA driver is there but fails ({e}); the CPU backends work"),
            )],
        }
    }

    fn devices() -> Result<Findings, DriverError> {
        result::init()?;
        let mut version = 0;
        // SAFETY: `version` is valid for the write of one integer
        unsafe { sys::cuDriverGetVersion(&raw mut version) }.result()?;
        let version = format!("{}.{}", version / 1000, version % 1000 / 10);
        let mut found = vec![finding("cuda driver", version)];
        for ordinal in 0..result::device::get_count()? {
            found.push(finding(&format!("device {ordinal}"), device(ordinal)?));
        }
        if found.len() == 1 {
            found.push(finding("devices", "none; the CPU backends work"));
        } else {
            let copy = Device::shared().map(|device| Value::from(rounded(device.copy_bandwidth())));
            found.push(finding("copy GB/s", copy.unwrap_or_else(|e| missing(&e).into())));
        }
        Ok(found)
    }

    /// `NVIDIA H200, compute capability 9.0, 139.8 GiB`
    fn device(ordinal: i32) -> Result<String, DriverError> {
        let device = result::device::get(ordinal)?;
        let name = result::device::get_name(device)?;
        let (major, minor) = capability(ordinal)?;
        // SAFETY: `device` was returned by the driver above
        let bytes = unsafe { result::device::total_mem(device) }?;
        Ok(format!("{name}, compute capability {major}.{minor}, {} GiB", gib(bytes)))
    }
}

#[cfg(not(feature = "cuda"))]
mod gpu {
    pub(super) fn findings() -> super::Findings {
        vec![super::finding("cuda", "built without CUDA; the CPU backends work")]
    }

    pub(super) fn kernels_folder(_: Option<&std::path::Path>) -> super::Findings {
        Vec::new()
    }
}

fn as_text(sections: &[(&str, Findings)]) -> String {
    let text = sections.iter().map(|(name, findings)| {
        let pairs: Vec<_> = findings.iter().map(|(n, value)| (n.clone(), cell(value))).collect();
        format!("{name}\n{}", aligned(2, &pairs))
    });
    text.collect::<Vec<_>>().join("\n")
}

fn as_json<'a>(sections: impl IntoIterator<Item = (&'a str, Findings)>) -> String {
    let map: Map<String, Value> = sections
        .into_iter()
        .map(|(name, findings)| (name.to_owned(), Value::Object(findings.into_iter().collect())))
        .collect();
    format!("{:#}\n", Value::Object(map))
}

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn the_choice_is_the_word_in_brackets() {
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(chosen("[never]"), Some("never"));
        assert_eq!(chosen("always madvise"), None);
    }
}
