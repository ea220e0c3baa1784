// Which file a program's name stands for.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/environment.h"

namespace hvdlite::base {

// Whether `path` is a file that this process may execute.
bool IsExecutable(const std::string& path);

// `program` itself if there is a slash in it, else the first file of its name
// that `is_executable` in the folders of PATH. NotFound, with what to do.
absl::StatusOr<std::string> PathOfProgram(
    absl::string_view program, const Environment& environment,
    const std::function<bool(const std::string&)>& is_executable =
        IsExecutable);

}  // namespace hvdlite::base
