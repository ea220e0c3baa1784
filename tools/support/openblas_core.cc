#include "tools/support/openblas_core.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/descriptor.h"
#include "tools/support/child_process.h"
#include "tools/support/processor.h"

namespace hvdlite::launch {
namespace {

// In the child: writes the name of the library's kernels.
[[noreturn]] void TellCore(const std::string& library, int descriptor) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) {
    auto* name =
        reinterpret_cast<char* (*)()>(dlsym(handle, "openblas_get_corename"));
    if (name != nullptr) WriteAll(descriptor, name());
  }
  _exit(0);
}

}  // namespace

std::string BetterOpenBlasCoreHere(const std::string& library) {
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) return "";
  const base::Descriptor reader(ends[0]);
  base::Descriptor writer(ends[1]);
  const pid_t child = fork();
  if (child == 0) TellCore(library, writer.get());
  writer = base::Descriptor();
  std::string core;
  char buffer[128];
  ssize_t count = 0;
  while (child > 0 &&
         (count = read(reader.get(), buffer, sizeof(buffer))) > 0) {
    core.append(buffer, static_cast<size_t>(count));
  }
  if (child > 0) waitpid(child, nullptr, 0);
  std::ifstream file("/proc/cpuinfo");
  std::stringstream cpuinfo;
  cpuinfo << file.rdbuf();
  return base::BetterOpenBlasCore(core, base::CpuFlags(cpuinfo.str()));
}

}  // namespace hvdlite::launch
