#!/usr/bin/env bash
# Lists what loops that are compiled once per instruction set (`multiversion!`) call instead of containing it: a closure
# may be compiled without the instruction set, and then passes vectors through memory. Prints how often each such
# function calls which closure or intrinsic, nothing where all is in line.
#
#   scripts/out-of-line.sh [PROGRAM]
#
# PROGRAM has its symbols; without it `bilu-bench` is built with the profile `profiling`.
set -euo pipefail
cd "$(dirname "$0")/.."

program="${1:-}"
if [ -z "$program" ]; then
    cargo build --quiet --locked --profile profiling
    program=target/profiling/bilu-bench
fi
[ -f "$program" ] || { echo "out-of-line: there is no program $program" >&2; exit 2; }
nm "$program" 2>/dev/null | grep avx2 >/dev/null || { echo "out-of-line: $program has no symbols" >&2; exit 2; }
objdump --disassemble --demangle --no-show-raw-insn "$program" |
    awk '/^[0-9a-f]+ <.*>:$/ { within = /::avx(2|512)>:$/; $1 = ""; caller = $0 }
         within && /\tcall / && /core_arch|closure|call_mut/ { sub(/.*\tcall +[0-9a-f]+ /, ""); print caller " " $0 }' |
    sort | uniq -c | sort -rn
