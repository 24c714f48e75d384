//! NVRTC, the run-time compiler of CUDA: from an embedded source to machine code for one GPU
//! architecture. Needs neither a GPU nor a driver.
//!
//! The library is loaded at the first use, from the folder in `BILU_BENCH_NVRTC_DIR` or from where
//! the loader looks. The nine functions are resolved here and not through `cudarc`, which would
//! take a `libnvrtc.so` of the system before that of the folder, and panics on what is missing.

#![allow(unsafe_code, reason = "calls of the CUDA driver and its libraries")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;

use libloading::Library;

use super::sources::{HEADERS, Source, Variant};
use crate::base::error::{Error, Result};

/// Environment variable with the folder of `libnvrtc` and `libnvrtc-builtins`, instead of where the
/// loader looks.
pub const FOLDER: &str = "BILU_BENCH_NVRTC_DIR";

/// Environment variable with further options of the compiler, separated by spaces: for those who work on
/// the kernels.
pub(crate) const OPTIONS: &str = "BILU_BENCH_NVRTC_OPTIONS";

/// Names under which the loader is asked for NVRTC. A toolkit has the first one, a package with
/// nothing but the libraries that it needs to run only one with a version.
const NAMES: [&str; 3] = ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"];

/// The compiler's name for a compute capability: `sm_90` for 9.0.
pub(crate) fn arch_name((major, minor): (i32, i32)) -> String {
    format!("sm_{major}{minor}")
}

/// What the compiler made of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// Machine code, an ELF file that the driver loads as a module.
    pub cubin: Vec<u8>,
    /// What the compiler and the assembler said.
    pub log: String,
}

/// What a kernel needs of a multiprocessor; the resources of one thread but for `shared`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelReport {
    /// Name of the kernel in the module.
    pub name: String,
    /// Registers of 32 bits.
    pub registers: usize,
    /// Bytes of the largest stack frame, of the kernel or a function it calls.
    pub stack: usize,
    /// Bytes written because registers ran out, functions it calls included.
    pub spill_stores: usize,
    /// Bytes read because registers ran out, functions it calls included.
    pub spill_loads: usize,
    /// Bytes of statically declared shared memory of a thread block.
    pub shared: usize,
}

impl KernelReport {
    /// Whether registers ran out.
    pub fn spills(&self) -> bool {
        self.spill_stores + self.spill_loads > 0
    }
}

impl Compiled {
    /// The kernels of the module, in the order in which they were assembled.
    pub fn kernels(&self) -> Vec<KernelReport> {
        kernels(&self.log)
    }

    /// Lines of the log that warn.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        // a remark behind the first warning says how to suppress it
        let warns = |line: &&str| line.contains("warning") && !line.starts_with("Remark:");
        self.log.lines().filter(warns)
    }
}

/// Version of NVRTC.
///
/// # Errors
/// When it is not there.
pub fn version() -> Result<(i32, i32)> {
    Ok(nvrtc()?.version)
}

/// Options with which `source` is compiled. `block_size` counts only where the source is sized.
pub fn options(source: &Source, variant: impl Into<Variant>, arch: (i32, i32)) -> Vec<String> {
    let variant = variant.into();
    let mut options = vec![
        format!("-arch={}", arch_name(arch)),
        "--std=c++17".to_owned(),
        "-lineinfo".to_owned(),
        "--ptxas-options=-v".to_owned(),
    ];
    if source.sizes.is_some() {
        options.push(format!("-DBS={}", variant.block_size));
    }
    options.extend(variant.defines.iter().map(|(name, value)| format!("-D{name}={value}")));
    options.extend(variant.lists.iter().map(|(name, list)| format!("-D{name}={list}")));
    let further = std::env::var(OPTIONS).unwrap_or_default();
    options.extend(further.split_whitespace().map(str::to_owned));
    options
}

/// Compiles `source` for blocks of `block_size` unknowns and the compute capability `arch`. May be
/// called by several threads at a time.
///
/// # Errors
/// When NVRTC is not there or refuses the source; the message holds the first error it found.
pub fn compile(source: &Source, variant: impl Into<Variant>, arch: (i32, i32)) -> Result<Compiled> {
    let (nvrtc, variant) = (nvrtc()?, variant.into());
    let block_size = variant.block_size;
    nvrtc.compile(source, &options(source, variant, arch)).map_err(|why| {
        let size = if source.sizes.is_some() {
            format!(", block size {block_size}")
        } else {
            String::new()
        };
        let (name, arch) = (source.name, arch_name(arch));
        let (major, minor) = nvrtc.version;
        Error::run(format!("`{name}.cu` does not compile for {arch}{size}: {why}"))
            .hint(format!("this is NVRTC {major}.{minor}; {FOLDER} names the folder of another"))
    })
}

/// Errors of the front end in `source` with other texts: its own, and those of its headers by name.
///
/// # Errors
/// When NVRTC is not there or cannot begin.
pub fn objections(
    source: &Source,
    text: &str,
    headers: &[(&str, &str)],
    variant: impl Into<Variant>,
    arch: (i32, i32),
) -> Result<Vec<String>> {
    let nvrtc = nvrtc()?;
    let mut options = options(source, variant, arch);
    options.push("-fdevice-syntax-only".to_owned());
    let (_, log, _) = nvrtc.build(source.name, text, headers, &options).map_err(Error::run)?;
    Ok(log.lines().filter(|line| line.contains(": error: ")).map(str::to_owned).collect())
}

/// What NVRTC calls a program.
type Program = *mut c_void;

macro_rules! functions {
    ($($field:ident = $symbol:literal($($argument:ty),*) -> $output:ty;)*) => {
        /// The library and its functions, as `nvrtc.h` declares them.
        struct Nvrtc {
            $($field: unsafe extern "C" fn($($argument),*) -> $output,)*
            version: (i32, i32),
            /// Holds the code of the functions.
            _library: Library,
        }

        impl Nvrtc {
            /// Resolves the functions.
            fn resolve(library: Library) -> Result<Self, libloading::Error> {
                // SAFETY: the types are those of `nvrtc.h`, the same since CUDA 11.1; the library
                // is kept as long as the pointers
                let mut nvrtc = unsafe {
                    Self {
                        $($field: *library.get($symbol)?,)*
                        version: (0, 0),
                        _library: library,
                    }
                };
                let (mut major, mut minor) = (0, 0);
                // SAFETY: both are valid for the write of one integer
                if unsafe { (nvrtc.get_version)(&raw mut major, &raw mut minor) } == 0 {
                    nvrtc.version = (major, minor);
                }
                Ok(nvrtc)
            }
        }
    };
}

functions! {
    get_version = "nvrtcVersion"(*mut c_int, *mut c_int) -> c_int;
    error_string = "nvrtcGetErrorString"(c_int) -> *const c_char;
    create = "nvrtcCreateProgram"(
        *mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char
    ) -> c_int;
    destroy = "nvrtcDestroyProgram"(*mut Program) -> c_int;
    compile_program = "nvrtcCompileProgram"(Program, c_int, *const *const c_char) -> c_int;
    log_size = "nvrtcGetProgramLogSize"(Program, *mut usize) -> c_int;
    log = "nvrtcGetProgramLog"(Program, *mut c_char) -> c_int;
    cubin_size = "nvrtcGetCUBINSize"(Program, *mut usize) -> c_int;
    cubin = "nvrtcGetCUBIN"(Program, *mut c_char) -> c_int;
}

/// The library, loaded once.
fn nvrtc() -> Result<&'static Nvrtc> {
    static NVRTC: OnceLock<Result<Nvrtc>> = OnceLock::new();
    let load = || match std::env::var_os(FOLDER).filter(|folder| !folder.is_empty()) {
        Some(folder) => load_from(Path::new(&folder)),
        None => load_by_name(),
    };
    NVRTC.get_or_init(load).as_ref().map_err(Clone::clone)
}

/// Loads both libraries of `folder`. NVRTC asks the loader for its builtins by name, and the loader
/// gives it the ones that are there already.
fn load_from(folder: &Path) -> Result<Nvrtc> {
    let failed = |why: String| {
        Error::run(format!("NVRTC cannot be loaded: {why}")).in_file(FOLDER).hint(
            "the variable names a folder with libnvrtc.so and libnvrtc-builtins.so of one version",
        )
    };
    let open = |stem: &str| -> Result<Library> {
        let path = library_in(folder, stem)
            .map_err(|e| failed(format!("`{}`: {e}", folder.display())))?
            .ok_or_else(|| failed(format!("no {stem} in `{}`", folder.display())))?;
        // SAFETY: NVIDIA's libraries do no more than set up themselves when they are loaded
        unsafe { Library::new(path) }.map_err(|e| failed(e.to_string()))
    };
    let builtins = open("libnvrtc-builtins.so")?;
    let nvrtc = Nvrtc::resolve(open("libnvrtc.so")?).map_err(|e| failed(e.to_string()))?;
    // stays loaded as long as the program runs, as NVRTC does
    std::mem::forget(builtins);
    Ok(nvrtc)
}

/// The file called `stem`, with or without a version behind it.
fn library_in(folder: &Path, stem: &str) -> std::io::Result<Option<PathBuf>> {
    let is_it = |name: &str| {
        name.strip_prefix(stem).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let files = std::fs::read_dir(folder)?.flatten();
    Ok(files.filter(|f| f.file_name().to_str().is_some_and(is_it)).map(|f| f.path()).min())
}

/// Loads NVRTC from where the loader looks.
fn load_by_name() -> Result<Nvrtc> {
    let hint = format!(
        "install the CUDA toolkit, add the folder of libnvrtc to LD_LIBRARY_PATH, \
         or name it in {FOLDER}"
    );
    for name in NAMES {
        // SAFETY: NVIDIA's libraries do no more than set up themselves when they are loaded
        if let Ok(library) = unsafe { Library::new(name) } {
            return Nvrtc::resolve(library).map_err(|e| {
                Error::run(format!("NVRTC ({name}) cannot be used: {e}")).hint(&hint)
            });
        }
    }
    let names = NAMES.join(", ");
    let message = format!("NVRTC, which compiles the CUDA kernels, was not found as {names}");
    Err(Error::run(message).hint(hint))
}

/// A program that is destroyed at the end.
struct Owned<'a> {
    nvrtc: &'a Nvrtc,
    program: Program,
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        // SAFETY: the program was created and is not used any more
        unsafe { (self.nvrtc.destroy)(&raw mut self.program) };
    }
}

impl Nvrtc {
    /// Compiles, or tells the first error.
    fn compile(&self, source: &Source, options: &[String]) -> Result<Compiled, String> {
        let (program, log, built) = self.build(source.name, source.text(), &HEADERS, options)?;
        built.map_err(|why| first_error(&log).map_or(why, str::to_owned))?;
        Ok(Compiled { cubin: program.read(self.cubin_size, self.cubin)?, log })
    }

    /// A program, what the compiler said, and whether it succeeded.
    fn build(
        &self,
        name: &str,
        text: &str,
        headers: &[(&str, &str)],
        options: &[String],
    ) -> Result<(Owned<'_>, String, Result<(), String>), String> {
        let text = c_string(text)?;
        let name = c_string(&format!("{name}.cu"))?;
        let header_texts = CStrings::new(headers.iter().map(|(_, text)| *text))?;
        let header_names = CStrings::new(headers.iter().map(|(name, _)| *name))?;
        let options = CStrings::new(options.iter().map(String::as_str))?;
        let mut program = ptr::null_mut();
        // SAFETY: all strings end in NUL and outlive the program, the counts are those of the lists
        self.check(unsafe {
            (self.create)(
                &raw mut program,
                text.as_ptr(),
                name.as_ptr(),
                header_texts.count(),
                header_texts.as_ptr(),
                header_names.as_ptr(),
            )
        })?;
        let program = Owned { nvrtc: self, program };
        // SAFETY: the program was created above; the options end in NUL
        let compiled =
            unsafe { (self.compile_program)(program.program, options.count(), options.as_ptr()) };
        let log = program.read(self.log_size, self.log)?;
        let log = String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned();
        Ok((program, log, self.check(compiled)))
    }

    /// What a status other than success means.
    fn check(&self, status: c_int) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: takes any number and returns a string that is never freed
        let text = unsafe { CStr::from_ptr((self.error_string)(status)) };
        Err(text.to_string_lossy().into_owned())
    }
}

impl Owned<'_> {
    /// Bytes of which one function tells the number and another one writes them.
    fn read(
        &self,
        size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
        get: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ) -> Result<Vec<u8>, String> {
        let mut count = 0;
        // SAFETY: the program lives; `count` is valid for a write
        self.nvrtc.check(unsafe { size(self.program, &raw mut count) })?;
        let mut bytes = vec![0_u8; count];
        // SAFETY: `get` writes as many bytes as `size` said
        self.nvrtc.check(unsafe { get(self.program, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }
}

fn c_string(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|_| "the source holds a NUL byte".to_owned())
}

/// Strings as C takes them in a list.
struct CStrings {
    pointers: Vec<*const c_char>,
    /// What the pointers point to.
    _strings: Vec<CString>,
}

impl CStrings {
    fn new<'a>(strings: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let strings = strings.map(c_string).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { pointers: strings.iter().map(|s| s.as_ptr()).collect(), _strings: strings })
    }

    fn count(&self) -> c_int {
        self.pointers.len() as c_int
    }

    fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
}

/// The first line of a log that tells of an error.
fn first_error(log: &str) -> Option<&str> {
    let is_error = |line: &&str| line.contains("error") || line.contains("fatal");
    log.lines().find(is_error).or_else(|| log.lines().find(|l| !l.is_empty())).map(str::trim)
}

/// Reads what the assembler says with `-v`: of each kernel its name, the stack frames and spills of
/// it and of the functions it calls, and `Used 32 registers, used 1 barriers, 256 bytes smem`.
fn kernels(log: &str) -> Vec<KernelReport> {
    let mut all: Vec<KernelReport> = Vec::new();
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or(rest).to_owned();
            all.push(KernelReport { name, ..KernelReport::default() });
            continue;
        }
        let Some(kernel) = all.last_mut() else { continue };
        let number = |unit: &str| number_before(line, unit);
        if let Some(stack) = number(" bytes stack frame") {
            kernel.stack = kernel.stack.max(stack);
            kernel.spill_stores += number(" bytes spill stores").unwrap_or(0);
            kernel.spill_loads += number(" bytes spill loads").unwrap_or(0);
        }
        if let Some(registers) = number(" registers") {
            kernel.registers = registers;
            kernel.shared = number(" bytes smem").unwrap_or(0);
        }
    }
    all
}

/// The number that stands right before `unit`.
fn number_before(line: &str, unit: &str) -> Option<usize> {
    let before = &line[..line.find(unit)?];
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of NVRTC 13.0: a kernel with a function that is not inlined, a kernel with shared memory, and
    /// one that spills.
    const LOG: &str = "\
k.cu(3): warning #177-D: variable \"unused\" was declared but never referenced
  extern \"C\" __global__ void k(double*x,int n){int unused;
                                                   ^

Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"

ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'g' for 'sm_90'
ptxas info    : Function properties for g
ptxas         .     320 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 320 bytes cumulative stack size
ptxas info    : Compile time = 31.681 ms
ptxas info    : Function properties for _Z1fPdi
ptxas         .     16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Compiling entry function '_Z1tIdEvPT_' for 'sm_90'
ptxas info    : Function properties for _Z1tIdEvPT_
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 1 barriers, 256 bytes smem
ptxas info    : Compile time = 2.235 ms
ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
ptxas         .     40416 bytes stack frame, 63036 bytes spill stores, 83004 bytes spill loads
ptxas info    : Used 128 registers, used 0 barriers, 40416 bytes cumulative stack size
";

    fn report(name: &str, numbers: [usize; 5]) -> KernelReport {
        let [registers, stack, spill_stores, spill_loads, shared] = numbers;
        KernelReport { name: name.into(), registers, stack, spill_stores, spill_loads, shared }
    }

    #[test]
    fn the_log_tells_the_resources_of_every_kernel() {
        let compiled = Compiled { cubin: Vec::new(), log: LOG.into() };
        let found = compiled.kernels();
        let expected = [
            report("g", [32, 320, 8, 12, 0]),
            report("_Z1tIdEvPT_", [12, 0, 0, 0, 256]),
            report("k", [128, 40416, 63036, 83004, 0]),
        ];
        assert_eq!(found, expected);
        assert_eq!(found.iter().map(KernelReport::spills).collect::<Vec<_>>(), [true, false, true]);
        let warnings: Vec<&str> = compiled.warnings().collect();
        assert_eq!(warnings, [LOG.lines().next().unwrap()]);
        assert_eq!(kernels(""), []);
    }

    #[test]
    fn the_first_error_is_found_behind_warnings() {
        let log = "k.cu(1): warning #177-D: unused\n\nk.cu(2): error: identifier \"x\" is undefined\n\
                   1 error detected in the compilation of \"k.cu\".\n";
        assert_eq!(first_error(log), Some("k.cu(2): error: identifier \"x\" is undefined"));
        let fatal =
            "ptxas info    : 0 bytes gmem\nptxas fatal   : Unresolved extern function 'f'\n";
        assert_eq!(first_error(fatal), Some("ptxas fatal   : Unresolved extern function 'f'"));
        assert_eq!(first_error("\nstrange\n"), Some("strange"));
        assert_eq!(first_error(""), None);
    }

    #[test]
    fn only_sized_sources_know_the_block_size() {
        let source =
            |sized: bool| Source { name: "k", text: Some(""), sizes: sized.then_some(1..=64) };
        let common = ["-arch=sm_120", "--std=c++17", "-lineinfo", "--ptxas-options=-v"];
        assert_eq!(options(&source(false), 4, (12, 0)), common);
        assert_eq!(options(&source(true), 4, (12, 0)), [&common[..], &["-DBS=4"]].concat());
    }

    #[test]
    fn libraries_are_found_with_and_without_version() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["libnvrtc.alt.so.13", "libnvrtc.so.13", "libnvrtc-builtins.so.13.0"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = |stem| library_in(folder.path(), stem).unwrap();
        assert_eq!(found("libnvrtc.so"), Some(folder.path().join("libnvrtc.so.13")));
        let builtins = folder.path().join("libnvrtc-builtins.so.13.0");
        assert_eq!(found("libnvrtc-builtins.so"), Some(builtins));
        assert_eq!(found("libcuda.so"), None);
    }
}
