// What this process finds around it: its host's name, its working directory,
// and environment variables, which are read and set here only.
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

// Where variables come from. Tests pass a map; programs pass
// ProcessEnvironment().
struct Environment {
  // Value of a variable, or nullopt if unset.
  std::function<std::optional<std::string>(absl::string_view name)> get;
  // Names of all variables that are set.
  std::function<std::vector<std::string>()> names;
};

Environment ProcessEnvironment();

// This host's name, as its system has it.
std::string HostName();

// What tells hosts of one name apart, as containers may be.
struct HostIdentity {
  // Equal where one kernel runs both processes.
  uint64_t machine = 0;
  // Equal where these are also in the same namespaces of process ids and of
  // interprocess communication, and so can share memory.
  uint64_t host = 0;
};

// Of this process.
HostIdentity IdentityOfHost();

// The same file as `path`, whatever becomes of the working directory. What is
// used later than it is given, or by another thread, is kept like this. Nothing
// but the directory is put before a path; an empty one stays empty, and so does
// any where there is no working directory.
std::string AbsolutePath(const std::string& path);

// Sets a variable of the process unless it is set already. For what another
// library reads when it starts; not thread-safe, so before it has threads.
void SetDefaultVariable(const std::string& name, const std::string& value);
Environment FakeEnvironment(
    std::vector<std::pair<std::string, std::string>> variables);

// "NAME=VALUE" of every variable, for starting programs: those of `environment`
// with `changes` in their place.
std::vector<std::string> EnvironmentEntries(
    const Environment& environment,
    const std::vector<std::pair<std::string, std::string>>& changes = {});

// Text to value; errors say what is accepted, without naming the variable.
absl::StatusOr<int64_t> ParseInteger(absl::string_view text, int64_t minimum,
                                     int64_t maximum);
// "1048576", "64M", "64MiB", "1.5G": powers of 1024.
absl::StatusOr<int64_t> ParseBytes(absl::string_view text);
// "0.5", "30"; not negative, finite.
absl::StatusOr<double> ParseSeconds(absl::string_view text);
// "1 0 true false yes no on off", any case.
absl::StatusOr<bool> ParseBool(absl::string_view text);

// The known name nearest to `name` by edit distance; empty when none is near
// (more than a third of its letters differ).
std::string NearestName(absl::string_view name,
                        const std::vector<std::string>& known);

}  // namespace hvdlite::base
