// gradients: the tensors of a training step, with hvdlite's public API and with
// MPI only.

#include <ATen/ATen.h>
#include <hvdlite/distributed_optimizer.h>
#include <hvdlite/ops.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/hvdlite_bench/gradients.h"
#include "bench/hvdlite_bench/mpi_world.h"
#include "bench/hvdlite_bench/torch_world.h"
#include "support/flags.h"

namespace hvdlite::tools {
namespace {

// The data of all implementations for one workload.
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
  absl::Span<float> whole;  // the part that the tensors fill
  absl::Span<float> chunk;
};

void SumEach(const Tensors& all) {
  std::vector<Work> works;
  works.reserve(all.tensors.size());
  for (size_t i = 0; i < all.tensors.size(); ++i) {
    works.push_back(allreduce_async_(
        all.tensors[i],
        AllreduceOptions().name(all.names[i]).op(hvdlite::ReduceOp::Sum)));
  }
  for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
}

void SumGroup(const Tensors& all) {
  grouped_allreduce_(
      all.tensors,
      AllreduceOptions().name(all.group_name).op(hvdlite::ReduceOp::Sum));
}

// Complete gradients, as after backward(), and an optimizer that averages them.
struct Averaged {
  Averaged(const Workload& workload, bool views) {
    for (const int64_t elements : workload.elements) {
      parameters.push_back(
          torch::zeros({elements}, torch::requires_grad(true)));
      parameters.back().mutable_grad() = torch::zeros({elements});
    }
    optimizer = OptimizerOf(
        parameters,
        DistributedOptimizerOptions()
            .name(absl::StrCat(workload.name, views ? ".views" : ".optimizer"))
            .gradient_as_fusion_view(views));
    optimizer->synchronize();  // moves the gradients to their places
  }

  std::vector<at::Tensor> parameters;
  std::optional<DistributedOptimizer> optimizer;
};

void FillAll(const std::vector<absl::Span<float>>& spans,
             const TestValues& values) {
  int64_t begin = 0;
  for (const absl::Span<float> span : spans) {
    values.Fill(span, begin);
    begin += static_cast<int64_t>(span.size());
  }
}

// Sums the workload's tensors in place. hvdlite submits each tensor and waits
// for the last one first; or submits them as a group; or synchronizes them as
// gradients of an optimizer, with and without views. MPI copies them into one
// buffer and back; or does so in chunks of 1 MB; or reduces one after the other
// in place. The reference is MPI on one buffer without copies. Every sample
// begins with an untimed run whose result is checked.
//
// Needs hvdlite::init(). `world` and `values` must outlive the plan.
Plan GradientsPlan(const Workload& workload, const MpiWorld& world,
                   const TestValues& values) {
  Plan plan;
  plan.result.name = workload.name;
  plan.result.description = workload.description;
  plan.result.elements = workload.elements;
  plan.result.repeats = workload.repeats;
  const auto all = std::make_shared<Tensors>(workload);
  const MPI_Comm mpi = world.communicator();
  const int world_size = world.size();
  const auto add = [&](std::string name, Role role, std::function<void()> run) {
    const bool flat = role == Role::kReference;
    plan.Add(std::move(name), role, [=, &values, repeats = workload.repeats] {
      const std::vector<absl::Span<float>> spans =
          flat ? std::vector<absl::Span<float>>{all->whole} : all->spans;
      FillAll(spans, values);
      run();
      Sample sample;
      sample.wrong = SumOverRanks(CountAllWrong(spans, values), mpi);
      // Zeros stay zeros in every sum.
      for (const absl::Span<float> span : spans) {
        std::fill(span.begin(), span.end(), 0.0f);
      }
      sample.value = TimeRuns(run, repeats, mpi);
      return sample;
    });
  };
  add("hvdlite_async", Role::kHvdlite, [all] { SumEach(*all); });
  add("hvdlite_grouped", Role::kHvdlite, [all] { SumGroup(*all); });
  for (const bool views : {true, false}) {
    const std::string name = views ? "hvdlite_views" : "hvdlite_optimizer";
    std::shared_ptr<Averaged> averaged;
    try {
      averaged = std::make_shared<Averaged>(workload, views);
    } catch (const c10::Error& error) {
      plan.Skip(name, Role::kHvdlite, error.what_without_backtrace());
      continue;
    }
    plan.Add(name, Role::kHvdlite, [=, &values, repeats = workload.repeats] {
      const std::vector<absl::Span<float>> spans =
          GradientSpans(averaged->parameters);
      FillAll(spans, values);
      averaged->optimizer->synchronize();
      const auto ranks = static_cast<float>(world_size);
      for (const absl::Span<float> span : spans) {
        // The sums are whole numbers.
        for (float& value : span) value = std::round(value * ranks);
      }
      Sample sample;
      sample.wrong = SumOverRanks(CountAllWrong(spans, values), mpi);
      for (const absl::Span<float> span : spans) {
        std::fill(span.begin(), span.end(), 0.0f);
      }
      sample.value =
          TimeRuns([&] { averaged->optimizer->synchronize(); }, repeats, mpi);
      return sample;
    });
  }
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

struct GradientsFlags {
  std::vector<std::string> workloads = {"resnet50", "transformer",
                                        "1000_of_1_kb", "one_4_bytes"};
  std::vector<std::string> implementations;  // empty: all
  bool steps = true;
};

void KeepOnly(const std::vector<std::string>& implementations, Plan& plan) {
  for (size_t i = plan.samplers.size(); i-- > 0;) {
    const std::string& name = plan.result.implementations[i].name;
    if (std::count(implementations.begin(), implementations.end(), name) != 0)
      continue;
    plan.result.implementations.erase(plan.result.implementations.begin() + i);
    plan.samplers.erase(plan.samplers.begin() + i);
  }
}

int RunGradients(const GradientsFlags& flags, const Run& run) {
  const TorchWorld world(run);
  Results results = StartResults(run, world);
  const TestValues values(world.mpi().rank(), world.mpi().size());
  const auto measure = [&](Plan plan) {
    if (!flags.implementations.empty()) KeepOnly(flags.implementations, plan);
    results.cases.push_back(Measure(run, world.mpi(), {std::move(plan)})[0]);
  };
  // Measure one workload after the other, to save memory.
  for (const std::string& name : flags.workloads) {
    const Workload workload = WorkloadNamed(name);
    measure(GradientsPlan(workload, world.mpi(), values));
    if (flags.steps) measure(GradientStepsPlan(workload, world.mpi(), values));
  }
  return Report(run, results, world.mpi().rank());
}

}  // namespace

std::vector<absl::Span<float>> SpansOf(const std::vector<at::Tensor>& tensors) {
  std::vector<absl::Span<float>> spans;
  for (const at::Tensor& tensor : tensors) {
    spans.emplace_back(tensor.data_ptr<float>(), tensor.numel());
  }
  return spans;
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

Mode GradientsMode() {
  return {
      "gradients",
      "The tensors of a training step through hvdlite's public API, compared "
      "with MPI only",
      [](CLI::App& command) {
        auto flags = std::make_shared<GradientsFlags>();
        std::vector<std::string> names;
        for (const Workload& workload : StandardWorkloads()) {
          names.push_back(workload.name);
        }
        command
            .add_option(
                "--workload", flags->workloads,
                "Workload to run; may be repeated; default: all but tiny")
            ->check(CLI::IsMember(names));
        command.add_option("--implementation", flags->implementations,
                           "Implementation to run, for profiling; may be "
                           "repeated");
        support::MarkFormerSpelling(
            command.add_option("--contender", flags->implementations, ""),
            "--implementation");
        command.add_flag("!--no-steps", flags->steps,
                         "Do not measure whole steps (zero_grad, backward, "
                         "synchronize)");
        return [flags](const Run& run) { return RunGradients(*flags, run); };
      }};
}

}  // namespace hvdlite::tools
