// The timeline: a Chrome trace of what the library and the program do.
#pragma once

#include <cstdint>
#include <string>

namespace hvdlite {

// Starts recording into `path`: each rank into "<path>.rank00000" and so on,
// merged into `path` by stop_timeline() or shutdown(). Collective. Throws
// c10::Error on all ranks if recording is on already or a file cannot be
// written.
void start_timeline(const std::string& path);

// Stops recording and merges the ranks' files on rank 0. Collective. Does
// nothing if recording is off. Throws c10::Error on all ranks if a rank's file
// could not be written; a merge that fails only logs a warning.
void stop_timeline();

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
