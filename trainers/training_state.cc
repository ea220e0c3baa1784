#include "trainers/training_state.h"

#include <hvdlite/hvdlite.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdio>

#include "trainers/agreement.h"
#include "trainers/data/random.h"
#include "trainers/input_error.h"
#include "trainers/output_file.h"

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

}  // namespace

Progress Resume(const std::string& file, const std::string& model_name,
                int64_t steps_per_epoch, torch::nn::Module& model,
                torch::optim::Optimizer& optimizer) {
  Progress progress;
  OnAllRanks("resume", [&] {
    if (rank() == 0) {
      progress = ReadCheckpoint(file, model_name, model, optimizer);
    }
  });
  const torch::Tensor position = broadcast(
      torch::tensor({progress.epoch, progress.step, progress.steps_per_epoch}),
      /*root_rank=*/0, BroadcastOptions().name("progress"));
  progress = {position[0].item<int64_t>(), position[1].item<int64_t>(),
              position[2].item<int64_t>()};
  CheckStepsPerEpoch(file, progress, steps_per_epoch);
  return progress;
}

void TellIfDone(int64_t steps_done, int64_t last_step) {
  if (steps_done < last_step || rank() != 0) return;
  std::printf("nothing to do: %lld of %lld steps are done\n",
              static_cast<long long>(steps_done),
              static_cast<long long>(last_step));
  std::fflush(stdout);
}

void Save(const std::string& file, const std::string& model_name,
          const torch::nn::Module& model,
          const torch::optim::Optimizer& optimizer, const Progress& progress) {
  OnAllRanks("save the checkpoint", [&] {
    if (rank() == 0) {
      WriteCheckpoint(file, model_name, model, optimizer, progress);
    }
  });
}

void CheckOutputFiles(const std::vector<std::string>& files) {
  OnAllRanks("write the output files", [&] {
    if (rank() != 0) return;
    for (const std::string& file : files) {
      if (!file.empty()) RequireWritable(file);
    }
  });
}

void SaveReports(const Report& report, const std::string& json_file,
                 const std::string& html_file) {
  OnAllRanks("save the report", [&] {
    if (rank() != 0) return;
    if (!json_file.empty()) WriteReport(json_file, report);
    if (!html_file.empty()) WriteHtmlReport(html_file, report);
  });
}

void SeedStep(uint64_t seed, int64_t step) {
  KeyedRandom random{seed, static_cast<uint64_t>(rank()),
                     static_cast<uint64_t>(step)};
  torch::manual_seed(random.Next());
}

}  // namespace hvdlite::trainers
