// allgather(), reducescatter(), alltoall(): operations on rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/torch_plugin/rank_values.h"

namespace hvdlite {
namespace {

// Rows `first` up to `end`, along dimension 0.
at::Tensor RowsOf(const at::Tensor& tensor, int64_t first, int64_t end) {
  return tensor.slice(0, first, end);
}

std::vector<int64_t> Shape(int64_t rows) { return {rows, 2, 3}; }

// The Values of all ranks of the set, with rows(member) rows each.
template <typename Rows>
at::Tensor Concatenated(const ProcessSet& set, at::ScalarType type, Rows rows) {
  std::vector<at::Tensor> parts;
  for (int member = 0; member < set.size(); ++member) {
    parts.push_back(Values(set.ranks()[static_cast<size_t>(member)],
                           Shape(rows(member)), type));
  }
  return at::cat(parts);
}

TEST(AllgatherTest, ConcatenatesEqualAndUnequalRowsOfEveryDtype) {
  ForSeveralSets([](const ProcessSet& set) {
    const auto options = AllgatherOptions().process_set(set);
    for (const at::ScalarType type : kDtypes) {
      for (const int step : {0, 1, 3}) {
        // Member 0 has no rows, but where all have two.
        const auto rows = [&](int member) {
          return step == 0 ? 2 : member * step;
        };
        const at::Tensor mine = Values(rank(), Shape(rows(set.rank())), type);
        const at::Tensor expected = Concatenated(set, type, rows);
        const at::Tensor output = allgather(mine, options);
        EXPECT_EQ(output.scalar_type(), type);
        EXPECT_TRUE(output.equal(expected)) << type << step;
        EXPECT_TRUE(allgather_async(mine, options).wait().equal(expected));
      }
    }
  });
}

TEST(AllgatherTest, NoRowsOnAnyRankGiveNoRows) {
  const at::Tensor output = allgather(at::empty({0, 4}, at::kInt));
  EXPECT_EQ(output.sizes(), at::IntArrayRef({0, 4}));
}

TEST(AllgatherTest, RowsWithoutElementsKeepTheirNumber) {
  const at::Tensor output = allgather(at::empty({rank() + 1, 0}));
  EXPECT_EQ(output.sizes(), at::IntArrayRef({size() * (size() + 1) / 2, 0}));
}

TEST(AllgatherTest, TakesTensorsOfAnyStridesAndOneDimension) {
  const at::Tensor wide = Values(rank(), {3, 4}, at::kDouble);
  std::vector<at::Tensor> parts;
  for (int i = 0; i < size(); ++i) {
    parts.push_back(Values(i, {3, 4}, at::kDouble).t());
  }
  EXPECT_TRUE(allgather(wide.t()).equal(at::cat(parts)));
  EXPECT_TRUE(allgather(at::full({1}, rank(), at::kLong))
                  .equal(at::arange(size(), at::kLong)));
}

TEST(AllgatherTest, GroupsGatherTensorsOfDifferentDtypesAndRows) {
  ForSeveralSets([](const ProcessSet& set) {
    const auto options = AllgatherOptions().process_set(set);
    const auto some = [](int member) { return member + 1; };
    const auto others = [](int member) { return 2 * member; };
    const std::vector<at::Tensor> mine = {
        Values(rank(), Shape(some(set.rank())), at::kHalf),
        Values(rank(), Shape(others(set.rank())), at::kLong)};
    for (const bool async : {false, true}) {
      const std::vector<at::Tensor> results =
          async ? grouped_allgather_async(mine, options).wait()
                : grouped_allgather(mine, options);
      ASSERT_EQ(results.size(), 2);
      EXPECT_TRUE(results[0].equal(Concatenated(set, at::kHalf, some)));
      EXPECT_TRUE(results[1].equal(Concatenated(set, at::kLong, others)));
    }
  });
  EXPECT_TRUE(grouped_allgather({}).empty());
  EXPECT_TRUE(grouped_allgather_async({}).wait().empty());
}

TEST(AllgatherTest, LargerThanAChunk) {
  const int64_t rows = 3'000'000 + rank();
  const at::Tensor output = allgather(at::full({rows}, rank(), at::kInt));
  int64_t first = 0;
  for (int i = 0; i < size(); ++i) {
    const at::Tensor part = RowsOf(output, first, first + 3'000'000 + i);
    EXPECT_TRUE(part.eq(i).all().item<bool>()) << i;
    first += part.size(0);
  }
  EXPECT_EQ(output.size(0), first);
}

TEST(AllgatherTest, ManyInFlightInAnyOrder) {
  std::vector<Work> works;
  constexpr int kCount = 30;
  for (int i = 0; i < kCount; ++i) {
    const int tensor = (i * 7 + rank() * 11) % kCount;
    works.push_back(allgather_async(
        at::full({tensor % 4}, tensor),
        AllgatherOptions().name("rows." + std::to_string(tensor))));
  }
  for (int i = 0; i < kCount; ++i) {
    const int tensor = (i * 7 + rank() * 11) % kCount;
    EXPECT_TRUE(works[static_cast<size_t>(i)].wait().equal(
        at::full({tensor % 4 * size()}, tensor)));
  }
}

TEST(ReducescatterTest, EveryDtypeWithEveryOpAndAnyNumberOfRows) {
  ForSeveralSets([](const ProcessSet& set) {
    for (const at::ScalarType type : kDtypes) {
      for (const ReduceOp op : kOps) {
        if (!HasOp(type, op)) continue;
        const auto options = ReducescatterOptions().op(op).process_set(set);
        for (const int64_t rows : {0, 1, 2, 3, 7, 8}) {
          const at::Tensor mine = Values(rank(), Shape(rows), type);
          // The first rows % size ranks have one more.
          const int64_t base = rows / set.size();
          const int64_t more = rows % set.size();
          const int64_t first =
              base * set.rank() + std::min<int64_t>(set.rank(), more);
          const at::Tensor expected =
              RowsOf(ReducedValues(set.ranks(), Shape(rows), type, op), first,
                     first + base + (set.rank() < more ? 1 : 0));
          EXPECT_TRUE(Close(reducescatter(mine, options), expected))
              << type << rows << static_cast<int>(op);
          EXPECT_TRUE(
              Close(reducescatter_async(mine, options).wait(), expected));
          EXPECT_TRUE(mine.equal(Values(rank(), Shape(rows), type)));
        }
      }
    }
  });
}

TEST(ReducescatterTest, ScalesBeforeAndAfter) {
  const at::Tensor mine = at::full({size(), 2}, rank() + 1, at::kDouble);
  const at::Tensor output = reducescatter(mine, ReducescatterOptions()
                                                    .op(ReduceOp::Sum)
                                                    .prescale_factor(0.5)
                                                    .postscale_factor(3.0));
  EXPECT_TRUE(Close(
      output, at::full({1, 2}, 0.75 * size() * (size() + 1), at::kDouble)))
      << output;
}

TEST(ReducescatterTest, GroupsScatterTensorsOfDifferentDtypesAndStrides) {
  const at::Tensor first = Values(rank(), {2, size()}, at::kFloat).t();
  const at::Tensor second = Values(rank(), {2 * size()}, at::kLong, 3);
  const std::vector<int> ranks = ProcessSet().ranks();
  for (const bool async : {false, true}) {
    const auto options = ReducescatterOptions().op(ReduceOp::Sum);
    const std::vector<at::Tensor> results =
        async ? grouped_reducescatter_async({first, second}, options).wait()
              : grouped_reducescatter({first, second}, options);
    ASSERT_EQ(results.size(), 2);
    EXPECT_TRUE(results[0].equal(
        RowsOf(ReducedValues(ranks, {2, size()}, at::kFloat, ReduceOp::Sum).t(),
               rank(), rank() + 1)));
    EXPECT_TRUE(results[1].equal(
        RowsOf(ReducedValues(ranks, {2 * size()}, at::kLong, ReduceOp::Sum, 3),
               2 * rank(), 2 * rank() + 2)));
  }
  EXPECT_TRUE(grouped_reducescatter({}).empty());
  EXPECT_TRUE(grouped_reducescatter_async({}).wait().empty());
}

TEST(ReducescatterTest, LargerThanAChunk) {
  const int64_t rows = 1'000'003;
  const at::Tensor output =
      reducescatter(at::arange(rows * 5, at::kDouble).view({rows, 5}),
                    ReducescatterOptions().op(ReduceOp::Average));
  const int64_t base = rows / size();
  const int64_t more = rows % size();
  const int64_t first = base * rank() + std::min<int64_t>(rank(), more);
  EXPECT_TRUE(output.flatten().equal(at::arange(
      first * 5, (first + base + (rank() < more ? 1 : 0)) * 5, at::kDouble)));
}

// Rows that member `from` sends to member `to`.
int64_t RowsFromTo(int from, int to) { return (2 * from + 3 * to) % 4; }

TEST(AlltoallTest, SendsUnequalSplitsOfEveryDtype) {
  ForSeveralSets([](const ProcessSet& set) {
    const auto options = AlltoallOptions().process_set(set);
    const auto table = [&](bool sent) {
      std::vector<int64_t> rows;
      for (int other = 0; other < set.size(); ++other) {
        rows.push_back(sent ? RowsFromTo(set.rank(), other)
                            : RowsFromTo(other, set.rank()));
      }
      return at::tensor(rows, at::kLong);
    };
    for (const at::ScalarType type : kDtypes) {
      // What a member sends, and where the rows for this member begin in it.
      std::vector<at::Tensor> expected;
      for (int from = 0; from < set.size(); ++from) {
        int64_t rows = 0;
        int64_t first = 0;
        for (int to = 0; to < set.size(); ++to) {
          if (to == set.rank()) first = rows;
          rows += RowsFromTo(from, to);
        }
        const at::Tensor sent =
            Values(set.ranks()[static_cast<size_t>(from)], Shape(rows), type);
        expected.push_back(
            RowsOf(sent, first, first + RowsFromTo(from, set.rank())));
      }
      const at::Tensor splits = table(/*sent=*/true);
      const at::Tensor mine =
          Values(rank(), Shape(splits.sum().item<int64_t>()), type);
      for (const at::ScalarType index : {at::kInt, at::kLong}) {
        const auto [output, received] =
            alltoall(mine, splits.to(index), options);
        EXPECT_TRUE(output.equal(at::cat(expected))) << type;
        EXPECT_TRUE(received.equal(table(/*sent=*/false).to(index)));
        EXPECT_EQ(received.scalar_type(), index);
        const AlltoallWork work =
            alltoall_async(mine, splits.to(index), options);
        EXPECT_TRUE(std::get<0>(work.wait()).equal(at::cat(expected)));
        EXPECT_TRUE(std::get<1>(work.wait()).equal(received));
        EXPECT_TRUE(work.is_completed());
        EXPECT_TRUE(work.wait_for(std::chrono::milliseconds(0)));
      }
    }
  });
}

TEST(AlltoallTest, SplitsEquallyWhereNoSplitsAreGiven) {
  const at::Tensor mine = at::arange(2 * size(), at::kLong).add(100 * rank());
  std::vector<at::Tensor> expected;
  for (int from = 0; from < size(); ++from) {
    expected.push_back(
        at::arange(2 * rank(), 2 * rank() + 2, at::kLong).add(100 * from));
  }
  for (const at::Tensor& none :
       {at::Tensor(), at::empty({0}), at::empty({0}, at::kLong)}) {
    const auto [output, received] = alltoall(mine, none);
    EXPECT_TRUE(output.equal(at::cat(expected)));
    EXPECT_EQ(received.scalar_type(),
              none.defined() && none.scalar_type() == at::kLong ? at::kLong
                                                                : at::kInt);
    EXPECT_TRUE(received.eq(2).all().item<bool>());
  }
}

TEST(AlltoallTest, NoRowsAtAllArrive) {
  const auto [output, received] =
      alltoall(at::empty({0, 3}), at::zeros({size()}, at::kInt));
  EXPECT_EQ(output.sizes(), at::IntArrayRef({0, 3}));
  EXPECT_TRUE(received.eq(0).all().item<bool>());
}

TEST(AlltoallTest, LargerThanAChunk) {
  const int64_t part = 2'000'001;
  const at::Tensor mine = at::full({size() * part}, rank(), at::kInt);
  const at::Tensor output = std::get<0>(alltoall(mine));
  EXPECT_TRUE(output.view({size(), part})
                  .eq(at::arange(size(), at::kInt).view({size(), 1}))
                  .all()
                  .item<bool>());
}

}  // namespace
}  // namespace hvdlite
