#!/usr/bin/env bash
# Runs the experiments with the obstacle problem (configs/obstacle) on this machine and writes what is
# kept in the repository: per experiment the records as CSV and JSON and its tables, beside the published
# values, as Markdown, the scaling as SVG and PNG, and what `doctor` says of the machine.
#
#   scripts/obstacle-results.sh [FOLDER] [OUT]
#
# FOLDER holds `bilu-bench`; without it, or with `-`, it is built. OUT is results/obstacle/<GPU> unless
# given. BILU_BENCH_EXPERIMENTS (`sweeps table2 red-black weak-scaling cores table1`) and BILU_BENCH_FLAGS
# (further flags of `obstacle`, such as `--m 256`) choose what is run. Records that OUT holds already are
# kept: a run that was stopped goes on where it was.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
source "$here/programs.sh"
results_arguments "$@"
start_results obstacle
read -r -a flags <<<"${BILU_BENCH_FLAGS:-}"
failed=0
for name in ${BILU_BENCH_EXPERIMENTS:-sweeps table2 red-black weak-scaling cores table1}; do
    start=$SECONDS code=0 figure=()
    case "$name" in
    weak-scaling | cores) figure=(--figure "$out/$name.svg" --figure "$out/$name.png") ;;
    esac
    "$bilu" obstacle "$name" "${flags[@]}" "${figure[@]}" --quiet --resume --output "$out/$name.csv" \
        --output "$out/$name.json" --format markdown >"$scratch/table" || code=$?
    echo "obstacle $name: $((SECONDS - start)) s"
    # 1 is a case that did not succeed, which is a result
    if [ "$code" -le 1 ] && [ -s "$scratch/table" ]; then
        mv "$scratch/table" "$out/$name.md"
        cat "$out/$name.md"
    else
        failed=1
    fi
done
printf '\nresults in %s after %s s\n' "$out" "$SECONDS"
exit "$failed"
