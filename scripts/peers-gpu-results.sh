#!/usr/bin/env bash
# This program, cuSPARSE and the peers on a GPU that are built (scripts/peers/build.sh): ILU(k) with GMRES(20) in all that
# have it (same.csv), and the best methods of each (best.csv).
#
#   scripts/peers-gpu-results.sh [FOLDER] [OUT]
#
# FOLDER holds `bilu-bench`; without it, or with `-`, it is built. OUT is results/peers/<GPU> unless given.
# BILU_BENCH_MATRICES names the folder of spe9cp_b3; without it that is left out. BILU_BENCH_LIMIT is for everything, in
# seconds, BILU_BENCH_CASE for a solve (30). Records that OUT holds already are kept.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
source "$here/programs.sh"
results_arguments "$@"
results_limit
each="${BILU_BENCH_CASE:-30}"
start_results peers
cd "$here/.."
failed=0 stopped=

# cases FILE FLAG...: records of these cases
cases() {
    local file=$1 left=$((limit - SECONDS)) code=0
    shift
    if [ "$left" -le 0 ]; then
        stopped+=" $file"
        return
    fi
    printf '\n==> %s: %s\n' "$file" "$*"
    timeout --kill-after=60 "$left" "$bilu" run "$@" --restart 20 --rtol 1e-6 --max-iterations 1000 --max-repetitions 5 \
        --min-repetitions 1 --time-budget 1 --time-limit "$each" --case-limit $((2 * each)) --resume --quiet \
        --output "$out/$file.csv" || code=$?
    ended "$code" "$file" "$file"
}

# built PEER: whether it is there
built() {
    [ -x "scripts/peers/build/$1" ]
}

# with PEER...: those that are built, behind other backends
with() {
    local peer
    for peer in "$@"; do
        ! built "$peer" || printf ',external:%s' "$peer"
    done
}

reservoirs=()
[ -z "${BILU_BENCH_MATRICES:-}" ] || reservoirs=(spe9cp_b3)
exact="cuda,cusparse$(with amgcl-cuda ginkgo-cuda)"
same=(--solver gmres --precond bilu)
for grid in poisson3d:64 poisson3d:100; do
    cases same --matrix "$grid" --rhs ones "${same[@]}" --fill 0 --backend "$exact"
    cases same --matrix "$grid" --rhs ones "${same[@]}" --fill 1 --backend cuda,cusparse
done
for matrix in ${reservoirs[@]+"${reservoirs[@]}"}; do
    cases same --matrix "$matrix" --rhs own "${same[@]}" --fill 0 --backend "$exact"
    cases same --matrix "$matrix" --rhs own "${same[@]}" --fill 0 --block-size 3 --backend cuda,cusparse
done

# best MATRIX RHS SOLVER GRIDS OURS...: multigrid and direct methods of the peers, GRIDS being AmgX's aggregation, and ours
best() {
    local of=(--matrix "$1" --rhs "$2") solver=$3 grids=$4
    shift 4
    cases best "${of[@]}" --backend cuda "$@"
    ! built amgcl-cuda ||
        cases best "${of[@]}" --solver "$solver" --precond external:amg,external:amg-ilu0 --backend external:amgcl-cuda
    ! built amgx ||
        cases best "${of[@]}" --solver "$solver" --precond "external:classical,$grids,external:dilu" --backend external:amgx
    ! built cudss || cases best "${of[@]}" --solver external:cudss --precond none --backend external:cudss
    ! built ginkgo-cuda ||
        cases best "${of[@]}" --solver "$solver" --precond isai,external:parilu --backend external:ginkgo-cuda
}

for grid in poisson3d:64 poisson3d:100; do
    best "$grid" ones cg external:aggregation-jacobi --solver cg --precond chebyshev,amg,fsai
done
for matrix in ${reservoirs[@]+"${reservoirs[@]}"}; do
    best "$matrix" own gmres external:aggregation --solver gmres,bicgstab --precond cpr --block-size 3
    ! built amgx || cases best --matrix "$matrix" --rhs own --block-size 3 --solver gmres,bicgstab \
        --precond external:aggregation,external:dilu --backend external:amgx
done
if built amgx; then
    cases best --matrix poisson3d:64 --block-size 4 --solver gmres --precond external:ilu0,external:ilu1 --backend external:amgx
    cases best --matrix poisson3d:64 --block-size 4 --solver gmres --precond bilu --backend cuda
fi
finish_results
