// The checks of libraries and variables, with the facts that they judge: BLAS
// and its speed, OpenMP, LibTorch, environment variables, malloc.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/environment.h"
#include "support/libraries.h"
#include "tools/doctor/blas_library.h"
#include "tools/doctor/check.h"

namespace hvdlite::doctor {

struct BlasEnvironment {
  std::set<std::string> cpu_flags;
  std::string cpu_implementer = "";  // on Arm: "0x46" is Fujitsu
  std::string library_path = "";     // LD_LIBRARY_PATH
  std::string asked_core = "";       // OPENBLAS_CORETYPE
  // Multiply-adds of a core per cycle with its longest vectors; 0: not
  // measured.
  int64_t floats_per_cycle = 0;
  bool openmp = true;        // an OpenMP runtime is loaded, too
  std::string program = "";  // that uses this BLAS; empty: unknown
};

Finding JudgeBlas(const BlasFacts& facts, const BlasEnvironment& around);

// The finding about this rank's BLAS.
Finding BlasFindingOf(const Session& session);

// The speed of one rank, with one thread, while all ranks compute.
struct BlasSpeed {
  double gflops = 0;       // per second of CPU time; 0: no BLAS
  double peak_gflops = 0;  // of its core; 0: unknown
  std::string core = "";   // "2.95 GHz, 16 floats (AVX3), 2 units"
  // The remedy of JudgeBlas(), if it finds a problem.
  std::string remedy = "";
};

// Judges the speed of matrix products. `of_rank` is by rank.
std::vector<Finding> JudgeBlasSpeed(const std::vector<BlasSpeed>& of_rank);

// An OpenMP runtime. Each has its own threads and variables.
struct OpenMpRuntime {
  std::string
      family;  // "GNU", "LLVM" (Intel's is the same), "Fujitsu", "NVIDIA"
  std::string file;
};

// One entry per file, even if the file has several names.
std::vector<OpenMpRuntime> OpenMpRuntimesAmong(
    const std::vector<support::Library>& libraries);

// `libraries` are those of `program`. If it is empty, they are the doctor's own
// and result only in a note.
std::vector<Finding> JudgeOpenMp(const std::vector<support::Library>& libraries,
                                 const std::string& program);

// Finds a `program` that uses libraries of several LibTorchs. Returns nothing
// if the program has no LibTorch or `program` is empty (the doctor itself).
std::vector<Finding> JudgeLibTorch(
    const std::vector<support::Library>& libraries, const std::string& program);

// The libraries that read environment variables.
struct Readers {
  // Families of OpenMP runtimes (OpenMpRuntime). If empty, the variables of
  // OpenMP runtimes are not judged.
  std::set<std::string> openmp = {};
  bool mkl = false;
  bool openblas = false;
  std::string allocator = "glibc";  // "jemalloc", "tcmalloc"
  bool large_pages = false;         // Fujitsu's libmpg
  // The program with these libraries. Empty: the doctor itself; other programs
  // may have other libraries.
  std::string program = "";
};

// Finds variables that do nothing.
std::vector<Finding> JudgeVariables(const base::Environment& environment,
                                    const Readers& readers);

// The setting of libgomp that replaces a KMP_ variable with this value; empty:
// there is none.
std::string GnuInsteadOfKmp(const std::string& name, const std::string& value);

// "jemalloc", "tcmalloc", "mimalloc", "Fujitsu's libmpg", or "glibc".
std::string AllocatorOf(const std::vector<support::Library>& libraries);

// An entry of LD_PRELOAD.
struct Preload {
  std::string entry;  // as written there
  bool loaded = false;
};

// Reports the malloc in use and missing libraries of LD_PRELOAD.
std::vector<Finding> JudgeAllocator(
    const std::vector<support::Library>& libraries,
    const std::vector<Preload>& preloads);

// The entries of `ld_preload`, and whether this process loaded them.
std::vector<Preload> PreloadsOf(const std::string& ld_preload);

}  // namespace hvdlite::doctor
