#include "trainers/data/sets/sampler.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "base/keyed_random.h"
#include "tools/support/input_error.h"

namespace hvdlite::trainers {

TrainingSampler::TrainingSampler(const SamplerOptions& options)
    : options_(options),
      steps_per_epoch_(options.dataset_size /
                       (options.batch_size * options.world_size)) {
  if (steps_per_epoch_ == 0) {
    throw support::InputError(
        "the training data has " + std::to_string(options.dataset_size) +
        " samples, but a step of all ranks takes " +
        std::to_string(options.world_size * options.batch_size) +
        "; use a smaller --batch-size or more data");
  }
}

std::vector<int64_t> TrainingSampler::Batch(int64_t epoch, int64_t step) {
  if (epoch != shuffled_epoch_) Shuffle(epoch);
  const auto first =
      order_.begin() +
      (step * options_.world_size + options_.rank) * options_.batch_size;
  return {first, first + options_.batch_size};
}

std::vector<std::vector<int64_t>> TrainingSampler::Batches(int64_t epoch,
                                                           int64_t first,
                                                           int64_t last) {
  std::vector<std::vector<int64_t>> batches;
  for (int64_t step = first; step < last; ++step) {
    batches.push_back(Batch(epoch, step));
  }
  return batches;
}

// Fisher and Yates.
void TrainingSampler::Shuffle(int64_t epoch) {
  order_.resize(options_.dataset_size);
  std::iota(order_.begin(), order_.end(), 0);
  base::KeyedRandom random{options_.seed, static_cast<uint64_t>(epoch)};
  for (size_t i = order_.size(); i > 1; --i) {
    std::swap(order_[i - 1], order_[random.Below(i)]);
  }
  shuffled_epoch_ = epoch;
}

std::vector<std::vector<int64_t>> EvaluationBatches(
    const SamplerOptions& options) {
  std::vector<std::vector<int64_t>> batches;
  for (int64_t index = options.rank; index < options.dataset_size;
       index += options.world_size) {
    if (batches.empty() ||
        static_cast<int64_t>(batches.back().size()) == options.batch_size) {
      batches.emplace_back();
    }
    batches.back().push_back(index);
  }
  return batches;
}

std::vector<int64_t> DealByLength(const std::vector<int64_t>& indices,
                                  const std::vector<int64_t>& lengths, int rank,
                                  int world_size) {
  std::vector<size_t> order(indices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  std::vector<int64_t> share;
  const auto ranks = static_cast<size_t>(world_size);
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t turn = i % ranks;
    const bool forward = i / ranks % 2 == 0;
    if ((forward ? turn : ranks - 1 - turn) == static_cast<size_t>(rank)) {
      share.push_back(indices[order[i]]);
    }
  }
  return share;
}

}  // namespace hvdlite::trainers
