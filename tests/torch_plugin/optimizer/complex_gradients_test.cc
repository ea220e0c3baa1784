// Special cases of complex parameters, on any number of ranks.
// training_equivalence_test.cc trains ComplexModel.
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include "tests/torch_plugin/rank_values.h"
#include "tests/torch_plugin/same_error.h"
#include "tests/torch_plugin/small_net.h"

namespace hvdlite {
namespace {

class ComplexGradientsTest : public EveryWayTest {};

INSTANTIATE_TEST_SUITE_P(, ComplexGradientsTest, EveryWay());

TEST_P(ComplexGradientsTest, LazyConjugationAndNegationAreApplied) {
  torch::Tensor weight =
      torch::zeros({2, 3}, torch::kComplexFloat).requires_grad_();
  torch::Tensor other = torch::zeros({5}).requires_grad_();
  DistributedOptimizer optimizer = DistributeSgd(
      {{"weight", weight}, {"other", other}}, options().op(ReduceOp::Sum));
  for (int step = 0; step < 3; ++step) {
    const auto values = [&](at::IntArrayRef shape, at::ScalarType type) {
      return Values(rank(), shape, type, step);
    };
    const auto sum = [&](at::IntArrayRef shape, at::ScalarType type) {
      return ReducedValues(ProcessSet().ranks(), shape, type, ReduceOp::Sum,
                           step);
    };
    {
      // These views do not keep their base alive, so no other tensor refers to
      // the gradients' memory.
      const at::AutoDispatchBelowADInplaceOrView guard;
      weight.mutable_grad() = values({2, 3}, torch::kComplexFloat).conj();
      other.mutable_grad() = at::_neg_view(values({5}, torch::kFloat));
    }
    ASSERT_TRUE(weight.grad().is_conj());
    ASSERT_TRUE(other.grad().is_neg());
    optimizer.synchronize();
    EXPECT_TRUE(weight.grad().equal(sum({2, 3}, torch::kComplexFloat).conj()));
    EXPECT_TRUE(other.grad().equal(-sum({5}, torch::kFloat)));
    optimizer.zero_grad();
  }
}

TEST_P(ComplexGradientsTest, SparseGradientsAreReduced) {
  torch::Tensor table =
      torch::zeros({9, 2}, torch::kComplexDouble).requires_grad_();
  DistributedOptimizer optimizer = DistributeSgd({{"table", table}}, options());
  const torch::Tensor values =
      Values(rank(), {1, 2}, torch::kComplexDouble).conj();
  table.mutable_grad() = torch::sparse_coo_tensor(
      torch::full({1, 1}, rank(), torch::kLong), values, {9, 2});
  optimizer.synchronize();
  const torch::Tensor gradient = table.grad().to_dense();
  for (int i = 0; i < size(); ++i) {
    EXPECT_TRUE(torch::allclose(
        gradient[i], Values(i, {2}, torch::kComplexDouble).conj() / size()));
  }
}

TEST_P(ComplexGradientsTest, AdasumIsRejected) {
  torch::Tensor weight =
      torch::zeros({3}, torch::kComplexDouble).requires_grad_();
  ExpectSameError(
      [&] {
        DistributeSgd({{"weight", weight}}, options().op(ReduceOp::Adasum));
      },
      "parameter 'weight': Adasum supports floating-point tensors only, but "
      "the dtype is complex128");
}

}  // namespace
}  // namespace hvdlite
