// What every Communicator must do. A backend's test includes this once and
// instantiates the suite:
//
//   INSTANTIATE_TEST_SUITE_P(Mpi, CommunicatorConformance,
//                            ::testing::Values(MpiBackend()), BackendName);
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "collective/data_type.h"
#include "collective/reduce_op.h"
#include "tests/testing/element_values.h"
#include "tests/testing/reduction_reference.h"

namespace hvdlite::testing {

using collective::Communicator;

struct ConformanceBackend {
  std::string name;  // letters and digits
  // Makes a new world and runs the body on every rank of it that is in this
  // process, each with its communicator.
  std::function<void(const std::function<void(Communicator&)>& body)> run_ranks;
  // The backend notices when ranks call different things.
  bool detects_mismatches = false;
};

inline void PrintTo(const ConformanceBackend& backend, std::ostream* out) {
  *out << backend.name;
}

inline std::string BackendName(
    const ::testing::TestParamInfo<ConformanceBackend>& info) {
  return info.param.name;
}

inline std::vector<std::byte> BroadcastBytes(int root, size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>((i * 31 + root * 17 + i / 251) & 0xff);
  }
  return bytes;
}

// One Allreduce of Contribution()s against the reference.
inline void CheckAllreduce(Communicator& communicator, DataType dtype,
                           ReduceOp op, size_t count) {
  SCOPED_TRACE(::testing::Message()
               << std::string(NameOf(dtype)) << " " << std::string(NameOf(op))
               << " of " << count << " elements on rank "
               << communicator.rank());
  std::vector<std::byte> buffer =
      ContributionBytes(dtype, op, communicator.rank(), count);
  const absl::Status status =
      communicator.Allreduce(absl::MakeSpan(buffer), dtype, op);
  EXPECT_TRUE(status.ok()) << status;
  // Not EXPECT_EQ: it would print all the elements.
  EXPECT_TRUE(buffer ==
              ExpectedReduction(dtype, op, communicator.size(), count));
}

inline void CheckBroadcast(Communicator& communicator, int root, size_t count) {
  SCOPED_TRACE(::testing::Message() << count << " bytes from root " << root
                                    << " on rank " << communicator.rank());
  std::vector<std::byte> buffer(count);
  if (communicator.rank() == root) buffer = BroadcastBytes(root, count);
  const absl::Status status =
      communicator.Broadcast(absl::MakeSpan(buffer), root);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(buffer == BroadcastBytes(root, count));
}

inline const size_t kAwkwardCounts[] = {0, 1, 2, 3, 7, 64, 1000, 100003};

class CommunicatorConformance
    : public ::testing::TestWithParam<ConformanceBackend> {
 protected:
  void Run(const std::function<void(Communicator&)>& body) {
    GetParam().run_ranks(body);
  }
};

TEST_P(CommunicatorConformance, EveryTypeAndOperationMatchesTheReference) {
  Run([](Communicator& communicator) {
    for (const DataType dtype : AllDataTypes()) {
      for (const ReduceOp op : AllReduceOps()) {
        for (const size_t count : kAwkwardCounts) {
          CheckAllreduce(communicator, dtype, op, count);
        }
      }
    }
  });
}

TEST_P(CommunicatorConformance, IntegerSumsAndProductsWrapAround) {
  Run([](Communicator& communicator) {
    const auto check = [&](auto start, DataType dtype) {
      using T = decltype(start);
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProduct}) {
        uint64_t expected = static_cast<uint64_t>(start);
        for (int rank = 1; rank < communicator.size(); ++rank) {
          expected = op == ReduceOp::kSum
                         ? expected + static_cast<uint64_t>(start)
                         : expected * static_cast<uint64_t>(start);
        }
        std::vector<T> values(9, start);
        ASSERT_TRUE(communicator
                        .Allreduce(absl::MakeSpan(reinterpret_cast<std::byte*>(
                                                      values.data()),
                                                  values.size() * sizeof(T)),
                                   dtype, op)
                        .ok());
        EXPECT_THAT(values, ::testing::Each(static_cast<T>(expected)))
            << std::string(NameOf(dtype)) << " " << std::string(NameOf(op));
      }
    };
    check(std::numeric_limits<int32_t>::max() - 6, DataType::kInt32);
    check(std::numeric_limits<int64_t>::max() - 6, DataType::kInt64);
    check(std::numeric_limits<int64_t>::min() + 3, DataType::kInt64);
    check(uint8_t{251}, DataType::kUint8);
    check(int8_t{-125}, DataType::kInt8);
  });
}

TEST_P(CommunicatorConformance, NanOnOneRankReachesEveryRank) {
  Run([](Communicator& communicator) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const DataType dtype : AllDataTypes()) {
      if (!IsFloat(dtype)) continue;
      for (const ReduceOp op : AllReduceOps()) {
        // Rank r has it at index r; the last element has none.
        std::vector<double> values(communicator.size() + 1, 1.0);
        values[communicator.rank()] = nan;
        std::vector<std::byte> buffer = Encode(dtype, values);
        ASSERT_TRUE(
            communicator.Allreduce(absl::MakeSpan(buffer), dtype, op).ok());
        values = Decode(dtype, buffer);
        for (int i = 0; i < communicator.size(); ++i) {
          EXPECT_TRUE(std::isnan(values[i]))
              << std::string(NameOf(dtype)) << " " << std::string(NameOf(op))
              << " at " << i << ": " << values[i];
        }
        EXPECT_EQ(values.back(),
                  op == ReduceOp::kSum ? communicator.size() : 1.0);
      }
    }
  });
}

TEST_P(CommunicatorConformance, InfinitiesAreReducedAsSuch) {
  Run([](Communicator& communicator) {
    const double infinity = std::numeric_limits<double>::infinity();
    for (const DataType dtype : AllDataTypes()) {
      if (!IsFloat(dtype)) continue;
      const bool last = communicator.rank() == communicator.size() - 1;
      const std::vector<double> values = {last ? infinity : 2.0,
                                          last ? -infinity : 2.0};
      for (const ReduceOp op : AllReduceOps()) {
        std::vector<std::byte> buffer = Encode(dtype, values);
        ASSERT_TRUE(
            communicator.Allreduce(absl::MakeSpan(buffer), dtype, op).ok());
        const bool alone = communicator.size() == 1;
        EXPECT_THAT(Decode(dtype, buffer),
                    ::testing::ElementsAre(
                        op == ReduceOp::kMin && !alone ? 2.0 : infinity,
                        op == ReduceOp::kMax && !alone ? 2.0 : -infinity))
            << std::string(NameOf(dtype)) << " " << std::string(NameOf(op));
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

TEST_P(CommunicatorConformance, BarrierReturnsEveryTime) {
  Run([](Communicator& communicator) {
    for (int i = 0; i < 100; ++i) {
      const absl::Status status = communicator.Barrier();
      EXPECT_TRUE(status.ok()) << status;
    }
  });
}

TEST_P(CommunicatorConformance, MixedOperationsFollowOneAnother) {
  Run([](Communicator& communicator) {
    std::mt19937 random(99);  // the same choices on every rank
    const auto below = [&](int end) {
      return static_cast<int>(random() % end);
    };
    for (int i = 0; i < 300; ++i) {
      const size_t count = below(500);
      switch (below(4)) {
        case 0:
          CheckBroadcast(communicator, below(communicator.size()), count);
          break;
        case 1:
          EXPECT_TRUE(communicator.Barrier().ok());
          break;
        default:
          const auto dtype =
              static_cast<DataType>(below(collective::kNumDataTypes));
          const auto op =
              static_cast<ReduceOp>(below(collective::kNumReduceOps));
          CheckAllreduce(communicator, dtype, op, count);
      }
    }
  });
}

TEST_P(CommunicatorConformance, WrongArgumentsFailAndTheWorldStaysUsable) {
  Run([](Communicator& communicator) {
    alignas(8) std::byte storage[64] = {};
    const auto buffer = absl::MakeSpan(storage);
    const auto expect_invalid = [](const absl::Status& status,
                                   const std::string& text) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(text));
    };
    expect_invalid(communicator.Allreduce(buffer.first(6), DataType::kFloat32,
                                          ReduceOp::kSum),
                   "6 bytes are not a whole number of float32");
    expect_invalid(communicator.Allreduce(buffer.subspan(1, 8),
                                          DataType::kFloat64, ReduceOp::kSum),
                   "not aligned to 8 bytes");
    expect_invalid(communicator.Allreduce(buffer, static_cast<DataType>(77),
                                          ReduceOp::kSum),
                   "unknown data type 77");
    expect_invalid(communicator.Allreduce(buffer, DataType::kFloat32,
                                          static_cast<ReduceOp>(9)),
                   "unknown operation 9");
    expect_invalid(communicator.Broadcast(buffer, communicator.size()),
                   "is not one of the ranks");
    expect_invalid(communicator.Broadcast(buffer, -1),
                   "root -1 is not one of the ranks");
    CheckAllreduce(communicator, DataType::kInt32, ReduceOp::kSum, 10);
  });
}

TEST_P(CommunicatorConformance, DifferingCallsFailAlikeOnEveryRank) {
  if (!GetParam().detects_mismatches) {
    GTEST_SKIP() << "this backend does not detect differing calls";
  }
  Run([](Communicator& communicator) {
    if (communicator.size() == 1) return;
    const bool odd = communicator.rank() == 1;
    std::vector<std::byte> storage(64);
    const auto buffer = absl::MakeSpan(storage);
    const auto expect_mismatch = [&](const absl::Status& status,
                                     const std::string& of_others,
                                     const std::string& of_rank_1) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_THAT(std::string(status.message()),
                  ::testing::AllOf(::testing::HasSubstr(of_others),
                                   ::testing::HasSubstr(of_rank_1)));
      CheckAllreduce(communicator, DataType::kFloat32, ReduceOp::kSum, 3);
    };
    constexpr auto kF32 = DataType::kFloat32;
    expect_mismatch(
        odd ? communicator.Barrier() : communicator.Broadcast(buffer, 0),
        "called Broadcast of 64 bytes from root 0", "rank 1 called Barrier");
    expect_mismatch(communicator.Allreduce(
                        buffer, kF32, odd ? ReduceOp::kMax : ReduceOp::kSum),
                    "called Allreduce of 64 bytes float32 sum",
                    "rank 1 called Allreduce of 64 bytes float32 max");
    expect_mismatch(communicator.Allreduce(
                        buffer, odd ? DataType::kInt32 : kF32, ReduceOp::kSum),
                    "called Allreduce of 64 bytes float32 sum",
                    "rank 1 called Allreduce of 64 bytes int32 sum");
    expect_mismatch(communicator.Allreduce(buffer.first(odd ? 32 : 64), kF32,
                                           ReduceOp::kSum),
                    "called Allreduce of 64 bytes float32 sum",
                    "rank 1 called Allreduce of 32 bytes float32 sum");
    expect_mismatch(communicator.Broadcast(buffer, odd ? 1 : 0),
                    "called Broadcast of 64 bytes from root 0",
                    "rank 1 called Broadcast of 64 bytes from root 1");
    expect_mismatch(communicator.Broadcast(buffer.first(odd ? 0 : 64), 0),
                    "called Broadcast of 64 bytes from root 0",
                    "rank 1 called Broadcast of 0 bytes from root 0");
  });
}

}  // namespace hvdlite::testing
