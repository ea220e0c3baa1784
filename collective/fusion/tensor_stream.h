// Addresses separate pieces of memory as one array of bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "collective/fusion/fusion.h"

namespace hvdlite::collective {

// The tensors of a bucket as one array of bytes, accessed by offset in any
// order. Refers to the tensors, which must outlive it.
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

  // Calls visit(piece, at) for each piece of the range that is in one tensor.
  // `piece` is that part of the tensor (with an empty input if the tensor has
  // none); `at` is its offset from `begin`.
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

// The bytes that one rank sends or receives, of all tensors, read or written in
// order. Does not own the memory. Byte is std::byte or const std::byte.
template <typename Byte>
class MemoryStream {
 public:
  void Append(absl::Span<Byte> piece) {
    pieces_.push_back(piece);
    bytes_left_ += piece.size();
  }

  size_t bytes_left() const { return bytes_left_; }

  // Calls visit(span, begin) for the next `bytes` bytes, which must exist.
  // `begin` counts from the first of them.
  template <typename Visit>
  void Advance(size_t bytes, const Visit& visit) {
    bytes_left_ -= bytes;
    for (size_t begin = 0; begin < bytes;) {
      const absl::Span<Byte> piece = pieces_[piece_].subspan(offset_);
      const size_t count = std::min(piece.size(), bytes - begin);
      if (count > 0) visit(piece.first(count), begin);
      begin += count;
      offset_ += count;
      if (count == piece.size()) {
        ++piece_;
        offset_ = 0;
      }
    }
  }

  // Copies the next to.size() bytes of the stream to `to`.
  void Read(absl::Span<std::byte> to) {
    Advance(to.size(), [&](absl::Span<const std::byte> piece, size_t begin) {
      std::memcpy(to.data() + begin, piece.data(), piece.size());
    });
  }

  // Copies `from` to the next from.size() bytes of the stream.
  void Write(absl::Span<const std::byte> from) {
    Advance(from.size(), [&](absl::Span<std::byte> piece, size_t begin) {
      std::memcpy(piece.data(), from.data() + begin, piece.size());
    });
  }

 private:
  std::vector<absl::Span<Byte>> pieces_;
  size_t piece_ = 0;   // the current piece
  size_t offset_ = 0;  // in that piece
  size_t bytes_left_ = 0;
};

}  // namespace hvdlite::collective
