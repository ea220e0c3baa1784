#include <dlfcn.h>

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/software_checks.h"

namespace hvdlite::doctor {
namespace {

constexpr std::pair<const char*, const char*> kAllocators[] = {
    {"libjemalloc", "jemalloc"},
    {"libtcmalloc", "tcmalloc"},
    {"libmimalloc", "mimalloc"},
    {"libmpg.so", "Fujitsu's libmpg"},
};

std::string PreloadRemedy(const std::string& entry) {
  std::string package;
  if (absl::StrContains(entry, "jemalloc")) package = "libjemalloc2";
  if (absl::StrContains(entry, "tcmalloc")) package = "libtcmalloc-minimal4";
  const std::string name = entry.substr(entry.rfind('/') + 1);
  if (package.empty()) {
    return absl::StrCat("correct LD_PRELOAD (ldconfig -p | grep ", name,
                        ") or unset it");
  }
  return absl::StrCat("apt-get install ", package,
                      ", then export LD_PRELOAD=", name,
                      " (or unset LD_PRELOAD)");
}

}  // namespace

std::string AllocatorOf(const std::vector<support::Library>& libraries) {
  // The program calls the malloc of the first library that has one.
  for (const support::Library& library : libraries) {
    for (const auto& [prefix, allocator] : kAllocators) {
      if (absl::StartsWith(library.name, prefix) && !library.path.empty()) {
        return allocator;
      }
    }
  }
  return "glibc";
}

std::vector<Finding> JudgeAllocator(
    const std::vector<support::Library>& libraries,
    const std::vector<Preload>& preloads) {
  std::vector<Finding> findings;
  for (const Preload& preload : preloads) {
    if (preload.loaded) continue;
    findings.push_back(
        {.verdict = Verdict::kProblem,
         .seen = absl::StrCat("LD_PRELOAD names ", preload.entry,
                              ", but it was not found: programs start "
                              "without it"),
         .remedy = PreloadRemedy(preload.entry)});
  }
  findings.push_back(
      {.seen = absl::StrCat("malloc comes from ", AllocatorOf(libraries))});
  return findings;
}

std::vector<Preload> PreloadsOf(const std::string& ld_preload) {
  std::vector<Preload> preloads;
  for (const absl::string_view view :
       absl::StrSplit(ld_preload, absl::ByAnyChar(": "), absl::SkipEmpty())) {
    const std::string entry(view);
    void* library = dlopen(entry.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    preloads.push_back({.entry = entry, .loaded = library != nullptr});
    if (library != nullptr) dlclose(library);
  }
  return preloads;
}

absl::StatusOr<Findings> RunAllocator(Session& session) {
  // PreloadsOf() looks at this process, because the libraries of `program` do
  // not show which entries were loaded. The linker lists preloads first.
  return JudgeAllocator(
      session.libraries,
      PreloadsOf(session.environment.get("LD_PRELOAD").value_or("")));
}

}  // namespace hvdlite::doctor
