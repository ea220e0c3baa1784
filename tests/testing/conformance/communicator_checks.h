// Checks of single operations of a Communicator. Unless stated otherwise, all
// ranks call the same check with the same arguments. A check reports failures
// to GoogleTest.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "collective/kernels/data_type.h"
#include "tests/testing/conformance/element_values.h"
#include "tests/testing/conformance/reduction_reference.h"

namespace hvdlite::testing {

using collective::Communicator;

// Bytes that depend on their sender, their receiver and `seed`.
inline std::vector<std::byte> PatternBytes(int from, int to, int seed,
                                           size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(
        (i * 31 + from * 17 + to * 59 + seed * 101 + i / 251) & 0xff);
  }
  return bytes;
}

inline size_t Sum(const std::vector<size_t>& values) {
  return std::accumulate(values.begin(), values.end(), size_t{0});
}

inline void ExpectOk(const absl::Status& status) {
  EXPECT_TRUE(status.ok()) << status;
}

inline void ExpectInvalid(const absl::Status& status, const std::string& text) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(text));
}

// Checks one Allreduce of Contribution()s against the reference.
inline void CheckAllreduce(Communicator& communicator, DataType dtype,
                           ReduceOp op, size_t count) {
  SCOPED_TRACE(::testing::Message()
               << std::string(NameOf(dtype)) << " " << std::string(NameOf(op))
               << " of " << count << " elements on rank "
               << communicator.rank());
  std::vector<std::byte> buffer =
      ContributionBytes(dtype, op, communicator.rank(), count);
  ExpectOk(communicator.Allreduce(absl::MakeSpan(buffer), dtype, op));
  // EXPECT_EQ would print all elements.
  EXPECT_TRUE(buffer ==
              ExpectedReduction(dtype, op, communicator.size(), count));
}

inline void CheckBroadcast(Communicator& communicator, int root, size_t count,
                           int seed = 0) {
  SCOPED_TRACE(::testing::Message() << count << " bytes from root " << root
                                    << " on rank " << communicator.rank());
  const std::vector<std::byte> expected = PatternBytes(root, 0, seed, count);
  std::vector<std::byte> buffer(count);
  if (communicator.rank() == root) buffer = expected;
  ExpectOk(communicator.Broadcast(absl::MakeSpan(buffer), root));
  EXPECT_TRUE(buffer == expected);
}

inline void CheckAllgather(Communicator& communicator,
                           const std::vector<size_t>& bytes_of_rank,
                           int seed = 0) {
  SCOPED_TRACE(::testing::Message()
               << "parts " << ::testing::PrintToString(bytes_of_rank)
               << " on rank " << communicator.rank());
  std::vector<std::byte> buffer;
  std::vector<std::byte> expected;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const auto part = PatternBytes(rank, 0, seed, bytes_of_rank[rank]);
    expected.insert(expected.end(), part.begin(), part.end());
    if (rank == communicator.rank()) {
      buffer.insert(buffer.end(), part.begin(), part.end());
    } else {
      buffer.resize(buffer.size() + part.size());
    }
  }
  ExpectOk(communicator.Allgather(absl::MakeSpan(buffer), bytes_of_rank));
  EXPECT_TRUE(buffer == expected);
}

inline void CheckReduceScatter(Communicator& communicator, DataType dtype,
                               ReduceOp op,
                               const std::vector<size_t>& count_of_rank) {
  SCOPED_TRACE(::testing::Message()
               << std::string(NameOf(dtype)) << " " << std::string(NameOf(op))
               << " in parts of " << ::testing::PrintToString(count_of_rank)
               << " elements on rank " << communicator.rank());
  const size_t count = Sum(count_of_rank);
  std::vector<size_t> bytes_of_rank;
  for (const size_t part : count_of_rank) {
    bytes_of_rank.push_back(part * SizeOf(dtype));
  }
  std::vector<std::byte> buffer =
      ContributionBytes(dtype, op, communicator.rank(), count);
  ExpectOk(communicator.ReduceScatter(absl::MakeSpan(buffer), bytes_of_rank,
                                      dtype, op));
  const std::vector<std::byte> all =
      ExpectedReduction(dtype, op, communicator.size(), count);
  const auto begin =
      all.begin() + std::accumulate(bytes_of_rank.begin(),
                                    bytes_of_rank.begin() + communicator.rank(),
                                    ptrdiff_t{0});
  EXPECT_TRUE(std::equal(begin, begin + bytes_of_rank[communicator.rank()],
                         buffer.begin()));
}

// Rank r sends bytes[r][s] bytes to rank s.
inline void CheckAlltoall(Communicator& communicator,
                          const std::vector<std::vector<size_t>>& bytes,
                          int seed = 0) {
  SCOPED_TRACE(::testing::Message()
               << "sizes " << ::testing::PrintToString(bytes) << " on rank "
               << communicator.rank());
  const int self = communicator.rank();
  std::vector<std::byte> input;
  std::vector<std::byte> expected;
  std::vector<size_t> output_bytes;
  for (int peer = 0; peer < communicator.size(); ++peer) {
    const auto sent = PatternBytes(self, peer, seed, bytes[self][peer]);
    input.insert(input.end(), sent.begin(), sent.end());
    const auto received = PatternBytes(peer, self, seed, bytes[peer][self]);
    expected.insert(expected.end(), received.begin(), received.end());
    output_bytes.push_back(received.size());
  }
  std::vector<std::byte> output(expected.size());
  ExpectOk(communicator.Alltoall(input, bytes[self], absl::MakeSpan(output),
                                 output_bytes));
  EXPECT_TRUE(output == expected);
}

// Only the two ranks call this, each with the other as `peer`. The lower one
// sends `from_lower` bytes, the higher one `from_higher`.
inline void CheckExchange(Communicator& communicator, int peer,
                          size_t from_lower, size_t from_higher, int seed = 0) {
  const int self = communicator.rank();
  SCOPED_TRACE(::testing::Message()
               << from_lower << " and " << from_higher << " bytes between rank "
               << self << " and rank " << peer);
  const bool is_lower = self < peer;
  const std::vector<std::byte> send =
      PatternBytes(self, peer, seed, is_lower ? from_lower : from_higher);
  const std::vector<std::byte> expected =
      PatternBytes(peer, self, seed, is_lower ? from_higher : from_lower);
  std::vector<std::byte> receive(expected.size());
  ExpectOk(communicator.Exchange(peer, send, absl::MakeSpan(receive)));
  EXPECT_TRUE(receive == expected);
}

// Checks `count` operations of all kinds, chosen by `seed`, the same on every
// rank.
inline void CheckRandomOperations(Communicator& communicator, int seed,
                                  int count) {
  std::mt19937 random(seed);
  const auto below = [&](size_t end) {
    return static_cast<size_t>(random() % end);
  };
  const int size = communicator.size();
  const auto parts = [&] {
    std::vector<size_t> sizes(size);
    for (size_t& part : sizes) part = below(4) == 0 ? 0 : below(200);
    return sizes;
  };
  for (int i = 0; i < count; ++i) {
    const auto dtype = static_cast<DataType>(below(collective::kNumDataTypes));
    const auto op =
        OpOrSum(dtype, static_cast<ReduceOp>(below(collective::kNumReduceOps)));
    switch (below(7)) {
      case 0: {
        const int root = static_cast<int>(below(size));
        CheckBroadcast(communicator, root, below(500), seed + i);
        break;
      }
      case 1:
        ExpectOk(communicator.Barrier());
        break;
      case 2:
        CheckAllgather(communicator, parts(), seed + i);
        break;
      case 3:
        CheckReduceScatter(communicator, dtype, op, parts());
        break;
      case 4: {
        std::vector<std::vector<size_t>> bytes;
        for (int rank = 0; rank < size; ++rank) bytes.push_back(parts());
        CheckAlltoall(communicator, bytes, seed + i);
        break;
      }
      case 5: {
        // Pairs of ranks at a distance exchange; a rank without a partner does
        // nothing.
        const size_t from_lower = below(300);
        const size_t from_higher = below(300);
        const int distance = 1 + static_cast<int>(below(size));
        const bool is_lower = communicator.rank() / distance % 2 == 0;
        const int peer =
            communicator.rank() + (is_lower ? distance : -distance);
        if (peer < size) {
          CheckExchange(communicator, peer, from_lower, from_higher, seed + i);
        }
        break;
      }
      default:
        CheckAllreduce(communicator, dtype, op, below(500));
    }
  }
}

}  // namespace hvdlite::testing
