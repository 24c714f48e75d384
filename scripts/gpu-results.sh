#!/usr/bin/env bash
# Runs the published tables of Yang et al. 2016 on this machine's GPU and CPU, and writes what is kept
# in the repository: per table the records as CSV, the comparison with the published numbers as Markdown
# and CSV, and what `doctor` says of the machine.
#
#   scripts/gpu-results.sh [FOLDER] [OUT]
#
# FOLDER holds `bilu-bench`; without it, or with `-`, it is built. OUT is results/yang/<GPU> unless
# given. BILU_BENCH_TABLES (`table1 table2 table3`) and BILU_BENCH_FLAGS (further flags of `reproduce`,
# such as `--max-repetitions 3`) choose what is run. Records that OUT holds already are kept: a run that
# was stopped goes on where it was.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
source "$here/programs.sh"
results_arguments "$@"
paper=yang
start_results "$paper"

read -r -a flags <<<"${BILU_BENCH_FLAGS:-}"
failed=0
for table in ${BILU_BENCH_TABLES:-table1 table2 table3}; do
    printf '\n==> %s/%s on %s\n' "$paper" "$table" "$gpu"
    run() {
        local limit=$1
        shift
        timeout --foreground --kill-after=60 "$limit" "$bilu" reproduce "$paper/$table" "${flags[@]}" --resume \
            --output "$out/$table.csv" "$@"
    }
    code=0
    run 14400 --format markdown >"$out/$table.md" || code=$?
    cat "$out/$table.md"
    if [ "$code" -gt 1 ]; then
        echo "FAIL  $paper/$table (exit code $code)" >&2
        failed=1
        continue
    fi
    # everything is finished: this only prints; 1 is a case that did not converge, which is a result
    run 600 --quiet --format csv >"$out/$table-published.csv" || [ $? = 1 ]
done
printf '\nresults in %s\n' "$out"
exit "$failed"
