// Log lines on stderr. Each is one write, so lines of several ranks never mix.
// hvdlite and hvdliterun use one format, so that the lines of a job can be
// sorted by time and searched by host, rank and severity.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace hvdlite::base {

enum class Severity { kDebug, kInfo, kWarning, kError, kOff };

// Parses "debug", "info", "warning", "error" or "off". The error for another
// text lists them.
absl::StatusOr<Severity> ParseSeverity(absl::string_view text);
absl::string_view SeverityName(Severity severity);

// The process that writes the lines.
struct LogOrigin {
  std::string host;
  int rank = -1;  // < 0: unknown or none, left out
  int64_t pid = 0;
  std::string program = "hvdlite";
};

// The origin of lines of this process.
LogOrigin OriginHere(int rank, std::string program = "hvdlite");

// Writes
//
//   [2026-11-25 02:31:54.123 n01 rank 3 pid 4711 hvdlite warning] text
//
// for every message at or above `minimum`, with the local time. Further lines
// of a message have no prefix. Loggers are passed by pointer; there is no
// global logger. Thread-safe: immutable except for sink and clock, which must
// be thread-safe themselves.
class Logger {
 public:
  using Sink = std::function<void(absl::string_view line)>;
  using WallClock = std::function<absl::Time()>;

  // Logs for this process. An empty `sink` means stderr.
  Logger(Severity minimum, int rank, Sink sink = {});
  Logger(Severity minimum, LogOrigin origin, Sink sink = {},
         WallClock now = absl::Now);

  // Whether messages of this severity are written.
  bool Writes(Severity severity) const {
    return severity >= minimum_ && minimum_ != Severity::kOff;
  }

  void Debug(absl::string_view text) const { Log(Severity::kDebug, text); }
  void Info(absl::string_view text) const { Log(Severity::kInfo, text); }
  void Warning(absl::string_view text) const { Log(Severity::kWarning, text); }
  void Error(absl::string_view text) const { Log(Severity::kError, text); }

 private:
  void Log(Severity severity, absl::string_view text) const;

  Severity minimum_;
  LogOrigin origin_;
  Sink sink_;
  WallClock now_;
};

}  // namespace hvdlite::base
