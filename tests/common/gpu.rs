//! A backend on a GPU, where there is one.

use bilu_bench::compute::cuda::Cuda;

/// The backend. None, with a note on stderr, where there is no GPU; with `BILU_BENCH_REQUIRE_GPU` that fails the test.
pub(crate) fn gpu(made: bilu_bench::Result<Cuda>) -> Option<Cuda> {
    match made {
        Ok(k) => Some(k),
        Err(e) if std::env::var_os("BILU_BENCH_REQUIRE_GPU").is_some() => panic!("{e}"),
        Err(e) => {
            eprintln!("skipped: {e}");
            None
        }
    }
}
