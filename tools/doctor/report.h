// Output of the findings: a table for users, JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tools/doctor/check.h"

namespace hvdlite::doctor {

// "ok", "note", "warning", "problem".
absl::string_view VerdictName(Verdict verdict);

// Merges equal findings into one that lists all their ranks. The order is that
// of the first occurrence, by rank. `of_rank[r]`: the findings of rank r.
std::vector<Finding> MergeFindings(
    const std::vector<std::vector<Finding>>& of_rank);

// The worst verdict; kOk if there are no findings.
Verdict WorstOf(absl::Span<const Finding> findings);

// support::kFoundExitCode if there is a warning or a problem, otherwise 0.
int ExitCodeOf(absl::Span<const Finding> findings);

// "all", "0", "0-3,5 (node1, node2)": hosts are named if there are several.
std::string DescribeRanks(absl::Span<const int> ranks,
                          absl::Span<const std::string> host_of_rank);

// One entry per finding; its remedy follows on a separate line.
std::string FindingsTable(absl::Span<const Finding> findings,
                          absl::Span<const std::string> host_of_rank);

// The same content as JSON.
std::string FindingsJson(absl::Span<const Finding> findings,
                         absl::Span<const std::string> host_of_rank);

}  // namespace hvdlite::doctor
