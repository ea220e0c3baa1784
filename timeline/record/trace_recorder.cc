#include "timeline/record/trace_recorder.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/contain_exceptions.h"
#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "timeline/record/trace_format.h"

namespace hvdlite::timeline {
namespace {

// How long the writer collects events. A killed process loses at most these and
// the events that are being written.
constexpr absl::Duration kGatherTime = absl::Milliseconds(20);

// The least time between two samples.
constexpr absl::Duration kSampleInterval = absl::Milliseconds(100);

// The size of a piece of text for the sink.
constexpr size_t kRecordWriteBytes = size_t{256} << 10;

// See OpenAppendFile.
class AppendFile final : public TraceSink {
 public:
  AppendFile(std::string path, base::Descriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  absl::Status Append(absl::string_view lines) override {
    if (const int error = base::WriteAll(descriptor_.get(), lines);
        error != 0) {
      absl::Status status = absl::ErrnoToStatus(
          error, absl::StrCat("cannot write to trace file ", path_));
      if (::ftruncate(descriptor_.get(), size_bytes_) != 0) {
        return absl::Status(
            status.code(),
            absl::StrCat(status.message(), "; its last line is incomplete"));
      }
      return status;
    }
    size_bytes_ += static_cast<int64_t>(lines.size());
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const base::Descriptor descriptor_;
  int64_t size_bytes_ = 0;
};

// Record() appends to the queue under a lock that is never held during I/O. The
// writer thread takes the whole queue, turns it into text and passes the text
// to the sink. It sleeps while there is nothing to write. After the first event
// it waits some milliseconds for more: on a core shared with computing threads,
// each wake-up costs more than the events themselves.
class QueuedTraceRecorder final : public TraceRecorder {
 public:
  QueuedTraceRecorder(const Options& options, const base::Clock& clock,
                      std::unique_ptr<TraceSink> sink);
  ~QueuedTraceRecorder() override;

  void Record(TraceEvent event) override;
  void StepOver(int64_t now_ns, const StepCost& cost) override;
  absl::Status Close() override;
  int64_t dropped_events() const override;

 private:
  void RunWriter();
  // Waits for events and moves them to `events`. Returns false once closed and
  // empty.
  bool TakeEvents(std::vector<TraceEvent>* events);
  // Adds a sample if it is due, or `at_end`.
  void Sample(bool at_end, std::vector<TraceEvent>* events);
  // Events for which there is no memory are dropped.
  void WriteEvents(const std::vector<TraceEvent>& events);
  void CountDropped(int64_t events);
  // Counts the `events` in `lines` as dropped if they cannot be written.
  void Append(const std::string& lines, int64_t events);

  const Options options_;
  const base::Clock& clock_;
  const size_t max_queued_events_;
  // Outside of options_.steps nothing is recorded.
  std::atomic<bool> in_steps_;

  mutable base::Mutex mutex_;
  base::CondVar wake_writer_;
  std::vector<TraceEvent> queue_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t dropped_events_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t step_ ABSL_GUARDED_BY(mutex_) = 1;  // the current step
  int64_t step_start_ns_ ABSL_GUARDED_BY(mutex_);

  // Used by the writer thread only; Close() reads the status after its end.
  const std::unique_ptr<TraceSink> sink_;
  std::set<int> named_tracks_;
  int64_t sampled_ns_ = 0;
  absl::Status write_status_;

  base::Mutex close_mutex_;  // held by Close() only
  std::thread writer_ ABSL_GUARDED_BY(close_mutex_);
};

QueuedTraceRecorder::QueuedTraceRecorder(const Options& options,
                                         const base::Clock& clock,
                                         std::unique_ptr<TraceSink> sink)
    : options_(options),
      clock_(clock),
      max_queued_events_(
          static_cast<size_t>(std::max(options.max_queued_events, 1))),
      in_steps_(options.steps.first <= 1),
      step_start_ns_(clock.NowNanos()),
      sink_(std::move(sink)),
      sampled_ns_(step_start_ns_),
      writer_([this] { RunWriter(); }) {}

QueuedTraceRecorder::~QueuedTraceRecorder() {
  // A caller that needs the error calls Close() itself.
  Close().IgnoreError();
}

void QueuedTraceRecorder::StepOver(int64_t now_ns, const StepCost& cost) {
  int64_t start_ns = 0;
  int64_t step = 0;
  {
    base::MutexLock lock(&mutex_);
    start_ns = std::exchange(step_start_ns_, now_ns);
    step = step_++;
  }
  const bool has_memory = base::ContainExceptions([&] {
    Record(StepEvent(step, start_ns, now_ns, cost));
  });
  if (!has_memory) CountDropped(1);
  in_steps_ =
      options_.steps.first <= step + 1 && step + 1 <= options_.steps.second;
}

void QueuedTraceRecorder::Record(TraceEvent event) {
  if (!in_steps_) return;
  bool wake = false;
  {
    base::MutexLock lock(&mutex_);
    const bool queued =
        !closing_ && queue_.size() < max_queued_events_ &&
        base::ContainExceptions([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
          queue_.push_back(std::move(event));
        });
    if (!queued) {
      ++dropped_events_;
      return;
    }
    // The first event wakes a sleeping writer. A half-full queue ends its wait
    // for more events.
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
  if (options_.sample) pthread_setname_np(pthread_self(), "hvdlite-trace");
  while (TakeEvents(&events)) {
    Sample(/*at_end=*/false, &events);
    WriteEvents(events);
    events.clear();
  }
  Sample(/*at_end=*/true, &events);
  WriteEvents(events);
  // Tried even after a failed write: the file still ends with complete lines.
  base::ContainExceptions([&] {
    std::string end;
    AppendPartEnd(options_.rank, dropped_events(), &end);
    const absl::Status status = sink_->Append(end);
    write_status_.Update(status);
  });
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

void QueuedTraceRecorder::Sample(bool at_end, std::vector<TraceEvent>* events) {
  if (!options_.sample || !in_steps_) return;
  const int64_t now_ns = clock_.NowNanos();
  if (!at_end && absl::Nanoseconds(now_ns - sampled_ns_) < kSampleInterval) {
    return;
  }
  sampled_ns_ = now_ns;
  base::ContainExceptions([&] {
    for (TraceEvent& event : options_.sample()) {
      events->push_back(std::move(event));
    }
  });
}

void QueuedTraceRecorder::WriteEvents(const std::vector<TraceEvent>& events) {
  std::string lines;
  int64_t events_in_lines = 0;
  for (const TraceEvent& event : events) {
    const size_t size = lines.size();
    const bool has_memory = base::ContainExceptions([&] {
      if (!named_tracks_.contains(event.track)) {
        AppendTrackLines(options_.rank, event.track, &lines);
      }
      AppendEventLine(options_.rank, event, &lines);
      named_tracks_.insert(event.track);
    });
    if (!has_memory) {
      lines.resize(size);
      CountDropped(1);
      continue;
    }
    ++events_in_lines;
    if (lines.size() >= kRecordWriteBytes) {
      Append(lines, events_in_lines);
      lines.clear();
      events_in_lines = 0;
    }
  }
  if (!lines.empty()) Append(lines, events_in_lines);
}

void QueuedTraceRecorder::Append(const std::string& lines, int64_t events) {
  absl::Status status(absl::StatusCode::kResourceExhausted, "");
  base::ContainExceptions([&] { status = sink_->Append(lines); });
  if (status.ok()) return;
  write_status_.Update(status);
  CountDropped(events);
}

void QueuedTraceRecorder::CountDropped(int64_t events) {
  base::MutexLock lock(&mutex_);
  dropped_events_ += events;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TraceSink>> OpenAppendFile(
    const std::string& path) {
  base::Descriptor descriptor(::open(
      path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  if (!descriptor.valid()) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("cannot create trace file ", path));
  }
  return std::make_unique<AppendFile>(path, std::move(descriptor));
}

absl::StatusOr<std::unique_ptr<TraceRecorder>> TraceRecorder::Open(
    const Options& options, const base::Clock& clock) {
  std::error_code error;
  const auto type = std::filesystem::status(options.path, error).type();
  if (type != std::filesystem::file_type::regular &&
      type != std::filesystem::file_type::not_found) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write a trace to ", options.path,
                     ": it is not a regular file; use another path, or an "
                     "empty one for no timeline"));
  }
  HVDLITE_ASSIGN_OR_RETURN(
      std::unique_ptr<TraceSink> file,
      OpenAppendFile(TracePartPath(options.path, options.rank)));
  if (options.rank == 0) RemoveEarlierTrace(options.path, options.size);
  return Create(options, clock, std::move(file));
}

absl::StatusOr<std::unique_ptr<TraceRecorder>> TraceRecorder::Create(
    const Options& options, const base::Clock& clock,
    std::unique_ptr<TraceSink> sink) {
  std::string header;
  AppendPartHeader(options.rank,
                   {.size = options.size,
                    .host = options.host,
                    .clock_offset_ns = options.clock_offset_ns,
                    .facts = options.facts},
                   &header);
  HVDLITE_RETURN_IF_ERROR(sink->Append(header));
  return std::make_unique<QueuedTraceRecorder>(options, clock, std::move(sink));
}

}  // namespace hvdlite::timeline
