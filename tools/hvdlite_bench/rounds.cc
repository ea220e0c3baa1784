#include "tools/hvdlite_bench/rounds.h"

#include <chrono>
#include <utility>

#include "tools/hvdlite_bench/mpi_ways.h"

namespace hvdlite::tools {

void Plan::Add(std::string name, Role role, TakeSample sampler) {
  result.contenders.push_back({std::move(name), role, {}, ""});
  samplers.push_back(std::move(sampler));
}

void Plan::Skip(std::string name, Role role, std::string reason) {
  result.contenders.push_back({std::move(name), role, {}, std::move(reason)});
  samplers.push_back(nullptr);
}

std::vector<size_t> OrderOfRound(size_t contenders, int round) {
  std::vector<size_t> order;
  for (size_t i = 0; i < contenders; ++i) {
    order.push_back((i + static_cast<size_t>(round)) % contenders);
  }
  return order;
}

void RunRounds(std::vector<Plan>& plans, int rounds, int warmup,
               NearProbe& probe) {
  for (int round = 0; round < warmup + rounds; ++round) {
    for (Plan& plan : plans) {
      const double before_ns = probe.Measure();
      std::vector<Sample> samples(plan.samplers.size());
      for (const size_t i : OrderOfRound(plan.samplers.size(), round)) {
        if (plan.samplers[i]) samples[i] = plan.samplers[i]();
      }
      const double after_ns = probe.Measure();
      if (round < warmup) continue;
      plan.result.before_ns.push_back(before_ns);
      plan.result.after_ns.push_back(after_ns);
      for (size_t i = 0; i < samples.size(); ++i) {
        if (!plan.samplers[i]) continue;
        plan.result.contenders[i].samples.push_back(std::move(samples[i]));
      }
    }
  }
}

double TimeRuns(const std::function<void()>& run, int repeats,
                MPI_Comm communicator) {
  using Clock = std::chrono::steady_clock;
  CheckMpi(MPI_Barrier(communicator), "MPI_Barrier");
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < repeats; ++i) run();
  double us =
      std::chrono::duration<double, std::micro>(Clock::now() - start).count() /
      repeats;
  CheckMpi(
      MPI_Allreduce(MPI_IN_PLACE, &us, 1, MPI_DOUBLE, MPI_MAX, communicator),
      "MPI_Allreduce");
  return us;
}

int64_t SumOverRanks(int64_t count, MPI_Comm communicator) {
  CheckMpi(MPI_Allreduce(MPI_IN_PLACE, &count, 1, MPI_INT64_T, MPI_SUM,
                         communicator),
           "MPI_Allreduce");
  return count;
}

}  // namespace hvdlite::tools
