#!/usr/bin/env bash
# Makes the committed results of a paper from nothing: one revision, one machine, one run for all its tables.
#
#   scripts/results.sh PAPER [FOLDER] [OUT]
#
# PAPER is yang, luo, almouhamed, gupta, obstacle or trisolve: its script is run with FOLDER (which holds `bilu-bench`;
# without it, or with `-`, it is built) and OUT (results/PAPER/<GPU> unless given). The tree has to be clean and OUT
# without records, so that all rows are of one revision: BILU_BENCH_CONTINUE=1 lets a run that was stopped go on.
# OUT/machine.txt holds revision, GPU (name, UUID, clocks, driver), processor, load of the host before and after, and
# the seconds that it took. Then scripts/results-status.py writes results/STATUS.md.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
case "${1:-}" in
-h | --help)
    sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
yang) script=gpu-results.sh ;;
luo | almouhamed | gupta | obstacle | trisolve) script="$1-results.sh" ;;
*)
    echo "results: no paper \`${1:-}\`; known: yang, luo, almouhamed, gupta, obstacle, trisolve" >&2
    exit 2
    ;;
esac
paper=$1
shift
source "$here/programs.sh"
results_arguments "$@"
cd "$here/.."
changed="$(git status --porcelain)"
if [ -n "$changed" ] && [ "${BILU_BENCH_CONTINUE:-}" != 1 ]; then
    printf 'results: the tree is not clean; commit or remove\n%s\n' "$changed" >&2
    exit 2
fi
start_program
find_gpu
out="${out:-$(results_folder "$paper")}"
if [ "${BILU_BENCH_CONTINUE:-}" != 1 ] && compgen -G "$out/*.csv" >/dev/null; then
    echo "results: $out holds records; remove them (git rm), or set BILU_BENCH_CONTINUE=1" >&2
    exit 2
fi
mkdir -p "$out"

# what of the machine decides times and changes from day to day
machine() {
    echo "$1: $(date -u +%Y-%m-%dT%H:%M:%SZ), load of the host $(cut -d' ' -f1-3 /proc/loadavg) on $(nproc --all) processors"
    nvidia-smi --format=csv,noheader --query-gpu=name,uuid,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit,temperature.gpu,utilization.gpu 2>/dev/null ||
        echo "nvidia-smi says nothing"
}
{
    # that of the program, which may have been built elsewhere
    revision="$("$bilu" --version | sed -n 's/^bilu-bench .*(\(.*\))$/\1/p')"
    echo "revision: ${revision:-$(git rev-parse --short=12 HEAD)}"
    sed -n 's/^model name[^:]*: */processor: /p' /proc/cpuinfo | sort -u
    machine before
} >>"$out/machine.txt" # a run that goes on adds its own
code=0
"$here/$script" "$scratch" "$out" || code=$?
{
    machine after
    echo "seconds: $SECONDS, exit code $code"
} >>"$out/machine.txt"
"$here/results-status.py"
exit "$code"
