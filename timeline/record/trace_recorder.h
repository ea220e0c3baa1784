// TraceRecorder appends events of any thread to the trace file of this rank.
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

// Receives a recorder's lines. Called by one thread at a time; may block.
class TraceSink {
 public:
  virtual ~TraceSink() = default;

  // Appends `lines`, which are complete lines. After an error, the sink should
  // hold complete lines only.
  virtual absl::Status Append(absl::string_view lines) = 0;
};

// Events go into a bounded queue. A writer thread appends them to
// "<path>.rank00001", one event per line, so that the file of a killed process
// can be read. Record() never blocks on the file: when the queue is full,
// events are dropped and counted. Thread-safe.
class TraceRecorder {
 public:
  struct Options {
    std::string path;  // the merged trace; this rank's file adds ".rankNNNNN"
    int rank = 0;
    int size = 1;
    std::string host;
    // Adding it to this rank's clock gives rank 0's clock.
    int64_t clock_offset_ns = 0;
    std::vector<TraceArg> facts = {};  // more about the rank
    // The first and the last step to record. The first StepOver() ends step 1.
    std::pair<int64_t, int64_t> steps = {1,
                                         std::numeric_limits<int64_t>::max()};
    // Returns events to record. The writer thread calls it while events arrive,
    // at most ten times a second, and at the end. May be empty.
    std::function<std::vector<TraceEvent>()> sample = {};
    int max_queued_events = 65536;
  };

  // Creates (truncates) the trace file of this rank. Errors: the path is not
  // writable or not a regular file.
  static absl::StatusOr<std::unique_ptr<TraceRecorder>> Open(
      const Options& options, const base::Clock& clock);

  // Writes the header to `sink` before it returns. Errors: those of the sink.
  static absl::StatusOr<std::unique_ptr<TraceRecorder>> Create(
      const Options& options, const base::Clock& clock,
      std::unique_ptr<TraceSink> sink);

  virtual ~TraceRecorder() = default;  // closes

  virtual void Record(TraceEvent event) = 0;

  // Records that a training step has ended at `now_ns`, with its cost. It began
  // at the end of the step before; the first began when the recorder was
  // created.
  virtual void StepOver(int64_t now_ns, const StepCost& cost) = 0;

  // Writes the queued events, ends the file as valid JSON, and stops the writer
  // thread. Later events are dropped. Returns the first write error.
  virtual absl::Status Close() = 0;

  virtual int64_t dropped_events() const = 0;
};

// Creates or truncates `path` and appends to it. Append() writes to the kernel
// without a buffer (O_APPEND, write(2)): the lines are in the file even if the
// process is killed right after. After an error, such as a full disk, the file
// is truncated to its size before. Not thread-safe. Errors name the path and
// the reason.
absl::StatusOr<std::unique_ptr<TraceSink>> OpenAppendFile(
    const std::string& path);

}  // namespace hvdlite::timeline
