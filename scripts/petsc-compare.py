#!/usr/bin/python3
"""bilu-bench beside PETSc: block ILU(k) with GMRES(20) on the 3D Poisson equation: PETSc on one CPU thread.

    scripts/petsc-compare.py --n 60 --bilu-bench target/release/bilu-bench --csv compare.csv

Needs PETSc's Python binding (Debian: python3-petsc4py). Every measurement is a process of its own,
they run strictly one after the other, and the programs take turns within a case, so that a change of
the machine's speed meets both. Both solve the same system: 7-point Laplacian (diagonal 6, others -1),
right-hand side of ones, zero initial guess, natural order, preconditioner on the right, blocks of
consecutive unknowns (AIJ for block size 1, BAIJ above).

The table shows medians over the repeats, with half their range in percent after the sign; in
brackets stands PETSc's value over that of bilu-bench: above 1 bilu-bench needs less. Symbolic time is, for PETSc,
the first setup less a second one on the same pattern; for bilu-bench, pattern and analysis. Numeric time
is PETSc's second factorisation, whose memory is there already; bilu-bench takes its
memory in the analysis, which counts as symbolic here. --backends cpu-mt puts all cores beside
PETSc's one. Peak memory is that of the
whole process (VmHWM, ru_maxrss); for bilu-bench it is never below about 0.28 GB, the arrays with which
it measures the copy bandwidth before the case starts.
"""

import argparse
import csv
import glob
import json
import os
import statistics
import subprocess
import sys
import time

RESTART = 20
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
}
QUANTITIES = ["iterations", "factor_blocks", "ms_per_iteration", "numeric_s", "symbolic_s", "solve_s", "peak_mb"]


def poisson3d(numpy, n):
    """Row pointers, columns and values of the 7-point Laplacian on n^3 points, x fastest."""
    count = n**3
    # by increasing column: below, front, left, itself, right, back, above
    offsets = numpy.array([-n * n, -n, -1, 0, 1, n, n * n], dtype=numpy.int32)
    entries = numpy.array([-1.0, -1.0, -1.0, 6.0, -1.0, -1.0, -1.0])
    on_grid = numpy.ones((n, n, n, 7), dtype=bool)  # z, y, x
    on_grid[0, :, :, 0] = on_grid[:, 0, :, 1] = on_grid[:, :, 0, 2] = False
    on_grid[:, :, n - 1, 4] = on_grid[:, n - 1, :, 5] = on_grid[n - 1, :, :, 6] = False
    on_grid = on_grid.reshape(count, 7)
    row_ptr = numpy.zeros(count + 1, dtype=numpy.int32)
    numpy.cumsum(on_grid.sum(axis=1, dtype=numpy.int32), out=row_ptr[1:])
    columns = numpy.empty(row_ptr[-1], dtype=numpy.int32)
    values = numpy.empty(row_ptr[-1])
    step = max(1, (1 << 18) // n**2)  # planes at a time: the temporaries stay small
    for z in range(0, n, step):
        first, last = z * n * n, min(z + step, n) * n * n
        rows = numpy.arange(first, last, dtype=numpy.int32)
        keep = on_grid[first:last]
        part = slice(row_ptr[first], row_ptr[last])
        columns[part] = (rows[:, None] + offsets)[keep]
        values[part] = numpy.broadcast_to(entries, keep.shape)[keep]
    return row_ptr, columns, values


def assemble(PETSc, numpy, n, block):
    """The matrix in PETSc: AIJ, or BAIJ filled row by row, its memory taken once."""
    row_ptr, columns, values = poisson3d(numpy, n)
    count = n**3
    if block == 1:
        matrix = PETSc.Mat().createAIJ((count, count), csr=(row_ptr, columns, values), comm=PETSc.COMM_SELF)
        matrix.assemble()
        return matrix
    # blocks per block row, counted from the pattern so that memory is taken once
    blocks = numpy.empty(count // block, dtype=numpy.int32)
    chunk = max(1, (1 << 16) // block)
    for first in range(0, count // block, chunk):
        last = min(first + chunk, count // block)
        part = slice(row_ptr[first * block], row_ptr[last * block])
        lengths = numpy.diff(row_ptr[first * block : last * block + 1])
        rows = numpy.repeat(numpy.arange(first * block, last * block) // block, lengths).astype(numpy.int64)
        keys = numpy.unique(rows * (count // block) + columns[part] // block)
        blocks[first:last] = numpy.bincount(keys // (count // block) - first, minlength=last - first)
    matrix = PETSc.Mat().create(comm=PETSc.COMM_SELF)
    matrix.setSizes((count, count))
    matrix.setType("baij")
    matrix.setBlockSize(block)
    matrix.setPreallocationNNZ(blocks)
    matrix.setValuesCSR(row_ptr, columns, values)
    matrix.assemble()
    return matrix


def measure_petsc(a):
    """One case in PETSc, in this process; the result is a line of JSON."""
    for key, value in ONE_THREAD.items():
        os.environ[key] = value
    import numpy
    import petsc4py

    petsc4py.init(["petsc-compare"])
    from petsc4py import PETSc

    block, fill = a.block_sizes[0], a.fills[0]
    matrix = assemble(PETSc, numpy, a.n, block)
    ksp = PETSc.KSP().create(comm=PETSc.COMM_SELF)
    ksp.setOperators(matrix)
    ksp.setType("gmres")
    ksp.setGMRESRestart(RESTART)
    ksp.setPCSide(PETSc.PC.Side.RIGHT)
    ksp.setTolerances(rtol=a.rtol, atol=0.0, divtol=1e30, max_it=a.max_iterations)
    pc = ksp.getPC()
    pc.setType("ilu")
    pc.setFactorLevels(fill)
    pc.setFactorOrdering("natural")

    def timed(action):
        start = time.perf_counter()
        action()
        return time.perf_counter() - start

    setup = timed(pc.setUp)
    # the same pattern with values that count as new: only the numeric phase runs again
    numeric = []
    while len(numeric) < 3 and (not numeric or sum(numeric) < 0.5):
        matrix.stateIncrease()
        numeric.append(timed(pc.setUp))
    ksp.setUp()
    b, x = matrix.createVecLeft(), matrix.createVecRight()
    b.set(1.0)
    solves = [timed(lambda: ksp.solve(b, x))]
    iterations = ksp.getIterationNumber()
    # the first is the warm-up, unless it is long
    if solves[0] < 5.0:
        solves = []
        while len(solves) < 10 and (not solves or sum(solves) < 5.0):
            x.set(0.0)
            solves.append(timed(lambda: ksp.solve(b, x)))
    numeric_s, solve_s = statistics.median(numeric), statistics.median(solves)
    with open("/proc/self/status", encoding="ascii") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    result = {
        "iterations": iterations,
        "factor_blocks": round(pc.getFactorMatrix().getInfo()["nz_used"] / block**2),
        "numeric_s": numeric_s,
        "symbolic_s": max(setup - numeric_s, 0.0),
        "solve_s": solve_s,
        "ms_per_iteration": 1e3 * solve_s / max(iterations, 1),
        "peak_mb": peak * 1024 / 1e6,
        "version": "PETSc " + ".".join(map(str, PETSc.Sys.getVersion())),
        "format": "aij" if block == 1 else "baij",
    }
    print(json.dumps(result))


def petsc_directory():
    """PETSC_DIR for the binding; Debian installs one folder per version and scalar type."""
    if os.environ.get("PETSC_DIR"):
        return os.environ["PETSC_DIR"]
    for pattern in ["/usr/lib/petscdir/petsc*/*-real", "/usr/lib/petscdir/*/*-real", "/usr/lib/petsc"]:
        found = [d for d in glob.glob(pattern) if glob.glob(d + "/lib/python3/dist-packages/petsc4py")]
        if found:
            return sorted(found)[-1]
    return None


def child(command, environment):
    """Runs a process to its end: its standard output, exit code and peak memory in bytes."""
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    with process.stdout:
        output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return output, process.returncode, usage.ru_maxrss * 1024


def warm_memory(gigabytes):
    """Makes a virtual machine's host back this much memory. A host that takes freed memory back would
    otherwise charge its return to whichever program happens to touch it first."""
    if gigabytes > 0:
        touch = f"import numpy; numpy.ones({int(gigabytes * 1e9 / 8)})"
        subprocess.run([sys.executable, "-c", touch], check=True)


def run_petsc(a, environment, block, fill):
    command = [sys.executable, os.path.abspath(__file__), "--measure-petsc", "--n", str(a.n)]
    command += ["--block-sizes", str(block), "--fills", str(fill)]
    command += ["--rtol", repr(a.rtol), "--max-iterations", str(a.max_iterations)]
    output, code, _ = child(command, environment)
    if code != 0:
        sys.exit(f"error: PETSc failed with exit code {code} (block size {block}, k = {fill})")
    return json.loads(output.splitlines()[-1])


def run_bilu(a, environment, block, fill, column):
    matrix_format, backend = a.columns[column]
    command = [a.bilu_bench, "run", "--matrix", f"poisson3d:{a.n}", "--rhs", "ones"]
    command += ["--block-size", str(block), "--precond", "bilu", "--fill", str(fill)]
    command += ["--level-rule", "min", "--solver", "gmres", "--side", "right"]
    command += ["--restart", str(RESTART), "--rtol", repr(a.rtol)]
    command += ["--max-iterations", str(a.max_iterations), "--matrix-format", matrix_format]
    # one solve, as for PETSc
    command += ["--max-repetitions", "1", "--time-budget", "0.001"]
    command += ["--backend", backend, "--quiet", "--format", "json"]
    output, code, peak = child(command, environment)
    # 1 only says that the iteration limit was reached
    if code not in (0, 1):
        sys.exit(f"error: {' '.join(command)} failed with exit code {code}")
    record = json.loads(output)[0]
    if record["status"] not in ("converged", "not-converged"):
        sys.exit(f"error: block size {block}, k = {fill}: {record['status']}: {record['reason']}")
    return {
        "iterations": record["iterations"],
        "factor_blocks": record["factor-blocks"],
        "numeric_s": record["numeric-s"],
        "symbolic_s": record["symbolic-s"] + record["analysis-s"],
        "solve_s": record["solve-s"],
        "ms_per_iteration": record["ms-per-iteration"],
        "peak_mb": peak / 1e6,
        "version": "bilu-bench " + record["revision"],
        "format": record["format-used"],
        "cpu": record["cpu"],
        "threads": record["threads"],
    }


class Median:
    """Median and half range of one quantity over the repeats."""

    def __init__(self, samples):
        self.value = statistics.median(samples)
        self.spread = (max(samples) - min(samples)) / 2

    def text(self, scale=1.0):
        value = self.value * scale
        percent = f" ±{100 * self.spread / self.value:.0f}%" if self.value > 0 else ""
        return f"{value:.3g}{percent}" if value < 1000 else f"{value:.0f}{percent}"


def measure(a, environment):
    """All samples: (block size, k, program) -> list of results, programs in turn."""
    samples = {}
    programs = ["petsc", *a.columns]
    cases = [(b, k) for b in a.block_sizes for k in a.fills]
    for number, (block, fill) in enumerate(cases, 1):
        for repeat in range(a.repeats):
            # rotated, so that none is always the first after a pause
            turn = programs[repeat % len(programs) :] + programs[: repeat % len(programs)]
            for program in turn:
                say = f"[{number}/{len(cases)}] block size {block}, k = {fill}, repeat {repeat + 1}: {program}"
                print(say, file=sys.stderr, flush=True)
                warm_memory(a.warm_gb)
                if program == "petsc":
                    result = run_petsc(a, environment, block, fill)
                else:
                    result = run_bilu(a, environment, block, fill, program)
                samples.setdefault((block, fill, program), []).append(result)
    return samples


def agreed(of, quantity):
    """The count that all runs of all programs share, or the counts of each program in turn."""
    counts = [sorted({r[quantity] for r in results}) for results in of.values()]
    if all(c == counts[0] and len(c) == 1 for c in counts):
        return f"{counts[0][0]} (equal)"
    return " / ".join(" or ".join(map(str, c)) for c in counts)


def table(a, samples):
    """The Markdown table and the sentence above it."""
    formats = list(a.columns)
    petsc_first = next(r[0] for key, r in samples.items() if key[2] == "petsc")
    bilu_first = next(r[0] for key, r in samples.items() if key[2] != "petsc")
    counts = sorted({r[0]["threads"] for key, r in samples.items() if key[2] != "petsc"})
    threads = " and ".join(f"{n} thread{'s' if n > 1 else ''}" for n in counts)
    tolerance = f"rtol {a.rtol:g}, at most {a.max_iterations} iterations"
    print(
        f"poisson3d:{a.n}, n = {a.n**3:,}, GMRES({RESTART}), block ILU(k) on the right, rhs ones, {tolerance}; "
        f"{bilu_first['cpu']}, {threads}; {petsc_first['version']}, {bilu_first['version']}; "
        f"medians of {a.repeats} runs ± half their range; in brackets PETSc's value over this one\n"
    )
    names = [("ms/iteration", "ms_per_iteration", 1), ("numeric ms", "numeric_s", 1e3)]
    names += [("symbolic ms", "symbolic_s", 1e3), ("peak MB", "peak_mb", 1)]
    programs = ["petsc"] + formats
    head = ["b", "k", "iterations", "factor blocks"]
    head += [f"{name} {'PETSc' if p == 'petsc' else p}" for name, _, _ in names for p in programs]
    print("| " + " | ".join(head) + " |")
    print("|" + "---:|" * len(head))
    for block in a.block_sizes:
        for fill in a.fills:
            of = {p: samples[block, fill, p] for p in programs}
            row = [str(block), str(fill), agreed(of, "iterations"), agreed(of, "factor_blocks")]
            for _, quantity, scale in names:
                theirs = Median([r[quantity] for r in of["petsc"]])
                row.append(theirs.text(scale))
                for f in formats:
                    ours = Median([r[quantity] for r in of[f]])
                    row.append(f"{ours.text(scale)} ({theirs.value / ours.value:.2f}x)")
            print("| " + " | ".join(row) + " |")
    used = {(b, f): samples[b, a.fills[0], f][0]["format"] for b in a.block_sizes for f in formats}
    print("\nstorage of the product: " + ", ".join(f"{f} at b = {b}: {u}" for (b, f), u in used.items()))


def write_csv(path, columns, samples):
    """Every single measurement, one row each."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["block_size", "k", "program", "matrix_format", "backend", "repeat"] + QUANTITIES + ["version"])
        for (block, fill, program), results in samples.items():
            name = "petsc" if program == "petsc" else "bilu-bench"
            for repeat, r in enumerate(results, 1):
                asked = (r["format"], "") if program == "petsc" else columns[program]
                rows.writerow([block, fill, name, *asked, repeat] + [r[q] for q in QUANTITIES] + [r["version"]])


def numbers(least):
    """Parser of a list of whole numbers, each at least `least`."""

    def parse(text):
        try:
            values = [int(word) for word in text.split(",")]
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"`{text}` is no list of whole numbers") from error
        if min(values) < least:
            raise argparse.ArgumentTypeError(f"`{text}` has a value below {least}")
        return values

    return parse


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    program = os.path.normpath(os.path.join(root, "target/release/bilu-bench"))
    parser.add_argument("--n", type=int, default=120, help="points per edge of the grid (120)")
    parser.add_argument("--block-sizes", type=numbers(1), default=[1, 4, 8], help="list (1,4,8)")
    parser.add_argument("--fills", type=numbers(0), default=[0, 1, 2, 3], help="fill levels k (0,1,2,3)")
    parser.add_argument("--matrix-formats", default="bsr,auto", help="columns of bilu-bench (bsr,auto)")
    parser.add_argument("--backends", default="cpu", help="list of cpu (one thread), cpu-mt (all cores) (cpu)")
    parser.add_argument("--repeats", type=int, default=3, help="runs per program and case (3)")
    parser.add_argument("--rtol", type=float, default=1e-6, help="relative tolerance (1e-6)")
    parser.add_argument("--max-iterations", type=int, default=2000, help="iteration limit of both (2000)")
    parser.add_argument("--warm-gb", type=float, default=0.0, help="memory to touch before each run (0)")
    parser.add_argument("--bilu-bench", default=program, metavar="PATH", help="program (target/release)")
    parser.add_argument("--csv", metavar="FILE", help="also write every measurement")
    parser.add_argument("--measure-petsc", action="store_true", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.n < 1 or a.repeats < 1 or a.max_iterations < 1:
        parser.error("--n, --repeats and --max-iterations must be positive")
    if wrong := [b for b in a.block_sizes if a.n**3 % b]:
        parser.error(f"block size {wrong[0]} does not divide {a.n}^3 unknowns")
    a.matrix_formats = a.matrix_formats.split(",")
    if wrong := [f for f in a.matrix_formats if f not in ("auto", "csr", "bsr")]:
        parser.error(f"unknown matrix format `{wrong[0]}`; known: auto, csr, bsr")
    backends = a.backends.split(",")
    if wrong := [k for k in backends if k not in ("cpu", "cpu-mt")]:
        parser.error(f"unknown backend `{wrong[0]}`; known: cpu, cpu-mt")
    # heading of a column -> format and backend
    a.columns = {
        f if len(backends) == 1 else f"{f} {backend}": (f, backend)
        for f in a.matrix_formats
        for backend in backends
    }
    return parser, a


def main():
    parser, a = arguments()
    if a.measure_petsc:
        measure_petsc(a)
        return
    if not os.access(a.bilu_bench, os.X_OK):
        parser.error(f"no program `{a.bilu_bench}`; build it with `cargo build --release`")
    petsc = petsc_directory()
    if petsc is None:
        parser.error("petsc4py was not found; install python3-petsc4py or set PETSC_DIR")
    environment = {**os.environ, **ONE_THREAD, "PETSC_DIR": petsc}
    samples = measure(a, environment)
    table(a, samples)
    if a.csv:
        write_csv(a.csv, a.columns, samples)


if __name__ == "__main__":
    main()
