#include "tools/hvdliterun/rank/binding.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "tools/support/processor.h"

namespace hvdlite::launch {
namespace {

constexpr int kMaxCpus = 65536;
constexpr int kMaxNodes = 1024;
constexpr int kBits = 8 * sizeof(unsigned long);
using NodeMask = std::array<unsigned long, kMaxNodes / kBits>;

absl::Status Failure(const std::string& what) {
  return absl::FailedPreconditionError(
      absl::StrCat(what, ": ", std::strerror(errno)));
}

struct FreeCpuSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};

absl::Status BindCpus(const std::vector<int>& cpus) {
  const size_t bytes = CPU_ALLOC_SIZE(kMaxCpus);
  const std::unique_ptr<cpu_set_t, FreeCpuSet> set(CPU_ALLOC(kMaxCpus));
  CPU_ZERO_S(bytes, set.get());
  for (const int cpu : cpus) {
    CPU_SET_S(static_cast<size_t>(cpu), bytes, set.get());
  }
  if (sched_setaffinity(0, bytes, set.get()) != 0) {
    return Failure(
        absl::StrCat("cannot bind to the CPUs ", base::FormatCpuList(cpus)));
  }
  CPU_ZERO_S(bytes, set.get());
  if (sched_getaffinity(0, bytes, set.get()) != 0) {
    return Failure("cannot read the CPUs that this process is bound to");
  }
  std::vector<int> got;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
    if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set.get())) {
      got.push_back(cpu);
    }
  }
  if (got != cpus) {
    return absl::FailedPreconditionError(absl::StrCat(
        "bound to the CPUs ", base::FormatCpuList(got), " instead of ",
        base::FormatCpuList(cpus), ": the control group leaves no more"));
  }
  return absl::OkStatus();
}

int ModeOf(MemoryPolicy memory) {
  if (memory == MemoryPolicy::kInterleave) return MPOL_INTERLEAVE;
  if (memory == MemoryPolicy::kBind) return MPOL_BIND;
  return MPOL_LOCAL;
}

// Memory of the node that touches it first.
bool IsLocal(const base::NumaPolicy& policy) {
  const std::string name = base::NumaPolicyName(policy);
  return name == "default" || name == "local";
}

absl::Status BindMemory(MemoryPolicy memory, const std::vector<int>& nodes) {
  const int mode = ModeOf(memory);
  NodeMask mask = {};
  for (const int node : nodes) {
    mask[static_cast<size_t>(node / kBits)] |= 1UL << (node % kBits);
  }
  if (syscall(SYS_set_mempolicy, mode, nodes.empty() ? nullptr : mask.data(),
              nodes.empty() ? 0 : kMaxNodes) != 0) {
    // A kernel without NUMA, or a container that forbids the call: memory is
    // local there as it is.
    if (memory == MemoryPolicy::kLocal && (errno == ENOSYS || errno == EPERM)) {
      return absl::OkStatus();
    }
    return Failure(absl::StrCat(
        "cannot set the memory policy ", MemoryPolicyName(memory), " on nodes ",
        base::FormatCpuList(nodes),
        " (in a container it may need --cap-add SYS_NICE; --mem local needs "
        "nothing)"));
  }
  HVDLITE_ASSIGN_OR_RETURN(const base::NumaPolicy got,
                           base::ThisThreadsNumaPolicy());
  const bool as_asked =
      memory == MemoryPolicy::kLocal
          ? IsLocal(got)
          : got.mode == mode && (nodes.empty() || got.nodes == nodes);
  if (!as_asked) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the memory policy is ", base::NumaPolicyName(got), " on nodes ",
        base::FormatCpuList(got.nodes), " instead of ",
        MemoryPolicyName(memory), " on ", base::FormatCpuList(nodes)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BindThisProcess(const std::vector<int>& cpus, MemoryPolicy memory,
                             const std::vector<int>& nodes) {
  HVDLITE_RETURN_IF_ERROR(BindCpus(cpus));
  if (memory == MemoryPolicy::kInherit) return absl::OkStatus();
  return BindMemory(memory, nodes);
}

absl::StatusOr<std::vector<int>> CpusOfStatus(absl::string_view status) {
  for (absl::string_view line : absl::StrSplit(status, '\n')) {
    if (absl::ConsumePrefix(&line, "Cpus_allowed_list:")) {
      return base::ParseCpuList(line);
    }
  }
  return absl::NotFoundError("there is no line Cpus_allowed_list");
}

std::string InheritedMemoryPolicy() {
  const absl::StatusOr<base::NumaPolicy> policy = base::ThisThreadsNumaPolicy();
  if (!policy.ok() || IsLocal(*policy)) return "";
  return base::NumaPolicyName(*policy);
}

}  // namespace hvdlite::launch
