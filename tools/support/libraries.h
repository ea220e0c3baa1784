// The shared libraries of this process, or of another program.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvdlite::doctor {

struct Library {
  std::string name;  // "libgomp.so.1"
  std::string path;  // "/lib/x86_64-linux-gnu/libgomp.so.1"; empty: not found
};

// Of this process, now.
std::vector<Library> LoadedLibraries();

// What the dynamic linker would load for `program`, with this environment; the
// program is not run. NotFound if there is no such file, InvalidArgument if it
// is none that loads libraries (a script, a static program).
absl::StatusOr<std::vector<Library>> LibrariesOf(const std::string& program);

// What the dynamic linker printed for LD_TRACE_LOADED_OBJECTS=1.
std::vector<Library> ParseLinkerList(absl::string_view text);

// The program or library that ELF file `file` names as its dynamic linker;
// empty if it names none.
std::string InterpreterOf(const std::string& file);

// Libraries are equal if they are the same file.
std::string FileOf(const Library& library);

}  // namespace hvdlite::doctor
