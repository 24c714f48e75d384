//! Matrix Market files that must be refused, and with which words.

/// Folder of the files.
pub(crate) const FOLDER: &str = "tests/data/mm";
const BANNER: &str =
    "the first line must read like `%%MatrixMarket matrix coordinate real general`";
const SIZES: &str = "the file is incomplete, or its size line is wrong";
const FROM_ONE: &str = "indices count from 1";
const SURPLUS: &str = "the size line is wrong, or lines were added";
const RHS: &str = "name it as a right-hand side: `file:PATH`";

/// File, what follows its name in the message, hint (empty for none).
pub(crate) const REFUSED: &[(&str, &str, &str)] = &[
    ("array.mtx", ":2: an array file holds a vector, not a sparse matrix", RHS),
    (
        "arraycomplex.mtx",
        ":1:29: complex values are not supported",
        "only real systems are solved here",
    ),
    ("arrayinteger.mtx", ":2: an array file holds a vector, not a sparse matrix", RHS),
    ("arraylong.mtx", ":2: an array file holds a vector, not a sparse matrix", RHS),
    ("arraynan.mtx", ":2: an array file holds a vector, not a sparse matrix", RHS),
    ("arrayshort.mtx", ":2: an array file holds a vector, not a sparse matrix", RHS),
    ("arraypattern.mtx", ":1:1: an array has values: it must be real or integer", ""),
    ("badnum.mtx", ":3:5: `abc` is not a number", ""),
    ("badsize.mtx", ":2:3: `two` is not a number of columns", ""),
    ("beyond32.mtx", ":2:1: 4294967296 rows: the limit is 4294967295", ""),
    ("beyond64.mtx", ":2:3: 99999999999999999999 columns: the limit is 4294967295", ""),
    ("complex.mtx", ":1:34: complex values are not supported", "only real systems are solved here"),
    (
        "damaged.mtx.gz",
        ": the compressed data are damaged: corrupt gzip stream does not have a matching checksum",
        "fetch the file again",
    ),
    (
        "dupinf.mtx",
        ":6: the entries at (1, 1) add up to more than float64 holds",
        "entries of one place are summed; is one of them wrong?",
    ),
    (
        "dupinfsym.mtx",
        ":6: the entries at (1, 2) add up to more than float64 holds",
        "entries of one place are summed; is one of them wrong?",
    ),
    ("empty.mtx", ": the file is empty", ""),
    ("farrows.mtx", ":2: 4000000000 rows but only 2 entries", "nearly every row would be empty"),
    ("floatindex.mtx", ":3:3: `1.0` is not a column number", ""),
    (
        "glued.mtx",
        ":1:1: not a Matrix Market file: its first line is `%%MatrixMarketmatrix coordinate real gen`",
        BANNER,
    ),
    ("huge.mtx", ":3: the file ends after 1 of 4294967295 entries", SIZES),
    ("hugeindex.mtx", ":3:3: column 99999999999999999999 is outside 1..=2", FROM_ONE),
    ("inf.mtx", ":3:5: `-Inf` is not finite", "the system cannot be solved with it"),
    ("layoutname.mtx", ":1:23: unknown layout `vector`, expected coordinate, array", BANNER),
    ("longsize.mtx", ":2:7: unexpected `1` on the size line", ""),
    ("nan.mtx", ":3:5: `nan` is not finite", "the system cannot be solved with it"),
    ("nearlyempty.mtx", ":2: 4000000000 rows but only 1 entry", "nearly every row would be empty"),
    ("negative.mtx", ":3:3: column -1 is outside 1..=2", FROM_ONE),
    (
        "nosize.mtx",
        ":2: the file ends before the size line",
        "after the comments must follow `rows columns entries`",
    ),
    ("notinteger.mtx", ":3:5: `2.5` is not an integer", "the header says `integer`"),
    ("notsquare.mtx", ":2:1: a symmetric matrix must be square, not 3 x 2", ""),
    ("novalue.mtx", ":3:4: the line ends before the value", ""),
    ("oob.mtx", ":3:1: row 5 is outside 1..=3", FROM_ONE),
    ("overflow.mtx", ":3:5: `1e999` is beyond the range of float64", ""),
    ("patternvalue.mtx", ":3:5: unexpected `1` after the entry", ""),
    ("png.mtx", ":1:1: not a Matrix Market file: its first line is `?PNG`", BANNER),
    ("shortbanner.mtx", ":1:38: the first line ends before the symmetry", BANNER),
    (
        "shortsize.mtx",
        ":2:4: the size line ends before the number of entries",
        "it must read `rows columns entries` (no entries for an array)",
    ),
    (
        "skewdiagonal.mtx",
        ":3:1: diagonal entry (2, 2) in a skew-symmetric file",
        "the diagonal of a skew-symmetric matrix is zero",
    ),
    (
        "symmetryname.mtx",
        ":1:39: unknown symmetry `genral`, expected general, symmetric, skew-symmetric, hermitian",
        BANNER,
    ),
    ("text.mtx", ":1:1: not a Matrix Market file: its first line is `hello, world`", BANNER),
    ("toomany.mtx", ":4:1: more entries than the size line declares", SURPLUS),
    ("trailing.mtx", ":3:7: unexpected `7` after the entry", ""),
    ("truncated.mtx", ":3: the file ends after 1 of 2 entries", SIZES),
    (
        "truncatedgz.mtx.gz",
        ": the compressed data end too early",
        "the file is incomplete, or bytes were added behind it: fetch it again",
    ),
    (
        "upper.mtx",
        ":4:1: entry (1, 2) above the diagonal of a symmetric file",
        "only the lower triangle is stored; should the header say general?",
    ),
    ("zerosize.mtx", ":2:1: the matrix is empty: 0 x 0", ""),
    ("zeroidx.mtx", ":3:1: row 0 is outside 1..=3", FROM_ONE),
];

/// Folder of files of other formats.
pub(crate) const FORMATS: &str = "tests/data/formats";

/// File, message, hint (empty for none); `FILE` is its name.
pub(crate) const FORMATS_REFUSED: &[(&str, &str, &str)] = &[
    ("b.npy", "an array of shape (6,), not a matrix", "name it as a right-hand side: `file:FILE`"),
    (
        "b.petsc",
        "begins with a vector, not with a matrix",
        "name it as a right-hand side: `file:FILE`",
    ),
    (
        "bad_arrays.npz",
        "an archive of NumPy with 2 arrays (x, y), no sparse matrix",
        "`scipy.sparse.save_npz` writes one; a vector is saved alone, as `.npy`",
    ),
    (
        "bad_bits.mtx.bz2",
        "the compressed data are damaged: bzip2: invalid data",
        "fetch the file again",
    ),
    (
        "bad_bits.mtx.xz",
        "the compressed data are damaged: rc not finished or lz has pending",
        "fetch the file again",
    ),
    (
        "bad_bits.mtx.zst",
        "the compressed data are damaged: a frame cannot be decoded",
        "fetch the file again",
    ),
    ("bad_bits.npz", "`data.npy`: its head tells no shape", ""),
    ("bad_claim.npz", "`indices.npy`: its head tells of 99,999,999 numbers, and it ends early", ""),
    (
        "bad_claim.petsc",
        "its head tells of a matrix of 6 x 6 with 2000000000 entries, and at most 264 bytes follow",
        "the file is incomplete or damaged",
    ),
    ("bad_column.npz", "`indices.npy`: number 4 is 6, outside 0 to 5", ""),
    ("bad_column.petsc", "the column of entry 0 (from 0) is 6, outside 0 to 5", ""),
    (
        "bad_complex.npz",
        "`data.npy`: complex numbers, which are not supported: only real systems are solved here",
        "",
    ),
    (
        "bad_complex.petsc",
        "what follows an object of PETSc begins no other one",
        "was it written with complex numbers, or in single precision?",
    ),
    (
        "bad_cut.mtx.bz2",
        "the compressed data end too early",
        "the file is incomplete, or bytes were added behind it: fetch it again",
    ),
    (
        "bad_cut.mtx.xz",
        "the compressed data end too early",
        "the file is incomplete, or bytes were added behind it: fetch it again",
    ),
    (
        "bad_cut.mtx.zst",
        "the compressed data end too early",
        "the file is incomplete, or bytes were added behind it: fetch it again",
    ),
    (
        "bad_cut.npz",
        "a damaged or incomplete archive of zip: Missing end of central directory",
        "fetch the file again",
    ),
    (
        "bad_cut.petsc",
        "its head tells of a matrix of 6 x 6 with 20 entries, and at most 263 bytes follow",
        "the file is incomplete or damaged",
    ),
    ("bad_empty.npz", "the matrix is empty: 0 x 0", ""),
    ("bad_end.npz", "`indptr.npy`: ends with 99, and there are 20 indices", ""),
    (
        "bad_half.npz",
        "`data.npy`: numbers of type `<f2`: float64, float32 and integers are read",
        "",
    ),
    (
        "bad_hdf5.h5",
        "is a file of HDF5, which is not read here",
        "write the matrix with `scipy.sparse.save_npz`, or with MatView of PETSc",
    ),
    (
        "bad_indices.petsc",
        "holds an object of PETSc of the class 1211218, which is not read here",
        "matrices (MatView) and vectors (VecView) are read",
    ),
    ("bad_indptr.npz", "`indptr.npy`: decreases from 3 to 2 at number 1", ""),
    (
        "bad_inf.npz",
        "the entry in row 1, column 0 is -inf (both from 0)",
        "the system cannot be solved with it",
    ),
    ("bad_large.npz", "`shape.npy`: number 1 is 5000000000, outside 0 to 4294967295", ""),
    ("bad_length.npz", "`indptr.npy`: an array of shape (6,), not (7,)", ""),
    (
        "bad_lil.npz",
        "a sparse matrix of the format `lil`",
        "csr, csc, coo, bsr and dia are read: save `a.tocsr()`",
    ),
    (
        "bad_little.petsc",
        "is a binary file of PETSc in little-endian order: PETSc writes big-endian",
        "",
    ),
    (
        "bad_matlab5.mat",
        "is a file of MATLAB (version 5 to 7), which is not read here",
        "in Python: `scipy.sparse.save_npz(\"a.npz\", scipy.io.loadmat(\"a.mat\")[\"A\"])`, where A is the matrix",
    ),
    (
        "bad_matlab73.mat",
        "is a file of MATLAB 7.3 (HDF5), which is not read here",
        "in MATLAB: `save -v7 a.mat A`; then in Python: `scipy.sparse.save_npz(\"a.npz\", scipy.io.loadmat(\"a.mat\")[\"A\"])`",
    ),
    ("bad_method.npz", "`format.npy`: compressed in a way that is not read (method 12)", ""),
    (
        "bad_nan.npz",
        "the entry in row 1, column 0 is NaN (both from 0)",
        "the system cannot be solved with it",
    ),
    (
        "bad_nan.petsc",
        "the entry in row 5, column 5 is NaN (both from 0)",
        "the system cannot be solved with it",
    ),
    ("bad_negative.npz", "`indices.npy`: number 4 is -1, outside 0 to 5", ""),
    ("bad_negative.petsc", "its head tells of -6 rows", ""),
    (
        "bad_none.npz",
        "an archive of NumPy with 4 arrays (shape, data, indices, indptr), no sparse matrix",
        "`scipy.sparse.save_npz` writes one; a vector is saved alone, as `.npy`",
    ),
    (
        "bad_object.npz",
        "`data.npy`: Python objects, which are not read: loading these (`pickle`) may run any program",
        "",
    ),
    ("bad_part.npz", "`indptr.npy`: the archive has no such array", ""),
    ("bad_records.npy", "an array of records, not of numbers", ""),
    (
        "bad_rest.petsc",
        "what follows an object of PETSc begins no other one",
        "was it written with complex numbers, or in single precision?",
    ),
    ("bad_rows.petsc", "its rows do not have the 20 entries that the head tells of", ""),
    ("bad_shape.npz", "`shape.npy`: a sparse array of 3 dimensions, not a matrix", ""),
    ("bad_values.npz", "`data.npy`: an array of shape (19,), not (20,)", ""),
    (
        "bad_vector.petsc",
        "begins with a vector, not with a matrix",
        "name it as a right-hand side: `file:FILE`",
    ),
    (
        "bad_zip.npz",
        "is an archive of zip, which is not read here",
        "unpack it: `unzip FILE`; of compressions gzip, xz, zstd and bzip2 are read",
    ),
];

/// The same of right-hand sides.
pub(crate) const VECTORS_REFUSED: &[(&str, &str, &str)] = &[
    ("a.mtx", "6 x 6 numbers: a right-hand side has one column", ""),
    ("a.petsc", "holds no vector, only matrices", ""),
    (
        "bad_complex.npy",
        "complex numbers, which are not supported: only real systems are solved here",
        "",
    ),
    ("bad_cut.npy", "it ends early", ""),
    (
        "bad_cut.petsc",
        "its head tells of a matrix of 6 x 6 with 20 entries, and at most 263 bytes follow",
        "the file is incomplete or damaged",
    ),
    ("bad_long.npy", "more than 6 numbers", ""),
    (
        "bad_matlab5.mat",
        "is a file of MATLAB (version 5 to 7), which is not read here",
        "in Python: `scipy.sparse.save_npz(\"a.npz\", scipy.io.loadmat(\"a.mat\")[\"A\"])`, where A is the matrix",
    ),
    ("bad_nan.npy", "number 1 (from 0) is NaN", ""),
    (
        "bad_object.npy",
        "Python objects, which are not read: loading these (`pickle`) may run any program",
        "",
    ),
    ("bad_records.npy", "an array of records, not of numbers", ""),
    ("bad_vector.petsc", "number 0 (from 0) of the vector is inf", ""),
    ("csr.npz", "is an archive, not a vector", "save the vector alone: `numpy.save(\"b.npy\", b)`"),
];
