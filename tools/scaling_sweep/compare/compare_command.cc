// The subcommand `compare`.
#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "support/input_error.h"
#include "tools/scaling_sweep/commands.h"
#include "tools/scaling_sweep/compare/comparison.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr uint64_t kCompareSeed = 1;

// Reads one side: DIR or DIR:SETTING.
absl::StatusOr<Side> ReadSide(const std::string& argument) {
  std::string directory = argument;
  Side side;
  const size_t colon = argument.rfind(':');
  if (colon != std::string::npos && !std::filesystem::exists(argument)) {
    directory = argument.substr(0, colon);
    side.setting = argument.substr(colon + 1);
  }
  HVDLITE_ASSIGN_OR_RETURN(side.results, ReadResults(directory));
  std::set<std::string> settings;
  for (const Sample& sample : side.results.samples) {
    if (!side.setting || sample.setting == *side.setting) return side;
    settings.insert(absl::StrCat("'", sample.setting, "'"));
  }
  return absl::InvalidArgumentError(
      side.setting
          ? absl::StrCat(
                "'", directory, "' has no setting '", *side.setting,
                "'; it has ",
                settings.empty() ? "none" : absl::StrJoin(settings, ", "))
          : absl::StrCat("'", directory, "' has no samples yet"));
}

}  // namespace

absl::StatusOr<int> CompareCommand(const Flags& flags, std::ostream& out) {
  std::optional<double> threshold;
  if (!flags.fail_if.empty()) {
    HVDLITE_ASSIGN_OR_RETURN(threshold, ParseThreshold(flags.fail_if));
  }
  HVDLITE_ASSIGN_OR_RETURN(const Side a, ReadSide(flags.arguments.at(0)));
  HVDLITE_ASSIGN_OR_RETURN(const Side b, ReadSide(flags.arguments.at(1)));
  HVDLITE_ASSIGN_OR_RETURN(const Comparison comparison,
                           Compare(a, b, kCompareSeed));
  out << ComparisonText(comparison, threshold);
  return threshold && Fails(comparison, *threshold) ? support::kFoundExitCode
                                                    : 0;
}

}  // namespace hvdlite::scaling_sweep
