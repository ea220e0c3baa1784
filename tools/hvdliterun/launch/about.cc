#include "tools/hvdliterun/launch/about.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "collective/kernels/reduction_kernels.h"
#include "tools/hvdliterun/plan/allocation.h"
#include "tools/hvdliterun/plan/launcher.h"
#include "tools/hvdliterun/plan/settings.h"

namespace hvdlite::launch {
namespace {

#ifdef __clang__
constexpr char kCompiler[] = __VERSION__;  // contains the name "Clang"
#else
constexpr char kCompiler[] = "GCC " __VERSION__;
#endif

absl::StatusOr<LauncherProgram> LauncherHere(
    const Flags& flags, const HostEnvironment& host_environment) {
  return ChooseLauncher(flags.launcher,
                        DetectBatchSystem(host_environment.environment),
                        host_environment.version_of);
}

std::string Describe(const absl::StatusOr<LauncherProgram>& launcher) {
  if (!launcher.ok()) {
    return absl::StrCat("none: ", launcher.status().message());
  }
  const std::string version = VersionLine(*launcher);
  return absl::StrCat(launcher->program, " (", KindOf(launcher->launcher).name,
                      ")", version.empty() ? "" : ": ", version);
}

std::string DescribeInPlace(const absl::StatusOr<LauncherProgram>& launcher) {
  if (!launcher.ok()) return "no: there is no launcher";
  return launcher->launcher == Launcher::kOpenMpi &&
                 MajorVersion(*launcher).value_or(0) >= 5
             ? "yes, if Open MPI was built with ULFM (the default)"
             : "no: it needs Open MPI 5 or later";
}

std::string DescribeAllocator(Allocator allocator,
                              const HostEnvironment& host_environment) {
  return FindAllocator(allocator, host_environment).value_or("none");
}

std::string DescribeInterfaces(const HostEnvironment& host_environment) {
  return absl::StrJoin(host_environment.interfaces(), ", ",
                       [](std::string* out, const NetworkInterface& one) {
                         absl::StrAppend(out, one.name);
                         if (!one.rdma_device.empty()) {
                           absl::StrAppend(out, " (", one.rdma_device, ")");
                         }
                       });
}

}  // namespace

std::string DescribeVersion(const Flags& flags,
                            const HostEnvironment& host_environment) {
  return absl::StrCat("hvdliterun ", HVDLITE_VERSION, "\nlauncher: ",
                      Describe(LauncherHere(flags, host_environment)), "\n");
}

std::string DescribeBuild(const Flags& flags,
                          const HostEnvironment& host_environment) {
  const absl::StatusOr<LauncherProgram> launcher =
      LauncherHere(flags, host_environment);
  const absl::StatusOr<Machine> machine = host_environment.machine();
  const collective::VectorUnit unit = collective::ChosenVectorUnit();
  return absl::StrCat(
      "hvdlite: ", HVDLITE_VERSION, "\ncompiler: ", kCompiler,
      ", C++11 ABI: ", _GLIBCXX_USE_CXX11_ABI != 0 ? "yes" : "no",
      "\nUCX: ", HVDLITE_UCX_VERSION, "\nkernels: ", unit.name, ", ",
      unit.bytes, " bytes\nlauncher: ", Describe(launcher),
      "\n--in-place: ", DescribeInPlace(launcher), "\nmachine: ",
      machine.ok() ? machine->Describe()
                   : std::string(machine.status().message()),
      "\nnetwork interfaces: ", DescribeInterfaces(host_environment),
      "\njemalloc: ", DescribeAllocator(Allocator::kJemalloc, host_environment),
      "\ntcmalloc: ", DescribeAllocator(Allocator::kTcmalloc, host_environment),
      "\n");
}

}  // namespace hvdlite::launch
