#!/usr/bin/env bash
# `advise` against the sweep of everything that it may choose from, matrix by matrix, as a Markdown table.
#
#   scripts/advise-check.sh [-o FOLDER] [MATRIX...]
#
# BILU_BENCH names the program, BUDGET the seconds of a search (20), SET the settings that both are held to.
# Without matrices: those of BILU_BENCH_MATRICES (small ones first) and three generated ones.
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
sets=()
for setting in ${SET:-backend=cpu level-rule=min factor-precision=float64 restart=30 fill=0..2 max-iterations=1000}; do
    sets+=(--set "$setting")
done
for matrix in "$@"; do
    echo "$matrix" >&2
    "$program" advise "$matrix" --quiet --exhaustive --time-budget "${BUDGET:-20}" "${sets[@]}" \
        >"$folder/${matrix//[:,=]/-}.json" || { echo "$matrix: exit code $?" >&2; rm -f "$folder/${matrix//[:,=]/-}.json"; }
done
doctor="$("$program" doctor)"
machine="$(sed -n 's/^ *cpu  *//p' <<<"$doctor" | head -n 1), $(sed -n 's/^ *cores  *//p' <<<"$doctor" | head -n 1) cores"
revision="$(sed -n 's/^ *version  *//p' <<<"$doctor" | head -n 1)"
python3 - "$folder" "${sets[*]}" "$machine, version $revision" <<'PYTHON'
import csv, json, pathlib, sys

folder = pathlib.Path(sys.argv[1])
files = sorted(folder.glob("*.json"))
rows = [r for r in (json.loads(path.read_text()) for path in files if path.stat().st_size) if "ratio" in r]
# with those of an earlier run, of other matrices
table = folder / "checks.csv"
if table.exists():
    new = {r["matrix"] for r in rows}
    words = ("matrix", "best", "advised")
    with open(table, newline="") as earlier:
        for r in csv.DictReader(earlier):
            if r["matrix"] not in new:
                rows.append({k: v if k in words else int(v) if v.isdigit() else float(v) for k, v in r.items()})
rows.sort(key=lambda r: r["nnz"])
if rows:
    with open(table, "w", newline="") as out:
        writer = csv.DictWriter(out, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for path in files:
        path.unlink()
heads = ["matrix", "n", "combinations", "tried", "search s", "sweep s", "time share", "ratio", "interval", "advised", "best of the sweep"]
with open(folder / "README.md", "w") as out:
    print("# `advise` against the sweep of everything that it may choose from\n", file=out)
    print(f"`scripts/advise-check.sh` made these on {sys.argv[3]}. ", end="", file=out)
    print("Ratio: time of the advised settings over that of the best of the sweep, both measured again in turns, with the interval that theirs allow. ", end="", file=out)
    print("Time share: search over sweep; the sweep runs each combination three times, gives up above ten times the best, and measures no bandwidths, so `run` takes longer. ", end="", file=out)
    print(f"Both were held to `{sys.argv[2]}`.\n", file=out)
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads), file=out)
    for r in rows:
        cells = [r["matrix"], f'{r["n"]:,}', r["combinations"], r["tried"], f'{r["search-s"]:.1f}', f'{r["sweep-s"]:.0f}',
                 f'{100 * r["time-share"]:.1f} %', f'{r["ratio"]:.2f}', f'{r["ratio-low"]:.2f} to {r["ratio-high"]:.2f}', r["advised"], r["best"]]
        print("| " + " | ".join(map(str, cells)) + " |", file=out)
    good = sum(r["ratio"] <= 1.10 for r in rows)
    cheap = sum(r["time-share"] <= 0.10 for r in rows)
    print(f"\nWithin 10 % of the best: {good} of {len(rows)}. In at most a tenth of the time: {cheap} of {len(rows)}.", file=out)
PYTHON
