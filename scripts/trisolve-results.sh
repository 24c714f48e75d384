#!/usr/bin/env bash
# Compares every algorithm of the triangular solves and the factorisation with cuSPARSE on this machine's
# GPU (configs/trisolve), and writes what is kept in the repository: per experiment the records as
# CSV and their table as Markdown, the summary over all of them (`bilu-bench versus`) as Markdown and
# CSV, and what `doctor` says of the machine.
#
#   scripts/trisolve-results.sh [FOLDER] [OUT]
#
# FOLDER holds `bilu-bench`; without it, or with `-`, it is built. OUT is results/trisolve/<GPU>
# unless given. BILU_BENCH_MATRICES names the folder of the real matrices; without it they are
# left out. BILU_BENCH_EXPERIMENTS (`general point-grids block-grids reservoirs real`),
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
experiments trisolve "$(chosen_experiments "general point-grids block-grids" "reservoirs real")"

# summary NAME EXPERIMENT...: `versus` over what there is of the experiments
summary() {
    local name=$1 files=() experiment form
    shift
    for experiment in "$@"; do
        [ ! -s "$out/$experiment.csv" ] || files+=("$out/$experiment.csv")
    done
    [ "${#files[@]}" -gt 0 ] || return 0
    for form in markdown:md csv:csv; do
        "$bilu" versus "${files[@]}" --format "${form%:*}" >"$scratch/versus" || failed=1
        [ ! -s "$scratch/versus" ] || mv "$scratch/versus" "$out/$name.${form#*:}"
    done
    [ ! -s "$out/$name.md" ] || cat "$out/$name.md"
}
summary versus general point-grids block-grids reservoirs
summary versus-real real
finish_results
