// CPUs and memory policy of a process: set, and read back from the kernel; and
// looked at again while a rank runs.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
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

// When a rank's CPUs are looked at again, since MPI_Init, an OpenMP runtime or
// the program itself may have bound it elsewhere since it started: at once, and
// 2, 10 and 60 seconds after the start.
class BindingWatch {
 public:
  // About every second, `passed` after the start. `look`: what differs now, as
  // DifferenceFromPlan() tells it. Returns a difference that was there the last
  // time, too, once; else "".
  std::string Look(absl::Duration passed,
                   const std::function<std::string()>& look);

 private:
  size_t looks_ = 0;  // that are over
  bool differed_ = false;
};

}  // namespace hvdlite::launch
