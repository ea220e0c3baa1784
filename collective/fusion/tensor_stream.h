// TensorStream: the tensors of a batch as one array of bytes.
#pragma once

#include <algorithm>
#include <cstddef>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "collective/fusion/fusion.h"

namespace hvdlite::collective {

// Addresses stretches of the array by their offset, in any order. Refers to the
// tensors, which must outlive it.
class TensorStream {
 public:
  explicit TensorStream(absl::Span<const FusedTensor> tensors)
      : tensors_(tensors) {
    begins_.reserve(tensors.size());
    for (const FusedTensor& tensor : tensors) {
      begins_.push_back(bytes_);
      bytes_ += tensor.output.size();
    }
  }

  size_t bytes() const { return bytes_; }

  // Calls visit(piece, at) for each piece of the stretch that lies in one
  // tensor: `piece` is that part of the tensor (with an empty input where the
  // tensor has none), `at` its offset from `begin`.
  template <typename Visit>
  void ForEachPiece(size_t begin, size_t bytes, const Visit& visit) const {
    if (bytes == 0) return;
    size_t i = static_cast<size_t>(
        std::upper_bound(begins_.begin(), begins_.end(), begin) -
        begins_.begin() - 1);
    const size_t end = begin + bytes;
    for (size_t at = begin; at < end; ++i) {
      const FusedTensor& tensor = tensors_[i];
      const size_t offset = at - begins_[i];
      const size_t count = std::min(tensor.output.size() - offset, end - at);
      if (count == 0) continue;
      visit(FusedTensor{tensor.input.empty()
                            ? tensor.input
                            : tensor.input.subspan(offset, count),
                        tensor.output.subspan(offset, count)},
            at - begin);
      at += count;
    }
  }

 private:
  const absl::Span<const FusedTensor> tensors_;
  absl::InlinedVector<size_t, 4> begins_;
  size_t bytes_ = 0;
};

}  // namespace hvdlite::collective
