#!/usr/bin/env bash
# Compares every algorithm of the triangular solves and the factorisation with cuSPARSE on this machine's
# GPU (configs/trisolve), and writes what is kept in the repository: per experiment the records as
# CSV and their table as Markdown, the summary over all of them (`bilu-bench versus`) as Markdown and
# CSV, and what `doctor` says of the machine.
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
results_limit
start_results trisolve

read -r -a flags <<<"${BILU_BENCH_FLAGS:-}"
experiments trisolve "$(chosen_experiments "general point-grids block-grids")"

files=()
for file in general point-grids block-grids reservoirs; do
    [ ! -s "$out/$file.csv" ] || files+=("$out/$file.csv")
done
if [ "${#files[@]}" -gt 0 ]; then
    for form in markdown:md csv:csv; do
        "$bilu" versus "${files[@]}" --format "${form%:*}" >"$scratch/versus" || failed=1
        [ ! -s "$scratch/versus" ] || mv "$scratch/versus" "$out/versus.${form#*:}"
    done
    [ ! -s "$out/versus.md" ] || cat "$out/versus.md"
fi
finish_results
