// The tasks of train_transformer: a model with its training and test sequences.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/progress_line.h"
#include "trainers/step.h"
#include "trainers/transformer_flags.h"

namespace hvdlite::trainers {

enum class Split { kTrain, kTest };

class SequenceTask {
 public:
  virtual ~SequenceTask() = default;

  // The name that a checkpoint must hold to be resumed.
  virtual std::string ModelName() const = 0;
  // The files of the data.
  virtual std::string Source() const = 0;
  virtual torch::nn::Module& model() = 0;

  virtual int64_t size(Split split) const = 0;
  // Tokens per sequence.
  virtual int64_t LengthOf(Split split, int64_t index) const = 0;

  // Runs the model on these sequences (at least one) and returns its loss.
  // `smoothing` is as in ComputeSequenceLoss.
  virtual SequenceLoss Predict(Split split, const std::vector<int64_t>& indices,
                               double smoothing) = 0;
};

// Creates the task of the flags. LibTorch's default generator draws the
// weights. `style` is the style of the progress line while reading. Throws
// InputError if the files cannot be read.
std::unique_ptr<SequenceTask> MakeTask(const TransformerFlags& flags,
                                       support::ProgressStyle style);

}  // namespace hvdlite::trainers
