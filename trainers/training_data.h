// The datasets that the flags ask for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trainers/data/sets/dataset.h"
#include "trainers/resnet50_flags.h"

namespace hvdlite::trainers {

struct TrainingData {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> test;  // null with --synthetic
  int64_t image_size = 0;         // pixels a side
  int64_t classes = 0;
  std::string description;  // which files; empty with --synthetic
};

// Rank 0 prints what was found. Throws InputError, on every rank, if any of
// them cannot read its files, if these do not hold the same number of images
// everywhere, or if flags do not fit them. Collective.
TrainingData LoadTrainingData(const ResNet50Flags& flags);

}  // namespace hvdlite::trainers
