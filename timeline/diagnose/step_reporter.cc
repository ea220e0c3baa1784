#include "timeline/diagnose/step_reporter.h"

#include <pthread.h>
#include <signal.h>

#include <iterator>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "base/contain_exceptions.h"
#include "base/mutex.h"
#include "timeline/diagnose/step_analysis.h"
#include "timeline/read/trace_builder.h"

namespace hvdlite::timeline {
namespace {

// Limit of queued events; more are dropped.
constexpr size_t kMostEvents = 65536;

// If one part of a sum is unknown (-1), the sum is unknown.
void AddKnown(int64_t part, int64_t* sum) {
  *sum = part < 0 || *sum < 0 ? -1 : *sum + part;
}

class ReporterThread final : public StepReporter {
 public:
  ReporterThread(Options options, const base::Clock& clock)
      : options_(std::move(options)),
        clock_(clock),
        start_ns_(clock.NowNanos()),
        step_start_ns_(start_ns_),
        thread_([this] { Run(); }) {}

  ~ReporterThread() override { Close().IgnoreError(); }

  void Record(TraceEvent event) override {
    bool wake = false;
    {
      base::MutexLock lock(&mutex_);
      if (closing_) return;
      if (next_ != nullptr) next_->Record(event);
      const bool queued =
          events_.size() < kMostEvents &&
          base::ContainExceptions([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
            events_.push_back(std::move(event));
          });
      if (!queued) {
        ++dropped_events_;
        return;
      }
      wake = events_.size() == kMostEvents / 2;
    }
    if (wake) wake_.NotifyOne();
  }

  void StepOver(int64_t now_ns, const StepCost& cost) override {
    base::MutexLock lock(&mutex_);
    if (next_ != nullptr) next_->StepOver(now_ns, cost);
    const int64_t start_ns = std::exchange(step_start_ns_, now_ns);
    ++step_;
    const bool queued =
        events_.size() < kMostEvents &&
        base::ContainExceptions([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
          events_.push_back(StepEvent(step_, start_ns, now_ns, cost));
        });
    if (!queued) ++dropped_events_;
    whole_events_ = events_.size();
  }

  void PassOnTo(std::shared_ptr<TraceRecorder> recorder) override {
    base::MutexLock lock(&mutex_);
    next_ = std::move(recorder);
  }

  absl::Status Close() override {
    base::MutexLock close_lock(&close_mutex_);
    {
      base::MutexLock lock(&mutex_);
      closing_ = true;
    }
    wake_.NotifyOne();
    if (thread_.joinable()) thread_.join();
    return absl::OkStatus();
  }

  int64_t dropped_events() const override {
    base::MutexLock lock(&mutex_);
    return dropped_events_;
  }

 private:
  void Run() {
    pthread_setname_np(pthread_self(), "hvdlite-report");
    // The reader of the pipe may have ended.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    bool closing = false;
    while (!closing) {
      {
        base::MutexLock lock(&mutex_);
        const absl::Duration passed =
            absl::Nanoseconds(clock_.NowNanos() - start_ns_);
        const absl::Duration left =
            options_.interval * static_cast<double>(interval_) - passed;
        if (!closing_ && events_.size() < kMostEvents / 2 &&
            left > absl::ZeroDuration()) {
          wake_.WaitFor(&mutex_, left);
        }
        closing = closing_;
      }
      if (!base::ContainExceptions([&] { TakeWholeSteps(); })) DropEvents();
      const int64_t now_ns = clock_.NowNanos();
      const auto interval =
          static_cast<int64_t>(absl::FDivDuration(
              absl::Nanoseconds(now_ns - start_ns_), options_.interval)) +
          1;
      if (interval == interval_ && !closing) continue;
      base::ContainExceptions([&] { Tell(); });
      interval_ = interval;
    }
  }

  void TakeWholeSteps() {
    std::vector<TraceEvent> events;
    {
      base::MutexLock lock(&mutex_);
      const auto whole =
          events_.begin() + static_cast<ptrdiff_t>(whole_events_);
      events.assign(std::make_move_iterator(events_.begin()),
                    std::make_move_iterator(whole));
      events_.erase(events_.begin(), whole);
      whole_events_ = 0;
    }
    if (!events.empty()) Take(std::move(events));
  }

  // Called if there is no memory.
  void DropEvents() {
    base::MutexLock lock(&mutex_);
    dropped_events_ += static_cast<int64_t>(events_.size());
    events_.clear();
    whole_events_ = 0;
  }

  // Adds the events of finished steps to the next report.
  void Take(std::vector<TraceEvent> events) {
    if (options_.sample) {
      const int64_t end_ns = events.back().start_ns + events.back().duration_ns;
      events.insert(events.end(), last_sample_.begin(), last_sample_.end());
      last_sample_ = options_.sample();
      for (TraceEvent& counter : last_sample_) counter.start_ns = end_ns;
      events.insert(events.end(), last_sample_.begin(), last_sample_.end());
    }
    const StepAnalysis analysis =
        AnalyzeSteps(TraceOf(options_.rank, options_.facts, events));
    for (const RankStep& step : analysis.steps) {
      if (next_report_.steps++ == 0) {
        next_report_.first_step = step.number;
        next_report_.start_ns = step.start_ns;
      }
      for (size_t i = 0; i < kStepParts; ++i) {
        next_report_.parts[i] += step.parts[i];
      }
      next_report_.hidden_ns += step.hidden_ns;
      AddKnown(step.work, &next_report_.work);
      AddKnown(step.cpu_ns, &next_report_.cpu_ns);
    }
    for (const Bucket& bucket : analysis.buckets) {
      ++next_report_.buckets;
      next_report_.bytes += static_cast<double>(bucket.bytes);
    }
    const auto use = analysis.resources.find(options_.rank);
    if (use != analysis.resources.end()) next_report_.use = use->second;
  }

  void Tell() {
    StepReport report = std::exchange(next_report_, StepReport());
    if (report.steps == 0) return;
    report.rank = options_.rank;
    report.size = options_.size;
    report.host = options_.host;
    report.facts = options_.facts;
    report.interval = interval_;
    options_.tell(report);
  }

  const Options options_;
  const base::Clock& clock_;
  const int64_t start_ns_;

  mutable base::Mutex mutex_;
  base::CondVar wake_;
  std::vector<TraceEvent> events_ ABSL_GUARDED_BY(mutex_);
  // Number of events that belong to finished steps.
  size_t whole_events_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t dropped_events_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<TraceRecorder> next_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t step_start_ns_ ABSL_GUARDED_BY(mutex_);

  // Used by the thread only.
  int64_t interval_ = 1;
  StepReport next_report_;
  std::vector<TraceEvent> last_sample_;

  base::Mutex close_mutex_;  // held by Close() only
  std::thread thread_ ABSL_GUARDED_BY(close_mutex_);
};

}  // namespace

std::unique_ptr<StepReporter> StepReporter::Start(Options options,
                                                  const base::Clock& clock) {
  options.facts.emplace_back("size", int64_t{options.size});
  return std::make_unique<ReporterThread>(std::move(options), clock);
}

}  // namespace hvdlite::timeline
