// Lists the shared libraries of this process or of another program, and finds
// the BLAS and the large-page allocator among them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvdlite::support {

struct Library {
  std::string name;  // "libgomp.so.1"
  std::string path;  // "/lib/x86_64-linux-gnu/libgomp.so.1"; empty: not found
};

// Libraries that this process has loaded now.
std::vector<Library> LoadedLibraries();

// The libraries that the dynamic linker would load for `program` in this
// environment, with its search paths and LD_LIBRARY_PATH, and their libraries.
// The program is not run, so libraries that it opens at run time are missing.
// NotFound if there is no such file. InvalidArgument if it loads no libraries
// (a script, a static program). For single-threaded programs.
absl::StatusOr<std::vector<Library>> LibrariesOf(const std::string& program);

// Parses the output of the dynamic linker for LD_TRACE_LOADED_OBJECTS=1.
std::vector<Library> ParseLinkerList(absl::string_view text);

// The dynamic linker that ELF file `file` names; empty if it names none.
std::string InterpreterOf(const std::string& file);

// Two libraries are equal if they are the same file.
std::string FileOf(const Library& library);

// Whether `libraries` contains Fujitsu's large-page library (libmpg), the only
// one that reads XOS_MMM_L_*. A library that was not found does not count.
bool HasLargePageLibrary(const std::vector<Library>& libraries);

// The library that may be OpenBLAS: the path of libopenblas, or of libblas,
// which may be OpenBLAS on some distributions. If neither is linked, the name
// that a running program would open.
std::string OpenBlasCandidate(const std::vector<Library>& libraries);

// The core type that OpenBLAS chooses without OPENBLAS_CORETYPE. Empty if the
// first BLAS among `candidates` (paths, or names for the loader) is not
// OpenBLAS. OpenBLAS starts threads, so a forked process with one thread asks
// it.
std::string OwnOpenBlasCore(const std::vector<std::string>& candidates);

// BetterOpenBlasCore() (processor.h) for OwnOpenBlasCore() of `library`.
std::string BetterOpenBlasCoreHere(const std::string& library);

}  // namespace hvdlite::support
