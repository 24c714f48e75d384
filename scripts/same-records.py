#!/usr/bin/env python3
"""Runs a fixed set of CPU cases with two builds of bilu-bench and compares their records.

    scripts/same-records.py OLD NEW [--threads N]

Everything but times, rates, memory and the environment must be equal, to the last digit. Cases of `cpu-mt`
use one number of threads for both. Exit code 1 where a record differs.
"""

import argparse
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# Flags of each run; every one writes its own file.
RUNS = [
    "run --matrix poisson3d:12 --precond {preconds} --solver gmres",
    "run --matrix poisson3d:12 --precond bilu,jacobi --solver {solvers}",
    "run --matrix poisson3d:11 --block-size 1,2,3,4,5 --fill 0,1,2 --precond bilu",
    "run --matrix poisson3d:9 --ordering {orderings} --fill 0,1 --precond bilu",
    "run --matrix reservoir:9,k=3 --block-size 3 --fill 0,1 --precond bilu --factor-precision float64,float32",
    "run --matrix reservoir:9,k=2,wells=3 --block-size 2 --side left,right --precond bilu --solver gmres,bicgstab",
    "run --matrix poisson3d:10 --deflation none,subdomain:2x2x2 --solver cg --precond ic,jacobi",
    "run --matrix poisson3d:10 --matrix-format csr,bsr,sell,dia,hyb --precond jacobi --solver cg",
    "run --matrix blockpoisson3d:6,b=4 --block-size 4 --fill 0,2 --precond bilu,ic --zeros keep,drop",
    "run --matrix poisson3d:10 --solver gmres --restart 5,30 --orthogonalisation cgs,mgs,cgs2 --precond bilu",
    "run --matrix poisson3d:8 --precond bilu --shift 0,0.1 --rhs ones,random:7 --rtol 1e-3,1e-10",
    "obstacle --m 14 --method jacobi,red-black --stop step-norm,complementarity",
]
BACKENDS = ["cpu", "cpu-mt"]
# One solve per case: only its result counts.
SHORT = ["--max-repetitions", "1", "--time-budget", "0.01"]

# Columns that may differ: times and rates by their unit, and what describes the machine and the day.
MEASURED = re.compile(
    r"-s$|-us$|us-per|gbps|gflops|^us-|^ms-|^percent|-percent|^device$|^threads$|^cpu$|^os$|^compiler$|^revision$"
    r"|^date$|^repetitions$|-samples$|-interval$|memory|latency|^build$|^host$|^load|^turn$|^round$"
)
# A remark about the machine.
CROWD = re.compile(r"other processes had the processors for \d+ % of the time of the \d+ threads(; )?|, and one thread made .*")


def names(program, section):
    """Names of a section of `bilu-bench list`, joined by commas."""
    command = [program, "list", section, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return ",".join(item["name"] for item in json.loads(done.stdout)[section])


def records(program, flags, backend, threads, output):
    """The rows that one run writes."""
    command = [program, *flags.split(), "--backend", backend, "--quiet", "-o", str(output)]
    command += SHORT if flags.startswith("run") else []
    environment = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if not output.exists():
        sys.exit(f"{' '.join(command)}\nwrote nothing: {done.stderr.strip()}")
    with output.open(newline="") as file:
        return list(csv.DictReader(file))


def differences(old, new):
    """Columns of both builds in which two rows differ."""
    columns = [name for name in old if name in new and not MEASURED.search(name)]
    pairs = [(name, *(CROWD.sub("", row[name]) for row in (old, new))) for name in columns]
    return [f"{name}: {a!r}, {b!r}" for name, a, b in pairs if a != b]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("old", help="the program before")
    parser.add_argument("new", help="the program after")
    parser.add_argument("--threads", type=int, default=2, help="of cpu-mt (2)")
    options = parser.parse_args()
    # the names of the build before: one that was added has nothing to be compared with
    sections = {"preconds": "preconditioners", "solvers": "solvers", "orderings": "orderings"}
    known = {key: names(options.old, section) for key, section in sections.items()}
    compared = differing = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, run in enumerate(RUNS):
            flags = run.format(**known)
            for backend in BACKENDS:
                rows = []
                for name in ("old", "new"):
                    output = pathlib.Path(folder) / f"{number}-{backend}-{name}.csv"
                    rows.append(records(getattr(options, name), flags, backend, options.threads, output))
                old, new = rows
                if len(old) != len(new):
                    print(f"{flags} --backend {backend}: {len(old)} records, then {len(new)}")
                    differing += 1
                for row, (a, b) in enumerate(zip(old, new)):
                    compared += 1
                    found = differences(a, b)
                    differing += bool(found)
                    if found:
                        print(f"{flags} --backend {backend}, record {row + 1}: {'; '.join(found)}")
    print(f"{compared} records compared, {differing} differ")
    sys.exit(differing > 0)


if __name__ == "__main__":
    main()
