#include "timeline/trace_recorder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "timeline/trace_format.h"

namespace hvdlite::timeline {
namespace {

// How long the writer lets events gather, so the most that a killed process
// can lose beyond what is being written.
constexpr absl::Duration kGatherTime = absl::Milliseconds(20);

// Text handed to the sink at once.
constexpr size_t kWriteSizeBytes = size_t{256} << 10;

// See OpenAppendFile.
class AppendFile final : public TraceSink {
 public:
  AppendFile(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}
  ~AppendFile() override { ::close(descriptor_); }
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  absl::Status Append(absl::string_view lines) override {
    absl::string_view rest = lines;
    while (!rest.empty()) {
      const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
      if (written < 0) {
        if (errno == EINTR) continue;
        absl::Status status = absl::ErrnoToStatus(
            errno, absl::StrCat("cannot write to trace file ", path_));
        if (::ftruncate(descriptor_, size_bytes_) != 0) {
          return absl::Status(
              status.code(),
              absl::StrCat(status.message(), "; its last line is incomplete"));
        }
        return status;
      }
      rest.remove_prefix(static_cast<size_t>(written));
    }
    size_bytes_ += static_cast<int64_t>(lines.size());
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const int descriptor_;
  int64_t size_bytes_ = 0;
};

// Record() appends to the queue under a lock that is never held during I/O. The
// writer thread takes the whole queue at once, turns it into text and hands
// that to the sink. It sleeps while there is nothing to write; after the first
// event it lets some milliseconds' worth gather, because on a core shared with
// computing threads each wake-up costs more than the events themselves.
class QueuedTraceRecorder final : public TraceRecorder {
 public:
  QueuedTraceRecorder(const Options& options, std::unique_ptr<TraceSink> sink);
  ~QueuedTraceRecorder() override;

  void Record(TraceEvent event) override;
  absl::Status Close() override;
  int64_t dropped_events() const override;

 private:
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

}  // namespace

absl::StatusOr<std::unique_ptr<TraceSink>> OpenAppendFile(
    const std::string& path) {
  const int descriptor = ::open(
      path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("cannot create trace file ", path));
  }
  return std::make_unique<AppendFile>(path, descriptor);
}

absl::StatusOr<std::unique_ptr<TraceRecorder>> TraceRecorder::Open(
    Options options) {
  HVDLITE_ASSIGN_OR_RETURN(
      std::unique_ptr<TraceSink> file,
      OpenAppendFile(TracePartPath(options.path, options.rank)));
  if (options.rank == 0) RemoveEarlierTrace(options.path, options.size);
  return Create(options, std::move(file));
}

absl::StatusOr<std::unique_ptr<TraceRecorder>> TraceRecorder::Create(
    const Options& options, std::unique_ptr<TraceSink> sink) {
  std::string header;
  AppendPartHeader(options.rank, options.size, options.host,
                   options.clock_offset_ns, &header);
  HVDLITE_RETURN_IF_ERROR(sink->Append(header));
  return std::make_unique<QueuedTraceRecorder>(options, std::move(sink));
}

}  // namespace hvdlite::timeline
