// Where a training stands, and going on from there.
#pragma once

#include <cstdint>
#include <string>

#include "trainers/checkpoint.h"
#include "trainers/run_flags.h"
#include "trainers/step_range.h"

namespace hvdlite::trainers {

// What precedes everything else: sets --threads, and throws InputError on all
// ranks if rank 0 cannot write one of the files that the flags name, so that it
// is known before the training, not after. Collective.
void BeginRun(const RunFlags& run);

// Reads the checkpoint --resume on rank 0, if it is given; the other ranks get
// where it stands, but not yet model and optimizer: broadcast_parameters() and
// broadcast_optimizer_state() follow. Returns the steps to take. Throws
// InputError on all ranks if the file cannot be read, is of another model, or
// was made within an epoch that had other than `steps_per_epoch` steps.
// Collective.
StepRange Resume(const RunFlags& run, const std::string& model_name,
                 int64_t steps_per_epoch, torch::nn::Module& model,
                 torch::optim::Optimizer& optimizer);

// Tells, on rank 0, where a resumed training goes on, or that nothing is left
// to do.
void TellIfResumed(const StepRange& steps);

// Writes --checkpoint on rank 0, if it is given and it is time for it after
// `done` steps. Throws on all ranks if that fails, or if a parameter is not
// finite: then the last checkpoint stays. Collective.
void SaveIfDue(const RunFlags& run, const StepRange& steps, int64_t done,
               const std::string& model_name, const torch::nn::Module& model,
               const torch::optim::Optimizer& optimizer);

// Seeds LibTorch's default generator for what this rank draws in a step (for
// dropout). As that depends on seed, rank and step alone, a resumed training
// draws what an uninterrupted one would.
void SeedStep(uint64_t seed, int64_t step);

}  // namespace hvdlite::trainers
