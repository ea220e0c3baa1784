#include "trainers/progress_line.h"

#include <unistd.h>

#include <cmath>
#include <utility>

#include "base/environment.h"
#include "base/launcher_environment.h"

namespace hvdlite::trainers {
namespace {

constexpr double kSecondsBetweenLines = 0.25;

}  // namespace

bool ShowsProgress() {
  return !base::IsLaunched(base::ProcessEnvironment()) &&
         isatty(STDOUT_FILENO) != 0;
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

void ProgressLine::Show(int64_t step, double loss) {
  if (!options_.shown || step <= options_.first_step) return;
  const double now = options_.seconds();
  if (now - shown_seconds_ < kSecondsBetweenLines) return;
  shown_seconds_ = now;
  visible_ = true;
  const double left = (now - start_seconds_) /
                      static_cast<double>(step - options_.first_step) *
                      static_cast<double>(options_.last_step - step);
  // Returns to the beginning of the line and erases it (ECMA-48, EL).
  std::fprintf(
      options_.out, "\r\033[Kstep %lld/%lld, %lld%%, loss %.4f, ETA %s",
      static_cast<long long>(step), static_cast<long long>(options_.last_step),
      static_cast<long long>(100 * step / options_.last_step), loss,
      FormatDuration(left).c_str());
  std::fflush(options_.out);
}

void ProgressLine::Clear() {
  if (!std::exchange(visible_, false)) return;
  std::fprintf(options_.out, "\r\033[K");
  std::fflush(options_.out);
}

}  // namespace hvdlite::trainers
