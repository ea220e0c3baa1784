// The datasets that the flags ask for.
#pragma once

#include <memory>

#include "trainers/data/dataset.h"
#include "trainers/resnet50_flags.h"

namespace hvdlite::trainers {

struct TrainingData {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;  // null with --synthetic
};

// Throws InputError, on every rank, if any of them cannot read its files or if
// these do not hold the same number of images everywhere. Collective.
TrainingData LoadTrainingData(const ResNet50Flags& flags);

}  // namespace hvdlite::trainers
