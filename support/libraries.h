// The shared libraries of this process, or of another program, all the way
// down: its allocator's large pages, and its BLAS.
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

// Of this process, now.
std::vector<Library> LoadedLibraries();

// What the dynamic linker would load for `program`, with this environment: so
// search paths, LD_LIBRARY_PATH and libraries of libraries are what they will
// be. The program is not run; libraries that it opens while it runs are not
// seen. NotFound if there is no such file, InvalidArgument if it is none that
// loads libraries (a script, a static program). In single-threaded programs.
absl::StatusOr<std::vector<Library>> LibrariesOf(const std::string& program);

// What the dynamic linker printed for LD_TRACE_LOADED_OBJECTS=1.
std::vector<Library> ParseLinkerList(absl::string_view text);

// The program or library that ELF file `file` names as its dynamic linker;
// empty if it names none.
std::string InterpreterOf(const std::string& file);

// Libraries are equal if they are the same file.
std::string FileOf(const Library& library);

// Whether Fujitsu's large-page library (libmpg) is among them, which alone
// knows the variables XOS_MMM_L_*. One that is not found is none.
bool HasLargePageLibrary(const std::vector<Library>& libraries);

// A library that may be OpenBLAS: the path of libopenblas, or of libblas,
// behind which a distribution may put it; if neither is linked, the name of the
// one that a running program would open.
std::string OpenBlasCandidate(const std::vector<Library>& libraries);

// The core whose kernels OpenBLAS takes without OPENBLAS_CORETYPE; empty if the
// first of `candidates` (paths, or names for the loader) that is a BLAS is
// another one. It starts threads, and so is asked in a copy of this process, in
// which there is one thread yet.
std::string OwnOpenBlasCore(const std::vector<std::string>& candidates);

// BetterOpenBlasCore (processor.h) for OwnOpenBlasCore() of `library`.
std::string BetterOpenBlasCoreHere(const std::string& library);

}  // namespace hvdlite::support
