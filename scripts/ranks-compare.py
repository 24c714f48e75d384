#!/usr/bin/python3
"""bilu-bench over ranks beside PETSc and, through PETSc, hypre: GMRES(20) with ILU(k) on subdomains.

    scripts/ranks-compare.py --matrices poisson3d:64 --ranks 2,4,8 --fills 0,1,2
    scripts/ranks-compare.py --matrices poisson3d:120 --ranks 2 --repeats 3 --csv ranks.csv

Needs mpirun, PETSc's Python binding (Debian: python3-petsc4py) and, for Matrix Market files, python3-scipy; the
program must have the feature `mpi`. Every measurement is a job of its own, they run one after the other, and the
programs take turns within a case. All solve the same system, divided into the same ranges of block rows, one for
each rank, with as many entries in each as in the others: right-hand side of ones, zero initial guess, given order,
preconditioner on the right, BAIJ for blocks (AIJ for hypre, which has no blocks). A matrix is `poisson3d:N` or a
file; `FILE@B` has blocks of B.

Methods: `bjacobi` (PCBJACOBI, ILU(k)), `asm:D` (PCASM, restricted, overlap D), `euclid` (hypre's parallel ILU(k),
interiors before interfaces) of PETSc; `jacobi`, `ras:D`, `exact:interface`, `exact:natural` (--schwarz) of
bilu-bench. Times are medians over the repeats and the largest over the ranks; setup is what the preconditioner
takes, the order of its rows included, matrix is not counted.
"""

import argparse
import csv
import glob
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time

RESTART = 20
HERE = os.path.dirname(os.path.abspath(__file__))
PETSC = ("bjacobi", "asm", "euclid")
QUANTITIES = ["iterations", "setup_s", "solve_s", "ms_per_iteration", "total_s", "rank_mb"]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}


def sibling():
    """The functions of petsc-compare.py, whose name is no module's."""
    spec = importlib.util.spec_from_file_location("petsc_compare", os.path.join(HERE, "petsc-compare.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def system(name):
    """Row pointers, columns, values of a matrix and its block size."""
    import numpy

    name, _, block = name.partition("@")
    block = int(block or 1)
    if name.startswith("poisson3d:"):
        return (*sibling().poisson3d(numpy, int(name.split(":")[1])), block)
    import scipy.io

    a = scipy.io.mmread(name).tocsr()
    a.sort_indices()
    return a.indptr, a.indices, a.data, block


def ranges(row_ptr, block, count):
    """First block rows of ranges with about equal numbers of entries, as bilu-bench has them."""
    rows = (len(row_ptr) - 1) // block
    nnz = int(row_ptr[-1])
    starts = [0]
    for part in range(1, count):
        wanted = nnz * part // count
        row, most = starts[-1] + 1, rows - (count - part)
        while row < most and row_ptr[row * block] < wanted:
            row += 1
        starts.append(row)
    return starts + [rows]


def measure_petsc(a):
    """One case in PETSc, on each rank; the first prints a line of JSON."""
    import numpy
    import petsc4py

    method, _, overlap = a.method.partition(":")
    words = ["ranks-compare"]
    if method in ("bjacobi", "asm"):
        words += ["-sub_pc_type", "ilu", "-sub_pc_factor_levels", str(a.fill)]
        words += ["-sub_pc_factor_mat_ordering_type", "natural", "-sub_ksp_type", "preonly"]
    if method == "asm":
        words += ["-pc_asm_overlap", overlap or "1", "-pc_asm_type", "restrict"]
    if method == "euclid":
        words += ["-pc_hypre_type", "euclid", "-pc_hypre_euclid_level", str(a.fill)]
    petsc4py.init(words)
    from petsc4py import PETSc

    comm = PETSc.COMM_WORLD
    row_ptr, columns, values, block = system(a.matrix)
    starts = ranges(row_ptr, block, comm.size)
    first, last = starts[comm.rank] * block, starts[comm.rank + 1] * block
    own = slice(int(row_ptr[first]), int(row_ptr[last]))
    sizes = (last - first, len(row_ptr) - 1)
    local = (row_ptr[first : last + 1] - row_ptr[first]).astype(PETSc.IntType)
    matrix = PETSc.Mat().create(comm=comm)
    matrix.setSizes((sizes, sizes))
    if block > 1 and method != "euclid":
        matrix.setType("baij")
        matrix.setBlockSize(block)
        rows = numpy.repeat(numpy.arange((last - first) // block), numpy.diff(local[::block]))
        keys = numpy.unique(rows * (sizes[1] // block) + columns[own] // block)
        at, column = keys // (sizes[1] // block), keys % (sizes[1] // block)
        inside = (column >= starts[comm.rank]) & (column < starts[comm.rank + 1])
        count = lambda which: numpy.bincount(at[which], minlength=(last - first) // block).astype(PETSc.IntType)
        matrix.setPreallocationNNZ((count(inside), count(~inside)))
    else:
        matrix.setType("aij")
        matrix.setPreallocationCSR((local, columns[own].astype(PETSc.IntType), values[own]))
    matrix.setValuesCSR(local, columns[own].astype(PETSc.IntType), values[own])
    matrix.assemble()
    del row_ptr, columns, values, local
    ksp = PETSc.KSP().create(comm=comm)
    ksp.setOperators(matrix)
    ksp.setType("gmres")
    ksp.setGMRESRestart(RESTART)
    ksp.setPCSide(PETSc.PC.Side.RIGHT)
    ksp.setTolerances(rtol=a.rtol, atol=0.0, divtol=1e30, max_it=a.max_iterations)
    ksp.getPC().setType("hypre" if method == "euclid" else method)
    ksp.setFromOptions()

    def timed(action):
        comm.barrier()
        start = time.perf_counter()
        action()
        return largest(time.perf_counter() - start)

    def largest(own):
        of_ranks = PETSc.Vec().createMPI((1, comm.size), comm=comm)
        of_ranks.array = [own]
        return of_ranks.max()[1]

    # the factors of the subdomains are made by the second call
    setup_s = timed(lambda: (ksp.setUp(), ksp.setUpOnBlocks()))
    b, x = matrix.createVecLeft(), matrix.createVecRight()
    b.set(1.0)
    solves = [timed(lambda: ksp.solve(b, x))]
    if solves[0] < 5.0:
        solves = []
        while len(solves) < 10 and (not solves or sum(solves) < 5.0):
            x.set(0.0)
            solves.append(timed(lambda: ksp.solve(b, x)))
    with open("/proc/self/status", encoding="ascii") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    peak = largest(peak)
    if comm.rank == 0:
        iterations, solve_s = ksp.getIterationNumber(), statistics.median(solves)
        result = {
            "converged": ksp.getConvergedReason() > 0,
            "iterations": iterations,
            "setup_s": setup_s,
            "solve_s": solve_s,
            "ms_per_iteration": 1e3 * solve_s / max(iterations, 1),
            "total_s": setup_s + solve_s,
            "rank_mb": peak * 1024 / 1e6,
            "version": "PETSc " + ".".join(map(str, PETSc.Sys.getVersion())),
        }
        print(json.dumps(result))


def mpirun(ranks, command, environment):
    """Standard output and exit code of a job."""
    launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
    if os.getuid() == 0:
        launch.insert(1, "--allow-run-as-root")
    done = subprocess.run(launch + command, env=environment, stdout=subprocess.PIPE, text=True)
    return done.stdout, done.returncode


def run_petsc(a, environment, matrix, ranks, fill, method):
    command = [sys.executable, os.path.abspath(__file__), "--method", method, "--matrix", matrix]
    command += ["--fill", str(fill), "--rtol", repr(a.rtol), "--max-iterations", str(a.max_iterations)]
    output, code = mpirun(ranks, command, environment)
    if code != 0:
        sys.exit(f"error: PETSc failed with exit code {code} ({matrix}, {ranks} ranks, {method}, k = {fill})")
    return json.loads(output.splitlines()[-1])


def run_bilu(a, environment, matrix, ranks, fill, method):
    name, _, block = matrix.partition("@")
    command = [a.bilu_bench, "run", "--matrix", name, "--rhs", "ones", "--block-size", block or "1"]
    command += ["--backend", "mpi", "--partition", "rows", "--schwarz", method, "--fill", str(fill)]
    command += ["--level-rule", "min", "--restart", str(RESTART), "--rtol", repr(a.rtol)]
    command += ["--max-iterations", str(a.max_iterations), "--max-repetitions", "1", "--time-budget", "0.001"]
    output, code = mpirun(ranks, command + ["--quiet", "--format", "json"], environment)
    if code not in (0, 1):
        sys.exit(f"error: {' '.join(command)} failed with exit code {code}")
    record = json.loads(output)[0]
    solved = record["solve-s"] is not None
    setup_s = (record["ordering-s"] or 0) + record["setup-s"] if solved else float("nan")
    return {
        "converged": record["status"] == "converged",
        "iterations": record["iterations"],
        "setup_s": setup_s,
        "solve_s": record["solve-s"] if solved else float("nan"),
        "ms_per_iteration": record["ms-per-iteration"] if solved else float("nan"),
        "total_s": setup_s + record["solve-s"] if solved else float("nan"),
        "rank_mb": (record["rank-memory-bytes"] or 0) / 1e6,
        "version": "bilu-bench " + record["revision"],
    }


def measure(a, environment):
    """All samples: (matrix, ranks, k) -> method -> list of results, methods in turn."""
    samples = {}
    cases = [(m, r, k) for m in a.matrices for r in a.ranks for k in a.fills]
    for number, case in enumerate(cases, 1):
        for repeat in range(a.repeats):
            turn = a.methods[repeat % len(a.methods) :] + a.methods[: repeat % len(a.methods)]
            for method in turn:
                matrix, ranks, fill = case
                say = f"[{number}/{len(cases)}] {matrix}, {ranks} ranks, k = {fill}, repeat {repeat + 1}: {method}"
                print(say, file=sys.stderr, flush=True)
                run = run_petsc if method.partition(":")[0] in PETSC else run_bilu
                result = run(a, environment, *case, method)
                samples.setdefault(case, {}).setdefault(method, []).append(result)
    return samples


def table(a, samples):
    """Markdown: a row for each case and method."""
    versions = sorted({r["version"] for of in samples.values() for results in of.values() for r in results})
    print(
        f"GMRES({RESTART}), ILU(k) on the right, rhs ones, rtol {a.rtol:g}, at most {a.max_iterations} iterations; "
        f"{', '.join(versions)}; medians of {a.repeats} runs\n"
    )
    print("| matrix | ranks | k | method | iterations | setup s | solve s | ms/iteration | total s | MB of a rank |")
    print("|---|--:|--:|---|--:|--:|--:|--:|--:|--:|")
    for (matrix, ranks, fill), of in samples.items():
        for method, results in of.items():
            middle = {q: statistics.median(r[q] for r in results) for q in QUANTITIES}
            counts = sorted({r["iterations"] for r in results})
            text = " or ".join(map(str, counts)) if all(r["converged"] for r in results) else "none"
            cells = [os.path.basename(matrix), ranks, fill, method, text]
            cells += [f"{middle[q]:.3g}" for q in QUANTITIES[1:]]
            print("| " + " | ".join(map(str, cells)) + " |")


def write_csv(path, samples):
    """Every single measurement, one row each."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["matrix", "ranks", "k", "method", "repeat", "converged"] + QUANTITIES + ["version"])
        for (matrix, ranks, fill), of in samples.items():
            for method, results in of.items():
                for repeat, r in enumerate(results, 1):
                    head = [os.path.basename(matrix), ranks, fill, method, repeat, r["converged"]]
                    rows.writerow(head + [r[q] for q in QUANTITIES] + [r["version"]])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    program = os.path.normpath(os.path.join(HERE, "../target/release/bilu-bench"))
    words = lambda text: text.split(",")
    numbers = lambda text: [int(word) for word in text.split(",")]
    parser.add_argument("--matrices", type=words, default=["poisson3d:64"], help="list (poisson3d:64)")
    parser.add_argument("--ranks", type=numbers, default=[2], help="list (2)")
    parser.add_argument("--fills", type=numbers, default=[0, 1, 2], help="fill levels k (0,1,2)")
    methods = "bjacobi,jacobi,asm:1,ras:1,euclid,exact:interface"
    parser.add_argument("--methods", type=words, default=words(methods), help=f"list ({methods})")
    parser.add_argument("--repeats", type=int, default=1, help="runs per method and case (1)")
    parser.add_argument("--rtol", type=float, default=1e-6, help="relative tolerance (1e-6)")
    parser.add_argument("--max-iterations", type=int, default=5000, help="iteration limit of all (5000)")
    parser.add_argument("--bilu-bench", default=program, metavar="PATH", help="program (target/release)")
    parser.add_argument("--csv", metavar="FILE", help="also write every measurement")
    for name in ["--method", "--matrix", "--fill"]:
        parser.add_argument(name, help=argparse.SUPPRESS)
    return parser, parser.parse_args()


def main():
    parser, a = arguments()
    if a.method:
        measure_petsc(a)
        return
    if not os.access(a.bilu_bench, os.X_OK):
        parser.error(f"no program `{a.bilu_bench}`; build it with `cargo build --release --features mpi`")
    petsc = sibling().petsc_directory()
    if petsc is None:
        parser.error("petsc4py was not found; install python3-petsc4py or set PETSC_DIR")
    environment = {**os.environ, **ONE_THREAD, "PETSC_DIR": petsc}
    samples = measure(a, environment)
    table(a, samples)
    if a.csv:
        write_csv(a.csv, samples)


if __name__ == "__main__":
    main()
