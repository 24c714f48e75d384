//! What is fuzzed: everything that reads a user's file. Bytes in, no panic, nothing else asked.
//!
//! The fuzz targets and `tests/repository/fuzz_corpus.rs`, which replays the corpus in CI, both include this file.

use std::io::Cursor;

use bilu_bench::case::ReadAs;
use bilu_bench::config::file::parse;
use bilu_bench::config::source::Source;
use bilu_bench::matrix::file;
use bilu_bench::matrix::market::{read_matrix_from, read_vector_from};
use bilu_bench::methods::precond;
use bilu_bench::problem;
use bilu_bench::record::Record;
use bilu_bench::record::read::{FileFormat, read_rows_from};
use bilu_bench::report;

/// A Matrix Market file, as a matrix in both readings and as a vector.
pub(crate) fn market(data: &[u8]) {
    for read_as in [ReadAs::Expanded, ReadAs::AsStored] {
        if let Ok(read) = read_matrix_from("fuzz.mtx", Cursor::new(data.to_vec()), read_as) {
            let a = &read.matrix;
            assert_eq!(a.row_ptr()[a.rows()] as usize, a.nnz());
        }
    }
    let _ = read_vector_from("fuzz.mtx", Cursor::new(data.to_vec()), Some(0));
}

/// A file of another format, or compressed, as a matrix and as a vector.
pub(crate) fn formats(data: &[u8]) {
    let reader = || Cursor::new(data.to_vec());
    if let Ok(read) = file::read_matrix_from("fuzz", reader(), ReadAs::Expanded) {
        let a = &read.matrix;
        assert_eq!(a.row_ptr()[a.rows()] as usize, a.nnz());
        assert!(a.values().iter().all(|v| v.is_finite()));
    }
    let _ = file::read_vector_from("fuzz", reader());
}

/// A TOML experiment with its cases, their preconditioners and the arguments of generators; the
/// published files that it names hold what follows the first zero byte.
pub(crate) fn experiment(data: &[u8]) {
    let at = data.iter().position(|&b| b == 0).unwrap_or(data.len());
    let (text, beside) = (&data[..at], data.get(at + 1..).unwrap_or_default());
    let Ok(text) = std::str::from_utf8(text) else { return };
    let beside = |_: &str| Ok(String::from_utf8_lossy(beside).into_owned());
    let Ok(experiment) = parse(&Source { name: "fuzz.toml", text, folder: None, beside: &beside })
    else {
        return;
    };
    let _ = experiment.measure.resolve();
    let Ok((cases, _)) = experiment.cases() else { return };
    for case in cases.iter().take(100) {
        assert_eq!(precond::canonical(&case.precond).as_deref(), Ok(case.precond.as_str()));
        let _ = problem::Source::find(&case.matrix, &problem::Folders::default());
    }
}

/// A result file, whose format the first byte chooses, and the table of its records.
pub(crate) fn results(data: &[u8]) {
    let Some((first, data)) = data.split_first() else { return };
    let format = match first % 3 {
        0 => FileFormat::Csv,
        1 => FileFormat::JsonLines,
        _ => FileFormat::Json,
    };
    let Ok(contents) = read_rows_from::<Record>("fuzz", format, data) else { return };
    assert!(contents.valid_bytes <= data.len() as u64);
    let report = report::runs::report(&contents.records, None);
    let _ = report.markdown();
}
