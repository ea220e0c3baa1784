#include <ATen/ATen.h>
#include <hvdlite/ops.h>
#include <hvdlite/world.h>
#include <sys/resource.h>

#include <chrono>
#include <memory>
#include <thread>

#include "bench/hvdlite_bench/mode.h"
#include "bench/hvdlite_bench/torch_world.h"
#include "support/flags.h"

namespace hvdlite::tools {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         1e-6 * static_cast<double>(time.tv_usec);
}

double LargestOverRanks(double value) {
  return allreduce(at::full({}, value, at::kDouble),
                   AllreduceOptions().op(hvdlite::ReduceOp::Max))
      .item<double>();
}

// The activity of all threads of the busiest process while it is idle.
struct Idleness {
  double percent = 0;   // of a core
  double wake_ups = 0;  // per second
};

Idleness MeasureIdleness(double seconds) {
  barrier();
  rusage before;
  getrusage(RUSAGE_SELF, &before);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  rusage after;
  getrusage(RUSAGE_SELF, &after);
  const double cpu = Seconds(after.ru_utime) + Seconds(after.ru_stime) -
                     Seconds(before.ru_utime) - Seconds(before.ru_stime);
  return {LargestOverRanks(100 * cpu / seconds),
          LargestOverRanks(
              static_cast<double>(after.ru_nvcsw - before.ru_nvcsw) / seconds)};
}

// hvdlite is the only user of MPI here, as in most programs.
int RunIdle(double seconds, const Run& run) {
  init();
  Results results = StartResults(run, size());
  Case cpu;
  cpu.name = "cpu";
  cpu.description = "of a core, all threads of the busiest idle process";
  cpu.unit = "%";
  cpu.implementations = {{"hvdlite", Role::kHvdlite, {}, ""}};
  Case wake_ups = cpu;
  wake_ups.name = "wake_ups";
  wake_ups.description =
      "how often per second one of its threads went to sleep";
  wake_ups.unit = "/s";
  for (int round = 0; round < run.rounds; ++round) {
    const Idleness idleness = MeasureIdleness(seconds);
    cpu.AddRound({idleness.percent});
    wake_ups.AddRound({idleness.wake_ups});
  }
  results.cases = {cpu, wake_ups};
  const int exit_code = Report(run, results, rank());
  shutdown();
  return exit_code;
}

}  // namespace

Mode IdleMode() {
  return {"idle", "The cost of an initialised process that does nothing",
          [](CLI::App& command) {
            auto seconds = std::make_shared<double>(5);
            support::AddPositive(command, "--seconds", *seconds,
                                 "Length of a round in seconds");
            return [seconds](const Run& run) { return RunIdle(*seconds, run); };
          }};
}

}  // namespace hvdlite::tools
