#include "timeline/trace_parts.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "timeline/trace_recorder.h"

namespace hvdlite::timeline {

std::string TracePartPath(const std::string& path, int rank) {
  return absl::StrCat(path, ".rank", absl::Dec(rank, absl::kZeroPad5));
}

std::map<int, std::string> FindTraceParts(const std::string& path) {
  const std::filesystem::path whole(path);
  std::filesystem::path folder = whole.parent_path();
  if (folder.empty()) folder = ".";
  const std::string prefix = absl::StrCat(whole.filename().string(), ".rank");

  std::map<int, std::string> parts;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    absl::string_view digits = name;
    int rank = 0;
    if (!absl::ConsumePrefix(&digits, prefix) ||
        !absl::SimpleAtoi(digits, &rank) || rank < 0) {
      continue;
    }
    const std::string part = TracePartPath(path, rank);
    if (std::filesystem::path(part).filename() == name) parts[rank] = part;
  }
  return parts;
}

bool IsTracePartPath(const std::string& path) {
  const size_t suffix = path.rfind(".rank");
  int rank = 0;
  return suffix != std::string::npos &&
         absl::SimpleAtoi(path.substr(suffix + 5), &rank) && rank >= 0 &&
         path == TracePartPath(path.substr(0, suffix), rank);
}

void RemoveEarlierTrace(const std::string& path, int size) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) {
    std::filesystem::remove(path, ignored);
  }
  for (const auto& [rank, part] : FindTraceParts(path)) {
    if (rank >= size) std::filesystem::remove(part, ignored);
  }
}

}  // namespace hvdlite::timeline
