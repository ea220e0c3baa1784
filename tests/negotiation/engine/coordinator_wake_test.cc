// Submissions that a rank does not wait for reach the others in time, although
// the background thread is not woken for every small tensor.
#include <cstddef>
#include <latch>
#include <memory>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "gtest/gtest.h"
#include "negotiation/engine/coordinator.h"
#include "tests/testing/fakes/fake_communicator.h"
#include "tests/testing/fakes/sum_operation.h"
#include "tests/testing/worlds/coordinated_world.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::BytesOf;
using hvdlite::testing::CoordinatedWorld;
using hvdlite::testing::SubmitAndWait;
using hvdlite::testing::Sum;
using Values = std::vector<float>;

// Without a heartbeat, nothing wakes up by itself.
CoordinatorOptions WithoutHeartbeat() {
  CoordinatorOptions options;
  options.config.heartbeat_seconds = 0;
  options.config.stall_warning_seconds = 0;
  return options;
}

// Blocks outside hvdlite until the operation is done.
void SubmitAndLookOn(Coordinator& coordinator, Operation operation) {
  std::latch done(1);
  operation.done = [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    done.count_down();
  };
  ASSERT_TRUE(coordinator.Submit(std::move(operation)).ok());
  done.wait();
}

class CoordinatorWakeTest : public ::testing::TestWithParam<int> {};

TEST_P(CoordinatorWakeTest, OneRankWaitsForAllOthers) {
  CoordinatedWorld world(GetParam(), WithoutHeartbeat());
  world.OnEveryRank([&](int rank) {
    for (int i = 0; i < 100; ++i) {
      Values values(1, 1);
      if (rank == i % GetParam()) {
        ASSERT_TRUE(SubmitAndWait(world[rank], Sum("x", values)).ok());
      } else {
        SubmitAndLookOn(world[rank], Sum("x", values));
      }
      EXPECT_EQ(values.front(), static_cast<float>(GetParam()));
    }
  });
}

// A thread that has waited leaves no work behind that only it knew of.
TEST_P(CoordinatorWakeTest, OthersWaitForSubmissionsAfterAWait) {
  CoordinatedWorld world(GetParam(), WithoutHeartbeat());
  world.OnEveryRank([&](int rank) {
    for (int i = 0; i < 200; ++i) {
      Values a(1, 1), b(1, 2);
      if (rank == i % GetParam()) {
        const auto first = world[rank].Submit(Sum("a", a));
        ASSERT_TRUE(first.ok());
        ASSERT_TRUE(SubmitAndWait(world[rank], Sum("b", b)).ok());
        ASSERT_TRUE(world[rank].Wait(**first).ok());
      } else {
        ASSERT_TRUE(SubmitAndWait(world[rank], Sum("a", a)).ok());
        SubmitAndLookOn(world[rank], Sum("b", b));
      }
      EXPECT_EQ(a.front(), static_cast<float>(GetParam()));
      EXPECT_EQ(b.front(), static_cast<float>(2 * GetParam()));
    }
  });
}

TEST_P(CoordinatorWakeTest, UnknownNumbersOfRowsNeedNoWaiter) {
  CoordinatedWorld world(GetParam(), WithoutHeartbeat());
  world.OnEveryRank([&](int rank) {
    for (int i = 0; i < 5; ++i) {
      Values own(2, static_cast<float>(rank));
      Values all;
      Operation gather;
      gather.request.name = "rows";
      gather.request.collective = Collective::kAllgather;
      gather.request.tensors = {{.shape = {kAnyLength}}};
      gather.rows = {2};
      gather.inputs = {BytesOf(own)};
      gather.allocate = [&](const RowsByMember&) -> absl::StatusOr<Outputs> {
        all.resize(2 * GetParam());
        return Outputs({BytesOf(all)});
      };
      SubmitAndLookOn(world[rank], std::move(gather));
      EXPECT_EQ(all.back(), static_cast<float>(GetParam() - 1));
    }
  });
}

// This also holds if the others submitted it long ago, and no thread waits.
TEST_P(CoordinatorWakeTest, OperationsReadyOnAllRanksRunBeforeARankLeaves) {
  for (int steps = 1; steps < 5; ++steps) {  // from the third on it has an id
    CoordinatedWorld world(GetParam(), WithoutHeartbeat());
    std::vector<Values> values(GetParam(), Values(1, 1));
    world.OnEveryRank([&](int rank) {
      for (int i = 1; i < steps; ++i) {
        Values before(1, 1);
        ASSERT_TRUE(SubmitAndWait(world[rank], Sum("x", before)).ok());
      }
    });
    std::vector<std::shared_ptr<const Completion>> completions;
    for (int rank = 0; rank < GetParam(); ++rank) {
      completions.push_back(world[rank].Submit(Sum("x", values[rank])).value());
    }
    world[steps % GetParam()].Leave("it is done");
    for (int rank = 0; rank < GetParam(); ++rank) {
      const absl::Status status = world[rank].Wait(*completions[rank]);
      EXPECT_TRUE(status.ok()) << "rank " << rank << ": " << status;
      EXPECT_EQ(values[rank].front(), static_cast<float>(GetParam()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, CoordinatorWakeTest,
                         ::testing::Values(2, 3, 12));

// Data that a broadcast's root has sent leaves its process in the second call
// after it.
class LazyCommunicator final : public hvdlite::testing::ForwardingCommunicator {
 public:
  // The link from rank 0 to rank 1.
  struct Link {
    std::vector<std::byte> bytes;
    int calls_until_sent = 0;  // calls of rank 0
    std::counting_semaphore<> awaited{0};
    std::binary_semaphore sent{0};
  };
  LazyCommunicator(std::unique_ptr<collective::Communicator> inner, Link& link)
      : ForwardingCommunicator(std::move(inner)), link_(link) {}

  absl::Status Broadcast(absl::Span<std::byte> buffer, int root) override {
    if (rank() == root) {
      link_.bytes.assign(buffer.begin(), buffer.end());
      link_.calls_until_sent = 2;
      has_called_ = true;
    } else {
      link_.awaited.release();
      link_.sent.acquire();
      absl::c_copy(link_.bytes, buffer.begin());
    }
    return absl::OkStatus();
  }
  void MakeProgress() override {
    if (rank() == 0 && --link_.calls_until_sent == 0) link_.sent.release();
  }
  bool TakeCalls() override { return std::exchange(has_called_, false); }

 private:
  Link& link_;
  bool has_called_ = false;
};

class LazyTransportTest : public ::testing::Test {
 protected:
  // Returns on rank 1 when it has the values of rank 0.
  static void Broadcast(CoordinatedWorld& world, int rank) {
    Values values(1, rank == 0 ? 7 : 0);
    Operation broadcast = Sum("b", values);
    broadcast.request.collective = Collective::kBroadcast;
    ASSERT_TRUE(SubmitAndWait(world[rank], std::move(broadcast)).ok());
    EXPECT_EQ(values.front(), 7);
  }

  LazyCommunicator::Link link_;
  const CoordinatedWorld::Wrap lazy_ =
      [this](int, std::unique_ptr<collective::Communicator> inner) {
        return std::make_unique<LazyCommunicator>(std::move(inner), link_);
      };
};

TEST_F(LazyTransportTest, QueuedDataIsSentWhileTheSenderWaits) {
  CoordinatedWorld world(2, WithoutHeartbeat(), nullptr, lazy_);
  world.OnEveryRank([&](int rank) {
    for (int i = 0; i < 20; ++i) {
      Broadcast(world, rank);
      Values values(1, 1);
      ASSERT_TRUE(SubmitAndWait(world[rank], Sum("x", values)).ok());
    }
  });
}

TEST_F(LazyTransportTest, QueuedDataIsSentWhileTheSenderComputes) {
  CoordinatedWorld world(2, WithoutHeartbeat(), nullptr, lazy_);
  std::binary_semaphore received(0);
  world.OnEveryRank([&](int rank) {
    for (int i = 0; i < 20; ++i) {
      Broadcast(world, rank);
      if (rank == 1) {
        received.release();
      } else {
        received.acquire();
      }
    }
  });
}

TEST_F(LazyTransportTest, QueuedDataIsSentBeforeTheSenderGivesUp) {
  const base::FakeClock clock;  // no time passes between calls
  CoordinatedWorld world(2, WithoutHeartbeat(), &clock, lazy_);
  world.OnEveryRank([&](int rank) {
    Broadcast(world, rank);
    if (rank == 1) return;
    link_.awaited.acquire();
    const absl::Status late = world[rank].Shutdown(
        "it gives up", /*timeout=*/absl::ZeroDuration(), {});
    EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  });
}

}  // namespace
}  // namespace hvdlite::negotiation
