// What `tune` found, for people.
#include <algorithm>
#include <cstdint>
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

std::string OptionsText(const Dimension& dimension) {
  std::vector<std::string> options;
  for (int i = 1; i < dimension.option_size(); ++i) {
    options.push_back(dimension.option(i).name());
  }
  return absl::StrCat(dimension.name(), " (", absl::StrJoin(options, ", "),
                      ")");
}

std::string DimensionsText(const Dimensions& dimensions, bool presets) {
  std::vector<std::string> texts;
  for (const Dimension& dimension : dimensions) {
    if (IsWorlds(dimension) || IsPresets(dimension) != presets) continue;
    texts.push_back(OptionsText(dimension));
  }
  return texts.empty() ? "none" : absl::StrJoin(texts, ", ");
}

// Of rounds from `candidates` to one: a combination comes after the first.
int64_t RunsOfRounds(int64_t candidates, int first_repeats) {
  int64_t runs = 0;
  int before = 0;
  for (int round = 0; candidates > 1; ++round) {
    const int repeats = RepeatsAfterRound(first_repeats, round);
    runs += candidates * (repeats - before);
    before = repeats;
    candidates = (candidates + 1) / 2 + (round == 0 ? 1 : 0);
  }
  return runs;
}

// Of all last comparisons: each but two, for defaults that win, follows one
// whose winner gave up a setting.
int64_t RunsOfComparisons(int64_t settings, int repeats) {
  constexpr int64_t kOfLauncher = 5;  // LauncherDefaults
  constexpr int64_t kAlways = 3 + kOfLauncher;
  int64_t runs = 2 * kAlways;
  for (int64_t left = 0; left <= settings; ++left) runs += kAlways + left;
  return runs * repeats;
}

std::string HoursText(double seconds) {
  return seconds < 5400 ? absl::StrFormat("%.0f min", seconds / 60)
                        : absl::StrFormat("%.1f h", seconds / 3600);
}

std::string NotTried(const TuningResult& result) {
  return absl::StrCat(
      "\nNot tried: ",
      result.untried.empty() ? ""
                             : absl::StrCat(absl::StrJoin(result.untried, ", "),
                                            " (--candidates takes more); "),
      "most combinations, other numbers of ranks and threads, and the "
      "program's own flags, as its batch size.\n");
}

}  // namespace

std::string PlanText(const Spec& spec, const Dimensions& dimensions) {
  const Effort effort = EffortOf(spec);
  const std::vector<Candidate> worlds = WorldCandidates(dimensions);
  // With what is between ranks.
  const SearchBase base = {.world = worlds[1], .ranks = 2};
  const auto candidates = static_cast<int64_t>(
      StartCandidates(dimensions, base, effort.candidates, spec.seed()).size());
  const int64_t before =
      static_cast<int64_t>(worlds.size()) * effort.world_repeats +
      RunsOfRounds(candidates, effort.first_repeats);
  const auto settings = static_cast<int64_t>(dimensions.size());
  const int64_t runs =
      before + RunsOfComparisons(settings, effort.final_repeats);
  return absl::StrCat(
      "plan:\n  1. worlds, ", effort.world_repeats, " runs each: ",
      absl::StrJoin(worlds, ", ",
                    [&](std::string* out, const Candidate& candidate) {
                      absl::StrAppend(out, NameOf(dimensions, candidate));
                    }),
      "\n  2. with these, up to ", candidates, " candidates, ",
      effort.first_repeats, effort.first_repeats == 1 ? " run" : " runs",
      " each: presets: ", DimensionsText(dimensions, /*presets=*/true),
      "; in the fastest world: ", DimensionsText(dimensions, /*presets=*/false),
      "; combinations of them\n  3. the faster half of them with twice the "
      "runs, until one is left\n  4. that one against the defaults, and less "
      "each of its settings, ",
      effort.final_repeats,
      " runs each; again after each setting that is given up\nAt most ", before,
      " runs until 3., ", runs, " in all; of ", spec.time_limit_seconds(),
      " s each (--time-limit) these are ",
      HoursText(static_cast<double>(runs) * spec.time_limit_seconds()),
      ". An interrupted tune goes on by the same command.\n");
}

std::string TuningText(const TuningResult& result, const Spec& spec,
                       const std::string& launcher) {
  std::string text = absl::StrCat("\n", RankingTable(result));
  if (result.winner.alone) {
    return absl::StrCat(
        text, NotTried(result),
        "\nLibTorch's defaults are the best that was found: run\n  ",
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
  absl::StrAppend(&text, Reasons(result), NotTried(result));
  std::vector<std::string> words =
      LauncherWords(spec, result.winner, launcher, /*oversubscribed=*/false);
  for (const std::string& word : ProgramFor(spec, result.winner)) {
    words.push_back(word);
  }
  absl::StrAppend(&text, "\nRun it by\n  ", ShellText(words), "\n");
  return text;
}

}  // namespace hvdlite::scaling_sweep
