#include "tools/timeline_viewer/merge.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "timeline/read/trace_merge.h"

namespace hvdlite::timeline_viewer {

using timeline::Cell;
using timeline::Report;
using timeline::Table;

absl::Status ReportMerge(const std::vector<std::string>& files,
                         const std::string& out, bool force, Report* report) {
  absl::StatusOr<std::vector<timeline::MergedTrace>> merged =
      timeline::MergeTraces(files, out, {.force = force});
  if (absl::IsFailedPrecondition(merged.status())) {
    return absl::FailedPreconditionError(absl::StrCat(
        merged.status().message(), "; --force merges them without a shift"));
  }
  HVDLITE_RETURN_IF_ERROR(merged.status());
  Table table = {.name = "merged",
                 .columns = {"rank", "file", "clock offset us",
                             "uncertainty us", "events in the file"},
                 .rows = {}};
  int64_t events = 0;
  bool all_known = true;
  int64_t largest_ns = 0;  // largest uncertainty
  int64_t second_ns = 0;
  for (const timeline::MergedTrace& trace : *merged) {
    events += trace.events;
    for (const std::string& warning : trace.warnings) {
      report->AddLine(absl::StrCat("Warning: ", warning));
    }
    all_known &= !trace.clocks.empty();
    for (const timeline::ProcessClock& clock : trace.clocks) {
      const std::optional<int64_t> uncertainty_ns = clock.uncertainty_ns;
      all_known &= uncertainty_ns.has_value();
      if (uncertainty_ns.value_or(0) > largest_ns) {
        second_ns = std::exchange(largest_ns, *uncertainty_ns);
      } else {
        second_ns = std::max(second_ns, uncertainty_ns.value_or(0));
      }
      table.rows.push_back(
          {clock.pid, trace.path,
           Cell::Number(static_cast<double>(clock.offset_ns) / 1e3, 3),
           uncertainty_ns.has_value()
               ? Cell::Number(static_cast<double>(*uncertainty_ns) / 1e3, 3)
               : Cell("unknown"),
           trace.events});
    }
  }
  report->AddTable(std::move(table));
  report->AddLine(absl::StrCat(out, ": ", events, " events of ", files.size(),
                               files.size() == 1 ? " file" : " files"));
  report->AddLine(
      all_known
          ? absl::StrFormat("Times of two ranks agree to %.3f us",
                            static_cast<double>(largest_ns + second_ns) / 1e3)
          : "It is unknown how well the times of the ranks agree: some files "
            "have no uncertainty of their clock offset");
  return absl::OkStatus();
}

}  // namespace hvdlite::timeline_viewer
