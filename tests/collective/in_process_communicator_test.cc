#include <atomic>
#include <latch>
#include <memory>

#include "tests/testing/conformance/communicator_conformance.h"
#include "tests/testing/in_process/in_process.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::testing {
namespace {

using collective::CreateInProcessWorld;
using ::testing::HasSubstr;

ConformanceBackend InProcessBackend(int size) {
  return {.name = "Ranks" + std::to_string(size),
          .run_ranks = [size](const std::function<void(Communicator&)>& body) {
            RunInProcessRanks(size, body);
          }};
}

INSTANTIATE_TEST_SUITE_P(InProcess, CommunicatorConformance,
                         ::testing::Values(InProcessBackend(1),
                                           InProcessBackend(2),
                                           InProcessBackend(3),
                                           InProcessBackend(4),
                                           InProcessBackend(8)),
                         BackendName);

// In this program, since each program with the suite must compile it.
INSTANTIATE_TEST_SUITE_P(
    SingleRank, CommunicatorConformance,
    ::testing::Values(ConformanceBackend{
        .name = "Alone",
        .run_ranks =
            [](const std::function<void(Communicator&)>& body) {
              body(*collective::CreateSingleRankCommunicator());
            }}),
    BackendName);

TEST(InProcessCommunicatorTest, ReducesInRankOrder) {
  // (1e8 + 1) - 1e8 is 0 in float32, while (1e8 - 1e8) + 1 is 1.
  const float of_rank[] = {1e8f, 1.0f, -1e8f, 3.0f};
  RunInProcessRanks(4, [&](Communicator& communicator) {
    float value = of_rank[communicator.rank()];
    ASSERT_TRUE(
        communicator
            .Allreduce(absl::MakeSpan(reinterpret_cast<std::byte*>(&value), 4),
                       DataType::kFloat32, ReduceOp::kSum)
            .ok());
    EXPECT_EQ(value, 3.0f);
  });
}

TEST(InProcessCommunicatorTest, BarrierEndsOnlyAfterAllRanksHaveEntered) {
  std::atomic<int> entered{0};
  RunInProcessRanks(4, [&](Communicator& communicator) {
    for (int round = 1; round <= 200; ++round) {
      entered.fetch_add(1);
      ASSERT_TRUE(communicator.Barrier().ok());
      EXPECT_GE(entered.load(), 4 * round);
      ASSERT_TRUE(communicator.Barrier().ok());
    }
  });
}

TEST(InProcessCommunicatorTest, ReduceScatterReducesInRankOrder) {
  const float of_rank[] = {1e8f, 1.0f, -1e8f, 3.0f};
  RunInProcessRanks(4, [&](Communicator& communicator) {
    std::vector<float> values(4, of_rank[communicator.rank()]);
    ExpectOk(communicator.ReduceScatter(
        absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()), 16),
        {4, 4, 4, 4}, DataType::kFloat32, ReduceOp::kSum));
    EXPECT_EQ(values[0], 3.0f);
  });
}

TEST(InProcessCommunicatorTest, PairsDoNotWaitForOtherPairs) {
  std::latch low_pair_is_done(2);
  RunInProcessRanks(4, [&](Communicator& communicator) {
    // Rank 2 waits for rank 3, which comes only after ranks 0 and 1 are done.
    if (communicator.rank() == 3) low_pair_is_done.wait();
    CheckExchange(communicator, communicator.rank() ^ 1, 10, 20);
    if (communicator.rank() < 2) low_pair_is_done.count_down();
  });
}

TEST(InProcessCommunicatorTest, PairsDoNotNeedOtherRanks) {
  auto world = CreateInProcessWorld(3);
  world[2].reset();
  RunRanks(2, [&](int rank) { CheckExchange(*world[rank], 1 - rank, 3, 4); });
}

TEST(InProcessCommunicatorTest, ExchangeEndsWhenThePeerIsDestroyed) {
  auto world = CreateInProcessWorld(3);
  std::latch is_broken(1);
  RunRanks(3, [&](int rank) {
    if (rank == 1) {
      world[1].reset();
    } else if (rank == 0) {
      const absl::Status status = world[0]->Exchange(1, {}, {});
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
      EXPECT_EQ(std::string(status.message()),
                "Exchange: the communicator of rank 1 of 3 is gone");
      is_broken.count_down();
    } else {
      is_broken.wait();
      EXPECT_EQ(world[2]->Exchange(0, {}, {}).code(),
                absl::StatusCode::kUnavailable);
    }
  });
}

TEST(InProcessCommunicatorTest, BrokenWorldEndsEveryWait) {
  auto world = CreateInProcessWorld(5);
  // Ranks 0 and 1 wait for operations without rank 4, ranks 2 and 3 for
  // operations that need it.
  RunRanks(5, [&](int rank) {
    absl::Status status;
    if (rank == 4) {
      world[4].reset();
      return;
    }
    if (rank == 0) {
      status = world[0]->Exchange(3, {}, {});
    } else if (rank == 1) {
      status = world[1]->CreateSubgroup({1, 2}, 0).status();
    } else {
      status = world[rank]->Barrier();
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(std::string(status.message()),
              "Barrier: the communicator of rank 4 of 5 is gone");
  });
}

TEST(InProcessCommunicatorTest, DifferentCallsAreAnErrorOnEveryRank) {
  constexpr auto kFloat32 = DataType::kFloat32;
  constexpr auto kSum = ReduceOp::kSum;
  using Bytes = absl::Span<std::byte>;
  using Call =
      std::function<absl::Status(Communicator&, Bytes buffer, Bytes output)>;
  const std::vector<size_t> equal = {8, 8, 8};
  const std::vector<size_t> shifted = {12, 4, 8};
  const auto barrier = [](Communicator& c, Bytes, Bytes) {
    return c.Barrier();
  };
  const auto broadcast = [](size_t bytes, int root) {
    return [=](Communicator& c, Bytes buffer, Bytes) {
      return c.Broadcast(buffer.first(bytes), root);
    };
  };
  const auto allreduce = [](size_t bytes, DataType dtype, ReduceOp op) {
    return [=](Communicator& c, Bytes buffer, Bytes) {
      return c.Allreduce(buffer.first(bytes), dtype, op);
    };
  };
  const auto scatter = [](const std::vector<size_t>& parts, DataType dtype,
                          ReduceOp op) {
    return [=](Communicator& c, Bytes buffer, Bytes) {
      return c.ReduceScatter(buffer, parts, dtype, op);
    };
  };
  const auto gather = [](const std::vector<size_t>& parts) {
    return [=](Communicator& c, Bytes buffer, Bytes) {
      return c.Allgather(buffer, parts);
    };
  };
  const auto alltoall = [](const std::vector<size_t>& parts) {
    return [=](Communicator& c, Bytes buffer, Bytes output) {
      return c.Alltoall(buffer, parts, output, parts);
    };
  };
  const auto subgroup = [](int tag) {
    return [=](Communicator& c, Bytes, Bytes) {
      return c.CreateSubgroup({0, 1, 2}, tag).status();
    };
  };
  // A circle: each rank waits for another one that waits for a third.
  const auto exchange = [](Communicator& c, Bytes buffer, Bytes output) {
    return c.Exchange((c.rank() + 1) % 3, buffer, output);
  };
  // The call of rank 1, and the call of the others.
  const std::pair<Call, Call> cases[] = {
      {barrier, broadcast(24, 0)},
      {broadcast(24, 1), broadcast(24, 0)},
      {broadcast(0, 0), broadcast(24, 0)},
      {allreduce(24, kFloat32, ReduceOp::kMax), allreduce(24, kFloat32, kSum)},
      {allreduce(24, DataType::kInt32, kSum), allreduce(24, kFloat32, kSum)},
      {allreduce(12, kFloat32, kSum), allreduce(24, kFloat32, kSum)},
      {allreduce(24, kFloat32, kSum), scatter(equal, kFloat32, kSum)},
      {scatter(shifted, kFloat32, kSum), scatter(equal, kFloat32, kSum)},
      {scatter(equal, DataType::kInt32, kSum), scatter(equal, kFloat32, kSum)},
      {scatter(equal, kFloat32, ReduceOp::kMin),
       scatter(equal, kFloat32, kSum)},
      {gather(shifted), gather(equal)},
      {alltoall(shifted), alltoall(equal)},
      {barrier, alltoall(equal)},
      {subgroup(1), subgroup(0)},
      {barrier, subgroup(0)},
      {exchange, exchange},
      {exchange, barrier}};
  for (size_t i = 0; i < std::size(cases); ++i) {
    SCOPED_TRACE(i);
    RunInProcessRanks(3, [&](Communicator& communicator) {
      std::vector<std::byte> buffer(24), output(24);
      const auto& [odd, others] = cases[i];
      const absl::Status status = (communicator.rank() == 1 ? odd : others)(
          communicator, absl::MakeSpan(buffer), absl::MakeSpan(output));
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
          << i << ": " << status;
      CheckRandomOperations(communicator, /*seed=*/2, /*count=*/3);
    });
  }
}

TEST(InProcessCommunicatorTest, WrongArgumentsOfOneRankFailOnEveryRank) {
  RunInProcessRanks(3, [](Communicator& communicator) {
    alignas(4) std::byte storage[9] = {};
    // Rank 2's buffer is not aligned; otherwise the calls are alike.
    const absl::Status status = communicator.Allreduce(
        absl::MakeSpan(storage + (communicator.rank() == 2 ? 1 : 0), 8),
        DataType::kFloat32, ReduceOp::kSum);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("not aligned"));
    CheckAllreduce(communicator, DataType::kFloat32, ReduceOp::kSum, 5);
  });
}

TEST(InProcessCommunicatorTest, WaitEndsWhenAMissingRankIsDestroyed) {
  auto world = CreateInProcessWorld(3);
  RunRanks(3, [&](int rank) {
    if (rank == 1) {
      world[1].reset();
      return;
    }
    const absl::Status status = world[rank]->Barrier();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("the communicator of rank 1 of 3 is gone"));
    EXPECT_EQ(world[rank]->Barrier(), status);
  });
}

// Subgroups of `members`, created by one thread per member; null on errors.
std::vector<std::unique_ptr<Communicator>> CreateSubgroups(
    const std::vector<std::unique_ptr<Communicator>>& world,
    const std::vector<int>& members) {
  std::vector<std::unique_ptr<Communicator>> subgroups(members.size());
  RunRanks(static_cast<int>(members.size()), [&](int index) {
    auto subgroup = world[members[index]]->CreateSubgroup(members, /*tag=*/0);
    if (subgroup.ok()) subgroups[index] = *std::move(subgroup);
  });
  return subgroups;
}

TEST(InProcessCommunicatorTest, DestroyedSubgroupOfOneRankEndsTheWaitInIt) {
  const auto world = CreateInProcessWorld(4);
  const auto outer = CreateSubgroups(world, {1, 2, 3});
  auto inner = CreateSubgroups(outer, {1, 2});
  RunRanks(2, [&](int rank) {
    if (rank == 1) {
      inner[1].reset();
      return;
    }
    const absl::Status status = inner[0]->Barrier();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(std::string(status.message()),
              "Barrier: the communicator of rank 1 of 2 is gone (counted in "
              "the subgroup of ranks 2, 3)");
  });
  RunRanks(3, [&](int rank) { ExpectOk(outer[rank]->Barrier()); });
  RunRanks(4, [&](int rank) { ExpectOk(world[rank]->Barrier()); });
}

TEST(InProcessCommunicatorTest, MismatchInASubgroupNamesItsRanks) {
  const auto world = CreateInProcessWorld(3);
  const auto pair = CreateSubgroups(world, {0, 2});
  RunRanks(2, [&](int rank) {
    ExpectInvalid(rank == 0 ? pair[0]->Barrier() : pair[1]->Broadcast({}, 0),
                  "(counted in the subgroup of ranks 0, 2)");
    CheckRandomOperations(*pair[rank], /*seed=*/1, /*count=*/10);
  });
}

TEST(InProcessCommunicatorTest, RankMayBeDestroyedAfterTheLastOperation) {
  for (int round = 0; round < 50; ++round) {
    auto world = CreateInProcessWorld(4);
    RunRanks(4, [&](int rank) {
      EXPECT_TRUE(world[rank]->Barrier().ok());
      world[rank].reset();
    });
  }
}

}  // namespace
}  // namespace hvdlite::testing
