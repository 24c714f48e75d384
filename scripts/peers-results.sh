#!/usr/bin/env bash
# Other solvers beside this one, on one thread or on N: GMRES(20) with ILU(0..2) in every program that has it, then the best
# methods of each. Writes records as CSV, tables, the list of where others win, and performance profiles.
#
#   scripts/peers-results.sh [FOLDER] [OUT]
#
# FOLDER holds `bilu-bench`; without it, or with `-`, it is built. OUT is results/peers/<processor> unless given.
# BILU_BENCH_MATRICES names the folder of the matrices of configs/trisolve/real.toml; without it they are left out.
# BILU_BENCH_SYSTEMS (some of the systems), BILU_BENCH_PARTS (`same best`), BILU_BENCH_LIMIT (seconds for everything,
# 5400), BILU_BENCH_ROUNDS (rounds over the systems and programs of a part, 9; a third of them from poisson3d:64 on) and
# BILU_BENCH_CASE (seconds for a solve, 20, three times that where there are a million unknowns) choose what is run.
# Tables have the best round of each case, since hosts that others use change their speed.
# BILU_BENCH_PYTHON is the Python of the peers; peers that do not run here are left out. BILU_BENCH_THREADS=N is for N
# threads or ranks; peers that have none stay on one; where the program has the feature `mpi`, it runs on N ranks with
# PETSc's division, too. Records that OUT holds already (NAME-rounds.csv, not for the repository) are kept: a run that
# was stopped goes on where it was.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
source "$here/programs.sh"
results_arguments "$@"
BILU_BENCH_LIMIT="${BILU_BENCH_LIMIT:-5400}"
results_limit
each="${BILU_BENCH_CASE:-20}"
rounds="${BILU_BENCH_ROUNDS:-9}"
start_program
if [ -n "${BILU_BENCH_PYTHON:-}" ]; then
    # not a link: an environment finds itself by the folder of its Python
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$(command -v "$BILU_BENCH_PYTHON")" >"$scratch/python3"
    chmod +x "$scratch/python3"
    export PATH="$scratch:$PATH"
fi
cd "$here/.."
model="$(sed -n '/^model name/{p;q}' /proc/cpuinfo | tr '[:upper:]' '[:lower:]')"
processor="$(grep -oE -m1 'xeon|epyc|ryzen|core' <<<"$model" | head -n 1 || true)"
processor="${processor:-processor}"
threads="${BILU_BENCH_THREADS:-1}"
own=cpu
ranks=
out="${out:-results/peers/$processor-$(nproc)core$([ "$threads" = 1 ] || echo "/threads-$threads")}"
mkdir -p "$out"
if [ "$threads" != 1 ]; then
    own=cpu-mt
    ! "$bilu" list backends | grep -q '^ *mpi ' || ranks=mpi
    export RAYON_NUM_THREADS="$threads"
    # the peers as they are, but for their threads or ranks
    mkdir "$scratch/peers"
    ln -s "$PWD"/scripts/peers/{build,exchange.py,with_*.py} "$scratch/peers"
    for name in amgcl ginkgo; do
        sed "s/OMP_NUM_THREADS = \"1\"/OMP_NUM_THREADS = \"$threads\"/" "scripts/peers/$name.toml" >"$scratch/peers/$name.toml"
    done
    for name in petsc hypre; do
        sed "s/^command = \[/&\"mpirun\", \"--allow-run-as-root\", \"-n\", \"$threads\", /" "scripts/peers/$name.toml" >"$scratch/peers/$name.toml"
    done
    export BILU_BENCH_PEERS="$scratch/peers"
fi
doctor="$("$bilu" doctor)"
environment >"$out/environment.txt"
failed=0
stopped=

# running NAME...: those that run here, as a list of backends
running() {
    local name found=
    for name in "$@"; do
        if [ "$name" = "$own" ]; then
            found+=",$own"
        elif grep -qE "^ *$name  +[A-Za-z]" <<<"$peers" && ! grep -qE "^ *$name  +not usable" <<<"$peers"; then
            found+=",external:$name"
        fi
    done
    echo "${found#,}"
}
peers="$(sed -n '/^peers$/,/^$/p' <<<"$doctor")"

# cases FILE SYSTEMS BACKENDS FLAG...: records of these cases
cases() {
    local file=$1 systems=$2 backends=$3 left=$((limit - SECONDS)) code=0 longest=$each times=$rounds
    shift 3
    [ -n "$systems" ] && [ -n "$backends" ] || return 0
    [[ " ${BILU_BENCH_PARTS:-same best} " = *" $file "* ]] || return 0
    if [ "$left" -le 0 ]; then
        stopped+=" $file of $systems"
        return 0
    fi
    [[ "$systems" != *:100 ]] || longest=$((3 * each))
    # solves of seconds: they see what the machine does by themselves
    [[ "$systems" != @(*:64|*:100|*nornebox*) ]] || times=$(((rounds + 2) / 3))
    printf '\n==> %s: %s, %s %s (%s s)\n' "$file" "$systems" "$backends" "$*" "$SECONDS"
    local program=("$bilu")
    [ "$backends" != mpi ] || program=(mpirun --allow-run-as-root -n "$threads" "$bilu")
    timeout --foreground --kill-after=30 "$left" "${program[@]}" run --matrix "$systems" --backend "$backends" "$@" --restart 20 --rtol 1e-6 \
        --max-iterations 1000 --max-repetitions 100 --time-budget 1 --rounds "$times" --time-limit "$longest" --resume \
        -o "$out/$file-rounds.csv" --quiet >"$scratch/shown" || code=$?
    ended "$code" "$file of $systems" "$file of $systems"
}

real_systems
medium="$(these poisson3d:64)"
large="$(these poisson3d:100)"

everyone=("$own" petsc hypre dune amgcl trilinos rocalution)
# the symbolic phase of dune's ILU(2) takes minutes on large systems
most=("$own" petsc hypre amgcl trilinos rocalution)
same() {
    cases same "$1" "$(running "${everyone[@]}")" --solver gmres --precond bilu --rhs "$2" --fill 0..2
    cases same "$1" "$ranks" --solver gmres --precond bilu --rhs "$2" --fill 0..2
    cases same "$1" "$(running ginkgo)" --solver gmres --precond bilu --rhs "$2" --fill 0
}
same_large() {
    cases same "$1" "$(running "${everyone[@]}")" --solver gmres --precond bilu --rhs "$2" --fill 0..1
    cases same "$1" "$ranks" --solver gmres --precond bilu --rhs "$2" --fill 0..2
    cases same "$1" "$(running ginkgo)" --solver gmres --precond bilu --rhs "$2" --fill 0
    cases same "$1" "$(running "${most[@]}")" --solver gmres --precond bilu --rhs "$2" --fill 2
}
# best SYSTEMS RHS SOLVER: other methods of each program for symmetric systems (cg) or others
best() {
    local systems=$1 rhs=$2 solver=$3
    cases best "$systems" "$(running "$own" petsc)" --solver bicgstab --precond bilu --rhs "$rhs" --fill 0..2
    [ "$solver" != cg ] ||
        cases best "$systems" "$(running "$own" petsc)" --solver cg --precond bilu --rhs "$rhs" --fill 0..2
    cases best "$systems" "$own" --solver "$solver" --precond amg --rhs "$rhs"
    cases best "$systems" "$(running hypre)" --solver "$solver" --precond external:boomeramg --rhs "$rhs"
    cases best "$systems" "$(running petsc)" --solver "$solver" --precond external:gamg --rhs "$rhs"
    cases best "$systems" "$(running amgcl)" --solver "$solver" --precond external:amg --rhs "$rhs"
    cases best "$systems" "$(running pyamg)" --solver "${solver/gmres/bicgstab}" --precond external:sa,external:rs --rhs "$rhs"
}
# direct SYSTEMS RHS PEER...: solves with exact factors
direct() {
    local systems=$1 rhs=$2 peer
    shift 2
    for peer in "$@"; do
        case "$peer" in
        mumps) cases best "$systems" "$(running petsc)" --solver external:preonly --precond external:mumps --rhs "$rhs" ;;
        splu) cases best "$systems" "$(running scipy)" --solver external:splu --precond none --rhs "$rhs" ;;
        *) cases best "$systems" "$(running suitesparse)" --solver "external:$peer" --precond none --rhs "$rhs" ;;
        esac
    done
}
# blocks SIZE SYSTEMS RHS: ILU(k) of blocks, alone and behind a pressure correction
blocks() {
    cases best "$2" "$(running "$own" petsc dune)" --solver gmres,bicgstab --precond bilu --rhs "$3" --fill 0..2 --block-size "$1"
    cases best "$2" "$own" --solver gmres,bicgstab --precond cpr --rhs "$3" --fill 0..1 --block-size "$1"
    ordered "$2" "$3" --block-size "$1"
}

# ordered SYSTEMS RHS [FLAG...]: ILU(k) after reverse Cuthill-McKee, nearly or entirely exact for small systems; the ordering
# is of this program and counts for both
ordered() {
    local systems=$1 rhs=$2
    shift 2
    cases best "$systems" "$(running "$own" petsc)" --solver gmres --precond bilu --ordering rcm --rhs "$rhs" --fill 1,3 "$@"
}

same "$(join "$symmetric" "$general")" ones
same "$(join "$symmetric_own" "$general_own")" own
same_large "$medium" ones
best "$symmetric" ones cg
best "$symmetric_own" own cg
best "$general" ones gmres
best "$general_own" own gmres
ordered "$(join "$symmetric" "$general")" ones
ordered "$(join "$symmetric_own" "$general_own")" own
direct "$(join "$symmetric" "$general")" ones mumps splu umfpack
direct "$(join "$symmetric_own" "$general_own")" own mumps splu umfpack
direct "$symmetric" ones cholmod
direct "$symmetric_own" own cholmod
if [ -n "${BILU_BENCH_MATRICES:-}" ]; then
    blocks 3 "$(these pyamg_bar_b3 hypre_beam_hex459_b3 bcsstk16 spe1_b3)" ones
    blocks 3 "$(these hypre_beam_tet2475_b3 spe10m1_b3 spe9cp_t0_b3 spe9cp_b3)" own
    blocks 4 "$(these steam2 spe5_b4)" ones
    blocks 4 "$(these spe1_thermal_b4)" own
    blocks 2 "$(these spe1_2p_b2)" ones
fi
best "$medium" ones cg
# exact factors of larger grids and of these by SuperLU or UMFPACK do not fit into memory
direct "$medium" ones mumps cholmod
same_large "$large" ones
best "$large" ones cg
same_large "$large_own" own
best "$large_own" own gmres
blocks 3 "$large_own" own
direct "$large_own" own umfpack mumps

"$here/peers-tables.py" "$out" "$scratch" || failed=1
for name in same best; do
    [ -s "$scratch/$name.csv" ] || continue
    # the first of the figures compares the programs
    "$bilu" plot --kind profile "$scratch/$name.csv" -o "$scratch/$name.svg" --force || continue
    for figure in "$scratch/$name.svg" "$scratch/$name-1.svg"; do
        [ ! -s "$figure" ] || cp "$figure" "$out/$name.svg"
    done
done
finish_results
