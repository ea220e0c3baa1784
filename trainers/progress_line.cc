#include "trainers/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/environment.h"
#include "base/launcher_environment.h"

namespace hvdlite::trainers {
namespace {

// Returns to the beginning of the line and erases it (ECMA-48, EL).
constexpr char kErase[] = "\r\033[K";
constexpr double kSecondsOnTerminal = 0.25;
constexpr double kLeastSecondsInLog = 10;
constexpr double kShareInLog = 0.1;  // of the run so far

// Known before main(): MPI_Init sets a launcher's variables for a process that
// none has started, too.
const bool kIsLaunched = base::IsLaunched(base::ProcessEnvironment());

}  // namespace

ProgressStyle StyleOfOutput() {
  return !kIsLaunched && isatty(STDOUT_FILENO) != 0 ? ProgressStyle::kTerminal
                                                    : ProgressStyle::kLog;
}

std::string FormatDuration(double seconds) {
  const auto whole = static_cast<long long>(std::llround(seconds));
  char text[32];
  if (whole < 60) {
    std::snprintf(text, sizeof text, "%lld", whole);
  } else if (whole < 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600,
                  whole / 60 % 60, whole % 60);
  }
  return text;
}

ProgressLine::ProgressLine(Options options)
    : options_(std::move(options)),
      start_seconds_(options_.seconds()),
      shown_seconds_(start_seconds_) {}

bool ProgressLine::IsDue(int64_t step, double now) const {
  const double pause = now - shown_seconds_;
  switch (options_.style) {
    case ProgressStyle::kNone:
      return false;
    case ProgressStyle::kTerminal:
      return pause >= kSecondsOnTerminal;
    case ProgressStyle::kLog:
      return step == options_.first_step + 1 ||
             pause >= std::max(kLeastSecondsInLog,
                               kShareInLog * (now - start_seconds_));
  }
  return false;
}

void ProgressLine::Show(int64_t step, double loss) {
  const double now = options_.seconds();
  if (step <= options_.first_step || !IsDue(step, now)) return;
  shown_seconds_ = now;
  visible_ = options_.style == ProgressStyle::kTerminal;
  const double rate = static_cast<double>(step - options_.first_step) /
                      std::max(now - start_seconds_, 1e-9);
  const double left = static_cast<double>(options_.last_step - step) / rate;
  std::fprintf(options_.out,
               "%sstep %lld/%lld, %lld%%, loss %.4f, %.3g steps/s, ETA %s%s",
               visible_ ? kErase : "", static_cast<long long>(step),
               static_cast<long long>(options_.last_step),
               static_cast<long long>(100 * step / options_.last_step), loss,
               rate, FormatDuration(left).c_str(), visible_ ? "" : "\n");
  std::fflush(options_.out);
}

void ProgressLine::Clear() {
  if (!std::exchange(visible_, false)) return;
  std::fputs(kErase, options_.out);
  std::fflush(options_.out);
}

}  // namespace hvdlite::trainers
