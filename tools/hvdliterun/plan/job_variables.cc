#include "tools/hvdliterun/plan/job_variables.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/support/kmp_translation.h"

namespace hvdlite::launch {
namespace {

// `origin` is where NAME=value is from.
void OfferTranslation(const std::string& name, const std::string& value,
                      const std::string& origin, Variables& variables) {
  const base::KmpTranslation translation = base::TranslateKmp(name, value);
  const std::string setting = absl::StrCat(name, "=", value);
  std::vector<std::string> instead;
  for (const auto& [other, text] : translation.variables) {
    // Each rank gets the list of its own cores.
    if (other == "OMP_PLACES" && text == "cores") {
      instead.push_back("OMP_PLACES=its cores");
      continue;
    }
    if (variables.Offer(other, text,
                        absl::StrCat(origin, " (", setting, ")"))) {
      instead.push_back(absl::StrCat(other, "=", text));
    }
  }
  std::string note = absl::StrCat(setting, " of ", origin,
                                  " does nothing in libgomp, which the program "
                                  "links");
  if (!instead.empty()) {
    absl::StrAppend(&note, ": ", absl::StrJoin(instead, " "), " instead");
  } else if (!translation.remark.empty()) {
    absl::StrAppend(&note, ": ", translation.remark);
  }
  variables.Note(note);
}

void AddPreset(const Preset& preset, OpenMpRuntime runtime,
               Variables& variables) {
  const std::string source = absl::StrCat("--preset ", preset.name);
  for (const auto& [name, value] : preset.variables) {
    const bool kmp = absl::StartsWith(name, "KMP_");
    if (kmp && runtime == OpenMpRuntime::kGnu) {
      OfferTranslation(name, value, source, variables);
    } else if (name == "KMP_AFFINITY") {
      // All runtimes know these, and the cores are the rank's own.
      for (const auto& [other, text] :
           base::TranslateKmp(name, value).variables) {
        if (other != "OMP_PLACES") variables.Offer(other, text, source);
      }
    } else {
      variables.Offer(name, value, source);
    }
  }
}

// Of variables that Fujitsu's large-page library would read if it were there.
void NoteLargePages(Variables& variables) {
  const std::string type =
      variables.Get("XOS_MMM_L_HPAGE_TYPE").value_or("none");
  const bool preloaded =
      absl::StrContains(variables.Get("LD_PRELOAD").value_or(""), "libmpg");
  if (type == "none" || preloaded) return;
  variables.Note(absl::StrCat(
      "XOS_MMM_L_HPAGE_TYPE=", type,
      " and other XOS_MMM_L_* do nothing: the program does not link Fujitsu's "
      "large-page library, libmpg. Fujitsu's compiler links it with "
      "-Klargepage; others with -no-pie "
      "-Wl,-T/opt/FJSVxos/mmm/util/bss-2mb.lds -L/opt/FJSVxos/mmm/lib64 "
      "-lmpg, before all other libraries"));
}

}  // namespace

OpenMpRuntime RuntimeOf(const std::vector<OpenMpRuntime>& linked) {
  if (linked.empty()) return OpenMpRuntime::kNone;
  return linked.size() == 1 ? linked.front() : OpenMpRuntime::kUnknown;
}

void AddJobVariables(const JobChoices& choices, Variables& variables) {
  const OpenMpRuntime runtime = RuntimeOf(choices.openmp);
  if (choices.openmp.size() > 1) {
    variables.Note(absl::StrCat(
        "the program links ", choices.openmp.size(), " OpenMP runtimes (",
        absl::StrJoin(choices.openmp, ", ",
                      [](std::string* out, OpenMpRuntime one) {
                        absl::StrAppend(out, OpenMpRuntimeName(one));
                      }),
        "): each starts threads of its own on the same cores; link one"));
  }
  for (const Variable& flag : choices.flags) {
    variables.Set(flag.name, flag.value, flag.source);
  }
  if (runtime == OpenMpRuntime::kGnu) {
    for (const std::string& name : variables.UserNames("KMP_")) {
      OfferTranslation(name, variables.Get(name).value_or(""),
                       "the environment", variables);
    }
    for (const Variable& flag : choices.flags) {
      if (absl::StartsWith(flag.name, "KMP_")) {
        OfferTranslation(flag.name, flag.value, flag.source, variables);
      }
    }
  }
  if (choices.preset != nullptr) {
    AddPreset(*choices.preset, runtime, variables);
  }
  if (choices.lacks_large_page_library) NoteLargePages(variables);
  // Bound by MPI_Init, by core and once more: MVAPICH2, Intel MPI.
  variables.Offer("MV2_ENABLE_AFFINITY", "0", "default");
  variables.Offer("I_MPI_PIN", "0", "default");
  AddAllocatorVariables(choices.allocator, choices.allocator_library,
                        choices.huge_pages, variables);
}

}  // namespace hvdlite::launch
