#include <time.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "negotiation/world/start_agreement.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/gather_facts.h"
#include "tools/doctor/checks/world_checks.h"

namespace hvdlite::doctor {
namespace {

constexpr double kNoteSeconds = 0.01;
constexpr double kWarningSeconds = 1;

// The clock of the times in logs and of file dates.
class WallClock final : public base::Clock {
 public:
  int64_t NowNanos() const override {
    timespec now = {};
    clock_gettime(CLOCK_REALTIME, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
};

std::string DurationText(double seconds) {
  if (seconds >= 1) return absl::StrFormat("%.3g s", seconds);
  if (seconds >= 1e-3) return absl::StrFormat("%.3g ms", seconds * 1e3);
  return absl::StrFormat("%.3g us", seconds * 1e6);
}

}  // namespace

std::vector<Finding> JudgeClocks(absl::Span<const int64_t> offset_ns,
                                 absl::Span<const std::string> host_of_rank) {
  const auto ranks_of_host = RanksByHost(host_of_rank);
  if (ranks_of_host.size() == 1) {
    return {{.seen = "one host: one clock",
             .ranks = RanksUpTo(host_of_rank.size())}};
  }
  std::vector<Finding> findings;
  double widest = 0;
  for (const auto& [host, ranks] : ranks_of_host) {
    // Positive: the host is behind rank 0's.
    const double behind = static_cast<double>(offset_ns[ranks.front()]) / 1e9;
    widest = std::max(widest, std::abs(behind));
    if (std::abs(behind) < kNoteSeconds) continue;
    findings.push_back(
        {.verdict = std::abs(behind) < kWarningSeconds ? Verdict::kNote
                                                       : Verdict::kWarning,
         .seen = absl::StrCat(
             "the wall clock of ", host, " is ", DurationText(std::abs(behind)),
             behind > 0 ? " behind" : " ahead of", " the clock of ",
             host_of_rank.front(),
             ": times in logs and dates of files are misleading"),
         .remedy = absl::StrCat("ssh ", host, " chronyc makestep"),
         .ranks = ranks});
  }
  if (findings.empty()) {
    findings.push_back(
        {.seen = absl::StrCat("the wall clocks of ", ranks_of_host.size(),
                              " hosts differ by ", DurationText(widest),
                              " at most"),
         .ranks = RanksUpTo(host_of_rank.size())});
  }
  return findings;
}

absl::StatusOr<Findings> RunClocks(Session& session) {
  HVDLITE_ASSIGN_OR_RETURN(
      const internal::ClockOffset clock,
      internal::MeasureClockOffset(session.communicator, session.topology,
                                   WallClock()));
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets,
                           GatherFacts<int64_t>(session, clock.offset_ns));
  if (session.topology.rank != 0) return Findings();
  return JudgeClocks(offsets, session.topology.host_of_rank);
}

}  // namespace hvdlite::doctor
