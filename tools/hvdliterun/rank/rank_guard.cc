#include "tools/hvdliterun/rank/rank_guard.h"

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/hvdliterun/rank/binding.h"
#include "tools/hvdliterun/rank/binding_watch.h"

namespace hvdlite::launch {
namespace {

// False if the end comes first.
bool Pause(absl::Duration duration, const std::stop_token& end) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  return !std::condition_variable_any().wait_for(
      lock, end, absl::ToChronoMilliseconds(duration),
      [&] { return end.stop_requested(); });
}

}  // namespace

RankGuard::RankGuard(const RankPlan& plan, const Variables& variables,
                     std::string own_arrangement,
                     std::function<void(absl::string_view)> complain)
    : plan_(plan),
      variables_(variables),
      own_arrangement_(std::move(own_arrangement)),
      complain_(std::move(complain)) {}

absl::Status RankGuard::Begin(pid_t program, std::optional<pid_t> launcher) {
  absl::StatusOr<GroupReaper> reaper =
      GroupReaper::Start({.group = program, .launcher = launcher});
  HVDLITE_RETURN_IF_ERROR(reaper.status());
  reaper_ = *std::move(reaper);
  try {
    watch_ = std::jthread(
        [this, program](const std::stop_token& end) { Watch(program, end); });
  } catch (const std::system_error& error) {  // no thread to be had
    complain_(
        absl::StrCat("nobody looks at its CPUs while it runs: ", error.what()));
  }
  return absl::OkStatus();
}

void RankGuard::End() {
  watch_ = std::jthread();  // stops and joins it
  if (reaper_.has_value()) reaper_->Release();
}

void RankGuard::Watch(pid_t program, const std::stop_token& end) const {
  const bool threads_are_free = ThreadsAreFree(variables_);
  WatchBinding(
      {.pause = [&](absl::Duration duration) { return Pause(duration, end); },
       .look =
           [&] {
             return DifferenceFromPlan(ThreadsOfGroup(program), plan_, program,
                                       threads_are_free);
           },
       .report =
           [&](absl::Duration since_start, const std::string& difference) {
             complain_(absl::StrCat(
                 since_start == absl::ZeroDuration()
                     ? "at"
                     : absl::StrCat(absl::FormatDuration(since_start),
                                    " after"),
                 " its start, ", difference, "; ",
                 HowToStopBinding(variables_, plan_, own_arrangement_)));
           }});
}

}  // namespace hvdlite::launch
