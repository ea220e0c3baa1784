#include <torch/autograd.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/hvdlite_bench/gradients.h"
#include "bench/hvdlite_bench/mpi_world.h"

namespace hvdlite::tools {
namespace {

// The values of new gradients in backward(): test values, or zeros.
struct GradientSource {
  const TestValues& values;
  bool zeros = true;
};

// A function without computation. Its backward creates the parameter's gradient
// in new memory, as a layer's backward would.
class MakeGradient : public torch::autograd::Function<MakeGradient> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& parameter, int64_t begin,
                            const GradientSource* source) {
    context->saved_data["elements"] = parameter.numel();
    context->saved_data["begin"] = begin;
    context->saved_data["source"] = reinterpret_cast<int64_t>(source);
    return at::zeros({});
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      const torch::autograd::variable_list& /*gradients*/) {
    const auto* source = reinterpret_cast<const GradientSource*>(
        context->saved_data["source"].toInt());
    const int64_t elements = context->saved_data["elements"].toInt();
    at::Tensor gradient;
    if (source->zeros) {
      gradient = at::zeros({elements}, at::kFloat);
    } else {
      gradient = at::empty({elements}, at::kFloat);
      source->values.Fill(
          {gradient.data_ptr<float>(), static_cast<size_t>(elements)},
          context->saved_data["begin"].toInt());
    }
    return {gradient, {}, {}};
  }
};

// Parameters with the shapes of a workload.
class Model {
 public:
  Model(const Workload& workload, const TestValues& values) : source_{values} {
    int64_t begin = 0;
    for (const int64_t elements : workload.elements) {
      parameters_.push_back(
          torch::zeros({elements}, torch::requires_grad(true)));
      begins_.push_back(begin);
      begin += elements;
    }
  }

  const std::vector<torch::Tensor>& parameters() const { return parameters_; }
  void set_zeros(bool zeros) { source_.zeros = zeros; }

  // Gradients appear in the order of the workload, since autograd starts with
  // the last computation.
  void Backward() const {
    torch::autograd::variable_list outputs;
    for (size_t i = parameters_.size(); i-- > 0;) {
      outputs.push_back(
          MakeGradient::apply(parameters_[i], begins_[i], &source_));
    }
    torch::autograd::backward(outputs, {});
  }

  void DropGradients() {
    for (torch::Tensor& parameter : parameters_) {
      parameter.mutable_grad().reset();
    }
  }

 private:
  GradientSource source_;
  std::vector<torch::Tensor> parameters_;
  std::vector<int64_t> begins_;
};

// A model, its optimizer and MPI's buffer.
struct Stepper {
  Stepper(const Workload& workload, const TestValues& values)
      : model(workload, values) {}

  Model model;
  std::optional<DistributedOptimizer> optimizer;
  at::Tensor buffer;  // for MPI
};

void StepWithHvdlite(Stepper& stepper) {
  stepper.optimizer->zero_grad();
  stepper.model.Backward();
  stepper.optimizer->synchronize();
}

void StepLocally(Stepper& stepper) {
  stepper.model.DropGradients();
  stepper.model.Backward();
}

void StepWithMpi(Stepper& stepper, int64_t buffer_elements, MPI_Comm mpi) {
  StepLocally(stepper);
  MpiAllreducePacked(GradientSpans(stepper.model.parameters()),
                     SpansOf({stepper.buffer})[0].subspan(0, buffer_elements),
                     mpi);
}

}  // namespace

DistributedOptimizer OptimizerOf(const std::vector<at::Tensor>& parameters,
                                 const DistributedOptimizerOptions& options) {
  torch::OrderedDict<std::string, torch::Tensor> named;
  for (const at::Tensor& parameter : parameters) {
    named.insert(std::to_string(named.size()), parameter);
  }
  return DistributedOptimizer(std::make_unique<torch::optim::SGD>(
                                  parameters, torch::optim::SGDOptions(0.1)),
                              named, options);
}

std::vector<absl::Span<float>> GradientSpans(
    const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) {
    gradients.push_back(parameter.grad());
  }
  return SpansOf(gradients);
}

Plan GradientStepsPlan(const Workload& workload, const MpiWorld& world,
                       const TestValues& values) {
  Plan plan;
  plan.result.name = workload.name + "_step";
  plan.result.description =
      workload.description + ", computed by backward in a whole step";
  plan.result.elements = workload.elements;
  plan.result.repeats = workload.repeats;
  const int64_t all = plan.result.bytes() / int64_t{sizeof(float)};
  const MPI_Comm mpi = world.communicator();

  const auto add = [&](std::string name, Role role,
                       std::shared_ptr<Stepper> stepper,
                       std::function<void(Stepper&)> step) {
    plan.Add(std::move(name), role, [=, &values, repeats = workload.repeats] {
      Sample sample;
      if (role != Role::kReference) {
        stepper->model.set_zeros(false);
        step(*stepper);
        sample.wrong = SumOverRanks(
            CountAllWrong(GradientSpans(stepper->model.parameters()), values),
            mpi);
      }
      stepper->model.set_zeros(true);
      step(*stepper);  // the memory is then as in later steps
      sample.value = TimeRuns([&] { step(*stepper); }, repeats, mpi);
      return sample;
    });
  };

  for (const bool views : {true, false}) {
    const std::string name = views ? "hvdlite_views" : "hvdlite_optimizer";
    auto stepper = std::make_shared<Stepper>(workload, values);
    try {
      stepper->optimizer = OptimizerOf(stepper->model.parameters(),
                                       DistributedOptimizerOptions()
                                           .name(plan.result.name + "." + name)
                                           .op(hvdlite::ReduceOp::Sum)
                                           .gradient_as_fusion_view(views));
    } catch (const c10::Error& error) {
      plan.Skip(name, Role::kHvdlite, error.what_without_backtrace());
      continue;
    }
    add(name, Role::kHvdlite, stepper, StepWithHvdlite);
  }
  const auto local = std::make_shared<Stepper>(workload, values);
  local->buffer = at::zeros({std::max(all, kMpiChunkElements)}, at::kFloat);
  add("mpi_flat", Role::kMpi, local,
      [=](Stepper& stepper) { StepWithMpi(stepper, all, mpi); });
  add("mpi_1_mb", Role::kMpi, local,
      [=](Stepper& stepper) { StepWithMpi(stepper, kMpiChunkElements, mpi); });
  add("mpi_each", Role::kMpi, local, [=](Stepper& stepper) {
    StepLocally(stepper);
    MpiAllreduceEach(GradientSpans(stepper.model.parameters()), mpi);
  });
  add("local", Role::kReference, local, StepLocally);
  return plan;
}

}  // namespace hvdlite::tools
