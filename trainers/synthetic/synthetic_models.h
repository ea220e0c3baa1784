// The models of train_synthetic, by name.
#pragma once

#include <string>
#include <vector>

#include "trainers/synthetic/tasks.h"

namespace hvdlite::trainers {

std::vector<std::string> SyntheticModelNames();

// Throws an InputError that names the flag if a size does not suit the model.
// `options.model` must be one of SyntheticModelNames() (else
// std::invalid_argument).
void RequireSuitable(const SyntheticTaskOptions& options);

// Returns the model, whose weights LibTorch's default generator draws, and a
// batch that depends only on the seed. `options` must have passed the check
// above.
SyntheticTask MakeSyntheticTask(const SyntheticTaskOptions& options);

}  // namespace hvdlite::trainers
