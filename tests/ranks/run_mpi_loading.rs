//! Systems of which no rank has all rows: `cargo test --features mpi --test ranks run_mpi_loading`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use bilu_bench::base::choices::ReadAs;
use bilu_bench::base::status::Status;
use bilu_bench::matrix::file::write_matrix;
use bilu_bench::matrix::hash::{matrix_hash, vector_hash};
use bilu_bench::matrix::market::Symmetry;
use bilu_bench::problem::{load, right_hand_side};
use bilu_bench::record::Record;

use crate::common;
use crate::common::mpi::command;

/// The records of a sweep over ranks.
fn ran(count: usize, folder: &Path, arguments: &[&str]) -> Vec<Record> {
    common::mpi::ran(count, "mpi", folder, arguments)
}

/// What a record says of the system and its solution.
fn of_system(r: &Record) -> impl PartialEq + std::fmt::Debug + use<> {
    assert!(r.status.succeeded(), "{:?}: {:?}", r.status, r.reason);
    (r.case.clone(), r.hash.clone(), r.size.clone(), r.convergence.clone(), r.reason.clone())
}

/// Runs a sweep on 1, 2, 3 and 5 ranks, which must leave the same systems, and solutions to the last bit; their
/// hashes are those of one process that loads `spec`.
fn same_on_any_ranks(spec: &str, cases: usize, arguments: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let x = folder.path().join("x-{case}.mtx").display().to_string();
    let division = ["--subdomains", "5", "--solution", &x];
    let arguments = [&[spec][..], &division, arguments].concat();
    let mut problem = load(spec, ReadAs::Expanded).unwrap();
    if arguments.contains(&"drop") {
        problem = problem.without_zeros();
    }
    let mut known: Option<Vec<_>> = None;
    for count in [1, 2, 3, 5] {
        let records = ran(count, folder.path(), &arguments);
        assert_eq!(records.len(), cases, "{spec}");
        for record in &records {
            let b = right_hand_side(&problem, &record.case.rhs).unwrap();
            assert_eq!(record.hash.matrix_hash.as_deref(), Some(&*matrix_hash(&problem.matrix)));
            assert_eq!(record.hash.rhs_hash.as_deref(), Some(&*vector_hash(&b)));
            assert_eq!(record.size.nnz, problem.matrix.nnz());
        }
        let solutions =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let solutions: std::collections::BTreeSet<_> =
            solutions.filter(|path| path.extension().is_some_and(|e| e == "mtx")).collect();
        assert_eq!(solutions.len(), cases);
        let solutions = solutions.into_iter().map(|path| std::fs::read(path).unwrap());
        let found: Vec<_> = records.iter().map(of_system).zip(solutions).collect();
        match &known {
            Some(known) => assert!(*known == found, "{spec} on {count} ranks"),
            None => known = Some(found),
        }
    }
}

#[test]
fn generated_rows_are_those_of_one_process() {
    let schwarz = ["--partition", "rows,boxes", "--schwarz", "jacobi,ras:2,exact:interface"];
    let rhs = ["--rhs", "random:7,a-ones,own", "--rtol", "1e-8"];
    // the last block is not full, and there are rows of wells
    let of = ["--block-size", "2", "--rhs", "own,a-ones", "--schwarz", "jacobi,exact:interface"];
    same_on_any_ranks("reservoir:6x5x7,k=2,wells=3", 4, &[&of[..], &["--fill", "1"]].concat());
    same_on_any_ranks(
        "bubbly:9x8x10,bubbles=2,boundary=dirichlet",
        18,
        &[&schwarz[..], &rhs].concat(),
    );
    // a coarse space, a method that needs a symmetric matrix, and another block size
    let of = ["--solver", "cg", "--precond", "ic", "--deflation", "none,subdomains"];
    same_on_any_ranks("layered:6x5x8,layers=4", 2, &of);
    for (size, partition) in [("1", "rows"), ("3", "boxes,rows")] {
        let of = ["--block-size", size, "--partition", partition, "--rhs", "ones"];
        let cases = partition.split(',').count();
        same_on_any_ranks("blockpoisson3d:4x5x6,b=3", cases, &of);
    }
}

/// A file in no order, with entries of one place and zeros, and a right-hand side beside it.
fn file(folder: &Path, symmetry: &str) -> String {
    let n = 401_u64;
    let mut lines = Vec::new();
    for i in 1..=n {
        lines.push(format!("{i} {i} 9.5"));
        for j in [i * 7919 % n + 1, i * 104_729 % n + 1, (i + 3) % n + 1] {
            if symmetry == "general" || j < i {
                lines.push(format!("{i} {j} {}", 0.1 - (i * j % 17) as f64 / 13.0));
            }
        }
    }
    lines.extend((9..n).step_by(7).map(|i| format!("{i} {} 0.0", i - 8)));
    // one place again and again: sums depend on their order
    lines.extend((0..9).map(|k| format!("390 20 {}", 0.1 + f64::from(k) * 1e-3)));
    let count = lines.len();
    let key = |line: &usize| line * 7919 % count;
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(key);
    let mut text = format!("%%MatrixMarket matrix coordinate real {symmetry}\n{n} {n} {count}\n");
    for line in order {
        text.push_str(&lines[line]);
        text.push('\n');
    }
    let path = folder.join(format!("{symmetry}.mtx"));
    std::fs::write(&path, text).unwrap();
    let mut b = format!("%%MatrixMarket matrix array real general\n{n} 1\n");
    (0..n).for_each(|i| _ = writeln!(b, "{}", 1.0 / (1 + i % 7) as f64));
    std::fs::write(folder.join(format!("{symmetry}_rhs.mtx")), b).unwrap();
    path.display().to_string()
}

#[test]
fn rows_of_files_are_those_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    for symmetry in ["general", "symmetric"] {
        let spec = file(folder.path(), symmetry);
        let beside =
            format!("file:{}", folder.path().join(format!("{symmetry}_rhs.mtx")).display());
        let rhs = format!("ones,own,{beside}");
        // the last block is not full; a partition of the graph has the whole matrix on one rank
        let of = ["--rhs", &rhs, "--block-size", "2", "--schwarz", "jacobi,ras:1"];
        same_on_any_ranks(&spec, 12, &[&of[..], &["--partition", "rows,graph"]].concat());
        let of = ["--rhs", "a-ones", "--zeros", "drop", "--fill", "0,1"];
        same_on_any_ranks(&spec, 4, &[&of[..], &["--schwarz", "ras:1,exact:interface"]].concat());
    }
}

/// Files that the first rank reads as a whole, with the vector behind the matrix or beside it.
#[test]
fn rows_of_other_formats_are_those_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let problem = load(&file(folder.path(), "general"), ReadAs::Expanded).unwrap();
    let b = problem.own_rhs.as_deref();
    for name in ["a.npz", "a.petsc"] {
        let path = folder.path().join(name);
        write_matrix(&path, &problem.matrix, Symmetry::General, b).unwrap();
        let spec = path.display().to_string();
        let rhs = if name == "a.npz" { "ones,a-ones" } else { "own,ones" };
        let of = ["--rhs", rhs, "--block-size", "2", "--schwarz", "jacobi,exact:interface"];
        same_on_any_ranks(&spec, 4, &of);
    }
    // all entries twice, which the first rank says
    same_on_any_ranks("tests/data/formats/coo.npz", 1, &["--rhs", "tests/data/formats/b.npy"]);
}

/// A grid is found in rows that no rank has as a whole.
#[test]
fn boxes_of_a_file_are_those_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let [nx, ny, nz] = [6, 5, 9];
    let mut lines = Vec::new();
    let points = (0..nz).flat_map(|z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [x, y, z])));
    for (i, [x, y, z]) in (1..).zip(points) {
        lines.push(format!("{i} {i} 6.5"));
        for (inside, j) in [(x > 0, i - 1), (y > 0, i - nx), (z > 0, i - nx * ny)] {
            if inside {
                lines.push(format!("{i} {j} {}", -1.0 - f64::from(i % 7) / 19.0));
            }
        }
    }
    // a well
    lines.push("260 11 -0.25".to_owned());
    lines.reverse();
    let (n, count) = (nx * ny * nz, lines.len());
    let head = "%%MatrixMarket matrix coordinate real symmetric";
    let path = folder.path().join("grid.mtx");
    std::fs::write(&path, format!("{head}\n{n} {n} {count}\n{}\n", lines.join("\n"))).unwrap();
    let spec = path.display().to_string();
    let of = ["--partition", "boxes", "--schwarz", "jacobi,ras:1,exact:interface"];
    same_on_any_ranks(&spec, 3, &of);
    // blocks of three points in a line are a grid of 2 x 5 x 9
    same_on_any_ranks(&spec, 3, &[&of[..], &["--block-size", "3"]].concat());
    let spec = file(folder.path(), "general");
    let out = command(2, &["run", &spec, "--backend", "mpi", "--partition", "boxes"]).output();
    let said = String::from_utf8_lossy(&out.expect("mpirun").stdout).into_owned();
    assert!(said.contains("no grid is known for partition `boxes`"), "{said}");
}

#[test]
fn errors_of_a_file_are_told_once_and_end_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    let head = "%%MatrixMarket matrix coordinate real general\n";
    for (text, said) in [
        ("3 3 3\n1 1 1\n2 2 1\n3 x 1\n", "a.mtx:5:3: "),
        ("3 3 4\n1 1 1\n2 2 1\n3 3 1\n", "the file ends after 3 of 4 entries"),
        ("3 2 2\n1 1 1\n2 2 1\n", "the matrix is 3 x 2, not square"),
        ("3 3 4\n1 1 1\n3 3 1e308\n2 2 1\n3 3 1e308\n", "a.mtx:6: the entries at (3, 3) add up"),
    ] {
        std::fs::write(&path, format!("{head}{text}")).unwrap();
        let out = command(3, &["run", path.to_str().unwrap(), "--backend", "mpi"])
            .output()
            .expect("mpirun");
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert_eq!((out.status.code(), stderr.matches(said).count()), (Some(2), 1), "{stderr}");
    }
    let values = "%%MatrixMarket matrix array real general\n";
    for (text, said) in [
        ("64 1\n".to_owned() + &"1\n".repeat(9), "the file ends after 9 of 64 entries"),
        ("63 1\n".to_owned() + &"1\n".repeat(63), "63 values for a matrix of 64 rows"),
        ("64 2\n".to_owned() + &"1\n".repeat(128), "64 x 2 numbers"),
        ("64 1\n1\nx\n".to_owned() + &"1\n".repeat(62), "a.mtx:4:1: "),
    ] {
        std::fs::write(&path, format!("{values}{text}")).unwrap();
        let rhs = format!("file:{}", path.display());
        let out = command(3, &["run", "poisson3d:4", "--backend", "mpi", "--rhs", &rhs])
            .output()
            .expect("mpirun");
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert_eq!((out.status.code(), stderr.matches(said).count()), (Some(2), 1), "{stderr}");
    }
    // a rank's own rows have to fit 32 bits
    let out = command(2, &["run", "poisson3d:2000", "--backend", "mpi"]).output().expect("mpirun");
    let stderr = String::from_utf8_lossy(&out.stderr);
    let said = "entries of one rank: the limit is 4294967295";
    assert_eq!((out.status.code(), stderr.matches(said).count()), (Some(2), 1), "{stderr}");
    let out = command(2, &["run", "poisson3d:4", "--backend", "mpi", "--rhs", "own"])
        .output()
        .expect("mpirun");
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(
        out.status.code() == Some(2) && stderr.contains("no right-hand side of its own"),
        "{stderr}"
    );
    let out = command(2, &["run", "convdiff3d:5,px=0.3", "--backend", "mpi", "--solver", "cg"])
        .output()
        .expect("mpirun");
    let said =
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("(1, 2) is -0.7, (2, 1) is -1.3"), "{said}");
}

/// Peaks of the fullest of 4 ranks and of one, loading included.
fn peaks(folder: &Path, spec: &str) -> [f64; 2] {
    let of = [spec, "--kind", "spmv", "--matrix-format", "csr"];
    [4, 1].map(|count| {
        let record = ran(count, folder, &of).remove(0);
        assert_eq!(record.status, Status::Measured, "{:?}", record.reason);
        record.division.rank_memory_bytes.unwrap() as f64
    })
}

/// Checks that a rank holds 1.2 of its share of one rank's peak, and `beside`: libraries and buffers, at most 200 MB,
/// but not the whole matrix.
fn assert_share(spec: &str, [of_four, of_one]: [f64; 2], beside: f64) {
    let most = 1.2 / 4.0 * of_one + beside;
    let mb = |bytes: f64| bytes / 1e6;
    println!("{spec}: {:.0} MB of a rank, {:.0} MB of one", mb(of_four), mb(of_one));
    assert!(of_four <= most, "{spec}: {:.0} MB, at most {:.0}", mb(of_four), mb(most));
}

/// No rank has the matrix, 42 MB, to find the order of exact factors.
#[test]
fn a_rank_holds_its_share_of_exact_factors() {
    let folder = tempfile::tempdir().unwrap();
    let of = ["poisson3d:80", "--schwarz", "exact:interface", "--partition", "boxes"];
    let short = ["--rtol", "0", "--max-iterations", "2", "--restart", "2"];
    let peaks = [4, 1].map(|count| {
        let record = ran(count, folder.path(), &[&of[..], &short].concat()).remove(0);
        assert_eq!(record.status, Status::Complete, "{:?}", record.reason);
        record.division.rank_memory_bytes.unwrap() as f64
    });
    assert_share("poisson3d:80, exact:interface", peaks, 70e6);
}

/// Matrices of 80 MB.
#[test]
fn a_rank_holds_its_share_of_a_system() {
    let folder = tempfile::tempdir().unwrap();
    assert_share("poisson3d:100", peaks(folder.path(), "poisson3d:100"), 70e6);
    let path = folder.path().join("a.mtx");
    let (n, lines) = (20_000_u64, 170);
    let mut out = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    let head = "%%MatrixMarket matrix coordinate pattern symmetric";
    writeln!(out, "{head}\n{n} {n} {}", n * lines).unwrap();
    for (i, k) in (1..=n).flat_map(|i| (0..lines).map(move |k| (i, k))) {
        // no row has its entries together, and each has columns everywhere
        let j = (i * 7919 + k * 104_729) % n + 1;
        writeln!(out, "{} {}", i.max(j), i.min(j)).unwrap();
    }
    out.flush().unwrap();
    drop(out);
    let spec = path.display().to_string();
    // who reads it as a whole holds 28 bytes of an entry, 190 MB
    assert_share(&spec, peaks(folder.path(), &spec), 110e6);
}
