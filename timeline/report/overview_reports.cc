// The first reports: the trace, and the parts of a step.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "timeline/report/reports.h"

namespace hvdlite::timeline {
namespace {

// The number of ranks that get a column of their own in a table.
constexpr size_t kMostRankColumns = 8;

std::string HostsOf(const Trace& trace) {
  std::set<std::string> hosts;
  for (const auto& [pid, process] : trace.processes) {
    if (process.is_rank) hosts.insert(process.host);
  }
  return absl::StrJoin(hosts, ", ");
}

// The cores that ranks may use: "0-3 (ranks 0, 4); 4-7 (rank 1)".
std::string CoresOf(const Trace& trace) {
  std::map<std::string, std::vector<int64_t>> ranks;  // by cores
  for (const auto& [pid, process] : trace.processes) {
    const std::string cpus = process.TextFact("cpu_list");
    if (process.is_rank && !cpus.empty()) ranks[cpus].push_back(pid);
  }
  std::vector<std::string> texts;
  for (const auto& [cpus, own] : ranks) {
    if (texts.size() == kMostRankColumns) {
      texts.push_back("...");
      break;
    }
    texts.push_back(absl::StrCat(
        cpus, " (", own.size() == 1 ? "rank " : "ranks ",
        own.size() <= kMostRankColumns
            ? absl::StrJoin(own, ", ")
            : absl::StrCat(own.front(), " and ", own.size() - 1, " more"),
        ")"));
  }
  return absl::StrJoin(texts, "; ");
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

// The ranks that get a column.
std::vector<int64_t> RankColumns(
    const std::map<int64_t, PartTimes>& parts_by_rank) {
  std::vector<int64_t> ranks;
  for (const auto& [rank, parts] : parts_by_rank) {
    if (ranks.size() < kMostRankColumns) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace

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
                                        " per-rank files, not merged)")));
  const std::optional<ProfiledRank>& profiled = trace.profiled;
  report->AddLine(
      profiled.has_value()
          ? absl::StrCat("Rank:      ", profiled->rank,
                         profiled->world_size > 0
                             ? absl::StrCat(" of ", profiled->world_size)
                             : "",
                         " (profile of PyTorch)")
      : ranks == 0
          ? absl::StrCat("Processes: ", trace.processes.size(),
                         " (trace of another program; in a timeline of "
                         "Horovod, each process is a tensor)")
          : absl::StrCat("Ranks:     ", ranks, " of ", size, " on ",
                         HostsOf(trace)));
  if (const std::string cores = CoresOf(trace); !cores.empty()) {
    report->AddLine(absl::StrCat("Cores:     ", cores));
  }
  report->AddLine(absl::StrFormat("Time span: %.3f ms", SpanNs(trace) / 1e6));
  report->AddLine(absl::StrCat("Events:    ", trace.slices.size(),
                               ", dropped while recording: ", dropped_events));
  for (const std::string& warning : trace.warnings) {
    report->AddLine(absl::StrCat("Warning:   ", warning));
  }
  report->AddLine("");
}

void ReportParts(const Examined& examined, Report* report) {
  const bool from_profiler = examined.analysis.source == StepSource::kProfiler;
  if (!examined.has_steps() ||
      !(examined.analysis.knows_waits || from_profiler)) {
    return;
  }
  const std::vector<RankStep> steps = examined.analysis.SteadySteps();
  const std::map<int64_t, PartTimes> by_rank = PartsByRank(steps);
  const std::vector<int64_t> ranks = RankColumns(by_rank);
  const PartTimes all = SumOfParts(steps);
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
      all_steps / ranks_here, ranks_here,
      absl::StrCat(examined.rank_word(), ranks_here == 1 ? ""
                                         : from_profiler ? "es"
                                                         : "s"),
      rank_steps == all_steps ? ""
      : examined.path.empty() ? " (the first seconds are left out)"
                              : " (the first is left out)"));
  Table table = {.name = "parts", .columns = {"Part", "ms", "%"}, .rows = {}};
  for (const int64_t rank : ranks) {
    table.columns.push_back(
        absl::StrCat(examined.rank_word(), " ", rank, " %"));
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
    const auto part_of = [part](const PartTimes& parts) {
      return At(parts, part);
    };
    if (from_profiler) {  // profiles have only these parts
      if (part == StepPart::kDataPlane) add("collectives alone", part_of);
      if (part <= StepPart::kInput) {
        add(std::string(NameOf(part)), part_of);
      }
      continue;
    }
    if (part == StepPart::kWaitForRanks) {
      add("exposed communication", ExposedNs);
    }
    const bool exposed = part >= StepPart::kWaitForRanks;
    add(absl::StrCat(exposed ? "  " : "", NameOf(part)), part_of);
  }
  add("step", TotalNs);
  table.has_totals = true;
  report->AddTable(std::move(table));
  int64_t hidden_ns = 0;
  for (const RankStep& step : steps) hidden_ns += step.hidden_ns;
  const std::string hidden_ms =
      absl::StrFormat("%.3f ms", static_cast<double>(hidden_ns) / count / 1e6);
  report->AddLine(absl::StrCat(
      from_profiler
          ? absl::StrCat("Beside operators: ", hidden_ms,
                         " of collectives per step; alone: no operator runs")
          : absl::StrCat("Hidden behind computing: ", hidden_ms,
                         " of communication per step"),
      by_rank.size() > ranks.size()
          ? absl::StrFormat("; --by-rank shows all %d ranks", by_rank.size())
          : ""));
  report->AddLine("");
}

}  // namespace hvdlite::timeline
