#include "tools/hvdlite_bench/gradients.h"

#include <ATen/ATen.h>
#include <hvdlite/ops.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tools/hvdlite_bench/mpi_ways.h"

namespace hvdlite::tools {
namespace {

constexpr int64_t kMpiChunkElements = (int64_t{1} << 20) / sizeof(float);

// What the contenders of one workload share.
struct Tensors {
  explicit Tensors(const Workload& workload) : group_name(workload.name) {
    int64_t all = 0;
    for (const int64_t elements : workload.elements) {
      names.push_back(workload.name + "." + std::to_string(tensors.size()));
      tensors.push_back(at::zeros({elements}, at::kFloat));
      all += elements;
    }
    spans = SpansOf(tensors);
    buffer = at::zeros({std::max(all, kMpiChunkElements)}, at::kFloat);
    whole = SpansOf({buffer})[0].subspan(0, all);
    chunk = SpansOf({buffer})[0].subspan(0, kMpiChunkElements);
  }

  std::vector<at::Tensor> tensors;
  std::vector<std::string> names;
  std::string group_name;
  std::vector<absl::Span<float>> spans;  // of the tensors
  at::Tensor buffer;
  absl::Span<float> whole;  // as much of it as the tensors have together
  absl::Span<float> chunk;
};

void SumEach(const Tensors& all) {
  std::vector<Work> works;
  works.reserve(all.tensors.size());
  for (size_t i = 0; i < all.tensors.size(); ++i) {
    works.push_back(allreduce_async_(
        all.tensors[i],
        AllreduceOptions().name(all.names[i]).op(ReduceOp::Sum)));
  }
  for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
}

void SumGroup(const Tensors& all) {
  grouped_allreduce_(all.tensors,
                     AllreduceOptions().name(all.group_name).op(ReduceOp::Sum));
}

}  // namespace

std::vector<absl::Span<float>> SpansOf(const std::vector<at::Tensor>& tensors) {
  std::vector<absl::Span<float>> spans;
  for (const at::Tensor& tensor : tensors) {
    spans.emplace_back(tensor.data_ptr<float>(), tensor.numel());
  }
  return spans;
}

void FillAll(const std::vector<absl::Span<float>>& spans,
             const TestValues& values) {
  int64_t begin = 0;
  for (const absl::Span<float> span : spans) {
    values.Fill(span, begin);
    begin += static_cast<int64_t>(span.size());
  }
}

int64_t CountAllWrong(const std::vector<absl::Span<float>>& spans,
                      const TestValues& values) {
  int64_t begin = 0;
  int64_t wrong = 0;
  for (const absl::Span<float> span : spans) {
    wrong += values.CountWrong(span, begin);
    begin += static_cast<int64_t>(span.size());
  }
  return wrong;
}

Plan GradientsPlan(const Workload& workload, const MpiWorld& world,
                   const TestValues& values) {
  Plan plan;
  plan.result.name = workload.name;
  plan.result.description = workload.description;
  plan.result.elements = workload.elements;
  plan.result.repeats = workload.repeats;
  const auto all = std::make_shared<Tensors>(workload);
  const MPI_Comm mpi = world.communicator();
  const auto add = [&](std::string name, Role role, std::function<void()> run) {
    const bool flat = role == Role::kReference;
    plan.Add(std::move(name), role, [=, &values, repeats = workload.repeats] {
      const std::vector<absl::Span<float>> spans =
          flat ? std::vector<absl::Span<float>>{all->whole} : all->spans;
      FillAll(spans, values);
      run();
      Sample sample;
      sample.wrong = SumOverRanks(CountAllWrong(spans, values), mpi);
      // Zeros stay zeros, however often they are summed.
      for (const absl::Span<float> span : spans) {
        std::fill(span.begin(), span.end(), 0.0f);
      }
      sample.value = TimeRuns(run, repeats, mpi);
      return sample;
    });
  };
  add("hvdlite_async", Role::kHvdlite, [all] { SumEach(*all); });
  add("hvdlite_grouped", Role::kHvdlite, [all] { SumGroup(*all); });
  add("mpi_flat", Role::kMpi,
      [all, mpi] { MpiAllreducePacked(all->spans, all->whole, mpi); });
  add("mpi_1_mb", Role::kMpi,
      [all, mpi] { MpiAllreducePacked(all->spans, all->chunk, mpi); });
  add("mpi_each", Role::kMpi,
      [all, mpi] { MpiAllreduceEach(all->spans, mpi); });
  add("mpi_flat_no_copy", Role::kReference,
      [all, mpi] { MpiAllreduce(all->whole, mpi); });
  return plan;
}

}  // namespace hvdlite::tools
