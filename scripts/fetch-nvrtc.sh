#!/usr/bin/env bash
# Puts NVRTC, the compiler of the CUDA kernels, under target/ and prints the folder of its libraries.
# Needs python3 and the package index that pip is set up with; no GPU, no driver, no CUDA toolkit.
set -euo pipefail
cd "$(dirname "$0")/.."

version=13.0.88
target="$PWD/target/nvrtc-$version"
libraries="$target/nvidia/cu13/lib"

fail() {
    echo "fetch-nvrtc: $*" >&2
    exit 1
}

if [ ! -e "$libraries/libnvrtc.so.13" ]; then
    command -v python3 >/dev/null || fail "python3 is needed to install NVRTC"
    mkdir -p target
    unfinished="$(mktemp -d "$target.XXXXXX")"
    trap 'rm -rf "$unfinished"' EXIT
    python=python3
    if ! python3 -m pip --version >/dev/null 2>&1; then
        # a system without pip may have the one that comes with venv
        python3 -m venv "$unfinished/venv" >&2 || fail "pip is needed to install NVRTC"
        python="$unfinished/venv/bin/python"
    fi
    PIP_ROOT_USER_ACTION=ignore "$python" -m pip install --quiet --disable-pip-version-check --no-deps \
        --only-binary=:all: --target "$unfinished/nvrtc" "nvidia-cuda-nvrtc==$version" >&2 ||
        fail "pip could not install nvidia-cuda-nvrtc $version"
    rm -rf "$target"
    mv "$unfinished/nvrtc" "$target"
    [ -e "$libraries/libnvrtc.so.13" ] || fail "no libnvrtc.so.13 in $libraries"
fi
echo "$libraries"
