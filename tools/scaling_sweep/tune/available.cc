#include "tools/scaling_sweep/tune/available.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "tools/scaling_sweep/tune/candidate.h"

namespace hvdlite::scaling_sweep {
namespace {

bool LinksLibrary(const std::vector<support::Library>& libraries,
                  absl::string_view part) {
  return std::any_of(libraries.begin(), libraries.end(),
                     [&](const support::Library& library) {
                       return absl::StrContains(library.name, part);
                     });
}

// Returns why this machine lacks what a variable needs, or "".
std::string MissingOf(const Variable& variable, const Premises& premises) {
  if (variable.name() == "LD_PRELOAD") {
    for (const absl::string_view file :
         absl::StrSplit(variable.value(), absl::ByAnyChar(": "))) {
      if (absl::StartsWith(file, "/") && !premises.exists(std::string(file))) {
        return absl::StrCat("there is no ", file,
                            "; install its package, or correct the path");
      }
    }
  }
  // LibTorch links its BLAS; other programs may load one while they run.
  if (variable.name() == "OPENBLAS_CORETYPE" && premises.libraries &&
      LinksLibrary(*premises.libraries, "libtorch") &&
      !LinksLibrary(*premises.libraries, "blas")) {
    return "the program's LibTorch does not use OpenBLAS, so "
           "OPENBLAS_CORETYPE has no effect";
  }
  return "";
}

std::string MissingOf(const Setting& option, const Premises& premises) {
  for (const Variable& variable : option.environment()) {
    std::string missing = MissingOf(variable, premises);
    if (!missing.empty()) return missing;
  }
  constexpr char kPages[] = "/sys/kernel/mm/transparent_hugepage/enabled";
  const bool wants_pages =
      std::count(option.launcher_flag().begin(), option.launcher_flag().end(),
                 "--huge-pages") > 0;
  if (wants_pages && support::BracketedChoice(
                         premises.files.Line(kPages).value_or("")) == "never") {
    return absl::StrCat("the kernel disables them: echo madvise > ", kPages);
  }
  return "";
}

bool AsksLauncher(const Setting& option) {
  return option.launcher_flag_size() + option.mapping_size() +
             option.ranks_size() + option.world_size() + option.threads_size() >
         0;
}

// Worlds with the same ranks and threads are equal.
bool IsSameWorld(const Configuration& one, const LaunchAnswer& answer,
                 const Configuration& other, const LaunchAnswer& other_answer) {
  return answer.plan && other_answer.plan && one.nodes == other.nodes &&
         one.ranks_per_node == other.ranks_per_node &&
         answer.plan->threads == other_answer.plan->threads;
}

}  // namespace

absl::StatusOr<AvailableDimensions> Available(const Spec& spec,
                                              const Dimensions& dimensions,
                                              const Premises& premises,
                                              TrialRunner& runner) {
  const Candidate defaults = LaunchersDefaults(dimensions);
  HVDLITE_ASSIGN_OR_RETURN(const Configuration default_configuration,
                           ConfigurationOf(spec, dimensions, defaults));
  HVDLITE_ASSIGN_OR_RETURN(const LaunchAnswer default_answer,
                           runner.Ask(default_configuration));
  AvailableDimensions available;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    Dimension kept = dimensions[i];
    kept.clear_option();
    *kept.add_option() = dimensions[i].option(0);
    for (int option = 1; option < dimensions[i].option_size(); ++option) {
      const Setting& setting = dimensions[i].option(option);
      std::string reason = MissingOf(setting, premises);
      Candidate candidate = defaults;
      candidate.options[i] = static_cast<size_t>(option);
      const absl::StatusOr<Configuration> configuration =
          ConfigurationOf(spec, dimensions, candidate);
      if (!configuration.ok()) {
        reason = std::string(configuration.status().message());
      } else if (reason.empty() && default_answer.plan &&
                 AsksLauncher(setting)) {
        HVDLITE_ASSIGN_OR_RETURN(const LaunchAnswer answer,
                                 runner.Ask(*configuration));
        reason = answer.refusal;
        if (answer.plan && answer.plan->oversubscribed &&
            !default_answer.plan->oversubscribed) {
          reason = "more ranks or threads than this machine has cores";
        } else if (IsWorlds(dimensions[i]) &&
                   IsSameWorld(*configuration, answer, default_configuration,
                               default_answer)) {
          reason = "the same as hvdliterun's defaults";
        }
      }
      if (reason.empty()) {
        *kept.add_option() = setting;
      } else {
        available.left_out.push_back({NameOf(dimensions, candidate), reason});
      }
    }
    if (kept.option_size() > 1) {
      available.dimensions.push_back(std::move(kept));
    }
  }
  return available;
}

}  // namespace hvdlite::scaling_sweep
