// Configuration: one point of a sweep. RunOrder: the order in which a sweep
// runs its points.
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

  // The variables in effect: those of the spec, then those of the setting.
  Variables environment = {};
  std::vector<std::string> launcher_flags = {};
  std::vector<std::string> arguments = {};
  // Variables that are removed before the program starts.
  std::vector<std::string> unset = {};
  int64_t batch = 0;  // the value of {batch}; 0: none

  int ranks() const { return nodes * ranks_per_node; }
};

// Identifies a configuration in its spec and in the results:
// "nodes=1 ranks_per_node=2 threads=1 mapping=core setting=good".
std::string Key(const Configuration& configuration);

// Describes it for people: "2 ranks x 1 thread, core, good".
std::string Describe(const Configuration& configuration);

// Returns the configurations of a spec: for each setting the product of worlds,
// mappings and threads, in the written order. InvalidArgument if worlds and
// mini-batch do not fit together, or if a configuration occurs twice.
absl::StatusOr<std::vector<Configuration>> Configurations(const Spec& spec);

// InvalidArgument if the configuration has more than one node and the spec
// names fewer hosts than nodes.
absl::Status CheckHosts(const Spec& spec, const Configuration& configuration);

// Returns one configuration per combination of the lists of `setting`; a
// missing list is taken from the spec.
absl::StatusOr<std::vector<Configuration>> ConfigurationsOf(
    const Spec& spec, const Setting& setting);

struct PlannedRun {
  size_t configuration = 0;  // index
  int repeat = 0;            // from 0

  bool operator==(const PlannedRun&) const = default;
};

// Each repeat runs all configurations before the next one begins. Every second
// repeat runs backwards, so that slow changes of the machine affect all
// configurations equally. More repeats do not change the order of earlier ones.
std::vector<PlannedRun> RunOrder(size_t configurations, int repeats);

}  // namespace hvdlite::scaling_sweep
