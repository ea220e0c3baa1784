// Trains any of the synthetic models on one random batch, data-parallel, to
// measure speed:
//
//   mpirun -np 2 train_synthetic --model resnet50
//   mpirun -np 2 train_synthetic --model mlp --repeat 100 --report DIR
//   train_synthetic --model resnet18 --instances 4
//
// The data-parallel parts are marked (1) to (3). train_synthetic --help lists
// models and flags.
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/commit_store.h"
#include "base/environment.h"
#include "base/keyed_random.h"
#include "support/input_error.h"
#include "support/output_file.h"
#include "support/progress_line.h"
#include "trainers/benchmark/benchmark_report.h"
#include "trainers/program.h"
#include "trainers/report.h"
#include "trainers/step.h"
#include "trainers/synthetic/instances.h"
#include "trainers/synthetic/synthetic_flags.h"
#include "trainers/synthetic/synthetic_models.h"
#include "trainers/training.h"

namespace hvdlite::trainers {
namespace {

constexpr char kVersion[] = "1";  // increase it when the measured work changes

// Returns an empty path if there is no report.
std::filesystem::path ReportFile(const SyntheticFlags& flags) {
  const std::filesystem::path path = flags.report;
  if (path.empty() || path.extension() == ".json") return path;
  return path / (flags.benchmark() + ".json");
}

// Throws InputError on all ranks if rank 0 cannot write to --report; creates
// its directory. So such errors appear before the measurement. Collective.
void CheckReport(const SyntheticFlags& flags) {
  const std::filesystem::path file = ReportFile(flags);
  OnAllRanks("", [&] {
    if (rank() != 0) return;
    std::error_code ignored;  // RequireOutputs() reports the error
    if (!file.empty()) {
      std::filesystem::create_directories(file.parent_path(), ignored);
    }
    // The report is appended, so the file may exist.
    support::RequireOutputs(
        {TraceOutput(), {"--report", file, /*may_exist=*/true}},
        /*overwrite=*/false);
  });
}

// Appends the report to --report on rank 0, if given. `first_non_finite_batch`
// is the earliest of any rank. Throws InputError on all ranks if the file
// cannot be written. Collective.
void SaveReport(const SyntheticFlags& flags, const BenchmarkRecorder& recorder,
                const std::optional<int64_t>& first_non_finite_batch) {
  BenchmarkReport report = ReportOf(recorder);
  report.name = flags.benchmark();
  report.arch = flags.task.model;
  report.version = kVersion;
  report.instance = flags.instance;
  report.devices = size();
  report.host = support::ThisMachine();
  report.arguments = ArgumentsOf(flags);
  report.first_non_finite_batch = first_non_finite_batch;
  const std::filesystem::path file = ReportFile(flags);
  OnAllRanks("save the report", [&] {
    if (rank() != 0 || file.empty()) return;
    // RunBenchmark() handles the status itself, from first_non_finite_batch.
    static_cast<void>(WriteBenchmarkReport(file, report));
  });
}

constexpr char kProgram[] = "train_synthetic";

void Print(const std::string& line) {
  if (rank() != 0) return;
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

struct Training {
  SyntheticTask task;
  // Empty if only losses, or only this rank's gradients, are computed.
  std::optional<DistributedOptimizer> optimizer;
};

SyntheticTask MakeTask(const SyntheticFlags& flags) {
  // Every rank draws its own weights here; rank 0's replace them later.
  torch::manual_seed(flags.task.seed + static_cast<uint64_t>(rank()));
  SyntheticTaskOptions options = flags.task;
  options.batch_size = flags.batch_size.PerRank(size());
  options.seed =
      base::KeyedRandom{flags.task.seed, static_cast<uint64_t>(rank())}.Next();
  return MakeSyntheticTask(options);
}

std::unique_ptr<torch::optim::Optimizer> MakeOptimizer(
    const SyntheticFlags& flags, std::vector<torch::Tensor> parameters) {
  if (flags.optimizer == "adam") {
    return std::make_unique<torch::optim::Adam>(
        std::move(parameters), torch::optim::AdamOptions(flags.lr));
  }
  torch::optim::SGDOptions options(flags.lr);
  if (flags.optimizer == "momentum") options.momentum(0.9).weight_decay(5e-4);
  return std::make_unique<torch::optim::SGD>(std::move(parameters), options);
}

Training MakeTraining(const SyntheticFlags& flags) {
  Training training;
  OnAllRanks("create the model and its batch",
             [&] { training.task = MakeTask(flags); });
  if (training.task.model == nullptr) return training;
  torch::nn::Module& model = *training.task.model;
  model.train(flags.trains());
  // (1) All ranks start with rank 0's weights.
  broadcast_parameters(model, /*root_rank=*/0);
  if (!flags.trains()) return training;
  // (2) Gradients are combined over the ranks while backward() runs.
  training.optimizer.emplace(
      MakeOptimizer(flags, model.parameters()), model.named_parameters(),
      DistributedOptimizerOptions()
          .op(flags.use_adasum ? ReduceOp::Adasum : ReduceOp::Average)
          .compression(flags.fp16_allreduce ? Compression::FP16
                                            : Compression::None)
          .gradient_as_fusion_view(flags.views));
  return training;
}

torch::Tensor Forward(const SyntheticFlags& flags, const SyntheticTask& task) {
  const TraceSpan span("FORWARD");
  const Bfloat16Autocast autocast(flags.bf16);
  add_step_work(flags.batch_size.PerRank(size()));
  return task.loss();
}

// Returns this rank's loss.
double Update(const SyntheticFlags& flags, Training& training) {
  DistributedOptimizer& optimizer = *training.optimizer;
  optimizer.zero_grad();
  const torch::Tensor loss = Forward(flags, training.task);
  Backward(loss);
  if (flags.clip_norm > 0) {
    optimizer.synchronize();  // clip the norm of the combined gradients
    torch::nn::utils::clip_grad_norm_(training.task.model->parameters(),
                                      flags.clip_norm);
  }
  // (3) step() waits for the combined gradients, then updates the weights.
  optimizer.step();
  return loss.item<double>();
}

double ComputeLoss(const SyntheticFlags& flags, const Training& training) {
  const torch::NoGradGuard no_grad;
  return Forward(flags, training.task).item<double>();
}

// Returns this rank's loss. Adds to existing gradients, so that only the two
// passes are timed.
double ComputeGradients(const SyntheticFlags& flags, const Training& training) {
  const torch::Tensor loss = Forward(flags, training.task);
  Backward(loss);
  return loss.item<double>();
}

// Returns this rank's loss.
double ComputeOnce(const SyntheticFlags& flags, Training& training) {
  if (training.optimizer) return Update(flags, training);
  return flags.gradients_only ? ComputeGradients(flags, training)
                              : ComputeLoss(flags, training);
}

// Runs one batch and returns this rank's last loss.
double ComputeBatch(const SyntheticFlags& flags, Training& training) {
  double loss = 0;
  for (int64_t i = 0; i < training.task.updates; ++i) {
    loss = ComputeOnce(flags, training);
  }
  // A batch ends at the same time on all ranks, as in training.
  if (!training.optimizer) barrier();
  return loss;
}

// Without --repeat, every batch is one observation.
ObservationPlan PlanOf(const SyntheticFlags& flags) {
  const int64_t batch_size = flags.batch_size.OfAllRanks(size());
  if (flags.repeat > 0) {
    return {.repeat = flags.repeat,
            .number = flags.number,
            .skip = flags.skip,
            .batch_size = batch_size};
  }
  return {.repeat = flags.num_batches,
          .number = 1,
          .skip = 0,
          .batch_size = batch_size};
}

void PrintSettings(const SyntheticFlags& flags) {
  const auto print = [](const char* name, const std::string& value) {
    Print(std::string(name) + value);
  };
  print("Model:       ", flags.task.model);
  print("Mode:        ", flags.trains()         ? "training"
                         : flags.gradients_only ? "gradients-only"
                                                : "forward-only");
  print("Batch size:  ",
        std::to_string(flags.batch_size.OfAllRanks(size())) + " global");
  print("             ", std::to_string(flags.batch_size.PerRank(size())) +
                             " per rank, " + std::to_string(size()) + " ranks");
  print("Data format: ", flags.task.data_format);
}

void WarmUp(const SyntheticFlags& flags, Training& training) {
  if (flags.repeat > 0) return;  // the first observations are skipped instead
  Print("Running warm up");
  support::ProgressLine line({.item = "warm-up batch",
                              .items = "batches",
                              .style = ProgressStyleOfRank()});
  for (int64_t i = 0; i < flags.num_warmup_batches; ++i) {
    ComputeBatch(flags, training);
    line.Show(i + 1, flags.num_warmup_batches);
  }
  line.Clear();
  Print("Done warm up");
}

// True if the observation, counted from 1, prints a line.
bool HasLine(const SyntheticFlags& flags, int64_t observation) {
  if (flags.repeat > 0) return true;
  return observation == 1 || observation % flags.display_every == 0;
}

// The state that survives a restart of the job, if its launcher has a commit
// store. During its lifetime a signal ends the measurement on all ranks.
class Progress {
 public:
  Progress(const SyntheticFlags& flags, Training& training)
      : keeps_(!base::ProcessEnvironment()
                    .get(base::kCommitStoreVariable)
                    .value_or("")
                    .empty()),
        state_(elastic::StateOptions().name(std::string(kProgram) + " " +
                                            flags.task.model)) {
    if (training.task.model != nullptr) state_.model(*training.task.model);
    if (training.optimizer) state_.optimizer(*training.optimizer);
    state_.value("observations", done_);
    if (keeps_ && state_.can_restore()) state_.restore();
  }

  // The remaining plan, with at least one observation that counts.
  ObservationPlan Rest(ObservationPlan plan) const {
    plan.repeat =
        std::min(plan.repeat, std::max(plan.repeat - done_, plan.skip + 1));
    return plan;
  }

  // Call this after each observation. Returns true on all ranks if a signal
  // asks to stop.
  bool EndsAfterObservation() {
    ++done_;
    if (keeps_) {
      state_.commit(elastic::Save::Never);
    } else {
      state_.agree_to_stop();
    }
    return state_.should_stop();
  }

  int64_t done() const { return done_; }  // in all starts of the job
  int stop_signal() const { return state_.stop_signal(); }

 private:
  const bool keeps_;
  int64_t done_ = 0;
  elastic::StopSignals signals_;
  elastic::State state_;
};

BenchmarkRecorder Measure(const SyntheticFlags& flags, Training& training,
                          Progress& progress) {
  BenchmarkRecorder recorder(progress.Rest(PlanOf(flags)));
  if (progress.done() > 0) {
    Print("resumed: " + std::to_string(progress.done()) +
          " observations are done");
  }
  Print(StepHeader());
  // In a log, the lines of the observations show the progress.
  support::ProgressStyle style = ProgressStyleOfRank();
  if (style == support::ProgressStyle::kLog) {
    style = support::ProgressStyle::kNone;
  }
  support::ProgressLine line({.item = "observation",
                              .items = "observations",
                              .style = style,
                              .first = progress.done()});
  bool ends = false;
  while (!recorder.done() && !ends) {
    barrier();
    recorder.BeginObservation();
    double loss = 0;
    do {
      loss = ComputeBatch(flags, training);
    } while (!recorder.AddBatch(loss));
    ends = progress.EndsAfterObservation();
    line.Show(progress.done(), PlanOf(flags).repeat);
    // Skipped observations have no line.
    if (recorder.observation_seconds().empty() ||
        !HasLine(flags, progress.done())) {
      continue;
    }
    line.Clear();
    Print(StepLine(
        progress.done(),
        StepSpeedOf(recorder.plan().items(), recorder.observation_seconds()),
        loss));
  }
  line.Clear();
  if (!recorder.observation_seconds().empty()) {
    const auto items = static_cast<double>(recorder.plan().items());
    Print(TotalBlock(items / recorder.train_seconds().mean));
  }
  return recorder;
}

// The first batch whose loss is not finite on some rank.
std::optional<int64_t> FirstNonFiniteBatch(const BenchmarkRecorder& recorder) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  const int64_t own = recorder.first_non_finite_batch().value_or(kNone);
  const int64_t first =
      allreduce(
          torch::tensor(own, torch::kInt64),
          AllreduceOptions().op(ReduceOp::Min).name("first_non_finite_batch"))
          .item<int64_t>();
  if (first == kNone) return std::nullopt;
  return first;
}

// Compares the parameters; rank 0 prints a difference. Returns true if they
// differ.
bool ParametersDiffer(const torch::nn::Module& model) {
  const std::vector<int64_t> digests = GatherParameterDigests(model);
  const bool equal =
      std::ranges::all_of(digests, [&](int64_t d) { return d == digests[0]; });
  for (size_t i = 0; i < digests.size(); ++i) {
    Print("parameters of rank " + std::to_string(i) + ": " +
          FormatDigest(digests[i]));
  }
  if (!equal && rank() == 0) {
    std::cerr << kProgram << ": the ranks' parameters differ\n";
  }
  return !equal;
}

// Returns true if the losses are finite and, with --check, the parameters are
// equal.
bool RunBenchmark(const SyntheticFlags& flags) {
  CheckReport(flags);
  WarnOfSlowBfloat16(flags.bf16);
  Training training = MakeTraining(flags);
  PrintSettings(flags);
  Progress progress(flags, training);
  StartTimeline();
  WarmUp(flags, training);
  const BenchmarkRecorder recorder = Measure(flags, training, progress);
  const std::optional<int64_t> failure = FirstNonFiniteBatch(recorder);
  SaveReport(flags, recorder, failure);
  if (failure && rank() == 0) {
    std::cerr << kProgram << ": the loss of batch " << *failure
              << " is not finite\n";
  }
  const bool differ = flags.check && ParametersDiffer(*training.task.model);
  if (!failure && !differ && !recorder.done()) {
    throw SharedError("stopped after " + std::to_string(progress.done()) +
                          " observations by " +
                          sigdescr_np(progress.stop_signal()) +
                          "; the report has the observations of this start",
                      StoppedEarlyBy(progress.stop_signal()));
  }
  return !failure && !differ;
}

// Builds the arguments of each instance: those of this program and then its
// own, which win because the last value of a flag counts.
int RunCopies(const SyntheticFlags& flags, int argc, char** argv) {
  std::vector<std::vector<std::string>> arguments;
  for (int64_t i = 0; i < flags.instances; ++i) {
    arguments.emplace_back(argv + 1, argv + argc);
    const auto add = [&](const std::string& flag, const std::string& value) {
      arguments.back().push_back("--" + flag + "=" + value);
    };
    add("instances", "1");
    add("instance", std::to_string(i));
    add("seed", std::to_string(flags.task.seed + static_cast<uint64_t>(i)));
    add("share-memory", "false");
    if (!flags.report.empty()) {
      add("report", ReportOfInstance(flags.report, i));
    }
  }
  try {
    return RunInstances(arguments, flags.share_memory);
  } catch (const support::InputError& error) {
    return EndEarly({std::string(kProgram) + ": " + error.what() + "\n",
                     support::kInputErrorExitCode});
  } catch (const std::exception& error) {
    std::cerr << kProgram << ": " << error.what() << "\n";
    return 1;
  }
}

int Main(int argc, char** argv) {
  const support::CommandLine<SyntheticFlags> command_line =
      ParseSyntheticFlags(argc, argv);
  if (!command_line.flags) return EndEarly(command_line.end);
  const SyntheticFlags& flags = *command_line.flags;
  if (flags.instances > 1) return RunCopies(flags, argc, argv);
  bool passed = false;
  const int exit_code =
      RunProgram(kProgram, flags.compute,
                 "no report is written; the same command starts from scratch",
                 [&] { passed = RunBenchmark(flags); });
  return exit_code == 0 && !passed ? 1 : exit_code;
}

}  // namespace
}  // namespace hvdlite::trainers

int main(int argc, char** argv) { return hvdlite::trainers::Main(argc, argv); }
