#!/usr/bin/env bash
# Everything that can only be checked where there is a GPU: what `doctor` finds, the kernels against
# the CPU, the same under compute-sanitizer, spills, too little memory, and a short benchmark. Ends
# with a line PASS, FAIL or SKIP per step, with the sanitizer's own summary; the exit code is 1 when
# a step failed.
#
#   scripts/gpu-check.sh [--quick] [--steps LIST] [--parts LIST] [--within SECONDS] [FOLDER]
#
# FOLDER holds `bilu-bench` and the test programs `parity`, `device_setup`, `cusparse` and `run_mpi_cuda`, as
# far as the steps need them; without it they are built.
# --quick           leaves out the long comparisons and the benchmark.
# --steps LIST      only these, separated by commas, in their order: doctor, self-test, parity,
#                   device-setup, cusparse, memcheck, memcheck-cusparse, racecheck, spills, memory, cache,
#                   benchmark; and synccheck, which does not understand all of the barriers, and
#                   ranks, which needs Open MPI, and programs with the feature `mpi`.
# --parts LIST      of the self-test, for the steps of compute-sanitizer: some of products, executions,
#                   preconditioners, stencils, pencils, triangles; by default all that the tool understands.
# --within SECONDS  for all steps together: a step that comes too late fails.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"

all=(doctor self-test parity device-setup cusparse memcheck memcheck-cusparse racecheck spills memory cache benchmark)
# it takes barriers for divergent that warps reach from different places, or while others wait at another one
# not every machine has MPI
on_request=(synccheck ranks)
# of `doctor --self-test`
all_parts=(products executions preconditioners stencils pencils triangles)

usage() {
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$here/${0##*/}"
}

refuse() {
    echo "gpu-check: $*" >&2
    usage >&2
    exit 2
}

quick=no
folder=
steps=()
parts=()
within=
while [ "$#" -gt 0 ]; do
    case "$1" in
    --quick) quick=yes ;;
    --steps | --parts | --within)
        [ "$#" -ge 2 ] || refuse "\`$1\` needs a value"
        case "$1" in
        --steps) IFS=, read -r -a steps <<<"$2" ;;
        --parts) IFS=, read -r -a parts <<<"$2" ;;
        --within)
            [[ "$2" =~ ^[1-9][0-9]{0,5}$ ]] || refuse "\`$2\` is no number of seconds"
            within=$2
            ;;
        esac
        shift
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    -*) refuse "unknown option \`$1\`" ;;
    *)
        [ -z "$folder" ] || refuse "more than one folder"
        folder=$1
        ;;
    esac
    shift
done
if [ "${#steps[@]}" = 0 ]; then
    for name in "${all[@]}"; do
        [[ "$quick" = yes && "$name" =~ ^(parity|device-setup|benchmark)$ ]] || steps+=("$name")
    done
fi
for part in ${parts[@]+"${parts[@]}"}; do
    [[ " ${all_parts[*]} " = *" $part "* ]] || refuse "unknown part \`$part\`"
done
needed=(bilu-bench)
features=()
for name in "${steps[@]}"; do
    [[ " ${all[*]} ${on_request[*]} " = *" $name "* ]] || refuse "unknown step \`$name\`"
    [[ ! "$name" =~ ^(parity|device-setup|cusparse)$ ]] || needed+=("${name//-/_}")
    [ "$name" != ranks ] || { needed+=(run_mpi_cuda) && features=(--features mpi); }
done

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
source "$here/programs.sh"
programs "$folder" "$scratch" "${needed[@]}"
bilu="$scratch/bilu-bench"
cd "$here/.."

export BILU_BENCH_REQUIRE_GPU=1 NO_COLOR=1
# a stable input: what failed can be run again
seed="${BILU_BENCH_SEED:-$((RANDOM * 32768 + RANDOM))}"
export BILU_BENCH_SEED="$seed"

summary=()
failed=0
# building does not count
SECONDS=0

# step NAME SECONDS COMMAND...: runs it, notes whether it passed, and leaves what it wrote in `log`
step() {
    local name=$1 limit=$2 start=$SECONDS code=0
    shift 2
    log="$scratch/$name.log"
    if [ -n "$within" ] && [ "$limit" -gt "$((within - SECONDS))" ]; then
        limit=$((within - SECONDS))
    fi
    if [ "$limit" -le 0 ]; then
        fail "$name" "no time left"
        return
    fi
    printf '\n==> %s: %s\n' "$name" "$*"
    # of the two only `timeout` fails
    timeout --kill-after=10 "$limit" "$@" </dev/null 2>&1 | tee "$log" || code=$?
    case "$code" in
    0) summary+=("PASS  $name ($((SECONDS - start)) s)") ;;
    124 | 137) fail "$name" "stopped after $limit s" ;;
    *) fail "$name" "exit code $code" ;;
    esac
}

fail() {
    summary+=("FAIL  $1 ($2)")
    failed=1
}

# what `doctor` finds; a GPU must be among it
doctor() {
    local found
    found="$("$bilu" doctor)" || return
    printf '%s\n' "$found"
    grep -q '^ *device 0 ' <<<"$found" || {
        echo "no GPU found" >&2
        return 1
    }
}

# the spills that `kernels --json` reports; none passes
no_spills() {
    local report spilling
    report="$("$bilu" kernels --json)" || return
    spilling="$(awk -F'"' '$2 == "kernel" { kernel = $4 }
        $2 ~ /^spill_(stores|loads)$/ && $3 !~ /^: 0,/ { print kernel ": " $2 $3 }' <<<"$report")"
    if [ -n "$spilling" ]; then
        printf 'kernels spill registers:\n%s\n' "$spilling" >&2
        return 1
    fi
    echo "no kernel spills registers"
}

# with less and less memory: records of cases that ran out of it, never failures
memory() {
    local limit backend results statuses="" code=0
    for limit in 256 64 32 16 8 4 1; do
        results="$scratch/memory-$limit.csv"
        BILU_BENCH_GPU_MEMORY=$limit "$bilu" run --matrix poisson3d:48 --block-size 1,4 --fill 1 \
            --backend cuda,cusparse --max-repetitions 1 --output "$results" || [ $? = 1 ] || code=1
        for backend in cuda cusparse; do
            statuses="$(grep ",$backend," "$results" | grep -oE ',(out-of-memory|converged|failed|unsupported),' || true)"
            if [ "$(grep -cE 'out-of-memory|converged' <<<"$statuses")" != 2 ]; then
                echo "with $limit MiB, $backend:" $statuses >&2
                code=1
            fi
        done
    done
    grep -q ',converged,' "$scratch/memory-256.csv" && ! grep -q ',converged,' "$scratch/memory-1.csv" ||
        code=1
    return "$code"
}

# a folder that nobody can write, and compiled kernels that are damaged: the program goes on without
cache() {
    local folder="$scratch/cache" code=0 said
    system() {
        BILU_BENCH_CACHE=$1 "$bilu" run --matrix poisson3d:20 --backend cuda --max-repetitions 1 2>&1
    }
    said="$(system /proc/none)" || code=1
    grep -q 'note: compiled kernels' <<<"$said" || code=1
    system "$folder" >/dev/null || code=1
    find "$folder/cubins" -type f -exec truncate -s 100 {} +
    said="$said
$(system "$folder")" || code=1
    printf '%s\n' "$said"
    return "$code"
}

benchmark() {
    local results="$scratch/benchmark.csv" code=0
    "$bilu" run --matrix poisson3d:64 --block-size 1,4 --fill 0,1 --backend cpu,cuda,cusparse \
        --max-repetitions 3 --time-budget 1 --output "$results" || code=$?
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
export -f doctor no_spills memory cache benchmark
export bilu scratch

sanitizer="$(command -v compute-sanitizer || true)"
for toolkit in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
    if [ -z "$sanitizer" ] && [ -n "$toolkit" ] && [ -x "$toolkit/bin/compute-sanitizer" ]; then
        sanitizer="$toolkit/bin/compute-sanitizer"
    fi
done

# sanitized NAME TOOL ARGUMENT...: the quick self-test under a tool of compute-sanitizer, each part a step
sanitized() {
    local name=$1 tool=$2 part
    shift 2
    if [ -z "$sanitizer" ]; then
        summary+=("SKIP  $name (no compute-sanitizer; it comes with the CUDA toolkit)")
        return
    fi
    local of=(${parts[@]+"${parts[@]}"})
    if [ "${#of[@]}" = 0 ]; then
        of=("${all_parts[@]}")
        [ "$tool" != racecheck ] || of=("${without_waits_parts[@]}")
    fi
    for part in "${of[@]}"; do
        sanitized_part "$name-$part" "$tool" --only "$part" "$@"
    done
}

sanitized_part() {
    local name=$1 tool=$2 count=${#summary[@]} line
    shift 2
    step "$name" 400 "$sanitizer" --tool "$tool" --error-exitcode 9 --print-limit 20 \
        "$bilu" doctor --self-test --quick --seed "$seed" "$@"
    # `ERROR SUMMARY: 0 errors`, `RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)`
    line="$(grep -h -o '[A-Z]* SUMMARY: .*' "$log" 2>/dev/null | tail -n 1 || true)"
    if [ -n "$line" ]; then
        summary+=("      $line")
    elif [[ "${summary[count]}" = PASS* ]]; then
        unset "summary[count]"
        fail "$name" "compute-sanitizer gave no summary"
    fi
}

# cuSPARSE's kernels are not ours to check; racecheck knows barriers only, and values that are waited
# for in shared memory look like races to it
ours=(--backend cuda --trisolve syncfree,wavefront,pencils,partitioned,levels,pointwise)
without_waits=(--backend cuda --trisolve syncfree,wavefront,levels,pointwise)
# in the others solvers and preconditioners choose `partitioned` for themselves
without_waits_parts=(products stencils triangles)
for name in "${steps[@]}"; do
    case "$name" in
    doctor) step doctor 120 bash -c doctor ;;
    self-test)
        extent=()
        [ "$quick" = no ] || extent=(--quick)
        step self-test 600 "$bilu" doctor --self-test "${extent[@]}" --backend cuda --seed "$seed"
        ;;
    parity) step parity 600 "$scratch/parity" --test-threads 1 --nocapture ;;
    device-setup)
        # phases that the host makes by default
        # the other test of it is for machines without a GPU
        BILU_BENCH_SETUP=device step device-setup 600 "$scratch/device_setup" --exact a_device_makes_what_the_host_makes --nocapture
        ;;
    cusparse) step cusparse 600 "$scratch/cusparse" --test-threads 1 --nocapture ;;
    ranks)
        export BILU_BENCH_PROGRAM="$bilu"
        step ranks 900 "$scratch/run_mpi_cuda" --test-threads 1 --nocapture
        ;;
    memcheck) sanitized memcheck memcheck --backend cuda ;;
    memcheck-cusparse) sanitized memcheck-cusparse memcheck --backend cusparse ;;
    racecheck) sanitized racecheck racecheck "${without_waits[@]}" ;;
    synccheck)
        # it takes a barrier that is reached from several places for divergence (kernels/common.cuh)
        BILU_BENCH_NVRTC_OPTIONS=-DONE_BARRIER=1 sanitized synccheck synccheck "${ours[@]}"
        ;;
    spills) step spills 300 bash -c no_spills ;;
    memory) step memory 300 bash -c memory ;;
    cache) step cache 120 bash -c cache ;;
    benchmark) step benchmark 300 bash -c benchmark ;;
    esac
done

printf '\n'
printf '%s\n' "seed $seed" "${summary[@]}"
if [ "$failed" = 1 ]; then
    echo "FAIL"
    exit 1
fi
echo "PASS"
