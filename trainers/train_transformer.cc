// Trains a transformer, data-parallel, on the secondary structure of proteins
// (PSSP), or as a language model on the bytes of a text.
//
//   mpirun -np 2 train_transformer --data-dir DIR
//   mpirun -np 2 train_transformer --task lm --text FILE --layers 6
//
// The data-parallel parts are marked (1) to (3) in Train(). A batch is divided
// among the ranks, and losses and gradients are sums over its tokens. So N
// ranks compute what one process would, for sequences of any lengths.
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "support/input_error.h"
#include "support/progress_line.h"
#include "trainers/data/sets/sampler.h"
#include "trainers/models/layers.h"
#include "trainers/operator_profile.h"
#include "trainers/program.h"
#include "trainers/report.h"
#include "trainers/sequence_task.h"
#include "trainers/step.h"
#include "trainers/training.h"
#include "trainers/transformer_flags.h"

namespace hvdlite::trainers {
namespace {

// Sums over the tokens of an epoch.
struct Totals {
  double loss = 0;
  double correct = 0;
  double tokens = 0;

  void Add(const SequenceLoss& batch) {
    loss += batch.sum.item<double>();
    correct += static_cast<double>(batch.correct);
    tokens += static_cast<double>(batch.tokens);
  }
  double mean_loss() const { return loss / tokens; }
  double accuracy() const { return correct / tokens; }
};

// The sums over all ranks.
Totals OfAllRanks(const Totals& own) {
  const std::vector<double> sums =
      SumOverRanks({own.loss, own.correct, own.tokens});
  return {sums[0], sums[1], sums[2]};
}

// A digest of the lengths of all training sequences and their order.
int64_t WeightedLengths(const SequenceTask& task) {
  int64_t sum = 0;
  for (int64_t i = 0; i < task.size(Split::kTrain); ++i) {
    sum += (i + 1) * task.LengthOf(Split::kTrain, i);
  }
  return sum;
}

std::unique_ptr<SequenceTask> LoadTask(const TransformerFlags& flags) {
  // Every rank draws its own weights here; rank 0's replace them later.
  torch::manual_seed(flags.run.seed + static_cast<uint64_t>(rank()));
  std::unique_ptr<SequenceTask> task;
  OnAllRanks("read the data",
             [&] { task = MakeTask(flags, ProgressStyleOfRank()); });
  RequireEqualOnAllRanks("sequences",
                         {task->size(Split::kTrain), task->size(Split::kTest),
                          WeightedLengths(*task)});
  const int64_t batch_size = flags.batch_size.OfAllRanks(size());
  if (batch_size < size()) {
    throw support::InputError(
        "--global-batch-size " + std::to_string(batch_size) +
        " is less than the number of ranks, " + std::to_string(size()) +
        "; give each rank a sequence at least");
  }
  if (rank() == 0) {
    std::printf("%s: %lld sequences to train with, %lld to test with, of %s\n",
                task->ModelName().c_str(),
                static_cast<long long>(task->size(Split::kTrain)),
                static_cast<long long>(task->size(Split::kTest)),
                task->Source().c_str());
    std::fflush(stdout);
  }
  return task;
}

// This rank's share of a step's batch, whose order is random.
std::vector<int64_t> ShareOfBatch(const SequenceTask& task,
                                  const std::vector<int64_t>& batch,
                                  const std::string& deal) {
  std::vector<int64_t> lengths(batch.size(), 0);
  if (deal == "length") {
    std::transform(batch.begin(), batch.end(), lengths.begin(),
                   [&](auto i) { return task.LengthOf(Split::kTrain, i); });
  }
  return DealByLength(batch, lengths, rank(), size());
}

void SetLearningRate(torch::optim::Optimizer& optimizer, double lr) {
  for (torch::optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    group.options().set_lr(lr);
  }
}

SequenceLoss Forward(SequenceTask& task, const std::vector<int64_t>& sequences,
                     double smoothing) {
  const TraceSpan span("FORWARD");
  return task.Predict(Split::kTrain, sequences, smoothing);
}

// Every sequence of the test set once; sequences of similar length share a
// batch.
Totals Test(SequenceTask& task, int64_t batch_size) {
  const TraceSpan span("EVALUATE");
  const torch::NoGradGuard no_grad;
  std::vector<int64_t> by_length(static_cast<size_t>(task.size(Split::kTest)));
  std::iota(by_length.begin(), by_length.end(), 0);
  std::stable_sort(by_length.begin(), by_length.end(), [&](auto a, auto b) {
    return task.LengthOf(Split::kTest, a) < task.LengthOf(Split::kTest, b);
  });
  const auto batches = EvaluationBatches(
      {.dataset_size = task.size(Split::kTest),
       .batch_size = std::max<int64_t>(batch_size / size(), 1),
       .rank = rank(),
       .world_size = size()});
  task.model().eval();
  Totals totals;
  support::ProgressLine line({.item = "evaluating: batch",
                              .items = "batches",
                              .style = ProgressStyleOfRank()});
  for (size_t i = 0; i < batches.size(); ++i) {
    std::vector<int64_t> indices = batches[i];
    for (int64_t& index : indices) {
      index = by_length[static_cast<size_t>(index)];
    }
    totals.Add(task.Predict(Split::kTest, indices, /*smoothing=*/0));
    line.Show(static_cast<int64_t>(i + 1),
              static_cast<int64_t>(batches.size()));
  }
  task.model().train();
  return OfAllRanks(totals);
}

// `seconds` is the training time without checkpoints and the test, if any.
void PrintEpoch(const TransformerFlags& flags, int64_t epoch,
                const Totals& trained, const std::optional<Totals>& tested,
                double seconds) {
  if (rank() != 0) return;
  std::printf("[%03lld/%03lld]", static_cast<long long>(epoch + 1),
              static_cast<long long>(flags.run.epochs));
  std::printf(" train_loss %6.3f", trained.mean_loss());
  if (tested) std::printf(" test_loss: %6.3f", tested->mean_loss());
  std::printf(" train_acc %.3f", trained.accuracy());
  if (tested) std::printf(" test_acc %.3f", tested->accuracy());
  std::printf(" time %.1f sec\n", seconds);
  std::fflush(stdout);
}

std::string LossName(const char* set, int64_t epoch) {
  return std::string(set) + " loss of epoch " + std::to_string(epoch + 1);
}

// Loading the data reads all of it.
void CheckData(const TransformerFlags& flags) {
  LoadTask(flags);
  if (rank() == 0) std::printf("all data can be read\n");
}

void Train(const TransformerFlags& flags) {
  if (flags.run.check_data) return CheckData(flags);
  BeginRun(flags.run);
  WarnOfSlowBfloat16(flags.bf16);
  const std::unique_ptr<SequenceTask> task = LoadTask(flags);
  torch::nn::Module& model = task->model();
  const int64_t batch_size = flags.batch_size.OfAllRanks(size());
  DistributedSampler sampler(task->size(Split::kTrain), batch_size,
                             flags.run.seed, BatchOf::AllRanks);
  const InverseSquareRootSchedule schedule = {
      .factor = flags.lr_factor,
      .d_model = flags.d_model,
      .warmup_steps = flags.warmup_steps};

  auto adam = std::make_unique<torch::optim::Adam>(
      model.parameters(),
      torch::optim::AdamOptions().betas({0.9, 0.98}).eps(1e-9));
  torch::optim::Optimizer& local_optimizer = *adam;
  Checkpoints checkpoints(flags.run, task->ModelName(), model, local_optimizer,
                          sampler);

  // (1) All ranks start with rank 0's weights and moments, either new or from
  // the checkpoint that the training continues.
  StepRange steps = checkpoints.Begin();

  // (2) Gradients are summed over the ranks while backward() runs.
  DistributedOptimizer optimizer(
      std::move(adam), model.named_parameters(),
      DistributedOptimizerOptions().op(ReduceOp::Sum));

  model.train();
  IntervalMeter meter;
  std::vector<double> losses;
  std::vector<Evaluation> evaluations;
  std::optional<OperatorProfile> profile;
  if (flags.profile) profile.emplace();
  support::ProgressLine line = StepProgress(steps, ProgressStyleOfRank());
  TellIfResumed(steps);
  bool stopped = false;
  for (int64_t step = steps.first; step < steps.last && !stopped;) {
    const int64_t epoch = steps.EpochOf(step);
    const double seconds_before = meter.seconds();
    Totals trained;
    sampler.set_epoch(epoch);
    meter.Start();
    line.Resume();
    for (const int64_t end = steps.EndOfEpoch(step); step < end && !stopped;
         ++step) {
      SetLearningRate(local_optimizer, schedule.At(step));
      // The sampler gives the whole batch; ShareOfBatch() selects this rank's
      // part.
      const std::vector<size_t> batch = *sampler.next(/*rank=*/0, /*size=*/1);
      const std::vector<int64_t> share =
          ShareOfBatch(*task, {batch.begin(), batch.end()}, flags.deal);
      SetDropoutSamples(
          model, {.seed = flags.run.seed, .step = step, .samples = share});
      optimizer.zero_grad();
      if (!share.empty()) {
        const SequenceLoss loss = Forward(*task, share, flags.smoothing);
        Backward(loss.sum);
        trained.Add(loss);
      }
      // (3) step() waits for the summed gradients, then updates the weights.
      optimizer.step();

      meter.AddStep(static_cast<int64_t>(share.size()), 0);
      line.Show(step + 1, steps.last, trained.mean_loss());
      stopped = checkpoints.AfterStep(step + 1);
      LeaveOut(checkpoints.TakeSavingSeconds(), meter, line);
    }
    meter.Finish();
    const double seconds = meter.seconds() - seconds_before;
    line.Clear();
    line.Pause();
    trained = OfAllRanks(trained);
    losses.push_back(trained.mean_loss());
    RequireFinite(losses.back(), LossName("training", epoch));
    if (stopped) {
      steps.last = step;
      break;
    }
    std::optional<Totals> tested;
    if (!flags.no_test) {
      tested = Test(*task, batch_size);
      RequireFinite(tested->mean_loss(), LossName("test", epoch));
      evaluations.push_back(
          {tested->mean_loss(), tested->accuracy(), task->size(Split::kTest)});
    }
    PrintEpoch(flags, epoch, trained, tested, seconds);
    checkpoints.AfterEpoch(step);
  }
  if (profile && rank() == 0) {
    // All operators, since their order depends on the number of threads.
    std::printf("%s", FormatOperators(profile->Hottest(SIZE_MAX)).c_str());
  }
  checkpoints.Finish();
  SaveReport(MakeReport({.program = "train_transformer",
                         .settings = ToJson(flags),
                         .items = "sequences"},
                        steps, meter, losses, evaluations, model),
             flags.run);
}

}  // namespace
}  // namespace hvdlite::trainers

int main(int argc, char** argv) {
  using namespace hvdlite::trainers;  // NOLINT: this program is one of them
  return RunProgram("train_transformer", ParseTransformerFlags(argc, argv),
                    Train);
}
