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
    ("arraycolumns.mtx", ":2: an array file holds a vector, not a sparse matrix", RHS),
    (
        "arraycomplex.mtx",
        ":1:29: complex values are not supported",
        "only real systems are solved here",
    ),
    ("arrayinteger.mtx", ":2: an array file holds a vector, not a sparse matrix", RHS),
    ("arraylong.mtx", ":2: an array file holds a vector, not a sparse matrix", RHS),
    ("arraynan.mtx", ":2: an array file holds a vector, not a sparse matrix", RHS),
    ("arrayshort.mtx", ":2: an array file holds a vector, not a sparse matrix", RHS),
    (
        "arraysymmetric.mtx",
        ":1:1: an array is read as a vector: it must be real or integer, and general",
        "",
    ),
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
