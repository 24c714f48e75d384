#!/usr/bin/env bash
# Runs the tables and figures of Luo et al. 2015 (configs/luo) on this machine's GPU and CPU, and writes
# what is kept in the repository: per table the records as CSV and the comparison with the
# published numbers as Markdown, the figures as SVG and PNG, and what `doctor` says of the machine.
#
#   scripts/luo-results.sh [FOLDER] [OUT]
#
# FOLDER holds `bilu-bench`; without it, or with `-`, it is built. OUT is results/luo/<GPU> unless
# given. BILU_BENCH_TABLES (`table3 figure9 figure10 table1`) chooses what is run; Table 4 is made of the
# records of Table 3. With BILU_BENCH_CPUS, processors as `taskset --cpu-list` takes them, the CPU runs
# on these alone: what is compared with the GPU first and by itself, the long rest (Figure 10, Table 1)
# beside the GPU, whose host threads get the other processors. Without it everything runs in turn on
# all processors. Records that OUT holds already are kept: a run that was stopped goes on.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
source "$here/programs.sh"
results_arguments "$@"
tables="${BILU_BENCH_TABLES:-table3 figure9 figure10 table1}"
for name in $tables; do
    [[ " table3 figure9 figure10 table1 " = *" $name "* ]] || {
        echo "luo-results: unknown table \`$name\`; known: table3, figure9, figure10, table1" >&2
        exit 2
    }
done

# processors LIST: one per line, of a list such as 0-3,8
processors() {
    tr , '\n' <<<"$1" | while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done
}

on_cpu=() on_others=()
if [ -n "${BILU_BENCH_CPUS:-}" ]; then
    [[ "$BILU_BENCH_CPUS" =~ ^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$ ]] || {
        echo "luo-results: BILU_BENCH_CPUS=$BILU_BENCH_CPUS is no list of processors" >&2
        exit 2
    }
    others="$(processors "0-$(($(nproc --all) - 1))" |
        grep -vxFf <(processors "$BILU_BENCH_CPUS") | paste -sd, || true)"
    [ -n "$others" ] || {
        echo "luo-results: BILU_BENCH_CPUS leaves no processor for the GPU's host threads" >&2
        exit 2
    }
    on_cpu=(taskset --cpu-list "$BILU_BENCH_CPUS")
    on_others=(taskset --cpu-list "$others")
fi
start_results luo

# six samples of every time that stands beside another
cpu_flags=(--backend cpu,cpu-mt --max-repetitions 6 --time-budget 60)
gpu_flags=(--backend cuda --max-repetitions 6 --time-budget 2)
failed=0

# records NAME FOLDER FLAG...: adds the records of a table to FOLDER
records() {
    local name=$1 folder=$2 code=0 start=$SECONDS
    shift 2
    "${program[@]}" reproduce "luo/$name" --quiet --resume --output "$folder/" "$@" >/dev/null ||
        code=$?
    echo "luo/$name ${*:1:2}: $((SECONDS - start)) s"
    # 1 is a case that did not succeed, which is a result
    [ "$code" -le 1 ]
}

# those of `tables` among these, in their order
chosen() {
    local name
    for name in "$@"; do
        [[ " $tables " != *" $name "* ]] || echo "$name"
    done
}

program=("${on_cpu[@]}" "$bilu")
for name in $(chosen table3 figure9); do
    records "$name" "$out" "${cpu_flags[@]}" || failed=1
done

long="$(chosen figure10 table1)"
beside=
if [ -n "$long" ] && [ "${#on_cpu[@]}" -gt 0 ]; then
    # two programs must not write one file
    mkdir "$scratch/cpu"
    for name in $long; do
        [ ! -s "$out/$name.csv" ] || cp "$out/$name.csv" "$scratch/cpu/"
    done
    {
        code=0
        for name in $long; do
            records "$name" "$scratch/cpu" "${cpu_flags[@]}" || code=1
        done
        exit "$code"
    } &
    beside=$!
    program=("${on_others[@]}" "$bilu")
fi
for name in $(chosen table3 figure9 figure10 table1); do
    records "$name" "$out" "${gpu_flags[@]}" || failed=1
done
if [ -n "$beside" ]; then
    wait "$beside" || failed=1
fi
program=("${on_cpu[@]}" "$bilu")
for name in $long; do
    # files that are resumed together get each other's records
    [ ! -s "$scratch/cpu/$name.csv" ] ||
        "$bilu" reproduce "luo/$name" "${cpu_flags[@]}" --quiet --resume --output "$out/$name.csv" \
            --output "$scratch/cpu/$name.csv" >/dev/null || [ $? = 1 ]
    records "$name" "$out" "${cpu_flags[@]}" || failed=1
done

# everything is there: tables and figures of all records
for name in $(chosen table3 figure9 figure10 table1); do
    "$bilu" reproduce "luo/$name" --quiet --resume --output "$out/" --format markdown || [ $? = 1 ] ||
        failed=1
done
if [ -s "$out/table3.csv" ]; then
    "$bilu" reproduce luo/table4 --quiet --resume --output "$out/table3.csv" --format markdown \
        >"$out/table4.md" || [ $? = 1 ] || failed=1
fi
printf '\nresults in %s after %s s\n' "$out" "$SECONDS"
exit "$failed"
