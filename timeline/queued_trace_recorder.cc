#include "timeline/queued_trace_recorder.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "base/status_macros.h"
#include "timeline/part_format.h"

namespace hvdlite::timeline {
namespace {

// How long the writer lets events gather, so the most that a killed process
// can lose beyond what is being written.
constexpr absl::Duration kGatherTime = absl::Milliseconds(20);

// Text handed to the sink at once.
constexpr size_t kWriteSizeBytes = size_t{256} << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<QueuedTraceRecorder>>
QueuedTraceRecorder::Create(const Options& options,
                            std::unique_ptr<TraceSink> sink) {
  std::string header;
  AppendPartHeader(options, &header);
  HVDLITE_RETURN_IF_ERROR(sink->Append(header));
  return absl::WrapUnique(new QueuedTraceRecorder(options, std::move(sink)));
}

QueuedTraceRecorder::QueuedTraceRecorder(const Options& options,
                                         std::unique_ptr<TraceSink> sink)
    : rank_(options.rank),
      max_queued_events_(
          static_cast<size_t>(std::max(options.max_queued_events, 1))),
      sink_(std::move(sink)),
      writer_([this] { RunWriter(); }) {}

QueuedTraceRecorder::~QueuedTraceRecorder() {
  // A caller who wants the error closes before.
  Close().IgnoreError();
}

void QueuedTraceRecorder::Record(TraceEvent event) {
  bool wake = false;
  {
    base::MutexLock lock(&mutex_);
    if (closing_ || queue_.size() >= max_queued_events_) {
      ++dropped_events_;
      return;
    }
    queue_.push_back(std::move(event));
    // The first event wakes a sleeping writer; a queue that is half full ends
    // its gathering.
    wake = queue_.size() == 1 || queue_.size() == max_queued_events_ / 2;
  }
  if (wake) wake_writer_.NotifyOne();
}

absl::Status QueuedTraceRecorder::Close() {
  base::MutexLock close_lock(&close_mutex_);
  {
    base::MutexLock lock(&mutex_);
    closing_ = true;
  }
  wake_writer_.NotifyOne();
  if (writer_.joinable()) writer_.join();
  return write_status_;
}

int64_t QueuedTraceRecorder::dropped_events() const {
  base::MutexLock lock(&mutex_);
  return dropped_events_;
}

void QueuedTraceRecorder::RunWriter() {
  std::vector<TraceEvent> events;
  while (TakeEvents(&events)) {
    WriteEvents(events);
    events.clear();
  }
  // Tried even after a failed write: the file still ends with whole lines.
  std::string end;
  AppendPartEnd(rank_, dropped_events(), &end);
  const absl::Status status = sink_->Append(end);
  write_status_.Update(status);
}

bool QueuedTraceRecorder::TakeEvents(std::vector<TraceEvent>* events) {
  base::MutexLock lock(&mutex_);
  while (queue_.empty() && !closing_) wake_writer_.Wait(&mutex_);
  const size_t enough = max_queued_events_ / 2;
  while (queue_.size() < enough && !closing_) {
    if (!wake_writer_.WaitFor(&mutex_, kGatherTime)) break;
  }
  queue_.swap(*events);
  return !events->empty();
}

void QueuedTraceRecorder::WriteEvents(const std::vector<TraceEvent>& events) {
  std::string lines;
  int64_t events_in_lines = 0;
  for (const TraceEvent& event : events) {
    if (named_lanes_.insert(event.lane).second) {
      AppendLaneLines(rank_, event.lane, &lines);
    }
    AppendEventLine(rank_, event, &lines);
    ++events_in_lines;
    if (lines.size() >= kWriteSizeBytes) {
      Append(lines, events_in_lines);
      lines.clear();
      events_in_lines = 0;
    }
  }
  if (!lines.empty()) Append(lines, events_in_lines);
}

void QueuedTraceRecorder::Append(const std::string& lines, int64_t events) {
  const absl::Status status = sink_->Append(lines);
  if (status.ok()) return;
  write_status_.Update(status);
  base::MutexLock lock(&mutex_);
  dropped_events_ += events;
}

}  // namespace hvdlite::timeline
