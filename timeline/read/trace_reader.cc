#include "timeline/read/trace_reader.h"

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "timeline/read/trace_builder.h"
#include "timeline/read/trace_event_parser.h"
#include "timeline/read/trace_file.h"
#include "timeline/record/trace_format.h"

namespace hvdlite::timeline {
namespace {

absl::Status NotATrace(const std::string& path, absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, " is not a trace: ", reason,
      " (expected Chrome's trace format: an array of events, or an object with "
      "the array \"traceEvents\")"));
}

// The rank that PyTorch's profiler writes before the events, in
// "distributedInfo". `head` is the text up to and including the '[' of the
// events.
std::optional<ProfiledRank> ProfiledRankOf(absl::string_view head) {
  if (!absl::StrContains(head, "distributedInfo")) return std::nullopt;
  const nlohmann::json json =
      nlohmann::json::parse(absl::StrCat(head, "]}"), nullptr,
                            /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto info = json.find("distributedInfo");
  if (info == json.end() || !info->is_object()) return std::nullopt;
  const auto number_of = [&](const char* key) -> int64_t {
    const auto value = info->find(key);
    const bool is_number = value != info->end() && value->is_number_integer();
    return is_number ? value->get<int64_t>() : -1;
  };
  const ProfiledRank rank = {.rank = number_of("rank"),
                             .world_size = number_of("world_size")};
  if (rank.rank < 0) return std::nullopt;
  return rank;
}

absl::Status ReadFile(const std::string& path, TraceBuilder* builder) {
  HVDLITE_ASSIGN_OR_RETURN(const TraceText read, ReadTraceText(path));
  const std::string& text = read.text;
  const size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is empty: its process ended before it wrote an event"));
  }
  if (text[first] != '[' && text[first] != '{') {
    return NotATrace(path, "it does not begin with [ or {");
  }

  builder->StartFile(path, text.size());
  bool is_ours = false;
  int64_t typed_events = 0;
  const ParseReport report =
      ParseTraceEvents(text, [&](const ParsedEvent& event) {
        is_ours = is_ours || event.name == kTraceMetadata;
        if (event.phase != 0) ++typed_events;
        builder->Add(event);
      });
  if (typed_events == 0 && (report.closed || report.damaged_places > 0)) {
    if (report.damaged_places > 0) {
      return NotATrace(
          path, absl::StrCat("not JSON at byte ", report.first_damage_byte,
                             ", ", report.first_damage));
    }
    if (text.find("traceEvents") == std::string::npos && text[first] == '{') {
      return NotATrace(path, "it has no \"traceEvents\"");
    }
    if (report.events > 0) return NotATrace(path, "its objects have no \"ph\"");
  }
  builder->FinishFile();
  builder->SetProfiledRank(ProfiledRankOf(report.head));
  if (!read.warning.empty()) builder->AddWarning(read.warning);
  if (report.damaged_places > 0) {
    builder->AddWarning(absl::StrCat(
        path, ": damaged at ", report.damaged_places,
        report.damaged_places == 1 ? " place" : " places", " (first: byte ",
        report.first_damage_byte, "); events there are left out"));
  }
  if (report.cut_off) {
    builder->AddWarning(absl::StrCat(path, ": cut off within an event after ",
                                     report.events, " events"));
  } else if (is_ours && !report.closed && read.warning.empty()) {
    // Horovod never closes its files, so only hvdlite's are reported.
    builder->AddWarning(absl::StrCat(
        path, ": not closed (its process was killed or is still running)"));
  }
  return absl::OkStatus();
}

// Warns about ranks whose file is missing, and about files of different runs.
void CheckRanks(Trace* trace) {
  std::set<int64_t> sizes;
  for (const auto& [pid, process] : trace->processes) {
    if (process.is_rank) sizes.insert(process.world_size);
  }
  if (sizes.empty()) return;
  if (sizes.size() > 1) {
    trace->warnings.push_back(absl::StrCat(
        "per-rank trace files of different runs: they are of worlds of ",
        absl::StrJoin(sizes, ", "), " ranks; remove the old files"));
  }
  int64_t missing = 0;
  std::vector<int64_t> first_missing;
  const auto known = static_cast<int64_t>(trace->processes.size());
  for (int64_t rank = 0; rank < *sizes.rbegin(); ++rank) {
    if (trace->processes.contains(rank)) continue;
    ++missing;
    if (first_missing.size() < 10) first_missing.push_back(rank);
    if (missing > known + 1000) break;  // the size is damaged
  }
  if (missing == 0) return;
  trace->warnings.push_back(absl::StrCat(
      "no events of ", missing == 1 ? "rank " : "ranks ",
      absl::StrJoin(first_missing, ", "),
      missing > static_cast<int64_t>(first_missing.size()) ? ", ..." : "",
      " of ", *sizes.rbegin()));
}

// One readable per-rank file is enough: a rank may have been killed before it
// wrote anything.
absl::Status ReadParts(const std::vector<std::string>& parts,
                       TraceBuilder* builder) {
  absl::Status first_error;
  size_t failures = 0;
  for (const std::string& part : parts) {
    const absl::Status status = ReadFile(part, builder);
    if (status.ok()) continue;
    ++failures;
    first_error.Update(status);
    builder->AddWarning(std::string(status.message()));
  }
  return failures == parts.size() ? first_error : absl::OkStatus();
}

}  // namespace

absl::StatusOr<Trace> ReadTrace(const std::string& path) {
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                           FindTraceFiles(path));
  TraceBuilder builder;
  if (files.front() == path) {
    HVDLITE_RETURN_IF_ERROR(ReadFile(path, &builder));
    const std::map<int, std::string> parts = FindTraceParts(path);
    if (!parts.empty()) {
      builder.AddWarning(absl::StrCat(
          path, ": per-rank trace files of another run are ignored (",
          parts.begin()->second, parts.size() > 1 ? ", ..." : "", ")"));
    }
  } else {
    HVDLITE_RETURN_IF_ERROR(ReadParts(files, &builder));
  }
  Trace trace = builder.Take();
  if (!IsTracePartPath(path)) CheckRanks(&trace);
  return trace;
}

}  // namespace hvdlite::timeline
