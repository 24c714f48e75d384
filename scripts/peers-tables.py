#!/usr/bin/env python3
"""Tables of the records that scripts/peers-results.sh made.

    scripts/peers-tables.py OUT [SCRATCH]

Reads OUT/same.csv (the same method in all programs) and OUT/best.csv (other methods of each); where there is
OUT/NAME-rounds.csv, NAME.csv is made of it first, with the round of each case that has the least setup and solve.
Writes OUT/same.md, OUT/README.md (how often this program is at least as fast as the fastest peer, and where others
win; with the conversion of the matrix, too), and OUT/best.md where there is OUT/best.csv. Compared are setup and
solve. SCRATCH gets the records for the figures, in best.csv the best of each program alone, under one method.
"""

import csv
import io
import os
import sys

OWN = "bilu-bench"
RANKS = "bilu-bench over ranks"
# Settings that name a method; in figures of the best all programs have those of the first record.
METHOD = ["ordering", "precond", "fill", "solver", "block-size", "side", "restart", "level-rule", "orthogonalisation"]


class Run:
    """The record of a case, the best of so many rounds."""

    def __init__(self, row, rounds):
        self.row, self.rounds = row, rounds
        backend = row["backend"]
        ours = {"cpu": OWN, "cpu-mt": OWN, "mpi": RANKS}
        self.own = backend in ours
        self.program = ours.get(backend) or backend.removeprefix("external:")
        self.system, self.fill = row["matrix"], int(row["fill"] or 0)
        self.solved = row["status"] == "converged"
        self.setup, self.solve, self.matrix = (self.number(key) for key in ("setup-s", "solve-s", "matrix-s"))
        if self.setup is not None:
            # of the system before either program has it
            self.setup += self.number("ordering-s") or 0.0

    def number(self, key):
        return float(self.row[key]) if self.row.get(key) else None

    def seconds(self, with_matrix=False):
        """Ordering, setup and solve, and with the conversion of the matrix."""
        if not self.solved or self.setup is None or self.solve is None:
            return float("inf")
        return self.setup + self.solve + ((self.matrix or 0.0) if with_matrix else 0.0)

    def method(self):
        """`cg boomeramg`, `gmres ilu(1)`, `gmres ilu(1) in blocks of 3`."""
        solver, precond = (self.row[key].removeprefix("external:") for key in ("solver", "precond"))
        if precond in ("none", "lu", "mumps") and solver != "cg":
            return precond if solver == "preonly" else solver
        if precond == "bilu":
            precond = f"ilu({self.fill})"
        block = int(self.row["block-size"])
        order = self.row.get("ordering") or "natural"
        after = "" if order == "natural" else f" after {order}"
        return f"{solver} {precond}" + (f" in blocks of {block}" if block > 1 else "") + after


def read(out, name):
    """Records of NAME.csv; where there are rounds, it is written anew first, with the best round of each case."""
    path, of_rounds = (os.path.join(out, name + end) for end in (".csv", "-rounds.csv"))
    rounds = 1
    if os.path.exists(of_rounds):
        rows = rows_of(of_rounds)
        rounds = max(int(row["round"] or 1) for row in rows)
        # settings of a case are the columns up to its backend
        settings = lambda row: tuple(row.values())[: list(row).index("backend") + 1]
        write_records(path, [best_round(of) for of in grouped(rows, settings).values()])
    return [Run(row, rounds) for row in rows_of(path)] if os.path.exists(path) else []


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def best_round(rows):
    """The round with the least setup and solve, or the first that did not solve the case."""
    failed = [row for row in rows if row["status"] != "converged"]
    return {**min(failed[:1] or rows, key=lambda row: Run(row, 1).seconds()), "round": ""}


def grouped(runs, key):
    """Runs by a key, in the order of their first ones."""
    groups = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups


def best(runs, with_matrix=False):
    """The fastest that is solved, if any is."""
    solved = [run for run in runs if run.solved and run.seconds() < float("inf")]
    return min(solved, key=lambda run: run.seconds(with_matrix), default=None)


def sides(runs, with_matrix=False):
    """Our best and the best of the others."""
    own = [run for run in runs if run.own]
    return best(own, with_matrix), best([run for run in runs if not run.own], with_matrix)


def milliseconds(seconds):
    return "" if seconds is None or seconds == float("inf") else f"{1e3 * seconds:.4g}"


def table(heads, rows, words):
    """Lines of Markdown; the first `words` columns are text."""
    rule = [":--" if at < words else "--:" for at in range(len(heads))]
    return ["| " + " | ".join(map(str, cells)) + " |" for cells in [heads, rule, *rows]]


def row_of(run, fastest):
    """Iterations, times in ms, and the time over the fastest of a run; its status where it is not solved."""
    total = run.seconds()
    if not run.solved:
        return ["", "", "", "", "", "", run.row["status"]]
    per_iteration = run.number("ms-per-iteration")
    symbolic, numeric = run.number("symbolic-s"), run.number("numeric-s")
    return [
        run.row["iterations"],
        milliseconds(symbolic),
        milliseconds(numeric),
        milliseconds(run.setup),
        "" if per_iteration is None else f"{per_iteration:.4g}",
        milliseconds(total),
        f"{total / fastest:.2f}",
    ]


HEADS = ["iterations", "symbolic", "numeric", "setup", "ms/iteration", "setup + solve", "of the fastest"]


def same_table(runs):
    rows = []
    for (system, fill), group in grouped(runs, lambda run: (run.system, run.fill)).items():
        first = best(group)
        fastest = first.seconds() if first else float("inf")
        rows += [[system, fill, run.program, *row_of(run, fastest)] for run in group]
    return table(["system", "k", "program", *HEADS], rows, 1)


def best_of_programs(runs):
    """For each system the best of each program that solves it, fastest first."""
    found = {}
    for system, group in grouped(runs, lambda run: run.system).items():
        each = [best(of) for of in grouped(group, lambda run: run.program).values()]
        found[system] = sorted((run for run in each if run), key=Run.seconds)
    return found


def best_table(found):
    rows = []
    for system, runs in found.items():
        rows += [[system, run.program, run.method(), *row_of(run, runs[0].seconds())] for run in runs]
    return table(["system", "program", "method", *HEADS], rows, 3)


def share(groups, with_matrix):
    """How many groups of runs are solved by anyone, and in how many ours is at least as fast as all others."""
    pairs = [pair for pair in (sides(group, with_matrix) for group in groups) if any(pair)]
    infinite = float("inf")
    time = lambda run: run.seconds(with_matrix) if run else infinite
    won = sum(time(own) <= time(other) for own, other in pairs)
    return won, len(pairs)


def shares(what, runs, key):
    """A line for the share of the groups by `key`."""
    groups = list(grouped(runs, key).values())
    texts = []
    for with_matrix in (False, True):
        won, count = share(groups, with_matrix)
        texts.append(f"{won} of {count}" + (f" ({100.0 * won / count:.0f} %)" if count else ""))
    return f"- {what}: {texts[0]}, with the conversion of the matrix on {texts[1]}"


def losses(groups):
    """Where a peer is faster: the group, ours, theirs and the ratio, largest first."""
    rows = []
    for name, group in groups.items():
        own, other = sides(group)
        if other and (own is None or other.seconds() < own.seconds()):
            over = " over ranks" if own and own.program == RANKS else ""
            ours = f"{own.method()}{over}, {milliseconds(own.seconds())}" if own else "not solved"
            ratio = own.seconds() / other.seconds() if own else float("inf")
            theirs = f"{other.program} {other.method()}, {milliseconds(other.seconds())}"
            rows.append((ratio, [name, ours, theirs, f"{ratio:.2f}" if own else ""]))
    rows.sort(key=lambda row: -row[0])
    heads = ["system", "ours, ms", "fastest, ms", "ours over it"]
    return table(heads, [row for _, row in rows], 3) if rows else ["Nowhere."]


def missing(runs):
    """What each program did not solve, by status."""
    lines = []
    for program, group in grouped(runs, lambda run: run.program).items():
        failed = grouped([run for run in group if not run.solved], lambda run: run.row["status"])
        told = ", ".join(f"{len(of)} {status}" for status, of in failed.items())
        lines.append(f"- {program}: {len(group)} cases" + (f", {told}" if told else ""))
    return lines


def counts(same, case):
    """How many runs of peers need as many iterations as ours within one, and the others."""
    equal, others, lines = 0, 0, []
    for name, group in grouped([run for run in same if run.solved], case).items():
        count = {run.program: int(run.row["iterations"]) for run in group}
        # peers on ranks have one subdomain for each, as ours over ranks has
        own = {program: count.pop(program) for program in (OWN, RANKS) if program in count}
        if not own:
            continue
        differ = {
            program: other
            for program, other in count.items()
            if all(abs(other - ours) > 1 for ours in own.values())
        }
        equal, others = equal + len(count) - len(differ), others + len(differ)
        if differ:
            told = [", ".join(f"{program} {other}" for program, other in of.items()) for of in (own, differ)]
            lines.append(f"- {name}: {told[0]}; {told[1]}")
    text = f"Iterations of the same method are ours within one in {equal} of {equal + others} runs of peers"
    return [text + (", but for" if lines else "."), *([""] if lines else []), *lines]


def summary(same, others):
    """The page, of the records of the same method and of those of other methods, if there are any."""
    runs = same + others
    system = lambda run: run.system
    case = lambda run: f"{run.system}, k = {run.fill}"
    first = runs[0].row
    rounds = max(run.rounds for run in runs)
    in_rounds = f", in the best of up to {rounds} rounds over systems and programs in turn" if rounds > 1 else ""
    threads = max(int(run.row.get(of) or 1) for run in runs if run.own for of in ("threads", "ranks"))
    lines = [
        "# Other programs on one thread" if threads == 1 else f"# Other programs on {threads} threads or ranks",
        "",
        f"`scripts/peers-results.sh` with revision {first['revision']} on {first['cpu']}, {first['date'][:10]}: medians of "
        f"up to 100 solves within a second{in_rounds}, relative tolerance 1e-6, at most 1000 iterations. "
        "[same.md](same.md) has GMRES(20) with ILU(k) on the right in every program that has it, [same.svg](same.svg) is "
        "its performance profile"
        + ("; [best.md](best.md) and [best.svg](best.svg) have the best of all methods of each." if others else "."),
        "",
    ]
    versions = grouped([run for run in runs if run.row["device"]], lambda run: run.program)
    lines += [f"- {name}: {of[0].row['device']}" for name, of in versions.items()]
    lines += ["", "Our setup and solve take at most as long as those of the fastest peer on", ""]
    lines.append(shares("GMRES(20) with the same ILU(k), systems and levels", same, case))
    for fill in sorted({run.fill for run in same}):
        lines.append(shares(f"k = {fill}", [run for run in same if run.fill == fill], case))
    lines.append(shares("the best level of each program, systems", same, system))
    if others:
        lines.append(shares("the best method of each program, systems", runs, system))
    lines += ["", *counts(same, case)]
    lines += ["", "## Where others win with the same method", "", *losses(grouped(same, case))]
    if others:
        lines += ["", "## Where others win with their best method", "", *losses(grouped(runs, system))]
    lines += ["", "## What was not solved", "", *missing(runs)]
    return lines


def write(path, text):
    """Beside the file first, so that it is whole or what it was."""
    with open(path + ".new", "w", encoding="utf-8", newline="") as file:
        file.write(text)
    os.replace(path + ".new", path)


def write_lines(path, lines):
    write(path, "\n".join(lines) + "\n")


def write_records(path, rows):
    if rows:
        text = io.StringIO()
        out = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
        write(path, text.getvalue())


def main():
    if len(sys.argv) not in (2, 3) or not os.path.isdir(sys.argv[1]):
        sys.exit("peers-tables: OUT, a folder with same.csv and best.csv, and a folder for figures")
    out = sys.argv[1]
    same, others = read(out, "same"), read(out, "best")
    runs = same + others
    if not runs:
        sys.exit(f"peers-tables: no records in {out}")
    found = best_of_programs(runs)
    write_lines(os.path.join(out, "same.md"), ["Times in ms.", "", *same_table(same)])
    if others:
        write_lines(os.path.join(out, "best.md"), ["Times in ms.", "", *best_table(found)])
    lines = summary(same, others)
    write_lines(os.path.join(out, "README.md"), lines)
    print("\n".join(lines))
    if len(sys.argv) == 3:
        # setup, with the ordering, and solve alone
        compared = lambda run: {**run.row, "matrix-s": "", "ordering-s": "", "setup-s": run.setup}
        write_records(os.path.join(sys.argv[2], "same.csv"), [compared(run) for run in same])
        method = {key: runs[0].row[key] for key in METHOD if key in runs[0].row}
        rows = [{**compared(run), **method} for of in found.values() for run in of]
        write_records(os.path.join(sys.argv[2], "best.csv"), rows)


if __name__ == "__main__":
    main()
