#!/usr/bin/env bash
# Prints a hash of the machine code for sm_90 of every program that tests/kernels compiles, names of files
# and numbers of lines left out. Equal before and after a change, the kernels are the same:
#   scripts/same-code.sh >before; ...; scripts/same-code.sh | diff before -
set -euo pipefail
cd "$(dirname "$0")/.."

BILU_BENCH_NVRTC_DIR="${BILU_BENCH_NVRTC_DIR:-$(scripts/fetch-nvrtc.sh)}"
hashes="$(mktemp)"
trap 'rm -f "$hashes"' EXIT
export BILU_BENCH_NVRTC_DIR BILU_BENCH_REQUIRE_NVRTC=1 BILU_BENCH_CODE_HASHES="$hashes"
cargo test --quiet --test kernels -- --exact every_kernel_compiles_without_warnings_and_spills >&2
cat "$hashes"
