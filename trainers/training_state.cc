#include "trainers/training_state.h"

#include <ATen/Parallel.h>
#include <hvdlite/hvdlite.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdio>
#include <stdexcept>

#include "tools/support/input_error.h"
#include "tools/support/output_file.h"
#include "trainers/agreement.h"
#include "trainers/data/sets/random.h"

namespace hvdlite::trainers {
namespace {

void CheckStepsPerEpoch(const std::string& file, const Progress& progress,
                        int64_t steps_per_epoch) {
  if (progress.step == 0 || progress.steps_per_epoch == steps_per_epoch) return;
  throw InputError("the checkpoint '" + file + "' was made at step " +
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
  if (run.threads > 0) at::set_num_threads(run.threads);
  OnAllRanks("write the output files", [&] {
    if (rank() != 0) return;
    for (const std::string& file :
         {run.checkpoint, run.report, run.report_html}) {
      if (!file.empty()) RequireWritable(file);
    }
  });
}

StepRange Resume(const RunFlags& run, const std::string& model_name,
                 int64_t steps_per_epoch, torch::nn::Module& model,
                 torch::optim::Optimizer& optimizer) {
  if (run.resume.empty()) return StepsToTake(run, {}, steps_per_epoch);
  Progress progress;
  OnAllRanks("resume", [&] {
    if (rank() == 0) {
      progress = ReadCheckpoint(run.resume, model_name, model, optimizer);
    }
  });
  const torch::Tensor position = broadcast(
      torch::tensor({progress.epoch, progress.step, progress.steps_per_epoch}),
      /*root_rank=*/0, BroadcastOptions().name("progress"));
  progress = {position[0].item<int64_t>(), position[1].item<int64_t>(),
              position[2].item<int64_t>()};
  CheckStepsPerEpoch(run.resume, progress, steps_per_epoch);
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

void SaveIfDue(const RunFlags& run, const StepRange& steps, int64_t done,
               const std::string& model_name, const torch::nn::Module& model,
               const torch::optim::Optimizer& optimizer) {
  if (run.checkpoint.empty() || !steps.IsDue(run.checkpoint_every, done)) {
    return;
  }
  OnAllRanks("save the checkpoint", [&] {
    if (rank() != 0) return;
    RequireFiniteParameters(model);
    WriteCheckpoint(run.checkpoint, model_name, model, optimizer,
                    steps.After(done));
  });
}

void SeedStep(uint64_t seed, int64_t step) {
  KeyedRandom random{seed, static_cast<uint64_t>(rank()),
                     static_cast<uint64_t>(step)};
  torch::manual_seed(random.Next());
}

}  // namespace hvdlite::trainers
