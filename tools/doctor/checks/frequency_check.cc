#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/host_checks.h"

namespace hvdlite::doctor {
FrequencyFacts GatherFrequency(const support::SystemFiles& files,
                               const std::vector<int>& cpus) {
  FrequencyFacts facts;
  for (const int cpu : cpus) {
    const std::string directory =
        absl::StrCat("/sys/devices/system/cpu/cpu", cpu, "/cpufreq/");
    const std::string governor =
        files.Line(directory + "scaling_governor").value_or("");
    if (governor.empty()) continue;
    facts.driver = files.Line(directory + "scaling_driver").value_or("unknown");
    if (std::find(facts.governors.begin(), facts.governors.end(), governor) ==
        facts.governors.end()) {
      facts.governors.push_back(governor);
    }
    const double limit =
        files.Number(directory + "scaling_max_freq").value_or(0) / 1e6;
    if (limit > 0 && (facts.limit_ghz == 0 || limit < facts.limit_ghz)) {
      facts.limit_ghz = limit;
    }
    facts.maximum_ghz = std::max(
        facts.maximum_ghz,
        files.Number(directory + "cpuinfo_max_freq").value_or(0) / 1e6);
  }
  return facts;
}

std::vector<Finding> JudgeFrequency(const FrequencyFacts& facts) {
  if (facts.governors.empty()) {
    return {{.seen = "the kernel does not control the frequency (a virtual "
                     "machine or a fixed clock)"}};
  }
  std::vector<Finding> findings;
  const auto has = [&](const char* governor) {
    return absl::c_linear_search(facts.governors, governor);
  };
  Finding finding = {.seen = absl::StrCat("frequency governor ",
                                          absl::StrJoin(facts.governors, ", "),
                                          " (driver: ", facts.driver, ")")};
  if (facts.governors.size() > 1 || !has("performance")) {
    // Intel's and AMD's drivers adapt the clock to the load under every
    // governor.
    const bool chooses_itself =
        absl::StartsWith(facts.driver, "intel_pstate") ||
        absl::StartsWith(facts.driver, "amd-pstate") ||
        absl::StartsWith(facts.driver, "amd_pstate");
    finding.verdict = has("powersave") && !chooses_itself ? Verdict::kProblem
                      : facts.governors.size() > 1        ? Verdict::kWarning
                                                          : Verdict::kNote;
    finding.remedy = "cpupower frequency-set -g performance";
  }
  findings.push_back(std::move(finding));
  if (facts.limit_ghz > 0 && facts.limit_ghz < 0.95 * facts.maximum_ghz) {
    findings.push_back(
        {.verdict = Verdict::kWarning,
         .seen = absl::StrFormat("the frequency is limited to %.2f of %.2f GHz",
                                 facts.limit_ghz, facts.maximum_ghz),
         .remedy = absl::StrFormat("cpupower frequency-set --max %.0fMHz",
                                   facts.maximum_ghz * 1000)});
  }
  return findings;
}

absl::StatusOr<Findings> RunFrequency(Session& session) {
  return JudgeFrequency(GatherFrequency(session.files, session.allowed_cpus));
}

}  // namespace hvdlite::doctor
