// Trains a small network on MNIST: synchronous SGD in its four steps, marked
// (1) to (4).
//
//   mpirun -np 2 train_mnist --data-dir DIR
//   mpirun -np 2 train_mnist --data-dir DIR --manual
//
// With --manual the program sums the gradients with calls of allreduce.
// Otherwise DistributedOptimizer sums them while backward() runs. Both give the
// gradient of the whole batch, as one process would compute it.
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "support/command_line.h"
#include "support/flags.h"
#include "support/progress_line.h"
#include "trainers/data/formats/mnist.h"
#include "trainers/data/sets/dataset.h"
#include "trainers/evaluation.h"
#include "trainers/models/image_networks.h"
#include "trainers/models/layers.h"
#include "trainers/program.h"
#include "trainers/report.h"
#include "trainers/run_flags.h"
#include "trainers/training.h"

namespace hvdlite::trainers {
namespace {

// train_mnist --help explains the flags.
struct MnistFlags {
  std::string data_dir;
  BatchSize batch_size = {.count = 128, .of = BatchSize::Of::kAllRanks};
  double lr = 0.01;
  double momentum = 0.5;
  double dropout = 0.5;
  bool manual = false;
  bool sum_gradients = false;
  bool debug_print = false;
  bool quiet = false;
  RunFlags run = {.epochs = 10, .seed = 1234};
};

void to_json(nlohmann::json& result, const MnistFlags& flags) {
  result = {{"data_dir", flags.data_dir},
            {"lr", flags.lr},
            {"momentum", flags.momentum},
            {"dropout", flags.dropout},
            {"manual", flags.manual},
            {"sum_gradients", flags.sum_gradients},
            {"debug_print", flags.debug_print},
            {"quiet", flags.quiet}};
}

constexpr char kMnistHelp[] =
    "Trains a small network on MNIST, data-parallel, in the four steps of\n"
    "synchronous SGD: start the world, divide the images among the ranks,\n"
    "make the parameters equal, sum the gradients.\n"
    "\n"
    "  generate_mnist --output DIR        # or the real files\n"
    "  mpirun -np 2 train_mnist --data-dir DIR\n"
    "\n"
    "With any number of ranks, a step processes --global-batch-size images\n"
    "and uses the gradient that one process would compute.\n";

void AddFlags(CLI::App& app, MnistFlags& flags) {
  app.add_option("--data-dir", flags.data_dir,
                 "Directory with MNIST's four files (train-images-idx3-ubyte "
                 "and others), gzipped or not")
      ->required();
  AddBatchSizeFlags(app, flags.batch_size, "Images", "Training");
  app.add_option("--lr", flags.lr, "Learning rate")->check(support::Positive());
  app.add_option("--momentum", flags.momentum, "Momentum of SGD")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--dropout", flags.dropout, "Dropout probability")
      ->check(CLI::Range(0.0, 0.99));
  app.add_flag("--manual", flags.manual,
               "Sum the gradients with calls of allreduce, without "
               "DistributedOptimizer");
  app.add_flag("--sum-gradients", flags.sum_gradients,
               "Sum the ranks' mean gradients without dividing by the number "
               "of ranks, as the published example does: with N ranks, steps "
               "are N times as long");
  app.add_flag("--debug-print", flags.debug_print,
               "Print each rank's own loss, and begin lines of results with "
               "[rank/ranks]; default: rank 0 prints the loss over all ranks");
  app.add_flag("--quiet", flags.quiet, "Print only errors");
  AddRunFlags(app, flags.run);
}

support::CommandLine<MnistFlags> ParseMnistFlags(int argc,
                                                 const char* const* argv) {
  return support::ParseFlags<MnistFlags>("train_mnist", kMnistHelp, argc, argv,
                                         AddFlags, [](const MnistFlags&) {});
}

// Formats the flags as a JSON object.
std::string ToJson(const MnistFlags& flags) {
  using nlohmann::json;
  return SettingsText(
      json(flags).dump(-1, ' ', false, json::error_handler_t::replace),
      flags.batch_size, flags.run);
}

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

// The parts of a step are separate spans in the timeline.
Batch LoadBatch(Dataset& dataset, const std::vector<size_t>& images,
                int64_t epoch) {
  const TraceSpan span("LOAD_BATCH");
  Batch batch =
      dataset.Load(std::vector<int64_t>(images.begin(), images.end()), epoch);
  add_step_work(batch.images.numel());
  return batch;
}

// This rank's share of the mean loss of the batch, which is the sum of all
// shares.
torch::Tensor ShareOfLoss(DigitNet& model, const Batch& batch,
                          int64_t batch_size) {
  const TraceSpan span("FORWARD");
  const torch::Tensor sum = torch::nn::functional::nll_loss(
      model(batch.images), batch.labels,
      torch::nn::functional::NLLLossFuncOptions().reduction(torch::kSum));
  return sum / batch_size;
}

// (4) by hand: replaces every gradient by its sum over all ranks.
void AddUpGradients(DigitNet& model) {
  std::vector<Work> pending;
  for (const auto& parameter : model->named_parameters()) {
    torch::Tensor& gradient = parameter.value().mutable_grad();
    // This rank had no image in this step.
    if (!gradient.defined()) gradient = torch::zeros_like(parameter.value());
    pending.push_back(allreduce_async_(
        gradient, AllreduceOptions().op(ReduceOp::Sum).name(parameter.key())));
  }
  for (const Work& work : pending) work.wait();
}

void Print(const MnistFlags& flags, const std::string& line) {
  if (flags.quiet || (rank() > 0 && !flags.debug_print)) return;
  if (rank() > 0) std::printf("%s", support::LineStart().c_str());
  if (flags.debug_print) std::printf("[%d/%d] ", rank(), size());
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// `share` is this rank's share of the mean loss. Collective.
void PrintEpoch(const MnistFlags& flags, int64_t epoch, double share) {
  const double loss =
      flags.debug_print ? share * size() : SumOverRanks({share}).front();
  Print(flags, absl::StrFormat(
                   "Epoch %d Loss %.6f Global batch size %d on %d ranks", epoch,
                   loss, flags.batch_size.OfAllRanks(size()), size()));
}

support::ProgressStyle ProgressStyleOf(const MnistFlags& flags) {
  return flags.quiet ? support::ProgressStyle::kNone : ProgressStyleOfRank();
}

Evaluation EvaluateAndPrint(const MnistFlags& flags, DigitNet& model,
                            Dataset& test) {
  model->eval();
  const Evaluation evaluation =
      Evaluate([&](const torch::Tensor& images) { return model(images); }, test,
               kEvaluationBatch, ProgressStyleOf(flags));
  model->train();
  if (rank() == 0) {
    Print(flags, absl::StrFormat("Test loss %.4f accuracy %.4f",
                                 evaluation.loss, evaluation.accuracy));
  }
  return evaluation;
}

// Loading the data reads all of it.
void CheckData(const MnistFlags& flags) {
  const Digits digits = LoadDigits(flags);
  Print(flags, absl::StrFormat("data: MNIST; %d training and %d test images",
                               digits.train->size(), digits.test->size()));
  CheckImages(*digits.train, *digits.test, flags.data_dir,
              ProgressStyleOf(flags));
}

// (1) RunProgram() has called init(): this process is one of size() ranks.
void Train(const MnistFlags& flags) {
  if (flags.run.check_data) return CheckData(flags);
  BeginRun(flags.run);
  const Digits digits = LoadDigits(flags);

  // (2) All ranks use the same seed, so that every rank knows its share of the
  // images without communication.
  DistributedSampler sampler(digits.train->size(),
                             flags.batch_size.OfAllRanks(size()),
                             flags.run.seed, BatchOf::AllRanks);

  torch::manual_seed(flags.run.seed + static_cast<uint64_t>(rank()));
  DigitNet model;
  SetDropout(*model, flags.dropout);
  auto sgd = std::make_unique<torch::optim::SGD>(
      model->parameters(),
      torch::optim::SGDOptions(flags.lr).momentum(flags.momentum));
  torch::optim::Optimizer& local_optimizer = *sgd;
  Checkpoints checkpoints(flags.run, kModelName, *model, local_optimizer,
                          sampler);
  // (3) All ranks start with rank 0's parameters and momentum, either new or
  // from the checkpoint that the training continues.
  StepRange steps = checkpoints.Begin();
  std::optional<DistributedOptimizer> optimizer;
  if (!flags.manual) {
    optimizer.emplace(std::move(sgd), model->named_parameters(),
                      DistributedOptimizerOptions().op(ReduceOp::Sum));
  }

  IntervalMeter meter;
  std::vector<Evaluation> evaluations;
  support::ProgressLine line = StepProgress(steps, ProgressStyleOf(flags));
  if (!flags.quiet) TellIfResumed(steps);
  bool stopped = false;
  for (int64_t step = steps.first; step < steps.last && !stopped;) {
    const int64_t epoch = steps.EpochOf(step);
    // And after every epoch, which should change nothing: the ranks' parameters
    // are bitwise equal.
    broadcast_parameters(model, /*root_rank=*/0);
    sampler.set_epoch(epoch);
    meter.Start();
    line.Resume();
    for (const int64_t end = steps.EndOfEpoch(step); step < end && !stopped;
         ++step) {
      const std::vector<size_t> images = *sampler.next();
      // The dropout of an image does not depend on its rank.
      SetDropoutSamples(*model, {.seed = flags.run.seed,
                                 .step = step,
                                 .samples = {images.begin(), images.end()}});
      local_optimizer.zero_grad();
      double loss = 0;
      if (!images.empty()) {
        const Batch batch = LoadBatch(*digits.train, images, epoch);
        const torch::Tensor share = ShareOfLoss(model, batch, sampler.taken());
        Backward(flags.sum_gradients ? share * size() : share);
        loss = share.item<double>();
      }
      // (4) step() waits for the summed gradients before the update.
      if (optimizer) {
        optimizer->step();
      } else {
        AddUpGradients(model);
        local_optimizer.step();
      }
      meter.AddStep(static_cast<int64_t>(images.size()), loss);
      line.Show(step + 1, steps.last, loss * size());
      stopped = checkpoints.AfterStep(step + 1);
      LeaveOut(checkpoints.TakeSavingSeconds(), meter, line);
    }
    meter.Finish();
    line.Clear();
    line.Pause();
    if (stopped) {
      steps.last = step;
      break;
    }
    PrintEpoch(flags, epoch, meter.losses().back());
    evaluations.push_back(EvaluateAndPrint(flags, model, *digits.test));
    checkpoints.AfterEpoch(step);
  }
  checkpoints.Finish();
  SaveReport(MakeReport({.program = "train_mnist",
                         .settings = ToJson(flags),
                         .items = "images",
                         .data = RecipesOf(*digits.train, digits.test.get())},
                        steps, meter, SumOverRanks(meter.losses()), evaluations,
                        *model),
             flags.run);
}

}  // namespace
}  // namespace hvdlite::trainers

int main(int argc, char** argv) {
  using namespace hvdlite::trainers;  // NOLINT: this program is one of them
  return RunProgram("train_mnist", ParseMnistFlags(argc, argv), Train);
}
