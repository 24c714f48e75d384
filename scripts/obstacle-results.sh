#!/usr/bin/env bash
# Runs the experiments with the obstacle problem (configs/obstacle) on this machine and writes what is
# kept in the repository: per experiment the records as CSV and its tables, beside the published
# values, as Markdown, the scaling as SVG and PNG, and what `doctor` says of the machine.
#
#   scripts/obstacle-results.sh [FOLDER] [OUT]
#
# FOLDER holds `bilu-bench`; without it, or with `-`, it is built. OUT is results/obstacle/<GPU> unless
# given. BILU_BENCH_EXPERIMENTS (`sweeps table2 table2-fitted red-black weak-scaling table2-gpus
# gpu-ranks cores table1`) and BILU_BENCH_FLAGS (further flags of `obstacle`, such as `--m 256,512`) choose what is run;
# BILU_BENCH_LIMIT is the seconds for everything, 14400. With several GPUs the experiments of one are spread
# over them, a case on each. With `mpirun` and a program that has the feature `mpi`, `cores` runs ranks,
# too, and `gpu-ranks` those with a GPU each. Records that OUT holds already are kept: a run that was stopped goes on where it was.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
source "$here/programs.sh"
results_arguments "$@"
results_limit
known=" sweeps table2 table2-fitted red-black weak-scaling table2-gpus gpu-ranks cores table1 "
chosen="${BILU_BENCH_EXPERIMENTS:-${known:1:-1}}"
for name in $chosen; do
    [[ "$known" = *" $name "* ]] || {
        echo "obstacle-results: unknown experiment \`$name\`; known:$known" >&2
        exit 2
    }
done
start_results obstacle
gpus="$(grep -c '^ *device [0-9]' <<<"$doctor" || true)"
read -r -a flags <<<"${BILU_BENCH_FLAGS:-}"
failed=0
stopped=

# record NAME FILE FLAG...: adds the records of experiment NAME to FILE
record() {
    local name=$1 file=$2 left=$((limit - SECONDS)) code=0
    shift 2
    [ "$left" -gt 0 ] || return 124
    timeout --foreground --kill-after=60 "$left" "${launcher[@]}" "$bilu" obstacle "$name" "$@" --quiet --resume \
        --output "$file" >/dev/null || code=$?
    # 1 is a case that did not succeed, which is a result
    [ "$code" -eq 1 ] || return "$code"
}

# cases NAME: one line of flags for each case of an experiment that is worth a GPU of its own, the longest
# first; an empty line is all of it
cases() {
    local m
    case "$1" in
    table2)
        for m in 800 768; do
            echo "--m $m --mode sync --sweeps-per-pass 1 --check-every 1"
            echo "--m $m --mode async --sweeps-per-pass 1 --check-every 1"
            echo "--m $m --mode sync --sweeps-per-pass 4 --check-every 4"
        done
        echo "--m 256,512"
        ;;
    table2-fitted) printf -- '--m %s\n' 800 768 256,512 ;;
    *) echo ;;
    esac
}

# spread NAME...: runs experiments of one GPU on all, a line of `cases` on each at a time
spread() {
    local name line
    local -a running=()
    for name in "$@"; do
        while read -r line; do printf '%s\t%s\n' "$name" "$line"; done < <(cases "$name")
    done >"$scratch/cases"
    local gpu_number
    for ((gpu_number = 0; gpu_number < gpus; gpu_number++)); do
        (
            export CUDA_VISIBLE_DEVICES=$gpu_number
            code=0
            # whoever is free takes the next line
            while IFS=$'\t' read -r number name line < <(next_case); do
                file="$scratch/$name.$number.csv"
                [ ! -s "$out/$name.csv" ] || cp "$out/$name.csv" "$file"
                read -r -a words <<<"$line"
                record "$name" "$file" "${flags[@]}" "${words[@]}" || code=$?
            done
            exit "$code"
        ) &
        running+=("$!")
    done
    for process in "${running[@]}"; do
        wait "$process" || note_failure "$?" "$*"
    done
}

# next_case: takes the next line off the list, with its number
next_case() {
    (
        flock 9
        number="$(cat "$scratch/taken" 2>/dev/null || echo 0)"
        echo "$((number + 1))" >"$scratch/taken"
        sed -n "$((number + 1))s/^/$number\t/p" "$scratch/cases"
    ) 9>"$scratch/lock"
}

# note_failure CODE NAME
note_failure() {
    case "$1" in
    124 | 130 | 137) stopped+=" $2" ;;
    *)
        echo "FAIL  obstacle $2 (exit code $1)" >&2
        failed=1
        ;;
    esac
}

# chosen_of NAME...: those of `chosen` among these, in their order
chosen_of() {
    local name
    for name in "$@"; do
        [[ " $chosen " != *" $name "* ]] || echo "$name"
    done
}

launcher=()
single="$(chosen_of table2 table2-fitted red-black sweeps)"
# shellcheck disable=SC2086
[ -z "$single" ] || spread $single
for name in $(chosen_of weak-scaling table2-gpus cores table1); do
    record "$name" "$out/$name.csv" "${flags[@]}" || note_failure "$?" "$name"
done
# ranks BINDING COUNT: the following programs are ranks
ranks() {
    launcher=(mpirun --oversubscribe --bind-to "$1" -n "$2")
    [ "$(id -u)" -ne 0 ] || launcher+=(--allow-run-as-root)
}

if command -v mpirun >/dev/null; then
    for split in $(chosen_of cores | sed 's/.*/1x4 1x16/'); do
        ranks core "${split#1x}"
        record cores "$out/cores-ranks.csv" "${flags[@]}" --backend mpi --split "$split" \
            --output "$out/cores-ranks.md" || note_failure "$?" "cores on ranks"
    done
    for count in $(chosen_of gpu-ranks | sed 's/.*/1 2 4/'); do
        [ "$count" -le "$gpus" ] || continue
        ranks none "$count"
        record gpu-ranks "$out/gpu-ranks.csv" "${flags[@]}" --split "1x$count" \
            --output "$out/gpu-ranks.md" || note_failure "$?" "gpu-ranks"
    done
    launcher=()
fi

# everything is there: tables and figures of all records
for name in $chosen; do
    # ranks have written theirs
    [ "$name" != gpu-ranks ] || continue
    files=(--output "$out/$name.csv")
    for file in "$scratch/$name".*.csv; do
        [ ! -s "$file" ] || files+=(--output "$file")
    done
    case "$name" in
    weak-scaling | cores) files+=(--figure "$out/$name.svg" --figure "$out/$name.png") ;;
    esac
    # files that are resumed together get each other's records before anything runs; when the time is over
    # no more than some seconds are left for what is missing
    code=0 left=$((limit - SECONDS))
    timeout --foreground --kill-after=60 "$((left > 5 ? left : 5))" "$bilu" obstacle "$name" "${flags[@]}" --quiet --resume \
        "${files[@]}" --format markdown >"$scratch/table" || code=$?
    if [ "$code" -le 1 ] && [ -s "$scratch/table" ]; then
        mv "$scratch/table" "$out/$name.md"
        cat "$out/$name.md"
    else
        note_failure "$code" "$name"
    fi
done
finish_results
