"""What peers in Python have in common: the folder of a case, its answers, its repetitions (docs/peers.md)."""

import json
import math
import os
import sys
import time

PROTOCOL = 1


def say(line, **fields):
    """Prints a line of the answer; what is None or no number is left out, underscores stand for hyphens."""
    told = {}
    for key, value in fields.items():
        if value is not None and not (isinstance(value, float) and not math.isfinite(value)):
            told[key.replace("_", "-")] = value
    print(json.dumps({line: told}), flush=True)


class Unsupported(Exception):
    """The library cannot do what was asked for; says why."""


class Breakdown(Exception):
    """There are no factors of these values, or a recurrence divided by zero; says why."""


class Case:
    """A case: its folder and settings."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "settings.json"), encoding="utf-8") as file:
            self.settings = json.load(file)

    def __getitem__(self, key):
        return self.settings[key]

    def array(self, name, mapped=False):
        """One of the arrays; `mapped`, of which only parts are read."""
        import numpy

        return numpy.load(os.path.join(self.folder, name + ".npy"), mmap_mode="r" if mapped else None)

    def write_solution(self, x):
        import numpy

        numpy.save(os.path.join(self.folder, "x.npy"), numpy.asarray(x, dtype=numpy.float64))

    def another(self, samples):
        """Whether to take another sample after these, in seconds."""
        repeat, count, spent = self["repeat"], len(samples), sum(samples)
        if count < repeat["least"]:
            return True
        few = count < repeat["samples"] or spent < repeat["seconds"]
        return few and count < repeat["most"] and spent < repeat["budget"]

    def timed_solves(self, solve, first=True):
        """Solves for the first time, which counts if it is long, and as often as samples are asked for. Yields the
        seconds and the result of each solve that counts; `solve` starts from zero."""
        samples = []
        seconds, result = timed(solve)
        if seconds > self["repeat"]["budget"] or self["repeat"]["most"] == 1:
            samples.append(seconds)
            yield seconds, result
        while not samples or self.another(samples):
            seconds, result = timed(solve)
            samples.append(seconds)
            yield seconds, result


def timed(action):
    """Seconds and result of an action."""
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def main(hello, run):
    """Answers for a library: `hello` returns the fields of the first line, `run` answers for a case but for that."""
    try:
        greeting = hello()
    except ImportError as error:
        sys.exit(f"error: {error}")
    if greeting is not None:
        say("hello", protocol=PROTOCOL, **greeting)
    if sys.argv[-1] == "--version":
        return
    try:
        run(Case(sys.argv[-1]))
    except (Unsupported, Breakdown, MemoryError) as error:
        kinds = {Unsupported: "unsupported", Breakdown: "breakdown"}
        if greeting is not None:
            say("end", status=kinds.get(type(error), "out-of-memory"), reason=str(error) or "out of memory")
