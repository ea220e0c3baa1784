// Ranks take turns in being late: what makes their steps unequal?
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

// What the slowest rank of a step has more than the fastest: sums over steps.
struct Differences {
  double steps = 0;
  double time_ns = 0;   // input and computing
  double input_ns = 0;  // of it
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
      often_last < 0
          ? "Ranks take turns in being late: "
          : absl::StrCat("Ranks are late in turns, rank ", often_last,
                         " most often: ");
  std::vector<std::string> blames;
  for (const auto& [rank, blame] : blame_) {
    if (blames.size() < 8) {
      blames.push_back(absl::StrCat("rank ", rank, " ", Percent(blame)));
    }
  }
  Finding finding = {
      .cause = "late-in-turns",
      .title = "",
      .evidence = {absl::StrCat("of the waits for ranks, last was: ",
                                absl::StrJoin(blames, ", "))},
      .remedy = "",
      .share = share};
  // Sums over many steps do not show in which of them a rank was late.
  if (!knows_steps) {
    finding.title = absl::StrCat(
        who, "the work of their batches differs, or the speed of their cores");
    finding.remedy =
        "find out which: timeline_viewer why, of a timeline of some steps "
        "(HVDLITE_TIMELINE=trace.json HVDLITE_TIMELINE_STEPS=100-150)";
    Add(std::move(finding));
    return;
  }
  finding.evidence.insert(
      finding.evidence.begin(),
      absl::StrCat("within a step, the slowest rank computes ",
                   Duration(differences.time_ns / differences.steps),
                   " longer than the fastest"));
  if (of_difference(differences.input_ns) >= kExplains) {
    finding.cause = "slow-input";
    finding.title = absl::StrCat(who, "loading their input takes unequally long");
    finding.evidence.push_back(
        absl::StrCat("loading is ", Percent(of_difference(differences.input_ns)),
                     " of that difference"));
    finding.remedy = kLoadAhead;
    Add(std::move(finding));
    return;
  }
  const std::optional<double> work_ns = NanosPerWork();
  const bool knows_work = differences.knows_work && work_ns.has_value();
  if (knows_work) {
    const double explained = of_difference(differences.work * *work_ns);
    finding.evidence.push_back(absl::StrCat(
        "unequal work of their batches explains ",
        Percent(std::clamp(explained, 0.0, 1.0)), " of that difference"));
    if (explained >= kExplains) {
      finding.cause = "uneven-data";
      finding.title = absl::StrCat(who, "their batches differ in work");
      finding.remedy = kEqualWork;
      Add(std::move(finding));
      return;
    }
  }
  const double cpu = of_difference(differences.cpu_ns);
  if (differences.knows_cpu) {
    finding.evidence.push_back(
        absl::StrCat("the CPU time of their main threads explains ",
                     Percent(std::clamp(cpu, 0.0, 1.0)), " of it"));
  }
  if (differences.knows_cpu && cpu < kExplains) {
    AddLostCores(differences.time_ns / differences.steps, who,
                 std::move(finding));
    return;
  }
  if (differences.knows_cpu && knows_work) {
    finding.cause = "uneven-cores";
    finding.title = absl::StrCat(
        who, "their cores need unequal time for the same work");
    const std::string ranking = RankingOfCores();
    if (!ranking.empty()) {
      finding.evidence.push_back(absl::StrCat(
          "CPU time for the same work, the middle rank's is 1: ", ranking));
    }
    finding.remedy =
        "one rank a physical core, so that none shares it with another thread "
        "(hvdliterun binds so), and fewer ranks if they compete for memory; "
        "no other jobs on these hosts; frequencies: hvdlite_doctor. A virtual "
        "machine's cores may belong to others, too: ask for whole ones";
  } else {
    finding.title = absl::StrCat(
        who,
        knows_work ? "the speed of their cores differs, or others use them"
                   : "the work of their batches differs, or the speed of their "
                     "cores");
    finding.remedy =
        knows_work
            ? "hvdlite_doctor on each host (frequency, binding, other jobs)"
            : "find out which: call hvdlite::add_step_work(batch.numel()) in "
              "each step and look again. Where all batches are equal it is "
              "the cores: hvdlite_doctor on each host; else give ranks "
              "batches of equal work";
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
    // That has been reported.
    if (Has("starved-threads")) return;
    finding.cause = "starved-threads";
    finding.title = absl::StrCat(who, "their threads wait for a core");
    finding.evidence.push_back(absl::StrCat(
        "the main threads could run and had no core for ", Duration(delay_ns),
        " a step, all ranks together"));
    finding.remedy =
        "other programs run on their cores: look with top, then "
        "hvdlite_doctor; bind ranks with hvdliterun, and ask the queue for "
        "whole nodes";
  } else {
    finding.title =
        absl::StrCat(who, "their main threads do not compute all the time");
    finding.evidence.push_back(
        is_sampled
            ? "they had their cores: they sleep, or wait for something else"
            : "whether they had a core is not known");
    finding.remedy =
        "see what they wait for (locks, files, other threads): kill -USR2 a "
        "rank's process prints its stacks; mark suspects with "
        "hvdlite::TraceSpan. top shows whether other programs run";
  }
  Add(std::move(finding));
}

}  // namespace hvdlite::timeline
