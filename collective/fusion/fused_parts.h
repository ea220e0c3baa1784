// What the collectives over partitioned tensors have in common.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "collective/fusion/fused_stream.h"
#include "collective/fusion/fusion.h"
#include "collective/fusion/fusion_buffer.h"

namespace hvdlite::collective {

// A stream per rank: its parts of the given span of all tensors.
template <typename Byte>
std::vector<MemoryStream<Byte>> StreamsOfRanks(
    absl::Span<const PartitionedTensor> tensors,
    absl::Span<Byte> PartitionedTensor::*span,
    std::vector<size_t> PartitionedTensor::*partition, int size) {
  std::vector<MemoryStream<Byte>> streams(size);
  for (const PartitionedTensor& tensor : tensors) {
    size_t begin = 0;
    for (int rank = 0; rank < size; ++rank) {
      const size_t bytes = (tensor.*partition)[rank];
      streams[rank].Append((tensor.*span).subspan(begin, bytes));
      begin += bytes;
    }
  }
  return streams;
}

template <typename Byte>
size_t LongestStream(const std::vector<MemoryStream<Byte>>& streams) {
  size_t longest = 0;
  for (const MemoryStream<Byte>& stream : streams) {
    longest = std::max(longest, stream.bytes_left());
  }
  return longest;
}

// The bytes of each stream in the next round: `max_bytes`, or what is left.
template <typename Byte>
std::vector<size_t> NextParts(const std::vector<MemoryStream<Byte>>& streams,
                              size_t max_bytes) {
  std::vector<size_t> parts;
  parts.reserve(streams.size());
  for (const MemoryStream<Byte>& stream : streams) {
    parts.push_back(std::min(max_bytes, stream.bytes_left()));
  }
  return parts;
}

// Calls visit(rank, part of `buffer`) for parts that lie one after the other.
// Returns what they occupy.
template <typename Visit>
absl::Span<std::byte> VisitParts(absl::Span<std::byte> buffer,
                                 absl::Span<const size_t> parts,
                                 const Visit& visit) {
  size_t begin = 0;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    visit(rank, buffer.subspan(begin, parts[rank]));
    begin += parts[rank];
  }
  return buffer.first(begin);
}

// Memory for one round in equal parts: that of the fusion buffer, or more where
// the parts would be too small to be worth their message.
class PartMemory {
 public:
  PartMemory(FusionBuffer& buffer, size_t num_parts)
      : part_bytes_(std::max(kGranularity, buffer.bytes().size() / num_parts /
                                               kGranularity * kGranularity)) {
    const size_t bytes = part_bytes_ * num_parts;
    if (bytes > buffer.bytes().size()) {
      larger_ = std::make_unique<FusionBuffer>(bytes);
    }
    bytes_ = (larger_ ? *larger_ : buffer).bytes().first(bytes);
  }

  size_t part_bytes() const { return part_bytes_; }  // a multiple of 64
  absl::Span<std::byte> bytes() const { return bytes_; }

 private:
  static constexpr size_t kGranularity = 64;

  const size_t part_bytes_;
  std::unique_ptr<FusionBuffer> larger_;
  absl::Span<std::byte> bytes_;
};

}  // namespace hvdlite::collective
