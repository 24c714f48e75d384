#!/usr/bin/env bash
# Everything that can only be checked where there is a GPU: what `doctor` finds, the kernels against
# the CPU, the same under compute-sanitizer, spills, and a short benchmark. Ends with a line PASS or
# FAIL per step; the exit code is 1 when a step failed.
#
#   scripts/gpu-check.sh [--quick] [FOLDER]
#
# FOLDER holds `bilu-bench` and the test programs `parity` and `cusparse`; without it they are built.
# --quick leaves out the long comparisons and the benchmark.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"

usage() {
    sed -n '2,/^set /s/^# \{0,1\}//p' "$here/${0##*/}"
}

quick=no
folder=
for argument in "$@"; do
    case "$argument" in
    --quick) quick=yes ;;
    -h | --help)
        usage
        exit 0
        ;;
    -*)
        echo "gpu-check: unknown option \`$argument\`" >&2
        usage >&2
        exit 2
        ;;
    *)
        [ -z "$folder" ] || {
            echo "gpu-check: more than one folder" >&2
            exit 2
        }
        folder=$argument
        ;;
    esac
done

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
source "$here/programs.sh"
programs "$folder" "$scratch" bilu-bench parity cusparse
bilu="$scratch/bilu-bench"
cd "$here/.."

export BILU_BENCH_REQUIRE_GPU=1 NO_COLOR=1
# a stable input: what failed can be run again
seed="${BILU_BENCH_SEED:-$((RANDOM * 32768 + RANDOM))}"
export BILU_BENCH_SEED="$seed"

summary=()
failed=0

# step NAME SECONDS COMMAND...: runs it and notes whether it passed
step() {
    local name=$1 limit=$2 start=$SECONDS code=0
    shift 2
    printf '\n==> %s: %s\n' "$name" "$*"
    timeout --kill-after=30 "$limit" "$@" </dev/null || code=$?
    local why="exit code $code"
    [ "$code" != 124 ] || why="stopped after $limit s"
    if [ "$code" = 0 ]; then
        summary+=("PASS  $name ($((SECONDS - start)) s)")
    else
        summary+=("FAIL  $name ($why)")
        failed=1
    fi
}

skip() {
    printf '\n==> %s: %s\n' "$1" "$2"
    summary+=("SKIP  $1 ($2)")
}

# the spills that `kernels --json` reports; none passes
no_spills() {
    local report
    report="$("$bilu" kernels --json)" || return 1
    if grep -E '"spill_(stores|loads)": *[1-9]' <<<"$report"; then
        echo "kernels spill registers:" >&2
        "$bilu" kernels >&2
        return 1
    fi
    echo "no kernel spills registers"
}

benchmark() {
    local results="$scratch/benchmark.csv" code=0
    "$bilu" run --matrix poisson3d:64 --block-size 1,4 --fill 0,1 --backend cpu,cuda,cusparse \
        --output "$results" || code=$?
    # a backend that is left out makes no record
    for backend in cpu cuda cusparse; do
        grep -q ",$backend," "$results" || {
            echo "no record of $backend" >&2
            code=1
        }
    done
    return "$code"
}

# what `timeout` runs must be a program
export -f no_spills benchmark
export bilu scratch

step doctor 120 "$bilu" doctor
if [ "$quick" = no ]; then
    step self-test 900 "$bilu" doctor --self-test --backend cuda --seed "$seed"
    step parity 1200 "$scratch/parity" --test-threads 1 --nocapture
else
    step self-test 300 "$bilu" doctor --self-test --quick --backend cuda --seed "$seed"
fi
step cusparse 900 "$scratch/cusparse" --test-threads 1 --nocapture

sanitizer="$(command -v compute-sanitizer || true)"
for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
    if [ -z "$sanitizer" ] && [ -n "$folder" ] && [ -x "$folder/bin/compute-sanitizer" ]; then
        sanitizer="$folder/bin/compute-sanitizer"
    fi
done
for tool in memcheck racecheck synccheck; do
    # racecheck knows barriers only: values that are waited for in shared memory look like races
    without=()
    [ "$tool" != racecheck ] || without=(--kernel-name-exclude kernel_substring=partitioned)
    if [ -n "$sanitizer" ]; then
        step "$tool" 600 "$sanitizer" --tool "$tool" "${without[@]}" --error-exitcode 9 \
            "$bilu" doctor --self-test --quick --backend cuda --seed "$seed"
    else
        skip "$tool" "no compute-sanitizer; it comes with the CUDA toolkit"
    fi
done

step spills 600 bash -c no_spills
[ "$quick" = yes ] || step benchmark 900 bash -c benchmark

printf '\n'
printf '%s\n' "seed $seed" "${summary[@]}"
if [ "$failed" = 1 ]; then
    echo "FAIL"
    exit 1
fi
echo "PASS"
