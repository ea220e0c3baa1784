#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/processor.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/host_checks.h"

namespace hvdlite::doctor {
namespace {

// The numbers in a list of CPUs or nodes; empty for an invalid list.
std::vector<int> Numbers(const std::string& list) {
  return support::ParseCpuList(list).value_or(std::vector<int>());
}

std::string PolicyName() {
  const absl::StatusOr<support::NumaPolicy> policy =
      support::ThisThreadsNumaPolicy();
  return policy.ok() ? support::NumaPolicyName(*policy) : "unknown";
}

}  // namespace

NumaFacts GatherNuma(const support::SystemFiles& files,
                     const std::vector<int>& cpus) {
  NumaFacts facts = {.nodes = 0, .used_nodes = {}, .policy = PolicyName()};
  const std::set<int> own(cpus.begin(), cpus.end());
  for (const int node : Numbers(
           files.Line("/sys/devices/system/node/has_memory").value_or("0"))) {
    ++facts.nodes;
    const std::string list =
        files
            .Line(
                absl::StrCat("/sys/devices/system/node/node", node, "/cpulist"))
            .value_or("");
    for (const int cpu : Numbers(list)) {
      if (!own.contains(cpu)) continue;
      facts.used_nodes.push_back(node);
      break;
    }
  }
  facts.balancing =
      files.Number("/proc/sys/kernel/numa_balancing").value_or(0) != 0;
  return facts;
}

std::vector<Finding> JudgeNuma(const NumaFacts& facts) {
  if (facts.nodes <= 1) {
    return {{.seen = "one NUMA node"}};
  }
  std::vector<Finding> findings;
  Finding where = {
      .seen = absl::StrCat("the rank's CPUs are on node",
                           facts.used_nodes.size() == 1 ? " " : "s ",
                           absl::StrJoin(facts.used_nodes, ", "), " of ",
                           facts.nodes, "; memory policy ", facts.policy)};
  if (facts.used_nodes.size() > 1 && facts.policy != "interleave") {
    where.verdict = Verdict::kWarning;
    absl::StrAppend(&where.seen,
                    ": a page is on the node that wrote it first, and threads "
                    "on the other nodes read it from there");
    where.remedy =
        "start one rank per NUMA node: hvdliterun --map numa --mem local "
        "(mpirun --map-by numa --bind-to numa); or hvdliterun --mem interleave "
        "(numactl --interleave=all)";
  }
  findings.push_back(std::move(where));
  if (facts.balancing && facts.policy == "default") {
    findings.push_back(
        {.verdict = Verdict::kNote,
         .seen = "the kernel moves pages between nodes (numa_balancing) and "
                 "unmaps them repeatedly for this",
         .remedy = "sysctl -w kernel.numa_balancing=0"});
  }
  return findings;
}

absl::StatusOr<Findings> RunNuma(Session& session) {
  return JudgeNuma(GatherNuma(session.files, session.allowed_cpus));
}

}  // namespace hvdlite::doctor
