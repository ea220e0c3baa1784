// join(): ranks with different amounts of data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/broadcast_state.h>
#include <hvdlite/sync_batch_norm.h>

#include "tests/torch_plugin/rank_values.h"
#include "tests/torch_plugin/same_error.h"

namespace hvdlite {
namespace {

using ::testing::HasSubstr;

// Whether this program runs with HVDLITE_JOIN_AVERAGE_OVER_WORLD.
bool AverageOverWorld() { return Config::from_env().join_average_over_world; }

// Rank r does r + 1 steps.
template <typename Step>
void UnevenSteps(Step step) {
  for (int i = 0; i <= rank(); ++i) step(i);
  const std::string last = std::to_string(join());
  EXPECT_EQ(last, broadcast_object(last, 0));
}

// The ranks that take part in a step.
std::vector<int> RanksOf(int step) {
  std::vector<int> ranks;
  for (int i = step; i < size(); ++i) ranks.push_back(i);
  return ranks;
}

// The reduction of the Values of those ranks.
at::Tensor Expected(int step, at::ScalarType type, ReduceOp op) {
  const at::Tensor all = ReducedValues(RanksOf(step), {3, 4}, type, op, step);
  if (op != ReduceOp::Average || !AverageOverWorld()) return all;
  const bool is_complex = at::isComplexType(type);
  const at::Tensor sum =
      ReducedValues(RanksOf(step), {3, 4}, type, ReduceOp::Sum, step)
          .to(is_complex ? at::kComplexDouble : at::kDouble)
          .div(size());
  const bool is_whole = !is_complex && !at::isFloatingType(type);
  return (is_whole ? sum.trunc() : sum).to(type);
}

TEST(JoinTest, ReturnsTheLastRankOnAllRanks) {
  for (int last = 0; last < size(); ++last) {
    // These complete only when the others have joined.
    if (rank() == last) {
      for (int i = 0; i < 3; ++i) allreduce(at::ones({1}));
    }
    EXPECT_EQ(join(), last);
  }
}

// Two tensors, under known and under new names.
TEST(JoinTest, EachRankMayJoinFirst) {
  if (size() == 1) GTEST_SKIP() << "needs two ranks";
  const auto reduce = [](const std::string& name, int ranks) {
    const auto options = [&](const char* which) {
      return With(ReduceOp::Sum).name(name + which);
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

TEST(JoinTest, JoinedRanksAreNeutralInReductionsOfEveryDtypeAndOp) {
  for (const at::ScalarType type : kDtypes) {
    for (const ReduceOp op : kOps) {
      if (!HasOp(type, op)) continue;
      UnevenSteps([&](int step) {
        const at::Tensor mine = Values(rank(), {3, 4}, type, step);
        const at::Tensor expected = Expected(step, type, op);
        const at::Tensor output = allreduce(mine, With(op));
        EXPECT_TRUE(Close(output, expected))
            << type << " op " << static_cast<int>(op) << " step " << step
            << output << expected;
        const auto group = grouped_allreduce({mine, mine}, With(op));
        EXPECT_TRUE(Close(group[1], expected));
      });
    }
  }
}

TEST(JoinTest, ScalesAndCompressionApplyToContributingRanks) {
  UnevenSteps([&](int step) {
    const at::Tensor output = allreduce(
        Values(rank(), {3, 4}, at::kFloat, step),
        AllreduceOptions().prescale_factor(2).postscale_factor(4).compression(
            Compression::BF16));
    EXPECT_TRUE(at::allclose(
        output, Expected(step, at::kFloat, ReduceOp::Average).mul(8), 2e-2,
        2e-2));
  });
}

TEST(JoinTest, JoinedRanksAreZeroInAdasum) {
  UnevenSteps([](int step) {
    at::Tensor mine = at::zeros({size()});
    mine[rank()] = 2;
    at::Tensor expected = at::zeros({size()});
    expected.slice(0, step).fill_(2);
    EXPECT_TRUE(Close(allreduce(mine, With(ReduceOp::Adasum)), expected));
  });
}

TEST(JoinTest, JoinedRanksHaveNoRowsInAllgather) {
  for (const at::ScalarType type : kDtypes) {
    UnevenSteps([&](int step) {
      std::vector<at::Tensor> parts;
      for (const int from : RanksOf(step)) {
        parts.push_back(Values(from, {from + 1, 2}, type, step));
      }
      const at::Tensor mine = Values(rank(), {rank() + 1, 2}, type, step);
      EXPECT_TRUE(allgather(mine).equal(at::cat(parts)));
      const auto group = grouped_allgather({mine, mine});
      EXPECT_TRUE(group[1].equal(at::cat(parts)));
    });
  }
}

TEST(JoinTest, SparseTensorsAreReducedWithoutTheJoinedRanks) {
  for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Average}) {
    for (const int64_t rows : {4, 1000}) {
      UnevenSteps([&](int step) {
        const auto make = [&](int from) {
          return at::sparse_coo_tensor(at::arange(4, at::kLong).unsqueeze(0),
                                       Values(from, {4, 2}, at::kFloat, step),
                                       {rows, 2});
        };
        at::Tensor sum = at::zeros({rows, 2});
        for (const int from : RanksOf(step)) sum += make(from).to_dense();
        if (op == ReduceOp::Average) {
          sum /= AverageOverWorld() ? size() : size() - step;
        }
        EXPECT_TRUE(
            Close(sparse_allreduce(make(rank()), With(op)).to_dense(), sum))
            << rows << step;
      });
    }
  }
}

TEST(JoinTest, BroadcastsAndBarriersWorkWithoutTheJoinedRanks) {
  UnevenSteps([](int) {
    const at::Tensor mine = at::full({2}, rank());
    EXPECT_EQ(broadcast(mine, size() - 1)[1].item<int>(), size() - 1);
    broadcast_parameters(
        torch::OrderedDict<std::string, at::Tensor>({{"mine", mine}}),
        size() - 1);
    EXPECT_EQ(mine[1].item<int>(), size() - 1);
    barrier();
  });
}

TEST(JoinTest, BackwardWorksWithoutTheJoinedRanks) {
  UnevenSteps([](int step) {
    const at::Tensor input = at::ones({2}, at::kDouble).requires_grad_();
    const at::Tensor rows =
        at::ones({rank() + 1}, at::kDouble).requires_grad_();
    (allreduce(input, With(ReduceOp::Sum)).sum() * (rank() + 1)).backward();
    (allgather(rows).sum() * 2).backward();
    int64_t sum = 0;
    for (const int from : RanksOf(step)) sum += from + 1;
    EXPECT_EQ(input.grad()[0].item<int64_t>(), sum);
    EXPECT_EQ(rows.grad()[0].item<int64_t>(), 2 * (size() - step));
  });
}

TEST(JoinTest, OperationsThatNeedAJoinedRankFailOnTheOthers) {
  if (size() == 1) GTEST_SKIP() << "needs two ranks";
  if (rank() != 0) {
    // Rank 0 contributes to no allreduce, so afterwards it has joined.
    at::Tensor seen = at::ones({1});
    EXPECT_EQ(allreduce(seen, With(ReduceOp::Sum)).item<int>(), size() - 1);
    for (const std::string& text :
         {ErrorText([] { broadcast(at::ones({1}), 0); }), ErrorText([] {
            alltoall(at::ones({size(), 1}));
          }),
          ErrorText([] { reducescatter(at::ones({2})); }),
          ErrorText([] { add_process_set({1}); })}) {
      EXPECT_THAT(text, HasSubstr("join"));
    }
    EXPECT_EQ(allreduce(seen, With(ReduceOp::Sum)).item<int>(), size() - 1);
  }
  join();
}

TEST(JoinTest, PendingOperationsComeFirst) {
  UnevenSteps([](int) {});
  std::vector<Work> works;
  for (int i = 0; i < 10; ++i) {
    works.push_back(allreduce_async(at::ones({3}), With(ReduceOp::Sum)));
  }
  join();
  for (const Work& work : works) {
    EXPECT_EQ(work.wait()[2].item<int>(), size());
  }
}

TEST(JoinTest, AnOperationMayBeCalledJoin) {
  const Work work =
      allreduce_async(at::ones({1}), With(ReduceOp::Sum).name("join"));
  join();
  EXPECT_EQ(work.wait().item<int>(), size());
}

TEST(JoinTest, AutomaticNamesAgreeAfterwards) {
  for (int round = 0; round < 3; ++round) {
    UnevenSteps([](int) { allreduce(at::ones({1})); });
    EXPECT_EQ(allreduce(at::ones({1}), With(ReduceOp::Sum)).item<int>(),
              size());
  }
}

TEST(JoinTest, SyncBatchNormModulesAreNumberedAgainAfterwards) {
  SyncBatchNorm first(3);
  SyncBatchNorm second(2);
  if (rank() == 0) first->forward(at::rand({4, 3}));
  join();
  const at::Tensor rows = at::arange(4 * size(), at::kFloat).view({-1, 1});
  const at::Tensor mine = rows.slice(0, 4 * rank(), 4 * (rank() + 1));
  for (SyncBatchNorm module : {second, first}) {
    const int64_t channels = module->options.num_features();
    EXPECT_TRUE(at::allclose(
        module->forward(mine.expand({4, channels}).contiguous()).select(1, 0),
        ((rows - rows.mean()) / (rows.var(false) + 1e-5).sqrt())
            .slice(0, 4 * rank(), 4 * (rank() + 1))
            .select(1, 0),
        1e-3, 1e-4));
  }
}

TEST(JoinTest, ProcessSetsWorkWithoutTheJoinedRanks) {
  const ProcessSet set = add_process_set(RanksOf(size() > 1 ? 1 : 0));
  UnevenSteps([&](int step) {
    if (!set.included()) return;
    const at::Tensor sum =
        allreduce(at::ones({1}), With(ReduceOp::Sum).process_set(set));
    const int joined = std::max(step - set.ranks().front(), 0);
    EXPECT_EQ(sum.item<int>(), set.size() - joined);
  });
  remove_process_set(set);
}

}  // namespace
}  // namespace hvdlite
