#!/usr/bin/env bash
# Compares every way of the triangular solves and the factorisation with cuSPARSE on this machine's
# GPU (configs/trisolve), and writes what is kept in the repository: per experiment the records as
# CSV and JSON and their table as Markdown, the summary over all of them (`bilu-bench versus`) as
# Markdown, CSV and JSON, and what `doctor` says of the machine.
#
#   scripts/trisolve-results.sh [FOLDER] [OUT]
#
# FOLDER holds `bilu-bench`; without it, or with `-`, it is built. OUT is results/trisolve/<GPU>
# unless given. BILU_BENCH_MATRICES names the folder of the reservoir matrices; without it they are
# left out. BILU_BENCH_EXPERIMENTS (`general point-grids block-grids reservoirs`),
# BILU_BENCH_FLAGS (further flags of `reproduce`, such as `--fill 0`) and BILU_BENCH_LIMIT (seconds
# for everything, 14400) choose what is run. Records that OUT holds already are kept: a run that was
# stopped goes on where it was, and the summary is of what is there.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
source "$here/programs.sh"
results_arguments "$@"
limit="${BILU_BENCH_LIMIT:-14400}"
[[ "$limit" =~ ^[1-9][0-9]*$ ]] || {
    echo "trisolve-results: BILU_BENCH_LIMIT=$limit is no number of seconds" >&2
    exit 2
}
start_results trisolve

experiments="${BILU_BENCH_EXPERIMENTS:-}"
if [ -z "$experiments" ]; then
    experiments="general point-grids block-grids"
    if [ -n "${BILU_BENCH_MATRICES:-}" ]; then
        experiments+=" reservoirs"
    else
        echo "reservoirs left out: BILU_BENCH_MATRICES is not set" >&2
    fi
fi
read -r -a flags <<<"${BILU_BENCH_FLAGS:-}"
experiments trisolve "$experiments"

files=()
for file in general point-grids block-grids reservoirs; do
    [ ! -s "$out/$file.csv" ] || files+=("$out/$file.csv")
done
if [ "${#files[@]}" -gt 0 ]; then
    for form in markdown:md csv:csv json:json; do
        "$bilu" versus "${files[@]}" --format "${form%:*}" >"$scratch/versus" || failed=1
        [ ! -s "$scratch/versus" ] || mv "$scratch/versus" "$out/versus.${form#*:}"
    done
    [ ! -s "$out/versus.md" ] || cat "$out/versus.md"
fi
printf '\nresults in %s\n' "$out"
if [ -n "$stopped" ]; then
    echo "not finished within $limit s:$stopped; the same command goes on" >&2
    failed=1
fi
exit "$failed"
