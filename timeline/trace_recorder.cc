#include "timeline/trace_recorder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "timeline/append_file.h"
#include "timeline/queued_trace_recorder.h"
#include "timeline/trace_parts.h"

namespace hvdlite::timeline {

absl::StatusOr<std::unique_ptr<TraceRecorder>> TraceRecorder::Open(
    Options options) {
  HVDLITE_ASSIGN_OR_RETURN(
      std::unique_ptr<AppendFile> file,
      AppendFile::Create(TracePartPath(options.path, options.rank)));
  if (options.rank == 0) RemoveEarlierTrace(options.path, options.size);
  HVDLITE_ASSIGN_OR_RETURN(
      std::unique_ptr<TraceRecorder> recorder,
      QueuedTraceRecorder::Create(options, std::move(file)));
  return recorder;
}

}  // namespace hvdlite::timeline
