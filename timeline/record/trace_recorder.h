// TraceRecorder: takes events from any thread and appends them to the trace
// file of this rank.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/logging.h"
#include "timeline/record/trace_event.h"

namespace hvdlite::timeline {

// Where a recorder's lines go. Called by one thread at a time; may block.
class TraceSink {
 public:
  virtual ~TraceSink() = default;

  // Appends `lines`, which are whole lines. After an error the sink holds none
  // of them or whole ones, as far as that can be had.
  virtual absl::Status Append(absl::string_view lines) = 0;
};

// Events go into a bounded queue; a writer thread appends them to
// "<path>.rank00001", one event per line, so that a killed process leaves a
// file that loads. Record() never blocks on the file: events that find the
// queue full are dropped and counted. Thread-safe.
class TraceRecorder {
 public:
  struct Options {
    std::string path;  // of the merged trace; the part is path + ".rankNNNNN"
    int rank = 0;
    int size = 1;
    std::string host;
    // Added to this rank's clock it gives rank 0's clock.
    int64_t clock_offset_ns = 0;
    std::vector<TraceArg> facts = {};  // more about the rank
    // Steps to record, both included: StepOver() ends the first.
    std::pair<int64_t, int64_t> steps = {1,
                                         std::numeric_limits<int64_t>::max()};
    // Called by the writer thread while events come, ten times a second at
    // most, and at the end; what it returns is recorded. May be empty.
    std::function<std::vector<TraceEvent>()> sample = {};
    int max_queued_events = 65536;
  };

  // Creates (truncates) the part file. Errors: path not writable, or something
  // else than a file.
  static absl::StatusOr<std::unique_ptr<TraceRecorder>> Open(
      const Options& options, const base::Clock& clock);

  // Writes the part's header to `sink` before it returns. Errors: the sink's.
  static absl::StatusOr<std::unique_ptr<TraceRecorder>> Create(
      const Options& options, const base::Clock& clock,
      std::unique_ptr<TraceSink> sink);

  virtual ~TraceRecorder() = default;  // closes

  virtual void Record(TraceEvent event) = 0;

  // A training step has ended; records it, from the end of the one before (the
  // first from when the recorder was made) to `now_ns`, with its cost.
  virtual void StepOver(int64_t now_ns, const StepCost& cost) = 0;

  // Writes what is queued, ends the file so that it is valid JSON, and stops
  // the writer thread. Later events are dropped. Returns the first write error.
  virtual absl::Status Close() = 0;

  virtual int64_t dropped_events() const = 0;
};

// A file that is only appended to; creates or truncates `path`. Its Append()
// writes straight to the kernel (O_APPEND, write(2)), with no buffer of its
// own: what it took is in the file even if the process is killed right after.
// On an error (a full disk, say) the file is cut back to what it held before.
// Not thread-safe. Errors name the path and the reason.
absl::StatusOr<std::unique_ptr<TraceSink>> OpenAppendFile(
    const std::string& path);

}  // namespace hvdlite::timeline
