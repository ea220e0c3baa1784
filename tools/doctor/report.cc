#include "tools/doctor/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "support/input_error.h"
#include "support/processor.h"
#include "support/text_table.h"

namespace hvdlite::doctor {
namespace {

bool SaysTheSame(const Finding& a, const Finding& b) {
  return a.check == b.check && a.verdict == b.verdict && a.seen == b.seen &&
         a.remedy == b.remedy;
}

// The hosts of the ranks, in the order of their first ranks.
std::vector<std::string> HostsOf(absl::Span<const int> ranks,
                                 absl::Span<const std::string> host_of_rank) {
  std::vector<std::string> hosts;
  for (const int rank : ranks) {
    if (static_cast<size_t>(rank) >= host_of_rank.size()) continue;
    const std::string& host = host_of_rank[rank];
    if (std::find(hosts.begin(), hosts.end(), host) == hosts.end()) {
      hosts.push_back(host);
    }
  }
  return hosts;
}

}  // namespace

absl::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kNote:
      return "note";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kProblem:
      return "problem";
  }
  return "?";
}

std::vector<Finding> MergeFindings(
    const std::vector<std::vector<Finding>>& of_rank) {
  std::vector<Finding> merged;
  for (size_t rank = 0; rank < of_rank.size(); ++rank) {
    for (Finding finding : of_rank[rank]) {
      if (finding.ranks.empty()) finding.ranks = {static_cast<int>(rank)};
      const auto same = std::find_if(
          merged.begin(), merged.end(),
          [&](const Finding& other) { return SaysTheSame(other, finding); });
      if (same == merged.end()) {
        merged.push_back(std::move(finding));
        continue;
      }
      std::set<int> ranks(same->ranks.begin(), same->ranks.end());
      ranks.insert(finding.ranks.begin(), finding.ranks.end());
      same->ranks.assign(ranks.begin(), ranks.end());
    }
  }
  return merged;
}

Verdict WorstOf(absl::Span<const Finding> findings) {
  Verdict worst = Verdict::kOk;
  for (const Finding& finding : findings) {
    worst = std::max(worst, finding.verdict);
  }
  return worst;
}

int ExitCodeOf(absl::Span<const Finding> findings) {
  return WorstOf(findings) >= Verdict::kWarning ? support::kFoundExitCode : 0;
}

std::string DescribeRanks(absl::Span<const int> ranks,
                          absl::Span<const std::string> host_of_rank) {
  if (ranks.size() == host_of_rank.size()) return "all";
  std::string text =
      support::FormatCpuList(std::vector<int>(ranks.begin(), ranks.end()));
  if (HostsOf(RanksUpTo(host_of_rank.size()), host_of_rank).size() > 1) {
    absl::StrAppend(&text, " (",
                    absl::StrJoin(HostsOf(ranks, host_of_rank), ", "), ")");
  }
  return text;
}

std::string FindingsTable(absl::Span<const Finding> findings,
                          absl::Span<const std::string> host_of_rank) {
  constexpr size_t kMostRanks = 24;  // characters; longer texts overflow
  size_t check_width = std::string("check").size();
  size_t ranks_width = std::string("ranks").size();
  for (const Finding& finding : findings) {
    const size_t width = DescribeRanks(finding.ranks, host_of_rank).size();
    check_width = std::max(check_width, finding.check.size());
    if (width <= kMostRanks) ranks_width = std::max(ranks_width, width);
  }
  const auto head = [&](absl::string_view verdict, absl::string_view check,
                        absl::string_view ranks) {
    return absl::StrFormat("%-8s %-*s  %-*s  ", verdict,
                           static_cast<int>(check_width), check,
                           static_cast<int>(ranks_width), ranks);
  };
  std::string table = absl::StrCat(head("verdict", "check", "ranks"), "seen\n");
  for (const Finding& finding : findings) {
    absl::StrAppend(
        &table,
        support::Wrapped(finding.seen,
                         head(VerdictName(finding.verdict), finding.check,
                              DescribeRanks(finding.ranks, host_of_rank))));
    if (!finding.remedy.empty()) {
      // The remedy is not wrapped, so that its commands can be copied.
      absl::StrAppend(&table, head("", "", ""), "fix: ", finding.remedy, "\n");
    }
  }
  return table;
}

std::string FindingsJson(absl::Span<const Finding> findings,
                         absl::Span<const std::string> host_of_rank) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    nlohmann::ordered_json one;
    one["check"] = finding.check;
    one["verdict"] = std::string(VerdictName(finding.verdict));
    one["seen"] = finding.seen;
    one["remedy"] = finding.remedy;
    one["ranks"] = finding.ranks;
    one["hosts"] = HostsOf(finding.ranks, host_of_rank);
    all.push_back(std::move(one));
  }
  nlohmann::ordered_json report;
  report["worst"] = std::string(VerdictName(WorstOf(findings)));
  report["ranks"] = host_of_rank.size();
  report["host_of_rank"] =
      std::vector<std::string>(host_of_rank.begin(), host_of_rank.end());
  report["findings"] = std::move(all);
  return report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

}  // namespace hvdlite::doctor
