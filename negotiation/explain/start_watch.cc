#include "negotiation/explain/start_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/contain_exceptions.h"

namespace hvdlite::internal {

StartWatch::StartWatch(const base::Clock& clock, absl::Duration limit,
                       std::string process, Reactions reactions)
    : clock_(clock),
      limit_(limit),
      interval_(std::min(limit / 8, absl::Seconds(1))),
      process_(std::move(process)),
      short_text_(absl::StrCat(process_,
                               " has been in hvdlite::init() for too long "
                               "(HVDLITE_START_TIMEOUT_SECONDS)")),
      reactions_(std::move(reactions)),
      looked_ns_(clock.NowNanos()) {
  if (limit_ < absl::InfiniteDuration()) {
    thread_ = std::thread([this] { Loop(); });
  }
}

StartWatch::~StartWatch() {
  {
    base::MutexLock lock(&mutex_);
    stop_ = true;
    stop_changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void StartWatch::Enter(std::string stage, std::string awaited) {
  base::MutexLock lock(&mutex_);
  stage_ = std::move(stage);
  awaited_ = std::move(awaited);
}

void StartWatch::Enter(std::string stage) {
  Enter(std::move(stage),
        "a rank that has called hvdlite::init(), too, but has died or been "
        "stopped since");
}

void StartWatch::Check() {
  std::string text;
  bool has_text = false;
  bool ends = false;
  {
    base::MutexLock lock(&mutex_);
    const int64_t now_ns = clock_.NowNanos();
    const absl::Duration since_look = absl::Nanoseconds(now_ns - looked_ns_);
    looked_ns_ = now_ns;
    waited_ += std::min(since_look, 2 * interval_);
    ends = waited_ >= limit_;
    if (ended_ || (!ends && (warned_ || waited_ < limit_ / 2))) return;
    (ends ? ended_ : warned_) = true;
    has_text = base::ContainExceptions([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      text = absl::StrCat(
          process_, " has been in hvdlite::init() for ",
          absl::FormatDuration(absl::Trunc(waited_, absl::Milliseconds(100))),
          " (limit: ", absl::FormatDuration(limit_),
          ", HVDLITE_START_TIMEOUT_SECONDS), and is in ", stage_,
          ", where it waits for ", awaited_,
          ". Every waiting rank logs this after half the limit: check the "
          "processes and hosts of ranks that do not");
    });
  }
  base::ContainExceptions([&] {
    (ends ? reactions_.end : reactions_.warn)(has_text ? text : short_text_);
  });
}

void StartWatch::Loop() {
  for (;;) {
    {
      base::MutexLock lock(&mutex_);
      if (!stop_) stop_changed_.WaitFor(&mutex_, interval_);
      if (stop_) return;
    }
    Check();
  }
}

}  // namespace hvdlite::internal
