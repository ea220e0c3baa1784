// The timeline: a Chrome trace of what the library and the program do.
//
//   hvdlite::start_timeline("trace.json");
//   ... some steps ...
//   hvdlite::stop_timeline();
#pragma once

#include <cstdint>
#include <string>

namespace hvdlite {

// Starts recording. Each rank writes a per-rank trace file "<path>.rank00000",
// "<path>.rank00001", ...; stop_timeline() or shutdown() merges them into
// `path`. Collective. Throws c10::Error on all ranks if recording is already
// on, if a file cannot be written, or if the file names of the ranks' paths
// differ. The directories may differ.
void start_timeline(const std::string& path);

// Stops recording and merges the per-rank trace files on rank 0. Collective.
// Does nothing if recording is off. Throws c10::Error on all ranks if a
// per-rank trace file could not be written. A failed merge only logs a warning.
void stop_timeline();

// Adds `amount` to the work of this rank's present training step. Use the same
// unit on all ranks: for example the elements of the inputs, or the tokens of
// the sequences with padding. The timeline records it with the step, so that
// `timeline_viewer why` can distinguish mini-batches of unequal work from cores
// of unequal speed. Calls within a step add up; amounts below 0 count as 0.
// Thread-safe; never blocks. Does nothing before init().
//
//   hvdlite::add_step_work(batch.data.numel());
void add_step_work(int64_t amount);

// A span of the program's own in the timeline, from construction to
// destruction, on the rank's track for user events. Does nothing while
// recording is off. Spans nest like scopes. Create all of them in one thread.
//
//   { hvdlite::TraceSpan span("LOAD_BATCH"); loader.Next(); }
class [[nodiscard]] TraceSpan {
 public:
  explicit TraceSpan(std::string name);
  ~TraceSpan();
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  std::string name_;  // empty: not recorded
  int64_t start_ns_ = 0;
};

}  // namespace hvdlite
