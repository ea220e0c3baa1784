// Tensors of complex numbers, whose conjugation may still be due, and of
// unsigned integers that not every LibTorch has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/torch_plugin/rank_values.h"
#include "tests/torch_plugin/same_error.h"
#include "torch_plugin/ops/libtorch_versions.h"

namespace hvdlite {
namespace {

constexpr at::ScalarType kComplexTypes[] = {at::kComplexFloat,
                                            at::kComplexDouble};

at::Tensor SumOfAll(at::IntArrayRef shape, at::ScalarType type) {
  return ReducedValues(ProcessSet().ranks(), shape, type, ReduceOp::Sum);
}

// Rows of all ranks' conjugated Values.
at::Tensor ConjugatedRows(at::IntArrayRef shape, at::ScalarType type) {
  std::vector<at::Tensor> parts;
  for (int i = 0; i < size(); ++i) parts.push_back(Values(i, shape, type));
  return at::cat(parts).conj();
}

TEST(ComplexTest, LazilyConjugatedTensorsAreWhatTheyReadAs) {
  const auto sum = AllreduceOptions().op(ReduceOp::Sum);
  for (const at::ScalarType type : kComplexTypes) {
    const at::Tensor mine = Values(rank(), {size(), 3}, type).conj();
    ASSERT_TRUE(mine.is_conj());
    const at::Tensor all = SumOfAll({size(), 3}, type).conj();
    EXPECT_TRUE(allreduce(mine, sum).equal(all));
    EXPECT_TRUE(allreduce(mine.t(), sum).equal(all.t()));
    EXPECT_TRUE(grouped_allreduce({mine, mine.t()}, sum)[1].equal(all.t()));
    EXPECT_TRUE(broadcast(mine, size() - 1)
                    .equal(Values(size() - 1, {size(), 3}, type).conj()));
    EXPECT_TRUE(allgather(mine).equal(ConjugatedRows({size(), 3}, type)));
    EXPECT_TRUE(std::get<0>(alltoall(mine))
                    .equal(ConjugatedRows({size(), 3}, type)
                               .view({size(), size(), 3})
                               .select(1, rank())));
    EXPECT_TRUE(reducescatter(mine, ReducescatterOptions().op(ReduceOp::Sum))
                    .equal(all.slice(0, rank(), rank() + 1)));
  }
}

TEST(ComplexTest, LazilyConjugatedTensorsAreWrittenInPlace) {
  for (const at::ScalarType type : kComplexTypes) {
    const at::Tensor memory = Values(rank(), {2, 3}, type);
    const at::Tensor conjugated = memory.conj();
    EXPECT_TRUE(allreduce_(conjugated, AllreduceOptions().op(ReduceOp::Sum))
                    .is_same(conjugated));
    EXPECT_TRUE(memory.equal(SumOfAll({2, 3}, type)));
    memory.copy_(Values(rank(), {2, 3}, type));
    broadcast_(conjugated, size() - 1);
    EXPECT_TRUE(memory.equal(Values(size() - 1, {2, 3}, type)));
  }
}

TEST(ComplexTest, LazilyNegatedTensorsAreWhatTheyReadAs) {
  const at::Tensor memory = Values(rank(), {2, 3}, at::kComplexDouble);
  const at::Tensor negated = at::imag(memory.conj());
  ASSERT_TRUE(negated.is_neg());
  const at::Tensor all = at::imag(SumOfAll({2, 3}, at::kComplexDouble));
  const auto sum = AllreduceOptions().op(ReduceOp::Sum);
  EXPECT_TRUE(allreduce(negated, sum).equal(-all));
  allreduce_(negated, sum);
  EXPECT_TRUE(at::imag(memory).equal(all));
}

TEST(ComplexTest, ScalesAndNansStayInTheirPart) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor mine = at::complex(at::tensor({1.0, IsLast() ? nan : 1.0}),
                                      at::tensor({IsLast() ? nan : 2.0, 2.0}));
  const at::Tensor output = at::view_as_real(
      allreduce(mine, AllreduceOptions().prescale_factor(0.5)));
  EXPECT_TRUE(at::isnan(output).equal(
      at::tensor({0, 1, 1, 0}).to(at::kBool).view({2, 2})));
  EXPECT_DOUBLE_EQ(output[0][0].item<double>(), 0.5);
  EXPECT_DOUBLE_EQ(output[1][1].item<double>(), 1.0);
}

class WideUnsignedTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (GetParam() == at::ScalarType::Undefined) {
      GTEST_SKIP() << "this LibTorch does not have the type";
    }
  }

  // LibTorch does little more with these types than to copy them.
  static at::Tensor Mine(at::IntArrayRef shape, int of = rank()) {
    return Values(of, shape, at::kByte).to(GetParam());
  }
  static at::Tensor All(at::IntArrayRef shape, ReduceOp op) {
    return ReducedValues(ProcessSet().ranks(), shape, at::kByte, op);
  }
  static bool Same(const at::Tensor& actual, const at::Tensor& expected) {
    return actual.scalar_type() == GetParam() &&
           actual.to(at::kLong).equal(expected.to(at::kLong));
  }
};

TEST_P(WideUnsignedTest, AreReducedWithEveryOp) {
  for (const ReduceOp op : kOps) {
    const auto options = AllreduceOptions().op(op);
    EXPECT_TRUE(Same(allreduce(Mine({3, 5}), options), All({3, 5}, op)));
    const at::Tensor transposed = Mine({3, 5}).t();
    allreduce_(transposed, options);
    EXPECT_TRUE(Same(transposed, All({3, 5}, op).t()));
    const at::Tensor rows =
        reducescatter(Mine({size(), 2}), ReducescatterOptions().op(op));
    EXPECT_TRUE(Same(rows, All({size(), 2}, op).slice(0, rank(), rank() + 1)));
  }
  const at::Tensor scaled = allreduce(
      Mine({4}), AllreduceOptions().op(ReduceOp::Sum).postscale_factor(3));
  EXPECT_TRUE(Same(scaled, All({4}, ReduceOp::Sum).mul(3)));
}

TEST_P(WideUnsignedTest, TheHighestBitIsNoSign) {
  const at::Tensor mine =
      at::full({3}, rank() == 0 ? -1 : 1, at::kLong).to(GetParam());
  const auto with = [&](ReduceOp op) {
    return allreduce(mine, AllreduceOptions().op(op))
        .to(at::kLong)[2]
        .item<int64_t>();
  };
  EXPECT_EQ(with(ReduceOp::Max),
            mine.element_size() == 8
                ? -1
                : (int64_t{1} << 8 * mine.element_size()) - 1);
  if (size() > 1) {
    EXPECT_EQ(with(ReduceOp::Min), 1);
    EXPECT_EQ(with(ReduceOp::Sum), size() - 2);
  }
}

TEST_P(WideUnsignedTest, AreMoved) {
  EXPECT_TRUE(
      Same(broadcast(Mine({2, 3}), size() - 1), Mine({2, 3}, size() - 1)));
  const at::Tensor in_place = Mine({2, 3}).t();
  broadcast_(in_place, 0);
  EXPECT_TRUE(Same(in_place, Mine({2, 3}, 0).t()));
  std::vector<at::Tensor> parts;
  for (int i = 0; i < size(); ++i) {
    parts.push_back(Values(i, {size(), 2}, at::kByte));
  }
  const at::Tensor all = at::cat(parts);
  EXPECT_TRUE(Same(allgather(Mine({size(), 2})), all));
  EXPECT_TRUE(Same(std::get<0>(alltoall(Mine({size(), 2}))),
                   all.view({size(), size(), 2}).select(1, rank())));
}

TEST_P(WideUnsignedTest, AreNotAddedAsSparseTensors) {
  const at::Tensor coo = at::_sparse_coo_tensor_unsafe(
      at::zeros({1, 1}, at::kLong), Mine({1}), {4});
  ExpectSameError([&] { sparse_allreduce(coo); },
                  "does not add sparse tensors of uint");
}

INSTANTIATE_TEST_SUITE_P(Types, WideUnsignedTest,
                         ::testing::Values(internal::kUint16, internal::kUint32,
                                           internal::kUint64));

}  // namespace
}  // namespace hvdlite
