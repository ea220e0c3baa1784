// How well a model does on a set of images, and images that cannot be read:
// looked for before a training, or met in one.
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

// What is done to images for training and, unless `test` is null, for
// evaluation: for a report.
support::Properties RecipesOf(const Dataset& train, const Dataset* test);

// From images (as a Batch has them) to logits, in evaluation mode.
using Classifier = std::function<torch::Tensor(const torch::Tensor& images)>;

// Evaluates the whole of `dataset`, every rank a share of it, each image once;
// the result is the same on all ranks. The ranks' models must be equal.
// `workers` threads load images; `style` is for this rank's progress. Throws
// as OnAllRanks does if one of them cannot read an image, SharedError if the
// loss is not finite. Collective.
Evaluation Evaluate(const Classifier& classify, Dataset& dataset,
                    int64_t batch_size, support::ProgressStyle style,
                    int workers = 0);

// Reads all images, every rank a share of them with `workers` threads. Rank 0
// prints why those that are missing or damaged cannot be read, in their order.
// Throws InputError on all ranks, with their number, if there are any, and as
// OnAllRanks does where another try may read one. `directory` is where they
// are; `style` is for this rank's progress. Collective.
void CheckImages(Dataset& train, Dataset& test, const std::string& directory,
                 support::ProgressStyle style, int workers = 0);

// The batches of a training, where one rank may meet an image that it cannot
// read: all ranks then end with its error, none waits for one that has ended.
class TrainingReader {
 public:
  // `each_step`: ranks tell one another in each step. Else at the end of an
  // epoch only: they do not wait for each other before.
  // `dataset` outlives it.
  TrainingReader(const Dataset& dataset, bool each_step)
      : dataset_(dataset), each_step_(each_step) {}

  // What `read` returns. If it throws: a batch without an image, now and from
  // then on.
  Batch Read(const std::function<Batch()>& read);

  // Whether Read() has failed on this rank: what is trained from then on is
  // not worth keeping.
  bool failed() const { return error_ != nullptr; }

  // Once after each Read() that begins a step, and at the end of each epoch.
  // Both throw as OnAllRanks does if one of them could not read. Collective
  // where ranks tell one another.
  void AfterStep();
  void AfterEpoch();

  // How many images of this rank others stood for.
  int64_t replaced() const { return replaced_; }

 private:
  const Dataset& dataset_;
  const bool each_step_;
  std::exception_ptr error_;
  std::optional<Work> question_;  // whether any rank has one
  int64_t replaced_ = 0;
};

}  // namespace hvdlite::trainers
