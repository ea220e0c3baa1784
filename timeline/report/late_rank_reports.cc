// The reports about ranks for which the others wait.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "timeline/report/reports.h"

namespace hvdlite::timeline {
namespace {

int64_t WaitNs(const RankStep& step) {
  return At(step.parts, StepPart::kWaitForRanks);
}

// The rank that the others of the step waited for.
const RankStep& LastOf(absl::Span<const RankStep> step) {
  return *std::min_element(step.begin(), step.end(),
                           [](const RankStep& a, const RankStep& b) {
                             return WaitNs(a) < WaitNs(b);
                           });
}

}  // namespace

void ReportStragglers(const Examined& examined, Report* report) {
  if (!examined.has_steps()) return report->AddLine(kNoSteps);
  struct RankLateness {
    int64_t last = 0;             // steps in which the others waited for it
    int64_t caused_ns = 0;        // sum of these waits
    std::vector<double> by_step;  // lateness as a part of the step
  };
  std::map<int64_t, RankLateness> ranks;
  int64_t steps = 0;
  const std::vector<RankStep> steady = examined.analysis.SteadySteps();
  for (const absl::Span<const RankStep> step : ByNumber(steady)) {
    const RankStep& last = LastOf(step);
    int64_t longest_wait_ns = 0;
    for (const RankStep& rank : step) {
      ranks[last.rank].caused_ns += WaitNs(rank) - WaitNs(last);
      longest_wait_ns = std::max(longest_wait_ns, WaitNs(rank));
    }
    // Without waits, no rank was last.
    if (longest_wait_ns > 0) ++ranks[last.rank].last;
    for (const RankStep& rank : step) {
      ranks[rank.rank].by_step.resize(static_cast<size_t>(steps));
      ranks[rank.rank].by_step.push_back(
          Share(longest_wait_ns - WaitNs(rank), rank.duration_ns()));
    }
    ++steps;
  }
  const std::map<int64_t, PartTimes> parts = PartsByRank(steady);
  Table table = {.name = "stragglers",
                 .columns = {"rank", "host", "last in % of steps",
                             "others waited, sum of ranks ms/step",
                             "computed ms/step", "loaded ms/step"},
                 .rows = {}};
  const auto count = static_cast<double>(std::max<int64_t>(steps, 1));
  for (const auto& [rank, times] : parts) {
    const auto per_step = [&](int64_t sum_ns) {
      return Cell::Milliseconds(static_cast<double>(sum_ns) / count);
    };
    const auto process = examined.trace.processes.find(rank);
    table.rows.push_back(
        {rank,
         process == examined.trace.processes.end() ? "" : process->second.host,
         Cell::Percent(static_cast<double>(ranks[rank].last) / count),
         per_step(ranks[rank].caused_ns),
         per_step(At(times, StepPart::kComputing)),
         per_step(At(times, StepPart::kInput))});
  }
  report->AddProse("",
                   "Means per step. The time that the others waited for a rank "
                   "is summed over them; the time that it computed and loaded "
                   "is its own.");
  report->AddTable(std::move(table));

  constexpr size_t kMostColumns = 64;
  constexpr absl::string_view kShades = " .:-=+*#%@";
  report->AddLine("");
  report->AddLine(
      "Lateness by rank and step; each shade is 5 % of the step, @ is 45 % or "
      "more:");
  const size_t columns =
      std::min(kMostColumns, static_cast<size_t>(std::max<int64_t>(steps, 1)));
  for (const auto& [rank, lateness] : ranks) {
    std::string row;
    for (size_t column = 0; column < columns; ++column) {
      const size_t begin = lateness.by_step.size() * column / columns;
      const size_t end = lateness.by_step.size() * (column + 1) / columns;
      double sum = 0;
      for (size_t i = begin; i < end; ++i) sum += lateness.by_step[i];
      const double mean =
          end > begin ? sum / static_cast<double>(end - begin) : 0;
      const auto shade = static_cast<size_t>(std::clamp(mean * 20, 0.0, 9.0));
      row.push_back(kShades[shade]);
    }
    report->AddLine(absl::StrFormat("rank %5d |%s|", rank, row));
  }
  if (!steady.empty()) {
    const std::string first = absl::StrCat(steady.front().number);
    const std::string last = absl::StrCat(steady.back().number);
    report->AddLine(absl::StrFormat(
        "step        %s%*s", first,
        static_cast<int>(std::max(columns, first.size() + last.size() + 1) -
                         first.size()),
        last));
  }
}

void ReportCriticalPath(const Examined& examined, Report* report) {
  if (!examined.has_steps()) return report->AddLine(kNoSteps);
  struct OnPath {
    int64_t steps = 0;
    PartTimes parts = {};
  };
  std::map<int64_t, OnPath> ranks;
  int64_t total_ns = 0;
  const std::vector<RankStep> steady = examined.analysis.SteadySteps();
  for (const absl::Span<const RankStep> step : ByNumber(steady)) {
    const RankStep& last = LastOf(step);
    OnPath& path = ranks[last.rank];
    ++path.steps;
    for (size_t i = 0; i < kStepParts; ++i) path.parts[i] += last.parts[i];
    total_ns += last.duration_ns();
  }
  Table table = {.name = "critical_path",
                 .columns = {"rank", "steps", "% of the path"},
                 .rows = {}};
  for (size_t i = 0; i < kStepParts; ++i) {
    table.columns.push_back(
        absl::StrCat(NameOf(static_cast<StepPart>(i)), " %"));
  }
  for (const auto& [rank, path] : ranks) {
    std::vector<Cell> row = {
        rank, path.steps, Cell::Percent(Share(TotalNs(path.parts), total_ns))};
    for (const int64_t part_ns : path.parts) {
      row.push_back(Cell::Percent(Share(part_ns, total_ns)));
    }
    table.rows.push_back(std::move(row));
  }
  report->AddLine(
      "In each step, the others wait for the last rank. For each rank: the "
      "number of steps in which it was last, and how it spent them:");
  report->AddTable(std::move(table));
}

}  // namespace hvdlite::timeline
