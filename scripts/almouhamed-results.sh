#!/usr/bin/env bash
# Tunes the kernels of the products on this machine's GPU, runs the figures of Al-Mouhamed and Khan
# (configs/almouhamed) and larger systems, and writes what is kept in the repository: per experiment
# the records as CSV and their table as Markdown, the tables of the tuning as Markdown and
# JSON, and what `doctor` says of the machine.
#
#   scripts/almouhamed-results.sh [FOLDER] [OUT]
#
# FOLDER holds `bilu-bench`; without it, or with `-`, it is built. OUT is results/almouhamed/<GPU>
# unless given. BILU_BENCH_EXPERIMENTS (`fig8a fig8b fig7 large launches factors fig9a qmr`),
# BILU_BENCH_FLAGS (further flags of `reproduce`, such as `--only backend=cuda`), BILU_BENCH_TUNING
# (seconds for tuning, 24; 0 leaves it out) and BILU_BENCH_LIMIT (seconds for everything, 14400) choose
# what is run. Records that OUT holds already are kept: a run that was stopped goes on where it was. Files
# of a revision with other columns are refused: give another OUT.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
source "$here/programs.sh"
results_arguments "$@"
limit="${BILU_BENCH_LIMIT:-14400}"
tuning="${BILU_BENCH_TUNING:-24}"
for number in "$limit" "$tuning"; do
    [[ "$number" =~ ^(0|[1-9][0-9]{0,8})$ ]] || {
        echo "almouhamed-results: \`$number\` is no number of seconds" >&2
        exit 2
    }
done
start_results almouhamed

# beyond the cache for every block size, and as large as the paper's figures; once
if [ "$tuning" -gt 0 ] && [ ! -e "$out/tuning.md" ]; then
    printf '\n==> tuning on %s\n' "$gpu"
    : >"$scratch/tuning.md"
    # edge and block size
    for system in 64:2 128:2 81:4 64:8; do
        "$bilu" tune --edge "${system%:*}" --block-size "${system#*:}" --budget "$((tuning / 4))" \
            --output "$out/tuning-${system/:/-}.json" --force --format markdown >>"$scratch/tuning.md"
    done
    mv "$scratch/tuning.md" "$out/tuning.md"
fi

read -r -a flags <<<"${BILU_BENCH_FLAGS:-}"
experiments "almouhamed" "${BILU_BENCH_EXPERIMENTS:-fig8a fig8b fig7 large launches factors fig9a qmr}"
finish_results
