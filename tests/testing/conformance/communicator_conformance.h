// The requirements for every Communicator. A backend's test includes this once
// and instantiates the suite:
//
//   INSTANTIATE_TEST_SUITE_P(Mpi, CommunicatorConformance,
//                            ::testing::Values(MpiBackend()), BackendName);
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "collective/communicator.h"
#include "collective/kernels/data_type.h"
#include "tests/testing/conformance/communicator_checks.h"
#include "tests/testing/conformance/communicator_partition_conformance.h"
#include "tests/testing/conformance/communicator_subgroup_conformance.h"
#include "tests/testing/conformance/communicator_suite.h"
#include "tests/testing/conformance/element_values.h"
#include "tests/testing/conformance/reduction_reference.h"

namespace hvdlite::testing {

// The ways to reduce: in one call; beside the caller; in parts that are then
// gathered.
using ReduceEverywhere = std::function<absl::Status(
    Communicator&, absl::Span<std::byte>, DataType, ReduceOp)>;

inline absl::Status ReduceInParts(Communicator& communicator,
                                  absl::Span<std::byte> buffer, DataType dtype,
                                  ReduceOp op) {
  const size_t count = buffer.size() / SizeOf(dtype);
  const size_t size = communicator.size();
  const size_t rank = communicator.rank();
  std::vector<size_t> bytes(size, count / size * SizeOf(dtype));
  bytes.back() += count % size * SizeOf(dtype);
  std::vector<std::byte> copy(buffer.begin(), buffer.end());
  HVDLITE_RETURN_IF_ERROR(
      communicator.ReduceScatter(absl::MakeSpan(copy), bytes, dtype, op));
  std::copy_n(copy.begin(), bytes[rank], buffer.begin() + rank * bytes[0]);
  return communicator.Allgather(buffer, bytes);
}

// Ends the oldest allreduce in progress.
inline absl::Status EndAllreduce(Communicator& communicator) {
  for (;;) {
    HVDLITE_ASSIGN_OR_RETURN(const auto headway,
                             communicator.AdvanceAllreduces());
    if (headway == collective::Headway::kDone) return absl::OkStatus();
  }
}

inline absl::Status ReduceBeside(Communicator& communicator,
                                 absl::Span<std::byte> buffer, DataType dtype,
                                 ReduceOp op) {
  HVDLITE_RETURN_IF_ERROR(communicator.StartAllreduce(buffer, dtype, op));
  return EndAllreduce(communicator);
}

inline std::vector<ReduceEverywhere> WaysToReduce() {
  return {[](Communicator& communicator, absl::Span<std::byte> buffer,
             DataType dtype,
             ReduceOp op) { return communicator.Allreduce(buffer, dtype, op); },
          ReduceBeside, ReduceInParts};
}

inline const size_t kAwkwardCounts[] = {0, 1, 2, 3, 7, 64, 1000, 100003};

TEST_P(CommunicatorConformance, EveryTypeAndOperationMatchesTheReference) {
  Run([](Communicator& communicator) {
    for (const DataType dtype : DataTypesToTry()) {
      for (const ReduceOp op : ReduceOpsOf(dtype)) {
        for (const size_t count : kAwkwardCounts) {
          CheckAllreduce(communicator, dtype, op, count);
        }
      }
    }
  });
}

TEST_P(CommunicatorConformance, ConcurrentAllreducesEndInTheirOrder) {
  Run([](Communicator& communicator) {
    constexpr int kBuffers = 20;
    constexpr size_t kCount = 100003;
    const size_t at_once =
        communicator.allreduces_at_once(kCount * sizeof(int32_t));
    const auto value_of = [](int rank, int buffer, size_t i) {
      return static_cast<int32_t>(i) * (rank + 1) + buffer;
    };
    std::vector<std::vector<int32_t>> buffers(kBuffers);
    int begun = 0;
    for (int ended = 0; ended < kBuffers; ++ended) {
      while (begun < kBuffers && static_cast<size_t>(begun - ended) < at_once) {
        std::vector<int32_t>& values = buffers[static_cast<size_t>(begun)];
        values.resize(kCount);
        for (size_t i = 0; i < kCount; ++i) {
          values[i] = value_of(communicator.rank(), begun, i);
        }
        ++begun;
        ExpectOk(communicator.StartAllreduce(
            absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()),
                           kCount * sizeof(int32_t)),
            DataType::kInt32, ReduceOp::kSum));
      }
      ExpectOk(EndAllreduce(communicator));
      for (size_t i = 0; i < kCount; ++i) {
        int32_t sum = 0;
        for (int rank = 0; rank < communicator.size(); ++rank) {
          sum += value_of(rank, ended, i);
        }
        ASSERT_EQ(buffers[static_cast<size_t>(ended)][i], sum)
            << "buffer " << ended << " element " << i;
      }
    }
  });
}

TEST_P(CommunicatorConformance, IntegerSumsAndProductsWrapAround) {
  Run([](Communicator& communicator) {
    const auto check = [&](const ReduceEverywhere& reduce, auto start,
                           DataType dtype) {
      using T = decltype(start);
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProduct}) {
        uint64_t expected = static_cast<uint64_t>(start);
        for (int rank = 1; rank < communicator.size(); ++rank) {
          expected = op == ReduceOp::kSum
                         ? expected + static_cast<uint64_t>(start)
                         : expected * static_cast<uint64_t>(start);
        }
        // This is enough for the loops over whole vector registers.
        std::vector<T> values(1009, start);
        ExpectOk(
            reduce(communicator,
                   absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()),
                                  values.size() * sizeof(T)),
                   dtype, op));
        EXPECT_THAT(values, ::testing::Each(static_cast<T>(expected)))
            << std::string(NameOf(dtype)) << " " << std::string(NameOf(op));
      }
    };
    for (const ReduceEverywhere& reduce : WaysToReduce()) {
      check(reduce, std::numeric_limits<int32_t>::max() - 6, DataType::kInt32);
      check(reduce, std::numeric_limits<int64_t>::max() - 6, DataType::kInt64);
      check(reduce, std::numeric_limits<int64_t>::min() + 3, DataType::kInt64);
      check(reduce, uint8_t{251}, DataType::kUint8);
      check(reduce, int8_t{-125}, DataType::kInt8);
      check(reduce, int16_t{32767 - 6}, DataType::kInt16);
      check(reduce, uint16_t{65535 - 4}, DataType::kUint16);
      check(reduce, ~uint32_t{0} - 4, DataType::kUint32);
      check(reduce, ~uint64_t{0} - 4, DataType::kUint64);
    }
  });
}

TEST_P(CommunicatorConformance, MinimaAndMaximaSpanTheRangeOfEveryInteger) {
  Run([](Communicator& communicator) {
    const auto check = [&]<typename T>(const ReduceEverywhere& reduce,
                                       DataType dtype, T) {
      using Limits = std::numeric_limits<T>;
      // The largest value and the smallest in turn, moved by the rank's number.
      const auto value_of = [](int rank, size_t i) {
        const auto moved = static_cast<T>(rank);
        return static_cast<T>((i + rank) % 2 == 0 ? Limits::max() - moved
                                                  : Limits::lowest() + moved);
      };
      for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
        std::vector<T> values(1009);
        std::vector<T> expected(values.size());
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] = value_of(communicator.rank(), i);
          expected[i] = value_of(0, i);
          for (int rank = 1; rank < communicator.size(); ++rank) {
            const T other = value_of(rank, i);
            expected[i] = op == ReduceOp::kMin ? std::min(expected[i], other)
                                               : std::max(expected[i], other);
          }
        }
        ExpectOk(
            reduce(communicator,
                   absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()),
                                  values.size() * sizeof(T)),
                   dtype, op));
        EXPECT_TRUE(values == expected)
            << std::string(NameOf(dtype)) << " " << std::string(NameOf(op));
      }
    };
    for (const ReduceEverywhere& reduce : WaysToReduce()) {
      for (const DataType dtype : DataTypesToTry()) {
        collective::VisitElementType(dtype, [&](auto element) {
          if constexpr (std::is_integral_v<decltype(element)>) {
            check(reduce, dtype, element);
          }
        });
      }
    }
  });
}

TEST_P(CommunicatorConformance, NanOnOneRankReachesEveryRank) {
  Run([](Communicator& communicator) {
    const auto check = [&](const ReduceEverywhere& reduce, DataType dtype,
                           ReduceOp op) {
      // Rank r has it at index r; the last element has none.
      std::vector<double> values(communicator.size() + 1, 1.0);
      values[communicator.rank()] = std::numeric_limits<double>::quiet_NaN();
      std::vector<std::byte> buffer = Encode(dtype, values);
      ExpectOk(reduce(communicator, absl::MakeSpan(buffer), dtype, op));
      values = Decode(dtype, buffer);
      for (int i = 0; i < communicator.size(); ++i) {
        EXPECT_TRUE(std::isnan(values[i]))
            << std::string(NameOf(dtype)) << " " << std::string(NameOf(op))
            << " at " << i << ": " << values[i];
      }
      EXPECT_EQ(values.back(),
                op == ReduceOp::kSum ? communicator.size() : 1.0);
    };
    for (const ReduceEverywhere& reduce : WaysToReduce()) {
      for (const DataType dtype : DataTypesToTry()) {
        if (!Rounds(dtype)) continue;
        for (const ReduceOp op : ReduceOpsOf(dtype)) check(reduce, dtype, op);
      }
    }
  });
}

TEST_P(CommunicatorConformance, InfinitiesStayInfinite) {
  Run([](Communicator& communicator) {
    const double infinity = std::numeric_limits<double>::infinity();
    const bool alone = communicator.size() == 1;
    const bool last = communicator.rank() == communicator.size() - 1;
    const std::vector<double> values = {last ? infinity : 2.0,
                                        last ? -infinity : 2.0};
    const auto check = [&](const ReduceEverywhere& reduce, DataType dtype,
                           ReduceOp op) {
      std::vector<std::byte> buffer = Encode(dtype, values);
      ExpectOk(reduce(communicator, absl::MakeSpan(buffer), dtype, op));
      EXPECT_THAT(Decode(dtype, buffer),
                  ::testing::ElementsAre(
                      op == ReduceOp::kMin && !alone ? 2.0 : infinity,
                      op == ReduceOp::kMax && !alone ? 2.0 : -infinity))
          << std::string(NameOf(dtype)) << " " << std::string(NameOf(op));
    };
    for (const ReduceEverywhere& reduce : WaysToReduce()) {
      for (const DataType dtype : DataTypesToTry()) {
        if (!Rounds(dtype)) continue;
        for (const ReduceOp op : ReduceOpsOf(dtype)) check(reduce, dtype, op);
      }
    }
  });
}

TEST_P(CommunicatorConformance, AllRanksGetTheSameBits) {
  Run([](Communicator& communicator) {
    std::mt19937 random(1234 + communicator.rank());
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> values(10007);
    for (float& value : values) value = uniform(random);
    const auto buffer =
        absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()),
                       values.size() * sizeof(float));
    ASSERT_TRUE(
        communicator.Allreduce(buffer, DataType::kFloat32, ReduceOp::kSum)
            .ok());
    std::vector<std::byte> of_rank_0(buffer.begin(), buffer.end());
    ASSERT_TRUE(communicator.Broadcast(absl::MakeSpan(of_rank_0), 0).ok());
    EXPECT_TRUE(buffer == absl::MakeSpan(of_rank_0));
  });
}

TEST_P(CommunicatorConformance, BroadcastReachesAllFromEveryRoot) {
  Run([](Communicator& communicator) {
    for (int root = 0; root < communicator.size(); ++root) {
      for (const size_t count : kAwkwardCounts) {
        CheckBroadcast(communicator, root, count);
      }
    }
  });
}

TEST_P(CommunicatorConformance, BarrierCanBeRepeated) {
  Run([](Communicator& communicator) {
    for (int i = 0; i < 100; ++i) ExpectOk(communicator.Barrier());
  });
}

TEST_P(CommunicatorConformance, MixedOperationsFollowOneAnother) {
  Run([](Communicator& communicator) {
    CheckRandomOperations(communicator, /*seed=*/99, /*count=*/600);
  });
}

TEST_P(CommunicatorConformance, WrongArgumentsFailAndTheWorldStaysUsable) {
  Run([](Communicator& communicator) {
    alignas(8) std::byte storage[64] = {};
    const auto buffer = absl::MakeSpan(storage);
    ExpectInvalid(communicator.Allreduce(buffer.first(6), DataType::kFloat32,
                                         ReduceOp::kSum),
                  "6 bytes are not a whole number of float32");
    ExpectInvalid(communicator.Allreduce(buffer.subspan(1, 8),
                                         DataType::kFloat64, ReduceOp::kSum),
                  "not aligned to 8 bytes");
    ExpectInvalid(communicator.Allreduce(buffer, static_cast<DataType>(77),
                                         ReduceOp::kSum),
                  "unknown data type 77");
    ExpectInvalid(communicator.Allreduce(buffer, DataType::kFloat32,
                                         static_cast<ReduceOp>(9)),
                  "unknown operation 9");
    ExpectInvalid(
        communicator.Allreduce(buffer, DataType::kComplex64, ReduceOp::kMax),
        "complex64 has no max");
    ExpectInvalid(communicator.Broadcast(buffer, communicator.size()),
                  "is not one of the ranks");
    ExpectInvalid(communicator.Broadcast(buffer, -1),
                  "root -1 is not one of the ranks");
    CheckAllreduce(communicator, DataType::kInt32, ReduceOp::kSum, 10);
  });
}

}  // namespace hvdlite::testing
