# Sourced by the scripts that run the program on a GPU: finds or builds what they run.

# programs FOLDER TARGET NAME...: links the programs NAME of FOLDER into TARGET. With an empty FOLDER
# they are built: `bilu-bench` is the program, every other name a test.
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
            CARGO_TERM_COLOR=never cargo build --release --locked
            path="${CARGO_TARGET_DIR:-target}/release/bilu-bench"
            ln -s "$(realpath "$path")" "$target/bilu-bench"
        else
            tests+=(--test "$name")
        fi
    done
    [ "${#tests[@]}" -gt 0 ] || return 0
    built="$(CARGO_TERM_COLOR=never cargo test --release --locked --no-run "${tests[@]}" 2>&1)" || {
        printf '%s\n' "$built" >&2
        return 1
    }
    for name in "$@"; do
        [ "$name" != bilu-bench ] || continue
        path="$(sed -n "s|^ *Executable tests/$name\.rs (\(.*\))\$|\1|p" <<<"$built")"
        ln -s "$(realpath "$path")" "$target/$name"
    done
}
