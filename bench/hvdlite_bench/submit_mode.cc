#include <ATen/ATen.h>
#include <hvdlite/ops.h>

#include <chrono>
#include <memory>

#include "bench/hvdlite_bench/mpi_world.h"
#include "bench/hvdlite_bench/torch_world.h"
#include "support/flags.h"

namespace hvdlite::tools {
namespace {

constexpr int64_t kElements = 256;  // 1 KB

// Returns the nanoseconds per tensor that `submit` takes on the slowest rank.
// `submit` returns a function, which is called afterwards to wait.
Sample TimeSubmission(const std::function<std::function<void()>()>& submit,
                      int tensors, MPI_Comm mpi) {
  using Clock = std::chrono::steady_clock;
  CheckMpi(MPI_Barrier(mpi), "MPI_Barrier");
  const Clock::time_point start = Clock::now();
  const std::function<void()> wait = submit();
  Sample sample;
  sample.value =
      std::chrono::duration<double, std::nano>(Clock::now() - start).count() /
      tensors;
  wait();
  CheckMpi(
      MPI_Allreduce(MPI_IN_PLACE, &sample.value, 1, MPI_DOUBLE, MPI_MAX, mpi),
      "MPI_Allreduce");
  return sample;
}

Plan SubmitPlan(int count, MPI_Comm mpi) {
  std::vector<at::Tensor> tensors;
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    tensors.push_back(at::zeros({kElements}, at::kFloat));
    names.push_back("submit." + std::to_string(i));
  }
  Plan plan;
  plan.result.name = "submit";
  plan.result.description =
      "submission of tensors of 1 KB without waiting, per tensor";
  plan.result.unit = "ns";
  plan.result.elements.assign(count, kElements);
  plan.Add("hvdlite_async", Role::kHvdlite, [=] {
    const auto submit = [&]() -> std::function<void()> {
      auto works = std::make_shared<std::vector<Work>>();
      works->reserve(tensors.size());
      for (size_t i = 0; i < tensors.size(); ++i) {
        works->push_back(allreduce_async_(
            tensors[i],
            AllreduceOptions().name(names[i]).op(hvdlite::ReduceOp::Sum)));
      }
      return [works] {
        for (auto work = works->rbegin(); work != works->rend(); ++work) {
          work->wait();
        }
      };
    };
    return TimeSubmission(submit, count, mpi);
  });
  plan.Add("hvdlite_grouped", Role::kHvdlite, [=] {
    const auto submit = [&]() -> std::function<void()> {
      const GroupWork work = grouped_allreduce_async_(
          tensors,
          AllreduceOptions().name("submit").op(hvdlite::ReduceOp::Sum));
      return [work] { work.wait(); };
    };
    return TimeSubmission(submit, count, mpi);
  });
  return plan;
}

}  // namespace

Mode SubmitMode() {
  return {"submit", "The cost of submitting a tensor for the computing thread",
          [](CLI::App& command) {
            auto tensors = std::make_shared<int>(1000);
            support::AddPositive(command, "--tensors", *tensors,
                                 "Number of tensors in a row");
            return [tensors](const Run& run) {
              const TorchWorld world(run);
              Results results = StartResults(run, world);
              results.cases =
                  Measure(run, world.mpi(),
                          {SubmitPlan(*tensors, world.mpi().communicator())});
              return Report(run, results, world.mpi().rank());
            };
          }};
}

}  // namespace hvdlite::tools
