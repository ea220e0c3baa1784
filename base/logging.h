// Log lines on stderr, one write each, so that lines of several ranks never
// mix.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvdlite::base {

enum class Severity { kDebug, kInfo, kWarning, kError, kOff };

// "debug", "info", "warning", "error", "off"; anything else is an error that
// lists them.
absl::StatusOr<Severity> ParseSeverity(absl::string_view text);
absl::string_view SeverityName(Severity severity);

// Writes "[hvdlite rank 3 warning] text\n" for every line at or above
// `minimum`. Passed down by pointer to whoever has something to say; there is
// no global logger. Thread-safe: immutable but for the sink, which must be
// thread-safe itself.
class Logger {
 public:
  using Sink = std::function<void(absl::string_view line)>;

  // `rank` < 0: not known yet, and left out. An empty `sink` means stderr.
  Logger(Severity minimum, int rank, Sink sink = {});

  void Debug(absl::string_view text) const { Log(Severity::kDebug, text); }
  void Info(absl::string_view text) const { Log(Severity::kInfo, text); }
  void Warning(absl::string_view text) const { Log(Severity::kWarning, text); }
  void Error(absl::string_view text) const { Log(Severity::kError, text); }

 private:
  void Log(Severity severity, absl::string_view text) const;

  Severity minimum_;
  int rank_;
  Sink sink_;
};

}  // namespace hvdlite::base
