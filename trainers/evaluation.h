// Evaluates a model on a set of images, and handles images that cannot be read,
// before and during a training.
#pragma once

#include <hvdlite/work.h>
#include <torch/types.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "support/html_page.h"
#include "support/progress_line.h"
#include "trainers/data/sets/dataset.h"
#include "trainers/report.h"

namespace hvdlite::trainers {

// Describes for a report how images are transformed for training and, unless
// `test` is null, for evaluation.
support::Properties RecipesOf(const Dataset& train, const Dataset* test);

// Computes logits from images (in the layout of Batch) in evaluation mode.
using Classifier = std::function<torch::Tensor(const torch::Tensor& images)>;

// Evaluates all of `dataset`. Each rank evaluates a share, each image counts
// once, and the result is the same on all ranks. The ranks' models must be
// equal. `workers` threads load images; `style` is the style of this rank's
// progress line. Throws as OnAllRanks does if some rank cannot read an image,
// and SharedError if the loss is not finite. Collective.
Evaluation Evaluate(const Classifier& classify, Dataset& dataset,
                    int64_t batch_size, support::ProgressStyle style,
                    int workers = 0);

// Reads all images of `directory`, each rank a share of them with `workers`
// threads. Rank 0 prints, in the order of the images, why missing or damaged
// images cannot be read. If there are any, throws InputError with their number
// on all ranks. Throws as OnAllRanks does on an error that may be temporary.
// `style` is the style of this rank's progress line. Collective.
void CheckImages(Dataset& train, Dataset& test, const std::string& directory,
                 support::ProgressStyle style, int workers = 0);

// Reads the batches of a training. If one rank cannot read an image, all ranks
// throw its error, so that no rank waits for a rank that has ended.
class TrainingReader {
 public:
  // With `each_step`, ranks exchange errors after each step; otherwise only at
  // the end of an epoch, so that they do not wait for each other earlier.
  // `dataset` must outlive this.
  TrainingReader(const Dataset& dataset, bool each_step)
      : dataset_(dataset), each_step_(each_step) {}

  // Returns what `read` returns. After `read` has thrown once, returns batches
  // without images.
  Batch Read(const std::function<Batch()>& read);

  // True if Read() has failed on this rank. Later results of the training are
  // then not worth saving.
  bool failed() const { return error_ != nullptr; }

  // Call AfterStep() after each step, and AfterEpoch() at the end of each
  // epoch. Both throw as OnAllRanks does if some rank could not read.
  // Collective where ranks exchange errors.
  void AfterStep();
  void AfterEpoch();

  // The number of images of this rank that were replaced by others.
  int64_t replaced() const { return replaced_; }

 private:
  const Dataset& dataset_;
  const bool each_step_;
  std::exception_ptr error_;
  std::optional<Work> question_;  // whether any rank has an error
  int64_t replaced_ = 0;
};

}  // namespace hvdlite::trainers
