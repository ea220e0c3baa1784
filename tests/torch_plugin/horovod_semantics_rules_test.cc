// What users of Horovod rely on: errors, names, barriers and the timeline;
// tests/horovod_parity.md tells which of Horovod's test cases is covered where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/torch_plugin/horovod_sets.h"
#include "tests/torch_plugin/rank_values.h"
#include "tests/torch_plugin/same_error.h"

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Every operation of one tensor, by name. Blocks.
std::vector<std::pair<std::string, std::function<void(const at::Tensor&)>>>
AllOperations() {
  const auto sum = AllreduceOptions().op(ReduceOp::Sum);
  return {
      {"allreduce", [=](const at::Tensor& tensor) { allreduce(tensor, sum); }},
      {"grouped_allreduce",
       [=](const at::Tensor& tensor) { grouped_allreduce({tensor}, sum); }},
      {"allgather", [](const at::Tensor& tensor) { allgather(tensor); }},
      {"grouped_allgather",
       [](const at::Tensor& tensor) { grouped_allgather({tensor}); }},
      {"broadcast", [](const at::Tensor& tensor) { broadcast(tensor, 0); }},
      {"alltoall", [](const at::Tensor& tensor) { alltoall(tensor); }},
      {"reducescatter",
       [](const at::Tensor& tensor) { reducescatter(tensor); }},
      {"grouped_reducescatter",
       [](const at::Tensor& tensor) { grouped_reducescatter({tensor}); }},
  };
}

TEST(HorovodRulesTest, DtypesThatDifferFailEveryOperationOnEveryRank) {
  if (size() == 1) GTEST_SKIP() << "nobody to disagree with";
  const at::Tensor tensor =
      at::ones({2 * size(), 3}, rank() % 2 == 0 ? at::kInt : at::kFloat);
  for (const auto& [name, run] : AllOperations()) {
    SCOPED_TRACE(name);
    ExpectSameError([&, run = run] { run(tensor); }, "dtype");
  }
}

TEST(HorovodRulesTest, ShapesThatDifferFailEveryOperationOnEveryRank) {
  if (size() == 1) GTEST_SKIP() << "nobody to disagree with";
  // As many elements in other dimensions.
  const at::Tensor folded =
      rank() == 0 ? at::ones({2 * size(), 6}) : at::ones({2 * size(), 2, 3});
  // Another second dimension on each rank.
  const at::Tensor ragged = at::ones({2 * size(), 10 * (rank() + 1), 2});
  for (const auto& [name, run] : AllOperations()) {
    SCOPED_TRACE(name);
    ExpectSameError([&, run = run] { run(folded); }, "shape");
    ExpectSameError([&, run = run] { run(ragged); }, "shape");
  }
}

TEST(HorovodRulesTest, EachRankAsTheRootOfABroadcastFailsOnEveryRank) {
  if (size() == 1) GTEST_SKIP() << "nobody to disagree with";
  ExpectSameError([] { broadcast(at::ones({17}), rank()); }, "root rank");
}

TEST(HorovodRulesTest, AScalarInAGroupHasNoRows) {
  const at::Tensor rows = at::zeros({3, 1});
  const at::Tensor scalar = at::scalar_tensor(rank(), at::kFloat);
  ExpectSameError(
      [&] {
        grouped_reducescatter({rows, scalar});
      },
      "tensor 1 of 2");
  ExpectSameError([&] { grouped_allgather({rows, scalar}); }, "tensor 1 of 2");
}

TEST(HorovodRulesTest, AdasumOfRowsFailsInEveryType) {
  for (const at::ScalarType type : kDtypes) {
    ExpectSameError(
        [&] {
          reducescatter(at::ones({4 * size()}, type),
                        ReducescatterOptions().op(ReduceOp::Adasum));
        },
        "no Adasum");
  }
}

// An operation is asynchronous: as long as one rank is late, it is in flight on
// the others, and the next one of its name follows it there.
template <typename Submit, typename Again>
void ExpectNameIsUsedAgainInFlight(Submit submit, Again again) {
  for (const int late : {0, size() - 1}) {
    if (rank() == late) barrier();
    const auto work = submit();
    if (rank() == late) {
      again().wait();
    } else {
      EXPECT_FALSE(work.is_completed());
      const auto next = again();
      EXPECT_FALSE(next.is_completed());
      barrier();
      next.wait();
    }
    EXPECT_TRUE(work.is_completed());
    work.wait();
  }
}

template <typename Submit>
void ExpectNameIsUsedAgainInFlight(Submit submit) {
  ExpectNameIsUsedAgainInFlight(submit, submit);
}

TEST(HorovodRulesTest, NameInFlightIsUsedAgainByEveryOperation) {
  if (size() == 1) GTEST_SKIP() << "nothing stays in flight";
  const at::Tensor tensor = at::ones({2 * size(), 3});
  const auto with = [](auto options) { return options.name("twice"); };
  ExpectNameIsUsedAgainInFlight(
      [&] { return allreduce_async(tensor, with(AllreduceOptions())); });
  ExpectNameIsUsedAgainInFlight([&] {
    return grouped_allreduce_async({tensor, tensor}, with(AllreduceOptions()));
  });
  ExpectNameIsUsedAgainInFlight(
      [&] { return allgather_async(tensor, with(AllgatherOptions())); });
  ExpectNameIsUsedAgainInFlight(
      [&] { return broadcast_async(tensor, 0, with(BroadcastOptions())); });
  ExpectNameIsUsedAgainInFlight(
      [&] { return alltoall_async(tensor, {}, with(AlltoallOptions())); });
  ExpectNameIsUsedAgainInFlight([&] {
    return reducescatter_async(tensor, with(ReducescatterOptions()));
  });
  // Operations share their names.
  ExpectNameIsUsedAgainInFlight(
      [&] { return allreduce_async(tensor, with(AllreduceOptions())); },
      [&] { return allgather_async(tensor, with(AllgatherOptions())); });
}

TEST(HorovodRulesTest, ManyReducescattersInFlightInAnyOrder) {
  constexpr int kCount = 40;
  const auto number = [](int i) { return (i * 7 + rank() * 11) % kCount; };
  std::vector<Work> works;
  for (int i = 0; i < kCount; ++i) {
    works.push_back(
        reducescatter_async(at::full({4 * size(), 2}, number(i)),
                            ReducescatterOptions()
                                .op(ReduceOp::Sum)
                                .name("part." + std::to_string(number(i)))));
  }
  for (int i = 0; i < kCount; ++i) {
    EXPECT_TRUE(works[static_cast<size_t>(i)].wait().equal(
        at::full({4, 2}, number(i) * size())));
  }
}

// Members leave a file before they enter, and find everybody's afterwards.
TEST(HorovodRulesTest, NobodyLeavesABarrierBeforeEveryMemberHasEntered) {
  constexpr int kRounds = 50;
  ForAllRanksAndByParity([](const ProcessSet& set) {
    const std::string prefix = broadcast_object(
        ::testing::TempDir() + "hvdlite_barrier_" + std::to_string(getpid()),
        set.ranks().front(), set);
    const auto file = [&](int round, int member) {
      return prefix + "." + std::to_string(round) + "." +
             std::to_string(member);
    };
    for (int round = 0; round < kRounds; ++round) {
      std::ofstream(file(round, set.rank())) << "entered";
      barrier(set);
      for (int member = 0; member < set.size(); ++member) {
        EXPECT_TRUE(std::ifstream(file(round, member)).is_open())
            << "member " << member << " in round " << round;
      }
    }
    barrier(set);
    for (int round = 0; round < kRounds; ++round) {
      std::remove(file(round, set.rank()).c_str());
    }
  });
}

TEST(HorovodRulesTest, BarrierBetweenOtherOperationsDoesNotDisturbThem) {
  const at::Tensor ones = at::eye(5);
  const Work sent = broadcast_async(at::full({3, 3}, rank()), size() - 1);
  const Work first = allgather_async(ones);
  const Work second = allgather_async(at::zeros({5, 5}));
  const Work sum = allreduce_async(ones, AllreduceOptions().op(ReduceOp::Sum));
  barrier();
  EXPECT_TRUE(sum.wait().equal(ones * size()));
  EXPECT_TRUE(sent.wait().eq(size() - 1).all().item<bool>());
  EXPECT_TRUE(first.wait().equal(ones.repeat({size(), 1})));
  EXPECT_TRUE(second.wait().equal(at::zeros({5 * size(), 5})));
}

// Two tensors, with names that are known and that are new.
TEST(HorovodRulesTest, EachRankMayJoinFirst) {
  if (size() == 1) GTEST_SKIP() << "nobody goes on";
  const auto reduce = [](const std::string& name, int ranks) {
    const auto options = [&](const char* which) {
      return AllreduceOptions().op(ReduceOp::Sum).name(name + which);
    };
    const Work first = allreduce_async(at::ones({5, 5}), options(".a"));
    const Work second = allreduce_async(at::ones({17}), options(".b"));
    EXPECT_TRUE(first.wait().eq(ranks).all().item<bool>());
    EXPECT_TRUE(second.wait().eq(ranks).all().item<bool>());
  };
  for (int joins_first = 0; joins_first < size(); ++joins_first) {
    for (const bool is_known : {false, true}) {
      const std::string name =
          is_known ? "known" : "new." + std::to_string(joins_first);
      for (int i = 0; is_known && i < 3; ++i) reduce(name, size());
      if (rank() != joins_first) reduce(name, size() - 1);
      const int last = join();
      EXPECT_NE(last, joins_first);
      EXPECT_EQ(allgather_object(std::to_string(last)),
                std::vector<std::string>(static_cast<size_t>(size()),
                                         std::to_string(last)));
    }
  }
}

TEST(HorovodRulesTest, RanksCountFromZeroInTheOrderOfTheWorld) {
  EXPECT_TRUE(is_initialized());
  EXPECT_TRUE(allgather(at::full({1}, rank(), at::kLong))
                  .equal(at::arange(size(), at::kLong)));
  EXPECT_TRUE(allgather(at::full({1}, size(), at::kLong))
                  .equal(at::full({size()}, size(), at::kLong)));
}

std::string TextOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(HorovodRulesTest, TimelineIsStartedAgainInOtherFilesAndTheSame) {
  const std::string prefix = broadcast_object(
      ::testing::TempDir() + "hvdlite_again_" + std::to_string(getpid()), 0);
  const auto run = [](const std::string& name) {
    allreduce(at::ones({3}), AllreduceOptions().name(name));
  };
  const std::string first = prefix + "_first.json";
  const std::string second = prefix + "_second.json";
  start_timeline(first);
  run("tensor_one");
  stop_timeline();
  run("tensor_between");
  start_timeline(second);
  run("tensor_two");
  run("tensor_two");
  stop_timeline();
  if (rank() == 0) {
    EXPECT_THAT(
        TextOf(first),
        AllOf(HasSubstr("tensor_one"), HasSubstr("NEGOTIATE_ALLREDUCE"),
              Not(HasSubstr("tensor_between")), Not(HasSubstr("tensor_two"))));
    EXPECT_THAT(TextOf(second),
                AllOf(HasSubstr("tensor_two"), Not(HasSubstr("tensor_one")),
                      Not(HasSubstr("tensor_between"))));
  }
  start_timeline(first);
  run("tensor_three");
  stop_timeline();
  if (rank() != 0) return;
  EXPECT_THAT(TextOf(first),
              AllOf(HasSubstr("tensor_three"), Not(HasSubstr("tensor_one"))));
  std::remove(first.c_str());
  std::remove(second.c_str());
}

}  // namespace
}  // namespace hvdlite
