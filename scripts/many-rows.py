#!/usr/bin/env python3
"""Makes a large result file of a small one, to try what reads it: rows are repeated with other systems
and times that differ by up to a third.

    scripts/many-rows.py results/yang/h200/table1.csv 10000 > many.csv
"""

import csv
import random
import sys


def main():
    path, count = sys.argv[1], int(sys.argv[2])
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    writer = csv.DictWriter(sys.stdout, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    chance = random.Random(1)
    for i in range(count):
        row = dict(rows[i % len(rows)])
        row["matrix"] = f"poisson3d:{20 + i // len(rows)}"
        factor = chance.uniform(0.75, 1.33)
        for name in ("solve-s", "solve-low-s", "solve-high-s", "total-s", "ms-per-iteration"):
            if row.get(name):
                row[name] = repr(float(row[name]) * factor)
        writer.writerow(row)


if __name__ == "__main__":
    main()
