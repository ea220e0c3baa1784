// The load of a host's cores during the training, and the processes that caused
// it. The process beside a rank measures it; hvdliterun prints it at the end
// (--report).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "support/core_use.h"
#include "tools/hvdliterun/plan/machine.h"
#include "tools/hvdliterun/plan/plan.h"

namespace hvdlite::launch {

// Local ranks that are bound to a core.
struct BoundRanks {
  std::vector<int> computing = {};
  std::vector<int> coordinating = {};  // use it for their coordinators

  bool operator==(const BoundRanks&) const = default;
};

struct CoreReport {
  support::CoreUse use;
  BoundRanks ranks = {};

  bool operator==(const CoreReport&) const = default;
};

// The cores of one host, or some of them.
struct HostCores {
  std::string host;
  double seconds = 0;  // duration of the measurement
  std::vector<CoreReport> cores = {};

  bool operator==(const HostCores&) const = default;
};

// EncodeCores() returns lines of JSON without line ends, each short enough to
// be sent in one piece. DecodeCores() reads one; nullopt: it is not valid.
std::vector<std::string> EncodeCores(const HostCores& cores);
std::optional<HostCores> DecodeCores(absl::string_view line);

// Watches the cores of `machine` from a rank's first step to its last report
// about steps. Leaves out the time before the first report if more time
// follows.
class TrainingCores {
 public:
  // `plans`: of the ranks that share the machine. The first one has the local
  // rank `first_rank`.
  TrainingCores(Machine machine, const std::vector<RankPlan>& plans,
                int first_rank,
                support::SystemFiles files = support::SystemFiles());

  // Must be called about every second.
  void Look(int64_t now_ns);
  // The rank has reported steps, and the first of them began at `start_ns`.
  void SawSteps(int64_t start_ns);
  // Empty if no step was reported, or for less time than between two looks.
  std::vector<std::string> Report(const std::string& host) const;

 private:
  Machine machine_;
  std::vector<BoundRanks> bound_;  // by core
  support::CoreWatch watch_;
  std::deque<support::CoreLook> recent_;  // the last few
  // At the first step, and at the first and the last report.
  std::optional<support::CoreLook> begin_;
  std::optional<support::CoreLook> first_report_;
  std::optional<support::CoreLook> last_report_;
};

// A text for users about all hosts: a bar for each core of the first host and
// of hosts with remarks; cores that are idle although ranks compute there;
// shared cores.
std::string DescribeCores(const std::vector<HostCores>& hosts);

}  // namespace hvdlite::launch
