#!/usr/bin/env bash
# Runs the experiments of Gupta et al. (configs/gupta) on this machine's GPU and processors, and writes
# what is kept in the repository: per experiment the records as CSV and their tables as
# Markdown, figures of those that have one, and what `doctor` says of the machine.
#
#   scripts/gupta-results.sh [FOLDER] [OUT]
#
# FOLDER holds `bilu-bench`; without it, or with `-`, it is built. OUT is results/gupta/<GPU> unless
# given. BILU_BENCH_MATRICES names the folder of the permeability fields; without it the reservoirs are
# left out. BILU_BENCH_EXPERIMENTS (`bubbly32 layered layered-large ilut frontier bubbly128-1 bubbly128-9 reservoirs`),
# BILU_BENCH_FLAGS (further flags of `reproduce`, such as `--only backend=cuda`) and BILU_BENCH_LIMIT (seconds
# for everything, 14400) choose what is run. Records that OUT holds already are kept: a run that was
# stopped goes on where it was.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
source "$here/programs.sh"
results_arguments "$@"
results_limit
start_results gupta

read -r -a flags <<<"${BILU_BENCH_FLAGS:-}"
experiments gupta "$(chosen_experiments "bubbly32 layered layered-large ilut frontier bubbly128-1 bubbly128-9" reservoirs)"
if [ -s "$out/frontier.csv" ]; then
    "$bilu" plot "$out/frontier.csv" --experiment gupta/frontier --output "$out/frontier.svg" \
        --output "$out/frontier.png" --force || failed=1
fi
finish_results
