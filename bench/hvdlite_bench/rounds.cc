#include "bench/hvdlite_bench/rounds.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <utility>

#include "bench/hvdlite_bench/mpi_world.h"
#include "support/statistics.h"

namespace hvdlite::tools {
namespace {

constexpr int kBatches = 9;
constexpr int kRoundTrips = 50;
// Keeps the two counters out of the same cache line and prefetch.
constexpr int kDistanceBytes = 1024;

void WaitFor(uint32_t* counter, uint32_t value) {
  const std::atomic_ref<uint32_t> shared(*counter);
  // If the two ranks share a core, only the kernel can run the other rank.
  for (int spins = 1; shared.load(std::memory_order_acquire) != value;
       ++spins) {
    if (spins % 2000 == 0) sched_yield();
  }
}

void Set(uint32_t* counter, uint32_t value) {
  std::atomic_ref<uint32_t>(*counter).store(value, std::memory_order_release);
}

// The order of `implementations` in a round: each is first in turn.
std::vector<size_t> OrderOfRound(size_t implementations, int round) {
  std::vector<size_t> order;
  for (size_t i = 0; i < implementations; ++i) {
    order.push_back((i + static_cast<size_t>(round)) % implementations);
  }
  return order;
}

}  // namespace

NearProbe::NearProbe(MPI_Comm communicator) : communicator_(communicator) {
  int size = 1;
  MPI_Comm_rank(communicator, &rank_);
  MPI_Comm_size(communicator, &size);
  if (size < 2) return;
  CheckMpi(MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, rank_,
                               MPI_INFO_NULL, &node_),
           "MPI_Comm_split_type");
  // Ranks are the keys, so rank 1 is second if it is on rank 0's node.
  int lowest = rank_;
  MPI_Bcast(&lowest, 1, MPI_INT, 0, node_);
  int place = 0;
  MPI_Comm_rank(node_, &place);
  int shared = lowest == 0 && place == 1;  // only rank 1's result is used
  MPI_Bcast(&shared, 1, MPI_INT, 1, communicator);
  shared_ = shared != 0;
  if (!shared_) return;
  void* own = nullptr;
  CheckMpi(MPI_Win_allocate_shared(place == 0 ? 2 * kDistanceBytes : 0, 1,
                                   MPI_INFO_NULL, node_, &own, &window_),
           "MPI_Win_allocate_shared");
  MPI_Aint bytes = 0;
  int unit = 1;
  char* base = nullptr;
  CheckMpi(MPI_Win_shared_query(window_, 0, &bytes, &unit, &base),
           "MPI_Win_shared_query");
  for (int i = 0; i < 2; ++i) {
    counters_[i] = reinterpret_cast<uint32_t*>(base + i * kDistanceBytes);
    if (place == 0) Set(counters_[i], 0);
  }
  MPI_Barrier(node_);
}

NearProbe::~NearProbe() {
  if (window_ != MPI_WIN_NULL) MPI_Win_free(&window_);
  if (node_ != MPI_COMM_NULL) MPI_Comm_free(&node_);
}

double NearProbe::Measure() {
  using Clock = std::chrono::steady_clock;
  if (!shared_) return std::numeric_limits<double>::quiet_NaN();
  MPI_Barrier(communicator_);
  double ns = 0;
  if (rank_ < 2) {
    std::vector<double> batches;
    for (int batch = 0; batch < kBatches; ++batch) {
      const Clock::time_point start = Clock::now();
      for (int i = 0; i < kRoundTrips; ++i) {
        ++count_;
        if (rank_ == 0) Set(counters_[0], count_);
        WaitFor(counters_[1 - rank_], count_);
        if (rank_ == 1) Set(counters_[1], count_);
      }
      batches.push_back(
          std::chrono::duration<double, std::nano>(Clock::now() - start)
              .count() /
          (2 * kRoundTrips));
    }
    ns = support::Summarise(batches).median;
  }
  MPI_Bcast(&ns, 1, MPI_DOUBLE, 0, communicator_);
  return ns;
}

void Plan::Add(std::string name, Role role, TakeSample sampler) {
  result.implementations.push_back({std::move(name), role, {}, ""});
  samplers.push_back(std::move(sampler));
}

void Plan::Skip(std::string name, Role role, std::string reason) {
  result.implementations.push_back(
      {std::move(name), role, {}, std::move(reason)});
  samplers.push_back(nullptr);
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
        plan.result.implementations[i].samples.push_back(std::move(samples[i]));
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
