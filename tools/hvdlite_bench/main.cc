// hvdlite_bench: times hvdlite's allreduce against MPI_Allreduce on one flat
// buffer, in interleaved rounds of one run, or what an idle process costs. Run
// it under mpirun.

#include <hvdlite/hvdlite.h>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <deque>
#include <iostream>
#include <string>
#include <vector>

#include "tools/hvdlite_bench/contender.h"
#include "tools/hvdlite_bench/idle.h"
#include "tools/hvdlite_bench/measurements.h"

namespace hvdlite::tools {
namespace {

// A workload with both contenders and what they took.
struct Match {
  Match(const Workload& workload, MPI_Comm communicator)
      : workload(workload),
        hvdlite(workload),
        mpi(workload, communicator),
        comparison{workload.name,
                   workload.description,
                   static_cast<int64_t>(workload.elements.size()),
                   TotalBytes(workload),
                   workload.repeats,
                   {},
                   {}} {}

  Workload workload;
  HvdliteContender hvdlite;
  MpiContender mpi;
  Comparison comparison;
};

// Microseconds that one run takes on the slowest rank, as the mean of
// `repeats` in a row. Collective.
template <typename Contender>
double TimeRuns(Contender& contender, int repeats, MPI_Comm communicator) {
  using Clock = std::chrono::steady_clock;
  MPI_Barrier(communicator);
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < repeats; ++i) contender.Run();
  double us =
      std::chrono::duration<double, std::micro>(Clock::now() - start).count() /
      repeats;
  MPI_Allreduce(MPI_IN_PLACE, &us, 1, MPI_DOUBLE, MPI_MAX, communicator);
  return us;
}

// Both contenders must compute the sum; leaves zeros, which stay zeros however
// often they are summed. Throws c10::Error. Collective.
template <typename Contender>
void CheckSum(Contender& contender, const std::string& what) {
  contender.Fill(static_cast<float>(rank() + 1));
  contender.Run();
  TORCH_CHECK(contender.AllEqual(static_cast<float>(size() * (size() + 1) / 2)),
              what, ": wrong sum on rank ", rank());
  contender.Fill(0);
}

// Nanoseconds, one way, that a byte takes between ranks 0 and 1: it tells
// whether the two cores are close to each other at the moment. The other ranks
// return 0 at once.
double PingPongNs(MPI_Comm communicator) {
  constexpr int kRoundTrips = 200;
  const int me = rank();
  if (me > 1) return 0;
  char byte = 0;
  const double start = MPI_Wtime();
  for (int i = 0; i < kRoundTrips; ++i) {
    if (me == 0) MPI_Send(&byte, 1, MPI_CHAR, 1, 0, communicator);
    MPI_Recv(&byte, 1, MPI_CHAR, 1 - me, 0, communicator, MPI_STATUS_IGNORE);
    if (me == 1) MPI_Send(&byte, 1, MPI_CHAR, 0, 0, communicator);
  }
  return (MPI_Wtime() - start) * 1e9 / (2 * kRoundTrips);
}

std::string MpiLibrary() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  const std::string text(version, length);
  return text.substr(0, text.find_first_of(",\n"));
}

struct Flags {
  int rounds = 20;
  int warmup = 3;
  std::string json;
  std::vector<std::string> workloads;
  double idle_seconds = 0;
};

// Runs everything; every rank has the same result. Collective.
Measurements Measure(const Flags& flags, MPI_Comm communicator) {
  Measurements result{size(), flags.rounds, flags.warmup, MpiLibrary(), {}, {}};
  std::deque<Match> matches;
  for (const Workload& workload : StandardWorkloads()) {
    const bool wanted =
        flags.workloads.empty() ||
        std::find(flags.workloads.begin(), flags.workloads.end(),
                  workload.name) != flags.workloads.end();
    if (wanted) matches.emplace_back(workload, communicator);
  }
  for (Match& match : matches) {
    CheckSum(match.hvdlite, match.workload.name + " through hvdlite");
    CheckSum(match.mpi, match.workload.name + " through MPI");
  }
  for (int round = -flags.warmup; round < flags.rounds; ++round) {
    if (size() > 1) {
      MPI_Barrier(communicator);
      const double ns = PingPongNs(communicator);
      if (round >= 0) result.ping_pong_ns.push_back(ns);
    }
    for (Match& match : matches) {
      const int repeats = match.workload.repeats;
      double hvdlite_us = 0, mpi_us = 0;
      // Who goes first alternates.
      if (round % 2 == 0) {
        hvdlite_us = TimeRuns(match.hvdlite, repeats, communicator);
        mpi_us = TimeRuns(match.mpi, repeats, communicator);
      } else {
        mpi_us = TimeRuns(match.mpi, repeats, communicator);
        hvdlite_us = TimeRuns(match.hvdlite, repeats, communicator);
      }
      if (round < 0) continue;
      match.comparison.hvdlite_us.push_back(hvdlite_us);
      match.comparison.mpi_us.push_back(mpi_us);
    }
  }
  for (Match& match : matches) result.comparisons.push_back(match.comparison);
  return result;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Times hvdlite's allreduce against MPI_Allreduce on one flat buffer of "
      "as many bytes, in interleaved rounds. Run it under mpirun.",
      "hvdlite_bench");
  Flags flags;
  app.add_option("--rounds", flags.rounds, "Rounds that are measured")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--warmup", flags.warmup, "Rounds before, not measured")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--json", flags.json, "File for the results and all samples");
  app.add_option("--workload", flags.workloads,
                 "Only this workload; may be repeated")
      ->check(CLI::IsMember({"resnet50", "one_4_bytes", "1000_of_1_kb"}));
  app.add_option("--idle-seconds", flags.idle_seconds,
                 "Instead: the CPU time of a process that is initialised and "
                 "then idle for so long")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  if (flags.idle_seconds > 0) {
    MeasureIdle(flags.idle_seconds);
    return 0;
  }
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  if (level < MPI_THREAD_MULTIPLE) {
    std::cerr << "hvdlite_bench: this MPI has no MPI_THREAD_MULTIPLE, which a "
                 "program needs that calls MPI beside hvdlite\n";
    MPI_Finalize();
    return 1;
  }
  MPI_Comm communicator;
  MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
  init();
  const Measurements result = Measure(flags, communicator);
  if (rank() == 0) {
    PrintTable(result, std::cout);
    if (!flags.json.empty()) WriteJson(result, flags.json);
  }
  shutdown();
  MPI_Comm_free(&communicator);
  MPI_Finalize();
  return 0;
}

}  // namespace
}  // namespace hvdlite::tools

int main(int argc, char** argv) {
  try {
    return hvdlite::tools::Main(argc, argv);
  } catch (const c10::Error& error) {
    std::cerr << "hvdlite_bench: " << error.what_without_backtrace() << "\n";
  } catch (const std::exception& error) {
    std::cerr << "hvdlite_bench: " << error.what() << "\n";
  }
  // The other ranks wait for this one: end them, too.
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized != 0) MPI_Abort(MPI_COMM_WORLD, 1);
  return 1;
}
