// What `tune` found, for people.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/scaling_sweep/compare/comparison.h"
#include "tools/scaling_sweep/run/command.h"
#include "tools/scaling_sweep/tune/tuner.h"
#include "tools/support/progress_line.h"
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
                        ? support::NumberText(*ranked.items_per_second)
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
      "\n",
      support::Wrapped(
          "What each of its settings does, and what hvdliterun does by itself: "
          "items/s with all, by items/s without that one (95 % interval)"),
      support::TextTable({"setting", "ratio", "verdict"}, rows, {.keys = 1}),
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

struct MostRuns {
  int64_t candidates = 0;   // of the first round
  int64_t before_last = 0;  // until the last comparison
  int64_t all = 0;
};

MostRuns MostRunsOf(const Spec& spec, const Dimensions& dimensions) {
  const Effort effort = EffortOf(spec);
  const std::vector<Candidate> worlds = WorldCandidates(dimensions);
  // With what is between ranks.
  const SearchBase base = {.world = worlds[1], .ranks = 2};
  MostRuns most;
  most.candidates = static_cast<int64_t>(
      StartCandidates(dimensions, base, effort.candidates, spec.seed()).size());
  most.before_last =
      static_cast<int64_t>(worlds.size()) * effort.world_repeats +
      RunsOfRounds(most.candidates, effort.first_repeats);
  most.all = most.before_last +
             RunsOfComparisons(static_cast<int64_t>(dimensions.size()),
                               effort.final_repeats);
  return most;
}

std::string NotTried(const TuningResult& result) {
  const std::string untried =
      result.untried.empty() ? ""
                             : absl::StrCat(absl::StrJoin(result.untried, ", "),
                                            " (--candidates takes more); ");
  return absl::StrCat(
      "\n", support::Wrapped(absl::StrCat(
                "Not tried: ", untried,
                "most combinations, other numbers of ranks and threads, and "
                "the program's own flags, as its batch size.")));
}

}  // namespace

std::string PlanText(const Spec& spec, const Dimensions& dimensions) {
  const Effort effort = EffortOf(spec);
  const MostRuns most = MostRunsOf(spec, dimensions);
  const std::string worlds =
      absl::StrJoin(WorldCandidates(dimensions), ", ",
                    [&](std::string* out, const Candidate& candidate) {
                      absl::StrAppend(out, NameOf(dimensions, candidate));
                    });
  return absl::StrCat(
      "plan:\n",
      support::Wrapped(absl::StrCat("worlds, ", effort.world_repeats,
                                    " runs each: ", worlds),
                       "  1. "),
      support::Wrapped(
          absl::StrCat(
              "with these, up to ", most.candidates, " candidates, ",
              effort.first_repeats,
              effort.first_repeats == 1 ? " run" : " runs",
              " each: presets: ", DimensionsText(dimensions, /*presets=*/true),
              "; in the fastest world: ",
              DimensionsText(dimensions, /*presets=*/false),
              "; combinations of them"),
          "  2. "),
      support::Wrapped(
          "the faster half of them with twice the runs, until one is left",
          "  3. "),
      support::Wrapped(
          absl::StrCat("that one against the defaults, and less each of its "
                       "settings, ",
                       effort.final_repeats,
                       " runs each; again after each setting that is given up"),
          "  4. "),
      support::Wrapped(absl::StrCat(
          "At most ", most.before_last, " runs until 3., ", most.all,
          " in all, each of ", spec.time_limit_seconds(),
          " s at most (--time-limit); how long they are likely to take is told "
          "after the worlds. An interrupted tune goes on by the same "
          "command.")));
}

std::string LeftText(const Spec& spec, const Dimensions& dimensions,
                     const std::vector<Sample>& samples) {
  double seconds = 0;
  std::set<std::pair<std::string, int>> done;  // once, though it was retried
  for (const Sample& sample : samples) {
    seconds += sample.seconds;
    done.emplace(sample.configuration, sample.repeat);
  }
  const int64_t left =
      MostRunsOf(spec, dimensions).all - static_cast<int64_t>(done.size());
  if (done.empty() || left <= 0) return "";
  const double each = seconds / static_cast<double>(samples.size());
  return absl::StrCat("runs left, at most: ", left, "; at ",
                      support::NumberText(each), " s each, as until now: ",
                      support::FormatDuration(each * static_cast<double>(left)),
                      "\n");
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
