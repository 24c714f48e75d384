#!/usr/bin/env python3
"""Writes results/STATUS.md: revision, age and machine of every committed table of records; marks stale ones in README.

    scripts/results-status.py [--check]

The age is the number of commits, from the oldest revision of a table on, that touched what its backends measure:
scripts/results-status.toml names these files, and the age from which on a table is stale. In README.md the text
between `<!-- status: FILE -->` and `<!-- /status -->` is what STATUS.md says of FILE. With --check nothing is
written: exit code 1 if a table has another state than STATUS.md or README.md say (ages may differ).
"""

import csv
import os
import re
import subprocess
import sys
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEAD = ["table", "state", "revisions", "age", "machine", "measured"]
ABOUT = """# State of the records

Made by `scripts/results-status.py`. Age: commits since the oldest revision of a table that touched what its backends
measure (`scripts/results-status.toml`); `stale`: {stale} or more; `mixed`: several revisions; `unknown`:
a revision that is not in the history. The report has the states, README marks the tables it quotes.
"""


def git(*arguments):
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def files_of(records, paths, fallback):
    """What the backends of the records measure."""
    if "obstacle" in records[0] and "relaxations" in records[0]:
        return paths["obstacle"]
    found = list(paths["run"])
    # comparisons have no backend of their own: those in a folder of a GPU ran on it
    for backend in {record.get("backend") or fallback for record in records}:
        for part in backend.split("-"):
            part = "cpu" if part == "mt" else part
            found += [path for path in paths.get(part, []) if path not in found]
    return found


def age_of(revision, files):
    """Commits since then; none where the history does not have the revision."""
    log = git("log", "--format=%h", f"{revision}..HEAD", "--", *files)
    return None if log is None else len(log.split())


def table(path, settings):
    """Revisions, age, devices and days of a file of records; none of other files."""
    with open(os.path.join(ROOT, path), newline="") as file:
        records = list(csv.DictReader(line for line in file if not line.startswith("#")))
    column = next((name for name in ("revision", "version") if records and name in records[0]), None)
    if column is None:
        return None
    machine = path.split("/")[2]
    # the program's: `0.2.0 (20b57ca92377)`; peers have versions of their own
    revisions = [re.search(r"\b([0-9a-f]{12})(-dirty)?\b", record[column]) for record in records]
    revisions = {(found[1], found[2] or "") for found in revisions if found}
    files = files_of(records, settings["paths"], "cuda" if machine == "h200" else "cpu")
    ages = {age_of(revision, files) for revision, _ in revisions}
    devices = {record["device"].split(", sm_")[0] for record in records if record.get("device")}
    dates = {record["date"][:10] for record in records if record.get("date")}
    return revisions, ages, devices or {machine}, dates


def row(path, tables, settings):
    """The line of a table, or of one that was made of several."""
    revisions, ages, devices, dates = (set().union(*parts) for parts in zip(*tables))
    revisions = sorted(revisions)
    age = None if None in ages or not ages else max(ages)
    states = ["mixed"] * (len(revisions) > 1) + ["dirty"] * any(dirty for _, dirty in revisions)
    states += ["unknown"] if age is None else ["stale"] * (age >= settings["stale"])
    return [
        path,
        ", ".join(states) or "current",
        " ".join(revision + dirty for revision, dirty in revisions),
        "" if age is None else str(age),
        "; ".join(sorted(devices)),
        " to ".join(sorted({min(dates), max(dates)})) if dates else "",
    ]


def rows(settings):
    found = {}
    for folder, _, names in os.walk(os.path.join(ROOT, "results")):
        for name in names:
            if name.endswith(".csv"):
                path = os.path.relpath(os.path.join(folder, name), ROOT)
                found[path] = [table(path, settings)]
    for path, parts in settings["derived"].items():
        found[path] = [part for one in parts for part in found[one]]
    return [row(path, own, settings) for path, own in sorted(found.items()) if own[0]]


def marked(text, states):
    """The text with what is said between its marks."""

    def say(match):
        if match[1] not in states:
            sys.exit(f"results-status: README.md names {match[1]}, which has no records")
        state, revisions = states[match[1]]
        return f"<!-- status: {match[1]} -->{state}, {revisions}<!-- /status -->"

    return re.sub(r"<!-- status: (\S+) -->.*?<!-- /status -->", say, text)


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    with open(os.path.join(ROOT, "scripts", "results-status.toml"), "rb") as file:
        settings = tomllib.load(file)
    found = rows(settings)
    states = {row[0]: (row[1], row[2]) for row in found}
    lines = [HEAD, ["---"] * 3 + ["--:"] + ["---"] * 2, *found]
    page = ABOUT.format(stale=settings["stale"]) + "\n"
    page += "".join("| " + " | ".join(line) + " |\n" for line in lines)
    status, readme = (os.path.join(ROOT, *path) for path in (["results", "STATUS.md"], ["README.md"]))
    with open(readme) as file:
        text = file.read()
    if not sys.argv[1:]:
        for path, content in [(status, page), (readme, marked(text, states))]:
            with open(path, "w") as file:
                file.write(content)
        return 0
    with open(status) as file:
        cells = [line.strip("| \n").split(" | ") for line in file if line.startswith("| results/")]
    said = {row[0]: (row[1], row[2]) for row in cells}
    wrong = sorted(path for path in states.keys() | said.keys() if states.get(path) != said.get(path))
    for path in wrong:
        print(f"{path}: {states.get(path)}, STATUS.md has {said.get(path)}")
    if marked(text, states) != text:
        wrong.append("README.md")
        print("README.md: marks are not current")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
