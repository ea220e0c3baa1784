#include <hvdlite/sampler.h>
#include <hvdlite/world.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/keyed_random.h"
#include "torch_plugin/throw_status.h"

namespace hvdlite {
namespace {

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Uses the shuffle of Fisher and Yates.
std::vector<size_t> Shuffled(int64_t size, uint64_t seed, int64_t epoch) {
  std::vector<size_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), size_t{0});
  base::KeyedRandom random{seed, static_cast<uint64_t>(epoch)};
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random.Below(i)]);
  }
  return order;
}

}  // namespace

DistributedSampler::DistributedSampler(int64_t dataset_size, int64_t batch_size,
                                       uint64_t seed, BatchOf batch_of)
    : dataset_size_(dataset_size),
      batch_size_(batch_size),
      seed_(seed),
      batch_of_(batch_of) {
  if (dataset_size < 1) {
    internal::ThrowError(absl::StrCat(
        "DistributedSampler: the data set has no samples (dataset_size ",
        dataset_size, ")"));
  }
  if (batch_size < 1) {
    internal::ThrowError(absl::StrCat("DistributedSampler: batch_size ",
                                      batch_size,
                                      " is too small; use at least 1"));
  }
}

void DistributedSampler::set_epoch(int64_t epoch) {
  if (epoch != epoch_) resume(epoch, /*position=*/0);
}

void DistributedSampler::resume(int64_t epoch, int64_t position) {
  if (epoch < 0 || position < 0 || position > dataset_size_) {
    internal::ThrowError(absl::StrCat(
        "DistributedSampler: cannot continue epoch ", epoch, " after ",
        position, " samples; the data set has ", dataset_size_));
  }
  epoch_ = epoch;
  position_ = position;
  taken_ = 0;
}

int64_t DistributedSampler::samples_per_step() const {
  return batch_of_ == BatchOf::AllRanks ? batch_size_
                                        : batch_size_ * hvdlite::size();
}

std::optional<std::vector<size_t>> DistributedSampler::next() {
  return next(hvdlite::rank(), hvdlite::size());
}

std::optional<std::vector<size_t>> DistributedSampler::next(int rank,
                                                            int size) {
  if (size < 1 || rank < 0 || rank >= size) {
    internal::ThrowError(absl::StrCat("DistributedSampler: rank ", rank,
                                      " does not exist among ", size,
                                      " ranks"));
  }
  taken_ = 0;
  const int64_t remaining = dataset_size_ - position_;
  if (remaining == 0) return std::nullopt;
  if (shuffled_epoch_ != epoch_) {
    order_ = Shuffled(dataset_size_, seed_, epoch_);
    shuffled_epoch_ = epoch_;
  }
  const int64_t batch =
      batch_of_ == BatchOf::AllRanks ? batch_size_ : batch_size_ * size;
  taken_ = DivideUp(remaining, DivideUp(remaining, batch));
  // If the shares differ, the first ranks get one more sample.
  const int64_t part = taken_ / size;
  const int64_t rest = taken_ % size;
  const int64_t first = position_ + rank * part + std::min<int64_t>(rank, rest);
  const auto begin = order_.begin() + first;
  position_ += taken_;
  return std::vector<size_t>(begin, begin + part + (rank < rest ? 1 : 0));
}

}  // namespace hvdlite
