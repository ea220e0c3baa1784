// How well a model does on images it was not trained on.
#pragma once

#include <functional>
#include <vector>

#include "trainers/data/sets/dataset.h"

namespace hvdlite::trainers {

struct Evaluation {
  double loss = 0;      // mean cross entropy
  double accuracy = 0;  // share of items whose class is the most likely one
  int64_t items = 0;    // how many were classified
};

// From images (as a Batch has them) to logits, in evaluation mode.
using Classifier = std::function<torch::Tensor(const torch::Tensor& images)>;

// Evaluates the whole of `dataset`, every rank a share of it, each image once;
// the result is the same on all ranks. The ranks' models must be equal.
// `workers` threads load images. Throws DivergenceError if the loss is not
// finite. Collective.
Evaluation Evaluate(const Classifier& classify, Dataset& dataset,
                    int64_t batch_size, int workers = 0);

std::vector<double> AccuraciesOf(const std::vector<Evaluation>& evaluations);

}  // namespace hvdlite::trainers
