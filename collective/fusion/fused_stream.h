// Pieces of memory that are read or written one after the other, as if they
// were contiguous: as a stream.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "absl/types/span.h"

namespace hvdlite::collective {

// A place in a stream.
struct StreamPosition {
  size_t piece = 0;
  size_t offset = 0;  // in that piece
};

// Goes through the next `bytes` bytes from `start`, of a stream whose i-th
// piece has size_of(i) bytes: calls visit(i, offset in it, begin, count) for
// each stretch that lies in one piece, where `begin` counts from `start`.
// Returns the position after them.
template <typename SizeOf, typename Visit>
StreamPosition VisitStream(StreamPosition start, size_t bytes,
                           const SizeOf& size_of, const Visit& visit) {
  StreamPosition at = start;
  size_t done = 0;
  while (done < bytes) {
    const size_t piece_bytes = size_of(at.piece);
    const size_t count = std::min(piece_bytes - at.offset, bytes - done);
    if (count > 0) visit(at.piece, at.offset, done, count);
    done += count;
    at.offset += count;
    if (at.offset == piece_bytes) at = {at.piece + 1, 0};
  }
  return at;
}

// A stream with its memory, which it does not own: what one rank gets or gives,
// of all tensors. Byte is std::byte or const std::byte.
template <typename Byte>
class MemoryStream {
 public:
  void Append(absl::Span<Byte> piece) {
    pieces_.push_back(piece);
    bytes_left_ += piece.size();
  }

  size_t bytes_left() const { return bytes_left_; }

  // Calls visit(stretch of memory, begin) for the next `bytes` bytes, which
  // must be there; `begin` counts from the first of them.
  template <typename Visit>
  void Advance(size_t bytes, const Visit& visit) {
    at_ = VisitStream(
        at_, bytes, [&](size_t piece) { return pieces_[piece].size(); },
        [&](size_t piece, size_t offset, size_t begin, size_t count) {
          visit(pieces_[piece].subspan(offset, count), begin);
        });
    bytes_left_ -= bytes;
  }

  // Copies the next to.size() bytes to `to`.
  void Read(absl::Span<std::byte> to) {
    Advance(to.size(), [&](absl::Span<const std::byte> piece, size_t begin) {
      std::memcpy(to.data() + begin, piece.data(), piece.size());
    });
  }

  // Copies `from` to the next from.size() bytes.
  void Write(absl::Span<const std::byte> from) {
    Advance(from.size(), [&](absl::Span<std::byte> piece, size_t begin) {
      std::memcpy(piece.data(), from.data() + begin, piece.size());
    });
  }

 private:
  std::vector<absl::Span<Byte>> pieces_;
  StreamPosition at_;
  size_t bytes_left_ = 0;
};

}  // namespace hvdlite::collective
