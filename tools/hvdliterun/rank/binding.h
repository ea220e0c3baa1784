// Sets the CPUs and the memory policy of a process, and checks the CPUs again
// while a rank runs.
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

// Binds the calling thread, and the program that it executes, to `cpus` and
// `memory` (on `nodes`). Then it reads the binding from the kernel: an error
// names the difference and what to do.
absl::Status BindThisProcess(const std::vector<int>& cpus, MemoryPolicy memory,
                             const std::vector<int>& nodes);

struct ThreadCpus {
  pid_t process = 0;
  pid_t thread = 0;
  std::vector<int> cpus;  // CPUs that the thread may use
};

// All processes in `group`, from /proc.
std::vector<pid_t> ProcessesOfGroup(
    pid_t group, const support::SystemFiles& files = support::SystemFiles());

// All threads of all processes in `group`, from /proc. If a thread of a process
// ends meanwhile, the process is left out: its other threads alone may give a
// wrong picture.
std::vector<ThreadCpus> ThreadsOfGroup(
    pid_t group, const support::SystemFiles& files = support::SystemFiles());

// A text about a difference from the plan; empty if there is none. Differences
// are: a thread that may use other CPUs than the rank's; and, if
// `threads_are_free` (no setting pins them), threads of `program` that together
// may use only some of the rank's CPUs.
std::string DifferenceFromPlan(const std::vector<ThreadCpus>& threads,
                               const RankPlan& plan, pid_t program,
                               bool threads_are_free);

// Whether no variable of the rank makes its OpenMP runtime pin threads.
bool ThreadsAreFree(const Variables& variables);

// A text that names what else binds the rank, and the variable that turns it
// off. `own_arrangement`: the variable, if any, with which the user places the
// OpenMP runtime's threads.
std::string HowToStopBinding(const Variables& variables, const RankPlan& plan,
                             const std::string& own_arrangement);

// Decides when a rank's CPUs are checked again: at the start, and 2, 10 and 60
// seconds later. MPI_Init, an OpenMP runtime or the program itself may have
// bound the rank elsewhere.
class BindingWatch {
 public:
  // Must be called about every second, `passed` after the start. `look` returns
  // the present difference (DifferenceFromPlan()). Returns a difference once,
  // when two successive checks find one; else "".
  std::string Look(absl::Duration passed,
                   const std::function<std::string()>& look);

 private:
  size_t looks_ = 0;  // finished checks
  bool differed_ = false;
};

}  // namespace hvdlite::launch
