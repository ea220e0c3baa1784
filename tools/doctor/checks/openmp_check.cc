#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/software_checks.h"

namespace hvdlite::doctor {
namespace {

// Beginnings of the libraries' names.
constexpr std::pair<const char*, const char*> kFamilies[] = {
    {"libgomp.so", "GNU"},     {"libgomp-", "GNU"},  // in pip's LibTorch
    {"libomp.so", "LLVM"},     {"libomp5.so", "LLVM"},
    {"libiomp5.so", "LLVM"},   {"libfjomp.so", "Fujitsu"},
    {"libnvomp.so", "NVIDIA"},
};

Finding MissingLibraries(const std::vector<std::string>& names,
                         const std::string& program) {
  return {.verdict = Verdict::kProblem,
          .seen = absl::StrCat(program,
                               " cannot start: the dynamic linker does not "
                               "find ",
                               absl::StrJoin(names, ", ")),
          .remedy =
              absl::StrCat("add the directory of ", names.front(),
                           " to LD_LIBRARY_PATH (find / -name '", names.front(),
                           "*'), or rebuild the program on this machine")};
}

Finding SeveralRuntimes(const std::vector<OpenMpRuntime>& runtimes,
                        const std::string& list, const std::string& program) {
  std::string preload = runtimes.front().file;
  for (const OpenMpRuntime& runtime : runtimes) {
    // LLVM's runtime has the functions that GCC's code calls, but GNU's runtime
    // does not have those that LLVM's code calls.
    if (runtime.family == "LLVM") preload = runtime.file;
  }
  return {.verdict = Verdict::kProblem,
          .seen = absl::StrCat(
              program, " has ", runtimes.size(), " OpenMP runtimes: ", list,
              "; each starts its own threads, and they compete "
              "for the cores"),
          .remedy = absl::StrCat("build all libraries with one runtime; until "
                                 "then, make all use the same one: export "
                                 "LD_PRELOAD=",
                                 preload)};
}

}  // namespace

std::vector<OpenMpRuntime> OpenMpRuntimesAmong(
    const std::vector<support::Library>& libraries) {
  std::vector<OpenMpRuntime> runtimes;
  for (const support::Library& library : libraries) {
    if (library.path.empty()) continue;
    for (const auto& [prefix, family] : kFamilies) {
      if (!absl::StartsWith(library.name, prefix)) continue;
      const std::string file = support::FileOf(library);
      const bool known = std::any_of(
          runtimes.begin(), runtimes.end(),
          [&](const OpenMpRuntime& other) { return other.file == file; });
      if (!known) runtimes.push_back({.family = family, .file = file});
      break;
    }
  }
  return runtimes;
}

std::vector<Finding> JudgeOpenMp(const std::vector<support::Library>& libraries,
                                 const std::string& program) {
  const std::vector<OpenMpRuntime> runtimes = OpenMpRuntimesAmong(libraries);
  const std::string list = absl::StrJoin(
      runtimes, " and ", [](std::string* out, const auto& runtime) {
        absl::StrAppend(out, runtime.family, " (", runtime.file, ")");
      });
  if (program.empty()) {
    return {{.verdict = Verdict::kNote,
             .seen = absl::StrCat("no program was named; hvdlite_doctor itself "
                                  "has ",
                                  list.empty() ? "no OpenMP runtime" : list,
                                  "; your program may have others"),
             .remedy = "hvdlite_doctor --program YOUR_PROGRAM"}};
  }
  std::vector<Finding> findings;
  std::vector<std::string> missing;
  for (const support::Library& library : libraries) {
    if (library.path.empty()) missing.push_back(library.name);
  }
  if (!missing.empty()) findings.push_back(MissingLibraries(missing, program));
  if (runtimes.empty()) {
    findings.push_back(
        {.verdict = Verdict::kNote,
         .seen = absl::StrCat(program,
                              " links no OpenMP runtime: it computes with one "
                              "thread, unless it loads a runtime later")});
  } else if (runtimes.size() == 1) {
    findings.push_back(
        {.seen = absl::StrCat(program, " has one OpenMP runtime: ", list)});
  } else {
    findings.push_back(SeveralRuntimes(runtimes, list, program));
  }
  return findings;
}

absl::StatusOr<Findings> RunOpenMp(Session& session) {
  return JudgeOpenMp(session.libraries, session.program);
}

}  // namespace hvdlite::doctor
