// Trains a small network on MNIST: synchronous SGD in its four steps, marked
// (1) to (4).
//
//   mpirun -np 2 train_mnist --data-dir DIR
//   mpirun -np 2 train_mnist --data-dir DIR --manual
//
// With --manual the gradients are added up by bare calls of allreduce; without,
// DistributedOptimizer does so while backward() runs. Both give the gradient of
// the whole batch, as one process would compute it.
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "trainers/agreement.h"
#include "trainers/data/digit_dataset.h"
#include "trainers/data/mnist.h"
#include "trainers/data/sampler.h"
#include "trainers/evaluation.h"
#include "trainers/input_error.h"
#include "trainers/interval_meter.h"
#include "trainers/mnist_flags.h"
#include "trainers/models/digit_net.h"
#include "trainers/models/dropout.h"
#include "trainers/program.h"
#include "trainers/progress_line.h"
#include "trainers/replicas.h"
#include "trainers/report.h"
#include "trainers/training_state.h"

namespace hvdlite::trainers {
namespace {

constexpr char kModelName[] = "the MNIST network";
constexpr int64_t kEvaluationBatch = 500;

struct Digits {
  std::unique_ptr<DigitDataset> train;
  std::unique_ptr<DigitDataset> test;
};

Digits LoadDigits(const MnistFlags& flags) {
  Digits digits;
  OnAllRanks("read MNIST", [&] {
    digits.train = std::make_unique<DigitDataset>(
        ReadMnist(flags.data_dir, MnistSplit::kTrain));
    digits.test = std::make_unique<DigitDataset>(
        ReadMnist(flags.data_dir, MnistSplit::kTest));
  });
  RequireEqualOnAllRanks("numbers of images in '" + flags.data_dir + "'",
                         {digits.train->size(), digits.test->size()});
  return digits;
}

// A rank's share of a batch.
int64_t ImagesPerRank(const MnistFlags& flags) {
  if (flags.batch_size % size() != 0) {
    throw InputError("--batch-size " + std::to_string(flags.batch_size) +
                     " cannot be shared equally by " + std::to_string(size()) +
                     " ranks; use a multiple of their number");
  }
  return flags.batch_size / size();
}

// The mean over the whole batch is the sum of all ranks' shares of it.
torch::Tensor ShareOfLoss(DigitNet& model, const Batch& batch,
                          int64_t batch_size) {
  const torch::Tensor sum = torch::nn::functional::nll_loss(
      model(batch.images), batch.labels,
      torch::nn::functional::NLLLossFuncOptions().reduction(torch::kSum));
  return sum / batch_size;
}

// (4) by hand: every gradient becomes the sum over all ranks.
void AddUpGradients(DigitNet& model) {
  std::vector<Work> pending;
  for (const auto& parameter : model->named_parameters()) {
    pending.push_back(allreduce_async_(
        parameter.value().mutable_grad(),
        AllreduceOptions().op(ReduceOp::Sum).name(parameter.key())));
  }
  for (const Work& work : pending) work.wait();
}

// Where the loss of an epoch is this rank's share of it.
void PrintEpoch(const MnistFlags& flags, int64_t epoch, double loss) {
  if (flags.quiet) return;
  std::printf("Rank %d, epoch %lld: %.6f\n", rank(),
              static_cast<long long>(epoch), loss * size());
  std::fflush(stdout);
}

Evaluation EvaluateAndPrint(const MnistFlags& flags, DigitNet& model,
                            Dataset& test) {
  model->eval();
  const Evaluation evaluation =
      Evaluate([&](const torch::Tensor& images) { return model(images); }, test,
               kEvaluationBatch);
  model->train();
  if (rank() == 0 && !flags.quiet) {
    std::printf("Rank 0, test loss %.4f, accuracy %.4f\n", evaluation.loss,
                evaluation.accuracy);
    std::fflush(stdout);
  }
  return evaluation;
}

void SaveReport(const MnistFlags& flags, const IntervalMeter& meter,
                int64_t steps, const std::vector<Evaluation>& evaluations,
                const DigitNet& model) {
  const Report report = {
      .program = "train_mnist",
      .settings = ToJson(flags),
      .items = "images",
      .world_size = size(),
      .steps = steps,
      .seconds = meter.seconds(),
      .items_per_second = SumOverRanks(meter.items_per_second()),
      .losses = SumOverRanks(meter.losses()),
      .evaluation = evaluations.empty() ? std::nullopt
                                        : std::optional(evaluations.back()),
      .accuracies = AccuraciesOf(evaluations),
      .parameter_digests = GatherParameterDigests(*model)};
  SaveReports(report, flags.report, flags.report_html);
}

// (1) init() has been called: this process is one rank of size().
void Train(const MnistFlags& flags) {
  if (flags.threads > 0) at::set_num_threads(flags.threads);
  CheckOutputFiles({flags.checkpoint, flags.report, flags.report_html});
  const int64_t images_per_rank = ImagesPerRank(flags);
  const Digits digits = LoadDigits(flags);

  // (2) The seed is the same everywhere, and so every rank knows its part of
  // the images without asking.
  TrainingSampler sampler({.dataset_size = digits.train->size(),
                           .batch_size = images_per_rank,
                           .rank = rank(),
                           .world_size = size(),
                           .seed = flags.seed});
  const int64_t steps_per_epoch = sampler.steps_per_epoch();

  torch::manual_seed(flags.seed + static_cast<uint64_t>(rank()));
  DigitNet model;
  SetDropout(*model, flags.dropout);
  auto sgd = std::make_unique<torch::optim::SGD>(
      model->parameters(),
      torch::optim::SGDOptions(flags.lr).momentum(flags.momentum));
  Progress progress;
  if (!flags.resume.empty()) {
    progress = Resume(flags.resume, kModelName, steps_per_epoch, *model, *sgd);
  }
  // (3) All ranks start from rank 0's parameters and momentum.
  broadcast_parameters(model, /*root_rank=*/0);
  broadcast_optimizer_state(*sgd, /*root_rank=*/0);
  torch::optim::Optimizer& local_optimizer = *sgd;
  std::optional<DistributedOptimizer> optimizer;
  if (!flags.manual) {
    optimizer.emplace(std::move(sgd), model->named_parameters(),
                      DistributedOptimizerOptions().op(ReduceOp::Sum));
  }

  IntervalMeter meter;
  std::vector<Evaluation> evaluations;
  const int64_t first_step = progress.epoch * steps_per_epoch + progress.step;
  const int64_t all_steps = flags.epochs * steps_per_epoch;
  const int64_t last_step =
      flags.max_steps > 0 ? std::min(flags.max_steps, all_steps) : all_steps;
  ProgressLine line({.shown = rank() == 0 && !flags.quiet && ShowsProgress(),
                     .first_step = first_step,
                     .last_step = last_step});
  if (!flags.quiet) TellIfDone(first_step, last_step);
  int64_t global_step = first_step;
  while (global_step < last_step) {
    const int64_t epoch = global_step / steps_per_epoch;
    // And every epoch, which should change nothing: the ranks' parameters are
    // equal bit by bit.
    broadcast_parameters(model, /*root_rank=*/0);
    meter.Start();
    for (int64_t step = global_step % steps_per_epoch;
         step < steps_per_epoch && global_step < last_step;
         ++step, ++global_step) {
      SeedStep(flags.seed, global_step);
      const Batch batch = digits.train->Load(sampler.Batch(epoch, step), epoch);
      local_optimizer.zero_grad();
      const torch::Tensor loss = ShareOfLoss(model, batch, flags.batch_size);
      loss.backward();
      // (4) The gradients are added up before every update.
      if (optimizer) {
        optimizer->step();
      } else {
        AddUpGradients(model);
        local_optimizer.step();
      }
      meter.AddStep(images_per_rank, loss.item<double>());
      line.Show(global_step + 1, loss.item<double>() * size());
    }
    meter.Finish();
    line.Clear();
    PrintEpoch(flags, epoch, meter.losses().back());
    evaluations.push_back(EvaluateAndPrint(flags, model, *digits.test));
    if (!flags.checkpoint.empty()) {
      Save(flags.checkpoint, kModelName, *model, local_optimizer,
           {.epoch = global_step / steps_per_epoch,
            .step = global_step % steps_per_epoch,
            .steps_per_epoch = steps_per_epoch});
    }
  }
  SaveReport(flags, meter, global_step - first_step, evaluations, model);
}

}  // namespace
}  // namespace hvdlite::trainers

int main(int argc, char** argv) {
  using namespace hvdlite::trainers;  // NOLINT: this program is one of them
  return RunProgram("train_mnist", ParseMnistFlags(argc, argv), Train);
}
