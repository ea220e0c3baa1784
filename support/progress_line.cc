#include "support/progress_line.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/terminal.h"

namespace hvdlite::support {
namespace {

// Returns to the beginning of the line and erases it (ECMA-48, EL).
constexpr char kErase[] = "\r\033[K";
constexpr double kSecondsOnTerminal = 0.25;
constexpr double kLeastSecondsInLog = 10;
constexpr double kShareInLog = 0.1;  // fraction of the time so far

// "0.125", "12.5", "1250".
std::string FormatRate(double rate) {
  return rate < 100 ? absl::StrFormat("%.3g", rate)
                    : absl::StrFormat("%.0f", rate);
}

}  // namespace

ProgressStyle StyleOfOutput() {
  return OutputIsOnTerminal() ? ProgressStyle::kTerminal : ProgressStyle::kLog;
}

std::string LineStart() { return OutputIsOnTerminal() ? kErase : ""; }

std::string FormatDuration(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 60) return absl::StrCat(whole, " s");
  if (whole < 3600) return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
  return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60,
                         whole % 60);
}

ProgressLine::ProgressLine(Options options)
    : options_(std::move(options)),
      start_seconds_(options_.seconds()),
      shown_seconds_(start_seconds_) {}

bool ProgressLine::IsDue(int64_t done, double now) const {
  const double pause = now - shown_seconds_;
  switch (options_.style) {
    case ProgressStyle::kNone:
      return false;
    case ProgressStyle::kTerminal:
      return pause >= kSecondsOnTerminal;
    case ProgressStyle::kLog:
      return (options_.tells_first && done == options_.first + 1) ||
             pause >= std::max(kLeastSecondsInLog,
                               kShareInLog * (now - start_seconds_));
  }
  return false;
}

void ProgressLine::Show(int64_t done, int64_t all, std::optional<double> loss) {
  if (options_.style == ProgressStyle::kNone) return;
  const double now = options_.seconds();
  if (done <= options_.first || !IsDue(done, now)) return;
  shown_seconds_ = now;
  visible_ = options_.style == ProgressStyle::kTerminal;
  const auto steps = static_cast<double>(done - options_.first);
  const double seconds = now - start_seconds_;
  const double rate = steps / std::max(seconds - left_out_seconds_, 1e-9);
  const double left = static_cast<double>(all - done) * seconds / steps;
  const std::string line = absl::StrFormat(
      "%s%s %d/%d, %d%%, %s%s %s/s, ETA %s%s", visible_ ? kErase : "",
      options_.item, done, all, 100 * done / all,
      loss.has_value() ? absl::StrFormat("loss %.4f, ", *loss) : "",
      FormatRate(rate), options_.items, FormatDuration(left),
      visible_ ? "" : "\n");
  std::fputs(line.c_str(), options_.out);
  std::fflush(options_.out);
}

void ProgressLine::Resume() {
  if (!paused_at_.has_value()) return;
  LeaveOut(options_.seconds() - *std::exchange(paused_at_, std::nullopt));
}

void ProgressLine::Clear() {
  if (!std::exchange(visible_, false)) return;
  std::fputs(kErase, options_.out);
  std::fflush(options_.out);
}

}  // namespace hvdlite::support
