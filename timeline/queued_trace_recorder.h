// The TraceRecorder: a bounded queue and a writer thread.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "timeline/trace_recorder.h"
#include "timeline/trace_sink.h"

namespace hvdlite::timeline {

// Record() appends to the queue under a lock that is never held during I/O. The
// writer thread takes the whole queue at once, turns it into text and hands
// that to the sink. It sleeps while there is nothing to write; after the first
// event it lets some milliseconds' worth gather, because on a core shared with
// computing threads each wake-up costs more than the events themselves.
class QueuedTraceRecorder final : public TraceRecorder {
 public:
  // Writes the part's header to `sink` before it returns. Errors: the sink's.
  static absl::StatusOr<std::unique_ptr<QueuedTraceRecorder>> Create(
      const Options& options, std::unique_ptr<TraceSink> sink);

  ~QueuedTraceRecorder() override;

  void Record(TraceEvent event) override;
  absl::Status Close() override;
  int64_t dropped_events() const override;

 private:
  QueuedTraceRecorder(const Options& options, std::unique_ptr<TraceSink> sink);

  void RunWriter();
  // Waits for events; moves them to `events`. False once closed and empty.
  bool TakeEvents(std::vector<TraceEvent>* events);
  void WriteEvents(const std::vector<TraceEvent>& events);
  // Counts the `events` in `lines` as dropped if they cannot be written.
  void Append(const std::string& lines, int64_t events);

  const int rank_;
  const size_t max_queued_events_;

  mutable base::Mutex mutex_;
  base::CondVar wake_writer_;
  std::vector<TraceEvent> queue_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t dropped_events_ ABSL_GUARDED_BY(mutex_) = 0;

  // The writer thread's own; Close() reads the status once it has ended.
  const std::unique_ptr<TraceSink> sink_;
  std::set<int> named_lanes_;
  absl::Status write_status_;

  base::Mutex close_mutex_;  // held by Close() only
  std::thread writer_ ABSL_GUARDED_BY(close_mutex_);
};

}  // namespace hvdlite::timeline
