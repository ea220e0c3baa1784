// Prints the results of `tune` for people.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "support/progress_line.h"
#include "support/text_table.h"
#include "tools/scaling_sweep/compare/comparison.h"
#include "tools/scaling_sweep/run/command.h"
#include "tools/scaling_sweep/tune/tuner.h"

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
    rows.push_back(
        {absl::StrCat(rows.size() + 1), ranked.name,
         ranked.items_per_second ? support::NumberText(*ranked.items_per_second)
                                 : "failed",
         ranked.by_defaults ? absl::StrFormat("%.3f", *ranked.by_defaults)
                            : "-",
         absl::StrCat(ranked.rounds), absl::StrCat(ranked.disturbed)});
  }
  return support::TextTable({"rank", "candidate", "items/s (median)",
                             "x hvdliterun's defaults", "rounds", "disturbed"},
                            rows);
}

// Returns the number and the kind of the rounds behind a ratio.
std::string RoundsText(const PairedRatios& paired) {
  const auto counted = static_cast<int64_t>(paired.ratios.size());
  std::string text = support::Counted(counted, "round");
  if (paired.rests_on_disturbed) {
    absl::StrAppend(&text, ", ", paired.disturbed,
                    " of which other programs disturbed");
  } else if (paired.pairs > counted) {
    absl::StrAppend(&text, "; not counted: ",
                    support::Counted(paired.pairs - counted, "round"),
                    " that other programs disturbed");
  }
  return text;
}

std::string VerdictText(const support::RatioEstimate& ratio) {
  const Significance significance = Judge(ratio);
  if (significance != Significance::kNoDifference) {
    return SignificanceText(significance);
  }
  return ratio.interval ? "no difference found" : "one round is not enough";
}

std::string AgainstText(const std::string& name, const Reason& against,
                        const std::string& defaults) {
  if (!against.compared) return "";
  return support::Wrapped(absl::StrCat(
      name, " / ", defaults, ": ", RatioText(against.ratio), ", ",
      VerdictText(against.ratio), " (", RoundsText(against.paired), ")"));
}

// Returns the parts that make it significantly faster, the greatest first.
std::string MattersMost(const TuningResult& result) {
  std::vector<Reason> faster;
  for (const Reason& reason : result.settings) {
    if (reason.compared && Judge(reason.ratio) == Significance::kFaster) {
      faster.push_back(reason);
    }
  }
  if (faster.empty()) return "None of them alone makes it faster.\n";
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
    rows.push_back({reason.name,
                    reason.compared ? RatioText(reason.ratio) : "-",
                    reason.compared ? Meaning(reason)
                    : reason.failed ? "without it, a run failed"
                                    : "not run without it"});
  }
  return absl::StrCat(
      "\n",
      support::Wrapped(
          absl::StrCat("The effect of each setting of ", result.challenger_name,
                       " and of hvdliterun's defaults: items/s with all / "
                       "items/s without this one (95 % interval)")),
      support::TextTable({"setting", "ratio", "verdict"}, rows, {.keys = 1}),
      MattersMost(result));
}

// Returns the program with file names for users instead of those of a run.
std::vector<std::string> ProgramFor(const Spec& spec,
                                    const Configuration& configuration) {
  return ProgramArguments(
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

std::string DimensionsText(const Dimensions& dimensions) {
  std::vector<std::string> texts;
  for (const Dimension& dimension : dimensions) {
    if (!IsWorlds(dimension)) texts.push_back(OptionsText(dimension));
  }
  return texts.empty() ? "none" : absl::StrJoin(texts, ", ");
}

std::string LeftOutText(const std::vector<LeftOut>& left_out) {
  std::string text;
  for (const LeftOut& one : left_out) {
    absl::StrAppend(
        &text,
        support::Wrapped(absl::StrCat(one.option, ": ", one.reason), "  "));
  }
  return text;
}

std::string NotTried(const TuningResult& result) {
  std::string text;
  if (!result.left_out.empty()) {
    text = absl::StrCat("\nLeft out:\n", LeftOutText(result.left_out));
  }
  const std::string untried =
      result.untried.empty() ? ""
                             : absl::StrCat(absl::StrJoin(result.untried, ", "),
                                            " (use more --minutes); ");
  return absl::StrCat(
      text, "\n",
      support::Wrapped(absl::StrCat(
          "Not tried: ", untried,
          "most combinations, other numbers of ranks and threads, and the "
          "program's own flags, such as its batch size.")));
}

std::string CountsText(const TrialCounts& counts) {
  std::string text = absl::StrCat(support::Counted(counts.runs, "run"), "; ");
  absl::StrAppend(&text, counts.disturbed,
                  " disturbed by other programs (they used at least 5 % of the "
                  "CPUs), of which ",
                  counts.repeated, " were repeated");
  if (counts.unknown > 0) {
    absl::StrAppend(&text, "; for ", counts.unknown,
                    " it is not known whether they were disturbed");
  }
  return absl::StrCat("\n", support::Wrapped(text));
}

std::string Recommendation(const TuningResult& result) {
  const bool defaults =
      result.recommended.options ==
          std::vector<size_t>(result.recommended.options.size(), 0) &&
      !result.recommended.alone;
  if (result.recommended.alone) {
    return "Recommended: LibTorch's defaults, without hvdliterun";
  }
  if (!defaults) {
    return absl::StrCat("Recommended: ", result.challenger_name);
  }
  return "Recommended: hvdliterun's defaults, because no other setting is "
         "surely faster";
}

// Returns the comparison behind the recommendation.
const Reason& ReasonOf(const TuningResult& result) {
  const bool by_launcher =
      !result.recommended.alone || result.recommended == result.challenger;
  return by_launcher ? result.against_launcher
                     : result.launcher_against_default;
}

std::string Caution(const TuningResult& result) {
  const PairedRatios& paired = ReasonOf(result).paired;
  if (!paired.rests_on_disturbed) return "";
  const bool all = paired.disturbed == paired.pairs;
  return support::Wrapped(absl::StrCat(
      "CAUTION: this is based ", all ? "only" : "partly",
      " on disturbed runs: other programs were busy, and repetitions did not "
      "help. Both sides are affected equally, but repeat this on a quiet "
      "machine before you rely on it."));
}

}  // namespace

std::string PlanText(const Dimensions& dimensions, const Effort& effort,
                     double run_seconds, const TuneOptions& options) {
  const std::string worlds =
      absl::StrJoin(WorldCandidates(dimensions), ", ",
                    [&](std::string* out, const Candidate& candidate) {
                      absl::StrAppend(out, NameOf(dimensions, candidate));
                    });
  const std::string budget = support::FormatDuration(60 * options.minutes);
  std::string text =
      options.left_out.empty()
          ? ""
          : absl::StrCat("left out:\n", LeftOutText(options.left_out));
  absl::StrAppend(
      &text, "plan for ", budget, " (--minutes), with ",
      support::NumberText(run_seconds), " s per run, as measured:\n",
      support::Wrapped(
          absl::StrCat(
              "worlds, ", support::Counted(effort.world_rounds, "round"),
              " of hvdliterun's defaults and of ", effort.worlds, " of these: ",
              worlds, worlds.empty() ? "" : ", ", "LibTorch's defaults"),
          "  1. "));
  if (effort.candidates > 0) {
    absl::StrAppend(
        &text,
        support::Wrapped(
            absl::StrCat(
                "in the fastest world up to ", effort.candidates,
                " candidates, ", support::Counted(effort.first_rounds, "round"),
                ": ", DimensionsText(dimensions), "; and combinations of them"),
            "  2. "),
        support::Wrapped("more rounds of the faster half, until one is left",
                         "  3. "));
  }
  absl::StrAppend(
      &text,
      support::Wrapped(
          absl::StrCat(
              "last comparison of the best candidate with hvdliterun's defaults",
              effort.compared > 2
                  ? absl::StrCat(", LibTorch's, and itself without each of its "
                                 "settings, up to ",
                                 effort.compared, " in a round")
                  : "",
              ": ", support::Counted(effort.final_rounds, "new round")),
          effort.candidates > 0 ? "  4. " : "  2. "),
      support::Wrapped(absl::StrCat(
          "About ", effort.runs(), " runs, ",
          support::FormatDuration(static_cast<double>(effort.runs()) *
                                  run_seconds),
          "; with slower runs and repetitions of disturbed runs at most ",
          budget, ". A longer search tries more candidates: --minutes ",
          std::max(90.0, 4 * options.minutes),
          ". To continue an interrupted tune, run the command again.")));
  return text;
}

std::string TuningText(const TuningResult& result, const Spec& spec,
                       const std::string& launcher) {
  std::string text = absl::StrCat("\n", RankingTable(result), "\n");
  absl::StrAppend(&text,
                  AgainstText(result.challenger_name, result.against_launcher,
                              "hvdliterun's defaults"));
  if (!result.challenger || !result.challenger->alone) {
    absl::StrAppend(
        &text,
        AgainstText(result.challenger_name, result.against_default,
                    "LibTorch's defaults"),
        AgainstText("hvdliterun's defaults", result.launcher_against_default,
                    "LibTorch's defaults"));
  }
  if (result.challenger && result.against_launcher.failed) {
    absl::StrAppend(&text, "A run of ", result.challenger_name,
                    " or of the defaults failed, so they are not compared.\n");
  }
  if (!result.against_launcher.failed && !result.not_compared.empty()) {
    absl::StrAppend(&text,
                    support::Wrapped(absl::StrCat(result.not_compared, ".")));
  }
  absl::StrAppend(&text, Reasons(result), CountsText(result.counts));
  if (!result.finished) {
    return absl::StrCat(
        text, support::Wrapped(
                  "The search is not finished, so the result is not certain: "
                  "the runs that select a candidate are biased in its favour. "
                  "Only the last comparison is reliable."));
  }
  absl::StrAppend(&text, NotTried(result), "\n",
                  support::Wrapped(Recommendation(result)), Caution(result));
  std::vector<std::string> words;
  if (!result.recommended.alone) {
    words = LauncherWords(spec, result.recommended_configuration, launcher,
                          /*oversubscribed=*/false);
  }
  for (const std::string& word :
       ProgramFor(spec, result.recommended_configuration)) {
    words.push_back(word);
  }
  absl::StrAppend(&text, "Run it with\n  ", ShellText(words), "\n");
  return text;
}

}  // namespace hvdlite::scaling_sweep
