// Memory that negotiation leaves behind: the allocated bytes do not grow with
// the number of operations, names, process sets, joins or optimizers.
#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "negotiation/protocol/decision_maker.h"
#include "negotiation/protocol/negotiator.h"
#include "tests/testing/fakes/negotiation_requests.h"
#include "tests/testing/worlds/coordinated_world.h"
#include "tests/testing/worlds/sim_world.h"

namespace {

std::atomic<int64_t> allocated_bytes{0};

void* Allocate(size_t bytes) {
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  allocated_bytes += static_cast<int64_t>(malloc_usable_size(memory));
  return memory;
}

void Free(void* memory) {
  allocated_bytes -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes); }
void* operator new[](size_t bytes) { return Allocate(bytes); }
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t) noexcept { Free(memory); }
void operator delete[](void* memory, size_t) noexcept { Free(memory); }

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::AddSet;
using hvdlite::testing::Gradient;
using hvdlite::testing::SimWorld;

Negotiator::Options Forgetting(uint64_t max_idle_uses) {
  Negotiator::Options options;
  options.max_idle_uses = max_idle_uses;
  return options;
}

Request Sum(const std::string& name, int64_t elements = 16) {
  return Gradient(absl::StrCat("a name that is no short string ", name),
                  elements);
}

// Returns how many more bytes are allocated after ten times as much work.
int64_t GrowthOf(const std::function<void(int i)>& work, int count) {
  int i = 0;
  for (; i < count; ++i) work(i);
  const int64_t before = allocated_bytes;
  for (; i < 10 * count; ++i) work(i);
  return allocated_bytes - before;
}

int64_t GrowthIn(SimWorld& world, const std::function<void(int i)>& work,
                 int count) {
  return GrowthOf(
      [&](int i) {
        work(i);
        world.ForgetDone();
      },
      count);
}

// This is less than one byte for each item below. Hash tables double at times.
constexpr int64_t kNothing = 16384;

TEST(NegotiationMemoryTest, UnusedNamesLeaveNothing) {
  for (const int uses : {1, 2, 5}) {
    SimWorld world({3}, Forgetting(64));
    const int64_t growth = GrowthIn(
        world,
        [&](int name) {
          for (int i = 0; i < uses; ++i) world.Run(Sum(absl::StrCat(name)));
        },
        400);
    EXPECT_LT(growth, kNothing) << uses << " uses of 3,600 names";
  }
}

TEST(NegotiationMemoryTest, AlternatingNamesTakeBoundedMemory) {
  SimWorld world({2}, Forgetting(64));
  uint64_t next = 1;
  const int64_t growth = GrowthIn(
      world,
      [&](int) {
        next = next * 6364136223846793005 + 1442695040888963407;
        world.Run(Sum(absl::StrCat((next >> 33) % 200)));
      },
      1000);
  EXPECT_LT(growth, kNothing);
}

TEST(NegotiationMemoryTest, RequestsOfOneNameTakeBoundedMemory) {
  SimWorld world({2}, Forgetting(64));
  const int64_t growth = GrowthIn(
      world,
      [&](int i) {
        for (int use = 0; use < 3; ++use) world.Run(Sum("one", i));
      },
      400);
  EXPECT_LT(growth, kNothing);
}

TEST(NegotiationMemoryTest,
     SingleUseOperationsLeaveNothingWhileARankHasJoined) {
  SimWorld world({3}, Forgetting(64));
  const int64_t growth = GrowthIn(
      world,
      [&](int i) {
        if (i % 20 == 0) world.Join(2);
        world.Run(Sum(absl::StrCat(i)), {0, 1});
        if (i % 20 != 19) return;
        for (const int rank : {0, 1}) world.Join(rank);
        world.Settle();
      },
      400);
  EXPECT_LT(growth, kNothing);
}

TEST(NegotiationMemoryTest, RemovedProcessSetsLeaveNothing) {
  SimWorld world({4}, Forgetting(1 << 20));
  const int64_t growth = GrowthIn(
      world,
      [&](int i) {
        world.Run(AddSet({1, 3}));
        Request sum = Sum("of the set");
        sum.process_set = static_cast<ProcessSetId>(i + 1);
        for (int use = 0; use < 3; ++use) world.Run(sum, {1, 3});
        world.SubmitRemoval(sum.process_set);
        world.Settle();
      },
      400);
  EXPECT_LT(growth, kNothing);
}

TEST(NegotiationMemoryTest, FailuresLeaveNothing) {
  SimWorld world({3}, Forgetting(64));
  const int64_t growth = GrowthIn(
      world,
      [&](int i) {
        for (int use = 0; use < 3; ++use) {
          for (int rank = 0; rank < 3; ++rank) {
            world.SubmitUrgently(rank,
                                 Sum(absl::StrCat(i), use == 2 ? rank + 1 : 1));
          }
          world.Settle();
        }
      },
      400);
  EXPECT_LT(growth, kNothing);
}

TEST(NegotiationMemoryTest, GroupThatIsNeverEmptyTakesBoundedMemory) {
  BucketPlanner planner(/*fusion_threshold_bytes=*/64, /*min_batch_bytes=*/64);
  const Request request = Sum("of one bucket");
  TensorSlot slot;
  slot.present = true;
  planner.Add(slot, request, /*with_root=*/true);
  const int64_t growth = GrowthOf(
      [&](int) {
        planner.Add(slot, request, /*with_root=*/true);
        EXPECT_TRUE(planner.Next(/*root_is_idle=*/true).has_value());
        EXPECT_FALSE(planner.empty());
      },
      400);
  EXPECT_LT(growth, kNothing);
}

// These are like the names of an optimizer that the ranks destroy at different
// times.
TEST(NegotiationMemoryTest, ReleasedNamesLeaveNothing) {
  SimWorld world({5}, Forgetting(1 << 20));
  const int64_t growth = GrowthIn(
      world,
      [&](int i) {
        const auto name = [&](int parameter) {
          return absl::StrCat(i, ".", parameter);
        };
        for (int step = 0; step < 3; ++step) {
          for (int parameter = 0; parameter < 10; ++parameter) {
            world.Run(Sum(name(parameter)));
          }
        }
        for (int rank = 0; rank < world.size(); ++rank) {
          for (int parameter = 0; parameter < 10; ++parameter) {
            world.Release(rank, Sum(name(parameter)).name);
          }
          if (rank % 2 == i % 2) world.Run(Sum("something else"));
        }
        world.Run(Sum("something else"));
      },
      20);
  EXPECT_LT(growth, kNothing) << "180 optimizers of 10 parameters";
}

// The root and a rank of a world of 1,024.
TEST(NegotiationMemoryTest, LargeWorldForgetsNames) {
  SimWorld world({1024, 1, 8}, Forgetting(8));
  const int64_t growth = GrowthIn(
      world,
      [&](int name) {
        for (int i = 0; i < 2; ++i) world.Run(Sum(absl::StrCat(name)));
      },
      10);
  EXPECT_LT(growth, 1024 * 512) << "half a name per rank, after 90";
}

// ---- With coordinators.

TEST(NegotiationMemoryTest, DestroyedPersistentOperationsLeaveNothing) {
  constexpr int kOperations = 40;
  testing::CoordinatedWorld world(2);
  std::vector<float> values(2 * kOperations);
  const auto sum = [&](int rank, const Request& request) {
    Operation operation;
    operation.request = request;
    const size_t bytes = request.tensors[0].shape[0] * sizeof(float);
    auto* const data = reinterpret_cast<std::byte*>(&values[rank]);
    operation.inputs = {absl::MakeConstSpan(data, bytes)};
    operation.outputs = {absl::MakeSpan(data, bytes)};
    return operation;
  };
  const auto run = [&](int i, int rank) {
    Coordinator& coordinator = world[rank];
    std::vector<PersistentPtr> persistent;
    for (int parameter = 0; parameter < kOperations; ++parameter) {
      persistent.push_back(
          coordinator
              .MakePersistent(
                  sum(rank, Sum(absl::StrCat(i, ".", parameter), 1)))
              .value());
    }
    for (int step = 0; step < 3; ++step) {
      ASSERT_TRUE(coordinator.SubmitPersistent(persistent, true).ok());
      for (const PersistentPtr& one : persistent) {
        ASSERT_TRUE(coordinator.Wait(*one).ok());
      }
    }
    persistent.clear();
    // The following operations exchange the news between the ranks.
    for (int use = 0; use < 4; ++use) {
      auto done = coordinator.Submit(sum(rank, Sum("something else", 1)));
      ASSERT_TRUE(done.ok());
      ASSERT_TRUE(coordinator.Wait(**done).ok());
    }
  };
  const int64_t growth = GrowthOf(
      [&](int i) { world.OnEveryRank([&](int rank) { run(i, rank); }); }, 10);
  EXPECT_LT(growth, 4 * kNothing) << "90 times 40 operations of two ranks";
}

}  // namespace
}  // namespace hvdlite::negotiation
