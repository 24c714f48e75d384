#!/usr/bin/python3
"""Setup of block ILU(k) on one thread beside PETSc's, in strict alternation: results/setup/NAME/petsc.csv and .md.

    scripts/setup-results.py --name xeon-2core --within 570

Needs a quiet machine, PETSc's Python binding (Debian: python3-petsc4py) and `cargo build --release`. Each
measurement is a process of its own: all memory of a setup is touched first in it, and counts, in both programs.
Rounds go over all cases, the programs in turn within each, until the limit of seconds; a round that does not
fit is not begun. The table has the least and the median of the rounds. PETSc's setup is the first PCSetUp, its
numeric phase a second one on the same pattern, whose memory is there; that of bilu-bench is the sum of symbolic
phase, analysis (its memory) and numeric phase. Factors have equally many blocks by the level rule `min`; the
column `rule` says so. Matrices of the catalogue are read where the folder BILU_BENCH_MATRICES, or --matrices, has
their files.
"""

import argparse
import csv
import gzip
import importlib.util
import json
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SPEC = importlib.util.spec_from_file_location("petsc_compare", os.path.join(HERE, "petsc-compare.py"))
COMPARE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(COMPARE)

# system, block size, levels of fill; grids by their edge
CASES = [
    ("96", 1, (0, 1, 2)),
    ("64", 2, (0, 1, 2)),
    ("60", 3, (0, 1, 2)),
    ("64", 4, (0, 1, 2)),
    ("64", 8, (0, 1, 2)),
    ("nornebox_b3", 3, (0, 1, 2)),
    ("spe9cp_b3", 3, (0, 1)),
    ("spe5_b4", 4, (0, 1)),
]
PHASES = ["matrix", "symbolic", "analysis", "numeric"]
COLUMNS = ["system", "block_size", "k", "program", "round", "setup_s", *(f"{p}_s" for p in PHASES)]
COLUMNS += ["factor_blocks", "version"]


def read_market(numpy, path):
    """Row pointers, columns and values of a general real matrix in coordinate format."""
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="ascii") as file:
        head = file.readline().split()
        if head[2:] != ["coordinate", "real", "general"]:
            sys.exit(f"error: {path}: not a general real matrix in coordinate format")
        line = file.readline()
        while line.startswith("%"):
            line = file.readline()
        n = int(line.split()[0])
        entries = numpy.loadtxt(file, ndmin=2)
    rows, columns = entries[:, 0].astype(numpy.int64) - 1, entries[:, 1].astype(numpy.int64) - 1
    order = numpy.lexsort((columns, rows))
    row_ptr = numpy.zeros(n + 1, dtype=numpy.int32)
    numpy.cumsum(numpy.bincount(rows, minlength=n), out=row_ptr[1:])
    return row_ptr, columns[order].astype(numpy.int32), entries[order, 2]


def assemble(PETSc, numpy, system, block):
    """The matrix in AIJ, or in BAIJ for blocks."""
    if system.isdigit():
        return COMPARE.assemble(PETSc, numpy, int(system), block)
    with numpy.load(system) as saved:
        row_ptr, columns, values = saved["row_ptr"], saved["columns"], saved["values"]
    n = len(row_ptr) - 1
    blocks = n // block
    rows = numpy.repeat(numpy.arange(n) // block, numpy.diff(row_ptr)).astype(numpy.int64)
    keys = numpy.unique(rows * blocks + columns // block)
    matrix = PETSc.Mat().create(comm=PETSc.COMM_SELF)
    matrix.setSizes((n, n))
    matrix.setType("baij")
    matrix.setBlockSize(block)
    matrix.setPreallocationNNZ(numpy.bincount(keys // blocks, minlength=blocks).astype(PETSc.IntType))
    matrix.setValuesCSR(row_ptr, columns, values)
    matrix.assemble()
    return matrix


def measure_petsc(system, block, fill):
    """One setup in PETSc, in this process; the result is a line of JSON."""
    import numpy
    import petsc4py

    petsc4py.init(["setup-results"])
    from petsc4py import PETSc

    matrix = assemble(PETSc, numpy, system, block)
    pc = PETSc.PC().create(comm=PETSc.COMM_SELF)
    pc.setOperators(matrix)
    pc.setType("ilu")
    pc.setFactorLevels(fill)
    pc.setFactorOrdering("natural")

    def timed():
        start = time.perf_counter()
        pc.setUp()
        return time.perf_counter() - start

    setup = timed()
    matrix.stateIncrease()
    numeric = timed()
    result = {
        "setup_s": setup,
        "numeric_s": numeric,
        "symbolic_s": max(setup - numeric, 0.0),
        "factor_blocks": round(pc.getFactorMatrix().getInfo()["nz_used"] / block**2),
        "version": "PETSc " + ".".join(map(str, PETSc.Sys.getVersion())),
    }
    print(json.dumps(result))


def run_petsc(a, case):
    system, block, fill = case
    command = [sys.executable, os.path.abspath(__file__), "--measure-petsc", a.petsc_names[system], str(block), str(fill)]
    output, code, _ = COMPARE.child(command, a.environment)
    if code != 0:
        sys.exit(f"error: PETSc failed with exit code {code} ({case})")
    return json.loads(output.splitlines()[-1])


def run_bilu(a, case):
    system, block, fill = case
    name = f"poisson3d:{system}" if system.isdigit() else os.path.join(a.matrices, f"{system}.mtx.gz")
    command = [a.bilu_bench, "run", "--matrix", name, "--block-size", str(block), "--precond", "bilu"]
    command += ["--fill", str(fill), "--level-rule", "min", "--backend", "cpu", "--max-iterations", "1"]
    command += ["--max-repetitions", "1", "--time-budget", "0.001", "--quiet", "--format", "json"]
    output, code, _ = COMPARE.child(command, a.environment)
    # 1 only says that the iteration limit was reached
    if code not in (0, 1):
        sys.exit(f"error: {' '.join(command)} failed with exit code {code}")
    record = json.loads(output)[0]
    if record["status"] not in ("converged", "not-converged"):
        sys.exit(f"error: {case}: {record['status']}: {record['reason']}")
    result = {f"{phase}_s": record[f"{phase}-s"] for phase in PHASES}
    result["setup_s"] = record["setup-s"]
    result["factor_blocks"] = record["factor-blocks"]
    result["version"] = "bilu-bench " + record["revision"]
    a.host = f"{record['cpu']}, {record['threads']} thread"
    return result


def measure(a, cases):
    """All rows, round by round."""
    programs = [("petsc", run_petsc), ("bilu-bench", run_bilu)]
    rows, start, longest = [], time.monotonic(), 0.0
    for number in range(1, a.rounds + 1):
        begin = time.monotonic()
        if begin - start + longest > a.within:
            break
        print(f"round {number}", file=sys.stderr, flush=True)
        for case in cases:
            # in turn, so that none is always the first
            for program, run in programs if number % 2 else reversed(programs):
                COMPARE.warm_memory(a.warm_gb)
                rows.append({**dict(zip(COLUMNS, case)), "program": program, "round": number, **run(a, case)})
        longest = max(longest, time.monotonic() - begin)
    return rows


def milliseconds(value):
    return f"{1e3 * value:.3g}" if value < 1.0 else f"{1e3 * value:.0f}"


def table(a, cases, rows):
    """Markdown: least and median of both programs."""
    versions = sorted({row["version"] for row in rows})
    rounds = max(row["round"] for row in rows)
    lines = [
        "# Setup of block ILU(k) beside PETSc",
        "",
        f"`scripts/setup-results.py --name {a.name}`: {a.host}; {', '.join(versions)}; {rounds} rounds in strict "
        "alternation, a process for each measurement, memory touched first counted in both. Milliseconds, least "
        "and, in brackets, median; the last column is PETSc's setup over this program's, of the least and of the "
        "medians. The matrix is converted beforehand in both.",
        "",
        "| system | b | k | factor blocks | rule | matrix | symbolic | analysis | numeric | setup | PETSc numeric again "
        "| PETSc setup | PETSc / here |",
        "|---|" + "--:|" * 3 + "---|" + "--:|" * 8,
    ]
    for case in cases:
        of = {p: [r for r in rows if (r["system"], r["block_size"], r["k"], r["program"]) == (*case, p)] for p in ("petsc", "bilu-bench")}
        blocks = {p: sorted({r["factor_blocks"] for r in of[p]}) for p in of}
        rule = "min" if blocks["petsc"] == blocks["bilu-bench"] else f"differs: {blocks['petsc']}"

        def cell(program, key):
            samples = [r[key] for r in of[program]]
            return f"{milliseconds(min(samples))} ({milliseconds(statistics.median(samples))})"

        ours, theirs = ([r["setup_s"] for r in of[p]] for p in ("bilu-bench", "petsc"))
        ratios = [min(theirs) / min(ours), statistics.median(theirs) / statistics.median(ours)]
        name = f"poisson3d:{case[0]}" if case[0].isdigit() else case[0]
        cells = [name, str(case[1]), str(case[2]), f"{blocks['bilu-bench'][0]:,}", rule]
        cells += [cell("bilu-bench", f"{phase}_s") for phase in PHASES] + [cell("bilu-bench", "setup_s")]
        cells += [cell("petsc", "numeric_s"), cell("petsc", "setup_s"), "{:.2f} ({:.2f})".format(*ratios)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = os.path.normpath(os.path.join(HERE, ".."))
    parser.add_argument("--name", required=False, default="host", help="folder below results/setup (host)")
    parser.add_argument("--within", type=float, default=570.0, help="seconds of all (570)")
    parser.add_argument("--rounds", type=int, default=9, help="most rounds (9)")
    parser.add_argument("--warm-gb", type=float, default=1.0, help="memory to touch before each process (1)")
    parser.add_argument("--matrices", default=os.environ.get("BILU_BENCH_MATRICES"), help="folder of .mtx.gz files")
    parser.add_argument("--bilu-bench", default=os.path.join(root, "target/release/bilu-bench"), help="program")
    parser.add_argument("--out", default=os.path.join(root, "results/setup"), help="folder (results/setup)")
    parser.add_argument("--small", action="store_true", help="grids of 12 points an edge: to try the script")
    return parser, parser.parse_args()


def main():
    if sys.argv[1:2] == ["--measure-petsc"]:
        measure_petsc(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return
    parser, a = arguments()
    if not os.access(a.bilu_bench, os.X_OK):
        parser.error(f"no program `{a.bilu_bench}`; build it with `cargo build --release`")
    petsc = COMPARE.petsc_directory()
    if petsc is None:
        parser.error("petsc4py was not found; install python3-petsc4py or set PETSC_DIR")
    a.environment = {**os.environ, **COMPARE.ONE_THREAD, "PETSC_DIR": petsc}
    a.environment["PYTHONPATH"] = petsc + "/lib/python3/dist-packages"
    there = lambda s: a.matrices and os.path.exists(os.path.join(a.matrices, f"{s}.mtx.gz"))
    chosen = [("12" if a.small and s.isdigit() else s, b, ks) for s, b, ks in CASES if s.isdigit() or there(s)]
    cases = [(s, b, k) for s, b, ks in chosen for k in ks]
    folder = os.path.join(a.out, a.name)
    os.makedirs(folder, exist_ok=True)
    a.petsc_names = {s: s for s, _, _ in chosen}
    import numpy
    import tempfile

    with tempfile.TemporaryDirectory() as saved:
        # text is read once, and not in each process
        for system in {s for s, _, _ in chosen if not s.isdigit()}:
            row_ptr, columns, values = read_market(numpy, os.path.join(a.matrices, f"{system}.mtx.gz"))
            a.petsc_names[system] = os.path.join(saved, f"{system}.npz")
            numpy.savez(a.petsc_names[system], row_ptr=row_ptr, columns=columns, values=values)
        rows = measure(a, cases)
    if not rows:
        parser.error("no round fits into --within")
    with open(os.path.join(folder, "petsc.csv"), "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    text = table(a, cases, rows)
    with open(os.path.join(folder, "petsc.md"), "w", encoding="utf-8") as file:
        file.write(text)
    print(text)


if __name__ == "__main__":
    main()
