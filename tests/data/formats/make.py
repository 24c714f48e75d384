#!/usr/bin/env python3
"""Makes the files of this folder, whose contents `tests/cli/formats.rs` states.

    make.py          the files of SciPy and NumPy, the compressed and the broken ones (numpy, scipy, zstd)
    make.py petsc    those of PETSc (numpy, petsc4py; the one with 64-bit integers by `struct`)
"""
import bz2
import lzma
import struct
import subprocess
import sys
import zipfile

import numpy

# two rows for each point of a line, in blocks of 2 x 2; one stored zero
N = 6
ROWS = [0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 5, 5, 5]
COLS = [0, 1, 2, 0, 1, 3, 0, 2, 3, 4, 1, 2, 3, 5, 2, 4, 5, 3, 4, 5]
VALUES = [9.0, 1.0, -1.0, 0.5, 8.0, -1.5, -2.0, 9.0, 1.0, -1.0, -2.5, 0.25, 8.0, -1.5, -2.0, 9.0, 1.0, -2.5, 0.0, 8.0]
B = [1.0, -2.0, 0.5, 4.0, 1e-3, 7.0]


def scipy_files():
    from scipy import io, sparse

    a = sparse.csr_matrix((VALUES, (ROWS, COLS)), shape=(N, N))
    sparse.save_npz("csr.npz", a)
    sparse.save_npz("plain.npz", a, compressed=False)
    sparse.save_npz("csc.npz", a.tocsc())
    sparse.save_npz("bsr.npz", sparse.bsr_matrix(a, blocksize=(2, 2)))
    sparse.save_npz("dia.npz", sparse.dia_matrix(a))
    sparse.save_npz("array.npz", sparse.csr_array(a))
    single = a.astype(numpy.float32)
    single.indices, single.indptr = single.indices.astype(numpy.int64), single.indptr.astype(numpy.int64)
    sparse.save_npz("long.npz", single)
    # every entry in two halves, the second ones backwards
    halves = [v / 2 for v in VALUES]
    twice = (halves + halves[::-1], (ROWS + ROWS[::-1], COLS + COLS[::-1]))
    sparse.save_npz("coo.npz", sparse.coo_matrix(twice, shape=(N, N)))
    whole = numpy.rint(4 * a.toarray()).astype(numpy.int32)
    sparse.save_npz("integers.npz", sparse.csr_matrix(whole))

    numpy.save("b.npy", numpy.array(B))
    numpy.save("column.npy", numpy.array(B).reshape(N, 1))
    numpy.save("big.npy", numpy.array(B).astype(">f8"))
    numpy.save("columns.npy", numpy.array([B, B]).T)
    numpy.save("dense.npy", a.toarray())
    numpy.save("fortran.npy", numpy.asfortranarray(a.toarray()))

    io.mmwrite("dense.mtx", a.toarray(), symmetry="general", precision=17)
    io.mmwrite("densesym.mtx", (a + a.T).toarray(), symmetry="symmetric", precision=17)
    text = f"%%MatrixMarket matrix coordinate real general\n{N} {N} {len(ROWS)}\n"
    text += "".join(f"{i + 1} {j + 1} {v}\n" for i, j, v in zip(ROWS, COLS, VALUES))
    data = text.encode()
    open("a.mtx", "wb").write(data)
    middle = data.index(b"\n", len(data) // 2) + 1
    open("a.mtx.xz", "wb").write(lzma.compress(data[:middle]) + lzma.compress(data[middle:]))
    open("a.mtx.bz2", "wb").write(bz2.compress(data[:middle]) + bz2.compress(data[middle:]))
    # two frames, and one that is skipped between them
    pack = lambda part: subprocess.run(["zstd", "-c"], input=part, capture_output=True, check=True).stdout
    skipped = struct.pack("<II", 0x184D2A50, 5) + b"hello"
    open("a.mtx.zst", "wb").write(pack(data[:middle]) + skipped + pack(data[middle:]))
    return a


def broken_files(a):
    from scipy import io, sparse

    def npz(name, **parts):
        arrays = dict(format=b"csr", shape=(N, N), data=a.data, indices=a.indices, indptr=a.indptr)
        arrays.update(parts)
        numpy.savez(name, **{k: v for k, v in arrays.items() if v is not None})

    def changed(values, at, value):
        values = numpy.array(values)
        values[at] = value
        return values

    npz("bad_column.npz", indices=changed(a.indices, 4, N))
    npz("bad_negative.npz", indices=changed(a.indices, 4, -1))
    npz("bad_indptr.npz", indptr=changed(a.indptr, 2, 2))
    npz("bad_end.npz", indptr=changed(a.indptr, -1, 99))
    npz("bad_length.npz", indptr=a.indptr[:-1])
    npz("bad_values.npz", data=a.data[:-1])
    npz("bad_nan.npz", data=changed(a.data, 3, numpy.nan))
    npz("bad_inf.npz", data=changed(a.data, 3, -numpy.inf))
    npz("bad_complex.npz", data=a.data.astype(complex))
    npz("bad_object.npz", data=a.data.astype(object))
    npz("bad_half.npz", data=a.data.astype(numpy.float16))
    npz("bad_shape.npz", shape=(N, N, N))
    npz("bad_large.npz", shape=(N, 5_000_000_000))
    npz("bad_empty.npz", shape=(0, 0))
    npz("bad_lil.npz", format=b"lil")
    npz("bad_part.npz", indptr=None)
    npz("bad_none.npz", format=None)
    numpy.savez("bad_arrays.npz", x=a.data, y=a.data)
    with zipfile.ZipFile("bad_zip.npz", "w") as archive:
        archive.writestr("a.mtx", open("a.mtx").read())
    good = open("csr.npz", "rb").read()
    open("bad_cut.npz", "wb").write(good[: len(good) // 2])
    at = good.index(b"data.npy") + 60
    open("bad_bits.npz", "wb").write(good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])
    # an array that tells of more numbers than it has
    plain = zipfile.ZipFile("plain.npz")
    parts = {name: plain.read(name) for name in plain.namelist()}
    with zipfile.ZipFile("bad_method.npz", "w", zipfile.ZIP_BZIP2) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    for name in ["indices.npy", "data.npy"]:
        parts[name] = parts[name].replace(b"(20,)", b"(99999999,)")
    with zipfile.ZipFile("bad_claim.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)

    numpy.save("bad_object.npy", numpy.array([1, "x"], dtype=object))
    numpy.save("bad_complex.npy", numpy.array(B).astype(complex))
    numpy.save("bad_nan.npy", numpy.array([1.0, numpy.nan]))
    b = open("b.npy", "rb").read()
    open("bad_cut.npy", "wb").write(b[:-1])
    open("bad_long.npy", "wb").write(b + b"x")
    numpy.save("bad_records.npy", numpy.zeros(2, dtype=[("x", float)]))

    io.savemat("bad_matlab5.mat", {"A": a})
    head = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512)
    open("bad_matlab73.mat", "wb").write(head + b"\x89HDF\r\n\x1a\n")
    open("bad_hdf5.h5", "wb").write(b"\x89HDF\r\n\x1a\n" + bytes(64))
    for ending in ["xz", "bz2", "zst"]:
        good = open(f"a.mtx.{ending}", "rb").read()
        open(f"bad_cut.mtx.{ending}", "wb").write(good[: len(good) - 30])
        damaged = bytearray(good)
        damaged[len(good) // 3] ^= 0xFF
        open(f"bad_bits.mtx.{ending}", "wb").write(damaged)
    sparse  # the module is used above


def petsc_objects(width, rows=ROWS, cols=COLS, values=VALUES, n=N):
    """A matrix and a vector as PETSc with integers of `width` bytes writes them."""
    kind = ">" + {4: "i", 8: "q"}[width]
    ints = lambda *numbers: b"".join(struct.pack(kind, i) for i in numbers)
    reals = lambda numbers: b"".join(struct.pack(">d", x) for x in numbers)
    lengths = [rows.count(i) for i in range(n)]
    matrix = ints(1211216, n, n, len(values), *lengths, *cols) + reals(values)
    return matrix, ints(1211214, len(B)) + reals(B)


def petsc_files():
    from petsc4py import PETSc

    def viewer(name):
        return PETSc.Viewer().createBinary(name, "w")

    starts = [sum(i < row for i in ROWS) for row in range(N + 1)]
    a = PETSc.Mat().createAIJ((N, N), csr=(starts, COLS, VALUES))
    b = PETSc.Vec().createWithArray(numpy.array(B))
    for name, objects in {"a.petsc": [a], "system.petsc": [a, b], "b.petsc": [b], "several.petsc": [a, b, b, a]}.items():
        to = viewer(name)
        for thing in objects:
            thing.view(to)
        to.destroy()
    dense = PETSc.Mat().createDense((N, N), array=numpy.array(a.convert("dense").getDenseArray()))
    to = viewer("dense.petsc")
    to.pushFormat(PETSc.Viewer.Format.NATIVE)
    dense.view(to)
    to.destroy()
    indices = PETSc.IS().createGeneral([0, 2, 1])
    indices.view(viewer("bad_indices.petsc"))

    matrix, vector = petsc_objects(8)
    open("long.petsc", "wb").write(matrix + vector)
    matrix, vector = petsc_objects(4)
    assert open("system.petsc", "rb").read() == matrix + vector
    swap = lambda data, size: b"".join(data[i : i + size][::-1] for i in range(0, len(data), size))
    values = len(matrix) - 8 * len(VALUES)
    open("bad_little.petsc", "wb").write(swap(matrix[:values], 4) + swap(matrix[values:], 8))
    open("bad_cut.petsc", "wb").write(matrix[:-1])
    open("bad_rest.petsc", "wb").write(matrix + b"\0\0\0\7rest")
    complex_values = [x for value in VALUES for x in (value, 0.0)]
    open("bad_complex.petsc", "wb").write(
        matrix[:values] + b"".join(struct.pack(">d", x) for x in complex_values))
    open("bad_claim.petsc", "wb").write(struct.pack(">iiii", 1211216, N, N, 2_000_000_000) + matrix[16:])
    open("bad_negative.petsc", "wb").write(struct.pack(">iiii", 1211216, -N, N, 20) + matrix[16:])
    open("bad_rows.petsc", "wb").write(matrix[:16] + struct.pack(">i", 2) + matrix[20:])
    at = 16 + 4 * N
    open("bad_column.petsc", "wb").write(matrix[:at] + struct.pack(">i", N) + matrix[at + 4 :])
    open("bad_nan.petsc", "wb").write(matrix[:-8] + struct.pack(">d", float("nan")))
    open("bad_vector.petsc", "wb").write(vector[:8] + struct.pack(">d", float("inf")) + vector[16:])


if sys.argv[1:] == ["petsc"]:
    petsc_files()
else:
    broken_files(scipy_files())
