// What happens when a process exits, or finalizes MPI, without shutdown().
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/end_note.h"
#include "base/environment.h"
#include "base/mutex.h"
#include "negotiation/world/world.h"

namespace hvdlite::internal {
namespace {

// How long the other ranks may take to notice that this one leaves, and how
// long everything together may take.
constexpr absl::Duration kPatience = absl::Seconds(10);
constexpr absl::Duration kLimit = absl::Seconds(20);

[[noreturn]] void EndProcess(int exit_code) {
  std::cout.flush();
  std::fflush(nullptr);
  _exit(exit_code);
}

// Ends the process unless it is destroyed within `limit`.
class ExitDeadline {
 public:
  ExitDeadline(absl::Duration limit, int exit_code)
      : thread_([this, limit, exit_code] {
          base::MutexLock lock(&mutex_);
          while (!met_) {
            if (!wake_.WaitFor(&mutex_, limit) && !met_) EndProcess(exit_code);
          }
        }) {}
  ~ExitDeadline() {
    {
      base::MutexLock lock(&mutex_);
      met_ = true;
    }
    wake_.NotifyAll();
    thread_.join();
  }
  ExitDeadline(const ExitDeadline&) = delete;
  ExitDeadline& operator=(const ExitDeadline&) = delete;

 private:
  base::Mutex mutex_;
  base::CondVar wake_;
  bool met_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// The process that leaves its world when it exits.
std::atomic<pid_t> leaving_process = 0;

void LeaveAtExit(int exit_code, void*) {
  // A forked child is not a rank.
  if (leaving_process != getpid()) return;
  const std::shared_ptr<World> world = TakeCurrentWorld();
  // Static objects must not be destroyed beside a thread that is inside MPI.
  if (HasAbandonedWorld()) EndProcess(exit_code);
  if (world == nullptr) return;
  base::NoteExit(base::ProcessEnvironment(), exit_code);
  const ExitDeadline deadline(kLimit, exit_code);
  const std::string reason =
      absl::StrCat("rank ", world->topology().rank,
                   " exited without calling hvdlite::shutdown()");
  const absl::Status status = CloseWorld(world, reason, kPatience);
  if (world->abandoned()) {
    world->logger().Error(absl::StrCat(
        "could not leave the world cleanly at exit: ", status.message()));
    EndProcess(exit_code);
  }
}

}  // namespace

void LeaveAtFinalize() {
  const std::shared_ptr<World> world = TakeCurrentWorld();
  if (world == nullptr) return;
  const std::string what = absl::StrCat(
      "rank ", world->topology().rank,
      " called MPI_Finalize without calling hvdlite::shutdown() before");
  world->logger().Warning(absl::StrCat(
      what, ": the world ends here; call hvdlite::shutdown() first"));
  const absl::Status status = CloseWorld(
      world, what,
      base::SecondsOrNever(world->config().shutdown_timeout_seconds));
  if (!status.ok()) {
    world->logger().Error(
        absl::StrCat("could not leave the world cleanly in MPI_Finalize: ",
                     status.message()));
  }
}

void InstallExitHandler() {
  const pid_t process = getpid();
  if (leaving_process.exchange(process) != process) {
    on_exit(LeaveAtExit, nullptr);
  }
}

}  // namespace hvdlite::internal
