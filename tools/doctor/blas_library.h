// The BLAS that LibTorch's matrix products end in.
#pragma once

#include <string>
#include <vector>

#include "support/libraries.h"

namespace hvdlite::doctor {

struct BlasFacts {
  std::string file = "";  // that defines sgemm_; empty: none was found
  std::string kind = "";  // "OpenBLAS", "MKL", ..., "reference", "unknown"
  std::string version = "";
  std::string core = "";  // whose kernels OpenBLAS chose: "Haswell"
  // support::OwnOpenBlasCore(); empty: OPENBLAS_CORETYPE is not set, or that is
  // not known.
  std::string own_core = "";
  std::string threads = "";  // of OpenBLAS: "none", "pthreads", "OpenMP"
  // Core types with kernels for Arm's SVE that OpenBLAS has.
  std::vector<std::string> sve_cores = {};
  std::string error = "";  // why none was found
};

// sgemm of Fortran: column-major, everything by address.
using Sgemm = void(const char* transpose_a, const char* transpose_b,
                   const int* m, const int* n, const int* k, const float* alpha,
                   const float* a, const int* lda, const float* b,
                   const int* ldb, const float* beta, float* c, const int* ldc);

struct LoadedBlas {
  BlasFacts facts;
  Sgemm* sgemm = nullptr;
  // Sets how many threads it uses; null where that is not known.
  void (*set_threads)(int) = nullptr;
};

// Names or paths to try, in this order: what `libraries` (of a program) has of
// a BLAS, or what LibTorch's own libblas.so.3 would be, found as the dynamic
// linker finds it.
std::vector<std::string> BlasCandidates(
    const std::vector<support::Library>& libraries);

// Loads the first that can be; it stays loaded.
LoadedBlas LoadBlas(const std::vector<std::string>& candidates);

}  // namespace hvdlite::doctor
