#!/usr/bin/env bash
# Builds a peer in C++ where its library is found: scripts/peers/build.sh NAME [PREFIX]
# PREFIX holds include/ and lib/ of a library that is not the system's. Peers in Python need no build:
#   scipy, pyamg   apt-get install python3-scipy, or pip install scipy pyamg
#   petsc          apt-get install python3-petsc4py
#   hypre          apt-get install libhypre-dev
#   dune           apt-get install libdune-istl-dev
#   trilinos       apt-get install libtrilinos-{ifpack2,belos,tpetra,teuchos,kokkos,kokkos-kernels,thyra,rtop,epetra,shylu,xpetra,zoltan2,amesos2}-dev
#   rocalution     its sources, https://github.com/ROCm/rocALUTION, with SUPPORT_HIP=OFF and SUPPORT_OMP=OFF, in PREFIX
#   suitesparse    apt-get install libsuitesparse-dev libopenblas0-serial
#   ginkgo         its sources, https://github.com/ginkgo-project/ginkgo, built with GINKGO_BUILD_OMP=ON and installed in PREFIX
#   amgcl          its sources, https://github.com/ddemidov/amgcl, as PREFIX
# Peers on a GPU need CUDA's toolkit, in CUDA_HOME or /usr/local/cuda. CUDAARCHS=90 compiles for a GPU that is not here:
#   amgcl-cuda     as amgcl
#   cudss          pip install --target FOLDER nvidia-cudss-cu13, with FOLDER/nvidia/cu13 as PREFIX
#   amgx           its sources, https://github.com/NVIDIA/AMGX, built without MPI and installed in PREFIX
#   ginkgo-cuda    as ginkgo, built with GINKGO_BUILD_CUDA=ON, too
set -euo pipefail
cd "$(dirname "$0")"

usage() {
    sed -n '2,/^set /s/^# \{0,1\}//p' build.sh >&2
    exit 2
}

[ $# -ge 1 ] || usage
name="$1"
prefix="${2:-}"
flags=(-std=c++17 -O3 -march=native -DNDEBUG -I.)
libraries=()
if [ -n "$prefix" ]; then
    [ -d "$prefix" ] || { echo "error: there is no folder $prefix" >&2; exit 2; }
    flags+=(-I"$prefix/include" -I"$prefix" -L"$prefix/lib" -Xlinker -rpath="$prefix/lib")
fi
with_cuda() {
    cuda="${CUDA_HOME:-/usr/local/cuda}"
    [ -d "$cuda/include" ] || { echo "error: there is no toolkit of CUDA in $cuda; CUDA_HOME names another folder" >&2; exit 2; }
    flags+=(-I"$cuda/include" -L"$cuda/lib64" -Xlinker -rpath="$cuda/lib64")
    libraries+=(-lcudart_static -ldl -lrt -lpthread)
}
case "$name" in
dune)
    version="$(PKG_CONFIG_PATH="$prefix/lib/pkgconfig:${PKG_CONFIG_PATH:-}" pkg-config --modversion dune-istl 2>/dev/null || echo "of unknown version")"
    libraries+=(-ldunecommon)
    ;;
amgcl | amgcl-cuda)
    version="$(git -C "${prefix:-/}" describe --tags --always 2>/dev/null || echo "of unknown version")"
    flags+=(-fopenmp -DAMGCL_NO_BOOST)
    if [ "$name" = amgcl-cuda ]; then
        with_cuda
        libraries+=(-lcusparse)
        CXX="$cuda/bin/nvcc"
        # what nvcc does not know itself is the host compiler's
        flags=("${flags[@]/#-[mf]/-Xcompiler=&}")
        flags+=(-x cu -w -arch="${CUDAARCHS:+sm_}${CUDAARCHS:-native}")
    fi
    ;;
cudss)
    version="" # it says so itself
    with_cuda
    libraries+=(-l:libcudss.so.1)
    ;;
amgx)
    version="$(git -C "${prefix:-/}" describe --tags --always 2>/dev/null || echo "")"
    with_cuda
    libraries+=(-lamgxsh)
    ;;
hypre)
    version="" # it says so itself
    flags+=(-isystem "${prefix:-/usr}/include/hypre")
    libraries+=(-lHYPRE)
    CXX="${CXX:-mpicxx}"
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
ginkgo | ginkgo-cuda)
    version="" # it says so itself
    flags+=(-fopenmp)
    if [ "$name" = ginkgo-cuda ]; then
        with_cuda
        flags+=(-DPEER_CUDA)
    fi
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
# CXXFLAGS come last: -march=x86-64-v3 builds for other machines
# shellcheck disable=SC2086
"${CXX:-g++}" "${flags[@]}" ${CXXFLAGS:-} -DPEER_VERSION="\"$version\"" "with_${name%-cuda}.cpp" -o "build/$name" "${libraries[@]}"
echo "build/$name: $("./build/$name" --version)"
