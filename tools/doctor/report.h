// The findings of all ranks, for people and programs.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tools/doctor/check.h"

namespace hvdlite::doctor {

// "ok", "note", "warning", "problem".
absl::string_view VerdictName(Verdict verdict);

// Equal findings become one, which names all their ranks; in the order in which
// they first occur, by rank. `of_rank[r]` are those that rank r returned.
std::vector<Finding> MergeFindings(
    const std::vector<std::vector<Finding>>& of_rank);

// kOk for none.
Verdict WorstOf(absl::Span<const Finding> findings);

// 0 up to a note, support::kFoundExitCode from a warning on.
int ExitCodeOf(absl::Span<const Finding> findings);

// "all", "0", "0-3,5 (node1, node2)": hosts are named where there are several.
std::string DescribeRanks(absl::Span<const int> ranks,
                          absl::Span<const std::string> host_of_rank);

// One line per finding, the remedy on a line of its own below it.
std::string FindingsTable(absl::Span<const Finding> findings,
                          absl::Span<const std::string> host_of_rank);

// The same as JSON.
std::string FindingsJson(absl::Span<const Finding> findings,
                         absl::Span<const std::string> host_of_rank);

}  // namespace hvdlite::doctor
