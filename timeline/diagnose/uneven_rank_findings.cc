// Findings about ranks that are late in turns: why are their steps unequal?
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "timeline/diagnose/examiner.h"

namespace hvdlite::timeline {
namespace {

// How much more the slowest rank of a step has than the fastest. The values are
// sums over steps.
struct Differences {
  double steps = 0;
  double time_ns = 0;   // input and computing
  double input_ns = 0;  // included in time_ns
  double work = 0;
  double cpu_ns = 0;  // of computing
  bool knows_work = true;
  bool knows_cpu = true;
};

int64_t BusyNs(const RankStep& step) {
  return At(step.parts, StepPart::kComputing) +
         At(step.parts, StepPart::kInput);
}

Differences Compare(absl::Span<const RankStep> steps) {
  Differences sums;
  for (const absl::Span<const RankStep> ranks : ByNumber(steps)) {
    const auto [fastest, slowest] = std::minmax_element(
        ranks.begin(), ranks.end(), [](const RankStep& a, const RankStep& b) {
          return BusyNs(a) < BusyNs(b);
        });
    sums.steps += static_cast<double>(slowest->count);
    sums.time_ns += static_cast<double>(BusyNs(*slowest) - BusyNs(*fastest));
    sums.input_ns += static_cast<double>(At(slowest->parts, StepPart::kInput) -
                                         At(fastest->parts, StepPart::kInput));
    sums.work += static_cast<double>(slowest->work - fastest->work);
    sums.cpu_ns += static_cast<double>(slowest->cpu_ns - fastest->cpu_ns);
    sums.knows_work &= slowest->work >= 0 && fastest->work >= 0;
    sums.knows_cpu &= slowest->cpu_ns >= 0 && fastest->cpu_ns >= 0;
  }
  return sums;
}

}  // namespace

std::optional<double> Examiner::NanosPerWork() const {
  double work = 0;
  double computing_ns = 0;
  for (const RankStep& step : steps_) {
    if (step.work < 0) return std::nullopt;
    work += static_cast<double>(step.work);
    computing_ns +=
        static_cast<double>(At(step.parts, StepPart::kComputing));
  }
  if (work <= 0) return std::nullopt;
  return computing_ns / work;
}

std::string Examiner::RankingOfCores() const {
  std::vector<std::pair<double, int64_t>> ranking;
  for (const auto& [rank, means] : ranks_) {
    if (means.cpu_ns < 0 || means.work <= 0) return "";
    ranking.emplace_back(means.cpu_ns / means.work, rank);
  }
  std::sort(ranking.rbegin(), ranking.rend());
  const double middle = ranking[ranking.size() / 2].first;
  if (middle <= 0) return "";
  constexpr size_t kSlowest = 4;
  std::vector<std::string> places;
  for (size_t i = 0; i < ranking.size(); ++i) {
    if (i >= kSlowest && i + 1 < ranking.size()) continue;
    const auto [cost, rank] = ranking[i];
    const std::string cpus =
        trace_.processes.at(rank).TextFact("cpu_list");
    places.push_back(absl::StrFormat(
        "%srank %d (%s%s%s) %.2f", i > kSlowest ? "... " : "", rank,
        HostOf(rank), cpus.empty() ? "" : ", CPUs ", cpus, cost / middle));
  }
  return absl::StrJoin(places, ", ");
}

void Examiner::AddTurns(double share, int64_t often_last) {
  const Differences differences = Compare(steps_);
  const bool knows_steps = std::all_of(
      steps_.begin(), steps_.end(),
      [](const RankStep& step) { return step.count == 1; });
  if (differences.time_ns <= 0) return;
  const auto of_difference = [&](double ns) {
    return ns / differences.time_ns;
  };
  const std::string who =
      often_last < 0 ? "Different ranks are late in different steps because "
                     : absl::StrCat(
                           "Different ranks are late in different "
                           "steps (rank ",
                           often_last, " most often) because ");
  std::vector<std::string> blames;
  for (const auto& [rank, blame] : blame_) {
    if (blames.size() < 8) {
      blames.push_back(absl::StrCat("rank ", rank, " ", Percent(blame)));
    }
  }
  Finding finding = {.cause = "late-in-turns",
                     .title = "",
                     .evidence = {absl::StrCat(
                         "waiting for ranks, by the rank that was late: ",
                         absl::StrJoin(blames, ", "))},
                     .remedy = "",
                     .share = share};
  // Sums over many steps do not show in which of them a rank was late.
  if (!knows_steps) {
    finding.title = absl::StrCat(
        who,
        "the work of their mini-batches or the speed of their cores "
        "differs");
    finding.remedy =
        "find out which: record some steps (HVDLITE_TIMELINE=trace.json "
        "HVDLITE_TIMELINE_STEPS=100-150) and run timeline_viewer why "
        "trace.json";
    Add(std::move(finding));
    return;
  }
  finding.evidence.insert(
      finding.evidence.begin(),
      absl::StrCat("for input and computing, the slowest rank of a step needs ",
                   Duration(differences.time_ns / differences.steps),
                   " more than the fastest"));
  if (of_difference(differences.input_ns) >= kExplains) {
    finding.cause = "slow-input";
    finding.title = absl::StrCat(who, "the time to load their input differs");
    finding.evidence.push_back(absl::StrCat(
        "loading is ", Percent(of_difference(differences.input_ns)),
        " of this difference"));
    finding.remedy = kLoadAhead;
    Add(std::move(finding));
    return;
  }
  const std::optional<double> work_ns = NanosPerWork();
  const bool knows_work = differences.knows_work && work_ns.has_value();
  if (knows_work) {
    const double explained = of_difference(differences.work * *work_ns);
    finding.evidence.push_back(absl::StrCat(
        "unequal work of the mini-batches explains ",
        Percent(std::clamp(explained, 0.0, 1.0)), " of this difference"));
    if (explained >= kExplains) {
      finding.cause = "uneven-data";
      finding.title = absl::StrCat(who, "their mini-batches differ in work");
      finding.remedy = kEqualWork;
      Add(std::move(finding));
      return;
    }
  }
  const double cpu = of_difference(differences.cpu_ns);
  if (differences.knows_cpu) {
    finding.evidence.push_back(
        absl::StrCat("the CPU time of the main threads explains ",
                     Percent(std::clamp(cpu, 0.0, 1.0)), " of it"));
  }
  if (differences.knows_cpu && cpu < kExplains) {
    AddLostCores(differences.time_ns / differences.steps, who,
                 std::move(finding));
    return;
  }
  if (differences.knows_cpu && knows_work) {
    finding.cause = "uneven-cores";
    finding.title =
        absl::StrCat(who, "their cores need different times for the same work");
    const std::string ranking = RankingOfCores();
    if (!ranking.empty()) {
      finding.evidence.push_back(absl::StrCat(
          "CPU time for the same work, median rank = 1: ", ranking));
    }
    finding.remedy =
        "bind each rank to a physical core of its own (hvdliterun does this); "
        "use fewer ranks if they compete for memory; run no other jobs on "
        "these hosts; check frequencies with hvdlite_doctor. A virtual machine "
        "may share its cores with others: request dedicated cores";
  } else {
    finding.title = absl::StrCat(
        who, knows_work
                 ? "the speed of their cores differs, or other programs use "
                   "the cores"
                 : "the work of their mini-batches or the speed of their "
                   "cores differs");
    finding.remedy =
        knows_work
            ? "run hvdlite_doctor on each host (frequency, binding, other jobs)"
            : "find out which: call hvdlite::add_step_work(bucket.numel()) in "
              "each step and record again. If the work differs, give all ranks "
              "mini-batches of equal work; otherwise run hvdlite_doctor on "
              "each host";
  }
  Add(std::move(finding));
}

void Examiner::AddLostCores(double difference_ns, const std::string& who,
                            Finding finding) {
  const double delay_ns =
      OfAll([](const RankMeans& means) { return means.use.main_delay; }) *
      step_ns_ * static_cast<double>(ranks_.size());
  const bool is_sampled = OfAll([](const RankMeans& means) {
                            return means.use.seconds;
                          }) > 0;
  if (is_sampled && delay_ns >= kExplains * difference_ns) {
    // AddStarvation() has reported it.
    if (Has("starved-threads")) return;
    finding.cause = "starved-threads";
    finding.title = absl::StrCat(who, "their threads wait for a core");
    finding.evidence.push_back(
        absl::StrCat("the main threads waited for a core for ",
                     Duration(delay_ns), " per step, summed over all ranks"));
    finding.remedy =
        "other programs run on these cores: find them with top, then run "
        "hvdlite_doctor; bind ranks with hvdliterun, and request whole nodes "
        "from the batch system";
  } else {
    finding.title =
        absl::StrCat(who, "their main threads do not compute all the time");
    finding.evidence.push_back(
        is_sampled
            ? "they do not lack a core: they sleep or wait for something else"
            : "this trace does not show whether they lacked a core");
    finding.remedy =
        "find out what they wait for (locks, files, other threads): `kill "
        "-USR2 PID` prints the stacks of a rank; mark suspected code with "
        "hvdlite::TraceSpan; look for other programs with top";
  }
  Add(std::move(finding));
}

}  // namespace hvdlite::timeline
