// What is done about a rank while its program runs.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/descriptor.h"
#include "support/machine.h"
#include "tools/hvdliterun/plan/plan.h"
#include "tools/hvdliterun/plan/variables.h"

namespace hvdlite::launch {

// Nothing of a rank is left on its node when what started it was killed.
//
// A small process that ends a process group once the process that started the
// reaper has ended without Release(), by SIGKILL, too: a death signal reaches
// the program alone, and not the children of a wrapper script. What has left
// the group is left alone.
//
//   GroupReaper reaper = GroupReaper::Start({.group = program}).value();
//   ...                  // waits for the program
//   reaper.Release();    // what it leaves behind on purpose may stay
class GroupReaper {
 public:
  struct Options {
    pid_t group = 0;
    // When this process ends, whoever started the reaper gets SIGTERM, and
    // SIGKILL if it is still there after `grace`.
    std::optional<pid_t> launcher = {};
    absl::Duration grace = absl::Seconds(5);
  };

  // Single-threaded programs only: it forks. The reaper holds none of this
  // process's descriptors, and gets none of its signals.
  static absl::StatusOr<GroupReaper> Start(const Options& options);

  // Ends the reaper and waits for its end; the group stays as it is.
  void Release();

 private:
  GroupReaper(pid_t process, base::Descriptor alive)
      : process_(process), alive_(std::move(alive)) {}

  pid_t process_;
  base::Descriptor alive_;  // closes when this process ends
};

// Hands a signal that was sent to this process to the program, which leads its
// process group. SIGUSR1 and SIGUSR2 go to those of the group that have a
// handler: they would end the others. SIGUSR1 asks for an early stop: where
// nobody has a handler, the group gets SIGTERM instead.
void PassSignal(int number, pid_t program,
                const support::SystemFiles& files = support::SystemFiles());

// Sees to it that the program's children end with this process, and looks at
// its CPUs in a thread of its own: at once, and when MPI_Init and the OpenMP
// runtime have had time to bind it elsewhere. `plan` and `variables` outlive
// it.
class RankGuard {
 public:
  // `own_arrangement`: OwnArrangement() (settings.h). `complain` is called from
  // the thread, too.
  RankGuard(const RankPlan& plan, const Variables& variables,
            std::string own_arrangement,
            std::function<void(absl::string_view)> complain);

  // Before the program runs, in a process group of its own. `launcher`: when it
  // ends first, so does the program. An error: its children might outlive this
  // process.
  absl::Status Begin(pid_t program, std::optional<pid_t> launcher);

  // The program has ended.
  void End();

 private:
  void Watch(pid_t program, const std::stop_token& end) const;

  const RankPlan& plan_;
  const Variables& variables_;
  const std::string own_arrangement_;
  std::function<void(absl::string_view)> complain_;
  std::optional<GroupReaper> reaper_;
  std::jthread watch_;
};

}  // namespace hvdlite::launch
