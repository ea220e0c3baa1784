// The requirements for every Communicator concerning buffers with parts, and
// pairs of ranks. communicator_conformance.h includes this.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "tests/testing/conformance/communicator_checks.h"
#include "tests/testing/conformance/communicator_suite.h"

namespace hvdlite::testing {

// Sizes of parts for some number of ranks: empty, equal, a single part, uneven
// ones with zeros, and large.
inline std::vector<std::vector<size_t>> AwkwardParts(int size) {
  const size_t n = size;
  std::vector<std::vector<size_t>> all = {std::vector<size_t>(n, 0),
                                          std::vector<size_t>(n, 1),
                                          std::vector<size_t>(n, 64)};
  for (const size_t alone : {size_t{0}, n - 1}) {
    all.emplace_back(n, 0)[alone] = 13;
  }
  std::vector<size_t> uneven;
  std::vector<size_t> large;
  for (size_t rank = 0; rank < n; ++rank) {
    uneven.push_back((rank + 2) * 5 % 3 * 7);
    large.push_back(rank == 1 ? 0 : 20011 - 3001 * (rank % 5));
  }
  all.push_back(uneven);
  all.push_back(large);
  return all;
}

TEST_P(CommunicatorConformance, AllgatherGivesEveryPartToEveryRank) {
  Run([](Communicator& communicator) {
    for (const auto& parts : AwkwardParts(communicator.size())) {
      CheckAllgather(communicator, parts);
    }
  });
}

TEST_P(CommunicatorConformance, ReduceScatterOfEveryTypeMatchesTheReference) {
  Run([](Communicator& communicator) {
    for (const auto& parts : AwkwardParts(communicator.size())) {
      for (const DataType dtype : DataTypesToTry()) {
        for (const ReduceOp op : ReduceOpsOf(dtype)) {
          CheckReduceScatter(communicator, dtype, op, parts);
        }
      }
    }
  });
}

TEST_P(CommunicatorConformance, AlltoallGivesEveryRankItsPartOfEveryOther) {
  Run([](Communicator& communicator) {
    const int size = communicator.size();
    for (const auto& parts : AwkwardParts(size)) {
      // All send the same sizes; all receive the same sizes; every pair has its
      // own size.
      std::vector<std::vector<size_t>> by_receiver(size, parts);
      std::vector<std::vector<size_t>> by_sender;
      std::vector<std::vector<size_t>> by_pair(size);
      for (int from = 0; from < size; ++from) {
        by_sender.emplace_back(size, parts[from]);
        for (int to = 0; to < size; ++to) {
          by_pair[from].push_back(parts[(from + 2 * to) % size] + from);
        }
      }
      CheckAlltoall(communicator, by_receiver);
      CheckAlltoall(communicator, by_sender);
      CheckAlltoall(communicator, by_pair);
    }
  });
}

TEST_P(CommunicatorConformance, EveryPairCanExchangeAlone) {
  Run([](Communicator& communicator) {
    const int self = communicator.rank();
    const size_t sizes[][2] = {{1, 1},    {0, 0},   {0, 9},
                               {1000, 0}, {7, 300}, {20011, 5003}};
    for (int low = 0; low < communicator.size(); ++low) {
      for (int high = low + 1; high < communicator.size(); ++high) {
        if (self != low && self != high) continue;
        for (const auto& [from_lower, from_higher] : sizes) {
          CheckExchange(communicator, self == low ? high : low, from_lower,
                        from_higher);
        }
      }
    }
  });
}

TEST_P(CommunicatorConformance, WrongPartsFailAndTheWorldStaysUsable) {
  Run([](Communicator& communicator) {
    const size_t n = communicator.size();
    std::vector<std::byte> storage(8 * n);
    std::vector<std::byte> other(8 * n);
    const auto buffer = absl::MakeSpan(storage);
    const auto output = absl::MakeSpan(other);
    const std::vector<size_t> eights(n, 8);
    const std::vector<size_t> fours(n, 4);
    const std::vector<size_t> too_many(n + 1, 0);
    ExpectInvalid(communicator.Allgather(buffer, fours),
                  "do not add up to the " + std::to_string(8 * n) + " bytes");
    if (n > 1) {
      // The sum is correct only because it overflows.
      std::vector<size_t> overflowing(n, 0);
      overflowing[0] = 8 * n + 1;
      overflowing[1] = ~size_t{0};
      ExpectInvalid(communicator.Allgather(buffer, overflowing),
                    "do not add up");
    }
    ExpectInvalid(communicator.Allgather({}, too_many),
                  std::to_string(n + 1) + " parts are given, but there are " +
                      std::to_string(n) + " ranks");
    CheckAllgather(communicator, eights);

    constexpr auto kFloat32 = DataType::kFloat32;
    constexpr auto kSum = ReduceOp::kSum;
    ExpectInvalid(communicator.ReduceScatter(buffer, fours, kFloat32, kSum),
                  "ReduceScatter: parts of 4");
    ExpectInvalid(communicator.ReduceScatter({}, too_many, kFloat32, kSum),
                  "parts are given");
    ExpectInvalid(communicator.ReduceScatter(buffer, eights,
                                             static_cast<DataType>(77), kSum),
                  "ReduceScatter: unknown data type 77");
    ExpectInvalid(communicator.ReduceScatter(buffer, eights, kFloat32,
                                             static_cast<ReduceOp>(9)),
                  "ReduceScatter: unknown operation 9");
    if (n > 1) {
      std::vector<size_t> torn(n, 8);
      torn[0] -= 2;
      torn[1] += 2;
      ExpectInvalid(communicator.ReduceScatter(buffer, torn, kFloat32, kSum),
                    "a part of 6 bytes is not a whole number of float32");
    }
    CheckReduceScatter(communicator, kFloat32, kSum, eights);

    ExpectInvalid(communicator.Alltoall(buffer, fours, output, eights),
                  "Alltoall's input: parts of 4");
    ExpectInvalid(communicator.Alltoall(buffer, eights, output, fours),
                  "Alltoall's output: parts of 4");
    ExpectInvalid(communicator.Alltoall({}, too_many, output, eights),
                  "parts are given");
    ExpectInvalid(
        communicator.Alltoall(buffer, eights, output.first(4 * n), fours),
        "sends 8 bytes to itself, but expects 4");
    CheckAlltoall(communicator, {n, eights});

    ExpectInvalid(communicator.Exchange(communicator.rank(), buffer, output),
                  "names itself as its peer");
    ExpectInvalid(communicator.Exchange(-1, buffer, output),
                  "peer -1 is not one of the ranks");
    ExpectInvalid(communicator.Exchange(communicator.size(), buffer, output),
                  "is not one of the ranks 0 to " + std::to_string(n - 1));
    ExpectOk(communicator.Barrier());
  });
}

}  // namespace hvdlite::testing
