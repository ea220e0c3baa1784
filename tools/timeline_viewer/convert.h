// Traces in the viewers' own formats.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "timeline/read/trace_file.h"
#include "tools/timeline_viewer/raw_trace.h"
#include "tools/timeline_viewer/report.h"

namespace hvdlite::timeline_viewer {

enum class TraceFormat {
  // Perfetto's own, which is a tenth of the JSON or less: slices with their
  // args that are numbers or texts, counters, instants and flows, on tracks
  // that are named as in the trace.
  kPerfetto,
  // speedscope's own: slices, lane by lane. As it adds starts and durations of
  // Chrome's format as doubles, it takes slices that follow one another for
  // overlapping ones; here times are whole nanoseconds.
  kSpeedscope,
};

// What a conversion took over.
struct Conversion {
  int64_t slices = 0;
  int64_t counter_values = 0;
  int64_t instants = 0;
  int64_t flows = 0;     // arrows
  int64_t left_out = 0;  // events of other kinds, and what cannot be read
  // That was added to all times, since there were negative ones.
  int64_t shift_ns = 0;
};

// Writes the trace `path`, or its parts, to `out`, times on rank 0's clock.
// Slices of a lane that overlap without one containing the other get tracks of
// their own. Errors: `path` cannot be read or holds nothing that the format
// has; `out` cannot be written.
absl::StatusOr<Conversion> ConvertTrace(const std::string& path,
                                        TraceFormat format,
                                        const std::string& out);

// The same, and tells people of it.
absl::Status ReportConversion(const std::string& path, TraceFormat format,
                              const std::string& out, Report* report);

// The formats' writers; left_out is not theirs.
absl::StatusOr<Conversion> ConvertToPerfetto(const RawTrace& trace,
                                             timeline::OutputFile* out);
absl::StatusOr<Conversion> ConvertToSpeedscope(const RawTrace& trace,
                                               const std::string& name,
                                               timeline::OutputFile* out);

}  // namespace hvdlite::timeline_viewer
