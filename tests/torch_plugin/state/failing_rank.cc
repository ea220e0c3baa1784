// A program whose rank 1 fails in the middle of its work: "failing_rank stops"
// (SIGSTOP: the process stays, but does nothing) or, given the path of a
// timeline, dies (SIGKILL, once its part of the timeline holds a few events).
// With "exits", "returns" or "throws" it does that while the others wait for
// it; their world ends, and they with it. With "crashes_in_malloc" and
// "aborts_in_malloc" a signal comes to it inside malloc(), which holds its
// lock. With "stops_in_shutdown" it stops while it waits there for the others,
// with "stops_in_finalize" when all have left and MPI is to end.
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

// Both have submitted "x"; rank 0 waits for it, rank 1 never comes to its
// batch.
void StopsBeforeItsBatch() {
  const at::Tensor processes =
      hvdlite::allgather(at::full({1}, getpid(), at::kLong));
  const at::Tensor tensor = at::ones({10});
  const hvdlite::Work work =
      hvdlite::allreduce_async_(tensor, hvdlite::AllreduceOptions().name("x"));
  hvdlite::barrier();
  if (hvdlite::rank() == 1) std::raise(SIGSTOP);
  // Before, its background thread might still come.
  while (!IsStopped(processes[1].item<int64_t>())) sched_yield();
  try {
    work.wait();
  } catch (const hvdlite::WorldBroken& error) {
    std::fprintf(stderr, "the wait has ended: %s\n", error.what());
    std::exit(75);
  }
}

// The others call shutdown() when rank 1, which is in it, has stopped.
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

// As one that has written to memory that it had freed. The hidden fields are
// those of glibc; it looks at them when it has the lock, which it takes as
// there are other threads.
void CrashesInMalloc(bool by_abort) {
  // Too large for the caches of threads, and between others, so that what is
  // freed stays as it is.
  void* volatile before = std::malloc(4000);
  void* volatile freed = std::malloc(4000);
  void* volatile after = std::malloc(4000);
  const auto address = reinterpret_cast<uintptr_t>(freed);
  std::free(freed);
  if (by_abort) {
    *reinterpret_cast<size_t volatile*>(address - sizeof(size_t)) = 7;
  } else {  // the address of the chunk before
    *reinterpret_cast<uintptr_t volatile*>(address + sizeof(void*)) = 16;
  }
  void* volatile crash = std::malloc(9000);
  (void)before, (void)after, (void)crash;
}

// What a program does that knows nothing of a world that ends.
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

// In place of MPI's.
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
