#include "support/openmp.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hvdlite::support {
namespace {

constexpr std::array kRuntimes = {
    std::pair(OpenMpRuntime::kNone, "none"),
    std::pair(OpenMpRuntime::kGnu, "libgomp"),
    std::pair(OpenMpRuntime::kLlvm, "libomp"),
    std::pair(OpenMpRuntime::kIntel, "libiomp5"),
    std::pair(OpenMpRuntime::kFujitsu, "libfjomp"),
    std::pair(OpenMpRuntime::kUnknown, "unknown")};

constexpr int64_t kSpinsPerMs = 100'000;

// Translates "granularity=fine,compact,1,0" and the like.
KmpTranslation TranslateAffinity(const std::string& value) {
  const size_t list = value.find("proclist=[");
  if (list != std::string::npos) {
    const size_t begin = list + absl::string_view("proclist=[").size();
    const std::string cpus =
        value.substr(begin, value.find(']', begin) - begin);
    if (absl::StrContains(cpus, "{")) {
      return {
          .variables = {},
          .remark = "libgomp has no equivalent of a list with sets of CPUs"};
    }
    return {.variables = {{"GOMP_CPU_AFFINITY",
                           absl::StrReplaceAll(cpus, {{",", " "}})}},
            .remark = ""};
  }
  std::string places = "cores";
  for (const absl::string_view word : absl::StrSplit(value, ',')) {
    if (word == "granularity=socket" || word == "granularity=package") {
      places = "sockets";
    }
  }
  for (const absl::string_view word : absl::StrSplit(value, ',')) {
    if (word == "compact") {
      return {.variables = {{"OMP_PROC_BIND", "close"}, {"OMP_PLACES", places}},
              .remark = ""};
    }
    if (word == "scatter" || word == "balanced") {
      return {
          .variables = {{"OMP_PROC_BIND", "spread"}, {"OMP_PLACES", places}},
          .remark = ""};
    }
    if (word == "none" || word == "disabled") {
      return {.variables = {{"OMP_PROC_BIND", "false"}}, .remark = ""};
    }
  }
  return {.variables = {}, .remark = "it does not say how to place threads"};
}

// Translates the milliseconds that an idle thread spins before it sleeps.
KmpTranslation TranslateBlocktime(const std::string& value) {
  if (value == "infinite") {
    return {.variables = {{"OMP_WAIT_POLICY", "active"}}, .remark = ""};
  }
  double unit_ms = 1;
  absl::string_view number = value;
  if (absl::EndsWith(number, "us")) {
    unit_ms = 1e-3;
    number.remove_suffix(2);
  } else if (absl::EndsWith(number, "ms")) {
    number.remove_suffix(2);
  }
  double count = 0;
  if (!absl::SimpleAtod(number, &count) || !(count >= 0) || count > 1e9) {
    return {.variables = {}, .remark = "is no time"};
  }
  if (count == 0) {
    return {
        .variables = {{"OMP_WAIT_POLICY", "passive"}, {"GOMP_SPINCOUNT", "0"}},
        .remark = ""};
  }
  return {
      .variables = {{"GOMP_SPINCOUNT", absl::StrCat(static_cast<int64_t>(
                                           count * unit_ms * kSpinsPerMs))}},
      .remark = ""};
}

}  // namespace

absl::string_view OpenMpRuntimeName(OpenMpRuntime runtime) {
  for (const auto& [value, name] : kRuntimes) {
    if (value == runtime) return name;
  }
  return "?";
}

absl::StatusOr<OpenMpRuntime> ParseOpenMpRuntime(absl::string_view text) {
  for (const auto& [value, name] : kRuntimes) {
    if (text == name) return value;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not an OpenMP runtime"));
}

std::vector<OpenMpRuntime> OpenMpRuntimesOf(
    const std::vector<Library>& libraries) {
  std::vector<OpenMpRuntime> found;
  for (const Library& library : libraries) {
    for (const auto& [runtime, name] : kRuntimes) {
      // "libgomp.so.1", or "libgomp-a34b3233.so.1" from Python packages.
      absl::string_view rest = library.name;
      if (absl::ConsumePrefix(&rest, name) &&
          (absl::StartsWith(rest, ".so") || absl::StartsWith(rest, "-")) &&
          std::find(found.begin(), found.end(), runtime) == found.end()) {
        found.push_back(runtime);
      }
    }
  }
  return found;
}

KmpTranslation TranslateKmp(absl::string_view name, absl::string_view value) {
  const std::string lower = absl::AsciiStrToLower(value);
  if (name == "KMP_AFFINITY") return TranslateAffinity(lower);
  if (name == "KMP_BLOCKTIME") return TranslateBlocktime(lower);
  if (name == "KMP_STACKSIZE") {
    // Bytes if there is no unit; OMP_STACKSIZE would assume KiB.
    const bool has_unit = !value.empty() && !absl::ascii_isdigit(value.back());
    return {.variables = {{"OMP_STACKSIZE",
                           absl::StrCat(value, has_unit ? "" : "B")}},
            .remark = ""};
  }
  if (name == "KMP_SETTINGS") {
    if (lower == "1" || lower == "true") {
      return {.variables = {{"OMP_DISPLAY_ENV", "true"}}, .remark = ""};
    }
    return {.variables = {}, .remark = ""};
  }
  return {.variables = {}, .remark = "libgomp has no equivalent"};
}

}  // namespace hvdlite::support
