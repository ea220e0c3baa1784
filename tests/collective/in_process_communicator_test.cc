#include <atomic>
#include <latch>
#include <memory>

#include "tests/testing/conformance/communicator_conformance.h"
#include "tests/testing/in_process/in_process.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::testing {
namespace {

using collective::CreateInProcessWorld;
using collective::InProcessOptions;
using ::testing::HasSubstr;

ConformanceBackend InProcessBackend(int size) {
  return {.name = "Ranks" + std::to_string(size),
          .run_ranks =
              [size](const std::function<void(Communicator&)>& body) {
                RunInProcessRanks(size, body);
              },
          .detects_mismatches = true};
}

INSTANTIATE_TEST_SUITE_P(InProcess, CommunicatorConformance,
                         ::testing::Values(InProcessBackend(1),
                                           InProcessBackend(2),
                                           InProcessBackend(3),
                                           InProcessBackend(4),
                                           InProcessBackend(8)),
                         BackendName);

// Not in a program of its own, since each compiles the suite.
INSTANTIATE_TEST_SUITE_P(
    SingleRank, CommunicatorConformance,
    ::testing::Values(ConformanceBackend{
        .name = "Alone",
        .run_ranks =
            [](const std::function<void(Communicator&)>& body) {
              body(*collective::CreateSingleRankCommunicator());
            },
        .detects_mismatches = true}),
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

TEST(InProcessCommunicatorTest, NobodyLeavesABarrierBeforeAllHaveEntered) {
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
    // Rank 2 waits for rank 3, which does not come until ranks 0 and 1 are
    // done.
    if (communicator.rank() == 3) low_pair_is_done.wait();
    CheckExchange(communicator, communicator.rank() ^ 1, 10, 20);
    if (communicator.rank() < 2) low_pair_is_done.count_down();
  });
}

TEST(InProcessCommunicatorTest, PairsDoNotNeedRanksThatAreGone) {
  auto world = CreateInProcessWorld(3);
  world[2].reset();
  RunRanks(2, [&](int rank) { CheckExchange(*world[rank], 1 - rank, 3, 4); });
}

TEST(InProcessCommunicatorTest, ExchangeEndsWhenThePeerIsGone) {
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
  // Ranks 0 and 1 wait for something that rank 4 has no part in, ranks 2 and 3
  // for something that it should take part in.
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

TEST(InProcessCommunicatorTest, RanksThatWaitForDifferentThingsAreAllTold) {
  auto world = CreateInProcessWorld(4);
  RunRanks(4, [&](int rank) {
    if (rank == 3) {
      world[3].reset();  // nobody waits for it
      return;
    }
    // In a circle.
    ExpectInvalid(world[rank]->Exchange((rank + 1) % 3, {}, {}),
                  "rank 0 called Exchange of ranks 0, 1; rank 1 called "
                  "Exchange of ranks 1, 2; rank 2 called Exchange of ranks 0, "
                  "2");
  });
}

TEST(InProcessCommunicatorTest, WrongArgumentsOfOneRankFailOnEveryRank) {
  RunInProcessRanks(3, [](Communicator& communicator) {
    alignas(4) std::byte storage[9] = {};
    // Rank 2's buffer is not aligned; the calls are alike otherwise.
    const absl::Status status = communicator.Allreduce(
        absl::MakeSpan(storage + (communicator.rank() == 2 ? 1 : 0), 8),
        DataType::kFloat32, ReduceOp::kSum);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("not aligned"));
    CheckAllreduce(communicator, DataType::kFloat32, ReduceOp::kSum, 5);
  });
}

TEST(InProcessCommunicatorTest, DeadlineNamesTheMissingRanksAndBreaksTheWorld) {
  // Nobody waits at all, so the first rank to call finds the others missing.
  const auto world =
      CreateInProcessWorld(4, {.deadline = absl::ZeroDuration()});
  std::vector<std::byte> buffer(4);
  const absl::Status status = world[2]->Allreduce(
      absl::MakeSpan(buffer), DataType::kFloat32, ReduceOp::kSum);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(std::string(status.message()),
            "Allreduce: ranks 0, 1, 3 of 4 did not arrive within 0");
  for (const auto& communicator : world) {
    EXPECT_EQ(communicator->Barrier(), status);
    EXPECT_EQ(communicator->Broadcast(absl::MakeSpan(buffer), 0), status);
  }
}

TEST(InProcessCommunicatorTest, DeadlineEndsTheWaitOfAllWhoArrived) {
  const auto world =
      CreateInProcessWorld(3, {.deadline = absl::Milliseconds(1)});
  RunRanks(2, [&](int rank) {
    const absl::Status status = world[rank]->Barrier();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(
        std::string(status.message()),
        ::testing::AnyOf("Barrier: rank 2 of 3 did not arrive within 1ms",
                         // The other one was late, too.
                         "Barrier: ranks 0, 2 of 3 did not arrive within 1ms",
                         "Barrier: ranks 1, 2 of 3 did not arrive within 1ms"));
  });
}

TEST(InProcessCommunicatorTest, DeadlineThatIsMetDoesNoHarm) {
  RunInProcessRanks(3,
                    [](Communicator& communicator) {
                      for (int i = 0; i < 100; ++i) {
                        CheckAllreduce(communicator, DataType::kFloat32,
                                       ReduceOp::kSum, 9);
                      }
                    },
                    {.deadline = absl::Hours(1)});
}

TEST(InProcessCommunicatorTest, WaitingEndsWhenAMissingRankIsDestroyed) {
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

TEST(InProcessCommunicatorTest, ExchangeAndSubgroupsMeetTheDeadlineOrFail) {
  for (const bool exchange : {false, true}) {
    const auto world =
        CreateInProcessWorld(4, {.deadline = absl::ZeroDuration()});
    const absl::Status status =
        exchange ? world[2]->Exchange(0, {}, {})
                 : world[2]->CreateSubgroup({0, 2, 3}, 0).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(std::string(status.message()),
              exchange
                  ? "Exchange: rank 0 of 4 did not arrive within 0"
                  : "CreateSubgroup: ranks 0, 3 of 4 did not arrive within 0");
    EXPECT_EQ(world[1]->Barrier(), status);
  }
}

// Subgroups of `members`, made by a thread per member; null where that fails.
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

TEST(InProcessCommunicatorTest, DeadlineOfASubgroupBreaksNothingElse) {
  // As short as it can be without spoiling the making of the subgroups.
  absl::Duration deadline = absl::Milliseconds(1);
  auto world = CreateInProcessWorld(3, {.deadline = deadline});
  auto pair = CreateSubgroups(world, {0, 2});
  while (pair[0] == nullptr || pair[1] == nullptr) {
    deadline *= 2;
    pair.clear();
    world = CreateInProcessWorld(3, {.deadline = deadline});
    pair = CreateSubgroups(world, {0, 2});
  }
  const absl::Status status = pair[0]->Barrier();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(std::string(status.message()),
            "Barrier: rank 1 of 2 did not arrive within " +
                absl::FormatDuration(deadline) +
                " (counted in the subgroup of ranks 0, 2)");
  EXPECT_EQ(pair[1]->Barrier(), status);
  // Needs nobody else, but a world that is whole.
  ExpectOk(world[0]->CreateSubgroup({0}, /*tag=*/0).status());
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
                  "rank 0 called Barrier; rank 1 called Broadcast of 0 bytes "
                  "from root 0 (counted in the subgroup of ranks 0, 2)");
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
