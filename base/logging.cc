#include "base/logging.h"

#include <time.h>
#include <unistd.h>

#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/contain_exceptions.h"
#include "base/environment.h"

namespace hvdlite::base {
namespace {

constexpr Severity kSeverities[] = {Severity::kDebug, Severity::kInfo,
                                    Severity::kWarning, Severity::kError,
                                    Severity::kOff};

void WriteToStderr(absl::string_view line) {
  // One write(2): the kernel keeps writes up to PIPE_BUF to a pipe together, so
  // a launcher forwards the line as a whole.
  while (!line.empty()) {
    const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    if (written <= 0) return;
    line.remove_prefix(static_cast<size_t>(written));
  }
}

// "2026-11-25 02:31:54.123", by the C library: ThreadSanitizer knows its locks,
// but not those of Abseil's time zones.
std::string LocalTime(absl::Time time) {
  const timespec since_epoch = absl::ToTimespec(time);
  tm local = {};
  localtime_r(&since_epoch.tv_sec, &local);
  char text[32] = "";
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S.", &local);
  return absl::StrCat(
      text, absl::Dec(since_epoch.tv_nsec / 1'000'000, absl::kZeroPad3));
}

}  // namespace

absl::StatusOr<Severity> ParseSeverity(absl::string_view text) {
  for (const Severity severity : kSeverities) {
    if (text == SeverityName(severity)) return severity;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text,
      "' is not a log level; use debug, info, warning, error or off"));
}

absl::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kDebug:
      return "debug";
    case Severity::kInfo:
      return "info";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
    case Severity::kOff:
      return "off";
  }
  return "unknown";
}

LogOrigin OriginHere(int rank, std::string program) {
  return {.host = HostName(),
          .rank = rank,
          .pid = getpid(),
          .program = std::move(program)};
}

Logger::Logger(Severity minimum, int rank, Sink sink)
    : Logger(minimum, OriginHere(rank), std::move(sink)) {}

Logger::Logger(Severity minimum, LogOrigin origin, Sink sink, WallClock now)
    : minimum_(minimum),
      origin_(std::move(origin)),
      sink_(sink ? std::move(sink) : WriteToStderr),
      now_(std::move(now)) {}

void Logger::Log(Severity severity, absl::string_view text) const {
  if (!Writes(severity)) return;
  std::string line;
  const bool has_line = ContainExceptions([&] {
    line = absl::StrCat(
        "[", LocalTime(now_()), " ", origin_.host, " ",
        origin_.rank >= 0 ? absl::StrCat("rank ", origin_.rank, " ") : "",
        "pid ", origin_.pid, " ", origin_.program, " ", SeverityName(severity),
        "] ", text, "\n");
  });
  if (has_line) {
    sink_(line);
  } else {
    sink_(text);
    sink_("\n");
  }
}

}  // namespace hvdlite::base
