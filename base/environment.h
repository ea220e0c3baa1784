// The host environment of this process: host name, working directory and
// environment variables. Only this file reads and sets variables.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvdlite::base {

// A source of variables. Tests pass a map; programs pass ProcessEnvironment().
struct Environment {
  // Value of a variable, or nullopt if unset.
  std::function<std::optional<std::string>(absl::string_view name)> get;
  // Names of all variables that are set.
  std::function<std::vector<std::string>()> names;
};

Environment ProcessEnvironment();

// This host's name, as the system gives it.
std::string HostName();

// Distinguishes hosts of the same name, such as containers.
struct HostIdentity {
  // Equal if one kernel runs both processes.
  uint64_t machine = 0;
  // Equal if both processes are also in the same PID and IPC namespaces, and
  // can thus share memory.
  uint64_t host = 0;
};

// The identity of this process's host.
HostIdentity IdentityOfHost();

// Makes `path` absolute, so that it names the same file after a change of the
// working directory or in another thread. Only the directory is prepended. An
// empty path stays empty; a path stays unchanged if there is no working
// directory.
std::string AbsolutePath(const std::string& path);

// Sets a variable of the process unless it is already set, for another library
// that reads it when it starts. Not thread-safe: call it before there are
// threads.
void SetDefaultVariable(const std::string& name, const std::string& value);
Environment FakeEnvironment(
    std::vector<std::pair<std::string, std::string>> variables);

// "NAME=VALUE" of every variable of `environment`, replaced or completed by
// `changes`; for starting programs.
std::vector<std::string> EnvironmentEntries(
    const Environment& environment,
    const std::vector<std::pair<std::string, std::string>>& changes = {});

// Convert text to a value. Errors list what is accepted, without the variable's
// name.
absl::StatusOr<int64_t> ParseInteger(absl::string_view text, int64_t minimum,
                                     int64_t maximum);
// "1048576", "64M", "64MiB", "1.5G": powers of 1024.
absl::StatusOr<int64_t> ParseBytes(absl::string_view text);
// "0.5", "30"; not negative, finite.
absl::StatusOr<double> ParseSeconds(absl::string_view text);
// "1 0 true false yes no on off", any case.
absl::StatusOr<bool> ParseBool(absl::string_view text);

// The known name nearest to `name` by edit distance; empty if more than a third
// of the letters differ for each.
std::string NearestName(absl::string_view name,
                        const std::vector<std::string>& known);

}  // namespace hvdlite::base
