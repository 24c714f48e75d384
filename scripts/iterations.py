#!/usr/bin/env python3
"""What of an iteration on a GPU passes in kernels, and what between them: OUT.csv and OUT.md.

    scripts/iterations.py BILU_BENCH OUT.csv

Needs a GPU, CUDA with CUPTI, and a C compiler. Each case is run once for its record (`ms-per-iteration`,
`iteration-percent-of-bandwidth`), and once while kernel-times.c writes when each kernel and copy began and ended: solves
of 100 iterations, one after the other, of which the middle half is looked at.
"""

import csv
import glob
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter

# name of a solver, its preconditioner, applications of it in a solve, its executions
SOLVERS = [
    ("gmres", "bilu", 105, ["fused", "calls"]),
    ("cg", "ic", 100, ["fused", "calls"]),
    ("bicgstab", "bilu", 200, ["fused", "graph", "calls"]),
]
SYSTEMS = [["poisson3d:120"], ["poisson3d:120", "--block-size", "4"]]
# the first kernel of an application
APPLICATIONS = ("pencils", "wavefront_forward", "partitioned_forward", "syncfree_forward")
FLAGS = "--backend cuda --rhs random --rtol 0 --restart 20 --max-iterations 100 -q".split()
# between solves and what comes before and after them, ns
APART = 1_000_000


def record(program, arguments, folder):
    """The record of a case."""
    path = os.path.join(folder, "record.csv")
    command = [program, "run", *arguments, *FLAGS, "--time-budget", "1", "--force", "--format", "csv", "-o", path]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    with open(path, newline="") as file:
        return next(csv.DictReader(file))


def recorder(folder):
    """The library that writes times of kernels."""
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    header = glob.glob(f"{cuda}/**/cupti_activity.h", recursive=True)
    library = glob.glob(f"{cuda}/**/libcupti.so", recursive=True)
    if not header or not library:
        sys.exit(f"iterations: no CUPTI under {cuda}; set CUDA_HOME")
    text = open(header[0]).read()
    names = {
        define: "CUpti_Activity" + of + max(re.findall(rf"CUpti_Activity{of}(\d+)\b", text), key=int)
        for define, of in [("KERNEL", "Kernel"), ("COPY", "Memcpy"), ("FILL", "Memset")]
    }
    out = os.path.join(folder, "kernel-times.so")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernel-times.c")
    subprocess.run(
        ["cc", "-O2", "-shared", "-fPIC", *(f"-D{define}={name}" for define, name in names.items()), source,
         f"-I{cuda}/include", f"-I{os.path.dirname(header[0])}", f"-L{os.path.dirname(library[0])}",
         f"-Wl,-rpath,{os.path.dirname(library[0])}", "-lcupti", "-o", out],
        check=True,
    )
    return out


def timeline(program, arguments, library):
    """Begin, end and name of each kernel and copy of the solves, in their order."""
    times = library + ".txt"
    run = [program, "run", *arguments, *FLAGS, "--min-repetitions", "30", "--time-budget", "2"]
    environment = {**os.environ, "CUDA_INJECTION64_PATH": library, "KERNEL_TIMES": times}
    subprocess.run(run, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
    lines = []
    with open(times) as file:
        for line in file:
            start, end, name = line.split(maxsplit=2)
            if start == "dropped":
                sys.exit(f"iterations: {end} launches were not recorded")
            lines.append((int(start), int(end), name.strip()))
    pieces, last = [[]], 0
    for line in sorted(lines):
        if line[0] > last + APART:
            pieces.append([])
        pieces[-1].append(line)
        last = max(last, line[1])
    return max(pieces, key=len)


def of_iteration(program, arguments, applications, library):
    """Launches of an iteration, milliseconds that it takes, milliseconds in which the GPU is busy, the longest kernels."""
    lines = timeline(program, arguments, library)
    lines = lines[len(lines) // 4 : 3 * len(lines) // 4]
    launches, sums, busy, last = Counter(), Counter(), 0, 0
    for start, end, name in lines:
        launches[name] += 1
        sums[name] += end - start
        busy += max(0, end - max(start, last))
        last = max(last, end)
    iterations = 100 * sum(launches[name] for name in APPLICATIONS) / applications
    if iterations < 100:
        sys.exit(f"iterations: {iterations} iterations of {' '.join(arguments)} seen: {launches}")
    most = ", ".join(f"{name} {time / iterations / 1e3:.0f}" for name, time in sums.most_common(5))
    return [sum(launches.values()) / iterations, (last - lines[0][0]) / iterations / 1e6, busy / iterations / 1e6, most]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.split("\n\n")[1].strip())
    program, out = sys.argv[1:]
    head = ["matrix", "block-size", "solver", "execution", "ms/iteration", "% bytes/iter", "launches", "ms watched", "ms busy",
            "% between kernels", "longest, us", "samples", "device", "version"]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        library = recorder(folder)
        for system in SYSTEMS:
            for solver, precond, applications, executions in SOLVERS:
                for execution in executions:
                    arguments = [*system, "--solver", solver, "--precond", precond, "--execution", execution]
                    of = record(program, arguments, folder)
                    count, whole, busy, most = of_iteration(program, arguments, applications, library)
                    rows.append([of["matrix"], of["block-size"], solver, execution, f"{float(of['ms-per-iteration']):.4f}",
                                 f"{float(of['iteration-percent-of-bandwidth']):.0f}", f"{count:.1f}", f"{whole:.4f}",
                                 f"{busy:.4f}", f"{100 * (1 - busy / whole):.1f}", most,
                                 of["repetitions"], of["device"], of["revision"]])
                    print(*rows[-1], file=sys.stderr)
    with open(out, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])
    with open(os.path.splitext(out)[0] + ".md", "w") as file:
        # device and version are those of all
        table = [head[:-2], ["---", "--:", "---", "---"] + ["--:"] * 6 + ["---", "--:"], *(row[:-2] for row in rows)]
        file.writelines("| " + " | ".join(row) + " |\n" for row in table)


if __name__ == "__main__":
    main()
