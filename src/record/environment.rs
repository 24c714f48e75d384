//! Machine and program of a record.

use std::sync::LazyLock;

use crate::compute;
use crate::record::columns::SCHEMA_VERSION;
use crate::record::schema::Environment;

/// Compiler that built the program.
pub(crate) const COMPILER: &str = env!("BILU_BENCH_COMPILER");
/// Target it was built for.
pub(crate) const TARGET: &str = env!("BILU_BENCH_TARGET");
/// Program version and source revision: `0.2.0 (9cd0d2757f68)`.
pub(crate) const REVISION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("BILU_BENCH_REVISION"), ")");

/// Host processor as it names itself.
pub(crate) static CPU: LazyLock<String> =
    LazyLock::new(|| brand().unwrap_or_else(|| "unknown".into()));

/// Operating system, kernel and architecture.
pub(crate) static OS: LazyLock<String> = LazyLock::new(|| {
    let name = sysinfo::System::long_os_version().unwrap_or_else(|_| std::env::consts::OS.into());
    format!("{name} {}", std::env::consts::ARCH)
});

#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
fn brand() -> Option<String> {
    let brand = raw_cpuid::CpuId::new().get_processor_brand_string()?;
    let text = brand.as_str().split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "x86")))]
fn brand() -> Option<String> {
    let mut system = sysinfo::System::new().ok()?;
    system.refresh_cpu_all();
    system.cpus().first().map(|cpu| cpu.brand().to_owned()).filter(|brand| !brand.is_empty())
}

/// The present moment, UTC, RFC 3339, whole seconds.
pub(crate) fn now() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// Adds host, program and start of a run on `backend`, which the backend does not know. A GPU that the run
/// did not reach stays unnamed.
pub(crate) fn complete(environment: &mut Environment, backend: &str, start: String) {
    environment.cpu.clone_from(&CPU);
    environment.os.clone_from(&OS);
    environment.compiler = format!("{COMPILER} {TARGET}");
    REVISION.clone_into(&mut environment.revision);
    environment.schema = Some(SCHEMA_VERSION);
    environment.date = start;
    if environment.device.is_empty() && !compute::on_gpu(backend) {
        environment.device.clone_from(&CPU);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_is_that_of_the_backend_or_the_host_but_never_the_host_of_a_gpu() {
        let completed = |backend: &str, device: &str| {
            let mut own = Environment { device: device.into(), ..Environment::default() };
            complete(&mut own, backend, "2026-01-02T03:04:05Z".into());
            own
        };
        for backend in ["cuda", "cusparse", "mpi-cuda"] {
            assert_eq!(completed(backend, "GPU 0").device, "GPU 0");
            assert_eq!(completed(backend, "").device, "", "{backend}");
        }
        let host = completed("cpu-mt", "");
        assert_eq!((&host.device, host.date.as_str()), (&*CPU, "2026-01-02T03:04:05Z"));
        assert!(host.revision.starts_with(env!("CARGO_PKG_VERSION")), "{}", host.revision);
        assert!(host.compiler.starts_with("rustc "), "{}", host.compiler);
    }

    #[test]
    fn the_date_is_rfc_3339_in_whole_seconds() {
        let now = now();
        assert_eq!(now.len(), "2026-01-02T03:04:05Z".len(), "{now}");
        assert!(now.parse::<jiff::Timestamp>().is_ok());
    }
}
