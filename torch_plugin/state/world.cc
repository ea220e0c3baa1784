#include <hvdlite/process_set.h>
#include <hvdlite/world.h>

#include <deque>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "negotiation/world/world_exit.h"
#include "negotiation/world/world_state.h"
#include "torch_plugin/ops/all_ranks.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite {
namespace internal {
namespace {

// The one global of the library. Never destroyed, so that the order of static
// destruction does not matter.
struct Process {
  base::Mutex mutex;
  std::shared_ptr<World> world ABSL_GUARDED_BY(mutex);
  // Why init() cannot be called again; empty if it can.
  std::string over ABSL_GUARDED_BY(mutex);
  // A world that another thread may still be inside of: kept for ever.
  std::shared_ptr<World> abandoned ABSL_GUARDED_BY(mutex);
  std::deque<std::vector<int>> rank_lists ABSL_GUARDED_BY(mutex);
};

Process& ThisProcess() {
  static auto* const process = new Process;
  return *process;
}

}  // namespace

std::shared_ptr<World> CurrentWorldOrNull() {
  base::MutexLock lock(&ThisProcess().mutex);
  return ThisProcess().world;
}

std::shared_ptr<World> TakeCurrentWorld() {
  base::MutexLock lock(&ThisProcess().mutex);
  return std::exchange(ThisProcess().world, nullptr);
}

absl::Status CloseWorld(std::shared_ptr<World> world, const std::string& reason,
                        absl::Duration timeout) {
  const absl::Status status = world->Close(reason, timeout);
  if (world->abandoned()) {
    base::MutexLock lock(&ThisProcess().mutex);
    ThisProcess().abandoned = std::move(world);
  }
  return status;
}

bool HasAbandonedWorld() {
  base::MutexLock lock(&ThisProcess().mutex);
  return ThisProcess().abandoned != nullptr;
}

std::shared_ptr<World> CurrentWorld() {
  std::shared_ptr<World> world = CurrentWorldOrNull();
  if (world == nullptr) {
    ThrowError("hvdlite is not initialised: call hvdlite::init() first");
  }
  return world;
}

const std::vector<int>& AllRanks(int size) {
  Process& process = ThisProcess();
  base::MutexLock lock(&process.mutex);
  for (const std::vector<int>& ranks : process.rank_lists) {
    if (std::cmp_equal(ranks.size(), size)) return ranks;
  }
  std::vector<int>& ranks =
      process.rank_lists.emplace_back(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace internal

void init() { init(Config::from_env()); }

void init(const Config& config) {
  internal::Process& process = internal::ThisProcess();
  base::MutexLock lock(&process.mutex);
  if (process.world != nullptr) {
    internal::ThrowError(
        "hvdlite::init() was called twice: call hvdlite::shutdown() first");
  }
  if (!process.over.empty() && config.backend != "single") {
    internal::ThrowError(process.over);
  }
  process.world = internal::ValueOrThrow(internal::World::Start(config));
  internal::InstallExitHandler();
}

void shutdown() {
  const std::shared_ptr<internal::World> world = internal::TakeCurrentWorld();
  if (world == nullptr) return;
  const double seconds = world->config().shutdown_timeout_seconds;
  const absl::Status status = internal::CloseWorld(
      world,
      absl::StrCat("rank ", world->topology().rank,
                   " called hvdlite::shutdown()"),
      seconds == 0 ? absl::InfiniteDuration() : absl::Seconds(seconds));
  if (world->only_once() || world->abandoned()) {
    internal::Process& process = internal::ThisProcess();
    base::MutexLock lock(&process.mutex);
    process.over =
        world->abandoned()
            ? "hvdlite::init() cannot be called again in this process: the "
              "last world could not be shut down in good order"
            : "hvdlite::init() cannot be called again in this process: "
              "hvdlite::shutdown() has finalised MPI, which cannot be "
              "initialised "
              "twice. Call MPI_Init_thread (MPI_THREAD_SERIALIZED) and "
              "MPI_Finalize "
              "in the program to use hvdlite several times";
  }
  if (absl::IsUnavailable(status)) {
    world->logger().Warning(
        absl::StrCat("the world was broken at shutdown: ", status.message()));
    return;
  }
  internal::ThrowIfError(status);
}

bool is_initialized() { return internal::CurrentWorldOrNull() != nullptr; }

int rank() { return internal::CurrentWorld()->topology().rank; }
int size() { return internal::CurrentWorld()->topology().size; }
int local_rank() { return internal::CurrentWorld()->topology().local_rank; }
int local_size() { return internal::CurrentWorld()->topology().local_size; }
int cross_rank() { return internal::CurrentWorld()->topology().cross_rank; }
int cross_size() { return internal::CurrentWorld()->topology().cross_size; }

}  // namespace hvdlite
