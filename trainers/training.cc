#include "trainers/training.h"

#include <ATen/Parallel.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "base/keyed_random.h"
#include "tools/support/input_error.h"
#include "tools/support/output_file.h"
#include "trainers/data/sets/sampler.h"
#include "trainers/program.h"
#include "trainers/step.h"

namespace hvdlite::trainers {
namespace {

constexpr char kResumeAuto[] = "auto";

constexpr int kStopSignals[] = {SIGTERM, SIGINT, SIGUSR1};
volatile std::sig_atomic_t stop_signal = 0;  // the last that has come
struct sigaction actions_before[std::size(kStopSignals)];

void WatchStopSignals() {
  stop_signal = 0;
  for (size_t i = 0; i < std::size(kStopSignals); ++i) {
    struct sigaction action = {};
    action.sa_handler = [](int signal) { stop_signal = signal; };
    action.sa_flags = SA_RESTART;
    // Whoever asks twice does not want to wait.
    if (kStopSignals[i] != SIGUSR1) action.sa_flags |= SA_RESETHAND;
    sigaction(kStopSignals[i], &action, &actions_before[i]);
  }
}

void IgnoreStopSignals() {
  for (size_t i = 0; i < std::size(kStopSignals); ++i) {
    sigaction(kStopSignals[i], &actions_before[i], nullptr);
  }
}

void CheckStepsPerEpoch(const std::string& file, const Progress& progress,
                        int64_t steps_per_epoch) {
  if (progress.step == 0 || progress.steps_per_epoch == steps_per_epoch) return;
  throw support::InputError(
      "the checkpoint '" + file + "' was made at step " +
      std::to_string(progress.step) + " of an epoch of " +
      std::to_string(progress.steps_per_epoch) +
      " steps, but this training's epochs have " +
      std::to_string(steps_per_epoch) +
      "; use the number of ranks, --batch-size and data it was "
      "made with");
}

void RequireFiniteParameters(const torch::nn::Module& model) {
  for (const auto& parameter : model.named_parameters()) {
    if (parameter.value().isfinite().all().item<bool>()) continue;
    throw std::runtime_error("the parameter '" + parameter.key() +
                             "' has values that are not finite; the last "
                             "checkpoint stays as it is");
  }
}

}  // namespace

void BeginRun(const RunFlags& run) {
  if (run.resume == kResumeAuto && run.checkpoint.empty()) {
    throw support::InputError("--resume auto needs --checkpoint FILE");
  }
  if (run.threads > 0) at::set_num_threads(run.threads);
  OnAllRanks("write the output files", [&] {
    if (rank() != 0) return;
    for (const std::string& file :
         {run.checkpoint, run.report, run.report_html}) {
      if (!file.empty()) support::RequireWritable(file);
    }
  });
}

StepRange Resume(const RunFlags& run, const std::string& model_name,
                 int64_t steps_per_epoch, torch::nn::Module& model,
                 torch::optim::Optimizer& optimizer) {
  if (run.resume.empty()) return StepsToTake(run, {}, steps_per_epoch);
  const bool is_auto = run.resume == kResumeAuto;
  const std::string file = is_auto ? run.checkpoint : run.resume;
  Progress progress;
  OnAllRanks("resume", [&] {
    if (rank() != 0 || (is_auto && !checkpoint_exists(file))) return;
    try {
      load_checkpoint(file, [&](torch::serialize::InputArchive& archive) {
        progress = ReadState(archive, model_name, model, optimizer);
      });
    } catch (const c10::Error& error) {
      throw support::InputError(MessageOf(error));
    }
  });
  const torch::Tensor position = broadcast(
      torch::tensor({progress.epoch, progress.step, progress.steps_per_epoch}),
      /*root_rank=*/0, BroadcastOptions().name("progress"));
  progress = {position[0].item<int64_t>(), position[1].item<int64_t>(),
              position[2].item<int64_t>()};
  CheckStepsPerEpoch(file, progress, steps_per_epoch);
  return StepsToTake(run, progress, steps_per_epoch);
}

void TellIfResumed(const StepRange& steps) {
  if (steps.first == 0 || rank() != 0) return;
  std::printf("%s: %lld of %lld steps are done\n",
              steps.first < steps.last ? "resumed" : "nothing to do",
              static_cast<long long>(steps.first),
              static_cast<long long>(steps.last));
  std::fflush(stdout);
}

Checkpoints::Checkpoints(const RunFlags& run, const StepRange& steps,
                         std::string model_name, const torch::nn::Module& model,
                         const torch::optim::Optimizer& optimizer,
                         std::function<double()> seconds, bool stoppable)
    : run_(run),
      steps_(steps),
      model_name_(std::move(model_name)),
      model_(model),
      optimizer_(optimizer),
      seconds_(std::move(seconds)),
      stoppable_(stoppable),
      saved_at_s_(seconds_()),
      writer_(run.checkpoint) {
  if (stoppable_) WatchStopSignals();
}

Checkpoints::~Checkpoints() {
  if (stoppable_) IgnoreStopSignals();
}

bool Checkpoints::AfterStep(int64_t done) {
  const int signal = AgreedSignal();
  if (signal != 0 && done < steps_.last) {
    stopped_by_ = signal;
    stopped_after_ = done;
    if (!run_.checkpoint.empty() && rank() == 0) TrySave(done);
    return true;
  }
  if (run_.checkpoint.empty() || rank() != 0 || !IsDue(done)) return false;
  if (done == steps_.last || steps_.InEpoch(done) == 0) return false;
  TrySave(done);
  return false;
}

int Checkpoints::AgreedSignal() {
  if (!stoppable_) return 0;
  const int agreed = signals_.has_value() ? signals_->wait().item<int>() : 0;
  signals_ =
      allreduce_async(torch::tensor(static_cast<int>(stop_signal)),
                      AllreduceOptions().op(ReduceOp::Max).name("stop_signal"));
  return agreed;
}

void Checkpoints::TrySave(int64_t done) {
  try {
    Save(done);
  } catch (const std::exception& error) {
    std::cerr << "no checkpoint after " + std::to_string(done) +
                     " steps: " + MessageOf(error) + "\n"
              << std::flush;
  }
}

void Checkpoints::AfterEpoch(int64_t done) {
  if (run_.checkpoint.empty()) return;
  OnAllRanks("save the checkpoint", [&] {
    const bool due = steps_.IsDue(run_.checkpoint_every, done) || IsDue(done);
    if (rank() == 0 && due) Save(done);
  });
}

void Checkpoints::Finish() {
  if (signals_.has_value()) (void)std::exchange(signals_, {})->wait();
  OnAllRanks("save the last checkpoint", [&] {
    if (writer_.wait()) return;
    throw std::runtime_error("'" + run_.checkpoint +
                             "' could not be written; a warning said why");
  });
  if (stopped_by_ == 0) return;
  throw StoppedEarly(
      "stopped after " + std::to_string(stopped_after_) + " of " +
      std::to_string(steps_.last) + " steps by " + sigdescr_np(stopped_by_) +
      (run_.checkpoint.empty() ? "; nothing is saved without --checkpoint"
                               : "; --resume auto goes on from there"));
}

bool Checkpoints::IsDue(int64_t done) const {
  if (run_.checkpoint_every_steps > 0 &&
      done % run_.checkpoint_every_steps == 0) {
    return true;
  }
  return run_.checkpoint_every_minutes > 0 &&
         seconds_() - saved_at_s_ >= 60 * run_.checkpoint_every_minutes;
}

void Checkpoints::Save(int64_t done) {
  saved_at_s_ = seconds_();
  RequireFiniteParameters(model_);
  writer_.save([&](torch::serialize::OutputArchive& archive) {
    WriteState(archive, model_name_, model_, optimizer_, steps_.After(done));
  });
}

void SeedStep(uint64_t seed, int64_t step) {
  base::KeyedRandom random{seed, static_cast<uint64_t>(rank()),
                           static_cast<uint64_t>(step)};
  torch::manual_seed(random.Next());
}

Evaluation Evaluate(const Classifier& classify, Dataset& dataset,
                    int64_t batch_size, int workers) {
  const torch::NoGradGuard no_grad;
  double loss = 0;
  int64_t correct = 0;
  auto indices = EvaluationBatches({.dataset_size = dataset.size(),
                                    .batch_size = batch_size,
                                    .rank = rank(),
                                    .world_size = size()});
  const size_t count = indices.size();
  Prefetcher<Batch> batches =
      PrefetchBatches(dataset, std::move(indices), /*epoch=*/0, workers);
  for (size_t i = 0; i < count; ++i) {
    const Batch batch = batches.Next();
    const torch::Tensor logits = classify(batch.images);
    loss += torch::nn::functional::cross_entropy(
                logits, batch.labels,
                torch::nn::functional::CrossEntropyFuncOptions().reduction(
                    torch::kSum))
                .item<double>();
    correct += logits.argmax(1).eq(batch.labels).sum().item<int64_t>();
  }
  // Shares may be uneven, so sums are added up, never means.
  const torch::Tensor sums = allreduce(
      torch::tensor({loss, static_cast<double>(correct)}, torch::kFloat64),
      AllreduceOptions().op(ReduceOp::Sum).name("evaluation"));
  const auto images = static_cast<double>(dataset.size());
  const Evaluation evaluation = {sums[0].item<double>() / images,
                                 sums[1].item<double>() / images,
                                 dataset.size()};
  RequireFinite(evaluation.loss, "loss of the evaluation");
  return evaluation;
}

std::vector<double> AccuraciesOf(const std::vector<Evaluation>& evaluations) {
  std::vector<double> accuracies;
  for (const Evaluation& one : evaluations) accuracies.push_back(one.accuracy);
  return accuracies;
}

void AverageBuffers(torch::nn::Module& model) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> buffers;
  std::vector<torch::Tensor> flat;
  for (const torch::Tensor& buffer : model.buffers()) {
    if (!buffer.is_floating_point()) continue;
    buffers.push_back(buffer);
    flat.push_back(buffer.flatten());
  }
  if (buffers.empty()) return;
  // One operation for all of them.
  const torch::Tensor mean =
      allreduce(torch::cat(flat), AllreduceOptions().name("buffers"));
  int64_t offset = 0;
  for (torch::Tensor& buffer : buffers) {
    buffer.copy_(mean.narrow(0, offset, buffer.numel()).view_as(buffer));
    offset += buffer.numel();
  }
}

// FNV-1a (Fowler, Noll, Vo), 64 bits, over bytes.
int64_t ParameterDigest(const torch::nn::Module& model) {
  uint64_t digest = 0xcbf29ce484222325;
  for (const torch::Tensor& parameter : model.parameters()) {
    const torch::Tensor values = parameter.detach().contiguous();
    const auto* bytes = static_cast<const uint8_t*>(values.data_ptr());
    for (size_t i = 0; i < values.nbytes(); ++i) {
      digest = (digest ^ bytes[i]) * 0x100000001b3;
    }
  }
  return static_cast<int64_t>(digest);
}

std::vector<int64_t> GatherParameterDigests(const torch::nn::Module& model) {
  torch::Tensor digests = torch::zeros({size()}, torch::kInt64);
  digests[rank()] = ParameterDigest(model);
  digests = allreduce(
      digests, AllreduceOptions().op(ReduceOp::Sum).name("parameter_digests"));
  const int64_t* data = digests.data_ptr<int64_t>();
  return {data, data + digests.numel()};
}

std::vector<double> SumOverRanks(const std::vector<double>& values) {
  if (values.empty()) return {};
  const torch::Tensor sums =
      allreduce(torch::tensor(values, torch::kFloat64),
                AllreduceOptions().op(ReduceOp::Sum).name("sums"));
  const double* data = sums.data_ptr<double>();
  return {data, data + sums.numel()};
}

Report MakeReport(const ReportSubject& subject, const StepRange& steps,
                  const IntervalMeter& meter, const std::vector<double>& losses,
                  const std::vector<Evaluation>& evaluations,
                  const torch::nn::Module& model) {
  return {.program = subject.program,
          .settings = subject.settings,
          .items = subject.items,
          .world_size = size(),
          .threads_per_rank = at::get_num_threads(),
          .first_step = steps.first,
          .steps = std::max<int64_t>(steps.last - steps.first, 0),
          .seconds = meter.seconds(),
          .items_per_second = SumOverRanks(meter.items_per_second()),
          .losses = losses,
          .evaluation = evaluations.empty() ? std::nullopt
                                            : std::optional(evaluations.back()),
          .accuracies = AccuraciesOf(evaluations),
          .parameter_digests = GatherParameterDigests(model)};
}

void SaveReport(const Report& report, const RunFlags& run) {
  OnAllRanks("save the report", [&] {
    if (rank() != 0) return;
    if (!run.report.empty()) WriteReport(run.report, report);
    if (!run.report_html.empty()) WriteHtmlReport(run.report_html, report);
  });
}

}  // namespace hvdlite::trainers
