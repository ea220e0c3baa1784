#include "tools/support/program_path.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hvdlite::base {

bool IsExecutable(const std::string& path) {
  std::error_code error;
  return access(path.c_str(), X_OK) == 0 &&
         std::filesystem::is_regular_file(path, error);
}

absl::StatusOr<std::string> PathOfProgram(
    absl::string_view program, const Environment& environment,
    const std::function<bool(const std::string&)>& is_executable) {
  if (absl::StrContains(program, "/")) return std::string(program);
  const std::string path = environment.get("PATH").value_or("/bin:/usr/bin");
  for (const absl::string_view folder : absl::StrSplit(path, ':')) {
    std::string candidate =
        absl::StrCat(folder.empty() ? "." : folder, "/", program);
    if (is_executable(candidate)) return candidate;
  }
  return absl::NotFoundError(
      absl::StrCat("there is no ", program, " in PATH: give its path (./",
                   program, "), or add its folder to PATH"));
}

}  // namespace hvdlite::base
