// Findings about one rank for which the others wait.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "timeline/diagnose/examiner.h"

namespace hvdlite::timeline {
namespace {

// Ranks always wait a little, because steps differ in length. Waiting is a
// finding from this part of the time of all ranks;
constexpr double kLeastWaiting = 0.08;
// or, if the same rank is late in most steps, from this part of the time of
// the others. (Of two ranks, the late one does not wait.) Cores of one
// processor differ by less.
constexpr double kLeastLateness = 0.12;
// A rank is late in most steps if its blame exceeds its fair share by this part
// of the rest. Of two ranks, each has half of the blame by chance.
constexpr double kMostlyLate = 0.5;
constexpr double kOftenLate = 0.2;

}  // namespace

void Examiner::AddLateRank() {
  if (blame_.empty()) return;
  const auto worst = std::max_element(
      blame_.begin(), blame_.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  const double share = Share(StepPart::kWaitForRanks);
  const double fair = 1.0 / static_cast<double>(ranks_.size());
  const double unfair = (worst->second - fair) / (1 - fair);
  const bool is_mostly_late = unfair >= kMostlyLate;
  if (share < kLeastWaiting &&
      !(is_mostly_late && UsualLateness(worst->first) >= kLeastLateness)) {
    return;
  }
  if (!is_mostly_late) {
    AddTurns(share, unfair >= kOftenLate ? worst->first : -1);
    return;
  }
  const int64_t rank = worst->first;
  const RankMeans& own = ranks_.at(rank);
  const auto excess = [&](auto value) {
    return value(own) - OfOthers(rank, value);
  };
  const double computing =
      excess([](const RankMeans& means) { return means.computing_ns; });
  const double input =
      excess([](const RankMeans& means) { return means.input_ns; });
  const double other =
      excess([](const RankMeans& means) { return means.other_ns; });
  // It is late because its threads lack a core: already reported.
  const double starved_ns =
      (own.use.main_delay -
       OfOthers(rank,
                [](const RankMeans& means) { return means.use.main_delay; })) *
      step_ns_;
  if (Has("starved-threads") && starved_ns > 0.5 * (computing + input)) {
    return;
  }
  Finding finding = {
      .cause = "straggler",
      .title = "",
      .evidence = {absl::StrCat(
          "the other ranks wait for this rank: ", Percent(worst->second),
          " of all waiting for ranks")},
      .remedy = "",
      // If this rank were as fast as the others, they would not wait.
      .share =
          OfOthers(rank, [](const RankMeans& means) { return means.wait_ns; }) /
          step_ns_,
      .rank = rank};
  const std::string who = absl::StrCat("Rank ", rank, " (", HostOf(rank), ")");
  const double faults =
      excess([](const RankMeans& means) { return means.use.minor_faults; });
  const double major =
      excess([](const RankMeans& means) { return means.use.major_faults; });
  const double system =
      excess([](const RankMeans& means) { return means.use.system_cpu; });
  // A main thread that runs all the time does not wait for the disk. Faults are
  // the cause only if their kernel time is a quarter of the delay or more.
  const bool blocks_on_disk = major > 20 && MainRuns(own) < 0.9;
  const bool faults_explain =
      faults > 3000 && system > 0.1 &&
      FaultTime(faults, system) * step_ns_ >=
          0.25 * (computing + std::max(input, 0.0));
  // The cause costs at most the extra time that this rank needs for it.
  const auto explain = [&](double excess_ns) {
    finding.share = std::min(finding.share, excess_ns / step_ns_);
  };
  if (input > computing && input > other) {
    finding.cause = "slow-input";
    finding.title =
        absl::StrCat(who, " loads its data more slowly than the others");
    finding.evidence.push_back(absl::StrCat(
        "loading takes ", Duration(own.input_ns), " per step on this rank, ",
        Duration(own.input_ns - input), " on the others"));
    explain(input);
    finding.remedy = absl::StrCat(
        "check the disk or mount from which ", HostOf(rank),
        " reads, copy the data to a fast local disk, or load ahead with more "
        "threads (--workers)");
  } else if (other > computing) {
    finding.cause = "evaluation";
    finding.title =
        absl::StrCat(who, " evaluates or saves while the others wait");
    finding.evidence.push_back(
        absl::StrCat("evaluation and commits take ", Duration(own.other_ns),
                     " per step on this rank, ", Duration(own.other_ns - other),
                     " on the others"));
    explain(other);
    finding.remedy =
        "evaluate on all ranks, each with its share of the samples; commit "
        "less often";
  } else if (blocks_on_disk || faults_explain) {
    finding.cause = "page-faults";
    finding.title = absl::StrCat(who, " is slowed down by page faults");
    finding.evidence.push_back(FaultsOf(own.use));
    finding.evidence.push_back(absl::StrFormat(
        "the other ranks have %.0f minor and %.0f major page faults per second",
        own.use.minor_faults - faults, own.use.major_faults - major));
    explain(computing + std::max(input, 0.0));
    finding.remedy = FaultRemedy(blocks_on_disk);
  } else {
    finding.title = absl::StrCat(who, " is slower than the others");
    finding.evidence.push_back(
        absl::StrCat("computing takes ", Duration(own.computing_ns),
                     " per step on this rank, ",
                     Duration(own.computing_ns - computing), " on the others"));
    AddKindOfSlowness(own, rank, &finding);
  }
  Add(std::move(finding));
}

double Examiner::UsualLateness(int64_t rank) const {
  std::vector<double> lateness_ns;
  for (const absl::Span<const RankStep> ranks : ByNumber(steps_)) {
    double others_ns = 0;
    double own_ns = 0;
    for (const RankStep& step : ranks) {
      const double wait_ns =
          static_cast<double>(Waits(step)) / static_cast<double>(step.count);
      (step.rank == rank ? own_ns : others_ns) += wait_ns;
    }
    const auto others =
        static_cast<double>(std::max<size_t>(ranks.size(), 2) - 1);
    lateness_ns.push_back(others_ns / others - own_ns);
  }
  if (lateness_ns.empty()) return 0;
  const auto middle =
      lateness_ns.begin() + static_cast<ptrdiff_t>(lateness_ns.size() / 2);
  std::nth_element(lateness_ns.begin(), middle, lateness_ns.end());
  return *middle / step_ns_;
}

double Examiner::MainRuns(const RankMeans& means) const {
  const double computing = means.computing_ns / step_ns_;
  return means.use.seconds > 0 && computing > 0
             ? means.use.main_cpu / computing
             : 1;
}

void Examiner::AddKindOfSlowness(const RankMeans& own, int64_t rank,
                                 Finding* finding) const {
  const double running = MainRuns(own);
  if (own.use.seconds > 0 && running < 0.7) {
    finding->evidence.push_back(absl::StrCat(
        "its main thread runs in only ", Percent(running),
        " of its computing time, and it does not lack a core: it sleeps or "
        "waits for something else"));
    finding->remedy = absl::StrCat(
        "find out what it waits for: `kill -USR2 PID` prints the stacks of "
        "this rank; mark suspected code with hvdlite::TraceSpan");
    return;
  }
  const double others_ns = OfOthers(
      rank, [](const RankMeans& means) { return means.computing_ns; });
  const double excess_ns = own.computing_ns - others_ns;
  const std::optional<double> work_ns = NanosPerWork();
  if (work_ns.has_value()) {
    const double others_work =
        OfOthers(rank, [](const RankMeans& means) { return means.work; });
    finding->evidence.push_back(
        absl::StrFormat("its mini-batches have %.2f times the others' work",
                        own.work / std::max(others_work, 1.0)));
    if ((own.work - others_work) * *work_ns >= kExplains * excess_ns) {
      finding->cause = "uneven-data";
      finding->title = absl::StrCat("Rank ", rank, " (", HostOf(rank),
                                    ") has larger mini-batches than the "
                                    "others");
      finding->remedy = kEqualWork;
      return;
    }
    const bool knows_cpu = std::all_of(
        ranks_.begin(), ranks_.end(),
        [](const auto& one) { return one.second.cpu_ns >= 0; });
    if (knows_cpu) {
      const double others_cpu_ns =
          OfOthers(rank, [](const RankMeans& means) { return means.cpu_ns; });
      finding->evidence.push_back(
          absl::StrCat("its main thread needs ", Duration(own.cpu_ns),
                       " of CPU time for the work of a step, the others need ",
                       Duration(others_cpu_ns)));
    }
    finding->remedy =
        absl::StrCat("run hvdlite_doctor on ", HostOf(rank),
                     " (frequency, BLAS, binding); do not use that host if it "
                     "stays slow");
    return;
  }
  if (own.use.seconds > 0) {
    finding->evidence.push_back(
        "its threads do not lack a core: it has more to compute, or slower "
        "cores");
  }
  finding->remedy = absl::StrCat(
      "check that all ranks have equal work: hvdlite::add_step_work records "
      "it; if they have, run hvdlite_doctor on ",
      HostOf(rank),
      " (frequency, BLAS, binding), and do not use that host if it stays "
      "slow");
}

}  // namespace hvdlite::timeline
