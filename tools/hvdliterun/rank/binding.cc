#include "tools/hvdliterun/rank/binding.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "support/core_use.h"
#include "support/processor.h"

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
        absl::StrCat("cannot bind to the CPUs ", support::FormatCpuList(cpus)));
  }
  const std::vector<int> got = support::AllowedCpus();
  if (got != cpus) {
    return absl::FailedPreconditionError(
        absl::StrCat("bound to the CPUs ", support::FormatCpuList(got),
                     " instead of ", support::FormatCpuList(cpus),
                     ": the control group does not allow the others"));
  }
  return absl::OkStatus();
}

int ModeOf(MemoryPolicy memory) {
  if (memory == MemoryPolicy::kInterleave) return MPOL_INTERLEAVE;
  if (memory == MemoryPolicy::kBind) return MPOL_BIND;
  if (memory == MemoryPolicy::kPreferred) return MPOL_PREFERRED;
  return MPOL_LOCAL;
}

// Whether pages come from the node of the CPU that touches them first.
bool IsLocal(const support::NumaPolicy& policy) {
  const std::string name = support::NumaPolicyName(policy);
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
    // The kernel has no NUMA, or a container forbids the call: there memory is
    // local by default.
    if (memory == MemoryPolicy::kLocal && (errno == ENOSYS || errno == EPERM)) {
      return absl::OkStatus();
    }
    return Failure(absl::StrCat(
        "cannot set the memory policy ", MemoryPolicyName(memory), " on nodes ",
        support::FormatCpuList(nodes),
        " (in a container it may need --cap-add SYS_NICE; --mem local works "
        "without it)"));
  }
  HVDLITE_ASSIGN_OR_RETURN(const support::NumaPolicy got,
                           support::ThisThreadsNumaPolicy());
  const bool as_asked =
      memory == MemoryPolicy::kLocal
          ? IsLocal(got)
          : got.mode == mode && (nodes.empty() || got.nodes == nodes);
  if (!as_asked) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the memory policy is ", support::NumaPolicyName(got), " on nodes ",
        support::FormatCpuList(got.nodes), " instead of ",
        MemoryPolicyName(memory), " on ", support::FormatCpuList(nodes)));
  }
  return absl::OkStatus();
}

// The checks cover the time from the start to the end of MPI_Init of a large
// job. A difference is reported only if it is seen twice: hwloc, while it
// examines a machine, binds the calling thread to each CPU in turn, and back.
constexpr std::array kLooks = {absl::ZeroDuration(), absl::Seconds(2),
                               absl::Seconds(10), absl::Seconds(60)};

// Variables of MPI libraries that bind ranks, with the value that turns it off.
struct Binder {
  const char* name;
  const char* off;
  const char* of;
};
constexpr std::array kBinders = {
    Binder{"MV2_ENABLE_AFFINITY", "0", "MVAPICH2"},
    Binder{"I_MPI_PIN", "0", "Intel MPI"},
    Binder{"OMPI_MCA_hwloc_base_binding_policy", "none", "Open MPI"}};

// The entries of a directory of /proc whose names are numbers.
std::vector<pid_t> NumbersIn(const support::SystemFiles& files,
                             const std::string& directory) {
  std::vector<pid_t> numbers;
  for (const std::string& name : files.Names(directory)) {
    pid_t number = 0;
    if (absl::SimpleAtoi(name, &number)) numbers.push_back(number);
  }
  return numbers;
}

bool Includes(std::vector<int> all, std::vector<int> some) {
  std::sort(all.begin(), all.end());
  std::sort(some.begin(), some.end());
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

bool IsOff(const std::string& value) {
  constexpr std::array kOff = {"0",    "off",     "no",      "false",
                               "none", "disable", "disabled"};
  return std::count(kOff.begin(), kOff.end(), absl::AsciiStrToLower(value)) > 0;
}

}  // namespace

absl::Status BindThisProcess(const std::vector<int>& cpus, MemoryPolicy memory,
                             const std::vector<int>& nodes) {
  HVDLITE_RETURN_IF_ERROR(BindCpus(cpus));
  if (memory == MemoryPolicy::kInherit) return absl::OkStatus();
  return BindMemory(memory, nodes);
}

std::vector<pid_t> ProcessesOfGroup(pid_t group,
                                    const support::SystemFiles& files) {
  std::vector<pid_t> processes;
  for (const pid_t process : NumbersIn(files, "/proc")) {
    const auto stat = support::ParseProcessStat(
        files.Text(absl::StrCat("/proc/", process, "/stat")).value_or(""));
    if (stat.has_value() && stat->group == group) processes.push_back(process);
  }
  return processes;
}

std::vector<ThreadCpus> ThreadsOfGroup(pid_t group,
                                       const support::SystemFiles& files) {
  std::vector<ThreadCpus> threads;
  for (const pid_t process : ProcessesOfGroup(group, files)) {
    const std::string tasks = absl::StrCat("/proc/", process, "/task");
    const size_t before = threads.size();
    for (const pid_t thread : NumbersIn(files, tasks)) {
      const std::string status =
          files.Text(absl::StrCat(tasks, "/", thread, "/status")).value_or("");
      auto cpus =
          support::ParseCpuList(support::ValueOf(status, "Cpus_allowed_list"));
      if (!cpus.ok() || cpus->empty() ||
          absl::StartsWith(support::ValueOf(status, "State"), "Z")) {
        threads.resize(before);
        break;
      }
      threads.push_back(
          {.process = process, .thread = thread, .cpus = *std::move(cpus)});
    }
  }
  return threads;
}

std::string DifferenceFromPlan(const std::vector<ThreadCpus>& threads,
                               const RankPlan& plan, pid_t program,
                               bool threads_are_free) {
  std::set<int> of_program;
  for (const ThreadCpus& thread : threads) {
    if (!Includes(plan.cpus, thread.cpus)) {
      return absl::StrCat("thread ", thread.thread, " of process ",
                          thread.process, " runs on the CPUs ",
                          support::FormatCpuList(thread.cpus), " instead of ",
                          support::FormatCpuList(plan.cpus));
    }
    if (thread.process == program) {
      of_program.insert(thread.cpus.begin(), thread.cpus.end());
    }
  }
  if (threads_are_free && !of_program.empty() &&
      of_program.size() < plan.cpus.size()) {
    return absl::StrCat(
        "the program's threads run only on the CPUs ",
        support::FormatCpuList({of_program.begin(), of_program.end()}),
        ", not on all of ", support::FormatCpuList(plan.cpus));
  }
  return "";
}

bool ThreadsAreFree(const Variables& variables) {
  const std::string bind =
      absl::AsciiStrToLower(variables.Get("OMP_PROC_BIND").value_or(""));
  return bind == "false" && !variables.Has("GOMP_CPU_AFFINITY") &&
         !variables.Has("KMP_AFFINITY");
}

std::string HowToStopBinding(const Variables& variables, const RankPlan& plan,
                             const std::string& own_arrangement) {
  // The rank's own variables are checked first.
  const std::string core =
      variables.Get("HVDLITE_COORDINATOR_CORE").value_or("");
  if (int cpu = 0;
      absl::SimpleAtoi(core, &cpu) && !Includes(plan.cpus, {cpu})) {
    return absl::StrCat("HVDLITE_COORDINATOR_CORE=", core,
                        " binds hvdlite's background thread there: unset it, "
                        "and each rank gets its own core for this thread");
  }
  for (const Binder& binder : kBinders) {
    const std::string value = variables.Get(binder.name).value_or(binder.off);
    if (!IsOff(value)) {
      return absl::StrCat(binder.name, "=", value, " makes ", binder.of,
                          " bind it: set ", binder.name, "=", binder.off);
    }
  }
  if (!own_arrangement.empty()) {
    const std::string value = variables.Get(own_arrangement).value_or("");
    if (value != "disabled" && value != "none") {  // values of KMP_AFFINITY
      return absl::StrCat(own_arrangement, "=", value,
                          " makes the OpenMP runtime bind it: unset ",
                          own_arrangement);
    }
  }
  return absl::StrCat(
      "something else binds it: ",
      absl::StrJoin(kBinders, ", ",
                    [](std::string* out, const Binder& binder) {
                      absl::StrAppend(out, binder.name, "=", binder.off, " (",
                                      binder.of, ")");
                    }),
      " turn off MPI's own binding; otherwise look for taskset, numactl and "
      "sched_setaffinity in the program and its scripts");
}

std::string BindingWatch::Look(absl::Duration passed,
                               const std::function<std::string()>& look) {
  if (looks_ == kLooks.size() || (!differed_ && passed < kLooks[looks_])) {
    return "";
  }
  const std::string difference = look();
  const bool is_confirmed = differed_ && !difference.empty();
  differed_ = !differed_ && !difference.empty();
  if (is_confirmed) {
    looks_ = kLooks.size();
    return difference;
  }
  if (!differed_) ++looks_;
  return "";
}

}  // namespace hvdlite::launch
