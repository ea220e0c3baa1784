// What is done about a rank while its program runs.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tools/hvdliterun/plan/plan.h"
#include "tools/hvdliterun/plan/variables.h"
#include "tools/hvdliterun/rank/group_reaper.h"

namespace hvdlite::launch {

// Sees to it that the program's children end with this process, and looks at
// its CPUs in a thread of its own: at once, and when MPI_Init and the OpenMP
// runtime have had time to bind it elsewhere. `plan` and `variables` outlive
// it.
class RankGuard {
 public:
  // `own_arrangement`: OwnArrangement(), of rank_variables.h. `complain` is
  // called from the thread, too.
  RankGuard(const RankPlan& plan, const Variables& variables,
            std::string own_arrangement,
            std::function<void(absl::string_view)> complain);

  // Once the program runs, in a process group of its own. `launcher`: when it
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
