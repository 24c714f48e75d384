#!/usr/bin/env python3
"""Draws the numbers of figures with matplotlib.

    bilu-bench plot --kind speedup results/yang/h200 -o speedup.csv
    scripts/plot_matplotlib.py speedup-1.csv speedup.png

The columns of the CSV file are those of docs/csv.md, "Numbers of figures". Panels stand beside each other;
where points have a category they are bars, else lines. Needs matplotlib 3.5 or newer.
"""

import argparse
import csv
import itertools
from collections import OrderedDict

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

# Okabe and Ito 2008, as in the program's own figures
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#785E3C"]
BACKENDS = {"cpu": 0, "cuda": 1, "cusparse": 2, "mpi": 3, "cpu-mt": 5}
MARKERS = "osD^v"


def number(text):
    return float(text) if text else None


def panels(path):
    """The rows by panel, then by series, in the order of the file."""
    found = OrderedDict()
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            panel = found.setdefault((row["figure"], row["panel"]), OrderedDict())
            panel.setdefault((row["series"], row["origin"]), []).append(row)
    return found


def is_log(values):
    """As the program chooses: more than a factor of twenty."""
    values = [v for v in values if v is not None and v > 0]
    return bool(values) and max(values) > 20 * min(values)


def look(name, index):
    place = BACKENDS.get(name.split(",")[0].split(" ")[0], index)
    return COLOURS[place % len(COLOURS)]


def bars(axes, series):
    rows = list(itertools.chain.from_iterable(series.values()))
    categories = list(OrderedDict.fromkeys(row["category"] for row in rows if row["category"]))
    drawn = [(key, own) for key, own in series.items() if own[0]["category"]]
    for (name, _), own in series.items():
        if not own[0]["category"]:
            axes.axhline(number(own[0]["y"]), color="grey", linewidth=1, label=name)
    width = 0.8 / max(len(drawn), 1)
    for slot, ((name, origin), own) in enumerate(drawn):
        places = [categories.index(row["category"]) - 0.4 + (slot + 0.5) * width for row in own]
        values = [number(row["y"]) for row in own]
        hollow = origin == "published"
        colour = "black" if hollow else look(name, slot)
        axes.bar(places, values, 0.9 * width, label=name, edgecolor=colour,
                 facecolor="none" if hollow else colour)
        for place, row, value in zip(places, own, values):
            low, high = number(row["low"]), number(row["high"])
            if low is not None and high is not None:
                axes.errorbar(place, value, [[value - low], [high - value]], color="black", capsize=2)
    axes.set_xticks(range(len(categories)), categories, rotation=60, ha="right", fontsize=7)


def lines(axes, series):
    for index, ((name, origin), own) in enumerate(series.items()):
        if not own[0]["x"]:
            axes.axhline(number(own[0]["y"]), color="grey", linewidth=1, label=name)
            continue
        points = [(number(row["x"]), number(row["y"])) for row in own]
        style = {"measured": "-", "published": "--", "limit": ":"}[origin]
        colour = look(name, index) if origin == "measured" else "grey"
        marker = MARKERS[index % len(MARKERS)] if origin != "limit" and len(points) < 60 else None
        axes.plot(*zip(*points), style, color=colour, marker=marker, markersize=4, label=name)
    if is_log([number(row["x"]) for own in series.values() for row in own]):
        axes.set_xscale("log")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("csv", help="numbers of a figure, of `bilu-bench plot -o FILE.csv`")
    parser.add_argument("output", help="figure to write: .png, .svg, .pdf")
    arguments = parser.parse_args()
    found = panels(arguments.csv)
    if not found:
        parser.error(f"{arguments.csv} holds no points")
    figure, grid = plt.subplots(1, len(found), figsize=(6 * len(found), 4.5), squeeze=False)
    for axes, ((title, panel), series) in zip(grid[0], found.items()):
        rows = list(itertools.chain.from_iterable(series.values()))
        (bars if any(row["category"] for row in rows) else lines)(axes, series)
        if is_log([number(row["y"]) for row in rows]):
            axes.set_yscale("log")
        axes.set_title(panel or title, fontsize=10)
        x, y = rows[0]["x-label"], rows[0]["y-label"]
        # of horizontal bars the lengths are on the axis of x
        axes.set_xlabel(x if y else "")
        axes.set_ylabel(y or x)
        axes.grid(True, color="#D6D6D6", linewidth=0.5)
        axes.set_axisbelow(True)
        axes.legend(fontsize=7)
    figure.suptitle(next(iter(found))[0], fontsize=11)
    figure.tight_layout()
    figure.savefig(arguments.output, dpi=150)


if __name__ == "__main__":
    main()
