// Finds what `run` and `tune` measure.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "support/machine.h"
#include "tools/scaling_sweep/commands.h"
#include "tools/scaling_sweep/run/spec.h"

namespace hvdlite::scaling_sweep {
namespace {

namespace fs = std::filesystem;

constexpr double kTimeLimitSeconds = 600;
constexpr int kRepeats = 3;

bool IsTuning(const Flags& flags) { return flags.command == "tune"; }

bool HasWorlds(const Flags& flags) {
  return !flags.ranks.empty() || !flags.nodes.empty();
}

// Whether the arguments are a single file that is not executable.
bool IsSpecFile(const std::vector<std::string>& arguments) {
  return arguments.size() == 1 && fs::is_regular_file(arguments.front()) &&
         access(arguments.front().c_str(), X_OK) != 0;
}

bool NamesProgram(const Flags& flags) {
  if (IsTuning(flags)) return !IsSpecFile(flags.arguments);
  return HasWorlds(flags) ||
         (flags.after_dashes && !IsSpecFile(flags.arguments));
}

absl::Status CheckWords(const Flags& flags) {
  const std::vector<std::string>& arguments = flags.arguments;
  const bool program = NamesProgram(flags);
  if (program && !IsTuning(flags) && IsSpecFile(arguments)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--ranks and --nodes need a program, but '", arguments.front(),
        "' is not executable. If it is a spec file, set its worlds there "
        "(ranks, world)"));
  }
  if (!program && arguments.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "name one spec file; to run a program, put it after --: scaling_sweep "
        "run -- ",
        absl::StrJoin(arguments, " ")));
  }
  if (!program && flags.weak) {
    return absl::InvalidArgumentError(
        "--weak needs a program; in a spec file, write scaling: WEAK");
  }
  if (!program && !flags.threads.empty()) {
    return absl::InvalidArgumentError(
        "--threads needs a program; in a spec file, write threads: [1, 2]");
  }
  return absl::OkStatus();
}

// All powers of two up to the number of cores, and that number.
std::vector<int> RanksOfThisMachine() {
  const int cores = support::ThisMachine().cores;
  std::vector<int> ranks;
  for (int count = 1; count < cores; count *= 2) ranks.push_back(count);
  ranks.push_back(std::max(cores, 1));
  return ranks;
}

// Adds --ranks on each number of --nodes; without --ranks one rank per node.
void AddWorlds(const Flags& flags, Spec& spec) {
  const std::vector<int> ranks = !flags.ranks.empty()   ? flags.ranks
                                 : !flags.nodes.empty() ? std::vector<int>{1}
                                                        : RanksOfThisMachine();
  if (flags.nodes.empty()) {
    spec.mutable_ranks()->Add(ranks.begin(), ranks.end());
    return;
  }
  for (const int nodes : flags.nodes) {
    for (const int ranks_per_node : ranks) {
      World& world = *spec.add_world();
      world.set_nodes(nodes);
      world.set_ranks_per_node(ranks_per_node);
    }
  }
}

Spec SpecForProgram(const Flags& flags) {
  Spec spec;
  const std::string program =
      fs::path(flags.arguments.front()).filename().string();
  spec.set_name(IsTuning(flags) ? "tune_" + program : program);
  *spec.mutable_command() = {flags.arguments.begin(), flags.arguments.end()};
  if (!absl::StrContains(absl::StrJoin(flags.arguments, " "), "{report}")) {
    spec.add_command("--report");  // the trainers' flag
    spec.add_command("{report}");
  }
  AddWorlds(flags, spec);
  *spec.mutable_threads() = {flags.threads.begin(), flags.threads.end()};
  *spec.mutable_host() = {flags.hosts.begin(), flags.hosts.end()};
  spec.set_repeats(IsTuning(flags) ? 1 : kRepeats);
  spec.set_scaling(flags.weak ? WEAK : STRONG);
  spec.set_time_limit_seconds(kTimeLimitSeconds);
  return spec;
}

absl::StatusOr<Spec> SpecOfFile(const Flags& flags) {
  const std::string& file = flags.arguments.front();
  absl::StatusOr<Spec> spec = LoadSpec(file, flags.hosts);
  if (!spec.ok() && access(file.c_str(), X_OK) == 0) {
    return absl::Status(
        spec.status().code(),
        absl::StrCat(spec.status().message(),
                     "; if it is a program: scaling_sweep run -- ", file));
  }
  if (spec.ok() && IsTuning(flags)) spec->set_name(spec->name() + "_tune");
  return spec;
}

}  // namespace

absl::StatusOr<Spec> RequestedSpec(const Flags& flags) {
  HVDLITE_RETURN_IF_ERROR(CheckWords(flags));
  Spec spec;
  if (NamesProgram(flags)) {
    spec = SpecForProgram(flags);
  } else {
    HVDLITE_ASSIGN_OR_RETURN(spec, SpecOfFile(flags));
  }
  if (flags.repeats > 0) spec.set_repeats(flags.repeats);
  if (flags.time_limit_seconds > 0) {
    spec.set_time_limit_seconds(flags.time_limit_seconds);
  }
  HVDLITE_RETURN_IF_ERROR(CheckSpec(spec));
  return spec;
}

}  // namespace hvdlite::scaling_sweep
