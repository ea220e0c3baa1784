// Special cases of reductions. values_test.cc tests the values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "tests/torch_plugin/compression_rounds.h"
#include "tests/torch_plugin/rank_values.h"
#include "tests/torch_plugin/same_error.h"

namespace hvdlite {
namespace {

// 1 + 2 + ... + size()
int64_t SumOfRanksPlusOne() { return size() * (size() + 1) / 2; }

at::Tensor RankPlusOne(at::IntArrayRef shape, at::ScalarType type) {
  return at::full(shape, rank() + 1, type);
}

TEST(AllreduceTest, AGroupMayBeEmpty) {
  EXPECT_TRUE(grouped_allreduce({}).empty());
  EXPECT_TRUE(grouped_allreduce_({}).empty());
  EXPECT_TRUE(grouped_allgather({}).empty());
  EXPECT_TRUE(grouped_reducescatter({}).empty());
  EXPECT_TRUE(grouped_allgather_async({}).wait().empty());
  EXPECT_TRUE(grouped_reducescatter_async({}).wait().empty());
  const GroupWork work = grouped_allreduce_async({});
  EXPECT_TRUE(work.wait().empty());
  EXPECT_TRUE(work.is_completed());
  EXPECT_TRUE(work.wait_for(std::chrono::milliseconds(0)));
}

TEST(AllreduceTest, ZerosWithoutMemoryAreReduced) {
  const at::Tensor zeros =
      at::_efficientzerotensor({3}, at::TensorOptions().dtype(at::kFloat));
  const at::Tensor sum = allreduce(zeros, With(ReduceOp::Sum));
  EXPECT_TRUE(sum.equal(at::zeros({3})));
}

TEST(AllreduceTest, AverageOfIntegersIsTruncatedTowardZero) {
  const auto average = [](int sign) {
    return allreduce(RankPlusOne({1}, at::kInt).mul(sign)).item<int>();
  };
  EXPECT_EQ(average(1), SumOfRanksPlusOne() / size());
  EXPECT_EQ(average(-1), -(SumOfRanksPlusOne() / size()));
}

TEST(AllreduceTest, IntegersWrapAround) {
  const at::Tensor most = at::full({2}, 127, at::kChar);
  EXPECT_EQ(allreduce(most, With(ReduceOp::Sum))[0].item<int>(),
            static_cast<int8_t>(127 * size()));
  const at::Tensor wide = at::full({2}, 32767, at::kShort);
  EXPECT_EQ(allreduce(wide, With(ReduceOp::Sum))[0].item<int>(),
            static_cast<int16_t>(32767 * size()));
}

TEST(AllreduceTest, ScaledIntegersAreTruncatedTowardZero) {
  const at::Tensor odd = at::full({1}, 5, at::kInt);
  EXPECT_EQ(
      allreduce(odd, With(ReduceOp::Max).prescale_factor(0.5)).item<int>(), 2);
  EXPECT_EQ(
      allreduce(odd, With(ReduceOp::Min).postscale_factor(-0.5)).item<int>(),
      -2);
}

TEST(AllreduceTest, CompressedValuesAreRoundedToSixteenBits) {
  const double kept = testing::CompressionRounds() ? 0 : 1;
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    // 1 + 1/512 can be represented in float16, but not in bfloat16.
    const at::Tensor mine = at::full({5}, 1.0 + 1.0 / 512, type);
    const auto with = [](Compression compression) {
      return With(ReduceOp::Max).compression(compression);
    };
    EXPECT_TRUE(allreduce(mine, with(Compression::FP16)).equal(mine));
    EXPECT_TRUE(allreduce(mine, with(Compression::BF16))
                    .equal(at::full({5}, 1.0 + kept / 512, type)));
    const at::Tensor fine = at::full({5}, 1.0 + 1.0 / 65536, type);
    EXPECT_TRUE(allreduce(fine, with(Compression::None)).equal(fine));
    EXPECT_TRUE(allreduce(fine, with(Compression::FP16))
                    .equal(at::full({5}, 1.0 + kept / 65536, type)));
    const at::Tensor sum =
        allreduce(RankPlusOne({2}, type),
                  With(ReduceOp::Sum).compression(Compression::FP16));
    EXPECT_TRUE(sum.equal(at::full({2}, SumOfRanksPlusOne(), type)));
  }
  const at::Tensor complex =
      at::complex(at::full({2}, 1.0 / 3), at::full({2}, -2.0 / 3));
  EXPECT_TRUE(
      allreduce(complex, With(ReduceOp::Sum).compression(Compression::BF16))
          .div(size())
          .sub(complex)
          .abs()
          .le(1e-6)
          .all()
          .item<bool>());
  const at::Tensor integers = at::full({2}, 1'000'001, at::kInt);
  EXPECT_TRUE(
      allreduce(integers, With(ReduceOp::Max).compression(Compression::BF16))
          .equal(integers));
}

TEST(AllreduceTest, CompressedAveragesStayInTheRangeOfSixteenBits) {
  for (const int64_t count : {5, 100'000}) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const at::Tensor mine = at::full({count}, 20000, type);
      const at::Tensor average =
          allreduce(mine, AllreduceOptions().compression(Compression::FP16));
      EXPECT_TRUE(at::allclose(average, mine, /*rtol=*/1e-3))
          << average.max().item<double>();
    }
  }
}

// With every transport; the sum of two values would be infinite.
TEST(AllreduceTest, AveragesOfSixteenBitFloatsStayInTheirRange) {
  for (const auto& [type, value] :
       {std::pair{at::kHalf, 40000.0}, std::pair{at::kBFloat16, 3e38}}) {
    for (const int64_t rows : {1, 8, 8000}) {
      const at::Tensor mine =
          at::full({rows * size(), 2}, value, at::kFloat).to(type);
      const auto expect_value = [&](const at::Tensor& result) {
        EXPECT_TRUE(
            at::allclose(result.to(at::kDouble),
                         mine.narrow(0, 0, result.size(0)).to(at::kDouble),
                         /*rtol=*/2e-2))
            << type << " " << rows << " " << result.max().item<double>();
      };
      expect_value(allreduce(mine));
      expect_value(allreduce_(mine.clone()));
      for (const at::Tensor& result : grouped_allreduce({mine, mine})) {
        expect_value(result);
      }
      for (const double scale : {2.0, 1 / 3.0}) {
        expect_value(allreduce(
            mine, AllreduceOptions().prescale_factor(scale).postscale_factor(
                      1 / scale)));
        expect_value(reducescatter(mine, ReducescatterOptions()
                                             .op(ReduceOp::Average)
                                             .prescale_factor(scale)
                                             .postscale_factor(1 / scale)));
      }
      expect_value(
          allreduce(mine, With(ReduceOp::Sum).postscale_factor(1.0 / size())));
      expect_value(allreduce(mine, With(ReduceOp::Adasum)));
      expect_value(
          reducescatter(mine, ReducescatterOptions().op(ReduceOp::Average)));
    }
  }
}

TEST(AllreduceTest, AveragesOfLargeIntegersAreExact) {
  const int64_t value = (int64_t{1} << 60) / size() + 1;
  for (const int sign : {1, -1}) {
    const at::Tensor mine = at::full({size() * 10}, sign * value, at::kLong);
    EXPECT_TRUE(allreduce(mine).equal(mine)) << sign;
    EXPECT_TRUE(
        reducescatter(mine, ReducescatterOptions().op(ReduceOp::Average))
            .equal(mine.narrow(0, 0, 10)))
        << sign;
  }
}

TEST(AllreduceTest, AdasumAddsOrthogonalAndAveragesParallelTensors) {
  ForSeveralSets([](const ProcessSet& set) {
    const auto options = With(ReduceOp::Adasum).process_set(set);
    const at::Tensor parallel = at::arange(1, 8, at::kFloat);
    EXPECT_TRUE(Close(allreduce(parallel, options), parallel));
    at::Tensor orthogonal = at::zeros({set.size()}, at::kDouble);
    orthogonal[set.rank()] = set.rank() + 1;
    EXPECT_TRUE(Close(allreduce(orthogonal, options),
                      at::arange(1, set.size() + 1, at::kDouble)));
  });
}

TEST(AllreduceTest, AdasumOfTwoRanksFollowsItsFormula) {
  if (size() < 2) GTEST_SKIP() << "needs two ranks";
  const ProcessSet pair = add_process_set({0, 1});
  const at::Tensor a = at::arange(0, 6, at::kDouble).sub(2);
  const at::Tensor b = at::arange(0, 6, at::kDouble).mul(0.5).add(1);
  const at::Tensor dot = a.dot(b);
  const at::Tensor expected =
      a * (1 - dot / (2 * a.dot(a))) + b * (1 - dot / (2 * b.dot(b)));
  if (pair.included()) {
    const auto options = With(ReduceOp::Adasum).process_set(pair);
    const at::Tensor mine = rank() == 0 ? a : b;
    EXPECT_TRUE(Close(allreduce(mine, options), expected));
    // Each tensor of a group is combined separately.
    const std::vector<at::Tensor> group =
        grouped_allreduce({mine, mine.mul(3)}, options);
    EXPECT_TRUE(Close(group[0], expected));
    EXPECT_TRUE(Close(group[1], expected.mul(3)));
  }
  remove_process_set(pair);
}

TEST(AllreduceTest, NonContiguousTensorsAreReducedInPlaceWithEveryWait) {
  for (const int way : {0, 1, 2}) {
    at::Tensor whole = at::zeros({4, 6});
    at::Tensor part = whole.t().slice(/*dim=*/0, /*start=*/1, /*end=*/5, 2);
    part.copy_(at::arange(8).view({2, 4}).to(at::kFloat) * (rank() + 1));
    const Work work = allreduce_async_(part, With(ReduceOp::Sum));
    if (way == 0) {
      work.wait();
    } else if (way == 1) {
      while (!work.wait_for(std::chrono::milliseconds(10))) {
      }
    } else {
      while (!work.is_completed()) std::this_thread::yield();
    }
    const at::Tensor expected = at::arange(8).view({2, 4}).to(at::kFloat) *
                                static_cast<double>(SumOfRanksPlusOne());
    EXPECT_TRUE(part.equal(expected)) << way << "\n" << part;
    EXPECT_EQ(whole.slice(1, 0, 1).abs().sum().item<float>(), 0);
  }
}

TEST(AllreduceTest, ColumnsOfAMatrixAreReducedInPlaceAsAGroup) {
  const at::Tensor matrix = Values(rank(), {4, 3}, at::kLong);
  const std::vector<at::Tensor> columns = matrix.unbind(1);
  grouped_allreduce_(columns, With(ReduceOp::Sum));
  EXPECT_TRUE(matrix.equal(
      ReducedValues(ProcessSet().ranks(), {4, 3}, at::kLong, ReduceOp::Sum)));
}

TEST(AllreduceTest, MemoryFormatsMayDifferAmongRanks) {
  const at::Tensor mine = Values(rank(), {2, 3, 4, 5}, at::kFloat);
  const at::Tensor expected = ReducedValues(ProcessSet().ranks(), {2, 3, 4, 5},
                                            at::kFloat, ReduceOp::Sum);
  for (const bool everywhere : {true, false}) {
    const at::Tensor formatted =
        everywhere || rank() == 0
            ? mine.contiguous(at::MemoryFormat::ChannelsLast)
            : mine;
    EXPECT_TRUE(allreduce(formatted, With(ReduceOp::Sum)).equal(expected));
    const at::Tensor changed = formatted.clone(at::MemoryFormat::Preserve);
    allreduce_(changed, With(ReduceOp::Sum));
    EXPECT_TRUE(changed.equal(expected));
    EXPECT_EQ(changed.strides(), formatted.strides());
  }
}

TEST(AllreduceTest, TakesScalarsAndEmptyTensors) {
  const at::Tensor scalar =
      allreduce(at::scalar_tensor(rank() + 1, at::kLong), With(ReduceOp::Sum));
  EXPECT_EQ(scalar.dim(), 0);
  EXPECT_EQ(scalar.item<int64_t>(), SumOfRanksPlusOne());
  EXPECT_EQ(allreduce(at::empty({0, 3})).sizes(), at::IntArrayRef({0, 3}));
}

TEST(AllreduceTest, TensorsLargerThanAChunkAndAThreshold) {
  const at::Tensor tensor = at::full({20'000'000}, 1.0F);
  allreduce_(tensor, With(ReduceOp::Sum));
  EXPECT_TRUE(tensor.eq(size()).all().item<bool>());
}

TEST(AllreduceTest, LeafThatRequiresAGradientIsReducedInPlace) {
  const at::Tensor leaf = RankPlusOne({2}, at::kFloat).requires_grad_();
  allreduce_(leaf, With(ReduceOp::Sum));
  EXPECT_EQ(leaf[1].item<int64_t>(), SumOfRanksPlusOne());
  EXPECT_TRUE(leaf.is_leaf());
}

TEST(AllreduceTest, LazilyNegatedTensorsAreResolvedFirst) {
  const at::Tensor memory = Values(rank(), {2, 3}, at::kComplexDouble);
  const at::Tensor negated = at::imag(memory.conj());
  ASSERT_TRUE(negated.is_neg());
  const at::Tensor all = at::imag(ReducedValues(
      ProcessSet().ranks(), {2, 3}, at::kComplexDouble, ReduceOp::Sum));
  EXPECT_TRUE(allreduce(negated, With(ReduceOp::Sum)).equal(-all));
  allreduce_(negated, With(ReduceOp::Sum));
  EXPECT_TRUE(at::imag(memory).equal(all));
}

TEST(AllreduceTest, ScalesAndNansDoNotMixRealAndImaginaryParts) {
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

TEST(AllreduceTest, HighestBitOfUnsignedIntegersIsNotASign) {
  for (const at::ScalarType type :
       {at::kByte, internal::kUint16, internal::kUint32, internal::kUint64}) {
    if (type == at::ScalarType::Undefined) continue;
    const at::Tensor mine =
        at::full({3}, rank() == 0 ? -1 : 1, at::kLong).to(type);
    const auto with = [&](ReduceOp op) {
      return allreduce(mine, With(op)).to(at::kLong)[2].item<int64_t>();
    };
    EXPECT_EQ(with(ReduceOp::Max),
              mine.element_size() == 8
                  ? -1
                  : (int64_t{1} << 8 * mine.element_size()) - 1);
    if (size() == 1) continue;
    EXPECT_EQ(with(ReduceOp::Min), 1);
    EXPECT_EQ(with(ReduceOp::Sum), size() - 2);
  }
}

}  // namespace
}  // namespace hvdlite
