#!/usr/bin/env bash
# Strong and weak scaling over ranks and iterations by subdomains (configs/scaling) on this machine's processors:
# the records as CSV, a file for each number of ranks, and figures of them.
#
#   scripts/scaling-results.sh [FOLDER] [OUT]
#
# FOLDER holds `bilu-bench` with the feature `mpi`; without it, or with `-`, it is built. OUT is results/scaling
# unless given. BILU_BENCH_RANKS (`1 2 4 8 16`, as far as there are cores), BILU_BENCH_EXPERIMENTS (`strong weak
# subdomains` and, where BILU_BENCH_MATRICES names the folder of the matrices, `reservoirs`), BILU_BENCH_FLAGS
# (further flags of `reproduce`) and BILU_BENCH_LIMIT (seconds for everything, 14400) choose what is run. Records that
# OUT holds already are kept: a run that was stopped goes on where it was.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
source "$here/programs.sh"
results_arguments "$@"
results_limit
if [ -z "$folder" ]; then
    (cd "$here/.." && cargo build --release --locked --features mpi)
    folder="${CARGO_TARGET_DIR:-$here/../target}/release"
fi
start_program
out="${out:-$here/../results/scaling}"
mkdir -p "$out"
doctor="$("$bilu" doctor)"
environment >"$out/environment.txt"
cores="$(nproc)"
read -r -a flags <<<"${BILU_BENCH_FLAGS:-}"
failed=0
stopped=

# experiment NAME RANKS FLAG...: one file of records
experiment() {
    local name=$1 ranks=$2 left=$((limit - SECONDS)) code=0
    shift 2
    if [ "$left" -le 0 ]; then
        stopped+=" $name-$ranks"
        return
    fi
    printf '\n==> scaling/%s on %s\n' "$name" "$ranks"
    timeout --foreground --kill-after=60 "$left" mpirun --allow-run-as-root --bind-to core -n "$ranks" \
        "$bilu" reproduce "scaling/$name" "$@" "${flags[@]}" --resume --quiet --output "$out/$name-$ranks.csv" || code=$?
    ended "$code" "$name-$ranks" "scaling/$name on $ranks"
}

# as many points on each rank, in a box as near to a cube as powers of two allow
grid() {
    local edge=(80 80 80) axis=2 ranks=$1
    while [ "$ranks" -gt 1 ]; do
        edge[axis]=$((2 * edge[axis]))
        axis=$(((axis + 2) % 3))
        ranks=$((ranks / 2))
    done
    echo "poisson3d:${edge[0]}x${edge[1]}x${edge[2]}"
}

names="${BILU_BENCH_EXPERIMENTS:-strong weak subdomains${BILU_BENCH_MATRICES:+ reservoirs}}"
for name in $names; do
    if [ "$name" = subdomains ]; then
        experiment subdomains 1
        continue
    fi
    for ranks in ${BILU_BENCH_RANKS:-1 2 4 8 16}; do
        [ "$ranks" -le "$cores" ] || continue
        more=()
        [ "$name" != weak ] || more=(--matrix "$(grid "$ranks")")
        experiment "$name" "$ranks" "${more[@]}"
    done
done
for kind in ranks subdomains; do
    files=("$out"/*.csv)
    [ "$kind" = ranks ] || files=("$out"/subdomains-1.csv)
    [ ! -s "${files[0]}" ] || "$bilu" plot --kind "$kind" "${files[@]}" -o "$out/$kind.svg" --force ||
        echo "no figure of $kind" >&2
done
finish_results
