// The reports about findings.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "timeline/report/reports.h"

namespace hvdlite::timeline {
namespace {

constexpr char kNothing[] =
    "no cause costs more than 3 % of a step. Waiting for ranks is reported "
    "from 8 % on, because steps always differ a little";

std::string CostOf(const Finding& finding) {
  return absl::StrFormat("%.0f %% of %s", finding.share * 100,
                         finding.of_run ? "the run" : "a step");
}

// Adds a line about the start if it takes long and is not a finding.
void AddStartUp(const Examined& examined, Report* report) {
  constexpr double kLeastShare = 0.05;
  const std::optional<StartUp> start = FindStartUp(examined.analysis);
  const bool is_told = std::any_of(
      examined.findings.begin(), examined.findings.end(),
      [](const Finding& finding) { return finding.cause == "start-up"; });
  if (!start.has_value() || start->share < kLeastShare || is_told) return;
  report->AddLine(absl::StrFormat(
      "Start-up:  the first step ended after %.3f s (%.0f %% of the run)",
      static_cast<double>(start->end_ns - start->start_ns) / 1e9,
      start->share * 100));
}

}  // namespace

void ReportFirstFinding(const Examined& examined, Report* report) {
  if (!examined.has_steps() && examined.findings.empty()) return;
  if (examined.findings.empty()) {
    report->AddProse(
        "Finding:   ",
        absl::StrCat(kNothing, examined.analysis.knows_waits ? "" : kNoWaits));
    AddStartUp(examined, report);
    report->AddLine("");
    return;
  }
  const Finding& first = examined.findings.front();
  report->AddProse("Finding:   ",
                   absl::StrCat(first.title, " (", CostOf(first), ")"));
  report->AddProse("Remedy:    ", first.remedy);
  if (examined.path.empty()) {
    for (const std::string& evidence : first.evidence) {
      report->AddProse("Evidence:  ", evidence);
    }
    return;
  }
  for (size_t i = 1; i < examined.findings.size(); ++i) {
    const Finding& other = examined.findings[i];
    report->AddProse("Also:      ",
                     absl::StrCat(other.title, " (", CostOf(other), ")"));
  }
  AddStartUp(examined, report);
  report->AddLine(
      absl::StrCat("Evidence:  timeline_viewer why ", examined.path));
  report->AddLine("");
}

void ReportWhy(const Examined& examined, Report* report) {
  Table table = {.name = "findings",
                 .columns = {"cause", "share", "of", "rank", "title",
                             "evidence", "remedy", "start_ms", "end_ms"},
                 .rows = {}};
  if (examined.findings.empty()) {
    report->AddProse(
        "",
        examined.has_steps()
            ? absl::StrCat("As far as this trace shows, ", kNothing,
                           examined.analysis.knows_waits ? "" : kNoWaits, ".")
            : absl::StrCat(kNoSteps, "."));
  }
  int64_t number = 0;
  for (const Finding& finding : examined.findings) {
    report->AddProse(absl::StrCat(++number, ". "),
                     absl::StrCat(finding.title, ": ", CostOf(finding)));
    for (const std::string& evidence : finding.evidence) {
      report->AddProse("   - ", evidence);
    }
    report->AddProse("   Remedy: ", finding.remedy);
    report->AddLine("");
  }
  if (examined.findings.size() > 1) {
    report->AddLine(
        "Shares do not add up: two findings can cost the same moment.");
    report->AddLine("");
  }
  for (const Finding& finding : examined.findings) {
    table.rows.push_back(
        {finding.cause, Cell::Number(finding.share, 4),
         finding.of_run ? "run" : "step", finding.rank, finding.title,
         absl::StrJoin(finding.evidence, "; "), finding.remedy,
         Cell::Milliseconds(static_cast<double>(finding.start_ns)),
         Cell::Milliseconds(static_cast<double>(finding.end_ns))});
  }
  report->AddData(std::move(table));
}

}  // namespace hvdlite::timeline
