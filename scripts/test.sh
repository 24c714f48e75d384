#!/usr/bin/env bash
# All tests, those over MPI ranks where the library is installed (libopenmpi-dev, openmpi-bin, libclang-dev):
#   scripts/test.sh [arguments of cargo test]
set -euo pipefail
cd "$(dirname "$0")/.."

# each run of the program measures the bandwidth of memory; what tests assert does not depend on it
export BILU_BENCH_COPY_BYTES="${BILU_BENCH_COPY_BYTES:-1048576}"
features=()
if command -v mpicc >/dev/null && [[ "$(ldconfig -p)" == *libclang* ]]; then
    features=(--features mpi)
else
    echo "without MPI: tests over ranks are left out" >&2
fi
exec cargo test --locked "${features[@]}" "$@"
