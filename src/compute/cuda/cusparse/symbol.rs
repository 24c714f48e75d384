//! Whether the library and its functions are there, asked before they are called.
//!
//! cuSPARSE is loaded at run time and functions come and go between its releases (csrsv2 is gone,
//! `cusparseSpSV_updateMatrix` is new). cudarc panics on a function that is missing, so every call
//! of this module goes through [`status!`] or [`call!`], which look first.

use std::ffi::c_int;
use std::sync::OnceLock;

use cudarc::cusparse::sys::{self, cusparseStatus_t as Status};

use crate::base::error::{Error, Result};

/// Calls a function of cuSPARSE: `Result<Status>`, an error only where the function is missing.
///
/// Callers owe what the function asks of its arguments: live handles and descriptors (both held by
/// [`Owned`](super::owned::Owned)), host pointers into the current frame, and device pointers to
/// slices whose lengths were checked against the pattern.
macro_rules! status {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        static FOUND: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        match $crate::compute::cuda::cusparse::symbol::require(&FOUND, stringify!($name)) {
            // SAFETY: the function exists; its arguments are as the macro's documentation asks
            Ok(()) => Ok(unsafe { cudarc::cusparse::sys::$name($($argument),*) }),
            Err(missing) => Err(missing),
        }
    }};
}

/// As [`status!`], and any status but success is an error that names the function.
macro_rules! call {
    ($name:ident($($argument:expr),* $(,)?)) => {
        $crate::compute::cuda::cusparse::symbol::status!($name($($argument),*)).and_then(|status| {
            $crate::compute::cuda::cusparse::symbol::check(stringify!($name), status)
        })
    };
}

pub(super) use {call, status};

/// Whether the library can be loaded.
pub(super) fn library_present() -> bool {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: loading cuSPARSE only runs its own initialisers
    *PRESENT.get_or_init(|| unsafe { sys::is_culib_present() })
}

/// Whether the library is there and has the function `name`.
pub(super) fn has(name: &str) -> bool {
    // SAFETY: the address is only compared, never called with this type
    library_present()
        && unsafe { sys::culib().get::<unsafe extern "C" fn()>(name.as_bytes()) }.is_ok()
}

/// An error unless the function `name` can be called; `found` remembers the answer.
pub(super) fn require(found: &OnceLock<bool>, name: &str) -> Result<()> {
    if *found.get_or_init(|| has(name)) {
        return Ok(());
    }
    let library = version()?;
    Err(Error::run(format!("cuSPARSE {library} has no {name}")).hint(
        "the vendor's baseline was written for cuSPARSE 12.6 (CUDA 13.0); the backend `cuda` needs no cuSPARSE",
    ))
}

/// Version of the library, such as `12.6.3`; needs no GPU.
///
/// # Errors
/// When cuSPARSE cannot be loaded.
pub fn version() -> Result<String> {
    static VERSION: OnceLock<Option<String>> = OnceLock::new();
    if !library_present() {
        return Err(Error::run("cuSPARSE was not found on this machine").hint(
            "put the directory of libcusparse.so.12 and libnvJitLink.so on LD_LIBRARY_PATH, or use the backend `cuda`",
        ));
    }
    let version = VERSION.get_or_init(|| {
        use sys::libraryPropertyType_t::{MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL};
        let mut parts = [0; 3];
        for (part, property) in parts.iter_mut().zip([MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL]) {
            *part = property_of(property)?;
        }
        Some(format!("{}.{}.{}", parts[0], parts[1], parts[2]))
    });
    Ok(version.clone().unwrap_or_else(|| "of unknown version".to_owned()))
}

fn property_of(property: sys::libraryPropertyType_t) -> Option<c_int> {
    if !has("cusparseGetProperty") {
        return None;
    }
    let mut value = 0;
    // SAFETY: the function exists and writes one int
    let status = unsafe { sys::cusparseGetProperty(property, &raw mut value) };
    (status == Status::CUSPARSE_STATUS_SUCCESS).then_some(value)
}

/// An error that names the function, unless it succeeded.
pub(super) fn check(name: &str, status: Status) -> Result<()> {
    if status == Status::CUSPARSE_STATUS_SUCCESS {
        return Ok(());
    }
    let text = format!("{name} failed: {status:?}");
    Err(match status {
        Status::CUSPARSE_STATUS_ALLOC_FAILED | Status::CUSPARSE_STATUS_INSUFFICIENT_RESOURCES => {
            Error::memory(text).hint("the device has too little free memory: take a smaller case")
        }
        _ => Error::run(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_or_function_is_an_error_with_a_hint() {
        let error = require(&OnceLock::new(), "cusparseDcsrsv2_nowhere").unwrap_err();
        match version() {
            Ok(v) => {
                assert_eq!(error.message(), format!("cuSPARSE {v} has no cusparseDcsrsv2_nowhere"));
            }
            Err(absent) => {
                assert_eq!(error, absent);
                assert_eq!(error.message(), "cuSPARSE was not found on this machine");
            }
        }
        assert!(error.hint_text().unwrap().contains("backend `cuda`"));
        assert_eq!(error.exit_code(), 1);
    }

    #[test]
    fn a_failed_call_names_the_function_and_the_status() {
        let error = check("cusparseDbsrilu02", Status::CUSPARSE_STATUS_ALLOC_FAILED).unwrap_err();
        assert_eq!(error.message(), "cusparseDbsrilu02 failed: CUSPARSE_STATUS_ALLOC_FAILED");
        assert!(error.hint_text().unwrap().contains("memory"));
        assert_eq!(error.kind(), crate::base::error::Kind::Memory);
        assert_eq!(check("cusparseSpMV", Status::CUSPARSE_STATUS_SUCCESS), Ok(()));
    }
}
