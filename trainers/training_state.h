// Where a training stands, and going on from there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainers/checkpoint.h"
#include "trainers/report.h"

namespace hvdlite::trainers {

// Reads the checkpoint `file` on rank 0; the other ranks get where it stands,
// but not yet model and optimizer: broadcast_parameters() and
// broadcast_optimizer_state() follow. Throws InputError on all ranks if the
// file cannot be read, is of another model, or was made within an epoch that
// had other than `steps_per_epoch` steps. Collective.
Progress Resume(const std::string& file, const std::string& model_name,
                int64_t steps_per_epoch, torch::nn::Module& model,
                torch::optim::Optimizer& optimizer);

// Tells, on rank 0, where a training that was to be resumed has nothing left to
// do: so many of its steps are done already.
void TellIfDone(int64_t steps_done, int64_t last_step);

// Writes the checkpoint on rank 0. Throws on all ranks if that fails.
// Collective.
void Save(const std::string& file, const std::string& model_name,
          const torch::nn::Module& model,
          const torch::optim::Optimizer& optimizer, const Progress& progress);

// Throws InputError on all ranks if rank 0 cannot write one of `files`; empty
// names are left out. So that it is known before the training, not after.
// Collective.
void CheckOutputFiles(const std::vector<std::string>& files);

// Writes the report on rank 0, as JSON and as a page for browsers, to those
// files that have a name. Throws on all ranks if that fails. Collective.
void SaveReports(const Report& report, const std::string& json_file,
                 const std::string& html_file);

// Seeds LibTorch's default generator for what this rank draws in a step (for
// dropout). As that depends on seed, rank and step alone, a resumed training
// draws what an uninterrupted one would.
void SeedStep(uint64_t seed, int64_t step);

}  // namespace hvdlite::trainers
