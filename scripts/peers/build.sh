#!/usr/bin/env bash
# Builds a peer in C++ where its library is found: scripts/peers/build.sh NAME [PREFIX]
# PREFIX holds include/ and lib/ of a library that is not the system's. Peers in Python need no build:
#   scipy, pyamg   apt-get install python3-scipy, or pip install scipy pyamg
#   petsc, hypre   apt-get install python3-petsc4py
#   dune           apt-get install libdune-istl-dev
#   trilinos       apt-get install libtrilinos-{ifpack2,belos,thyra,rtop,epetra,shylu,xpetra,zoltan2,amesos2,kokkos-kernels}-dev
#   rocalution     its sources, https://github.com/ROCm/rocALUTION, with SUPPORT_HIP=OFF and SUPPORT_OMP=OFF, in PREFIX
#   suitesparse    apt-get install libsuitesparse-dev libopenblas0-serial
#   ginkgo         its sources, https://github.com/ginkgo-project/ginkgo, built with GINKGO_BUILD_OMP=ON and installed in PREFIX
#   amgcl          its sources, https://github.com/ddemidov/amgcl, as PREFIX; apt-get install libboost-dev
set -euo pipefail
cd "$(dirname "$0")"

usage() {
    sed -n '2,11s/^# \{0,1\}//p' build.sh >&2
    exit 2
}

[ $# -ge 1 ] || usage
name="$1"
prefix="${2:-}"
flags=(-std=c++17 -O3 -march=native -DNDEBUG -I.)
libraries=()
if [ -n "$prefix" ]; then
    [ -d "$prefix" ] || { echo "error: there is no folder $prefix" >&2; exit 2; }
    flags+=(-I"$prefix/include" -I"$prefix" -L"$prefix/lib" -Wl,-rpath,"$prefix/lib")
fi
case "$name" in
dune)
    version="$(PKG_CONFIG_PATH="$prefix/lib/pkgconfig:${PKG_CONFIG_PATH:-}" pkg-config --modversion dune-istl 2>/dev/null || echo "of unknown version")"
    libraries+=(-ldunecommon)
    ;;
amgcl)
    version="$(git -C "${prefix:-/}" describe --tags --always 2>/dev/null || echo "of unknown version")"
    flags+=(-fopenmp)
    ;;
trilinos)
    header="${prefix:-/usr}/include/trilinos"
    [ -n "$prefix" ] && [ ! -d "$header" ] && header="$prefix/include"
    version="$(sed -n 's/^#define TRILINOS_VERSION_STRING "\([^"]*\)".*/\1/p' "$header/Trilinos_version.h")"
    # its templates compile sooner at -O2
    flags+=(-O2 -w -isystem "$header")
    for part in ifpack2 belostpetra belos tpetra teuchosnumerics teuchoscomm teuchosparameterlist teuchoscore kokkoscore; do
        libraries+=("-ltrilinos_$part")
    done
    CXX="${CXX:-mpicxx}"
    ;;
rocalution)
    version="" # it says so itself
    libraries+=(-lrocalution)
    ;;
ginkgo)
    version="" # it says so itself
    flags+=(-fopenmp)
    for part in "" _omp _cuda _hip _dpcpp _reference _device; do
        libraries+=("-lginkgo$part") # stubs where it is built without
    done
    ;;
suitesparse)
    version="" # it says so itself
    libraries+=(-lumfpack -lcholmod -lsuitesparseconfig)
    ;;
*)
    usage
    ;;
esac
mkdir -p build
"${CXX:-g++}" "${flags[@]}" -DPEER_VERSION="\"$version\"" "with_$name.cpp" -o "build/$name" "${libraries[@]}"
echo "build/$name: $("./build/$name" --version)"
