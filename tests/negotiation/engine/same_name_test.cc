// Operations of one name that are submitted before the previous one has ended.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <latch>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fakes/negotiation_requests.h"
#include "tests/testing/fakes/sum_operation.h"
#include "tests/testing/unless_sanitized.h"
#include "tests/testing/worlds/coordinated_world.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::AddSet;
using hvdlite::testing::BytesOf;
using hvdlite::testing::CoordinatedWorld;
using hvdlite::testing::SubmitAndWait;
using hvdlite::testing::Sum;
using ::testing::Each;
using ::testing::HasSubstr;
using Values = std::vector<float>;
using CompletionPtr = std::shared_ptr<const Completion>;

constexpr int kSeeds = hvdlite::testing::UnlessSanitized(24, 6);

// Operation k of a name has a length of its own, so that it cannot be confused
// with another one.
constexpr int kNames = 4;
constexpr int kPerName = 7;
size_t LengthOf(int name, int k) { return 1 + name + 5 * k; }

class SameNameTest : public ::testing::TestWithParam<int> {};

TEST_P(SameNameTest, TheKthSubmissionsOfAllRanksBelongTogether) {
  const int size = GetParam();
  for (int seed = 0; seed < kSeeds; ++seed) {
    CoordinatorOptions options;
    options.config.min_batch_bytes = seed % 3 == 0   ? 0
                                     : seed % 3 == 1 ? 100
                                                     : 4 << 20;
    options.config.tree_arity = 2;
    CoordinatedWorld world(size, options);
    world.OnEveryRank([&](int rank) {
      std::mt19937 random(seed * 100 + rank);
      // Some submissions use a persistent operation, which has to be done
      // before its next submission.
      std::vector<PersistentPtr> persistent(kNames);
      std::vector<std::vector<Values>> values(kNames);
      std::vector<CompletionPtr> completions;
      for (int name = 0; name < kNames; ++name) values[name].resize(kPerName);
      std::vector<int> order;  // indices of names
      for (int i = 0; i < kNames * kPerName; ++i) order.push_back(i % kNames);
      std::shuffle(order.begin(), order.end(), random);
      std::vector<int> next(kNames);
      for (const int name : order) {
        const int k = next[name]++;
        Values& mine = values[name][k];
        mine.assign(LengthOf(name, k), static_cast<float>(k + 1));
        Operation operation = Sum(absl::StrCat("name", name), mine);
        if (random() % 3 == 0) {
          PersistentPtr& again = persistent[name];
          if (again == nullptr) {
            again = world[rank].MakePersistent(std::move(operation)).value();
          } else if (again->done()) {
            ASSERT_TRUE(again
                            ->Load(operation.request, false, {BytesOf(mine)},
                                   {BytesOf(mine)}, nullptr)
                            .ok());
          } else {
            completions.push_back(
                world[rank].Submit(std::move(operation)).value());
            continue;
          }
          ASSERT_TRUE(world[rank].SubmitPersistent({again}, false).ok());
        } else {
          completions.push_back(
              world[rank].Submit(std::move(operation)).value());
        }
      }
      std::shuffle(completions.begin(), completions.end(), random);
      for (const CompletionPtr& completion : completions) {
        ASSERT_TRUE(world[rank].Wait(*completion).ok()) << completion->status();
      }
      for (const PersistentPtr& one : persistent) {
        if (one == nullptr) continue;
        ASSERT_TRUE(world[rank].Wait(*one).ok()) << one->status();
      }
      for (int name = 0; name < kNames; ++name) {
        for (int k = 0; k < kPerName; ++k) {
          ASSERT_THAT(values[name][k], Each(static_cast<float>((k + 1) * size)))
              << "name " << name << ", submission " << k << ", seed " << seed;
        }
      }
    });
    ASSERT_FALSE(HasFailure());
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, SameNameTest, ::testing::Values(1, 2, 3, 6));

TEST(SameNameErrorTest, MismatchFailsOnlyOneOfThem) {
  constexpr int kCount = 6;
  constexpr int kWrong = 3;
  CoordinatedWorld world(3);
  world.OnEveryRank([&](int rank) {
    std::vector<Values> values(kCount);
    std::vector<CompletionPtr> completions;
    for (int k = 0; k < kCount; ++k) {
      const bool wrong = k == kWrong && rank == 1;
      values[k].assign(k + (wrong ? 100 : 1), 1);
      completions.push_back(world[rank].Submit(Sum("x", values[k])).value());
    }
    for (int k = kCount - 1; k >= 0; --k) {
      const absl::Status status = world[rank].Wait(*completions[k]);
      if (k == kWrong) {
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
        EXPECT_THAT(std::string(status.message()),
                    HasSubstr("[4] on ranks 0, 2; [103] on rank 1"));
      } else {
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_THAT(values[k], Each(3));
      }
    }
  });
}

TEST(SameNameErrorTest, WaitingForTheLastFinishesTheOthers) {
  CoordinatorOptions options;
  options.config.min_batch_bytes =
      1 << 20;  // nothing starts unless a thread waits
  Values values[2][4];
  std::vector<CompletionPtr> completions;
  CoordinatedWorld world(2, options);
  for (int k = 0; k < 4; ++k) {
    for (int rank = 0; rank < 2; ++rank) {
      values[rank][k].assign(k + 1, 1);
      auto submitted = world[rank].Submit(Sum("x", values[rank][k]));
      ASSERT_TRUE(submitted.ok()) << submitted.status();
      if (rank == 1) completions.push_back(*submitted);
    }
  }
  ASSERT_TRUE(world[1].Wait(*completions[3]).ok());
  for (int k = 0; k < 4; ++k) {
    EXPECT_TRUE(completions[k]->done()) << k;
    EXPECT_THAT(values[1][k], Each(2));
  }
}

TEST(SameNameErrorTest, LargeOneStartsWithoutAWaiter) {
  CoordinatorOptions options;
  options.config.min_batch_bytes = 400;
  for (int size = 1; size <= 3; ++size) {
    std::vector<Values> small(size, Values(1, 1));
    std::vector<Values> large(size, Values(200, 1));
    std::latch done(size);
    CoordinatedWorld world(size, options);
    world.OnEveryRank([&](int rank) {
      const auto first = world[rank].Submit(Sum("x", small[rank]));
      ASSERT_TRUE(first.ok()) << first.status();
      Operation second = Sum("x", large[rank]);
      second.done = [&](const absl::Status&) { done.count_down(); };
      ASSERT_TRUE(world[rank].Submit(std::move(second)).ok());
      EXPECT_TRUE(world[rank].Wait(**first).ok());
    });
    done.wait();
    EXPECT_THAT(large[0], Each(static_cast<float>(size)));
  }
}

TEST(SameNameErrorTest, AllFailWhenARankLeaves) {
  Values values[3] = {{1}, {1}, {1}};
  std::atomic<int> failed{0};
  CoordinatedWorld world(2);
  std::vector<CompletionPtr> completions;
  for (Values& one : values) {
    Operation operation = Sum("x", one);
    operation.done = [&](const absl::Status& status) {
      failed += absl::IsUnavailable(status) ? 1 : 0;
    };
    auto submitted = world[0].Submit(std::move(operation));
    ASSERT_TRUE(submitted.ok()) << submitted.status();
    completions.push_back(*submitted);
  }
  world[1].Leave("out of disk space");
  for (const CompletionPtr& completion : completions) {
    EXPECT_EQ(world[0].Wait(*completion).code(),
              absl::StatusCode::kUnavailable);
  }
  EXPECT_EQ(failed, 3);
}

TEST(SameNameErrorTest, AllFailWhenTheirProcessSetIsRemoved) {
  CoordinatedWorld world(2);
  world.OnEveryRank([&](int rank) {
    Operation add;
    add.request = AddSet({0, 1});
    const auto added = world[rank].Submit(std::move(add)).value();
    ASSERT_TRUE(world[rank].Wait(*added).ok());
    const auto set = static_cast<ProcessSetId>(added->value());
    Values values[3] = {{1}, {1}, {1}};
    Values world_values = {1};
    std::vector<CompletionPtr> completions;
    int failed = 0;
    for (Values& one : values) {
      if (rank == 0) continue;
      Operation operation = Sum("x", one);
      operation.request.process_set = set;
      operation.done = [&](const absl::Status& status) {
        failed += status.ok() ? 0 : 1;
      };
      auto submitted = world[rank].Submit(std::move(operation));
      ASSERT_TRUE(submitted.ok()) << submitted.status();
      completions.push_back(*submitted);
    }
    Operation remove;
    remove.request.name = "remove";
    remove.request.collective = Collective::kRemoveProcessSet;
    remove.request.removed = set;
    const auto removed = world[rank].Submit(std::move(remove)).value();
    ASSERT_TRUE(world[rank].Wait(*removed).ok());
    if (rank == 1) {
      EXPECT_EQ(failed, 3);
    }
    for (const CompletionPtr& completion : completions) {
      EXPECT_TRUE(completion->done());
      EXPECT_THAT(std::string(completion->status().message()),
                  HasSubstr("has been removed"));
    }
    EXPECT_TRUE(SubmitAndWait(world[rank], Sum("x", world_values)).ok());
    EXPECT_THAT(world_values, Each(2));
  });
}

// Rank 0, the root, is the last to submit the name to the world: it knows that
// all others have. Ranks 1 and 2 are a set in which the name fails meanwhile.
TEST(SameNameErrorTest, NameFailsInOneProcessSetAndIsUsedInAnother) {
  CoordinatedWorld world(3);
  std::barrier others_are_ready(3);
  world.OnEveryRank([&](int rank) {
    const auto everywhere = [&] {
      Values values(4, 1);
      CompletionPtr completion;
      if (rank != 0) completion = world[rank].Submit(Sum("x", values)).value();
      others_are_ready.arrive_and_wait();
      if (rank == 0) completion = world[rank].Submit(Sum("x", values)).value();
      EXPECT_TRUE(world[rank].Wait(*completion).ok());
      EXPECT_THAT(values, Each(3));
    };
    for (int i = 0; i < 3; ++i) everywhere();  // then it has an id
    Operation add;
    add.request = AddSet({1, 2});
    const auto added = world[rank].Submit(std::move(add)).value();
    ASSERT_TRUE(world[rank].Wait(*added).ok());
    if (rank > 0) {
      Values values(4, 1);
      Operation in_set = Sum("x", values);
      in_set.request.process_set = static_cast<ProcessSetId>(added->value());
      if (rank == 1) in_set.request.local_error = "no";
      EXPECT_FALSE(SubmitAndWait(world[rank], std::move(in_set)).ok());
    }
    everywhere();
  });
}

TEST(SameNameErrorTest, JoinWaitsForAllOfThem) {
  CoordinatorOptions options;
  options.config.min_batch_bytes = 1 << 20;
  CoordinatedWorld world(2, options);
  world.OnEveryRank([&](int rank) {
    // Rank 0 submits two more. Rank 1 has joined before and does not submit
    // these.
    const int count = rank == 0 ? 5 : 3;
    std::vector<Values> values(count);
    std::vector<CompletionPtr> completions;
    for (int k = 0; k < count; ++k) {
      values[k].assign(k + 1, 1);
      auto submitted = world[rank].Submit(Sum("x", values[k]));
      ASSERT_TRUE(submitted.ok()) << submitted.status();
      completions.push_back(*submitted);
    }
    Operation join;
    join.request.name = "join";
    join.request.collective = Collective::kJoin;
    const auto joined = world[rank].Submit(std::move(join)).value();
    ASSERT_TRUE(world[rank].Wait(*joined).ok());
    for (int k = 0; k < count; ++k) {
      ASSERT_TRUE(completions[k]->done());
      EXPECT_TRUE(completions[k]->status().ok()) << completions[k]->status();
      EXPECT_THAT(values[k], Each(k < 3 ? 2 : 1)) << k;
    }
    // The world continues with all its ranks: the average shows this.
    Values more = {rank == 0 ? 1.0f : 3.0f};
    Operation average = Sum("x", more);
    average.request.average = true;
    EXPECT_TRUE(SubmitAndWait(world[rank], std::move(average)).ok());
    EXPECT_THAT(more, Each(2));
  });
}

TEST(SameNameErrorTest, PersistentAndOrdinaryOperationsFollowOneAnother) {
  CoordinatedWorld world(2);
  world.OnEveryRank([&](int rank) {
    Values first(2, 1), second(3, 1), third(4, 1), fourth(5, 1);
    const PersistentPtr one =
        world[rank].MakePersistent(Sum("x", first)).value();
    ASSERT_TRUE(world[rank].SubmitPersistent({one}, false).ok());
    const auto plain = world[rank].Submit(Sum("x", second));
    ASSERT_TRUE(plain.ok()) << plain.status();
    ASSERT_TRUE(world[rank].Wait(*one).ok());
    ASSERT_TRUE(one->Load(Sum("x", third).request, false, {BytesOf(third)},
                          {BytesOf(third)}, nullptr)
                    .ok());
    ASSERT_TRUE(world[rank].SubmitPersistent({one}, false).ok());
    const auto last = world[rank].Submit(Sum("x", fourth));
    ASSERT_TRUE(last.ok()) << last.status();
    EXPECT_TRUE(world[rank].Wait(**last).ok());
    EXPECT_TRUE((*plain)->done());
    EXPECT_TRUE(one->done());
    for (const Values* values : {&first, &second, &third, &fourth}) {
      EXPECT_THAT(*values, Each(2));
    }
  });
}

}  // namespace
}  // namespace hvdlite::negotiation
