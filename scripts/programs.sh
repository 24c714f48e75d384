# Sourced by the scripts that run the program on a GPU: finds or builds what they run.

# programs FOLDER TARGET NAME...: links the programs NAME of FOLDER into TARGET. With an empty FOLDER
# they are built with the arguments in the array `features`, if there is one: `bilu-bench` is the program,
# every other name a test.
programs() {
    local folder=$1 target=$2 name path
    shift 2
    if [ -n "$folder" ]; then
        for name in "$@"; do
            path="$(realpath -m "$folder/$name")"
            [ -f "$path" ] && [ -x "$path" ] || {
                echo "error: no program \`$name\` in \`$folder\`" >&2
                return 2
            }
            ln -s "$path" "$target/$name"
        done
        return
    fi
    local tests=() built
    # to the project, and from there on absolute paths
    cd "$(dirname "${BASH_SOURCE[0]}")/.."
    for name in "$@"; do
        if [ "$name" = bilu-bench ]; then
            CARGO_TERM_COLOR=never cargo build --release --locked ${features[@]+"${features[@]}"}
            path="${CARGO_TARGET_DIR:-target}/release/bilu-bench"
            ln -s "$(realpath "$path")" "$target/bilu-bench"
        else
            tests+=(--test "$name")
        fi
    done
    [ "${#tests[@]}" -gt 0 ] || return 0
    built="$(CARGO_TERM_COLOR=never cargo test --release --locked --no-run \
        ${features[@]+"${features[@]}"} "${tests[@]}" 2>&1)" || {
        printf '%s\n' "$built" >&2
        return 1
    }
    for name in "$@"; do
        [ "$name" != bilu-bench ] || continue
        path="$(sed -n "s|^ *Executable tests/$name\.rs (\(.*\))\$|\1|p" <<<"$built")"
        ln -s "$(realpath "$path")" "$target/$name"
    done
}

# find_gpu: asks `doctor` of $bilu what there is, for `environment`, and sets `gpu` to the name of the
# first GPU. Ends the script where there is none.
find_gpu() {
    doctor="$(timeout --foreground --kill-after=30 300 "$bilu" doctor)"
    # `device 0  NVIDIA H200, compute capability 9.0, 139.8 GiB`
    gpu="$(sed -n 's/^ *device 0  *\([^,]*\),.*/\1/p' <<<"$doctor")"
    [ -n "$gpu" ] || {
        printf '%s\n' "$doctor" >&2
        echo "${0##*/}: no GPU found" >&2
        exit 1
    }
}

# results_folder NAME: where the results of experiments NAME on this GPU are kept.
results_folder() {
    local name
    name="$(tr '[:upper:] ' '[:lower:]-' <<<"$gpu" | tr -cd 'a-z0-9.-')"
    realpath -m "$(dirname "${BASH_SOURCE[0]}")/../results/$1/$name"
}

# environment: what `doctor` said of the machine; folders of this user do not belong into the
# repository.
environment() {
    sed '/^folders$/,$d' <<<"$doctor"
}

# results_arguments ARGUMENT...: the command line of a script that writes results, [FOLDER] [OUT]. Sets
# `folder`, empty where the program is to be built, and `out`, empty where it is not given.
results_arguments() {
    case "${1:-}" in
    -h | --help)
        sed -n '2,/^set /s/^# \{0,1\}//p' "$here/${0##*/}"
        exit 0
        ;;
    esac
    [ "$#" -le 2 ] || {
        local name=${0##*/}
        echo "${name%.sh}: at most a folder and an output folder" >&2
        exit 2
    }
    folder="${1:-}"
    [ "$folder" != - ] || folder=
    out="${2:+$(realpath -m "$2")}"
}

# start_program: finds or builds `bilu`; the time of the script begins. `scratch` is a folder for that time.
start_program() {
    scratch="$(mktemp -d)"
    trap 'rm -rf "$scratch"' EXIT
    programs "$folder" "$scratch" bilu-bench
    bilu="$scratch/bilu-bench"
    export NO_COLOR=1
    SECONDS=0
}

# start_results NAME: the same, finds the GPU, and makes `out`, by default that of experiments NAME, with what
# `doctor` says.
start_results() {
    start_program
    find_gpu
    out="${out:-$(results_folder "$1")}"
    mkdir -p "$out"
    environment >"$out/environment.txt"
}

# results_limit: seconds for everything, BILU_BENCH_LIMIT, as `limit`.
results_limit() {
    local name=${0##*/}
    limit="${BILU_BENCH_LIMIT:-14400}"
    [[ "$limit" =~ ^[1-9][0-9]*$ ]] || {
        echo "${name%.sh}: BILU_BENCH_LIMIT=$limit is no number of seconds" >&2
        exit 2
    }
}

# chosen_experiments NAMES REAL: BILU_BENCH_EXPERIMENTS, or NAMES and, where their matrices are, those of REAL.
chosen_experiments() {
    if [ -n "${BILU_BENCH_EXPERIMENTS:-}" ]; then
        echo "$BILU_BENCH_EXPERIMENTS"
    elif [ -n "${BILU_BENCH_MATRICES:-}" ]; then
        echo "$1 $2"
    else
        echo "$2 left out: BILU_BENCH_MATRICES is not set" >&2
        echo "$1"
    fi
}

# finish_results: says where the results are and what is missing, and ends the script.
finish_results() {
    printf '\nresults in %s\n' "$out"
    if [ -n "$stopped" ]; then
        echo "not finished within $limit s:$stopped; the same command goes on" >&2
        failed=1
    fi
    exit "$failed"
}

# ended CODE NAME WHAT: notes in `stopped` what a limit or a signal ended, by NAME, and says of WHAT that it failed,
# which sets `failed`.
ended() {
    case "$1" in
    0 | 1) ;; # 1 is a case that did not converge, which is a result
    124 | 130 | 137) stopped+=" $2" ;;
    *)
        echo "FAIL  $3 (exit code $1)" >&2
        failed=1
        ;;
    esac
}

# experiments FOLDER NAMES: runs the experiments NAMES of configs/FOLDER with `flags`, each to a CSV file
# and a table in `out`, within what is left of `limit` seconds. Sets `failed`, and `stopped` to those that were
# not finished.
experiments() {
    local folder=$1 name left code
    failed=0
    stopped=
    for name in $2; do
        left=$((limit - SECONDS))
        if [ "$left" -le 0 ]; then
            stopped+=" $name"
            continue
        fi
        printf '\n==> %s/%s on %s\n' "$folder" "$name" "$gpu"
        code=0
        # a run that failed prints nothing: the table before stays
        timeout --foreground --kill-after=60 "$left" "$bilu" reproduce "$folder/$name" "${flags[@]}" --resume \
            --output "$out/$name.csv" --format markdown \
            >"$scratch/$name.md" || code=$?
        [ ! -s "$scratch/$name.md" ] || mv "$scratch/$name.md" "$out/$name.md"
        ended "$code" "$name" "$folder/$name"
    done
}

# these SYSTEM...: those of BILU_BENCH_SYSTEMS, or all where it is not set, as a list
these() {
    local name found=
    for name in "$@"; do
        case " ${BILU_BENCH_SYSTEMS:-$name} " in
        *" $name "*) found+=",$name" ;;
        esac
    done
    echo "${found#,}"
}

# join LIST...: one list
join() {
    local IFS=,
    local text="$*"
    text="${text//,,/,}"
    text="${text#,}"
    echo "${text%,}"
}

# real_systems: the matrices of configs/trisolve/real.toml that peers solve, as lists: symmetric positive definite ones and
# others, with ones as the right-hand side or that of the simulator (own). Empty without BILU_BENCH_MATRICES.
real_systems() {
    symmetric= symmetric_own= general= general_own= large_own=
    if [ -z "${BILU_BENCH_MATRICES:-}" ]; then
        echo "matrices left out: BILU_BENCH_MATRICES is not set" >&2
        return
    fi
    symmetric="$(these nos7 sherman1 pyamg_airfoil pyamg_bar_b3 hypre_beam_hex459_b3 bcsstk16)"
    symmetric_own="$(these hypre_beam_tet2475_b3)"
    general="$(these orsreg_1 watt_1 olm1000 jpwh_991 pyamg_recirc_flow steam2 spe1_2p_b2 spe1_b3 spe5_b4)"
    general_own="$(these spe1_thermal_b4 spe10m1_b3 spe9cp_t0_b3 spe9cp_b3)"
    large_own="$(these nornebox_b3)"
}
