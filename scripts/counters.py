#!/usr/bin/env python3
"""Bytes that records charge for an application, beside what hardware counters see: results/counters/NAME.csv and .md.

    scripts/counters.py BILU_BENCH OUT.csv

Needs a GPU, Nsight Compute (`ncu`) and leave to read its counters. Each case is run twice: for its record
(`apply-bytes`, `spmv-bytes`), and under ncu for the DRAM bytes of the kernels of one application, of which each is
the mean of its launches. What a kernel wrote last stays in the cache (50 MB on an H200) and is not seen: cases
of few bytes have large grids.
"""

import csv
import io
import os
import subprocess
import sys
import tempfile

GRID = ["poisson3d:120"]
LARGE = ["poisson3d:200"]
LARGEST = ["poisson3d:300"]
BLOCKS = ["blockpoisson3d:64,b=4", "--block-size", "4", "--fill", "1"]
# name, arguments, kernels of an application
CASES = [
    ("k = 0, pencils", [*GRID, "--fill", "0", "--trisolve", "pencils"], ["pencils"]),
    *[(f"k = 0, {way}", [*LARGE, "--fill", "0", "--trisolve", way], [f"{way}_forward", f"{way}_backward"])
      for way in ("wavefront", "partitioned", "syncfree")],
    *[(f"k = 1, {way}", [*GRID, "--fill", "1", "--trisolve", way], [f"{way}_forward", f"{way}_backward"])
      for way in ("wavefront", "partitioned")],
    ("k = 3, overwrite, wavefront", [*GRID, "--fill", "3", "--level-rule", "overwrite", "--trisolve", "wavefront"],
     ["wavefront_forward", "wavefront_backward"]),
    *[(f"b = 4, k = 1, {way}", [*BLOCKS, "--trisolve", way], [f"{way}_forward", f"{way}_backward"])
      for way in ("wavefront", "partitioned", "syncfree")],
    ("jacobi", [*LARGEST, "--precond", "jacobi"], ["block_diagonal"]),
]
FLAGS = "--backend cuda --rhs ones --rtol 0 --max-iterations 3 --max-repetitions 1 --time-budget 0.05 -q".split()
METRICS = "dram__bytes_read.sum,dram__bytes_write.sum"
# launches that are looked at: a few applications
LAUNCHES = "12"


def record(program, arguments, folder):
    """The record of a case."""
    path = os.path.join(folder, "record.csv")
    command = [program, "run", *arguments, *FLAGS, "--force", "--format", "csv", "-o", path]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    with open(path, newline="") as file:
        return next(csv.DictReader(file))


def counted(program, arguments, kernels):
    """DRAM bytes of each kernel, the mean of its launches."""
    command = ["ncu", "--print-summary", "per-kernel", "--csv", "--metrics", METRICS, "--launch-count", LAUNCHES,
               "--kernel-name", f"regex:^({'|'.join(kernels)})$"]
    text = subprocess.run([*command, program, "run", *arguments, *FLAGS], check=False, capture_output=True, text=True).stdout
    found = {}
    start = text.find('"Process ID"')
    if start < 0:
        sys.exit(f"counters: ncu says nothing of {' '.join(arguments)}\n{text[-2000:]}")
    for row in csv.DictReader(io.StringIO(text[start:])):
        mean = float(row["Average"].replace(",", ""))
        found[row["Kernel Name"]] = found.get(row["Kernel Name"], 0.0) + mean
    return found


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.split("\n\n")[1].strip())
    program, out = sys.argv[1:]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments, kernels in CASES:
            of = record(program, arguments, folder)
            seen = counted(program, arguments, [*kernels, "spmv"])
            pairs = [(name, float(of["apply-bytes"]), sum(seen[kernel] for kernel in kernels))]
            if name == "jacobi":
                pairs.append(("product, CSR", float(of["spmv-bytes"]), seen["spmv"]))
            for what, charged, counter in pairs:
                rows.append([what, f"{charged / 1e6:.1f}", f"{counter / 1e6:.1f}", f"{charged / counter:.3f}"])
    head = ["application", "charged-MB", "counted-MB", "charged-over-counted"]
    with open(out, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])
    with open(os.path.splitext(out)[0] + ".md", "w") as file:
        table = [head, ["---", "--:", "--:", "--:"], *rows]
        file.writelines("| " + " | ".join(row) + " |\n" for row in table)


if __name__ == "__main__":
    main()
