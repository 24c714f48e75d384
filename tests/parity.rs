//! Backends against the sequential CPU on random input. The GPU's part is skipped, visibly, where
//! there is none; `BILU_BENCH_REQUIRE_GPU=1` makes that a failure.

#[cfg(feature = "cuda")]
#[path = "common/gpu.rs"]
mod gpu;

use bilu_bench::bench::parity;
use bilu_bench::bench::parity::{Extent, Finding};
use bilu_bench::case::Trisolve;
use bilu_bench::compute::Backend;
use bilu_bench::compute::cpu::Cpu;

/// The seed of the comparisons: `BILU_BENCH_SEED`, or another one each time.
fn seed() -> u64 {
    let given = std::env::var("BILU_BENCH_SEED").ok().and_then(|s| s.parse().ok());
    given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.expect("after 1970").subsec_nanos().into()
    })
}

/// Compares, and fails with the list of what differs; the names of all comparisons.
fn agrees<K: Backend + 'static>(k: &K, variants: &[Trisolve]) -> Vec<String> {
    agreed(|seed, report| parity::compare(k, variants, Extent::Full, seed, report))
}

/// The same for any part of the comparison.
fn agreed(
    compare: impl FnOnce(u64, &mut dyn FnMut(Finding)) -> bilu_bench::Result<()>,
) -> Vec<String> {
    let seed = seed();
    let mut findings: Vec<Finding> = Vec::new();
    let done = compare(seed, &mut |finding| findings.push(finding));
    let failed: Vec<String> = findings
        .iter()
        .filter(|f| !f.passed())
        .map(|f| format!("{}: {:.1e} > {:.0e}", f.check, f.difference, f.limit))
        .collect();
    assert!(
        done.is_ok() && failed.is_empty(),
        "seed {seed}: {done:?}; {} of {} comparisons differ:\n{}",
        failed.len(),
        findings.len(),
        failed.join("\n")
    );
    println!("{} comparisons agree, seed {seed}", findings.len());
    findings.into_iter().map(|f| f.check).collect()
}

#[test]
fn all_cores_agree_with_one() {
    let checks = agrees(&Cpu::parallel(Some(3)).expect("threads"), &[Trisolve::AUTO]);
    let of = |start: &str| checks.iter().filter(|check| check.starts_with(start)).count();
    assert_eq!((of("fgbilu Auto, box"), of("fgbilu Auto, no pivot"), of("fgbilu")), (10, 3, 13));
    assert_eq!(of("correction with"), 2);
}

#[cfg(feature = "cuda")]
mod cuda {
    use bilu_bench::bench::parity::Part;
    use bilu_bench::compute::Clock;
    use bilu_bench::compute::cuda::{Cuda, Limits};
    use bilu_bench::compute::trisolve::{Description, Takes};

    use super::gpu::gpu;
    use super::*;

    #[test]
    fn gpu_agrees_with_cpu() {
        if let Some(k) = gpu(Cuda::ours()) {
            // the first one also factorises
            let ours = Trisolve::which(|about| !about.library && about.automatic);
            let others = Trisolve::which(|about| !about.library && !about.automatic);
            let variants: Vec<Trisolve> = ours.chain(others).collect();
            let checks = agrees(&k, &variants);
            for style in ["Auto", "Acc", "Cl", "Tiles"] {
                let compared = |check: &String| check.starts_with(&format!("fgbilu {style}, box"));
                assert!(checks.iter().any(compared), "{style}");
            }
            // kernels were loaded, if not compiled, and no phase is charged with that
            let compiled = k.compile_seconds().unwrap();
            assert!(0.0 < compiled && compiled <= k.uncounted(), "{compiled} s");
        }
    }

    /// Far more thread blocks' worth of work than are resident, far more values than shared memory
    /// holds, and updates that are searched for.
    #[test]
    fn a_small_part_of_the_gpu_agrees_with_cpu() {
        if let Some(k) = gpu(Cuda::ours()) {
            let such = |about: &Description| about.automatic && about.takes != Takes::Axes;
            let variants: Vec<Trisolve> = Trisolve::which(such).collect();
            k.gpu().limit(Limits { resident: 2, shared_bytes: 8 << 10, ..Limits::NONE });
            agrees(&k, &variants);
            k.gpu().limit(Limits { resident: 1, update_bytes: 0, ..Limits::NONE });
            agrees(&k, &[Trisolve::SYNCFREE]);
            k.gpu().limit(Limits::NONE);
        }
    }

    /// Executions by themselves: all of the GPU, two thread blocks with little shared memory, and one.
    #[test]
    fn executions_agree_on_any_part_of_the_gpu() {
        let Some(k) = gpu(Cuda::ours()) else { return };
        let limits = [
            Limits::NONE,
            Limits { resident: 2, shared_bytes: 8 << 10, ..Limits::NONE },
            Limits { resident: 1, ..Limits::NONE },
        ];
        for limit in limits {
            k.gpu().limit(limit);
            let checks = agreed(|seed, report| {
                parity::compare_part(&k, Part::Executions, &[], Extent::Full, seed, report)
            });
            for of in ["Persistent: bicgstab Right with bilu", "Graph: qmr Left with bilu"] {
                assert!(checks.iter().any(|check| check.starts_with(of)), "{of}");
            }
        }
        k.gpu().limit(Limits::NONE);
    }

    #[test]
    fn gpu_with_solves_by_cusparse_agrees_with_cpu() {
        if let Some(k) = gpu(Cuda::ours()) {
            agrees(&k, &Trisolve::which(|about| about.library).collect::<Vec<_>>());
        }
    }

    #[test]
    fn gpu_cusparse_agrees_with_cpu() {
        if let Some(k) = gpu(Cuda::vendor()) {
            agrees(&k, &[Trisolve::AUTO]);
        }
    }
}
