// checks: training steps with the checks that are on by default, and without.

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

#include "tools/hvdlite_bench/mode.h"
#include "tools/hvdlite_bench/rounds.h"
#include "tools/hvdlite_bench/torch_world.h"
#include "tools/support/flags.h"
#include "trainers/models/resnet.h"

namespace hvdlite::tools {
namespace {

// In which parameters are compared three times, as in no later steps.
constexpr int kFirstSteps = 11;

// Parameters and a loss of them.
struct Training {
  torch::OrderedDict<std::string, torch::Tensor> named_parameters;
  std::function<torch::Tensor()> loss;
};

Training ResNet50(int64_t batch_size, int64_t pixels) {
  trainers::ResNet model(trainers::ResNetOptions{});
  const torch::Tensor images = torch::randn({batch_size, 3, pixels, pixels});
  const torch::Tensor classes = torch::arange(batch_size);
  return {model->named_parameters(), [=]() mutable {
            return torch::nn::functional::cross_entropy(model->forward(images),
                                                        classes);
          }};
}

// A step without computation: whose gradients are made, reduced and used.
Training ThousandOfOneKilobyte() {
  Training training;
  for (int i = 0; i < 1000; ++i) {
    training.named_parameters.insert(
        std::to_string(i), torch::zeros({256}, torch::requires_grad(true)));
  }
  training.loss = [parameters = training.named_parameters.values()] {
    return torch::cat(parameters).sum();
  };
  return training;
}

// The time of a step, the mean of `steps`, in a world of its own. All of them
// train the same parameters, which differ from one sample to the next only.
Plan ChecksPlan(std::string name, std::string description, Training training,
                int steps, MPI_Comm mpi) {
  Plan plan;
  plan.result.name = std::move(name);
  plan.result.description = std::move(description);
  plan.result.repeats = steps;
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
        const auto step = [&] {
          optimizer.zero_grad();
          training.loss().backward();
          optimizer.step();
        };
        for (int i = 0; i < kFirstSteps; ++i) step();
        sample.value = TimeRuns(step, steps, mpi);
      }
      shutdown();
      return sample;
    });
  }
  return plan;
}

int RunChecks(const std::vector<std::string>& workloads, int steps,
              const Run& run) {
  const MpiWorld mpi(run.argc, run.argv, MPI_THREAD_MULTIPLE);
  Results results = StartResults(run, mpi);
  NearProbe probe(mpi.communicator());
  for (const std::string& name : workloads) {
    std::vector<Plan> plans;
    if (name == "resnet50") {
      plans.push_back(ChecksPlan(
          name, "ResNet50, 8 images of 64 x 64 pixels a rank and step",
          ResNet50(/*batch_size=*/8, /*pixels=*/64), steps,
          mpi.communicator()));
    } else {
      plans.push_back(ChecksPlan(name, "1000 parameters of 1 KB",
                                 ThousandOfOneKilobyte(), steps,
                                 mpi.communicator()));
    }
    RunRounds(plans, run.rounds, run.warmup, probe);
    results.cases.push_back(std::move(plans[0].result));
  }
  return Report(run, results, mpi.rank());
}

}  // namespace

Mode ChecksMode() {
  return {"checks", "Training steps with the default checks, and without",
          [](CLI::App& command) {
            const std::vector<std::string> all = {"resnet50", "1000_of_1_kb"};
            auto workloads = std::make_shared<std::vector<std::string>>(all);
            auto steps = std::make_shared<int>(100);
            command
                .add_option("--workload", *workloads,
                            "Only this workload; may be repeated")
                ->check(CLI::IsMember(all));
            support::AddPositive(command, "--steps", *steps,
                                 "Steps of a sample; of 100 one compares "
                                 "parameters");
            return [=](const Run& run) {
              return RunChecks(*workloads, *steps, run);
            };
          }};
}

}  // namespace hvdlite::tools
