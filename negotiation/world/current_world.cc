#include "negotiation/world/current_world.h"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/end_note.h"
#include "base/environment.h"
#include "base/fixed_point.h"
#include "base/fork_mark.h"
#include "base/launcher_environment.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "timeline/record/trace_format.h"

namespace hvdlite::internal {
namespace {

// kLongestShutdown: time limit for the other ranks to notice that this one
// leaves, and for closing a broken world. kExitLimit: time limit for everything
// at a process's exit.
constexpr absl::Duration kLongestShutdown = absl::Seconds(10);
constexpr absl::Duration kExitLimit = absl::Seconds(20);

// How often starting the successor of a broken world is tried, and how often a
// world is replaced although no rank was lost.
constexpr int kStarts = 3;
constexpr int kInVain = 10;

// A process that is a rank, or about to become one.
struct RankProcess {
  const base::ForkMark mark;
  const pid_t pid = getpid();
  std::atomic<int> rank = -1;  // not known yet
};

// The only global of the library. Never destroyed, so that the order of static
// destruction does not matter.
struct Process {
  base::Mutex mutex;
  std::shared_ptr<World> world ABSL_GUARDED_BY(mutex);
  // Why there can be no other world; empty if there can.
  std::string over ABSL_GUARDED_BY(mutex);
  int replaced ABSL_GUARDED_BY(mutex) = 0;  // worlds
  int replaced_in_vain ABSL_GUARDED_BY(mutex) = 0;
  // A world that another thread may still use; never freed.
  std::shared_ptr<World> abandoned ABSL_GUARDED_BY(mutex);
  // The process in which the exit handler was installed.
  std::optional<base::ForkMark> leaves_at_exit ABSL_GUARDED_BY(mutex);
  bool uses_mpi ABSL_GUARDED_BY(mutex) = false;  // or has used it
  // This process, and those that it was forked from.
  std::deque<RankProcess> ranks ABSL_GUARDED_BY(mutex);
};

Process& ThisProcess() {
  static auto* const process = new Process;
  return *process;
}

// This process, or the one it was forked from. Null if it is not a rank and has
// used no MPI. Read without a lock, because a forked process may inherit a held
// lock. Never destroyed.
constinit std::atomic<RankProcess*> rank_process = nullptr;

// The world has ended, or could not be started. A process forked from now on
// can have a world, unless it would inherit its parent's MPI.
void EndRank(Process& process) ABSL_EXCLUSIVE_LOCKS_REQUIRED(process.mutex) {
  if (!process.uses_mpi) rank_process = nullptr;
}

// Whether this process may have a world.
bool MayHaveWorld() {
  const RankProcess* const process = rank_process.load();
  return process != nullptr && !process->mark.forked();
}

[[noreturn]] void EndProcess(int exit_code) {
  std::cout.flush();
  std::fflush(nullptr);
  _exit(exit_code);
}

bool HasAbandonedWorld() {
  base::MutexLock lock(&ThisProcess().mutex);
  return ThisProcess().abandoned != nullptr;
}

// Ends the process if this object still exists after `limit`.
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

void LeaveAtExit(int exit_code, void*) {
  if (!MayHaveWorld()) return;
  // No fork handler has seen a child made by a raw system call.
  const RankProcess* const process = rank_process.load();
  if (process != nullptr && process->pid != getpid()) return;
  const std::shared_ptr<World> world = TakeCurrentWorld();
  // Static objects must not be destroyed while a thread is inside MPI.
  if (HasAbandonedWorld()) EndProcess(exit_code);
  if (world == nullptr) return;
  base::NoteExit(base::ProcessEnvironment(), exit_code);
  const ExitDeadline deadline(kExitLimit, exit_code);
  const std::string reason =
      absl::StrCat("rank ", world->topology().rank,
                   " exited without calling hvdlite::shutdown()");
  const absl::Status status = CloseWorld(world, reason, kLongestShutdown);
  if (world->abandoned()) {
    world->logger().Error(absl::StrCat(
        "cannot leave the world cleanly at exit: ", status.message()));
    EndProcess(exit_code);
  }
}

// Installs the handler once per process.
void InstallExitHandler(Process& process)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(process.mutex) {
  if (process.leaves_at_exit && !process.leaves_at_exit->forked()) return;
  process.leaves_at_exit.emplace();
  on_exit(LeaveAtExit, nullptr);
}

int MinRanks() {
  int ranks = 1;
  const auto text = base::ProcessEnvironment().get(base::kMinRanksVariable);
  return text.has_value() && absl::SimpleAtoi(*text, &ranks) ? ranks : 1;
}

}  // namespace

absl::Status StartCurrentWorld(const Config& config,
                               const collective::MpiRanks& ranks,
                               const std::string& versions) {
  HVDLITE_RETURN_IF_ERROR(CheckNotForked());
  Process& process = ThisProcess();
  base::MutexLock lock(&process.mutex);
  if (process.world != nullptr) {
    return absl::FailedPreconditionError(
        "hvdlite::init() was called twice: call hvdlite::shutdown() first");
  }
  if (!process.over.empty() && config.backend != "single") {
    return absl::FailedPreconditionError(process.over);
  }
  if (config.backend != "single") process.uses_mpi = true;
  if (rank_process.load() == nullptr) {
    if (process.ranks.empty() || process.ranks.back().mark.forked()) {
      process.ranks.emplace_back();
    }
    process.ranks.back().rank = -1;
    rank_process = &process.ranks.back();
  }
  absl::StatusOr<std::shared_ptr<World>> world =
      World::Start(config, ranks, versions);
  if (!world.ok()) {
    EndRank(process);
    return world.status();
  }
  process.world = *std::move(world);
  rank_process.load()->rank = process.world->topology().rank;
  InstallExitHandler(process);
  return absl::OkStatus();
}

absl::Status CheckNotForked() {
  const RankProcess* const process = rank_process.load();
  if (process == nullptr || !process->mark.forked()) return absl::OkStatus();
  const int rank = process->rank;
  return absl::FailedPreconditionError(absl::StrCat(
      "process ", getpid(), " was forked from ",
      rank < 0 ? "a process that had called hvdlite::init()"
               : absl::StrCat("rank ", rank),
      " (process ", process->pid,
      ") and is not a rank itself: hvdlite works only in the process that "
      "called hvdlite::init(). Call it there; or fork before init(); or start "
      "another program instead (posix_spawn, or exec after fork)"));
}

std::shared_ptr<World> CurrentWorldOrNull() {
  if (!MayHaveWorld()) return nullptr;
  base::MutexLock lock(&ThisProcess().mutex);
  return ThisProcess().world;
}

std::shared_ptr<World> TakeCurrentWorld() {
  if (!MayHaveWorld()) return nullptr;
  base::MutexLock lock(&ThisProcess().mutex);
  return std::exchange(ThisProcess().world, nullptr);
}

absl::Status CloseWorld(std::shared_ptr<World> world, const std::string& reason,
                        absl::Duration timeout) {
  const absl::Status status = world->Close(reason, timeout);
  Process& process = ThisProcess();
  base::MutexLock lock(&process.mutex);
  if (world->abandoned()) {
    process.over =
        "hvdlite::init() cannot be called again in this process: the last "
        "world could not be shut down cleanly";
    process.abandoned = std::move(world);
  } else if (world->only_once() && (status.ok() || !world->can_be_replaced())) {
    process.over =
        "hvdlite::init() cannot be called again in this process: "
        "hvdlite::shutdown() has finalised MPI, which cannot be initialised "
        "twice. Call MPI_Init_thread (MPI_THREAD_SERIALIZED) and MPI_Finalize "
        "in the program to use hvdlite several times";
  } else if (status.ok()) {
    EndRank(process);
  }
  return status;
}

void LeaveAtFinalize() {
  const std::shared_ptr<World> world = TakeCurrentWorld();
  if (world == nullptr) return;
  const std::string what = absl::StrCat(
      "rank ", world->topology().rank,
      " called MPI_Finalize without calling hvdlite::shutdown() first");
  world->logger().Warning(absl::StrCat(
      what,
      ": the world ends now; call hvdlite::shutdown() before MPI_Finalize"));
  const absl::Status status = CloseWorld(
      world, what,
      base::SecondsOrNever(world->config().shutdown_timeout_seconds));
  if (!status.ok()) {
    world->logger().Error(absl::StrCat(
        "cannot leave the world cleanly in MPI_Finalize: ", status.message()));
  }
}

absl::Status ReplaceBrokenWorld() {
  const std::shared_ptr<World> world = CurrentWorldOrNull();
  if (world == nullptr || !world->can_be_replaced()) {
    return absl::FailedPreconditionError(
        "cannot continue in place: this MPI does not survive the loss of a "
        "rank");
  }
  const int64_t start_ns = world->clock().NowNanos();
  // A rank may have left cleanly, but MPI must not end with it.
  const std::string ended(world->coordinator().world_status().message());
  const std::string why = ended.empty()
                              ? absl::StrCat("rank ", world->topology().rank,
                                             " has abandoned the world")
                              : ended;
  world->coordinator().GiveUp(why);
  CloseWorld(TakeCurrentWorld(), why, kLongestShutdown).IgnoreError();
  if (world->abandoned()) return absl::UnavailableError(why);
  Config config = world->config();
  if (!config.timeline.empty()) {
    config.timeline = timeline::PathOfNextWorld(config.timeline);
  }
  // Another rank may be lost meanwhile.
  absl::Status started;
  for (int attempt = 0; attempt < kStarts; ++attempt) {
    started = StartCurrentWorld(config, {.survivors = true}, world->versions());
    if (!absl::IsUnavailable(started)) break;
  }
  HVDLITE_RETURN_IF_ERROR(started);
  base::NoteWorldLeft(base::ProcessEnvironment());
  const std::shared_ptr<World> next = CurrentWorldOrNull();
  const int size = next->topology().size;
  if (next->topology().rank == 0) {
    next->logger().Warning(absl::StrCat(
        "continuing in place with ", size, " of ", world->topology().size,
        " ranks, ",
        base::FixedPoint(
            static_cast<double>(next->clock().NowNanos() - start_ns) * 1e-9, 1),
        " s after the world broke: ", why));
  }
  Process& process = ThisProcess();
  base::MutexLock lock(&process.mutex);
  ++process.replaced;
  if (size == world->topology().size && ++process.replaced_in_vain >= kInVain) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the world has broken again, although no rank was lost: ", why));
  }
  const int min_ranks = MinRanks();
  if (size >= min_ranks) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the number of remaining ranks is ", size, ", but at least ",
                   min_ranks, " are needed"));
}

int ReplacedWorlds() {
  if (!CheckNotForked().ok()) return 0;
  base::MutexLock lock(&ThisProcess().mutex);
  return ThisProcess().replaced;
}

}  // namespace hvdlite::internal
