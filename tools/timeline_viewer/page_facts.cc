#include "tools/timeline_viewer/page_facts.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <variant>

#include "timeline/diagnose/trace_summary.h"
#include "timeline/record/trace_event.h"
#include "timeline/report/reports.h"

namespace hvdlite::timeline_viewer {
namespace {

using nlohmann::json;
using timeline::Bucket;
using timeline::Examined;
using timeline::Finding;
using timeline::kStepParts;
using timeline::RankBucket;
using timeline::RankStep;
using timeline::SliceDetails;
using timeline::StepAnalysis;
using timeline::StepPart;
using timeline::StepSource;
using timeline::Trace;
using timeline::TraceCounter;
using timeline::TraceProcess;
using timeline::TraceSlice;

json RunFacts(const Examined& examined, const PageSpan& span) {
  const Trace& trace = examined.trace;
  int64_t ranks = 0;
  int64_t size = 0;
  int64_t dropped_events = 0;
  std::set<std::string> hosts;
  for (const auto& [pid, process] : trace.processes) {
    dropped_events += process.dropped_events;
    if (!process.is_rank) continue;
    ++ranks;
    size = std::max(size, process.world_size);
    hosts.insert(process.host);
  }
  return {{"path", examined.path},
          {"files", trace.files},
          {"ranks", ranks},
          {"size", size},
          {"hosts", hosts},
          {"span_ns", span.length_ns},
          {"events", trace.slices.size()},
          {"dropped", dropped_events},
          {"warnings", trace.warnings}};
}

json Findings(const Examined& examined, const PageSpan& span) {
  json findings = json::array();
  for (const Finding& finding : examined.findings) {
    findings.push_back({{"cause", finding.cause},
                        {"title", finding.title},
                        {"evidence", finding.evidence},
                        {"remedy", finding.remedy},
                        {"share", finding.share},
                        {"of_run", finding.of_run},
                        {"rank", finding.rank},
                        {"start", finding.start_ns - span.origin_ns},
                        {"end", finding.end_ns - span.origin_ns}});
  }
  return findings;
}

// Each step is [rank, number, start, parts ..., hidden, lateness].
json Steps(const StepAnalysis& analysis, const PageSpan& span) {
  const std::vector<double> lateness = LatenessOf(analysis);
  json steps = json::array();
  for (size_t i = 0; i < analysis.steps.size(); ++i) {
    const RankStep& step = analysis.steps[i];
    json row = {step.rank, step.number, step.start_ns - span.origin_ns};
    for (const int64_t part_ns : step.parts) row.push_back(part_ns);
    row.push_back(step.hidden_ns);
    row.push_back(lateness[i]);
    steps.push_back(std::move(row));
  }
  return steps;
}

bool IsWithin(const TraceSlice& slice, const RankStep& step) {
  return slice.start_ns < step.end_ns() && slice.end_ns() > step.start_ns;
}

// The step `number` in detail, by rank.
json StepInDetail(const Examined& examined, const PageSpan& span,
                  int64_t number) {
  std::map<int64_t, const RankStep*> steps;
  for (const RankStep& step : examined.analysis.steps) {
    if (step.number == number) steps[step.rank] = &step;
  }
  std::map<int64_t, json> ranks;
  for (const auto& [rank, step] : steps) {
    ranks[rank] = {{"rank", rank},
                   {"start", step->start_ns - span.origin_ns},
                   {"end", step->end_ns() - span.origin_ns},
                   {"spans", json::array()},
                   {"buckets", json::array()}};
  }
  // The application's spans, by the parts of the analysis.
  const std::map<std::string, StepPart> parts = {
      {timeline::kWaitForGradients, StepPart::kWaitForRanks},
      {"WAIT", StepPart::kWaitForRanks},
      {"LOAD_BATCH", StepPart::kInput},
      {"EVALUATE", StepPart::kOther},
      {"COMMIT", StepPart::kOther},
      {"CHECKPOINT", StepPart::kOther}};
  for (const TraceSlice& slice : examined.trace.slices) {
    const auto step = steps.find(slice.pid);
    if (slice.tid != timeline::kUserTrack || step == steps.end() ||
        !IsWithin(slice, *step->second)) {
      continue;
    }
    const auto part = parts.find(examined.trace.NameOf(slice));
    if (part == parts.end()) continue;
    ranks[slice.pid]["spans"].push_back({slice.start_ns - span.origin_ns,
                                         slice.end_ns() - span.origin_ns,
                                         static_cast<int>(part->second)});
  }
  for (const Bucket& bucket : examined.analysis.buckets) {
    for (const RankBucket& on_rank : bucket.ranks) {
      const auto step = steps.find(on_rank.rank);
      if (step == steps.end() || on_rank.start_ns >= step->second->end_ns() ||
          on_rank.end_ns <= step->second->start_ns) {
        continue;
      }
      ranks[on_rank.rank]["buckets"].push_back(
          {on_rank.start_ns - span.origin_ns, on_rank.end_ns - span.origin_ns,
           bucket.number, bucket.bytes, bucket.tensors});
    }
  }
  json detail = {{"number", number}, {"ranks", json::array()}};
  for (auto& [rank, of_rank] : ranks) {
    detail["ranks"].push_back(std::move(of_rank));
  }
  return detail;
}

// The table of `timeline_viewer stragglers`, as strings.
json Stragglers(const Examined& examined) {
  timeline::Report report;
  timeline::ReportStragglers(examined, &report);
  if (report.tables().empty()) return {};
  const timeline::Table& table = report.tables().front();
  json rows = json::array();
  for (const std::vector<timeline::Cell>& cells : table.rows) {
    json& row = rows.emplace_back(json::array());
    for (const timeline::Cell& cell : cells) row.push_back(cell.text);
  }
  return {{"columns", table.columns}, {"rows", std::move(rows)}};
}

json StepFacts(const Examined& examined, const PageSpan& span) {
  json names = json::array();
  for (size_t i = 0; i < kStepParts; ++i) {
    names.push_back(std::string(timeline::NameOf(static_cast<StepPart>(i))));
  }
  const StepAnalysis& analysis = examined.analysis;
  const bool known = examined.has_steps();
  const std::vector<RankStep> steady = analysis.SteadySteps();
  return {
      {"known", known},
      {"knows_waits", analysis.knows_waits},
      {"from_profiler", analysis.source == StepSource::kProfiler},
      {"parts", names},
      {"first_steady", known ? steady.front().number : 0},
      {"steps", known ? Steps(analysis, span) : json::array()},
      {"stragglers", Stragglers(examined)},
      {"typical",
       known ? StepInDetail(examined, span, TypicalStep(analysis)) : json()}};
}

json Processes(const Trace& trace) {
  json processes = json::array();
  for (const auto& [pid, process] : trace.processes) {
    json facts = json::object();
    for (const auto& [key, value] : process.facts) {
      std::visit([&, &name = key](const auto& known) { facts[name] = known; },
                 value);
    }
    processes.push_back({{"pid", pid},
                         {"name", process.name},
                         {"is_rank", process.is_rank},
                         {"host", process.host},
                         {"facts", std::move(facts)}});
  }
  return processes;
}

std::string TrackName(const Trace& trace, const PageRow& row) {
  const auto track = trace.tracks.find({row.pid, row.tid});
  return track == trace.tracks.end() ? "" : track->second;
}

// Each row is [pid, tid, depth, number of slices, name of the track].
json Rows(const Trace& trace, const std::vector<PageRow>& rows) {
  json list = json::array();
  for (const PageRow& row : rows) {
    list.push_back({row.pid, row.tid, row.depth, row.slices.size(),
                    TrackName(trace, row)});
  }
  return list;
}

json Charts(const std::vector<PageChart>& charts, const PageSpan& span) {
  json list = json::array();
  for (const PageChart& chart : charts) {
    json lines = json::array();
    for (const PageChart::Line& line : chart.lines) {
      json times = json::array();
      for (const int64_t time_ns : line.times_ns) {
        times.push_back(time_ns - span.origin_ns);
      }
      lines.push_back({{"name", line.name},
                       {"times", std::move(times)},
                       {"values", line.values}});
    }
    list.push_back({{"pid", chart.pid},
                    {"label", chart.label},
                    {"unit", chart.unit},
                    {"lines", std::move(lines)}});
  }
  return list;
}

// Each name is [name, covered ns, wall ns, self ns, occurrences].
json Summary(const Trace& trace) {
  json names = json::array();
  for (const timeline::NameSummary& name : timeline::Summarize(trace).names) {
    names.push_back({name.name, name.covered_ns, name.wall_ns, name.self_ns,
                     name.occurrences});
  }
  return names;
}

}  // namespace

PageSpan SpanOf(const Trace& trace) {
  if (trace.slices.empty() && trace.counters.empty()) return {};
  int64_t first_ns = std::numeric_limits<int64_t>::max();
  int64_t last_ns = std::numeric_limits<int64_t>::min();
  for (const TraceSlice& slice : trace.slices) {
    first_ns = std::min(first_ns, slice.start_ns);
    last_ns = std::max(last_ns, slice.end_ns());
  }
  for (const TraceCounter& counter : trace.counters) {
    first_ns = std::min(first_ns, counter.time_ns);
    last_ns = std::max(last_ns, counter.time_ns);
  }
  return {.origin_ns = first_ns, .length_ns = last_ns - first_ns};
}

std::vector<double> LatenessOf(const StepAnalysis& analysis) {
  std::map<int64_t, int64_t> longest_ns;  // by step
  const auto wait_ns = [](const RankStep& step) {
    return At(step.parts, StepPart::kWaitForRanks);
  };
  for (const RankStep& step : analysis.steps) {
    int64_t& longest = longest_ns[step.number];
    longest = std::max(longest, wait_ns(step));
  }
  std::vector<double> lateness;
  for (const RankStep& step : analysis.steps) {
    const int64_t duration_ns = step.duration_ns();
    lateness.push_back(
        duration_ns == 0
            ? 0
            : static_cast<double>(longest_ns[step.number] - wait_ns(step)) /
                  static_cast<double>(duration_ns));
  }
  return lateness;
}

int64_t TypicalStep(const StepAnalysis& analysis) {
  std::vector<std::pair<int64_t, int64_t>> lengths;  // length and number
  const std::vector<RankStep> steady = analysis.SteadySteps();
  for (const RankStep& step : steady) {
    if (step.rank == steady.front().rank) {
      lengths.emplace_back(step.duration_ns(), step.number);
    }
  }
  if (lengths.empty()) return 0;
  const auto middle =
      lengths.begin() + static_cast<ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return middle->second;
}

std::string PageFacts(const Examined& examined, const PageSpan& span,
                      const std::vector<PageRow>& rows,
                      const std::vector<PageChart>& charts) {
  const json facts = {{"run", RunFacts(examined, span)},
                      {"step", StepFacts(examined, span)},
                      {"findings", Findings(examined, span)},
                      {"names", examined.trace.names},
                      {"processes", Processes(examined.trace)},
                      {"rows", Rows(examined.trace, rows)},
                      {"charts", Charts(charts, span)},
                      {"summary", Summary(examined.trace)}};
  return facts.dump(/*indent=*/-1, /*indent_char=*/' ', /*ensure_ascii=*/true,
                    json::error_handler_t::replace);
}

std::string RowData(const Trace& trace, const PageRow& row, int64_t origin_ns) {
  constexpr std::pair<const char*, int64_t SliceDetails::*> kSaid[] = {
      {"bucket", &SliceDetails::bucket},
      {"tensors", &SliceDetails::tensors},
      {"bytes", &SliceDetails::bytes},
      {"last_rank", &SliceDetails::last_rank},
      {"lateness_us", &SliceDetails::lateness_us},
      {"picked_up_us", &SliceDetails::picked_up_us},
      {"step", &SliceDetails::step},
      {"text", &SliceDetails::text}};
  const auto column = [](const auto& list, auto value_of) {
    std::vector<int64_t> values;
    for (const auto& one : list) values.push_back(value_of(one));
    return values;
  };
  const auto of_slices = [&](auto value_of) {
    return column(row.slices, [&](size_t index) {
      return static_cast<int64_t>(value_of(trace.slices[index]));
    });
  };
  json slices = {
      {"start", of_slices([&](const TraceSlice& slice) {
         return slice.start_ns - origin_ns;
       })},
      {"duration",
       of_slices([](const TraceSlice& slice) { return slice.duration_ns; })},
      {"name", of_slices([](const TraceSlice& slice) { return slice.name; })}};
  json said = json::object();
  for (const auto& [key, field] : kSaid) {
    const std::vector<int64_t> values =
        of_slices([&, field = field](const TraceSlice& slice) {
          return trace.DetailsOf(slice).*field;
        });
    if (std::any_of(values.begin(), values.end(),
                    [](int64_t value) { return value != -1; })) {
      said[key] = values;
    }
  }
  json levels = json::array();
  for (const std::vector<LevelNode>& level : row.levels) {
    levels.push_back(
        {{"start", column(level,
                          [&](const LevelNode& node) {
                            return node.start_ns - origin_ns;
                          })},
         {"duration", column(level,
                             [](const LevelNode& node) {
                               return node.end_ns - node.start_ns;
                             })},
         {"busy",
          column(level, [](const LevelNode& node) { return node.busy_ns; })},
         {"name", column(level, [](const LevelNode& node) {
            return static_cast<int64_t>(node.name);
          })}});
  }
  return json({{"slices", std::move(slices)},
               {"said", std::move(said)},
               {"levels", std::move(levels)}})
      .dump();
}

}  // namespace hvdlite::timeline_viewer
