// A program whose rank 1 fails during its work, as the argument says:
// - "stops": SIGSTOP; the process stays, but does nothing.
// - The path of a timeline: SIGKILL, when its per-rank trace file has some
//   events.
// - "exits", "returns", "throws": it ends while the others wait for it. Their
//   world ends, and so do they.
// - "crashes_in_malloc", "aborts_in_malloc": it gets a signal inside malloc(),
//   which holds its lock.
// - "stops_in_shutdown": it stops while it waits for the others in shutdown().
// - "stops_in_finalize": it stops in MPI_Finalize, when all ranks have left.
#include <hvdlite/hvdlite.h>
#include <mpi.h>
#include <sched.h>
#include <torch/torch.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

bool IsStopped(int64_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(stat, text);
  return text.find(") T ") != std::string::npos;
}

// Both ranks have submitted "x". Rank 0 waits for it; rank 1 never reaches its
// bucket.
void StopsBeforeItsBatch() {
  const at::Tensor processes =
      hvdlite::allgather(at::full({1}, getpid(), at::kLong));
  const at::Tensor tensor = at::ones({10});
  const hvdlite::Work work =
      hvdlite::allreduce_async_(tensor, hvdlite::AllreduceOptions().name("x"));
  hvdlite::barrier();
  if (hvdlite::rank() == 1) std::raise(SIGSTOP);
  // Before that, rank 1's background thread might still reach it.
  while (!IsStopped(processes[1].item<int64_t>())) sched_yield();
  try {
    work.wait();
  } catch (const hvdlite::WorldBroken& error) {
    std::fprintf(stderr, "the wait has ended: %s\n", error.what());
    std::exit(75);
  }
}

// Rank 1 stops in shutdown(). Then the others call shutdown().
void StopsInShutdown() {
  const at::Tensor processes =
      hvdlite::allgather(at::full({1}, getpid(), at::kLong));
  if (hvdlite::rank() == 1) {
    std::thread([] {
      while (hvdlite::is_initialized()) sched_yield();
      kill(getpid(), SIGSTOP);
    }).detach();
  } else {
    while (!IsStopped(processes[1].item<int64_t>())) sched_yield();
  }
  hvdlite::shutdown();
}

bool stops_in_finalize = false;

void DiesWhileItRecords(const std::string& part) {
  const at::Tensor tensor = at::ones({10});
  for (;;) {
    hvdlite::allreduce_(tensor);
    if (hvdlite::rank() == 1 && std::filesystem::file_size(part) > 4000) {
      std::raise(SIGKILL);
    }
  }
}

// Behaves like a program that has written to freed memory. The hidden fields
// are those of glibc. It checks them while it holds the lock, which it takes
// because there are other threads.
void CrashesInMalloc(bool by_abort) {
  // The blocks are too large for the threads' caches and lie between others, so
  // that glibc does not change the freed one.
  void* volatile before = std::malloc(4000);
  void* volatile freed = std::malloc(4000);
  void* volatile after = std::malloc(4000);
  const auto address = reinterpret_cast<uintptr_t>(freed);
  std::free(freed);
  if (by_abort) {
    *reinterpret_cast<size_t volatile*>(address - sizeof(size_t)) = 7;
  } else {  // the address of the previous chunk
    *reinterpret_cast<uintptr_t volatile*>(address + sizeof(void*)) = 16;
  }
  void* volatile crash = std::malloc(9000);
  (void)before, (void)after, (void)crash;
}

// Ends like a program that does not know of a world.
int EndsWhileTheOthersWait(const std::string& how) {
  hvdlite::barrier();
  if (hvdlite::rank() != 1) {
    hvdlite::allreduce(at::ones({10}));
  } else if (how == "throws") {
    throw std::runtime_error("the data of rank 1 are not there");
  } else if (how == "exits") {
    std::exit(3);
  } else if (how != "returns") {
    CrashesInMalloc(how == "aborts_in_malloc");
  }
  return 3;
}

}  // namespace

// Replaces MPI's function.
extern "C" int MPI_Finalize() {
  if (stops_in_finalize) std::raise(SIGSTOP);
  return PMPI_Finalize();
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string mode = argv[1];
  if (mode == "exits" || mode == "returns" || mode == "throws" ||
      mode == "crashes_in_malloc" || mode == "aborts_in_malloc") {
    hvdlite::init();
    return EndsWhileTheOthersWait(mode);
  }
  hvdlite::Config config = hvdlite::Config::from_env();
  if (mode == "stops") {
    config.heartbeat_seconds = 1;
  } else if (mode == "stops_in_shutdown") {
    config.heartbeat_seconds = 2;
  } else if (mode == "stops_in_finalize") {
    config.watchdog_seconds = 1;
  } else {
    config.timeline = mode;
  }
  hvdlite::init(config);
  if (mode == "stops") {
    StopsBeforeItsBatch();
  } else if (mode == "stops_in_shutdown") {
    StopsInShutdown();
  } else if (mode == "stops_in_finalize") {
    stops_in_finalize = hvdlite::rank() == 1;
    hvdlite::shutdown();
  } else {
    DiesWhileItRecords(mode + ".rank00001");
  }
  return 0;
}
