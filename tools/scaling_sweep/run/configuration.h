// Configuration: one point of a sweep; and the order in which a sweep runs its
// points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/scaling_sweep/run/sweep.pb.h"

namespace hvdlite::scaling_sweep {

using Variables = std::vector<std::pair<std::string, std::string>>;

struct Configuration {
  int nodes = 1;
  int ranks_per_node = 1;
  int threads = 0;           // 0: the launcher's choice
  std::string mapping = {};  // empty: the launcher's default
  std::string setting = {};  // its name
  bool alone = false;        // without the launcher

  // In effect, later ones first: the setting's after the SPEC's.
  Variables environment = {};
  std::vector<std::string> launcher_flags = {};
  std::vector<std::string> arguments = {};
  // Variables that the program does not get, whoever sets them.
  std::vector<std::string> unset = {};
  int64_t batch = 0;  // of {batch}; 0: none

  int ranks() const { return nodes * ranks_per_node; }
};

// Tells the configurations of a SPEC apart, and the same one again in its
// results: "nodes=1 ranks_per_node=2 threads=1 mapping=core setting=good".
std::string Key(const Configuration& configuration);

// A line for people: "2 ranks x 1 thread, core, good".
std::string Describe(const Configuration& configuration);

// Of a SPEC: for each setting the product of worlds, mappings and threads, in
// the order written. InvalidArgument where worlds and batch do not fit
// together, or where a configuration would come twice.
absl::StatusOr<std::vector<Configuration>> Configurations(const Spec& spec);

// InvalidArgument unless the SPEC names as many hosts as the configuration has
// nodes; on one node it need not.
absl::Status CheckHosts(const Spec& spec, const Configuration& configuration);

// One per combination of `setting`'s lists, or the SPEC's where it has none.
absl::StatusOr<std::vector<Configuration>> ConfigurationsOf(
    const Spec& spec, const Setting& setting);

struct PlannedRun {
  size_t configuration = 0;  // index
  int repeat = 0;            // from 0

  bool operator==(const PlannedRun&) const = default;
};

// Every repeat goes through all configurations before the next one begins,
// backwards every second time, so that what changes on the machine meanwhile
// meets all of them alike. More repeats do not change the order of the first
// ones.
std::vector<PlannedRun> RunOrder(size_t configurations, int repeats);

}  // namespace hvdlite::scaling_sweep
