//! Matrix Market readers side by side, each from the file to a CSR matrix.
//!
//! `cargo bench --bench market [-- MEGABYTES [REPETITIONS]]` writes two files of that size (160)
//! to a temporary folder and prints megabytes (1e6) per second, median of the repetitions (5). The
//! files differ in what decides the speed: the order of the entries and the digits of the values.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::time::Instant;

use bilu_bench::case::ReadAs;
use bilu_bench::matrix::market;
use matrix_market_rs::MtxData;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sprs::{CsMat, TriMat};

/// Rows and columns of the generated matrices.
const N: usize = 1_000_000;

type Reader = fn(&Path) -> usize;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).filter_map(|a| a.parse::<usize>().ok());
    let megabytes = numbers.next().unwrap_or(160);
    let repetitions = numbers.next().unwrap_or(5);
    let folder = tempfile::tempdir()?;
    let files = [
        ("rows in order, random columns, 13 digits", "rows.mtx", true),
        ("columns in order, random rows, 17 digits", "columns.mtx", false),
    ];
    let all = rayon::current_num_threads();
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    for (what, name, by_rows) in files {
        let path = folder.path().join(name);
        generate(&path, megabytes, by_rows)?;
        let size = std::fs::metadata(&path)?.len() as f64 / 1e6;
        println!("{size:.0} MB: {what}");
        let ours = one.install(|| measure(&path, repetitions, read));
        report("bilu-bench, 1 thread", size, ours, ours);
        let seconds = measure(&path, repetitions, read);
        report(&format!("bilu-bench, {all} threads"), size, seconds, ours);
        let hash = measure(&path, repetitions, hash);
        report("(SHA-256 of the file alone)", size, hash, ours);
        report("sprs", size, measure(&path, repetitions, sprs), ours);
        report("matrix-market-rs", size, measure(&path, repetitions, matrix_market_rs), ours);
    }
    Ok(())
}

fn report(who: &str, megabytes: f64, seconds: f64, ours: f64) {
    let speed = megabytes / seconds;
    println!("  {who:28} {speed:7.0} MB/s  {:5.2} x the time of one thread", seconds / ours);
}

/// Median seconds of reading.
fn measure(path: &Path, repetitions: usize, reader: Reader) -> f64 {
    let mut seconds: Vec<f64> = (0..repetitions.max(1))
        .map(|_| {
            let start = Instant::now();
            black_box(reader(path));
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn read(path: &Path) -> usize {
    market::read_matrix(path, ReadAs::Expanded).expect("generated").matrix.nnz()
}

fn sprs(path: &Path) -> usize {
    let triplets: TriMat<f64> = sprs::io::read_matrix_market(path).expect("generated");
    let matrix: CsMat<f64> = triplets.to_csr();
    matrix.nnz()
}

fn matrix_market_rs(path: &Path) -> usize {
    let Ok(MtxData::Sparse([rows, cols], places, values, _)) = MtxData::<f64>::from_file(path)
    else {
        panic!("generated");
    };
    let (i, j) = places.into_iter().map(|[i, j]| (i, j)).unzip();
    let matrix: CsMat<f64> = TriMat::from_triplets((rows, cols), i, j, values).to_csr();
    matrix.nnz()
}

fn hash(path: &Path) -> usize {
    use sha2::{Digest, Sha256};
    let mut hasher = Sha256::new();
    let mut file = File::open(path).expect("generated");
    let mut block = vec![0; 1 << 18];
    while let Ok(count @ 1..) = file.read(&mut block) {
        hasher.update(&block[..count]);
    }
    hasher.finalize().len()
}

/// Writes a file of about the given size; one index of each entry increases, the other is random.
fn generate(path: &Path, megabytes: usize, by_rows: bool) -> std::io::Result<()> {
    let entries = megabytes * 1_000_000 / if by_rows { 33 } else { 38 };
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    writeln!(out, "%%MatrixMarket matrix coordinate real general\n{N} {N} {entries}")?;
    for k in 0..entries {
        let (slow, fast) = (k * N / entries + 1, rng.random_range(1..=N));
        let value = rng.random::<f64>() - 0.5;
        if by_rows {
            writeln!(out, "{slow} {fast} {value:.12e}")?;
        } else {
            writeln!(out, "{fast} {slow} {value:.16e}")?;
        }
    }
    out.flush()
}
