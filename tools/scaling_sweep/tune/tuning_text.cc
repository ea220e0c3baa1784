// What `tune` found, for people.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/scaling_sweep/compare/comparison.h"
#include "tools/scaling_sweep/run/command.h"
#include "tools/scaling_sweep/tune/tuner.h"
#include "tools/support/text_table.h"

namespace hvdlite::scaling_sweep {
namespace {

std::string RatioText(const support::RatioEstimate& ratio) {
  std::string text = absl::StrFormat("%.3f", ratio.ratio);
  if (ratio.interval) {
    absl::StrAppendFormat(&text, " [%.3f, %.3f]", ratio.interval->low,
                          ratio.interval->high);
  }
  return text;
}

std::string Meaning(const Reason& reason) {
  switch (Judge(reason.ratio)) {
    case Significance::kFaster:
      return "it matters";
    case Significance::kSlower:
      return "it harms";
    case Significance::kNoDifference:
      break;
  }
  return SignificanceText(Significance::kNoDifference);
}

std::string RankingTable(const TuningResult& result) {
  std::vector<std::vector<std::string>> rows;
  for (const RankedCandidate& ranked : result.ranking) {
    rows.push_back({absl::StrCat(rows.size() + 1), ranked.name,
                    ranked.items_per_second
                        ? absl::StrFormat("%.4g", *ranked.items_per_second)
                        : "failed",
                    absl::StrCat(ranked.runs), absl::StrCat(ranked.rounds)});
  }
  return support::TextTable(
      {"rank", "candidate", "items/s (median)", "runs", "rounds"}, rows);
}

std::string ByDefaults(const Reason& against, const std::string& defaults) {
  if (!against.compared) {
    return absl::StrCat("A run of ", defaults, " failed.\n");
  }
  return absl::StrCat("The winner, by ", defaults, ": ",
                      RatioText(against.ratio), ", ",
                      SignificanceText(Judge(against.ratio)), "\n");
}

// The parts that are significantly faster, the greatest first.
std::string MattersMost(const TuningResult& result) {
  std::vector<Reason> faster;
  for (const Reason& reason : result.settings) {
    if (reason.compared && Judge(reason.ratio) == Significance::kFaster) {
      faster.push_back(reason);
    }
  }
  if (faster.empty()) return "No single one of them makes it faster.\n";
  std::stable_sort(faster.begin(), faster.end(),
                   [](const Reason& a, const Reason& b) {
                     return a.ratio.ratio > b.ratio.ratio;
                   });
  return absl::StrCat("It is fast because of: ",
                      absl::StrJoin(faster, ", ",
                                    [](std::string* out, const Reason& reason) {
                                      absl::StrAppendFormat(
                                          out, "%s (%.3g times)", reason.name,
                                          reason.ratio.ratio);
                                    }),
                      "\n");
}

std::string Reasons(const TuningResult& result) {
  if (result.settings.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const Reason& reason : result.settings) {
    rows.push_back(
        {reason.name, reason.compared ? RatioText(reason.ratio) : "-",
         reason.compared ? Meaning(reason) : "without it, a run failed"});
  }
  return absl::StrCat(
      "\nWhat each of its settings does, and what hvdliterun does by itself: "
      "items/s with all, by items/s without that one (95 % interval)\n",
      support::TextTable({"setting", "ratio", "verdict"}, rows),
      MattersMost(result));
}

// Without the files of a run.
std::vector<std::string> ProgramFor(const Spec& spec,
                                    const Configuration& configuration) {
  return ProgramWords(
      spec, configuration,
      {.report = "report.json", .trace = "trace.json", .log = ""});
}

}  // namespace

std::string TuningText(const TuningResult& result, const Spec& spec,
                       const std::string& launcher) {
  std::string text = absl::StrCat("\n", RankingTable(result));
  if (result.winner.alone) {
    return absl::StrCat(
        text, "\nLibTorch's defaults are the best that was found: run\n  ",
        ShellText(ProgramFor(spec, result.winner)), "\n");
  }
  absl::StrAppend(&text, "\n",
                  ByDefaults(result.against_default, "LibTorch's defaults"));
  const Candidate& winning = result.winning;
  if (std::any_of(winning.options.begin(), winning.options.end(),
                  [](size_t option) { return option != 0; })) {
    absl::StrAppend(
        &text, ByDefaults(result.against_launcher, "hvdliterun's defaults"));
    if (result.launcher_against_default.compared) {
      absl::StrAppend(&text, "hvdliterun's defaults, by LibTorch's: ",
                      RatioText(result.launcher_against_default.ratio), "\n");
    }
  }
  absl::StrAppend(&text, Reasons(result));
  std::vector<std::string> words =
      LauncherWords(spec, result.winner, launcher, /*oversubscribed=*/false);
  for (const std::string& word : ProgramFor(spec, result.winner)) {
    words.push_back(word);
  }
  absl::StrAppend(&text, "\nRun it by\n  ", ShellText(words), "\n");
  return text;
}

}  // namespace hvdlite::scaling_sweep
