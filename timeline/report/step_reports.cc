// The reports about steps and about communication that they hide.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "timeline/report/reports.h"

namespace hvdlite::timeline {
void ReportSteps(const Examined& examined, Report* report) {
  if (!examined.has_steps()) return report->AddLine(kNoSteps);
  Table table = {.name = "steps",
                 .columns = {"step", examined.rank_word(), "start_ms", "ms"},
                 .rows = {},
                 .keys = 2};
  for (size_t i = 0; i < kStepParts; ++i) {
    table.columns.push_back(std::string(NameOf(static_cast<StepPart>(i))));
  }
  table.columns.push_back("hidden");
  for (const RankStep& step : examined.analysis.steps) {
    std::vector<Cell> row = {
        step.number, step.rank,
        Cell::Milliseconds(static_cast<double>(step.start_ns)),
        Cell::Milliseconds(static_cast<double>(step.duration_ns()))};
    for (const int64_t part_ns : step.parts) {
      row.push_back(Cell::Milliseconds(static_cast<double>(part_ns)));
    }
    row.push_back(Cell::Milliseconds(static_cast<double>(step.hidden_ns)));
    table.rows.push_back(std::move(row));
  }
  report->AddLine("Milliseconds of each step, by rank:");
  report->AddTable(std::move(table));
}

void ReportOverlap(const Examined& examined, Report* report) {
  if (!examined.has_steps()) return report->AddLine(kNoSteps);
  struct Sums {
    int64_t hidden_ns = 0;
    int64_t exposed_ns = 0;
    int64_t running_ns = 0;  // the part of exposed_ns in which buckets ran
    int64_t steps = 0;
  };
  std::map<int64_t, Sums> ranks;
  for (const RankStep& step : examined.analysis.SteadySteps()) {
    Sums& sums = ranks[step.rank];
    sums.hidden_ns += step.hidden_ns;
    sums.exposed_ns += ExposedNs(step.parts);
    sums.running_ns += At(step.parts, StepPart::kDataPlane) +
                       At(step.parts, StepPart::kCopies);
    ++sums.steps;
  }
  const bool knows_waits = examined.analysis.knows_waits;
  Table table = {.name = "overlap",
                 .columns = {examined.rank_word(), "buckets ms/step"},
                 .rows = {}};
  if (knows_waits) {
    table.columns.insert(table.columns.end(),
                         {"hidden ms/step", "hidden %", "exposed ms/step"});
  }
  for (const auto& [rank, sums] : ranks) {
    const auto per_step = [&, &sums = sums](int64_t sum_ns) {
      return Cell::Milliseconds(static_cast<double>(sum_ns) /
                                static_cast<double>(sums.steps));
    };
    const int64_t buckets_ns = sums.hidden_ns + sums.running_ns;
    table.rows.push_back({rank, per_step(buckets_ns)});
    if (!knows_waits) continue;
    table.rows.back().insert(table.rows.back().end(),
                             {per_step(sums.hidden_ns),
                              Cell::Percent(Share(sums.hidden_ns, buckets_ns)),
                              per_step(sums.exposed_ns)});
  }
  report->AddLine(
      knows_waits
          ? "Buckets that ran while the application computed (hidden), and all "
            "its waiting (exposed):"
          : absl::StrCat("Collectives", kNoWaits, ":"));
  report->AddTable(std::move(table));
}

}  // namespace hvdlite::timeline
