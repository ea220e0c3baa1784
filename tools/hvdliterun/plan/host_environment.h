// The host environment: everything except the command line that a job's plan
// depends on. Tests pass their own.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/environment.h"
#include "base/logging.h"
#include "support/libraries.h"
#include "tools/hvdliterun/plan/machine.h"

namespace hvdlite::launch {

struct NetworkInterface {
  std::string name;         // "ib0"
  std::string rdma_device;  // its device in UCX: "mlx5_0:1"; or empty
};

struct HostEnvironment {
  base::Environment environment;
  std::function<absl::StatusOr<std::string>(const std::string& path)> read_file;
  std::function<bool(const std::string& path)> exists;
  // Whether this is a file that this user may execute.
  std::function<bool(const std::string& path)> is_executable;
  std::function<absl::StatusOr<Machine>()> machine;
  std::function<absl::StatusOr<std::vector<support::Library>>(
      const std::string& program)>
      libraries;
  // The output of `PROGRAM --version`.
  std::function<absl::StatusOr<std::string>(const std::string& program)>
      version_of;
  // Like BetterOpenBlasCoreHere().
  std::function<std::string(const std::string& library)> better_openblas_core;
  std::function<std::vector<NetworkInterface>()> interfaces;  // of this host
  std::string memory_policy;  // inherited by this process, or empty
  std::string self;           // path of hvdliterun
  std::string host_name;      // of this host
  bool root = false;
  bool terminal = false;  // whether standard output is a terminal
};

// The host environment of this process.
HostEnvironment RealHostEnvironment();

// The same with `variables` added to or replacing its own.
HostEnvironment With(
    HostEnvironment host_environment,
    std::vector<std::pair<std::string, std::string>> variables);

// For hvdliterun's own messages while a job runs. `rank`: the rank beside which
// this process runs.
base::Logger OwnLog(int rank = -1);

// Whether a host with this name is this one, judged only by the name.
bool IsThisHost(const std::string& name,
                const HostEnvironment& host_environment);

// Whether this process is in a container. There users are normally root, and a
// faulty job cannot damage the system.
bool IsContainer(const HostEnvironment& host_environment);

}  // namespace hvdlite::launch
