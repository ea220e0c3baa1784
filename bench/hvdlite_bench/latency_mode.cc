// latency: one 4-byte tensor.

#include <ATen/ATen.h>
#include <hvdlite/ops.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/hvdlite_bench/gate.h"
#include "bench/hvdlite_bench/mpi_world.h"
#include "bench/hvdlite_bench/torch_world.h"
#include "support/flags.h"
#include "support/statistics.h"

namespace hvdlite::tools {
namespace {

constexpr std::chrono::milliseconds kAsleep(1);

double NowUs() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Arithmetic that takes a few microseconds per call.
class Computation {
 public:
  void RunPiece() {
    for (int pass = 0; pass < 8; ++pass) {
      for (float& value : values_) value = 0.5f * value + 1.0f;
    }
  }
  void RunFor(std::chrono::microseconds duration) {
    const double end = NowUs() + static_cast<double>(duration.count());
    while (NowUs() < end) RunPiece();
  }

 private:
  std::vector<float> values_ = std::vector<float>(2048, 1.0f);
};

// Takes a sample: runs `prepare` and then `operation`, so many times.
// `operation` reduces 1.0f and returns the sum.
TakeSample Sampler(const MpiWorld& world, int operations,
                   std::function<void()> prepare,
                   std::function<float()> operation) {
  return [=, &world] {
    std::vector<double> start(operations);
    std::vector<double> end(operations);
    Sample sample;
    CheckMpi(MPI_Barrier(world.communicator()), "MPI_Barrier");
    for (int i = 0; i < operations; ++i) {
      prepare();
      start[i] = NowUs();
      const float sum = operation();
      end[i] = NowUs();
      if (sum != static_cast<float>(world.size())) ++sample.wrong;
    }
    sample.wrong = SumOverRanks(sample.wrong, world.communicator());
    const auto gather = [&](const std::vector<double>& own) {
      std::vector<double> all(own.size() * world.size());
      CheckMpi(MPI_Allgather(own.data(), operations, MPI_DOUBLE, all.data(),
                             operations, MPI_DOUBLE, world.communicator()),
               "MPI_Allgather");
      return all;
    };
    sample.raw = OperationTimes(gather(start), gather(end), world.size(),
                                world.one_host());
    sample.value = support::Quantile(sample.raw, 0.5);
    return sample;
  };
}

float SumByHvdlite(const at::Tensor& tensor, const std::string& name) {
  tensor.data_ptr<float>()[0] = 1;
  allreduce_(tensor, AllreduceOptions().name(name).op(hvdlite::ReduceOp::Sum));
  return tensor.data_ptr<float>()[0];
}

float SumByMpi(MPI_Comm mpi) {
  float value = 1;
  MpiAllreduce(absl::MakeSpan(&value, 1), mpi);
  return value;
}

float SumByHvdliteWhileComputing(const at::Tensor& tensor,
                                 Computation& computation) {
  tensor.data_ptr<float>()[0] = 1;
  const Work work = allreduce_async_(
      tensor,
      AllreduceOptions().name("latency.computing").op(hvdlite::ReduceOp::Sum));
  do {
    computation.RunPiece();
  } while (!work.is_completed());
  work.wait();
  return tensor.data_ptr<float>()[0];
}

float SumByMpiWhileComputing(MPI_Comm mpi, Computation& computation) {
  float value = 1;
  MPI_Request request;
  CheckMpi(MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_FLOAT, MPI_SUM, mpi,
                          &request),
           "MPI_Iallreduce");
  int done = 0;
  do {
    computation.RunPiece();
    CheckMpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  } while (done == 0);
  return value;
}

Plan PlanNamed(const std::string& name, const std::string& description) {
  Plan plan;
  plan.result.name = name;
  plan.result.description = description;
  plan.result.elements = {1};
  return plan;
}

// Compares each of these with MPI only:
//   together       all ranks wait, one allreduce after the other
//   after_pause    each rank sleeps 1 ms before each allreduce
//   barrier, gate  all ranks wait, no data
//   computing      each rank submits and continues to compute; it checks for
//                  the result between small pieces of work
// A sample is the median of `operations` in a row. If all ranks are on one
// host, an operation lasts from the last rank's submission to the last rank's
// result. Otherwise it lasts from a rank's submission to its result, on the
// slowest rank.
//
// Needs hvdlite::init(). `world` must outlive the plans.
std::vector<Plan> LatencyPlans(const MpiWorld& world, int operations) {
  const MPI_Comm mpi = world.communicator();
  const at::Tensor tensor = at::zeros({1}, at::kFloat);
  const int fewer = std::max(1, operations / 5);
  std::vector<Plan> plans;

  const auto add = [&](const std::string& name, int count,
                       std::function<void()> prepare) {
    plans.back().Add("hvdlite", Role::kHvdlite,
                     Sampler(world, count, prepare, [=] {
                       return SumByHvdlite(tensor, "latency." + name);
                     }));
    plans.back().Add("mpi", Role::kMpi, Sampler(world, count, prepare, [=] {
                       return SumByMpi(mpi);
                     }));
  };
  plans.push_back(PlanNamed("together", "4 bytes, all ranks wait"));
  add("together", operations, [] {});
  plans.push_back(PlanNamed("after_pause", "4 bytes, after 1 ms of sleep"));
  add("after_pause", fewer, [] { std::this_thread::sleep_for(kAsleep); });

  const auto met = static_cast<float>(world.size());
  const auto add_barrier = [&](const std::string& name,
                               const std::string& description,
                               std::function<void()> meet) {
    plans.push_back(PlanNamed(name, description));
    const auto add_way = [&](const std::string& implementation, Role role,
                             std::function<void()> way) {
      plans.back().Add(implementation, role,
                       Sampler(
                           world, operations, [] {},
                           [=] {
                             way();
                             return met;
                           }));
    };
    add_way("hvdlite", Role::kHvdlite, std::move(meet));
    add_way("mpi", Role::kMpi,
            [=] { CheckMpi(MPI_Barrier(mpi), "MPI_Barrier"); });
  };
  add_barrier("barrier", "a barrier: negotiation and its gate",
              [] { barrier(); });
  const auto gate = std::make_shared<GateAlone>();
  add_barrier("gate", "the gate alone", [gate] { gate->Meet(); });

  plans.push_back(PlanNamed("computing", "4 bytes, while computing"));
  const auto computation = std::make_shared<Computation>();
  const auto compute = [computation] { computation->RunFor(kAsleep); };
  plans.back().Add("hvdlite", Role::kHvdlite,
                   Sampler(world, fewer, compute, [=] {
                     return SumByHvdliteWhileComputing(tensor, *computation);
                   }));
  plans.back().Add("mpi", Role::kMpi, Sampler(world, fewer, compute, [=] {
                     return SumByMpiWhileComputing(mpi, *computation);
                   }));
  return plans;
}

}  // namespace

Mode LatencyMode() {
  return {
      "latency",
      "One 4-byte tensor: when all ranks wait, after sleep, and while ranks "
      "compute",
      [](CLI::App& command) {
        auto operations = std::make_shared<int>(500);
        support::AddPositive(command, "--operations", *operations,
                             "Operations per round and implementation; a "
                             "fifth of them after a pause and while "
                             "computing");
        return [operations](const Run& run) {
          const TorchWorld world(run);
          Results results = StartResults(run, world);
          for (const Case& median : Measure(
                   run, world.mpi(), LatencyPlans(world.mpi(), *operations))) {
            results.cases.push_back(median);
            results.cases.push_back(Percentile99(median));
          }
          return Report(run, results, world.mpi().rank());
        };
      }};
}

}  // namespace hvdlite::tools
