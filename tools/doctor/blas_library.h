// The BLAS library that computes LibTorch's matrix products.
#pragma once

#include <string>
#include <vector>

#include "support/libraries.h"

namespace hvdlite::doctor {

struct BlasFacts {
  std::string file = "";  // defines sgemm_; empty: none was found
  std::string kind = "";  // "OpenBLAS", "MKL", ..., "reference", "unknown"
  std::string version = "";
  std::string core = "";  // of the kernels OpenBLAS chose: "Haswell"
  // support::OwnOpenBlasCore(). Empty: OPENBLAS_CORETYPE is not set, or the
  // core is not known.
  std::string own_core = "";
  std::string threads = "";  // of OpenBLAS: "none", "pthreads", "OpenMP"
  // Core types for which this OpenBLAS has kernels with Arm's SVE.
  std::vector<std::string> sve_cores = {};
  std::string error = "";  // why none was found
};

// Fortran's sgemm: column-major, all arguments by address.
using Sgemm = void(const char* transpose_a, const char* transpose_b,
                   const int* m, const int* n, const int* k, const float* alpha,
                   const float* a, const int* lda, const float* b,
                   const int* ldb, const float* beta, float* c, const int* ldc);

struct LoadedBlas {
  BlasFacts facts;
  Sgemm* sgemm = nullptr;
  // Sets the number of threads of this BLAS; null if no such function is known.
  void (*set_threads)(int) = nullptr;
};

// Names or paths to try, in this order: the BLAS libraries among `libraries`
// (of a program). If `libraries` is empty: libblas.so.3, which LibTorch loads,
// and other names; the dynamic linker finds their files.
std::vector<std::string> BlasCandidates(
    const std::vector<support::Library>& libraries);

// Loads the first candidate that can be loaded. It stays loaded.
LoadedBlas LoadBlas(const std::vector<std::string>& candidates);

}  // namespace hvdlite::doctor
