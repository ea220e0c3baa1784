// The report about the difference of two traces.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "timeline/diagnose/trace_summary.h"
#include "timeline/report/reports.h"

namespace hvdlite::timeline {
namespace {

// Rows of two traces side by side, with the growth of each.
class Differences {
 public:
  void Set(const std::string& name, bool after, double ns, double count) {
    Values& values = rows_[name];
    (after ? values.after_ns : values.before_ns) = ns;
    (after ? values.after_count : values.before_count) = count;
  }

  // Adds a table, the largest growth first. Returns the name of the first row
  // and its part of all growth.
  std::pair<std::string, double> AddTo(const std::string& table_name,
                                       const std::string& what,
                                       Report* report) const {
    std::vector<std::pair<std::string, Values>> sorted(rows_.begin(),
                                                       rows_.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) {
                       return std::abs(a.second.growth_ns()) >
                              std::abs(b.second.growth_ns());
                     });
    double growth_ns = 0;
    for (const auto& [name, values] : sorted) growth_ns += values.growth_ns();
    Table table = {.name = table_name,
                   .columns = {what, "A ms", "B ms", "B-A ms", "B/A",
                               "B/A of one", "% of the difference"},
                   .rows = {}};
    for (const auto& [name, values] : sorted) {
      table.rows.push_back(
          {name, Cell::Milliseconds(values.before_ns),
           Cell::Milliseconds(values.after_ns),
           Cell::Milliseconds(values.growth_ns()),
           values.before_ns > 0
               ? Cell::Number(values.after_ns / values.before_ns, 2)
               : Cell("-"),
           values.growth_of_one() > 0 ? Cell::Number(values.growth_of_one(), 2)
                                      : Cell("-"),
           Cell::Percent(growth_ns == 0 ? 0 : values.growth_ns() / growth_ns)});
    }
    report->AddTable(std::move(table));
    if (sorted.empty() || growth_ns == 0) return {"", 0};
    return {sorted.front().first,
            sorted.front().second.growth_ns() / growth_ns};
  }

  // The time of one occurrence of `name` in B, divided by its time in A; 0 if
  // it is missing in one of them.
  double GrowthOfOne(const std::string& name) const {
    const auto row = rows_.find(name);
    return row == rows_.end() ? 0 : row->second.growth_of_one();
  }

 private:
  struct Values {
    double before_ns = 0;
    double after_ns = 0;
    double before_count = 0;
    double after_count = 0;

    double growth_ns() const { return after_ns - before_ns; }
    // The same for one row.
    double growth_of_one() const {
      if (before_ns <= 0 || after_count <= 0) return 0;
      return after_ns / after_count / (before_ns / before_count);
    }
  };

  std::map<std::string, Values> rows_;
};

// Copies into and out of the fusion buffer use neither the network nor other
// ranks. If they are slower, so is the thread that copies.
void AddCopies(const Differences& names, Report* report) {
  const double in = names.GrowthOfOne("MEMCPY_IN_FUSION_BUFFER");
  const double out = names.GrowthOfOne("MEMCPY_OUT_FUSION_BUFFER");
  if (in < 2 || out < 2) return;
  report->AddLine(absl::StrFormat(
      "A copy into the fusion buffer takes %.1f times as long in B, a copy out "
      "of it %.1f times: the background thread gets less CPU time, or buckets "
      "are larger.",
      in, out));
}

}  // namespace

void ReportDifference(const Examined& before, const Examined& after,
                      Report* report) {
  report->AddLine(absl::StrCat("A: ", before.path));
  report->AddLine(absl::StrCat("B: ", after.path));
  std::pair<std::string, double> largest;
  Differences names;
  const bool by_parts = before.has_steps() && after.has_steps();
  if (by_parts) {
    Differences parts;
    for (const bool is_after : {false, true}) {
      const auto steps = (is_after ? after : before).analysis.SteadySteps();
      const PartTimes sums = SumOfParts(steps);
      const double count =
          static_cast<double>(std::max<size_t>(steps.size(), 1));
      for (size_t i = 0; i < kStepParts; ++i) {
        parts.Set(std::string(NameOf(static_cast<StepPart>(i))), is_after,
                  static_cast<double>(sums[i]) / count, count);
      }
    }
    report->AddLine("Mean of a step:");
    largest = parts.AddTo("parts", "Part", report);
  } else {
    for (const bool is_after : {false, true}) {
      const TraceSummary summary = Summarize((is_after ? after : before).trace);
      for (const NameSummary& name : summary.names) {
        names.Set(name.name, is_after, static_cast<double>(name.self_ns),
                  static_cast<double>(name.occurrences));
      }
    }
    report->AddLine("Sums of the self times of events:");
    largest = names.AddTo("events", "Name", report);
  }
  if (largest.first.empty()) {
    return report->AddLine("There is no difference.");
  }
  report->AddLine(absl::StrFormat("%s explains %.0f %% of the difference.",
                                  largest.first, largest.second * 100));
  if (!by_parts) AddCopies(names, report);
}

}  // namespace hvdlite::timeline
