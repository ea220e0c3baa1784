#include <hvdlite/timeline.h>
#include <hvdlite/world.h>
#include <stdlib.h>
#include <time.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "bench/hvdlite_bench/mode.h"
#include "bench/hvdlite_bench/torch_world.h"
#include "support/flags.h"

namespace hvdlite::tools {
namespace {

// Events of a step, after which the thread computes for a while and the writer
// finds them.
constexpr int kBurst = 500;
constexpr auto kWriterPause = std::chrono::milliseconds(5);
// In which the writer comes to its end.
constexpr auto kRest = std::chrono::milliseconds(500);

// CPU time so far.
double Nanoseconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return 1e9 * static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec);
}

struct Cost {
  double of_thread = 0;   // that records; nanoseconds per event
  double of_process = 0;  // with the writer's thread
};

Cost RecordEvents(int events) {
  const double process_before = Nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
  Cost cost;
  for (int done = 0; done < events; done += kBurst) {
    const double before = Nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < kBurst; ++i) {
      const TraceSpan span("NEGOTIATE_ALLREDUCE");
    }
    cost.of_thread += Nanoseconds(CLOCK_THREAD_CPUTIME_ID) - before;
    std::this_thread::sleep_for(kWriterPause);
  }
  std::this_thread::sleep_for(kRest);
  cost.of_process = Nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - process_before;
  return cost;
}

// Alone: what is measured is no communication.
int RunTrace(int events, const Run& run) {
  init();
  if (size() != 1) throw std::runtime_error("trace is for one rank: -np 1");
  std::string folder =
      (std::filesystem::temp_directory_path() / "hvdlite_bench.XXXXXX")
          .string();
  if (mkdtemp(folder.data()) == nullptr) {
    throw std::runtime_error("no folder can be made: " + folder);
  }
  Results results = StartResults(run, size());
  Case a_case;
  a_case.name = "event";
  a_case.description = "CPU time per span, in bursts of 500";
  a_case.unit = "ns";
  a_case.repeats = events;
  for (const char* name : {"thread", "process", "thread_off"}) {
    a_case.contenders.push_back({name, Role::kHvdlite, {}, ""});
  }
  for (int round = 0; round < run.rounds; ++round) {
    const Cost off = RecordEvents(events);
    start_timeline(folder + "/trace.json");
    const Cost on = RecordEvents(events);
    stop_timeline();
    a_case.AddRound({on.of_thread / events,
                     (on.of_process - off.of_process) / events,
                     off.of_thread / events});
  }
  std::filesystem::remove_all(folder);
  results.cases = {a_case};
  const int exit_code = Report(run, results, rank());
  shutdown();
  return exit_code;
}

}  // namespace

Mode TraceMode() {
  return {"trace", "What an event of the timeline costs",
          [](CLI::App& command) {
            auto events = std::make_shared<int>(50'000);
            support::AddPositive(command, "--events", *events,
                                 "Events of a round; rounded up to 500s");
            return [events](const Run& run) {
              const int bursts = (*events + kBurst - 1) / kBurst;
              return RunTrace(bursts * kBurst, run);
            };
          }};
}

}  // namespace hvdlite::tools
