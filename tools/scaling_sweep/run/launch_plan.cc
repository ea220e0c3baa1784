#include "tools/scaling_sweep/run/launch_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hvdlite::scaling_sweep {
namespace {

// As hvdliterun names the sources of what nobody has asked for.
constexpr absl::string_view kOwnSources[] = {" default", " cores of the rank",
                                             " ranks share cores"};

// "  local rank 0: CPUs 0-1, 2 threads, coordinator none, memory local".
void ReadRank(absl::string_view line, LaunchPlan& plan) {
  for (absl::string_view part : absl::StrSplit(line, ", ")) {
    if (part == "OVERSUBSCRIBED") plan.oversubscribed = true;
    int threads = 0;
    if ((absl::ConsumeSuffix(&part, " threads") ||
         absl::ConsumeSuffix(&part, " thread")) &&
        absl::SimpleAtoi(part, &threads)) {
      plan.threads = std::max(plan.threads, threads);
    }
  }
}

// "  NAME=VALUE       source".
void ReadVariable(absl::string_view line, LaunchPlan& plan) {
  for (const absl::string_view source : kOwnSources) {
    absl::string_view setting = line;
    if (!absl::ConsumeSuffix(&setting, source)) continue;
    const std::pair<std::string, std::string> sides = absl::StrSplit(
        absl::StripAsciiWhitespace(setting), absl::MaxSplits('=', 1));
    // Ranks have cores of their own: the first one's stand for all.
    if (std::none_of(
            plan.defaults.begin(), plan.defaults.end(),
            [&](const auto& known) { return known.first == sides.first; })) {
      plan.defaults.push_back(sides);
    }
    return;
  }
}

// "- each node sets OPENBLAS_CORETYPE if ...; here: Haswell".
void ReadNote(absl::string_view line, LaunchPlan& plan) {
  constexpr absl::string_view kHere = "; here: ";
  const size_t here = line.rfind(kHere);
  if (!absl::StartsWith(line, "- each node sets OPENBLAS_CORETYPE ") ||
      here == absl::string_view::npos) {
    return;
  }
  plan.defaults.emplace_back("OPENBLAS_CORETYPE",
                             std::string(line.substr(here + kHere.size())));
}

}  // namespace

Command DryRunOf(const Command& command) {
  Command question = command;
  question.words.insert(question.words.begin() + 1,
                        {"--dry-run", "--oversubscribe"});
  return question;
}

int PlannedHosts(absl::string_view text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, "ranks: ")) continue;
    // "2 on 1 host (this host)".
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    int hosts = 0;
    if (words.size() > 3 && words[1] == "on" &&
        absl::StartsWith(words[3], "host") &&
        absl::SimpleAtoi(words[2], &hosts)) {
      return hosts;
    }
  }
  return 0;
}

absl::StatusOr<LaunchPlan> ParseLaunchPlan(absl::string_view text) {
  LaunchPlan plan;
  bool in_environment = false;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StrContains(line, "environment of ") &&
        absl::EndsWith(line, ":")) {
      in_environment = true;
    } else if (!absl::StartsWith(line, "  ")) {
      in_environment = false;
      ReadNote(line, plan);
      if (absl::ConsumePrefix(&line, "OpenMP: "))
        plan.openmp = std::string(line);
    } else if (absl::StartsWith(line, "  local rank ")) {
      ReadRank(line, plan);
    } else if (in_environment) {
      ReadVariable(line, plan);
    }
  }
  if (plan.threads > 0) return plan;
  return absl::InvalidArgumentError("it does not say a rank's threads");
}

}  // namespace hvdlite::scaling_sweep
