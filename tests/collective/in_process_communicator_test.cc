#include "collective/in_process/in_process_communicator.h"

#include <atomic>
#include <memory>

#include "tests/testing/communicator_conformance.h"
#include "tests/testing/run_ranks.h"

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
