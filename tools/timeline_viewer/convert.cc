#include "tools/timeline_viewer/convert.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "timeline/record/trace_format.h"

namespace hvdlite::timeline_viewer {
namespace {

constexpr size_t kConvertWriteBytes = size_t{1} << 20;

// A track as a profile of speedscope's; 0 slices: it holds instants alone.
int64_t AppendProfile(const RawTrace& trace, const Track& track,
                      std::string* text) {
  int64_t slices = 0;
  int64_t first_ns = 0;
  int64_t last_ns = 0;
  std::string events;
  for (const TrackMoment& moment : track.moments) {
    if (moment.kind == TrackMoment::Kind::kInstant) continue;
    const bool is_begin = moment.kind == TrackMoment::Kind::kBegin;
    if (slices == 0) first_ns = moment.time_ns;
    if (is_begin) ++slices;
    last_ns = moment.time_ns;
    absl::StrAppend(&events, events.empty() ? "" : ",\n", "{\"type\":\"",
                    is_begin ? "O" : "C",
                    "\",\"frame\":", trace.slices[moment.slice].name,
                    ",\"at\":", moment.time_ns, "}");
  }
  if (slices == 0) return 0;
  absl::StrAppend(text,
                  "{\"type\":\"evented\",\"unit\":\"nanoseconds\","
                  "\"startValue\":",
                  first_ns, ",\"endValue\":", last_ns, ",\"name\":");
  timeline::AppendJsonString(
      absl::StrCat(ProcessNameOf(trace, track.pid), ", ",
                   LaneNameOf(trace, track.pid, track.tid)),
      text);
  absl::StrAppend(text, ",\"events\":[\n", events, "]}");
  return slices;
}

}  // namespace

absl::StatusOr<Conversion> ConvertToSpeedscope(const RawTrace& trace,
                                               const std::string& name,
                                               timeline::OutputFile* out) {
  std::string text =
      "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
      "\"exporter\":\"hvdlite timeline_viewer\",\"name\":";
  timeline::AppendJsonString(name, &text);
  text += ",\"shared\":{\"frames\":[\n";
  for (size_t i = 0; i < trace.names.size(); ++i) {
    text += i == 0 ? "{\"name\":" : ",\n{\"name\":";
    timeline::AppendJsonString(
        trace.names[i].empty() ? "(no name)" : trace.names[i], &text);
    text += "}";
  }
  text += "]},\n\"profiles\":[\n";
  Conversion conversion;
  for (const Track& track : TracksOf(trace)) {
    std::string profile;
    const int64_t slices = AppendProfile(trace, track, &profile);
    if (slices == 0) continue;
    absl::StrAppend(&text, conversion.slices == 0 ? "" : ",\n", profile);
    conversion.slices += slices;
    if (text.size() < kConvertWriteBytes) continue;
    HVDLITE_RETURN_IF_ERROR(out->Append(text));
    text.clear();
  }
  text += "]}\n";
  HVDLITE_RETURN_IF_ERROR(out->Append(text));
  return conversion;
}

absl::StatusOr<Conversion> ConvertTrace(const std::string& path,
                                        TraceFormat format,
                                        const std::string& out) {
  HVDLITE_ASSIGN_OR_RETURN(const RawTrace trace, ReadRawTrace(path));
  const bool is_perfetto = format == TraceFormat::kPerfetto;
  const bool has_slice =
      std::any_of(trace.slices.begin(), trace.slices.end(),
                  [](const RawSlice& slice) { return !slice.is_instant; });
  if (!has_slice && !(is_perfetto && !trace.values.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " holds nothing that took time",
                     is_perfetto ? ", and no counter" : ""));
  }
  HVDLITE_ASSIGN_OR_RETURN(const std::unique_ptr<timeline::OutputFile> file,
                           timeline::OutputFile::Open(out));
  absl::StatusOr<Conversion> conversion =
      is_perfetto ? ConvertToPerfetto(trace, file.get())
                  : ConvertToSpeedscope(
                        trace, std::filesystem::path(path).filename().string(),
                        file.get());
  HVDLITE_RETURN_IF_ERROR(conversion.status());
  conversion->left_out = trace.left_out;
  HVDLITE_RETURN_IF_ERROR(file->Commit());
  return conversion;
}

absl::Status ReportConversion(const std::string& path, TraceFormat format,
                              const std::string& out, Report* report) {
  HVDLITE_ASSIGN_OR_RETURN(const Conversion done,
                           ConvertTrace(path, format, out));
  std::string line = absl::StrCat(out, ": ", done.slices, " slices");
  if (format == TraceFormat::kPerfetto) {
    absl::StrAppend(&line, ", ", done.counter_values, " values of counters, ",
                    done.instants, " instants, ", done.flows, " arrows");
  }
  report->AddLine(line);
  if (done.left_out > 0) {
    report->AddLine(absl::StrCat(
        "Left out: ", done.left_out,
        " events of other kinds, or that do not tell all that they must"));
  }
  if (done.shift_ns != 0) {
    report->AddLine(absl::StrCat("All times are ", done.shift_ns,
                                 " ns later, since some were negative"));
  }
  report->AddData({.name = "conversion",
                   .columns = {"file", "slices", "counter_values", "instants",
                               "flows", "left_out"},
                   .rows = {{out, done.slices, done.counter_values,
                             done.instants, done.flows, done.left_out}}});
  return absl::OkStatus();
}

}  // namespace hvdlite::timeline_viewer
