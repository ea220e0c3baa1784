#include "tools/hvdliterun/launch/job_logs.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/new_file.h"
#include "support/output_file.h"

namespace hvdlite::launch {
namespace {

constexpr char kPlanName[] = "hvdliterun.txt";

// Whether a job writes files of this name into --output-dir.
bool IsOfJob(absl::string_view name) {
  int number = 0;
  if (name == kPlanName || name == "launcher.log") return true;
  return absl::ConsumePrefix(&name, "restart.") ||
                 (absl::ConsumePrefix(&name, "rank.") &&
                  absl::ConsumeSuffix(&name, ".log"))
             ? absl::SimpleAtoi(name, &number)
             : false;
}

std::vector<std::filesystem::path> LogsIn(const std::string& directory) {
  std::vector<std::filesystem::path> logs;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end;
       !error && entry != end; entry.increment(error)) {
    if (IsOfJob(entry->path().filename().string()) &&
        !base::IsStream(entry->path())) {
      logs.push_back(entry->path());
    }
  }
  return logs;
}

}  // namespace

absl::Status CheckLogs(const std::string& directory) {
  const std::vector<std::filesystem::path> logs = LogsIn(directory);
  if (logs.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "--output-dir: '", directory,
      "' contains logs of an earlier job, such as ",
      logs.front().filename().string(),
      ": name another directory, or remove them with --overwrite"));
}

absl::Status RemoveLogs(const std::string& directory) {
  for (const std::filesystem::path& log : LogsIn(directory)) {
    std::error_code error;
    std::filesystem::remove_all(log, error);
    if (!error) continue;
    return absl::PermissionDeniedError(
        absl::StrCat("--output-dir: cannot remove ", log.string(), ": ",
                     error.message(), "; name another directory"));
  }
  return absl::OkStatus();
}

absl::Status WritePlan(const std::string& directory, const std::string& plan) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  const std::string path = directory + "/" + kPlanName;
  if (support::WriteNewFile(path, plan).ok()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "--output-dir: cannot write " + path +
      ": name a directory that you may write to, on a file system that all "
      "nodes share");
}

}  // namespace hvdlite::launch
