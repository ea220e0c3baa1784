// What train_transformer trains: a model, sequences to learn from, and others
// to test it on.
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

  // What a checkpoint must hold to be resumed.
  virtual std::string ModelName() const = 0;
  // The files that it reads.
  virtual std::string Source() const = 0;
  virtual torch::nn::Module& model() = 0;

  virtual int64_t size(Split split) const = 0;
  // Tokens of a sequence.
  virtual int64_t LengthOf(Split split, int64_t index) const = 0;

  // What the model makes of these sequences, of which there is at least one.
  // `smoothing` as in ComputeSequenceLoss.
  virtual SequenceLoss Predict(Split split, const std::vector<int64_t>& indices,
                               double smoothing) = 0;
};

// The task that the flags ask for, with the weights that LibTorch's default
// generator draws. `style`: how far reading is. Throws InputError about its
// files.
std::unique_ptr<SequenceTask> MakeTask(const TransformerFlags& flags,
                                       support::ProgressStyle style);

}  // namespace hvdlite::trainers
