#include "timeline/part_format.h"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "absl/strings/str_cat.h"
#include "timeline/json_text.h"

namespace hvdlite::timeline {
namespace {

// Some viewers reject events without tid, metadata included.
void AppendMetadata(absl::string_view name, int rank, int lane,
                    absl::string_view args, std::string* out) {
  absl::StrAppend(out, "{\"name\":\"", name, "\",\"ph\":\"M\",\"pid\":", rank,
                  ",\"tid\":", lane, ",\"args\":{", args, "}}");
}

std::string LaneName(int lane) {
  if (lane == kBatchLane) return "batch";
  if (lane == kChunkLane) return "chunks";
  if (lane == kUserLane) return "application";
  if (lane >= kFirstTensorLane) {
    return absl::StrCat("tensors ", lane - kFirstTensorLane + 1);
  }
  return absl::StrCat("lane ", lane);
}

void AppendArgs(const std::vector<TraceArg>& args, std::string* out) {
  out->append(",\"args\":{");
  for (size_t i = 0; i < args.size(); ++i) {
    if (i > 0) out->push_back(',');
    AppendJsonString(args[i].first, out);
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
        args[i].second);
  }
  out->push_back('}');
}

}  // namespace

void AppendPartHeader(const TraceRecorder::Options& options, std::string* out) {
  const int rank = options.rank;
  out->append("[\n");

  std::string args = "\"name\":";
  AppendJsonString(absl::StrCat("rank ", rank, " (", options.host, ")"), &args);
  AppendMetadata("process_name", rank, kBatchLane, args, out);
  out->append(",\n");

  AppendMetadata("process_sort_index", rank, kBatchLane,
                 absl::StrCat("\"sort_index\":", rank), out);
  out->append(",\n");

  args =
      absl::StrCat("\"rank\":", rank, ",\"size\":", options.size, ",\"host\":");
  AppendJsonString(options.host, &args);
  absl::StrAppend(&args, ",\"clock\":\"CLOCK_MONOTONIC\",\"clock_offset_ns\":",
                  options.clock_offset_ns);
  AppendMetadata(kTraceMetadata, rank, kBatchLane, args, out);
  out->append(",\n");
}

void AppendLaneLines(int rank, int lane, std::string* out) {
  AppendMetadata("thread_name", rank, lane,
                 absl::StrCat("\"name\":\"", LaneName(lane), "\""), out);
  out->append(",\n");
  AppendMetadata("thread_sort_index", rank, lane,
                 absl::StrCat("\"sort_index\":", lane), out);
  out->append(",\n");
}

void AppendEventLine(int rank, const TraceEvent& event, std::string* out) {
  out->append(kEventLinePrefix.data(), kEventLinePrefix.size());
  AppendMicroseconds(event.start_ns, out);
  out->append(",\"dur\":");
  AppendMicroseconds(std::max<int64_t>(event.duration_ns, 0), out);
  out->append(",\"ph\":\"X\",\"name\":");
  AppendJsonString(event.name, out);
  absl::StrAppend(out, ",\"pid\":", rank, ",\"tid\":", event.lane);
  if (!event.args.empty()) AppendArgs(event.args, out);
  out->append("},\n");
}

void AppendPartEnd(int rank, int64_t dropped_events, std::string* out) {
  AppendMetadata(kDroppedMetadata, rank, kBatchLane,
                 absl::StrCat("\"dropped_events\":", dropped_events), out);
  out->append("\n]\n");
}

}  // namespace hvdlite::timeline
