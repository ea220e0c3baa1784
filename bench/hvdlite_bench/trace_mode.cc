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

// Events per step. Afterwards the thread pauses, and the writer thread finds
// the events.
constexpr int kBurst = 500;
constexpr auto kWriterPause = std::chrono::milliseconds(5);
// Time in which the writer thread finishes.
constexpr auto kRest = std::chrono::milliseconds(500);

// CPU time so far.
double Nanoseconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return 1e9 * static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec);
}

struct Cost {
  double of_thread = 0;   // recording thread; nanoseconds per event
  double of_process = 0;  // including the writer thread
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

// Runs on one rank, since it does not measure communication.
int RunTrace(int events, const Run& run) {
  init();
  if (size() != 1) throw std::runtime_error("trace needs one rank: -np 1");
  std::string directory =
      (std::filesystem::temp_directory_path() / "hvdlite_bench.XXXXXX")
          .string();
  if (mkdtemp(directory.data()) == nullptr) {
    throw std::runtime_error("cannot create a directory: " + directory);
  }
  Results results = StartResults(run, size());
  Case a_case;
  a_case.name = "event";
  a_case.description = "CPU time per span, in bursts of 500";
  a_case.unit = "ns";
  a_case.repeats = events;
  for (const char* name : {"thread", "process", "thread_off"}) {
    a_case.implementations.push_back({name, Role::kHvdlite, {}, ""});
  }
  for (int round = 0; round < run.rounds; ++round) {
    const Cost off = RecordEvents(events);
    start_timeline(directory + "/trace.json");
    const Cost on = RecordEvents(events);
    stop_timeline();
    a_case.AddRound({on.of_thread / events,
                     (on.of_process - off.of_process) / events,
                     off.of_thread / events});
  }
  std::filesystem::remove_all(directory);
  results.cases = {a_case};
  const int exit_code = Report(run, results, rank());
  shutdown();
  return exit_code;
}

}  // namespace

Mode TraceMode() {
  return {"trace", "The cost of an event of the timeline",
          [](CLI::App& command) {
            auto events = std::make_shared<int>(50'000);
            support::AddPositive(command, "--events", *events,
                                 "Events per round, rounded up to a multiple "
                                 "of 500");
            return [events](const Run& run) {
              const int bursts = (*events + kBurst - 1) / kBurst;
              return RunTrace(bursts * kBurst, run);
            };
          }};
}

}  // namespace hvdlite::tools
