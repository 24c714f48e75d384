#!/usr/bin/env bash
# How often `compare` calls unchanged code slower or faster: runs one sweep several times, compares every pair
# of runs and counts the verdicts that are neither `same` nor `unclear`; first as the machine is, then beside
# one busy process. Needs an otherwise quiet machine to say something.
#
# usage: scripts/false-verdicts.sh MATRIX OUT [FLAGS OF RUN]
#   MATRIX  a system with a right-hand side and blocks of 3, such as spe9cp_b3.mtx.gz
#   OUT     folder for the result files; those that are complete are kept
# BILU_BENCH names the program (target/release/bilu-bench), RUNS the runs (6), ROUNDS the rounds of each (5),
# PARTS what is done ("quiet busy"). Ends with 1 above 1 of 180 quiet, 4 of 180 busy.
set -euo pipefail

matrix=${1:?usage: $0 MATRIX OUT [FLAGS]} out=${2:?usage: $0 MATRIX OUT [FLAGS]}
shift 2
bilu=${BILU_BENCH:-target/release/bilu-bench}
runs=${RUNS:-6} rounds=${ROUNDS:-5}
mkdir -p "$out"
busy=
trap 'if [ -n "$busy" ]; then kill "$busy" 2>/dev/null || true; fi' EXIT

# the runs of a part, and the number of wrong verdicts among all
count() {
    local part=$1 i j wrong=0 all=0 found code=0
    for i in $(seq "$runs"); do
        # a case that does not converge is no verdict
        "$bilu" run --matrix "$matrix" --rhs own --block-size 1,3 --fill 0..2 --solver gmres,bicgstab \
            --rounds "$rounds" --quiet --format csv -o "$out/$part-$i.csv" --resume "${flags[@]}" \
            >"$out/$part-$i.shown" || [ $? = 1 ]
    done
    : >"$out/$part-verdicts.csv"
    for i in $(seq "$runs"); do
        for j in $(seq $((i + 1)) "$runs"); do
            "$bilu" compare "$out/$part-$i.csv" "$out/$part-$j.csv" --format csv >"$out/pair.csv"
            # the verdict is the last column
            found=$(tail -n +2 "$out/pair.csv" | awk -F, '{print $NF}' | tr -d '\r')
            all=$((all + $(wc -l <<<"$found")))
            wrong=$((wrong + $(grep -cvxE 'same|unclear|failed' <<<"$found" || true)))
            sed "s/^/$i,$j,/" "$out/pair.csv" >>"$out/$part-verdicts.csv"
        done
    done
    echo "$part: $wrong of $all verdicts are wrong; $(cut -d, -f1,2 --complement "$out/$part-verdicts.csv" |
        awk -F, '{sub(/\r$/, ""); n[$NF]++} END {for (v in n) if (v != "verdict") printf "%s %d, ", v, n[v]}')"
    # the bar is per 180
    [ $((180 * wrong)) -le $(($2 * all)) ] || code=1
    return $code
}

flags=("$@") failed=0
for part in ${PARTS:-quiet busy}; do
    if [ "$part" = busy ]; then
        sh -c 'while :; do :; done' &
        busy=$!
        count busy 4 || failed=1
        kill "$busy" && busy=
    else
        count quiet 1 || failed=1
    fi
done
exit $failed
