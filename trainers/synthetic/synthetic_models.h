// The models of train_synthetic, by name.
#pragma once

#include <string>
#include <vector>

#include "trainers/synthetic/tasks.h"

namespace hvdlite::trainers {

std::vector<std::string> SyntheticModelNames();

// Throws InputError that names the flag if a size does not suit the model.
// `options.model` is one of SyntheticModelNames() (std::invalid_argument).
void RequireSuitable(const SyntheticTaskOptions& options);

// The model with the weights that LibTorch's default generator draws, and a
// batch that depends on the seed alone. As above, `options` are suitable.
SyntheticTask MakeSyntheticTask(const SyntheticTaskOptions& options);

}  // namespace hvdlite::trainers
