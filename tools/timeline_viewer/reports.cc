#include "tools/timeline_viewer/reports.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace hvdlite::timeline_viewer {
namespace {

using timeline::At;
using timeline::ExposedNs;
using timeline::Finding;
using timeline::kStepParts;
using timeline::PartTimes;
using timeline::RankStep;
using timeline::StepPart;
using timeline::StepSource;
using timeline::TotalNs;
using timeline::Trace;
using timeline::TraceSlice;

// A table has a column for each rank up to so many.
constexpr size_t kMostRankColumns = 8;

constexpr char kNoSteps[] =
    "This trace does not tell its training steps: record one with "
    "hvdlite::DistributedOptimizer and HVDLITE_TIMELINE";

double Share(int64_t part_ns, int64_t total_ns) {
  return total_ns == 0
             ? 0
             : static_cast<double>(part_ns) / static_cast<double>(total_ns);
}

// Steps of the same number, one by one.
template <typename Use>
void ForEachStep(const std::vector<RankStep>& steps, Use use) {
  for (size_t i = 0; i < steps.size();) {
    size_t end = i;
    while (end < steps.size() && steps[end].number == steps[i].number) ++end;
    use(std::vector<RankStep>(steps.begin() + static_cast<ptrdiff_t>(i),
                              steps.begin() + static_cast<ptrdiff_t>(end)));
    i = end;
  }
}

int64_t WaitNs(const RankStep& step) {
  return At(step.parts, StepPart::kWaitForRanks);
}

// The rank that the others of the step waited for.
const RankStep& LastOf(const std::vector<RankStep>& step) {
  return *std::min_element(step.begin(), step.end(),
                           [](const RankStep& a, const RankStep& b) {
                             return WaitNs(a) < WaitNs(b);
                           });
}

std::string HostsOf(const Trace& trace) {
  std::set<std::string> hosts;
  for (const auto& [pid, process] : trace.processes) {
    if (process.is_rank) hosts.insert(process.host);
  }
  return absl::StrJoin(hosts, ", ");
}

double SpanNs(const Trace& trace) {
  if (trace.slices.empty()) return 0;
  auto first_ns = static_cast<double>(trace.slices.front().start_ns);
  double last_ns = first_ns;
  for (const TraceSlice& slice : trace.slices) {
    const auto start_ns = static_cast<double>(slice.start_ns);
    first_ns = std::min(first_ns, start_ns);
    last_ns =
        std::max(last_ns, start_ns + static_cast<double>(slice.duration_ns));
  }
  return last_ns - first_ns;
}

std::string CostOf(const Finding& finding) {
  return absl::StrFormat("%.0f %% of %s", finding.share * 100,
                         finding.of_run ? "the run" : "a step");
}

// "rank 0" ... for as many as have a column.
std::vector<int64_t> RankColumns(
    const std::map<int64_t, PartTimes>& parts_by_rank) {
  std::vector<int64_t> ranks;
  for (const auto& [rank, parts] : parts_by_rank) {
    if (ranks.size() < kMostRankColumns) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace

Examined::Examined(std::string trace_path, Trace read)
    : path(std::move(trace_path)),
      trace(std::move(read)),
      analysis(timeline::AnalyzeSteps(trace)),
      findings(timeline::FindCauses(trace, analysis)) {}

bool Examined::has_steps() const {
  return analysis.source != StepSource::kWhole && !analysis.steps.empty();
}

Examined::Examined(Trace ranks, timeline::StepAnalysis told)
    : trace(std::move(ranks)),
      analysis(std::move(told)),
      findings(timeline::FindCauses(trace, analysis)) {}

void DescribeTrace(const Examined& examined, Report* report) {
  const Trace& trace = examined.trace;
  int64_t dropped_events = 0;
  int64_t ranks = 0;
  int64_t size = 0;
  for (const auto& [pid, process] : trace.processes) {
    dropped_events += process.dropped_events;
    if (!process.is_rank) continue;
    ++ranks;
    size = std::max(size, process.world_size);
  }
  report->AddLine(absl::StrCat(
      "Trace:     ", trace.files.size() == 1
                         ? trace.files.front()
                         : absl::StrCat(examined.path, " (", trace.files.size(),
                                        " parts, not merged)")));
  report->AddLine(
      ranks == 0
          ? absl::StrCat("Processes: ", trace.processes.size(),
                         " (a trace of another program; in Horovod's each is "
                         "a tensor)")
          : absl::StrCat("Ranks:     ", ranks, " of ", size, " on ",
                         HostsOf(trace)));
  report->AddLine(absl::StrFormat("Time span: %.3f ms", SpanNs(trace) / 1e6));
  report->AddLine(absl::StrCat("Events:    ", trace.slices.size(),
                               ", dropped while recording: ", dropped_events));
  for (const std::string& warning : trace.warnings) {
    report->AddLine(absl::StrCat("Warning:   ", warning));
  }
  report->AddLine("");
}

void ReportParts(const Examined& examined, Report* report) {
  if (!examined.has_steps() || !examined.analysis.knows_waits) return;
  const std::vector<RankStep> steps = examined.analysis.SteadySteps();
  const std::map<int64_t, PartTimes> by_rank = timeline::PartsByRank(steps);
  const std::vector<int64_t> ranks = RankColumns(by_rank);
  const PartTimes all = timeline::SumOfParts(steps);
  int64_t rank_steps = 0;
  int64_t all_steps = 0;
  for (const RankStep& step : steps) rank_steps += step.count;
  for (const RankStep& step : examined.analysis.steps) all_steps += step.count;
  const auto ranks_here = static_cast<int64_t>(by_rank.size());
  const auto count = static_cast<double>(rank_steps);
  const int64_t total_ns = TotalNs(all);
  report->AddLine(absl::StrFormat(
      "A step takes %.3f ms: mean of %d of %d steps on %d %s%s",
      static_cast<double>(total_ns) / count / 1e6, rank_steps / ranks_here,
      all_steps / ranks_here, ranks_here, ranks_here == 1 ? "rank" : "ranks",
      rank_steps == all_steps ? ""
      : examined.path.empty() ? " (the first seconds are left out)"
                              : " (the first is left out)"));
  Table table = {.name = "parts", .columns = {"Part", "ms", "%"}, .rows = {}};
  for (const int64_t rank : ranks) {
    table.columns.push_back(absl::StrCat("rank ", rank, " %"));
  }
  const auto add = [&](const std::string& name, auto part_of) {
    std::vector<Cell> row = {
        name, Cell::Milliseconds(static_cast<double>(part_of(all)) / count),
        Cell::Percent(Share(part_of(all), total_ns))};
    for (const int64_t rank : ranks) {
      const PartTimes& parts = by_rank.at(rank);
      row.push_back(Cell::Percent(Share(part_of(parts), TotalNs(parts))));
    }
    table.rows.push_back(std::move(row));
  };
  for (size_t i = 0; i < kStepParts; ++i) {
    const auto part = static_cast<StepPart>(i);
    if (part == StepPart::kWaitForRanks) {
      add("exposed communication", timeline::ExposedNs);
    }
    const bool exposed = part >= StepPart::kWaitForRanks;
    add(absl::StrCat(exposed ? "  " : "", timeline::NameOf(part)),
        [part](const PartTimes& parts) { return At(parts, part); });
  }
  add("step", timeline::TotalNs);
  table.has_totals = true;
  report->AddTable(std::move(table));
  int64_t hidden_ns = 0;
  for (const RankStep& step : steps) hidden_ns += step.hidden_ns;
  report->AddLine(absl::StrFormat(
      "Behind computing, unnoticed: %.3f ms of communication a step%s",
      static_cast<double>(hidden_ns) / count / 1e6,
      by_rank.size() > ranks.size()
          ? absl::StrFormat("; --by-rank shows all %d ranks", by_rank.size())
          : ""));
  report->AddLine("");
}

void ReportFirstFinding(const Examined& examined, Report* report) {
  if (!examined.has_steps() && examined.findings.empty()) return;
  if (examined.findings.empty()) {
    if (examined.analysis.knows_waits) {
      report->AddLine(
          "Finding:   nothing stands out that costs more than 3 % of a step");
      report->AddLine("");
    }
    return;
  }
  const Finding& first = examined.findings.front();
  report->AddLine(
      absl::StrCat("Finding:   ", first.title, " (", CostOf(first), ")"));
  report->AddLine(absl::StrCat("Remedy:    ", first.remedy));
  if (examined.path.empty()) {
    for (const std::string& evidence : first.evidence) {
      report->AddLine(absl::StrCat("Evidence:  ", evidence));
    }
    return;
  }
  for (size_t i = 1; i < examined.findings.size(); ++i) {
    const Finding& other = examined.findings[i];
    report->AddLine(
        absl::StrCat("Also:      ", other.title, " (", CostOf(other), ")"));
  }
  report->AddLine(
      absl::StrCat("Evidence:  timeline_viewer why ", examined.path));
  report->AddLine("");
}

void ReportWhy(const Examined& examined, Report* report) {
  Table table = {.name = "findings",
                 .columns = {"cause", "share", "of", "rank", "title",
                             "evidence", "remedy", "start_ms", "end_ms"},
                 .rows = {}};
  if (examined.findings.empty()) {
    report->AddLine(
        examined.analysis.knows_waits && examined.has_steps()
            ? "Nothing stands out that costs more than 3 % of a step."
            : absl::StrCat(kNoSteps, "."));
  }
  int64_t number = 0;
  for (const Finding& finding : examined.findings) {
    report->AddLine(
        absl::StrCat(++number, ". ", finding.title, ": ", CostOf(finding)));
    for (const std::string& evidence : finding.evidence) {
      report->AddLine(absl::StrCat("   - ", evidence));
    }
    report->AddLine(absl::StrCat("   Remedy: ", finding.remedy));
    report->AddLine("");
  }
  for (const Finding& finding : examined.findings) {
    table.rows.push_back(
        {finding.cause, Cell::Number(finding.share, 4),
         finding.of_run ? "run" : "step", finding.rank, finding.title,
         absl::StrJoin(finding.evidence, "; "), finding.remedy,
         Cell::Milliseconds(static_cast<double>(finding.start_ns)),
         Cell::Milliseconds(static_cast<double>(finding.end_ns))});
  }
  report->AddData(std::move(table));
}

void ReportSteps(const Examined& examined, Report* report) {
  if (!examined.has_steps()) return report->AddLine(kNoSteps);
  Table table = {.name = "steps",
                 .columns = {"step", "rank", "start_ms", "ms"},
                 .rows = {}};
  for (size_t i = 0; i < kStepParts; ++i) {
    table.columns.push_back(
        std::string(timeline::NameOf(static_cast<StepPart>(i))));
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

void ReportStragglers(const Examined& examined, Report* report) {
  if (!examined.has_steps()) return report->AddLine(kNoSteps);
  struct RankLateness {
    int64_t last = 0;             // steps in which the others waited for it
    int64_t caused_ns = 0;        // their waits
    std::vector<double> by_step;  // lateness as a share of the step
  };
  std::map<int64_t, RankLateness> ranks;
  int64_t steps = 0;
  const std::vector<RankStep> steady = examined.analysis.SteadySteps();
  ForEachStep(steady, [&](const std::vector<RankStep>& step) {
    const RankStep& last = LastOf(step);
    int64_t longest_wait_ns = 0;
    for (const RankStep& rank : step) {
      ranks[last.rank].caused_ns += WaitNs(rank) - WaitNs(last);
      longest_wait_ns = std::max(longest_wait_ns, WaitNs(rank));
    }
    // With no waits there is no last.
    if (longest_wait_ns > 0) ++ranks[last.rank].last;
    for (const RankStep& rank : step) {
      ranks[rank.rank].by_step.resize(static_cast<size_t>(steps));
      ranks[rank.rank].by_step.push_back(
          Share(longest_wait_ns - WaitNs(rank), rank.duration_ns()));
    }
    ++steps;
  });
  const std::map<int64_t, PartTimes> parts = timeline::PartsByRank(steady);
  Table table = {
      .name = "stragglers",
      .columns = {"rank", "host", "last in % of steps", "others waited ms/step",
                  "computing ms/step", "input ms/step"},
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
  report->AddTable(std::move(table));

  constexpr size_t kMostColumns = 64;
  constexpr absl::string_view kShades = " .:-=+*#%@";
  report->AddLine("");
  report->AddLine(
      "Lateness, by rank and step; a shade is 5 % of the step, @ is 45 % or "
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
}

void ReportOverlap(const Examined& examined, Report* report) {
  if (!examined.has_steps()) return report->AddLine(kNoSteps);
  struct Sums {
    int64_t hidden_ns = 0;
    int64_t exposed_ns = 0;
    int64_t running_ns = 0;  // exposed, batches alone
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
  Table table = {.name = "overlap",
                 .columns = {"rank", "batches ms/step", "hidden ms/step",
                             "hidden %", "exposed ms/step"},
                 .rows = {}};
  for (const auto& [rank, sums] : ranks) {
    const auto per_step = [&, &sums = sums](int64_t sum_ns) {
      return Cell::Milliseconds(static_cast<double>(sum_ns) /
                                static_cast<double>(sums.steps));
    };
    const int64_t batches_ns = sums.hidden_ns + sums.running_ns;
    table.rows.push_back({rank, per_step(batches_ns), per_step(sums.hidden_ns),
                          Cell::Percent(Share(sums.hidden_ns, batches_ns)),
                          per_step(sums.exposed_ns)});
  }
  report->AddLine(
      "Batches that ran while the application computed (hidden) and what it "
      "waited for:");
  report->AddTable(std::move(table));
}

void ReportCriticalPath(const Examined& examined, Report* report) {
  if (!examined.has_steps()) return report->AddLine(kNoSteps);
  struct OnPath {
    int64_t steps = 0;
    PartTimes parts = {};
  };
  std::map<int64_t, OnPath> ranks;
  int64_t total_ns = 0;
  ForEachStep(examined.analysis.SteadySteps(),
              [&](const std::vector<RankStep>& step) {
                const RankStep& last = LastOf(step);
                OnPath& path = ranks[last.rank];
                ++path.steps;
                for (size_t i = 0; i < kStepParts; ++i) {
                  path.parts[i] += last.parts[i];
                }
                total_ns += last.duration_ns();
              });
  Table table = {.name = "critical_path",
                 .columns = {"rank", "steps", "% of the path"},
                 .rows = {}};
  for (size_t i = 0; i < kStepParts; ++i) {
    table.columns.push_back(
        absl::StrCat(timeline::NameOf(static_cast<StepPart>(i)), " %"));
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
      "What the steps' length hangs on: in each the rank that the others "
      "waited for, and what it did.");
  report->AddTable(std::move(table));
}

}  // namespace hvdlite::timeline_viewer
