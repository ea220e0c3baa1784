// What the checks of libraries and variables see and judge: BLAS and its speed,
// OpenMP, LibTorch, environment variables, malloc.
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

struct BlasSurroundings {
  std::set<std::string> cpu_flags;
  std::string cpu_implementer = "";  // of Arm: "0x46" is Fujitsu
  std::string library_path = "";     // LD_LIBRARY_PATH
  std::string asked_core = "";       // OPENBLAS_CORETYPE
  // That a core multiplies and adds with its longest vectors; 0: not measured.
  int64_t floats_per_cycle = 0;
  bool openmp = true;        // an OpenMP runtime is there, too
  std::string program = "";  // whose BLAS it is; empty: unknown
};

Finding JudgeBlas(const BlasFacts& facts, const BlasSurroundings& around);

// Of this rank.
Finding BlasFindingOf(const Session& session);

// Of one rank: one thread, all ranks at once.
struct BlasSpeed {
  double gflops = 0;       // per second of CPU time; 0: there is no BLAS
  double peak_gflops = 0;  // of its core; 0: unknown
  std::string core = "";   // "2.95 GHz, 16 floats (AVX3), 2 units"
  // What JudgeBlas would mend, if that is a problem.
  std::string remedy = "";
};

// How fast matrix products are. By rank.
std::vector<Finding> JudgeBlasSpeed(const std::vector<BlasSpeed>& of_rank);

// Each has threads and variables of its own.
struct OpenMpRuntime {
  std::string
      family;  // "GNU", "LLVM" (Intel's is the same), "Fujitsu", "NVIDIA"
  std::string file;
};

// One entry per file, however many names it has.
std::vector<OpenMpRuntime> OpenMpRuntimesAmong(
    const std::vector<support::Library>& libraries);

// `program` has them; empty: the doctor itself, which is worth a note only.
std::vector<Finding> JudgeOpenMp(const std::vector<support::Library>& libraries,
                                 const std::string& program);

// Whether `program` has libraries of several LibTorchs. Nothing without
// LibTorch, and of the doctor itself (empty), which has none.
std::vector<Finding> JudgeLibTorch(
    const std::vector<support::Library>& libraries, const std::string& program);

// What would read variables.
struct Readers {
  // Families of OpenMP runtimes (OpenMpRuntime); empty: none is known, and
  // their variables are not judged.
  std::set<std::string> openmp = {};
  bool mkl = false;
  bool openblas = false;
  std::string allocator = "glibc";  // "jemalloc", "tcmalloc"
  bool large_pages = false;         // Fujitsu's libmpg
  // Whose libraries these are; empty: the doctor's own, which say little of
  // those of other programs.
  std::string program = "";
};

// Variables that do nothing.
std::vector<Finding> JudgeVariables(const base::Environment& environment,
                                    const Readers& readers);

// What libgomp takes instead of a KMP_ variable with this value; empty: there
// is nothing like it.
std::string GnuInsteadOfKmp(const std::string& name, const std::string& value);

// "jemalloc", "tcmalloc", "mimalloc", "Fujitsu's libmpg", or "glibc".
std::string AllocatorOf(const std::vector<support::Library>& libraries);

// What became of an entry of LD_PRELOAD.
struct Preload {
  std::string entry;  // as written there
  bool loaded = false;
};

// Which malloc is in use, and what LD_PRELOAD asked for.
std::vector<Finding> JudgeAllocator(
    const std::vector<support::Library>& libraries,
    const std::vector<Preload>& preloads);

// The entries of `ld_preload`, and whether this process has them.
std::vector<Preload> PreloadsOf(const std::string& ld_preload);

}  // namespace hvdlite::doctor
