#!/usr/bin/env bash
# This program, cuSPARSE and the peers on a GPU that are built (scripts/peers/build.sh): ILU(k) with GMRES(20) in all that
# have it (same.csv), and the best methods of each (best.csv).
#
#   scripts/peers-gpu-results.sh [FOLDER] [OUT]
#
# FOLDER holds `bilu-bench`; without it, or with `-`, it is built. OUT is results/peers/<GPU> unless given.
# BILU_BENCH_MATRICES names the folder of the matrices of configs/trisolve/real.toml; without it they are left out.
# BILU_BENCH_SYSTEMS (some of the systems), BILU_BENCH_PARTS (`same best`), BILU_BENCH_LIMIT (seconds for everything) and
# BILU_BENCH_CASE (seconds for a solve, 30) choose what is run. Records that OUT holds already are kept.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
source "$here/programs.sh"
results_arguments "$@"
results_limit
each="${BILU_BENCH_CASE:-30}"
start_results peers
cd "$here/.."
failed=0 stopped=

# cases FILE --matrix SYSTEMS FLAG...: records of these cases
cases() {
    local file=$1 left=$((limit - SECONDS)) code=0
    shift
    [ -n "$2" ] && [[ " ${BILU_BENCH_PARTS:-same best} " = *" $file "* ]] || return 0
    if [ "$left" -le 0 ]; then
        stopped+=" $file"
        return
    fi
    printf '\n==> %s: %s\n' "$file" "$*"
    timeout --foreground --kill-after=60 "$left" "$bilu" run "$@" --restart 20 --rtol 1e-6 --max-iterations 1000 --max-repetitions 5 \
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

real_systems
exact="cuda,cusparse$(with amgcl-cuda ginkgo-cuda)"
same=(--solver gmres --precond bilu)
# same RHS SYSTEMS: ILU(k) of points with GMRES in all that have it
same() {
    cases same --matrix "$2" --rhs "$1" "${same[@]}" --fill 0 --backend "$exact"
    cases same --matrix "$2" --rhs "$1" "${same[@]}" --fill 1 --backend cuda,cusparse
}
# blocks SIZE RHS SYSTEMS: of blocks, which the peers do not have
blocks() {
    cases same --matrix "$3" --rhs "$2" "${same[@]}" --fill 0,1 --block-size "$1" --backend cuda,cusparse
}
same ones "$(these poisson3d:64)"
same ones "$(these poisson3d:100)"
same ones "$(join "$symmetric" "$general")"
same own "$(join "$symmetric_own" "$general_own" "$large_own")"
reservoir=
if [ -n "${BILU_BENCH_MATRICES:-}" ]; then
    blocks 3 own "$(these spe9cp_b3 nornebox_b3 spe10m1_b3)"
    reservoir="$(these spe9cp_b3)"
fi

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
    best "$(these "$grid")" ones cg external:aggregation-jacobi --solver cg --precond chebyshev,amg,fsai
done
best "$reservoir" own gmres external:aggregation --solver gmres,bicgstab --precond cpr --block-size 3
if built amgx; then
    cases best --matrix "$reservoir" --rhs own --block-size 3 --solver gmres,bicgstab \
        --precond external:aggregation,external:dilu --backend external:amgx
    blocks=(--matrix "$(these poisson3d:64)" --block-size 4 --solver gmres)
    cases best "${blocks[@]}" --precond external:ilu0,external:ilu1 --backend external:amgx
    cases best "${blocks[@]}" --precond bilu --backend cuda
fi
finish_results
