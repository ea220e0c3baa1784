#include "support/libraries.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/descriptor.h"
#include "base/status_macros.h"
#include "support/child_process.h"
#include "support/machine.h"
#include "support/processor.h"

namespace hvdlite::support {
namespace {

std::string NameOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(slash == absl::string_view::npos ? path
                                                      : path.substr(slash + 1));
}

int AddLibrary(dl_phdr_info* info, size_t, void* libraries) {
  const std::string path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  if (!path.empty() && !absl::StrContains(path, "linux-vdso")) {
    static_cast<std::vector<Library>*>(libraries)->push_back(
        {.name = NameOf(path), .path = path});
  }
  return 0;
}

// In the child: writes the kernel name if the first BLAS is OpenBLAS.
[[noreturn]] void TellCore(const std::vector<std::string>& candidates,
                           int descriptor) {
  unsetenv("OPENBLAS_CORETYPE");
  for (const std::string& candidate : candidates) {
    void* library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr || dlsym(library, "sgemm_") == nullptr) continue;
    auto* name =
        reinterpret_cast<char* (*)()>(dlsym(library, "openblas_get_corename"));
    if (name != nullptr) base::WriteAll(descriptor, name());
    break;
  }
  _exit(0);
}

bool IsElf(const std::string& file) {
  std::array<char, SELFMAG> magic = {};
  std::ifstream(file, std::ios::binary).read(magic.data(), magic.size());
  return std::memcmp(magic.data(), ELFMAG, SELFMAG) == 0;
}

}  // namespace

std::vector<Library> LoadedLibraries() {
  std::vector<Library> libraries;
  dl_iterate_phdr(&AddLibrary, &libraries);
  return libraries;
}

std::vector<Library> ParseLinkerList(absl::string_view text) {
  std::vector<Library> libraries;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || absl::StrContains(line, "linux-vdso")) continue;
    // "libm.so.6 => /lib/libm.so.6 (0x00007f)", "libx.so => not found",
    // "/lib64/ld-linux-x86-64.so.2 (0x00007f)"
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(" => ", 1));
    absl::string_view path = parts.second.empty() ? parts.first : parts.second;
    const size_t address = path.rfind(" (0x");
    if (address != absl::string_view::npos) {
      path = path.substr(0, address);
    } else if (absl::StrContains(line, "not found")) {
      path = "";
    } else {
      continue;  // not a library: a message of the linker
    }
    libraries.push_back(
        {.name = NameOf(parts.second.empty() ? path : parts.first),
         .path = std::string(path)});
  }
  return libraries;
}

std::string InterpreterOf(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  ElfW(Ehdr) header = {};
  if (!stream.read(reinterpret_cast<char*>(&header), sizeof(header)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return "";
  }
  for (int i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment = {};
    stream.seekg(static_cast<std::streamoff>(header.e_phoff) +
                 i * static_cast<std::streamoff>(sizeof(segment)));
    if (!stream.read(reinterpret_cast<char*>(&segment), sizeof(segment))) {
      return "";
    }
    if (segment.p_type != PT_INTERP || segment.p_filesz > 4096) continue;
    std::string path(segment.p_filesz, '\0');
    stream.seekg(static_cast<std::streamoff>(segment.p_offset));
    if (!stream.read(path.data(), static_cast<std::streamsize>(path.size()))) {
      return "";
    }
    return path.c_str();  // removes the final zero
  }
  return "";
}

absl::StatusOr<std::vector<Library>> LibrariesOf(const std::string& program) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(program, error)) {
    return absl::NotFoundError(absl::StrCat("there is no program ", program,
                                            "; correct its path, or build it"));
  }
  if (!IsElf(program)) {
    return absl::InvalidArgumentError(absl::StrCat(
        program,
        " is not a compiled program; if it is a script, name the program that "
        "it starts"));
  }
  // A shared library names no linker; the linker of this program loads it, too.
  std::string linker = InterpreterOf(program);
  if (linker.empty()) linker = InterpreterOf("/proc/self/exe");
  if (linker.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(program, " is linked statically"));
  }
  // Like ldd: the linker lists libraries, also missing ones, and runs nothing.
  const std::string path = std::filesystem::absolute(program, error);
  HVDLITE_ASSIGN_OR_RETURN(
      const CapturedOutput output,
      CaptureOutput({linker, path}, {{"LD_TRACE_LOADED_OBJECTS", "1"}}));
  const std::string& text = output.text;
  std::vector<Library> libraries = ParseLinkerList(text);
  if (libraries.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(linker, " cannot list the libraries of ", program, ": ",
                     text.empty() ? "it printed nothing" : text));
  }
  return libraries;
}

std::string FileOf(const Library& library) {
  std::error_code error;
  const std::filesystem::path file =
      std::filesystem::canonical(library.path, error);
  return error ? library.path : file.string();
}

bool HasLargePageLibrary(const std::vector<Library>& libraries) {
  return absl::c_any_of(libraries, [](const Library& library) {
    return absl::StartsWith(library.name, "libmpg.so") && !library.path.empty();
  });
}

std::string OpenBlasCandidate(const std::vector<Library>& libraries) {
  for (const char* name : {"libopenblas", "libblas"}) {
    for (const Library& library : libraries) {
      if (absl::StartsWith(library.name, name) && !library.path.empty()) {
        return library.path;
      }
    }
  }
  // Programs such as Python packages open it at run time.
  return "libblas.so.3";
}

std::string OwnOpenBlasCore(const std::vector<std::string>& candidates) {
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) return "";
  const base::Descriptor reader(ends[0]);
  base::Descriptor writer(ends[1]);
  const pid_t child = fork();
  if (child == 0) TellCore(candidates, writer.get());
  writer = base::Descriptor();
  std::string core;
  char buffer[128];
  ssize_t count = 0;
  while (child > 0 &&
         (count = read(reader.get(), buffer, sizeof(buffer))) > 0) {
    core.append(buffer, static_cast<size_t>(count));
  }
  if (child > 0) waitpid(child, nullptr, 0);
  return core;
}

std::string BetterOpenBlasCoreHere(const std::string& library) {
  const std::string cpuinfo = SystemFiles().Text("/proc/cpuinfo").value_or("");
  return BetterOpenBlasCore(OwnOpenBlasCore({library}), CpuFlags(cpuinfo));
}

}  // namespace hvdlite::support
