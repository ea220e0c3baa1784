// What a host's cores did during the training, and for whom: watched by the
// process beside a rank, told by hvdliterun at the end (--report).
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
  std::vector<int> coordinating = {};  // have it for their coordinators

  bool operator==(const BoundRanks&) const = default;
};

struct CoreReport {
  support::CoreUse use;
  BoundRanks ranks = {};

  bool operator==(const CoreReport&) const = default;
};

// Of one host; or some of its cores.
struct HostCores {
  std::string host;
  double seconds = 0;  // that were watched
  std::vector<CoreReport> cores = {};

  bool operator==(const HostCores&) const = default;
};

// Lines of JSON without their ends, each of few enough bytes to travel in one
// piece; and what one told. nullopt: it is none.
std::vector<std::string> EncodeCores(const HostCores& cores);
std::optional<HostCores> DecodeCores(absl::string_view line);

// Watches the cores of `machine` from a rank's first step to its last report
// about steps; without what comes before the first report, where more follows.
class TrainingCores {
 public:
  // `plans`: of the ranks that share the machine, the first of which has the
  // local rank `first_rank`.
  TrainingCores(Machine machine, const std::vector<RankPlan>& plans,
                int first_rank,
                support::SystemFiles files = support::SystemFiles());

  // About every second.
  void Look(int64_t now_ns);
  // The rank has told of steps, the first of which began then.
  void SawSteps(int64_t start_ns);
  // Empty if no step was seen, or not for as long as two looks are apart.
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

// What all hosts have told, for people: a bar for each core of the first host,
// and of others of which there is something to say; which cores sit idle though
// ranks compute there; which are shared.
std::string DescribeCores(const std::vector<HostCores>& hosts);

}  // namespace hvdlite::launch
