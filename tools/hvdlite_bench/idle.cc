#include "tools/hvdlite_bench/idle.h"

#include <ATen/ATen.h>
#include <hvdlite/hvdlite.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>

namespace hvdlite::tools {
namespace {

double ProcessCpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

void MeasureIdle(double seconds) {
  init();
  barrier();
  const double before = ProcessCpuSeconds();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const at::Tensor share =
      at::full({}, (ProcessCpuSeconds() - before) / seconds, at::kDouble);
  allreduce_(share, AllreduceOptions().op(ReduceOp::Max));
  if (rank() == 0) {
    std::printf(
        "%d ranks, idle for %.1f s: %.2f %% of a core on the busiest rank\n",
        size(), seconds, 100 * share.item<double>());
  }
  shutdown();
}

}  // namespace hvdlite::tools
