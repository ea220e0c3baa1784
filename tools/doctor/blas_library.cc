#include "tools/doctor/blas_library.h"

#include <dlfcn.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hvdlite::doctor {
namespace {

// Beginnings of BLAS library names, in the order of preference. If a program
// has several of them, LibTorch uses the interface libblas.so.3 (on Debian).
constexpr const char* kNames[] = {
    "libblas.so",   "libmkl_rt.so", "libmkl_intel_lp64.so",
    "libopenblas",  "libarmpl",     "libfjlapack",
    "libssl2mt",    "libblis",      "libnvpl_blas_",
    "libsatlas.so", "libtatlas.so", "libflexiblas.so"};

template <typename Function>
Function* Find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

bool Has(void* library, const char* name) {
  return dlsym(library, name) != nullptr;
}

std::string NameOf(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Identifies the library by functions that only this BLAS has.
std::string KindOf(void* library, const std::string& file) {
  if (Has(library, "openblas_get_config")) return "OpenBLAS";
  if (Has(library, "mkl_get_version") || Has(library, "MKL_Get_Version")) {
    return "MKL";
  }
  if (Has(library, "armplversion")) return "Arm Performance Libraries";
  if (Has(library, "bli_info_get_version_str")) return "BLIS";
  if (Has(library, "ATL_buildinfo")) return "ATLAS";
  if (Has(library, "flexiblas_get_version")) return "FlexiBLAS";
  const std::string name = NameOf(file);
  if (absl::StartsWith(name, "libfj") || absl::StartsWith(name, "libssl2")) {
    return "SSL II";
  }
  if (absl::StartsWith(name, "libblas.so")) return "reference";
  return "unknown";
}

std::string ThreadModel(int parallel) {
  switch (parallel) {
    case 0:
      return "none";
    case 1:
      return "pthreads";
    case 2:
      return "OpenMP";
  }
  return "unknown";
}

void DescribeOpenBlas(void* library, BlasFacts& facts) {
  if (auto* config = Find<const char*()>(library, "openblas_get_config")) {
    // "OpenBLAS 0.3.21 NO_AFFINITY USE_OPENMP Haswell MAX_THREADS=64"
    const std::string text = config();
    const size_t begin = text.find(' ') + 1;
    facts.version = text.substr(begin, text.find(' ', begin) - begin);
  }
  if (auto* core = Find<const char*()>(library, "openblas_get_corename")) {
    facts.core = core();
  }
  if (auto* parallel = Find<int()>(library, "openblas_get_parallel")) {
    facts.threads = ThreadModel(parallel());
  }
  // NEOVERSEV1 is not listed: it has no SVE in 0.3.21, and in 0.3.29 it crashes
  // with an illegal instruction on A64FX (in QEMU).
  for (const char* name : {"A64FX", "ARMV8SVE"}) {
    if (Has(library, absl::StrCat("sgemm_kernel_", name).c_str())) {
      facts.sve_cores.push_back(name);
    }
  }
}

}  // namespace

std::vector<std::string> BlasCandidates(
    const std::vector<support::Library>& libraries) {
  std::vector<std::string> candidates;
  for (const char* name : kNames) {
    for (const support::Library& library : libraries) {
      if (absl::StartsWith(library.name, name) && !library.path.empty()) {
        candidates.push_back(library.path);
      }
    }
  }
  if (libraries.empty()) {
    candidates = {"libblas.so.3", "libopenblas.so.0", "libopenblas.so",
                  "libmkl_rt.so.2"};
  }
  return candidates;
}

LoadedBlas LoadBlas(const std::vector<std::string>& candidates) {
  LoadedBlas blas;
  for (const std::string& candidate : candidates) {
    void* library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      absl::StrAppend(&blas.facts.error, blas.facts.error.empty() ? "" : "; ",
                      dlerror());
      continue;
    }
    blas.sgemm = Find<Sgemm>(library, "sgemm_");
    if (blas.sgemm == nullptr) {
      absl::StrAppend(&blas.facts.error, blas.facts.error.empty() ? "" : "; ",
                      candidate, " has no sgemm_");
      continue;
    }
    Dl_info info = {};
    const bool known =
        dladdr(reinterpret_cast<void*>(blas.sgemm), &info) != 0 &&
        info.dli_fname != nullptr;
    blas.facts = {.file = known ? info.dli_fname : candidate};
    blas.facts.file = support::FileOf(
        {.name = NameOf(blas.facts.file), .path = blas.facts.file});
    blas.facts.kind = KindOf(library, candidate);
    if (blas.facts.kind == "OpenBLAS") DescribeOpenBlas(library, blas.facts);
    for (const char* name :
         {"openblas_set_num_threads", "MKL_Set_Num_Threads",
          "bli_thread_set_num_threads", "omp_set_num_threads"}) {
      // BLIS takes its own integer type, which has the width of a register.
      blas.set_threads = Find<void(int)>(library, name);
      if (blas.set_threads != nullptr) break;
    }
    return blas;
  }
  if (candidates.empty()) blas.facts.error = "no library is a known BLAS";
  return blas;
}

}  // namespace hvdlite::doctor
