#include "timeline/record/part_merge.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "timeline/record/merged_file.h"
#include "timeline/record/trace_format.h"
#include "timeline/record/trace_recorder.h"

namespace hvdlite::timeline {
namespace {

absl::Status AddPart(const std::string& path, MergedFile* merged) {
  std::ifstream part(path, std::ios::binary);
  if (!part) {
    return absl::NotFoundError(absl::StrCat(
        "it cannot be opened: ", std::strerror(errno),
        "; all ranks must write to the same directory, on a file system that "
        "their hosts share"));
  }
  std::optional<int64_t> clock_offset_ns;
  std::string text;
  while (std::getline(part, text)) {
    absl::string_view line = text;
    absl::ConsumeSuffix(&line, ",");
    if (line == "[" || line == "]" || line.empty()) continue;
    // A line without a newline is incomplete: its process was killed.
    if (part.eof() && !nlohmann::json::accept(line.begin(), line.end())) break;
    if (!absl::EndsWith(line, "}"))
      return absl::DataLossError("a damaged line");
    if (!absl::StartsWith(line, kEventLinePrefix)) {
      HVDLITE_RETURN_IF_ERROR(merged->AddMetadata(line, &clock_offset_ns));
    } else if (clock_offset_ns.has_value()) {
      HVDLITE_RETURN_IF_ERROR(merged->AddShifted(line, *clock_offset_ns));
    } else {
      return absl::DataLossError("events before its metadata");
    }
  }
  if (part.bad()) return absl::DataLossError("it cannot be read");
  if (!clock_offset_ns.has_value()) {
    return absl::DataLossError("it lacks its metadata");
  }
  return absl::OkStatus();
}

absl::Status WriteMerged(const std::string& path, int size,
                         const std::string& temporary_path) {
  HVDLITE_ASSIGN_OR_RETURN(const std::unique_ptr<TraceSink> file,
                           OpenAppendFile(temporary_path));
  MergedFile merged(file.get());
  for (int rank = 0; rank < size; ++rank) {
    const std::string part = TracePartPath(path, rank);
    const absl::Status status = AddPart(part, &merged);
    if (!status.ok()) {
      return absl::Status(
          status.code(),
          absl::StrCat("cannot merge the trace ", path, ": file ", part,
                       " of rank ", rank, ": ", status.message(),
                       "; the per-rank trace files are kept"));
    }
  }
  return merged.Finish();
}

}  // namespace

absl::Status MergeTraceParts(const std::string& path, int size) {
  std::error_code error;
  if (std::filesystem::exists(path, error) &&
      !std::filesystem::is_regular_file(path, error)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is not a regular file and is not replaced"));
  }
  const std::string temporary_path = absl::StrCat(path, ".merging");
  absl::Status status = WriteMerged(path, size, temporary_path);
  if (status.ok() && std::rename(temporary_path.c_str(), path.c_str()) != 0) {
    status = absl::ErrnoToStatus(
        errno, absl::StrCat("cannot rename ", temporary_path, " to ", path));
  }
  if (!status.ok()) {
    std::remove(temporary_path.c_str());
    return status;
  }
  for (int rank = 0; rank < size; ++rank) {
    std::remove(TracePartPath(path, rank).c_str());
  }
  return absl::OkStatus();
}

}  // namespace hvdlite::timeline
