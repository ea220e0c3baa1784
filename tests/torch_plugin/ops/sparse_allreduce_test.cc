// sparse_allreduce().
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/torch_plugin/compression_rounds.h"
#include "tests/torch_plugin/rank_values.h"

namespace hvdlite {
namespace {

// Makes a tensor of shape {rows, 3} with `count` sparse rows: every second row
// from row `rank` on, each twice.
at::Tensor SparseRows(int rank, int64_t rows, int64_t count,
                      at::ScalarType type) {
  const at::Tensor index =
      at::arange(count, at::kLong).mul(2).add(rank).remainder(rows);
  const at::Tensor values = Values(rank, {2 * count, 3}, type);
  return at::sparse_coo_tensor(at::cat({index, index}).unsqueeze(0), values,
                               {rows, 3});
}

at::Tensor Dense(const at::Tensor& coo) { return coo.to_dense(); }

// Two rows of many: they are sent as sparse tensors.
at::Tensor Few(int rank, at::ScalarType type) {
  return SparseRows(rank, 1000, rank % 3, type);
}
// Most rows: they are sent as a dense tensor.
at::Tensor Many(int rank, at::ScalarType type) {
  return SparseRows(rank, 10, 40, type);
}

TEST(SparseAllreduceTest, SumsAndAveragesWhetherSparseOrDenseIsSmaller) {
  ForSeveralSets([](const ProcessSet& set) {
    for (const at::ScalarType type : kDtypes) {
      for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Average}) {
        if (!HasOp(type, op)) continue;
        for (const bool many : {false, true}) {
          const auto make = [&](int from) {
            return many ? Many(from, type) : Few(from, type);
          };
          std::vector<at::Tensor> all;
          for (const int from : set.ranks()) {
            all.push_back(Dense(make(from).coalesce()));
          }
          const at::Tensor result =
              sparse_allreduce(make(rank()), With(op).process_set(set));
          EXPECT_TRUE(result.is_coalesced());
          EXPECT_EQ(result.sparse_dim(), 1);
          EXPECT_TRUE(Close(Dense(result), Reduced(all, op)))
              << type << many << static_cast<int>(op);
        }
      }
    }
  });
}

TEST(SparseAllreduceTest, ElementsInTwoSparseDimensions) {
  const auto make = [](int from) {
    return at::sparse_coo_tensor(
        at::tensor({from, 50, from, 60}, at::kLong).view({2, 2}),
        at::tensor({1.0, 2.0}, at::kDouble), {100, 100});
  };
  std::vector<at::Tensor> all;
  for (int from = 0; from < size(); ++from) all.push_back(Dense(make(from)));
  const at::Tensor result = sparse_allreduce(make(rank()), With(ReduceOp::Sum));
  EXPECT_TRUE(Dense(result).equal(Reduced(all, ReduceOp::Sum)));
  EXPECT_EQ(result.sparse_dim(), 2);
}

TEST(SparseAllreduceTest, NoValuesOnAnyRank) {
  const at::Tensor result = sparse_allreduce(SparseRows(0, 10, 0, at::kFloat));
  EXPECT_EQ(result._nnz(), 0);
  EXPECT_EQ(result.sizes(), at::IntArrayRef({10, 3}));
}

TEST(SparseAllreduceTest, ScalesBeforeAndAfter) {
  for (const bool many : {false, true}) {
    const auto make = [&](int from) {
      return many ? Many(from, at::kDouble) : Few(from, at::kDouble);
    };
    std::vector<at::Tensor> all;
    for (int from = 0; from < size(); ++from) all.push_back(Dense(make(from)));
    const at::Tensor result = sparse_allreduce(
        make(rank()),
        With(ReduceOp::Average).prescale_factor(2).postscale_factor(3));
    EXPECT_TRUE(Close(Dense(result), Reduced(all, ReduceOp::Average).mul(6)));
  }
}

TEST(SparseAllreduceTest, CompressionRoundsTheValues) {
  for (const bool many : {false, true}) {
    const int64_t rows = many ? 4 : 1000;
    const auto make = [&](double value) {
      return at::sparse_coo_tensor(
          at::arange(4, at::kLong).unsqueeze(0),
          at::full({4, 2}, rank() == 0 ? value : 0.0, at::kFloat), {rows, 2});
    };
    const at::Tensor result =
        sparse_allreduce(make(1 + 1.0 / 65536),
                         With(ReduceOp::Sum).compression(Compression::FP16));
    EXPECT_EQ(result.scalar_type(), at::kFloat);
    // Many rows are reduced as a dense tensor, few ones are gathered.
    const bool rounded = !many || testing::CompressionRounds();
    EXPECT_EQ(Dense(result)[3][1].item<float>(),
              rounded ? 1.0F : 1.0F + 1.0F / 65536)
        << many;
  }
}

// Makes one row per entry of `values`. All of them are row 1 of `rows`.
at::Tensor OneRow(const std::vector<double>& values, int64_t rows,
                  at::ScalarType type) {
  const auto count = static_cast<int64_t>(values.size());
  return at::sparse_coo_tensor(
      at::ones({1, count}, at::kLong),
      at::tensor(values, at::kDouble).unsqueeze(1).to(type), {rows, 1});
}

TEST(SparseAllreduceTest, SixteenBitFloatsAreAddedInFloat32AndRoundedOnce) {
  // With 1 row the dense tensor is smaller, with 1000 rows the sparse one.
  for (const int64_t rows : {2, 1000}) {
    const auto reduced = [&](const at::Tensor& mine,
                             const AllreduceOptions& options) {
      const at::Tensor result = sparse_allreduce(mine, options);
      EXPECT_EQ(result.scalar_type(), mine.scalar_type());
      return Dense(result)[1][0].item<double>();
    };
    // A sum of two is infinite in float16.
    const at::Tensor large =
        OneRow({40000, 20000, -20000}, rows, at::kHalf);
    EXPECT_EQ(reduced(large, With(ReduceOp::Average)), 40000) << rows;
    EXPECT_EQ(
        reduced(large, With(ReduceOp::Average).prescale_factor(2).postscale_factor(
                           0.5)),
        40000)
        << rows;
    EXPECT_EQ(
        reduced(large, With(ReduceOp::Sum).postscale_factor(1.0 / size())),
        40000)
        << rows;
    // In bfloat16, 256 + 1 is 256: on one rank, and over ranks.
    const at::Tensor uneven =
        rank() == 0 ? OneRow({256, 1, 1, 1}, rows, at::kBFloat16)
                    : OneRow({}, rows, at::kBFloat16);
    EXPECT_EQ(reduced(uneven, With(ReduceOp::Sum)), 260) << rows;
    const double mine = rank() == 0 ? 256 : 1;
    const double average = 1.0 + 255.0 / size();
    EXPECT_EQ(reduced(OneRow({mine}, rows, at::kBFloat16),
                      With(ReduceOp::Average)),
              at::tensor(average).to(at::kBFloat16).item<double>())
        << rows;
    // The same near the limit of float32.
    EXPECT_NEAR(reduced(OneRow({3e38}, rows, at::kBFloat16),
                        With(ReduceOp::Average)),
                3e38, 0x1p-8 * 3e38)
        << rows;
  }
}

}  // namespace
}  // namespace hvdlite
