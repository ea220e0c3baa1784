#include <sys/resource.h>

#include <algorithm>
#include <memory>
#include <string>

#include "collective/communicator.h"
#include "collective/shm/shared_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/worlds/forked_rank.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::collective {
namespace {

using hvdlite::testing::ForkedRank;
using hvdlite::testing::RunInProcessRanks;
using ::testing::HasSubstr;

std::byte MarkOf(int writer, int segment) {
  return static_cast<std::byte>(10 * writer + segment + 1);
}

// Every rank writes to every segment, and checks what the others wrote.
bool SegmentsAreShared(Communicator& node, const NodeMemory& memory) {
  const auto place = [&](int writer, int segment) -> std::byte& {
    return memory.segment(segment)[memory.segment(segment).size() - 1 -
                                   static_cast<size_t>(writer)];
  };
  for (int segment = 0; segment < memory.size(); ++segment) {
    place(memory.rank(), segment) = MarkOf(memory.rank(), segment);
  }
  if (!AgreeOn(node, absl::OkStatus()).ok()) return false;
  bool all = true;
  for (int segment = 0; segment < memory.size(); ++segment) {
    for (int writer = 0; writer < memory.size(); ++writer) {
      all = all && place(writer, segment) == MarkOf(writer, segment);
    }
  }
  return all;
}

TEST(NodeMemoryTest, ThreadsShareTheirSegments) {
  for (const int size : {1, 2, 5}) {
    RunInProcessRanks(size, [&](Communicator& node) {
      const auto memory = NodeMemory::Create(node, 10'000);
      ASSERT_TRUE(memory.ok()) << memory.status();
      EXPECT_EQ((*memory)->rank(), node.rank());
      EXPECT_EQ((*memory)->size(), size);
      for (int rank = 0; rank < size; ++rank) {
        EXPECT_GE((*memory)->segment(rank).size(), 10'000U);
      }
      EXPECT_TRUE(SegmentsAreShared(node, **memory));
    });
  }
}

TEST(NodeMemoryTest, ProcessesShareTheirSegments) {
  ForkedRank peer([](Communicator& node) {
    const auto memory = NodeMemory::Create(node, 10'000);
    ForkedRank::Require(memory.ok(), "memory is available");
    ForkedRank::Require(SegmentsAreShared(node, **memory),
                        "every rank sees all writes");
  });
  const auto memory = NodeMemory::Create(peer.communicator(), 10'000);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_TRUE(SegmentsAreShared(peer.communicator(), **memory));
  EXPECT_TRUE(peer.WaitForEnd());
}

TEST(NodeMemoryTest, MemoryOutlivesTheRankThatReservedIt) {
  ForkedRank peer([](Communicator& node) {
    const auto memory = NodeMemory::Create(node, 1).value();
    memory->segment(1)[0] = std::byte{42};
  });
  const auto memory = NodeMemory::Create(peer.communicator(), 1);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_TRUE(peer.WaitForEnd());
  EXPECT_EQ((*memory)->segment(1)[0], std::byte{42});
}

TEST(NodeMemoryTest, LackOfMemoryOnOneRankIsAnErrorOnAllRanks) {
  RunInProcessRanks(3, [&](Communicator& node) {
    const size_t bytes = node.rank() == 1 ? size_t{1} << 63 : 1;
    const absl::Status status = NodeMemory::Create(node, bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1: "));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("9223372036854775808 bytes"));
  });
}

// Rank 1 can reserve its memory but cannot open that of rank 0.
TEST(NodeMemoryTest, MemoryThatOneRankCannotOpenIsAnErrorOnAllRanks) {
  const auto expect_error = [](const absl::Status& status) {
    return absl::IsUnavailable(status) &&
           std::string(status.message()).find("rank 1: cannot open /proc/") ==
               0;
  };
  ForkedRank peer([&](Communicator& node) {
    // The next descriptor will be the memory's.
    const int next = dup(0);
    close(next);
    const rlimit limit = {static_cast<rlim_t>(next) + 1,
                          static_cast<rlim_t>(next) + 1};
    setrlimit(RLIMIT_NOFILE, &limit);
    ForkedRank::Require(expect_error(NodeMemory::Create(node, 1).status()),
                        "rank 1 returns the error");
  });
  const absl::Status status =
      NodeMemory::Create(peer.communicator(), 1).status();
  EXPECT_TRUE(expect_error(status)) << status;
  EXPECT_TRUE(peer.WaitForEnd());
}

}  // namespace
}  // namespace hvdlite::collective
