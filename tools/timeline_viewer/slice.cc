#include "tools/timeline_viewer/slice.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "support/flags.h"
#include "timeline/diagnose/step_analysis.h"
#include "timeline/read/slice_edges.h"
#include "timeline/read/trace_event_parser.h"
#include "timeline/read/trace_file.h"
#include "timeline/read/trace_merge.h"
#include "timeline/read/trace_reader.h"
#include "tools/timeline_viewer/page_facts.h"

namespace hvdlite::timeline_viewer {
namespace {

using timeline::ParsedEvent;
using timeline::Report;

// Parses steps such as "100-110", "100-" or "100"; the first step is 1.
absl::StatusOr<std::pair<int64_t, int64_t>> ParseSteps(
    const std::string& text) {
  const std::vector<std::string> ends = absl::StrSplit(text, '-');
  int64_t first = 0;
  int64_t last = std::numeric_limits<int64_t>::max();
  const bool is_right =
      ends.size() <= 2 && absl::SimpleAtoi(ends.front(), &first) &&
      (ends.size() == 1
           ? (last = first, true)
           : ends.back().empty() || absl::SimpleAtoi(ends.back(), &last)) &&
      first >= 1 && last >= first;
  if (is_right) return std::make_pair(first, last);
  return absl::InvalidArgumentError(
      absl::StrCat("'", text,
                   "' is not a range of steps such as 100-110, 100- "
                   "or 100"));
}

// Parses ranks such as "0,3".
absl::StatusOr<std::set<int64_t>> ParseRanks(const std::string& text) {
  std::set<int64_t> ranks;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    int64_t rank = 0;
    if (!absl::SimpleAtoi(item, &rank)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' is not a list of ranks such as 0,3"));
    }
    ranks.insert(rank);
  }
  return ranks;
}

// Parses milliseconds (at most 95 years) and returns ns.
absl::StatusOr<int64_t> ParseTime(const std::string& text) {
  constexpr double kLatestMs = 3e12;
  double time_ms = 0;
  if (!absl::SimpleAtod(text, &time_ms) || !(std::abs(time_ms) <= kLatestMs)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not a time in milliseconds"));
  }
  return std::llround(time_ms * 1e6);
}

struct Window {
  int64_t from_ns = std::numeric_limits<int64_t>::min();
  int64_t to_ns = std::numeric_limits<int64_t>::max();

  bool Holds(int64_t start_ns, int64_t end_ns) const {
    return start_ns < to_ns && (end_ns > from_ns || start_ns >= from_ns);
  }
};

std::string Milliseconds(int64_t time_ns) {
  return absl::StrFormat("%.3f", static_cast<double>(time_ns) / 1e6);
}

// A list such as "0 to 3" or "0, 2, 7".
std::string ListOf(const std::vector<int64_t>& numbers) {
  return numbers.size() > 2 && numbers.back() - numbers.front() ==
                                   static_cast<int64_t>(numbers.size()) - 1
             ? absl::StrCat(numbers.front(), " to ", numbers.back())
             : absl::StrJoin(numbers, ", ");
}

// Returns NotFound if one of `asked` has no event.
absl::Status CheckRanks(const std::string& path, const timeline::Trace& trace,
                        const std::set<int64_t>& asked) {
  std::vector<int64_t> known;
  for (const auto& [pid, process] : trace.processes) known.push_back(pid);
  std::vector<int64_t> missing;
  for (const int64_t rank : asked) {
    if (!trace.processes.contains(rank)) missing.push_back(rank);
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(
      path, " has no events of ", missing.size() == 1 ? "rank " : "ranks ",
      ListOf(missing), "; it has ", known.size() == 1 ? "rank " : "ranks ",
      ListOf(known)));
}

// The time of the steps `first` to `last` on each rank. Ranks without recorded
// steps use the time of all ranks together.
class StepWindows {
 public:
  static absl::StatusOr<StepWindows> Find(const std::string& path,
                                          const timeline::Trace& trace,
                                          int64_t first, int64_t last) {
    const timeline::StepAnalysis analysis = timeline::AnalyzeSteps(trace);
    StepWindows found;
    found.all_ = {std::numeric_limits<int64_t>::max(),
                  std::numeric_limits<int64_t>::min()};
    int64_t known_first = std::numeric_limits<int64_t>::max();
    int64_t known_last = 0;
    if (analysis.source != timeline::StepSource::kWhole) {
      for (const timeline::RankStep& step : analysis.steps) {
        known_first = std::min(known_first, step.number);
        known_last = std::max(known_last, step.number);
        if (step.number >= first && step.number <= last) found.Cover(step);
      }
    }
    if (!found.ranks_.empty()) return found;
    return absl::NotFoundError(
        known_last == 0
            ? absl::StrCat(path, " has no training steps: use --from and --to")
            : absl::StrCat(path, " has only steps ", known_first, " to ",
                           known_last));
  }

  const Window& Of(int64_t rank) const {
    const auto found = ranks_.find(rank);
    return found == ranks_.end() ? all_ : found->second;
  }

 private:
  void Cover(const timeline::RankStep& step) {
    const auto [window, added] =
        ranks_.try_emplace(step.rank, Window{step.start_ns, step.end_ns()});
    for (Window* const covered : {&window->second, &all_}) {
      covered->from_ns = std::min(covered->from_ns, step.start_ns);
      covered->to_ns = std::max(covered->to_ns, step.end_ns());
    }
  }

  std::map<int64_t, Window> ranks_;
  Window all_;
};

// The lengths of the slices to which begins and ends belong.
class EdgeLengths {
 public:
  absl::Status Read(const std::vector<std::string>& files) {
    for (const std::string& file : files) {
      HVDLITE_ASSIGN_OR_RETURN(const timeline::TraceText read,
                               timeline::ReadTraceText(file));
      std::map<std::pair<int64_t, int64_t>, std::vector<timeline::SliceEdge>>
          tracks;
      timeline::ParseTraceEvents(read.text, [&](const ParsedEvent& event) {
        if ((event.phase != 'B' && event.phase != 'E') ||
            !event.start_ns.has_value()) {
          return;
        }
        tracks[{event.pid, event.tid}].push_back(
            {.time_ns = *event.start_ns,
             .is_begin = event.phase == 'B',
             .id = event.position});
      });
      auto& lengths = lengths_.emplace_back();
      for (auto& [track, edges] : tracks) {
        for (const auto& [begin, end] :
             timeline::PairEdges(std::move(edges)).pairs) {
          const int64_t duration_ns = end.time_ns - begin.time_ns;
          lengths[begin.id] = duration_ns;
          lengths[end.id] = duration_ns;
        }
      }
    }
    return absl::OkStatus();
  }

  // The length of the slice whose begin or end is at `position`; nullopt if it
  // has no counterpart.
  std::optional<int64_t> LengthNs(size_t file, size_t position) const {
    const auto found = lengths_[file].find(position);
    if (found == lengths_[file].end()) return std::nullopt;
    return found->second;
  }

 private:
  // By file and by the position of the edge in the file.
  std::vector<absl::flat_hash_map<size_t, int64_t>> lengths_;
};

// Decides which events belong to the part.
class Part {
 public:
  // The trace begins at `origin_ns`.
  Part(const SliceOptions& options, int64_t origin_ns,
       std::optional<StepWindows> steps, EdgeLengths edges)
      : options_(options),
        origin_ns_(origin_ns),
        steps_(std::move(steps)),
        edges_(std::move(edges)) {}

  bool Holds(size_t file, const ParsedEvent& event,
             std::optional<int64_t> start_ns) {
    if (!options_.ranks.empty() && !options_.ranks.contains(event.pid)) {
      return false;
    }
    if (event.phase == 'M') return true;
    if (!start_ns.has_value()) return false;
    int64_t from_ns = *start_ns;
    int64_t to_ns = from_ns;
    if (event.phase == 'X') {
      to_ns += event.duration_ns;
    } else if (event.phase == 'B' || event.phase == 'E') {
      const auto length_ns = edges_.LengthNs(file, event.position);
      if (!length_ns.has_value()) return false;
      (event.phase == 'B' ? to_ns : from_ns) +=
          event.phase == 'B' ? *length_ns : -*length_ns;
    }
    if (!WindowOf(event.pid).Holds(from_ns, to_ns)) return false;
    ++events_;
    return true;
  }

  int64_t events() const { return events_; }  // without metadata

 private:
  Window WindowOf(int64_t rank) const {
    if (steps_.has_value()) return steps_->Of(rank);
    Window window;
    if (options_.from_ns.has_value()) {
      window.from_ns = origin_ns_ + *options_.from_ns;
    }
    if (options_.to_ns.has_value()) window.to_ns = origin_ns_ + *options_.to_ns;
    return window;
  }

  const SliceOptions& options_;
  const int64_t origin_ns_;
  const std::optional<StepWindows> steps_;
  const EdgeLengths edges_;
  int64_t events_ = 0;
};

}  // namespace

void AddSliceFlags(CLI::App& command, SliceOptions& options) {
  CLI::Option* const steps =
      support::AddParsed(command, "--steps", options.steps, ParseSteps,
                         "Training steps to keep, such as 100-110")
          ->type_name("STEPS");
  support::AddParsed(command, "--from", options.from_ns, ParseTime,
                     "Start of the period, since the trace's first event")
      ->type_name("MS")
      ->excludes(steps);
  support::AddParsed(command, "--to", options.to_ns, ParseTime,
                     "End of the period, since the trace's first event")
      ->type_name("MS")
      ->excludes(steps);
  support::AddParsed(command, "--ranks", options.ranks, ParseRanks,
                     "Ranks to keep, such as 0,3; default: all")
      ->type_name("RANKS");
}

absl::Status SliceTrace(const std::string& path, const SliceOptions& options,
                        const std::string& out, Report* report) {
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                           timeline::FindTraceFiles(path));
  HVDLITE_ASSIGN_OR_RETURN(const timeline::Trace trace,
                           timeline::ReadTrace(path));
  HVDLITE_RETURN_IF_ERROR(CheckRanks(path, trace, options.ranks));
  const PageSpan span = SpanOf(trace);
  std::optional<StepWindows> steps;
  if (options.steps.has_value()) {
    HVDLITE_ASSIGN_OR_RETURN(
        steps, StepWindows::Find(path, trace, options.steps->first,
                                 options.steps->second));
  }
  EdgeLengths edges;
  HVDLITE_RETURN_IF_ERROR(edges.Read(files));
  Part part(options, span.origin_ns, std::move(steps), std::move(edges));
  const auto accept = [&] {
    if (part.events() > 0) return absl::OkStatus();
    return absl::NotFoundError(
        absl::StrCat(path, " has no event in this selection; ", out,
                     " is not written; the events are from ", Milliseconds(0),
                     " to ", Milliseconds(span.length_ns), " ms"));
  };
  HVDLITE_ASSIGN_OR_RETURN(
      const std::vector<timeline::MergedTrace> merged,
      timeline::MergeTraces(files, out,
                            {.force = true,
                             .keep =
                                 [&part](size_t file, const ParsedEvent& event,
                                         std::optional<int64_t> start_ns) {
                                   return part.Holds(file, event, start_ns);
                                 },
                             .accept = accept}));
  for (const timeline::MergedTrace& trace : merged) {
    for (const std::string& warning : trace.warnings) {
      report->AddLine(absl::StrCat("Warning: ", warning));
    }
  }
  report->AddLine(absl::StrCat(out, ": ", part.events(),
                               part.events() == 1 ? " event" : " events"));
  report->AddData({.name = "slice",
                   .columns = {"file", "events"},
                   .rows = {{out, part.events()}}});
  return absl::OkStatus();
}

}  // namespace hvdlite::timeline_viewer
