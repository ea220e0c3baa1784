#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/software_checks.h"

namespace hvdlite::doctor {
namespace {

// Libraries that each LibTorch has exactly once.
constexpr const char* kParts[] = {"libc10.so", "libtorch_cpu.so",
                                  "libtorch.so"};

bool IsPart(const support::Library& library) {
  return !library.path.empty() && absl::c_any_of(kParts, [&](const char* part) {
    return library.name == part ||
           absl::StartsWith(library.name, absl::StrCat(part, "."));
  });
}

}  // namespace

std::vector<Finding> JudgeLibTorch(
    const std::vector<support::Library>& libraries,
    const std::string& program) {
  // The first library of LibTorch in each directory.
  std::map<std::string, std::string> parts;
  for (const support::Library& library : libraries) {
    if (!IsPart(library)) continue;
    const std::filesystem::path file = support::FileOf(library);
    parts.try_emplace(file.parent_path(), library.path);
  }
  if (program.empty() || parts.empty()) return {};
  if (parts.size() == 1) {
    return {{.seen = absl::StrCat(program, " uses one LibTorch, in ",
                                  parts.begin()->first)}};
  }
  const std::string list =
      absl::StrJoin(parts, " and ", [](std::string* out, const auto& part) {
        absl::StrAppend(out, part.second);
      });
  return {
      {.verdict = Verdict::kProblem,
       .seen = absl::StrCat(program, " uses libraries of ", parts.size(),
                            " LibTorchs: ", list,
                            "; they manage the same memory, and the program "
                            "crashes with 'double free or corruption'"),
       .remedy = "unset LD_LIBRARY_PATH if it names one of them; otherwise "
                 "rebuild hvdlite and the program in clean build directories "
                 "with -DCMAKE_PREFIX_PATH=PREFIX_OF_ONE"}};
}

absl::StatusOr<Findings> RunLibTorch(Session& session) {
  Findings findings = JudgeLibTorch(session.libraries, session.program);
  if (findings.empty()) {
    findings.push_back(
        {.seen = session.program.empty()
                     ? "not checked: no program was named (--program FILE)"
                     : absl::StrCat(session.program, " links no LibTorch")});
  }
  return findings;
}

}  // namespace hvdlite::doctor
