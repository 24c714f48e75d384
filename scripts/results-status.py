#!/usr/bin/env python3
"""Writes results/STATUS.md: revision, age and machine of every committed table of records; marks pages that quote them.

    scripts/results-status.py [--pages] [--check]

The age is the number of commits, from the oldest revision of a table on, that touched what its backends measure:
scripts/results-status.toml names these files, and the age from which on a table is stale. In README.md the text
between `<!-- status: FILE -->` and `<!-- /status -->` is what STATUS.md says of FILE. README.md, docs/*.md and the
README of each folder of results have a line between `<!-- records -->` and `<!-- /records -->` that names the tables
they link to, or describe, that are not current; where a page has none it is put below its first paragraph.

With --pages the states are those of STATUS.md as it is. With --check nothing is written: exit code 1 if a table or a
page has another state (ages may differ).
"""

import csv
import glob
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
a revision that is not in the history. The report has the states, pages name the tables they quote that are not current.
"""
# what a page says of its records
RECORDS = re.compile(r"<!-- records -->\n.*?<!-- /records -->\n\n", re.DOTALL)


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
        # `cpu-mt`, `mpi-cuda`; ranks without a GPU compute as `cpu` does
        parts = ["mpi", "cpu"] if backend == "mpi" else backend.split("-")
        for part in parts:
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


def quoted(page, text, tables):
    """The tables that a page links to; a README of results stands for all of its folder."""
    folder = os.path.dirname(page)
    if folder.startswith("results/"):
        return [table for table in tables if os.path.dirname(table) == folder]
    found = set()
    for target in re.findall(r"\]\(([^)#:]*results/[^)#]+)", text):
        target = os.path.normpath(os.path.join(folder, target)).removesuffix("/README.md")
        # a figure of `strong-1.csv`, `strong-2.csv` is `strong.svg`
        own = re.compile(re.escape(os.path.splitext(target)[0]) + r"(-\d+)?\.csv|" + re.escape(target) + r"/[^/]+")
        below = [table for table in tables if own.fullmatch(table)]
        found.update(below or (table for table in tables if table.startswith(target + "/") and target != "results"))
    return sorted(found)


def said_of(page, quoted, states):
    """The line of a page: folder by folder the tables that are not current."""
    parts = {}
    for table in quoted:
        folder, name = os.path.split(table)
        if states[table][0] != "current":
            parts.setdefault(folder, {}).setdefault(states[table][0], []).append(name.removesuffix(".csv"))
    if not parts:
        return ""
    folders = []
    for folder, of_state in parts.items():
        count = sum(os.path.dirname(table) == folder for table in states)
        words = []
        for state, names in of_state.items():
            listed = "all" if len(names) == count else ", ".join(f"`{name}`" for name in names)
            words.append(f"{listed} ({state})")
        own = "" if folder == os.path.dirname(page) else folder.removeprefix("results/") + " "
        folders.append(own + ", ".join(words))
    status = os.path.relpath("results/STATUS.md", os.path.dirname(page) or ".")
    line = f"*Records that are not [current]({status}): {'; '.join(folders)}.*"
    return f"<!-- records -->\n{line}\n<!-- /records -->\n\n"


def marked(page, text, states):
    """The text of a page with what is said between its marks."""

    def say(match):
        if match[1] not in states:
            sys.exit(f"results-status: {page} names {match[1]}, which has no records")
        state, revisions = states[match[1]]
        return f"<!-- status: {match[1]} -->{state}, {revisions}<!-- /status -->"

    text = re.sub(r"<!-- status: (\S+) -->.*?<!-- /status -->", say, text)
    bare = RECORDS.sub("", text)
    said = said_of(page, quoted(page, bare, states), states)
    if RECORDS.search(text) and said:
        return RECORDS.sub(lambda _: said, text)
    if not said:
        return bare
    # below the title and the first paragraph
    start = re.match(r"(#[^\n]*\n\n)?.*?\n\n", bare, re.DOTALL)
    if not start:
        return f"{bare.rstrip()}\n\n{said}"
    return bare[: start.end()] + said + bare[start.end() :]


def pages():
    """Paths of the pages that quote records."""
    found = ["README.md"]
    for pattern in ["docs/*.md", "results/*/**/README.md"]:
        found += sorted(glob.glob(pattern, root_dir=ROOT, recursive=True))
    return found


def listed():
    """What STATUS.md has: state and revisions by table."""
    with open(os.path.join(ROOT, "results", "STATUS.md")) as file:
        cells = [line.strip("| \n").split(" | ") for line in file if line.startswith("| results/")]
    return {row[0]: (row[1], row[2]) for row in cells}


def measured():
    """STATUS.md as it has to be, and its states."""
    with open(os.path.join(ROOT, "scripts", "results-status.toml"), "rb") as file:
        settings = tomllib.load(file)
    found = rows(settings)
    lines = [HEAD, ["---"] * 3 + ["--:"] + ["---"] * 2, *found]
    page = ABOUT.format(stale=settings["stale"]) + "\n"
    page += "".join("| " + " | ".join(line) + " |\n" for line in lines)
    return page, {row[0]: (row[1], row[2]) for row in found}


def main():
    options = set(sys.argv[1:])
    if not options <= {"--pages", "--check"}:
        sys.exit(__doc__)
    check, wrong = "--check" in options, 0
    if "--pages" in options:
        states = listed()
    else:
        status, states = measured()
        said = listed() if check else states
        for path in sorted(states.keys() | said.keys()):
            if states.get(path) != said.get(path):
                wrong += 1
                print(f"{path}: {states.get(path)}, STATUS.md has {said.get(path)}")
        if not check:
            with open(os.path.join(ROOT, "results", "STATUS.md"), "w") as file:
                file.write(status)
    for page in pages():
        with open(os.path.join(ROOT, page)) as file:
            text = file.read()
        made = marked(page, text, states)
        if made != text and check:
            wrong += 1
            print(f"{page}: marks are not current")
        elif made != text:
            with open(os.path.join(ROOT, page), "w") as file:
                file.write(made)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
