#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/machine.h"
#include "support/statistics.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/gather_facts.h"
#include "tools/doctor/checks/host_checks.h"

namespace hvdlite::doctor {
namespace {

constexpr double kLowShare = 0.7;  // of the median
constexpr size_t kBytes = size_t{64} << 20;
constexpr int kRounds = 5;

}  // namespace

std::vector<Finding> JudgeMemoryBandwidth(
    absl::Span<const double> gb_per_second,
    absl::Span<const std::string> host_of_rank) {
  if (gb_per_second.empty()) return {};
  const double median =
      support::Median({gb_per_second.begin(), gb_per_second.end()});
  std::vector<Finding> findings;
  std::map<std::string, double> of_host;
  for (size_t rank = 0; rank < gb_per_second.size(); ++rank) {
    of_host[host_of_rank[rank]] += gb_per_second[rank];
    if (gb_per_second[rank] >= kLowShare * median) continue;
    findings.push_back(
        {.verdict = Verdict::kWarning,
         .seen = absl::StrFormat(
             "rank %d on %s copies %.3g GB/s; the median of all ranks is %.3g",
             rank, host_of_rank[rank], gb_per_second[rank], median),
         .remedy = "see the checks numa and slow_core; bind memory to the "
                   "rank's node: hvdliterun --mem local",
         .ranks = {static_cast<int>(rank)}});
  }
  double lowest = 0;
  double highest = 0;
  std::string slowest;
  for (const auto& [host, sum] : of_host) {
    if (slowest.empty() || sum < lowest) {
      lowest = sum;
      slowest = host;
    }
    highest = std::max(highest, sum);
  }
  findings.push_back(
      {.seen = of_host.size() == 1
                   ? absl::StrFormat("copying with one thread per rank, all at "
                                     "once: %.3g GB/s per rank, %.3g in all",
                                     median, highest)
                   : absl::StrFormat(
                         "copying with one thread per rank, all at once: %.3g "
                         "GB/s per rank, %.3g (%s) to %.3g per host",
                         median, lowest, slowest, highest),
       .ranks = RanksUpTo(gb_per_second.size())});
  return findings;
}

absl::StatusOr<Findings> RunMemoryBandwidth(Session& session) {
  std::vector<char> from(kBytes, 1);
  std::vector<char> to(kBytes, 2);
  std::vector<double> rates;
  for (int round = 0; round < kRounds; ++round) {
    HVDLITE_RETURN_IF_ERROR(session.communicator.Barrier());
    from.front() = static_cast<char>(round);
    // CPU time, not wall time: slow_core checks for other processes.
    const double start = support::ThreadCpuSeconds();
    std::memcpy(to.data(), from.data(), kBytes);
    const double seconds = support::ThreadCpuSeconds() - start;
    // This use of the copy keeps the compiler from removing it.
    if (to.front() != from.front() || seconds <= 0) continue;
    rates.push_back(2e-9 * kBytes / seconds);
  }
  HVDLITE_ASSIGN_OR_RETURN(
      const std::vector<double> of_rank,
      GatherFacts<double>(session, support::Median(rates)));
  if (session.topology.rank != 0) return Findings();
  return JudgeMemoryBandwidth(of_rank, session.topology.host_of_rank);
}

}  // namespace hvdlite::doctor
