// Surroundings: everything that a job's plan depends on beside the command
// line. Tests pass their own.
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
  std::string rdma_device;  // behind it, as UCX names it: "mlx5_0:1"; or empty
};

struct Surroundings {
  base::Environment environment;
  std::function<absl::StatusOr<std::string>(const std::string& path)> read_file;
  std::function<bool(const std::string& path)> exists;
  // A file that this user may execute.
  std::function<bool(const std::string& path)> is_executable;
  std::function<absl::StatusOr<Machine>()> machine;
  std::function<absl::StatusOr<std::vector<support::Library>>(
      const std::string& program)>
      libraries;
  // What `PROGRAM --version` prints.
  std::function<absl::StatusOr<std::string>(const std::string& program)>
      version_of;
  // As BetterOpenBlasCoreHere().
  std::function<std::string(const std::string& library)> better_openblas_core;
  std::function<std::vector<NetworkInterface>()> interfaces;  // of this host
  std::string memory_policy;  // that this process was started with, or empty
  std::string self;           // path of hvdliterun
  std::string host_name;      // of this host
  bool root = false;
  bool terminal = false;  // is standard output
};

// This process's.
Surroundings RealSurroundings();

// The same with `variables` beside its own, or in their place.
Surroundings With(Surroundings surroundings,
                  std::vector<std::pair<std::string, std::string>> variables);

// For what hvdliterun itself says while a job runs; `rank`: of the process
// beside it.
base::Logger OwnLog(int rank = -1);

// Whether a host of this name is this one, as far as names tell.
bool IsThisHost(const std::string& name, const Surroundings& surroundings);

// In a container users are root, as a rule, and nothing is theirs to break.
bool IsContainer(const Surroundings& surroundings);

}  // namespace hvdlite::launch
