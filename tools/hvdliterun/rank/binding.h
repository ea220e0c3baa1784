// CPUs and memory policy of a process: set, and read back from the kernel; and
// looked at again while a rank runs.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "support/machine.h"
#include "tools/hvdliterun/plan/plan.h"
#include "tools/hvdliterun/plan/variables.h"

namespace hvdlite::launch {

// Binds the calling thread, and what it becomes by exec, to `cpus` and `memory`
// (on `nodes`), then asks the kernel what it has: an error tells the difference
// and what to do.
absl::Status BindThisProcess(const std::vector<int>& cpus, MemoryPolicy memory,
                             const std::vector<int>& nodes);

// CPUs of the line "Cpus_allowed_list:" of /proc/PID/status.
absl::StatusOr<std::vector<int>> CpusOfStatus(absl::string_view status);

struct ThreadCpus {
  pid_t process = 0;
  pid_t thread = 0;
  std::vector<int> cpus;  // that it may use
};

// All processes in `group`, from /proc.
std::vector<pid_t> ProcessesOfGroup(
    pid_t group, const support::SystemFiles& files = support::SystemFiles());

// All threads of all processes in `group`, from /proc. A process of which one
// ends meanwhile is left out: the others alone may tell something else.
std::vector<ThreadCpus> ThreadsOfGroup(
    pid_t group, const support::SystemFiles& files = support::SystemFiles());

// What differs from the plan: a thread that may use CPUs beside the rank's; if
// `threads_are_free` (nothing was asked to pin them), threads of `program` that
// together may use only some of them. Empty if nothing does.
std::string DifferenceFromPlan(const std::vector<ThreadCpus>& threads,
                               const RankPlan& plan, pid_t program,
                               bool threads_are_free);

// Whether nothing in the rank's variables asks its OpenMP runtime to pin
// threads.
bool ThreadsAreFree(const Variables& variables);

// Who else binds, and the variable that turns it off. `own_arrangement`: the
// variable, if any, by which the user arranges the OpenMP runtime's threads.
std::string HowToStopBinding(const Variables& variables, const RankPlan& plan,
                             const std::string& own_arrangement);

struct BindingWatch {
  // Waits that long; false: the rank has ended.
  std::function<bool(absl::Duration)> pause;
  // DifferenceFromPlan() now.
  std::function<std::string()> look;
  // At the first difference, with the time since the start.
  std::function<void(absl::Duration since_start, const std::string&)> report;
};

// Looks at a rank's CPUs again while it runs, since MPI_Init, an OpenMP runtime
// or the program itself may have bound it elsewhere since it started: at once,
// and 2, 10 and 60 seconds after the start. A difference that is still there a
// second later is reported. Returns after the last look, the first such
// difference, or the rank's end.
void WatchBinding(const BindingWatch& watch);

}  // namespace hvdlite::launch
