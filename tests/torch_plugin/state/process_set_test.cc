// Process sets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/torch_plugin/rank_values.h"
#include "tests/torch_plugin/same_error.h"

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

AllreduceOptions SumIn(const ProcessSet& set) {
  return AllreduceOptions().op(ReduceOp::Sum).process_set(set);
}

TEST(ProcessSetTest, DefaultIsAllRanks) {
  for (const ProcessSet& all : {ProcessSet(), global_process_set()}) {
    EXPECT_EQ(all.size(), size());
    EXPECT_EQ(all.rank(), rank());
    EXPECT_TRUE(all.included());
    EXPECT_EQ(all.ranks().size(), static_cast<size_t>(size()));
    EXPECT_EQ(all.ranks().back(), size() - 1);
  }
}

TEST(WorldTest, IsHomogeneousIfAllNodesHaveEquallyManyRanks) {
  const at::Tensor ranks = allgather(at::full({1}, local_size()));
  EXPECT_EQ(is_homogeneous(), ranks.eq(local_size()).all().item<bool>());
}

TEST(ProcessSetTest, RanksMayBeGivenInAnyOrderAndDifferentlyOnEachRank) {
  std::vector<int> ranks = ProcessSet().ranks();
  std::rotate(ranks.begin(), ranks.begin() + rank(), ranks.end());
  const ProcessSet set = add_process_set(ranks);
  EXPECT_EQ(set.ranks(), ProcessSet().ranks());
  EXPECT_EQ(set.rank(), rank());
  EXPECT_EQ(allreduce(at::ones({1}), SumIn(set)).item<int>(), size());
  remove_process_set(set);
}

TEST(ProcessSetTest, KnowsItsMembers) {
  const ProcessSet last = add_process_set({size() - 1});
  EXPECT_THAT(last.ranks(), ElementsAre(size() - 1));
  EXPECT_EQ(last.size(), 1);
  EXPECT_EQ(last.included(), IsLast());
  EXPECT_EQ(last.rank(), IsLast() ? 0 : -1);
  remove_process_set(last);
  // A removed set still knows its members.
  EXPECT_THAT(last.ranks(), ElementsAre(size() - 1));
}

// The text of the failure does not fit into the ring of messages at once.
// Making the set blocks the ranks that have read it.
TEST(ProcessSetTest, CanBeMadeWhileALongMessageIsInTransit) {
  if (size() == 1) return;
  const AllreduceOptions options =
      AllreduceOptions().name(std::string(8000, 'x'));
  const Work failing = allreduce_async(at::ones({IsLast() ? 2 : 1}), options);
  const ProcessSet all = add_process_set(ProcessSet().ranks());
  EXPECT_THROW(failing.wait(), c10::Error);
  EXPECT_EQ(allreduce(at::ones({1}), SumIn(all)).item<int>(), size());
  remove_process_set(all);
}

TEST(ProcessSetTest, InvalidRanksAreRejectedOnEveryRank) {
  ExpectSameError([] { add_process_set({}); }, "at least one rank");
  ExpectSameError([] { add_process_set({0, size()}); }, "does not exist");
  ExpectSameError([] { add_process_set({-1}); }, "rank -1 does not exist");
  ExpectSameError([] { add_process_set({0, 0}); }, "rank 0 is given twice");
  if (size() == 1) return;
  ExpectSameError([] { add_process_set({IsLast() ? 0 : 1}); },
                  "add_process_set");
}

TEST(ProcessSetTest, OnlyMembersMayUseIt) {
  if (size() == 1) GTEST_SKIP() << "needs a rank outside";
  const ProcessSet first = add_process_set({0});
  if (rank() == 0) {
    EXPECT_EQ(allreduce(at::ones({1}), SumIn(first)).item<int>(), 1);
  } else {
    const auto outside = AllOf(HasSubstr("is not in the process set"),
                               HasSubstr("rank 0 (process set "));
    EXPECT_THAT(ErrorText([&] { allreduce(at::ones({1}), SumIn(first)); }),
                outside);
    EXPECT_THAT(ErrorText([&] { barrier(first); }), outside);
    EXPECT_THAT(ErrorText([&] { broadcast_object("", 0, first); }), outside);
    EXPECT_THAT(ErrorText([&] { allgather_object("", first); }), outside);
    EXPECT_THAT(ErrorText([&] {
                  sparse_allreduce(at::ones({1}).to_sparse(), SumIn(first));
                }),
                outside);
  }
  remove_process_set(first);
}

TEST(ProcessSetTest, RemovedSetsAreRefused) {
  const ProcessSet set = add_process_set({0});
  const ProcessSet copy = set;
  remove_process_set(set);
  EXPECT_THAT(ErrorText([&] { allreduce(at::ones({1}), SumIn(copy)); }),
              HasSubstr("was removed"));
  ExpectSameError([&] { remove_process_set(copy); }, "removed before");
  ExpectSameError([] { remove_process_set(ProcessSet()); },
                  "cannot be removed");
}

TEST(ProcessSetTest, RemovingFailsOperationsThatSomeMembersLack) {
  if (size() == 1) GTEST_SKIP() << "nothing stays pending";
  const ProcessSet set = add_process_set({0, size() - 1});
  std::vector<Work> works;
  if (rank() == 0) works.push_back(allreduce_async(at::ones({1}), SumIn(set)));
  remove_process_set(set);
  for (const Work& work : works) {
    EXPECT_THAT(ErrorText([&] { work.wait(); }), HasSubstr("process set"));
  }
  // The world's operations are not affected.
  barrier();
}

TEST(ProcessSetTest, SetsOfTheSameRanksAreDifferent) {
  const ProcessSet first = add_process_set(ProcessSet().ranks());
  const ProcessSet second = add_process_set(ProcessSet().ranks());
  const auto options = [](const ProcessSet& set) {
    return SumIn(set).name("shared");
  };
  // The same name is in flight three times, in another order on each rank.
  const std::vector<ProcessSet> sets = {ProcessSet(), first, second};
  std::vector<Work> works;
  for (int i = 0; i < 3; ++i) {
    const int set = (i + rank()) % 3;
    works.push_back(allreduce_async(at::full({1}, set + 1),
                                    options(sets[static_cast<size_t>(set)])));
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(works[static_cast<size_t>(i)].wait().item<int>(),
              ((i + rank()) % 3 + 1) * size());
  }
  remove_process_set(second);
  EXPECT_EQ(allreduce(at::ones({1}), options(first)).item<int>(), size());
  remove_process_set(first);
}

// Sets {0, 1}, {1, 2}, ..., {size - 1, 0}. Their members submit operations in
// different orders.
TEST(ProcessSetTest, OverlappingSetsAreUsedInAnyOrder) {
  if (size() < 3) GTEST_SKIP() << "needs a ring";
  std::vector<ProcessSet> ring;
  for (int i = 0; i < size(); ++i) {
    ring.push_back(add_process_set({i, (i + 1) % size()}));
  }
  std::mt19937 random(static_cast<unsigned>(rank()));
  for (int round = 0; round < 20; ++round) {
    struct Expected {
      Work work;
      at::Tensor output;
    };
    std::vector<std::pair<int, int>> order;
    for (int set = 0; set < size(); ++set) {
      if (!ring[static_cast<size_t>(set)].included()) continue;
      for (int tensor = 0; tensor < 5; ++tensor)
        order.emplace_back(set, tensor);
    }
    std::shuffle(order.begin(), order.end(), random);
    std::vector<Expected> works;
    for (const auto& [index, tensor] : order) {
      const ProcessSet& set = ring[static_cast<size_t>(index)];
      const std::string name = "ring." + std::to_string(tensor);
      const at::Tensor mine = Values(rank(), {3}, at::kLong, tensor);
      if (tensor == 0) {
        std::vector<at::Tensor> parts;
        for (const int member : set.ranks()) {
          parts.push_back(Values(member, {3}, at::kLong, tensor));
        }
        works.push_back(
            {allgather_async(mine,
                             AllgatherOptions().name(name).process_set(set)),
             at::cat(parts)});
      } else {
        works.push_back({allreduce_async(mine, SumIn(set).name(name)),
                         ReducedValues(set.ranks(), {3}, at::kLong,
                                       ReduceOp::Sum, tensor)});
      }
    }
    std::shuffle(works.begin(), works.end(), random);
    for (const auto& [work, output] : works) {
      EXPECT_TRUE(work.wait().equal(output));
    }
  }
  for (const ProcessSet& set : ring) remove_process_set(set);
}

TEST(ProcessSetTest, DisjointSetsDoNotWaitForEachOther) {
  if (size() < 2) GTEST_SKIP() << "needs two sets";
  std::vector<int> others;
  for (int i = 1; i < size(); ++i) others.push_back(i);
  const ProcessSet first = add_process_set({0});
  const ProcessSet rest = add_process_set(others);
  const ProcessSet& mine = rank() == 0 ? first : rest;
  // Different numbers of unnamed operations, then one of all ranks.
  for (int i = 0; i < 10 * (rank() == 0 ? 1 : 3); ++i) {
    EXPECT_EQ(allreduce(at::ones({2}), SumIn(mine))[1].item<int>(),
              mine.size());
  }
  EXPECT_EQ(allreduce(at::ones({1}), SumIn({})).item<int>(), size());
  remove_process_set(rest);
  remove_process_set(first);
}

TEST(ProcessSetTest, SetsCanBeMadeAndRemovedManyTimes) {
  for (int i = 0; i < 30; ++i) {
    const ProcessSet set = add_process_set({i % size()});
    if (set.included()) {
      EXPECT_EQ(allreduce(at::ones({1}), SumIn(set)).item<int>(), 1);
    }
    remove_process_set(set);
  }
}

}  // namespace
}  // namespace hvdlite
