// A program whose rank 1 fails in the middle of its work: "failing_rank stops"
// (SIGSTOP: the process stays, but does nothing) or, given the path of a
// timeline, dies (SIGKILL, once its part of the timeline holds a few events).
// With "exits", "returns" or "throws" it does that while the others wait for
// it; their world ends, and they with it.
#include <hvdlite/hvdlite.h>
#include <sched.h>
#include <torch/torch.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

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

void DiesWhileItRecords(const std::string& part) {
  const at::Tensor tensor = at::ones({10});
  for (;;) {
    hvdlite::allreduce_(tensor);
    if (hvdlite::rank() == 1 && std::filesystem::file_size(part) > 4000) {
      std::raise(SIGKILL);
    }
  }
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
  }
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string mode = argv[1];
  if (mode == "exits" || mode == "returns" || mode == "throws") {
    hvdlite::init();
    return EndsWhileTheOthersWait(mode);
  }
  hvdlite::Config config = hvdlite::Config::from_env();
  if (mode == "stops") {
    config.heartbeat_seconds = 1;
  } else {
    config.timeline = mode;
  }
  hvdlite::init(config);
  if (mode == "stops") {
    StopsBeforeItsBatch();
  } else {
    DiesWhileItRecords(mode + ".rank00001");
  }
  return 0;
}
