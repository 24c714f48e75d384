#!/usr/bin/env bash
# Fuzzes a reader of users' files with the pinned compiler: libFuzzer guided by coverage, with debug assertions
# and checks of overflow, without sanitizers (`cargo +nightly fuzz run` has them).
#
#   scripts/fuzz.sh market|formats|experiment|results [SECONDS]
#
# What it finds new stays in target/fuzz/corpus, an input that fails in target/fuzz/failed; the exit code is
# then not 0. SECONDS is 3600 unless given.
set -euo pipefail
cd "$(dirname "$0")/.."

target="${1:-}"
seconds="${2:-3600}"
if [[ ! "$target" =~ ^(market|formats|experiment|results)$ || ! "$seconds" =~ ^[1-9][0-9]{0,6}$ ]]; then
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0" >&2
    exit 2
fi

flags=(--cfg fuzzing -Cpasses=sancov-module)
for option in level=4 inline-8bit-counters pc-table trace-compares; do
    flags+=("-Cllvm-args=-sanitizer-coverage-$option")
done
flags+=(-Cdebug-assertions -Coverflow-checks)
# with a target named, the flags are not for build scripts and macros
host="$(rustc -vV | sed -n 's/^host: //p')"
RUSTFLAGS="${flags[*]}" CARGO_TARGET_DIR=target/fuzz \
    cargo build --release --manifest-path fuzz/Cargo.toml --target "$host" --bin "$target"
mkdir -p target/fuzz/corpus/"$target" target/fuzz/failed
exec "target/fuzz/$host/release/$target" target/fuzz/corpus/"$target" fuzz/corpus/"$target" \
    -max_total_time="$seconds" -timeout=60 -rss_limit_mb=4096 -max_len=8192 -artifact_prefix=target/fuzz/failed/ \
    -print_final_stats=1
