// checks: training steps with and without the checks that are on by default.

#include <hvdlite/broadcast_state.h>
#include <hvdlite/config.h>
#include <hvdlite/distributed_optimizer.h>
#include <hvdlite/world.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/hvdlite_bench/mode.h"
#include "bench/hvdlite_bench/torch_world.h"
#include "support/flags.h"
#include "support/statistics.h"
#include "trainers/models/resnet.h"

namespace hvdlite::tools {
namespace {

// The first steps compare parameters three times; the timed steps follow them.
constexpr int kFirstSteps = 11;

// Parameters, a loss of them, and a loss that takes less time.
struct Training {
  torch::OrderedDict<std::string, torch::Tensor> named_parameters;
  std::function<torch::Tensor()> loss;
  std::function<torch::Tensor()> short_loss;
};

Training ResNet50(int64_t batch_size, int64_t pixels) {
  trainers::ResNet model(trainers::ResNetOptions{});
  const auto loss_of = [model](int64_t batch_size, int64_t pixels) {
    const torch::Tensor images = torch::randn({batch_size, 3, pixels, pixels});
    const torch::Tensor classes = torch::arange(batch_size);
    return [=]() mutable {
      return torch::nn::functional::cross_entropy(model->forward(images),
                                                  classes);
    };
  };
  return {model->named_parameters(), loss_of(batch_size, pixels),
          loss_of(/*batch_size=*/2, /*pixels=*/32)};
}

// A step that only makes, reduces and uses gradients.
Training ThousandOfOneKilobyte() {
  Training training;
  for (int i = 0; i < 1000; ++i) {
    training.named_parameters.insert(
        std::to_string(i), torch::zeros({256}, torch::requires_grad(true)));
  }
  training.loss = [parameters = training.named_parameters.values()] {
    return torch::cat(parameters).sum();
  };
  training.short_loss = training.loss;
  return training;
}

// The median time of `steps` steps, in a new world for each sample. All worlds
// train the same parameters, which change from sample to sample.
Plan ChecksPlan(std::string name, std::string description, Training training,
                int steps, MPI_Comm mpi) {
  Plan plan;
  plan.result.name = std::move(name);
  plan.result.description = std::move(description);
  for (const bool on : {true, false}) {
    plan.Add(on ? "checks" : "without", on ? Role::kHvdlite : Role::kMpi, [=] {
      Config config = Config::from_env();
      if (!on) config.check = config.nonfinite_gradients = "off";
      init(config);
      broadcast_parameters(training.named_parameters, /*root_rank=*/0);
      Sample sample;
      {
        DistributedOptimizer optimizer(std::make_unique<torch::optim::SGD>(
                                           training.named_parameters.values(),
                                           torch::optim::SGDOptions(1e-6)),
                                       training.named_parameters);
        const auto step = [&](const std::function<torch::Tensor()>& loss) {
          optimizer.zero_grad();
          loss().backward();
          optimizer.step();
        };
        for (int i = 0; i < kFirstSteps; ++i) step(training.short_loss);
        step(training.loss);
        for (int i = 0; i < steps; ++i) {
          sample.raw.push_back(TimeRuns([&] { step(training.loss); }, 1, mpi));
        }
        sample.value = support::Median(sample.raw);
      }
      shutdown();
      return sample;
    });
  }
  return plan;
}

int RunChecks(const std::vector<std::string>& workloads, int steps,
              int64_t pixels, const Run& run) {
  const MpiWorld mpi(run.argc, run.argv, MPI_THREAD_MULTIPLE);
  Results results = StartResults(run, mpi);
  for (const std::string& name : workloads) {
    const bool small = name == "1000_of_1_kb";
    results.cases.push_back(Measure(
        run, mpi,
        {ChecksPlan(name,
                    small
                        ? "1000 parameters of 1 KB"
                        : absl::StrCat("ResNet50, 8 images of ", pixels, " x ",
                                       pixels, " pixels per rank and step"),
                    small ? ThousandOfOneKilobyte()
                          : ResNet50(/*batch_size=*/8, pixels),
                    steps, mpi.communicator())})[0]);
  }
  return Report(run, results, mpi.rank());
}

}  // namespace

Mode ChecksMode() {
  return {"checks", "Training steps with and without the default checks",
          [](CLI::App& command) {
            const std::vector<std::string> all = {"resnet50", "1000_of_1_kb"};
            auto workloads = std::make_shared<std::vector<std::string>>(all);
            auto steps = std::make_shared<int>(5);
            auto pixels = std::make_shared<int64_t>(224);
            command
                .add_option("--workload", *workloads,
                            "Workload to run; may be repeated; default: all")
                ->check(CLI::IsMember(all));
            support::AddPositive(command, "--steps", *steps,
                                 "Steps per sample, whose median counts; "
                                 "they follow the steps that compare "
                                 "parameters");
            support::AddPositive(command, "--pixels", *pixels,
                                 "Width and height of ResNet50's images");
            return [=](const Run& run) {
              return RunChecks(*workloads, *steps, *pixels, run);
            };
          }};
}

}  // namespace hvdlite::tools
