#!/usr/bin/env bash
# `advise` against the sweep of everything that it may choose from, matrix by matrix, as a Markdown table.
#
#   scripts/advise-check.sh [-o FOLDER] [MATRIX...]
#
# BILU_BENCH names the program, BUDGET the seconds of a search (20), SET the settings that both are held to,
# LIMIT the seconds of a matrix (none). SWEEP_BUDGET ends a sweep after so many seconds, in an order without
# meaning; SWEEPS is a folder where sweeps are kept, so that they go on where they ended.
# Without matrices: those of BILU_BENCH_MATRICES (small ones first) and three generated ones.
# FOLDER (results/advise/here) keeps the rows of earlier runs, of other matrices or other settings, and what
# stands in its README.md from the line `## Remarks` on.
set -euo pipefail
cd "$(dirname "$0")/.."

program="${BILU_BENCH:-target/release/bilu-bench}"
folder=results/advise/here
if [ "${1:-}" = -o ]; then
    folder="$2"
    shift 2
fi
mkdir -p "$folder"
if [ $# -eq 0 ]; then
    set -- poisson3d:16 convdiff3d:20,px=0.3 blockpoisson3d:10,b=3
    IFS=: read -ra folders <<<"${BILU_BENCH_MATRICES:-}"
    for path in $(find "${folders[@]}" -name '*.mtx.gz' ! -name '*_rhs.mtx.gz' -printf '%s %p\n' | sort -n | cut -d' ' -f2); do
        set -- "$@" "$(basename "$path" .mtx.gz)"
    done
fi
held="${SET:-backend=cpu level-rule=min factor-precision=float64 restart=30 fill=0..2 max-iterations=1000}"
flags=(--quiet --exhaustive --time-budget "${BUDGET:-20}")
for setting in $held; do
    flags+=(--set "$setting")
done
[ -z "${SWEEP_BUDGET:-}" ] || flags+=(--sweep-budget "$SWEEP_BUDGET")
[ -z "${SWEEPS:-}" ] || mkdir -p "$SWEEPS"
limit=()
[ -z "${LIMIT:-}" ] || limit=(timeout --foreground -k 3 "$LIMIT")
for matrix in "$@"; do
    name="${matrix//[:,=]/-}"
    echo "$matrix" >&2
    "${limit[@]}" "$program" advise "$matrix" "${flags[@]}" ${SWEEPS:+--sweep-file "$SWEEPS/$name.tsv"} \
        >"$folder/$name.json" || { echo "$matrix: exit code $?" >&2; rm -f "$folder/$name.json"; }
done
doctor="$("$program" doctor)"
found() { sed -n "s/^ *$1  *//p" <<<"$doctor" | head -n 1; }
machine="$(found cpu), $(found cores) cores"
case "$held" in *cuda*) machine="${GPU:-$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)}, $machine" ;; esac
python3 - "$folder" "$held" "$machine" "$(found version)" <<'PYTHON'
import csv, json, pathlib, string, sys

folder, held, machine, version = pathlib.Path(sys.argv[1]), *sys.argv[2:]
files = sorted(folder.glob("*.json"))
rows = [r for r in (json.loads(path.read_text()) for path in files if path.stat().st_size) if "ratio" in r]
for r in rows:
    r["version"], r["set"] = version.rpartition("(")[2].rstrip(")"), held
    # a sweep that ended early is scaled to all
    r["time-share"] *= r["swept"] / r["combinations"]
# with those of an earlier run, of other matrices or settings
table = folder / "checks.csv"
if table.exists():
    new = {(r["matrix"], r["set"]) for r in rows}
    words = ("matrix", "best", "advised", "version", "set")
    with open(table, newline="") as earlier:
        for r in csv.DictReader(earlier):
            r = {k: v if k in words else int(v) if v.isdigit() else float(v) for k, v in r.items()}
            r.setdefault("swept", r["combinations"])
            r.setdefault("version", "")
            r.setdefault("set", "")
            if (r["matrix"], r["set"]) not in new:
                rows.append(r)
rows.sort(key=lambda r: (r["nnz"], r["matrix"], r["set"]))
if rows:
    with open(table, "w", newline="") as out:
        writer = csv.DictWriter(out, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for path in files:
        path.unlink()
letters = dict(zip(sorted({r["set"] for r in rows}), string.ascii_lowercase))
readme = folder / "README.md"
remarks = "## Remarks" + readme.read_text().partition("## Remarks")[2] if readme.exists() and "## Remarks" in readme.read_text() else ""
heads = ["matrix", "n", "settings", "combinations", "tried", "search s", "sweep s", "time share", "ratio", "interval", "advised", "best of the sweep", "version"]
with open(readme, "w") as out:
    print("# `advise` against the sweep of everything that it may choose from\n", file=out)
    print(f"Made by `scripts/advise-check.sh` on {machine}. ", end="", file=out)
    print("Ratio: time of the advised settings over that of the best of the sweep, both measured again in turns, with the interval that theirs allow. ", end="", file=out)
    print("Time share: search over sweep; the sweep runs each combination three times (once where that takes more than a second and is far from the best), gives up above ten times the best, and measures no bandwidths, so `run` takes longer. ", end="", file=out)
    print("Where a sweep ended before all combinations were run, these are as many taken at random, and its time is scaled to all. ", end="", file=out)
    print("Both were held to these settings:\n", file=out)
    for words, letter in letters.items():
        print(f"- {letter}: `{words}`", file=out)
    print("\n| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads), file=out)
    for r in rows:
        some = f'{r["swept"]} of ' if r["swept"] < r["combinations"] else ""
        cells = [r["matrix"], f'{r["n"]:,}', letters[r["set"]], f'{some}{r["combinations"]}', r["tried"], f'{r["search-s"]:.1f}', f'{r["sweep-s"]:.0f}',
                 f'{100 * r["time-share"]:.1f} %', f'{r["ratio"]:.2f}', f'{r["ratio-low"]:.2f} to {r["ratio-high"]:.2f}', r["advised"], r["best"], r["version"]]
        print("| " + " | ".join(map(str, cells)) + " |", file=out)
    good = sum(r["ratio"] <= 1.10 for r in rows)
    cheap = sum(r["time-share"] <= 0.10 for r in rows)
    print(f"\nWithin 10 % of the best: {good} of {len(rows)}. In at most a tenth of the time: {cheap} of {len(rows)}.", file=out)
    if remarks:
        print(f"\n{remarks}", end="", file=out)
PYTHON
