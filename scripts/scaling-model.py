#!/usr/bin/env python3
"""A model of solves over ranks without fill: calibrated by records, checked against them, extended to 10^4 ranks.

    scripts/scaling-model.py results/scaling/xeon-32core results/scaling/epyc-2core/subdomains-1.csv --numbers model.csv

The folder has records of `scaling/strong` and `scaling/weak` (scripts/scaling-results.sh), the file those of
`scaling/subdomains`. An iteration on P ranks with n rows takes

    c(P) n / P / (1 - w(P))  +  halos (6 latency + faces / bandwidth)  +  reductions latency log2(machines)

The time c of a row and iteration, and the share w that ranks wait for halos and in reductions, are those of strong
scaling with the fewest and the most ranks, in between linear in log P: all other rows are predictions. A larger
machine is made of such ones: beyond the most ranks c and w stay, and the terms of the network come in. Exact factors
send a halo for each stage, there and back.

Iterations are those of one subdomain, a power of n fitted to the records, times a factor by the number of subdomains
from `scaling/subdomains`, linear in its logarithm. With the coarse space they are at most those that many subdomains
with an edge of H rows need, 3.5 H^0.98 (docs/notes/ranks.md#coarse-space).
"""

import argparse
import csv
import glob
import math
import os
import statistics

METHODS = [
    ("gmres", "jacobi", "none"),
    ("gmres", "ras:1", "none"),
    ("gmres", "exact:interface", "none"),
    ("cg", "jacobi", "none"),
    ("cg", "jacobi", "subdomains"),
]


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return [r for r in csv.DictReader(file) if r["solve-s"] and r["fill"] == "0"]


def number(record, column):
    return float(record[column] or 0)


def method(record):
    return record["solver"], record["schwarz"], record["deflation"]


def name(of):
    solver, schwarz, deflation = of
    return f"{solver}, {schwarz}" + ("" if deflation == "none" else f", {deflation}")


def power(points):
    """Exponent and factor of y = factor x^exponent, by least squares of the logarithms."""
    xs, ys = zip(*[(math.log(x), math.log(y)) for x, y in points])
    mean_x, mean_y = statistics.fmean(xs), statistics.fmean(ys)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / sum((x - mean_x) ** 2 for x in xs)
    return slope, math.exp(mean_y - slope * mean_x)


def interpolated(points, x):
    """y at x of the points (x, y), linear in the logarithm of x; beyond them the line through the nearest two."""
    points = sorted(points)
    inner = sum(x > of for of, _ in points[1:-1])
    (x0, y0), (x1, y1) = points[inner : inner + 2]
    return y0 + (y1 - y0) * math.log(x / x0) / math.log(x1 / x0)


class Model:
    """Constants of one method."""

    def __init__(self, records, subdomains, of, network):
        own = [r for r in records if method(r) == of]
        strong = [r for r in own if number(r, "n") == 120**3]
        counts = sorted({int(r["ranks"]) for r in strong})
        self.of, self.network, self.cores = of, network, counts[-1]
        waits = lambda r: (number(r, "halo-s") + number(r, "reduction-s")) / number(r, "solve-s")
        each = lambda r: number(r, "solve-s") * (1 - waits(r)) / number(r, "iterations") * int(r["ranks"]) / number(r, "n")
        # one rank computes the same with all divisions: the median of all is less noisy
        alone = [r for r in records if int(r["ranks"]) == 1 and r["solver"] == of[0] and r["deflation"] == of[2]]
        full = next(r for r in strong if int(r["ranks"]) == self.cores)
        self.seconds_per_row = [(1, statistics.median(map(each, alone))), (self.cores, each(full))]
        self.wait = [(1, 0.0), (self.cores, waits(full))]
        self.reductions, self.stages = number(full, "reductions-per-iteration"), number(full, "stages")
        same = [r for r in records + subdomains if r["solver"] == of[0]]
        ones = [r for r in same if int(number(r, "subdomains-used")) == 1 and r["deflation"] == "none"]
        self.exponent, self.factor = power(sorted({(number(r, "n"), number(r, "iterations")) for r in ones}))
        one = next(r for r in subdomains if r in ones)
        many = [r for r in subdomains if method(r) == (*of[:2], "none")]
        self.factors = [(int(r["subdomains-used"]), number(r, "iterations") / number(one, "iterations")) for r in many]

    def iterations(self, n, ranks):
        count = self.factor * n**self.exponent * interpolated(self.factors, ranks)
        if self.of[2] == "subdomains":
            edge = (n / ranks) ** (1 / 3)
            count = min(count, 3.5 * edge**0.98)
        return count

    def iteration(self, n, ranks):
        """Seconds."""
        own, within = n / ranks, min(ranks, self.cores)
        work = interpolated(self.seconds_per_row, within) * own / (1 - interpolated(self.wait, within))
        if ranks <= self.cores:
            return work
        latency, bandwidth, reduction = self.network
        faces = 6 * 8 * own ** (2 / 3) / bandwidth
        halos = 1 + 2 * max(self.stages - 1, 0)
        return work + halos * (6 * latency + faces) + self.reductions * reduction * math.log2(ranks / self.cores)

    def solve(self, n, ranks):
        return self.iterations(n, ranks) * self.iteration(n, ranks)


def check(models, records):
    print("| method | grid | ranks | iterations | model | ms/iteration | model |")
    print("|---|---|--:|--:|--:|--:|--:|")
    order = lambda r: (METHODS.index(method(r)), number(r, "n"), int(r["ranks"]))
    errors = []
    for r in sorted((r for r in records if method(r) in models), key=order):
        model, n, ranks = models[method(r)], number(r, "n"), int(r["ranks"])
        found, modelled = number(r, "ms-per-iteration"), 1e3 * model.iteration(n, ranks)
        cells = [name(model.of), r["matrix"].partition(":")[2], ranks, r["iterations"]]
        cells += [f"{model.iterations(n, ranks):.0f}", f"{found:.1f}", f"{modelled:.1f}"]
        print("| " + " | ".join(map(str, cells)) + " |")
        if 1 < ranks < model.cores:
            errors.append(abs(math.log(modelled / found)))
    print(f"\nms/iteration of rows that are predictions: {100 * statistics.median(errors):.0f} % off in the median,", end="")
    print(f" {100 * max(errors):.0f} % at most")


def predict(models, numbers, drawing):
    """Tables of strong and weak scaling, and their numbers for a figure."""
    counts = [16, 64, 256, 1024, 4096, 10000]
    figure = []
    for title, rows_of in [
        ("Strong scaling, 480^3", lambda ranks: 480**3),
        ("Weak scaling, 80^3 on each rank", lambda ranks: 80**3 * ranks),
    ]:
        print(f"\n{title}: iterations, seconds of a solve, efficiency of an iteration\n")
        print("| ranks | rows of a rank | " + " | ".join(map(name, models)) + " |")
        print("|--:|--:|" + "--:|" * len(models))
        for ranks in counts:
            n = rows_of(ranks)
            cells = []
            for of, model in models.items():
                each = lambda p: model.iteration(rows_of(p), p) * p / rows_of(p)
                efficiency = each(counts[0]) / each(ranks)
                seconds = model.solve(n, ranks)
                cells.append(f"{model.iterations(n, ranks):.0f}, {seconds:.3g}, {efficiency:.2f}")
                figure.append([title, name(of), ranks, f"{seconds:.4g}", f"{efficiency:.4g}"])
            print(f"| {ranks} | {n / ranks:.0f} | " + " | ".join(cells) + " |")
    if drawing:
        draw(drawing, figure)
    if numbers:
        with open(numbers, "w", newline="", encoding="utf-8") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(["panel", "series", "ranks", "seconds", "efficiency"])
            out.writerows(figure)


def draw(path, figure):
    """Seconds of a solve by ranks, a panel for strong and one for weak scaling; needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "scaling"
    import matplotlib.pyplot as plt

    colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"]
    titles = list(dict.fromkeys(row[0] for row in figure))
    canvas, axes = plt.subplots(1, len(titles), figsize=(9, 3.6), constrained_layout=True)
    for axis, title in zip(axes, titles):
        for of, colour, marker in zip(dict.fromkeys(row[1] for row in figure), colours, "osD^v"):
            points = [(int(row[2]), float(row[3])) for row in figure if row[:2] == [title, of]]
            axis.loglog(*zip(*points), color=colour, marker=marker, markersize=4, label=of)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("ranks")
        axis.set_ylabel("seconds of a solve, modelled")
        axis.grid(True, which="major", linewidth=0.4)
    axes[0].legend(fontsize=7)
    canvas.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="records of strong and weak scaling")
    parser.add_argument("subdomains", help="records of scaling/subdomains")
    parser.add_argument("--latency", type=float, default=2e-6, help="of a message between machines, s (2e-6)")
    parser.add_argument("--bandwidth", type=float, default=1.5e9, help="of a rank between machines, bytes/s (1.5e9)")
    parser.add_argument("--reduction", type=float, default=4e-6, help="of a reduction, for twice the machines, s (4e-6)")
    parser.add_argument("--numbers", metavar="FILE", help="writes what is predicted as CSV")
    parser.add_argument("--figure", metavar="FILE", help="draws it; needs matplotlib")
    a = parser.parse_args()
    files = sorted(glob.glob(os.path.join(a.folder, "strong-*.csv")) + glob.glob(os.path.join(a.folder, "weak-*.csv")))
    records = [r for path in files for r in rows(path)]
    subdomains = rows(a.subdomains)
    network = (a.latency, a.bandwidth, a.reduction)
    models = {of: Model(records, subdomains, of, network) for of in METHODS}
    for of, m in models.items():
        (_, first), (_, last) = m.seconds_per_row
        print(
            f"- {name(of)}: {1e9 * first:.1f} ns for a row and iteration on one core, {1e9 * last:.1f} on {m.cores}, "
            f"{100 * m.wait[1][1]:.0f} % waiting, {m.reductions:.2f} reductions, {m.stages:.0f} stages; "
            f"iterations of one subdomain {m.factor:.3g} n^{m.exponent:.2f}"
        )
    print()
    check(models, records)
    predict(models, a.numbers, a.figure)


if __name__ == "__main__":
    main()
