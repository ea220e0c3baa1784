// Makers of the tasks, for the registry of synthetic models. Each takes options
// that suit its model.
#pragma once

#include "trainers/synthetic/synthetic_task.h"

namespace hvdlite::trainers {

// Images and clips to classes.
SyntheticTask MakeResNetTask(const SyntheticTaskOptions& options);
SyntheticTask MakeAlexNetTask(const SyntheticTaskOptions& options);
SyntheticTask MakeVgg16Task(const SyntheticTaskOptions& options);
SyntheticTask MakeConv3dTask(const SyntheticTaskOptions& options);

// Sequences.
SyntheticTask MakeLstmTask(const SyntheticTaskOptions& options);
SyntheticTask MakeWordLanguageModelTask(const SyntheticTaskOptions& options);
SyntheticTask MakeTransformerTask(const SyntheticTaskOptions& options);
SyntheticTask MakeLanguageModelTask(const SyntheticTaskOptions& options);

// Vectors, and pairs of users and items.
SyntheticTask MakeMlpTask(const SyntheticTaskOptions& options);
SyntheticTask MakeFilteringTask(const SyntheticTaskOptions& options);

// Models that make images.
SyntheticTask MakeDcganTask(const SyntheticTaskOptions& options);
SyntheticTask MakeVaeTask(const SyntheticTaskOptions& options);

// No model: each call of loss() loads a batch of augmented images of CIFAR-10's
// size from memory and returns zero.
SyntheticTask MakeImageLoadingTask(const SyntheticTaskOptions& options);

}  // namespace hvdlite::trainers
