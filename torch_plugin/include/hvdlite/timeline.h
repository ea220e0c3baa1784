// The timeline: a Chrome trace of what the library and the program do.
#pragma once

#include <cstdint>
#include <string>

namespace hvdlite {

// Starts recording into `path`: each rank into "<path>.rank00000" and so on,
// merged into `path` by stop_timeline() or shutdown(). Collective. Throws
// c10::Error on all ranks if recording is on already, a file cannot be written,
// or the last parts of the ranks' paths differ.
void start_timeline(const std::string& path);

// Stops recording and merges the ranks' files on rank 0. Collective. Does
// nothing if recording is off. Throws c10::Error on all ranks if a rank's file
// could not be written; a merge that fails only logs a warning.
void stop_timeline();

// Adds to the work of this rank's training step in progress: how much there is
// to compute, in any unit that all ranks share, such as the elements of the
// step's inputs or the tokens of its sequences, padding included. The timeline
// records it with the step, so that `timeline_viewer why` can tell batches of
// unequal work from cores of unequal speed. Several calls within a step add up;
// amounts below 0 count as none. Thread-safe, never blocks; does nothing before
// init().
//
//   hvdlite::add_step_work(batch.data.numel());
void add_step_work(int64_t amount);

// An own span in the timeline, from construction to destruction, on the rank's
// lane for user events. Does nothing while recording is off. Spans nest like
// scopes; make them in one thread.
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
