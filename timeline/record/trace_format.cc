#include "timeline/record/trace_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <type_traits>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hvdlite::timeline {
namespace {

bool NeedsNoEscape(char c) {
  return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

// Some viewers reject events without tid, metadata included.
void AppendMetadata(absl::string_view name, int rank, int track,
                    absl::string_view args, std::string* out) {
  absl::StrAppend(out, "{\"name\":\"", name, "\",\"ph\":\"M\",\"pid\":", rank,
                  ",\"tid\":", track, ",\"args\":{", args, "}}");
}

std::string TrackName(int track) {
  if (track == kBucketTrack) return "bucket";
  if (track == kChunkTrack) return "chunks";
  if (track == kUserTrack) return "application";
  if (track == kStepTrack) return "steps";
  if (track >= kFirstTensorTrack) {
    return absl::StrCat("tensors ", track - kFirstTensorTrack + 1);
  }
  return absl::StrCat("track ", track);
}

void AppendArg(const TraceArg& arg, std::string* out) {
  AppendJsonString(arg.first, out);
  out->push_back(':');
  std::visit(
      [out](const auto& value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::string>) {
          AppendJsonString(value, out);
        } else if constexpr (std::is_same_v<Value, double>) {
          AppendJsonNumber(value, out);
        } else {
          absl::StrAppend(out, value);
        }
      },
      arg.second);
}

void AppendArgs(const std::vector<TraceArg>& args, std::string* out) {
  out->append(",\"args\":{");
  for (size_t i = 0; i < args.size(); ++i) {
    if (i > 0) out->push_back(',');
    AppendArg(args[i], out);
  }
  out->push_back('}');
}

// The id of an arrow, unique over all ranks.
void AppendFlow(int rank, const TraceEvent& event, std::string* out) {
  constexpr int kBitsOfFlow = 40;
  const uint64_t id =
      (static_cast<uint64_t>(rank) + 1) << kBitsOfFlow |
      static_cast<uint64_t>(event.flow_id) % (uint64_t{1} << kBitsOfFlow);
  absl::StrAppend(
      out, ",\"bind_id\":\"0x", absl::Hex(id), "\",",
      event.flow == TraceEvent::Flow::kOut ? "\"flow_out\"" : "\"flow_in\"",
      ":true");
}

}  // namespace

void AppendJsonString(absl::string_view text, std::string* out) {
  if (std::all_of(text.begin(), text.end(), NeedsNoEscape)) {
    absl::StrAppend(out, "\"", text, "\"");
    return;
  }
  out->append(nlohmann::json(std::string(text))
                  .dump(/*indent=*/-1, /*indent_char=*/' ',
                        /*ensure_ascii=*/false,
                        nlohmann::json::error_handler_t::replace));
}

void AppendJsonNumber(double value, std::string* out) {
  if (!std::isfinite(value)) {
    out->append("null");
    return;
  }
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value);
  out->append(digits, end.ptr);
}

void AppendMicroseconds(int64_t time_ns, std::string* out) {
  uint64_t magnitude_ns = static_cast<uint64_t>(time_ns);
  if (time_ns < 0) {
    out->push_back('-');
    magnitude_ns = 0 - magnitude_ns;
  }
  absl::StrAppend(out, magnitude_ns / 1000, ".",
                  absl::Dec(magnitude_ns % 1000, absl::kZeroPad3));
}

void AppendPartHeader(int rank, const PartDescription& part, std::string* out) {
  out->append("[\n");

  std::string args = "\"name\":";
  AppendJsonString(absl::StrCat("rank ", rank, " (", part.host, ")"), &args);
  AppendMetadata("process_name", rank, kBucketTrack, args, out);
  out->append(",\n");

  AppendMetadata("process_sort_index", rank, kBucketTrack,
                 absl::StrCat("\"sort_index\":", rank), out);
  out->append(",\n");

  args = absl::StrCat("\"rank\":", rank, ",\"size\":", part.size, ",\"host\":");
  AppendJsonString(part.host, &args);
  absl::StrAppend(&args, ",\"clock\":\"CLOCK_MONOTONIC\",\"clock_offset_ns\":",
                  part.clock_offset_ns);
  for (const TraceArg& fact : part.facts) {
    args.push_back(',');
    AppendArg(fact, &args);
  }
  AppendMetadata(kTraceMetadata, rank, kBucketTrack, args, out);
  out->append(",\n");
}

void AppendTrackLines(int rank, int track, std::string* out) {
  AppendMetadata("thread_name", rank, track,
                 absl::StrCat("\"name\":\"", TrackName(track), "\""), out);
  out->append(",\n");
  AppendMetadata("thread_sort_index", rank, track,
                 absl::StrCat("\"sort_index\":", track), out);
  out->append(",\n");
}

void AppendEventLine(int rank, const TraceEvent& event, std::string* out) {
  out->append(kEventLinePrefix.data(), kEventLinePrefix.size());
  AppendMicroseconds(event.start_ns, out);
  if (event.kind == TraceEvent::Kind::kCounter) {
    out->append(",\"ph\":\"C\",\"name\":");
  } else {
    out->append(",\"dur\":");
    AppendMicroseconds(std::max<int64_t>(event.duration_ns, 0), out);
    out->append(",\"ph\":\"X\",\"name\":");
  }
  AppendJsonString(event.name, out);
  absl::StrAppend(out, ",\"pid\":", rank, ",\"tid\":", event.track);
  if (event.flow != TraceEvent::Flow::kNone) AppendFlow(rank, event, out);
  if (!event.args.empty()) AppendArgs(event.args, out);
  out->append("},\n");
}

void AppendPartEnd(int rank, int64_t dropped_events, std::string* out) {
  AppendMetadata(kDroppedMetadata, rank, kBucketTrack,
                 absl::StrCat("\"dropped_events\":", dropped_events), out);
  out->append("\n]\n");
}

std::string TracePartPath(const std::string& path, int rank) {
  return absl::StrCat(path, ".rank", absl::Dec(rank, absl::kZeroPad5));
}

std::map<int, std::string> FindTraceParts(const std::string& path) {
  const std::filesystem::path whole(path);
  std::filesystem::path directory = whole.parent_path();
  if (directory.empty()) directory = ".";
  const std::string prefix = absl::StrCat(whole.filename().string(), ".rank");

  std::map<int, std::string> parts;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    absl::string_view digits = name;
    int rank = 0;
    if (!absl::ConsumePrefix(&digits, prefix) ||
        !absl::SimpleAtoi(digits, &rank) || rank < 0) {
      continue;
    }
    const std::string part = TracePartPath(path, rank);
    if (std::filesystem::path(part).filename() == name) parts[rank] = part;
  }
  return parts;
}

bool IsTracePartPath(const std::string& path) {
  const size_t suffix = path.rfind(".rank");
  int rank = 0;
  return suffix != std::string::npos &&
         absl::SimpleAtoi(path.substr(suffix + 5), &rank) && rank >= 0 &&
         path == TracePartPath(path.substr(0, suffix), rank);
}

std::string PathOfNextWorld(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::filesystem::path stem = whole.stem();
  const std::string last = stem.extension().string();
  absl::string_view number_text = last;
  int64_t number = 0;
  const bool counted = absl::ConsumePrefix(&number_text, ".world") &&
                       absl::SimpleAtoi(number_text, &number);
  const std::string name =
      absl::StrCat(counted ? stem.stem().string() : stem.string(), ".world",
                   counted ? number + 1 : 2, whole.extension().string());
  return (whole.parent_path() / name).string();
}

void RemoveEarlierTrace(const std::string& path, int size) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) {
    std::filesystem::remove(path, ignored);
  }
  for (const auto& [rank, part] : FindTraceParts(path)) {
    if (rank >= size) std::filesystem::remove(part, ignored);
  }
}

}  // namespace hvdlite::timeline
