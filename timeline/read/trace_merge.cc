#include "timeline/read/trace_merge.h"

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "timeline/read/trace_event_parser.h"
#include "timeline/read/trace_file.h"
#include "timeline/record/merged_file.h"
#include "timeline/record/trace_format.h"

namespace hvdlite::timeline {
namespace {

// Adds an event whose line, or whose time, does not have hvdlite's own form.
absl::Status AddOtherEvent(absl::string_view text, int64_t start_ns,
                           MergedFile* merged) {
  auto event = nlohmann::ordered_json::parse(text.begin(), text.end(),
                                             /*cb=*/nullptr,
                                             /*allow_exceptions=*/false);
  if (!event.is_object()) return absl::DataLossError("a damaged event");
  event["ts"] = static_cast<double>(start_ns) / 1000;
  return merged->Add(
      event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::optional<int64_t> NumberIn(const ParsedEvent& event,
                                absl::string_view key) {
  for (const ParsedArg& arg : event.args) {
    const auto* const number = std::get_if<int64_t>(&arg.value);
    if (arg.key == key && number != nullptr) return *number;
  }
  return std::nullopt;
}

// Merges files of any origin in two passes: clocks first, then events.
class Merger {
 public:
  Merger(const MergeOptions& options, MergedFile* merged)
      : options_(options), merged_(merged) {}

  absl::Status ReadClocks(const std::string& path) {
    HVDLITE_ASSIGN_OR_RETURN(const TraceText read, ReadTraceText(path));
    MergedTrace& trace = traces_.emplace_back();
    trace.path = path;
    if (!read.warning.empty()) trace.warnings.push_back(read.warning);
    Clocks clocks;
    std::map<int64_t, int64_t> timed_events;  // by pid
    const ParseReport report =
        ParseTraceEvents(read.text, [&](const ParsedEvent& event) {
          if (event.phase != 'M') {
            if (event.start_ns.has_value()) ++timed_events[event.pid];
          } else if (event.name == kTraceMetadata) {
            NoteClock(event, &clocks);
          }
        });
    if (report.events == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " has no event: it is empty or not a trace"));
    }
    if (report.damaged_places > 0 || report.cut_off) {
      trace.warnings.push_back(
          absl::StrCat(path, report.cut_off ? " is cut off" : " is damaged",
                       ": its complete events are used (", report.events, ")"));
    }
    for (const auto& [pid, clock] : clocks) {
      trace.clocks.push_back(clock);
      const auto [other, added] = files_.emplace(pid, path);
      if (added) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          other->second, " and ", path, " are both of rank ", pid));
    }
    for (const auto& [pid, events] : timed_events) {
      if (clocks.contains(pid) || options_.force) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          path, " has no clock offset for the ", events, " events of process ",
          pid, ": their times cannot be compared with the others"));
    }
    clocks_.push_back(std::move(clocks));
    return absl::OkStatus();
  }

  absl::Status AddEvents(size_t file) {
    MergedTrace& trace = traces_[file];
    HVDLITE_ASSIGN_OR_RETURN(const TraceText read, ReadTraceText(trace.path));
    absl::Status status;
    ParseTraceEvents(read.text, [&](const ParsedEvent& event) {
      if (!status.ok()) return;
      const auto clock = clocks_[file].find(event.pid);
      const int64_t offset_ns =
          clock == clocks_[file].end() ? 0 : clock->second.offset_ns;
      std::optional<int64_t> start_ns = event.start_ns;
      if (start_ns.has_value()) *start_ns += offset_ns;
      if (options_.keep && !options_.keep(file, event, start_ns)) return;
      ++trace.events;
      status = AddEvent(event, offset_ns, start_ns);
    });
    return status;
  }

  size_t files() const { return traces_.size(); }
  std::vector<MergedTrace> Take() { return std::move(traces_); }

 private:
  using Clocks = std::map<int64_t, ProcessClock>;  // by pid

  static void NoteClock(const ParsedEvent& event, Clocks* clocks) {
    const std::optional<int64_t> offset_ns = NumberIn(event, "clock_offset_ns");
    // Clocks cannot differ by more (31 years): the file is damaged.
    constexpr int64_t kLargestNs = 1'000'000'000'000'000'000;
    if (!offset_ns.has_value() || *offset_ns < -kLargestNs ||
        *offset_ns > kLargestNs) {
      return;
    }
    (*clocks)[event.pid] = {
        .pid = event.pid,
        .offset_ns = *offset_ns,
        .uncertainty_ns = NumberIn(event, "clock_uncertainty_ns")};
  }

  absl::Status AddEvent(const ParsedEvent& event, int64_t offset_ns,
                        std::optional<int64_t> start_ns) {
    if (offset_ns == 0) return merged_->Add(event.text);
    if (event.phase == 'M' && event.name == kTraceMetadata) {
      return merged_->AddMetadata(event.text, &ignored_);
    }
    if (!start_ns.has_value()) return merged_->Add(event.text);
    if (absl::StartsWith(event.text, kEventLinePrefix) &&
        merged_->AddShifted(event.text, offset_ns).ok()) {
      return absl::OkStatus();
    }
    return AddOtherEvent(event.text, *start_ns, merged_);
  }

  const MergeOptions& options_;
  MergedFile* const merged_;
  std::vector<MergedTrace> traces_;
  std::vector<Clocks> clocks_;            // by file
  std::map<int64_t, std::string> files_;  // by rank
  std::optional<int64_t> ignored_;
};

}  // namespace

absl::StatusOr<std::vector<MergedTrace>> MergeTraces(
    const std::vector<std::string>& paths, const std::string& out,
    const MergeOptions& options) {
  HVDLITE_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file,
                           OutputFile::Open(out));
  MergedFile merged(file.get());
  Merger merger(options, &merged);
  for (const std::string& path : paths) {
    HVDLITE_RETURN_IF_ERROR(merger.ReadClocks(path));
  }
  for (size_t i = 0; i < merger.files(); ++i) {
    HVDLITE_RETURN_IF_ERROR(merger.AddEvents(i));
  }
  HVDLITE_RETURN_IF_ERROR(merged.Finish());
  if (options.accept) HVDLITE_RETURN_IF_ERROR(options.accept());
  HVDLITE_RETURN_IF_ERROR(file->Commit());
  return merger.Take();
}

}  // namespace hvdlite::timeline
