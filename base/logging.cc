#include "base/logging.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace hvdlite::base {
namespace {

constexpr Severity kSeverities[] = {Severity::kDebug, Severity::kInfo,
                                    Severity::kWarning, Severity::kError,
                                    Severity::kOff};

void WriteToStderr(absl::string_view line) {
  // One write(2): the kernel does not split it among the writers of a pipe up
  // to PIPE_BUF, and a launcher forwards it whole.
  while (!line.empty()) {
    const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    if (written <= 0) return;
    line.remove_prefix(static_cast<size_t>(written));
  }
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

Logger::Logger(Severity minimum, int rank, Sink sink)
    : minimum_(minimum),
      rank_(rank),
      sink_(sink ? std::move(sink) : WriteToStderr) {}

void Logger::Log(Severity severity, absl::string_view text) const {
  if (severity < minimum_ || minimum_ == Severity::kOff) return;
  std::string line = "[hvdlite ";
  if (rank_ >= 0) line += "rank " + std::to_string(rank_) + " ";
  absl::StrAppend(&line, SeverityName(severity), "] ", text, "\n");
  sink_(line);
}

}  // namespace hvdlite::base
