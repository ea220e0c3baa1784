#include "timeline/trace_merge.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "timeline/trace_file.h"
#include "timeline/trace_format.h"
#include "timeline/trace_recorder.h"

namespace hvdlite::timeline {
namespace {

constexpr size_t kMergeWriteBytes = size_t{1} << 20;

// Events of all parts, as one array.
class MergedFile {
 public:
  explicit MergedFile(TraceSink* sink) : sink_(sink) {}

  // `event` is JSON without the comma that separates it from the next.
  absl::Status Add(absl::string_view event) {
    text_.append(is_first_ ? "[\n" : ",\n");
    is_first_ = false;
    text_.append(event.data(), event.size());
    if (text_.size() < kMergeWriteBytes) return absl::OkStatus();
    const absl::Status status = sink_->Append(text_);
    text_.clear();
    return status;
  }

  absl::Status Finish() {
    text_.append(is_first_ ? "[]\n" : "\n]\n");
    return sink_->Append(text_);
  }

 private:
  TraceSink* const sink_;
  std::string text_;
  bool is_first_ = true;
};

bool IsInt64(const nlohmann::json& value) {
  constexpr auto kMax = std::numeric_limits<int64_t>::max();
  return value.is_number_integer() &&
         (!value.is_number_unsigned() ||
          value.get<uint64_t>() <= static_cast<uint64_t>(kMax));
}

// Takes over a metadata line. From the line that describes the rank it learns
// the clock offset, and leaves a 0 in its place: the merge applies it.
absl::Status AddMetadataLine(absl::string_view line, MergedFile* merged,
                             std::optional<int64_t>* clock_offset_ns) {
  nlohmann::json event =
      nlohmann::json::parse(line.begin(), line.end(), /*cb=*/nullptr,
                            /*allow_exceptions=*/false);
  if (!event.is_object()) return absl::DataLossError("damaged metadata");
  if (event["name"] != std::string(kTraceMetadata)) return merged->Add(line);

  nlohmann::json& args = event["args"];
  if (!args.is_object() || !IsInt64(args["clock_offset_ns"])) {
    return absl::DataLossError("no clock offset in its metadata");
  }
  *clock_offset_ns = args["clock_offset_ns"].get<int64_t>();
  args["clock_offset_ns"] = 0;
  args["applied_clock_offset_ns"] = **clock_offset_ns;
  return merged->Add(
      event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

// Reads the microseconds that AppendMicroseconds wrote; false for other texts,
// and for times that do not fit.
bool ParseMicroseconds(absl::string_view text, int64_t* time_ns) {
  const absl::string_view sign = absl::ConsumePrefix(&text, "-") ? "-" : "";
  const size_t point = text.find('.');
  if (point == 0 || point == absl::string_view::npos ||
      text.size() != point + 4) {
    return false;
  }
  const std::string digits =
      absl::StrCat(text.substr(0, point), text.substr(point + 1));
  return std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(absl::StrCat(sign, digits), time_ns);
}

absl::Status AddEventLine(absl::string_view line, int64_t clock_offset_ns,
                          MergedFile* merged) {
  if (clock_offset_ns == 0) return merged->Add(line);
  absl::string_view rest = line;
  absl::ConsumePrefix(&rest, kEventLinePrefix);
  const size_t comma = rest.find(',');
  int64_t start_ns = 0;
  if (comma == absl::string_view::npos ||
      !ParseMicroseconds(rest.substr(0, comma), &start_ns) ||
      __builtin_add_overflow(start_ns, clock_offset_ns, &start_ns)) {
    return absl::DataLossError("an event with a damaged time");
  }
  std::string shifted(kEventLinePrefix);
  AppendMicroseconds(start_ns, &shifted);
  absl::StrAppend(&shifted, rest.substr(comma));
  return merged->Add(shifted);
}

absl::Status AddPart(const std::string& path, MergedFile* merged) {
  std::ifstream part(path, std::ios::binary);
  if (!part) {
    return absl::NotFoundError(absl::StrCat(
        "it cannot be opened: ", std::strerror(errno),
        "; for the ranks' traces to be merged, all must be given the same "
        "directory, on a file system that their hosts share"));
  }
  std::optional<int64_t> clock_offset_ns;
  std::string text;
  while (std::getline(part, text)) {
    absl::string_view line = text;
    absl::ConsumeSuffix(&line, ",");
    if (line == "[" || line == "]" || line.empty()) continue;
    // Without a newline: an unclosed part may end anywhere.
    if (part.eof() && !nlohmann::json::accept(line.begin(), line.end())) break;
    if (!absl::EndsWith(line, "}"))
      return absl::DataLossError("a damaged line");
    if (!absl::StartsWith(line, kEventLinePrefix)) {
      HVDLITE_RETURN_IF_ERROR(AddMetadataLine(line, merged, &clock_offset_ns));
    } else if (clock_offset_ns.has_value()) {
      HVDLITE_RETURN_IF_ERROR(AddEventLine(line, *clock_offset_ns, merged));
    } else {
      return absl::DataLossError("events before its metadata");
    }
  }
  if (part.bad()) return absl::DataLossError("it cannot be read");
  if (!clock_offset_ns.has_value()) {
    return absl::DataLossError("it lacks its metadata");
  }
  return absl::OkStatus();
}

absl::Status WriteMerged(const std::string& path, int size,
                         const std::string& temporary_path) {
  HVDLITE_ASSIGN_OR_RETURN(const std::unique_ptr<TraceSink> file,
                           OpenAppendFile(temporary_path));
  MergedFile merged(file.get());
  for (int rank = 0; rank < size; ++rank) {
    const std::string part = TracePartPath(path, rank);
    const absl::Status status = AddPart(part, &merged);
    if (!status.ok()) {
      return absl::Status(
          status.code(),
          absl::StrCat("cannot merge the trace ", path, ": part ", part,
                       " of rank ", rank, ": ", status.message(),
                       "; the parts are left as they are"));
    }
  }
  return merged.Finish();
}

// An event that is not of hvdlite's own form, or whose time is not.
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

// Merges files of any origin, in two goes: clocks first.
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
          absl::StrCat(path, " holds no event: it is empty, or no trace"));
    }
    if (report.damaged_places > 0 || report.cut_off) {
      trace.warnings.push_back(absl::StrCat(
          path, report.cut_off ? " is cut off" : " is damaged",
          ": its whole events are taken over (", report.events, ")"));
    }
    for (const auto& [pid, clock] : clocks) {
      trace.clocks.push_back(clock);
      const auto [other, added] = files_.emplace(pid, path);
      if (added) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(other->second, " and ", path, " both hold rank ", pid));
    }
    for (const auto& [pid, events] : timed_events) {
      if (clocks.contains(pid) || options_.force) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          path, " tells no clock offset of ", events, " events of process ",
          pid, ": their times cannot be told from those of the others"));
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
    // Clocks that differ by more (31 years) are a damaged file.
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
      return AddMetadataLine(event.text, merged_, &ignored_);
    }
    if (!start_ns.has_value()) return merged_->Add(event.text);
    if (absl::StartsWith(event.text, kEventLinePrefix) &&
        AddEventLine(event.text, offset_ns, merged_).ok()) {
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

absl::Status MergeTraceParts(const std::string& path, int size) {
  std::error_code error;
  if (std::filesystem::exists(path, error) &&
      !std::filesystem::is_regular_file(path, error)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is not a regular file, and is not replaced"));
  }
  const std::string temporary_path = absl::StrCat(path, ".merging");
  absl::Status status = WriteMerged(path, size, temporary_path);
  if (status.ok() && std::rename(temporary_path.c_str(), path.c_str()) != 0) {
    status = absl::ErrnoToStatus(
        errno, absl::StrCat("cannot rename ", temporary_path, " to ", path));
  }
  if (!status.ok()) {
    std::remove(temporary_path.c_str());
    return status;
  }
  for (int rank = 0; rank < size; ++rank) {
    std::remove(TracePartPath(path, rank).c_str());
  }
  return absl::OkStatus();
}

}  // namespace hvdlite::timeline
