#!/usr/bin/env bash
# All tests, those over MPI ranks where the library is installed (libopenmpi-dev, openmpi-bin, libclang-dev):
#   scripts/test.sh [arguments of cargo test]
set -euo pipefail
cd "$(dirname "$0")/.."

features=()
if command -v mpicc >/dev/null && [[ "$(ldconfig -p)" == *libclang* ]]; then
    features=(--features mpi)
else
    echo "without MPI: tests over ranks are left out" >&2
fi
exec cargo test --locked "${features[@]}" "$@"
