#include "tools/hvdliterun/plan/host_environment.h"

#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "support/child_process.h"
#include "support/libraries.h"
#include "support/process.h"
#include "support/processor.h"
#include "tools/hvdliterun/plan/allocation.h"

namespace hvdlite::launch {
namespace {

absl::StatusOr<std::string> TextOfFile(const std::string& path) {
  constexpr size_t kMaxBytes = size_t{64} << 20;
  std::error_code error;
  // Opening a named pipe may block forever. /dev/stdin and similar files are
  // already open.
  if (std::filesystem::is_fifo(path, error) &&
      !absl::StartsWith(path, "/dev/") && !absl::StartsWith(path, "/proc/")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot read ", path, ": it is a named pipe, not a regular file"));
  }
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path, error)) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path));
  }
  std::string text(kMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxBytes) {  // for example an endless device
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has more than ", kMaxBytes, " bytes"));
  }
  return text;
}

absl::StatusOr<std::string> VersionOfProgram(const std::string& program) {
  HVDLITE_ASSIGN_OR_RETURN(const support::CapturedOutput output,
                           support::CaptureOutput({program, "--version"}));
  return output.text;
}

// "mlx5_0:1" of /sys/class/net/ib0; UCX counts ports from 1.
std::string RdmaDeviceOf(const std::string& directory) {
  std::error_code error;
  std::filesystem::directory_iterator device(directory + "/device/infiniband",
                                             error);
  if (error || device == std::filesystem::directory_iterator()) return "";
  int port = 0;
  const absl::StatusOr<std::string> text = TextOfFile(directory + "/dev_port");
  if (text.ok()) {
    (void)absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &port);
  }
  return absl::StrCat(device->path().filename().string(), ":", port + 1);
}

std::vector<NetworkInterface> InterfacesOfThisHost() {
  const std::unique_ptr<struct if_nameindex, decltype(&if_freenameindex)> list(
      if_nameindex(), &if_freenameindex);
  std::vector<NetworkInterface> interfaces;
  for (const struct if_nameindex* one = list.get();
       one != nullptr && one->if_index != 0; ++one) {
    interfaces.push_back({.name = one->if_name,
                          .rdma_device = RdmaDeviceOf(
                              absl::StrCat("/sys/class/net/", one->if_name))});
  }
  return interfaces;
}

// The memory policy that this process inherited, such as "interleave"; empty
// for the system's default or if the kernel does not report it.
std::string InheritedMemoryPolicy() {
  const absl::StatusOr<support::NumaPolicy> policy =
      support::ThisThreadsNumaPolicy();
  if (!policy.ok()) return "";
  const std::string name = support::NumaPolicyName(*policy);
  return name == "default" || name == "local" ? "" : name;
}

}  // namespace

base::Logger OwnLog(int rank) {
  return {base::Severity::kInfo, base::OriginHere(rank, "hvdliterun")};
}

HostEnvironment RealHostEnvironment() {
  std::error_code error;
  return {.environment = base::ProcessEnvironment(),
          .read_file = TextOfFile,
          .exists = support::Exists,
          .is_executable = support::IsExecutable,
          .machine = ThisMachine,
          .libraries = support::LibrariesOf,
          .version_of = VersionOfProgram,
          .better_openblas_core = support::BetterOpenBlasCoreHere,
          .interfaces = InterfacesOfThisHost,
          .memory_policy = InheritedMemoryPolicy(),
          .self = std::filesystem::read_symlink("/proc/self/exe", error),
          .host_name = base::HostName(),
          .root = geteuid() == 0,
          .terminal = isatty(STDOUT_FILENO) != 0};
}

HostEnvironment With(
    HostEnvironment host_environment,
    std::vector<std::pair<std::string, std::string>> variables) {
  const base::Environment added = base::FakeEnvironment(variables);
  for (const std::string& name : host_environment.environment.names()) {
    const std::optional<std::string> own =
        host_environment.environment.get(name);
    if (!own.has_value() || added.get(name).has_value()) continue;
    variables.emplace_back(name, *own);
  }
  host_environment.environment = base::FakeEnvironment(std::move(variables));
  return host_environment;
}

bool IsThisHost(const std::string& name,
                const HostEnvironment& host_environment) {
  return name == "localhost" || name == "127.0.0.1" ||
         ShortName(name) == ShortName(host_environment.host_name);
}

bool IsContainer(const HostEnvironment& host_environment) {
  constexpr std::array kFiles = {"/.dockerenv", "/run/.containerenv"};
  constexpr std::array kVariables = {"container", "SINGULARITY_NAME",
                                     "APPTAINER_NAME",
                                     "KUBERNETES_SERVICE_HOST"};
  return std::any_of(kFiles.begin(), kFiles.end(), host_environment.exists) ||
         std::any_of(
             kVariables.begin(), kVariables.end(), [&](const char* name) {
               return host_environment.environment.get(name).has_value();
             });
}

}  // namespace hvdlite::launch
