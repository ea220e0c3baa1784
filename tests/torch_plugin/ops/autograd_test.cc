// Gradients through operations, compared with numerical gradients.
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/torch_plugin/rank_values.h"

namespace hvdlite {
namespace {

using Function = std::function<std::vector<at::Tensor>(
    const std::vector<at::Tensor>& inputs)>;

// This rank's part of the loss: nonlinear, and different for each rank.
at::Tensor LossOf(const std::vector<at::Tensor>& outputs) {
  at::Tensor loss = at::zeros({}, at::kDouble);
  double number = 1;
  for (const at::Tensor& of_any_type : outputs) {
    const at::Tensor output = of_any_type.to(at::kDouble);
    const at::Tensor weights = at::arange(output.numel(), at::kDouble)
                                   .mul(0.37 * number)
                                   .add(rank() + 1)
                                   .sin()
                                   .view(output.sizes());
    loss = loss + (output * weights).sum() + (output * output).sum() * 0.1;
    number += 1;
  }
  return loss;
}

// Compares the gradients of the sum of the ranks' losses with finite
// differences, for each element of each rank's inputs in turn. Returns this
// rank's gradients. Collective in the set.
std::vector<at::Tensor> CheckGradients(const Function& function,
                                       const std::vector<at::Tensor>& start,
                                       const ProcessSet& set) {
  std::vector<at::Tensor> inputs;
  for (const at::Tensor& tensor : start) {
    inputs.push_back(tensor.clone().requires_grad_());
  }
  LossOf(function(inputs)).backward();

  const at::NoGradGuard no_grad;
  const auto total_loss = [&] {
    return allreduce(LossOf(function(inputs)),
                     AllreduceOptions().op(ReduceOp::Sum).process_set(set))
        .item<double>();
  };
  constexpr double kStep = 1e-5;
  for (int member = 0; member < set.size(); ++member) {
    const bool mine = member == set.rank();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const at::Tensor count =
          broadcast(at::scalar_tensor(inputs[i].numel(), at::kLong),
                    set.ranks()[static_cast<size_t>(member)],
                    BroadcastOptions().process_set(set));
      for (int64_t element = 0; element < count.item<int64_t>(); ++element) {
        const auto add = [&](double step) {
          if (mine) inputs[i].detach().view(-1)[element].add_(step);
        };
        add(kStep);
        const double above = total_loss();
        add(-2 * kStep);
        const double below = total_loss();
        add(kStep);
        if (!mine) continue;
        EXPECT_NEAR(inputs[i].grad().reshape(-1)[element].item<double>(),
                    (above - below) / (2 * kStep), 1e-6)
            << "input " << i << " element " << element;
      }
    }
  }
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& input : inputs) gradients.push_back(input.grad());
  return gradients;
}

// The same; also checks that inputs of every other float type have the same
// gradients within their rounding.
void CheckGradientsInEveryType(const Function& function,
                               const std::vector<at::Tensor>& start,
                               const ProcessSet& set) {
  const std::vector<at::Tensor> exact = CheckGradients(function, start, set);
  for (const auto& [type, tolerance] :
       {std::pair(at::kFloat, 1e-5), std::pair(at::kHalf, 5e-3),
        std::pair(at::kBFloat16, 4e-2)}) {
    std::vector<at::Tensor> inputs;
    for (const at::Tensor& tensor : start) {
      inputs.push_back(tensor.to(type).requires_grad_());
    }
    LossOf(function(inputs)).backward();
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_EQ(inputs[i].grad().scalar_type(), type);
      if (inputs[i].numel() == 0) continue;
      const double largest = exact[i].abs().max().item<double>();
      EXPECT_TRUE(at::allclose(inputs[i].grad().to(at::kDouble), exact[i],
                               /*rtol=*/0, tolerance * largest))
          << type << " input " << i << "\n"
          << inputs[i].grad() << "\ninstead of\n"
          << exact[i];
    }
  }
}

at::Tensor Input(at::IntArrayRef shape, int salt = 0) {
  return Values(rank(), shape, at::kDouble, salt).mul(0.3).add(0.1);
}

TEST(AutogradTest, EveryOperationHasTheGradientOfTheRanksLosses) {
  using Inputs = std::vector<at::Tensor>;
  struct Operation {
    const char* name;
    Inputs inputs;
    Function run;
  };
  ForSeveralSets([](const ProcessSet& set) {
    std::vector<Operation> operations;
    for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Average}) {
      const auto reducing = AllreduceOptions()
                                .op(op)
                                .prescale_factor(1.5)
                                .postscale_factor(0.7)
                                .process_set(set);
      const auto scattering = ReducescatterOptions()
                                  .op(op)
                                  .prescale_factor(0.5)
                                  .postscale_factor(3)
                                  .process_set(set);
      operations.push_back({"allreduce", {Input({2, 2})}, [=](auto& inputs) {
                              return Inputs{allreduce(inputs[0], reducing)};
                            }});
      // Integers take part without a gradient.
      operations.push_back(
          {"grouped_allreduce",
           {Input({3}), Input({1, 2}, 1)},
           [=](auto& inputs) {
             const Inputs results = grouped_allreduce(
                 {inputs[0], at::ones({2}, at::kLong), inputs[1]}, reducing);
             return Inputs{results[0], results[2]};
           }});
      operations.push_back(
          {"reducescatter", {Input({5, 2})}, [=](auto& inputs) {
             return Inputs{reducescatter(inputs[0], scattering)};
           }});
      operations.push_back({"grouped_reducescatter",
                            {Input({3}), Input({1, 2}, 1)},
                            [=](auto& inputs) {
                              return grouped_reducescatter(inputs, scattering);
                            }});
    }
    const auto gathering = AllgatherOptions().process_set(set);
    operations.push_back(
        {"allgather", {Input({set.rank() + 1, 2})}, [=](auto& inputs) {
           return Inputs{allgather(inputs[0], gathering)};
         }});
    operations.push_back(
        {"grouped_allgather",
         {Input({set.rank(), 2}), Input({2}, 1)},
         [=](auto& inputs) { return grouped_allgather(inputs, gathering); }});
    for (const int root : set.ranks()) {
      operations.push_back(
          {"broadcast", {Input({3})}, [=](auto& inputs) {
             return Inputs{broadcast(inputs[0], root,
                                     BroadcastOptions().process_set(set))};
           }});
    }
    // Member m sends m + other rows to each other member, or equally many to
    // each.
    const at::Tensor splits = at::arange(set.size(), at::kLong).add(set.rank());
    for (const at::Tensor& given : {splits, at::Tensor()}) {
      const int64_t rows =
          given.defined() ? splits.sum().item<int64_t>() : 2 * set.size();
      operations.push_back(
          {"alltoall", {Input({rows, 2})}, [=](auto& inputs) {
             return Inputs{std::get<0>(alltoall(
                 inputs[0], given, AlltoallOptions().process_set(set)))};
           }});
    }
    for (const Operation& operation : operations) {
      SCOPED_TRACE(operation.name);
      CheckGradientsInEveryType(operation.run, operation.inputs, set);
    }
  });
}

// The caller may change the splits that it gets.
TEST(AutogradTest, ChangedReceivedSplitsDoNotMisleadTheBackwardPass) {
  const at::Tensor rows = at::ones({size()}, at::kDouble).requires_grad_();
  auto [output, received] = alltoall(rows);
  received.fill_(1000);
  (output * (rank() + 1)).sum().backward();
  for (int other = 0; other < size(); ++other) {
    EXPECT_EQ(rows.grad()[other].item<int>(), other + 1);
  }
}

// Differences of the losses are computed for each part separately.
TEST(AutogradTest, ComplexTensorsHaveTheGradientsOfTheirParts) {
  const auto check = [](const std::vector<int64_t>& shape, const auto& run) {
    CheckGradients(
        [&](const std::vector<at::Tensor>& inputs) {
          const at::Tensor numbers = at::view_as_complex(inputs[0]);
          const at::Tensor factor =
              at::complex(at::scalar_tensor(0.3 + rank(), at::kDouble),
                          at::scalar_tensor(-0.7, at::kDouble));
          // Both complex differentiable functions and others.
          const at::Tensor output =
              run(numbers * factor + (numbers * numbers).conj());
          return std::vector<at::Tensor>{
              at::view_as_real((output * factor).resolve_conj())};
        },
        {Input(shape)}, ProcessSet());
  };
  for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Average}) {
    check({2, 2}, [&](const at::Tensor& numbers) {
      return allreduce(
          numbers,
          AllreduceOptions().op(op).prescale_factor(1.5).postscale_factor(0.7));
    });
    check({2, 2}, [&](const at::Tensor& numbers) {
      return grouped_allreduce({at::ones({2}, at::kLong), numbers.conj()},
                               AllreduceOptions().op(op))[1];
    });
    check({5, 2}, [&](const at::Tensor& numbers) {
      return reducescatter(numbers, ReducescatterOptions().op(op));
    });
  }
  check({rank() + 1, 2},
        [](const at::Tensor& numbers) { return allgather(numbers); });
  check({3, 2}, [](const at::Tensor& numbers) {
    return broadcast(numbers.conj(), size() - 1);
  });
  check({2 * size(), 2}, [](const at::Tensor& numbers) {
    return std::get<0>(alltoall(numbers));
  });
}

TEST(AutogradTest, ComplexLeafGetsAGradientAsLibTorchDefinesIt) {
  for (const at::ScalarType type : {at::kComplexFloat, at::kComplexDouble}) {
    const at::Tensor leaf = Values(rank(), {4}, type).detach().requires_grad_();
    const at::Tensor sum =
        allreduce(leaf, AllreduceOptions().op(ReduceOp::Sum));
    at::view_as_real(sum).pow(2).sum().backward();
    // The gradient of |z|^2 is 2z, and each rank's loss contains the sum.
    const at::Tensor expected =
        ReducedValues(ProcessSet().ranks(), {4}, type, ReduceOp::Sum) *
        (2 * size());
    EXPECT_TRUE(Close(leaf.grad(), expected)) << leaf.grad();
  }
}

TEST(AutogradTest, OperationsCompose) {
  CheckGradients(
      [](const std::vector<at::Tensor>& inputs) {
        const at::Tensor gathered = allgather(inputs[0].sin());
        const at::Tensor part = reducescatter(
            gathered * gathered, ReducescatterOptions().op(ReduceOp::Sum));
        return std::vector<at::Tensor>{allreduce(part.sum() * inputs[0])};
      },
      {Input({2, 2})}, ProcessSet());
}

TEST(AutogradTest, OutputWithoutEffectHasZeroGradient) {
  const at::Tensor first = at::ones({2}, at::kDouble).requires_grad_();
  const at::Tensor second = at::ones({3}, at::kDouble).requires_grad_();
  const auto outputs =
      grouped_allreduce({first, second}, AllreduceOptions().op(ReduceOp::Sum));
  outputs[rank() == 0 ? 0 : 1].sum().backward();
  EXPECT_TRUE(first.grad().eq(1).all().item<bool>());
  EXPECT_TRUE(second.grad().eq(size() - 1).all().item<bool>());
}

TEST(AutogradTest, GradientsOfGradientsAreRecorded) {
  const at::Tensor input = Input({2}).requires_grad_();
  const at::Tensor output =
      allreduce(input * input * input, AllreduceOptions().op(ReduceOp::Sum));
  output.sum().backward({}, /*retain_graph=*/true, /*create_graph=*/true);
  const at::Tensor gradient = input.grad();
  // Each rank's loss contains the part, hence the factor.
  EXPECT_TRUE(at::allclose(gradient, 3 * size() * input * input));
  input.mutable_grad() = at::Tensor();
  gradient.sum().backward();
  EXPECT_TRUE(at::allclose(input.grad(), 6 * size() * input));
}

TEST(AutogradTest, OnlyOutOfPlaceSynchronousFormsAreRecorded) {
  const at::Tensor input = Input({2}).requires_grad_();
  EXPECT_TRUE(allreduce(input).requires_grad());
  EXPECT_FALSE(allreduce_async(input).wait().requires_grad());
  EXPECT_FALSE(allgather_async(input).wait().requires_grad());
  EXPECT_FALSE(reducescatter_async(input).wait().requires_grad());
  EXPECT_FALSE(broadcast_async(input, 0).wait().requires_grad());
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(allreduce(input).requires_grad());
  EXPECT_FALSE(
      allreduce(input, AllreduceOptions().op(ReduceOp::Max)).requires_grad());
}

}  // namespace
}  // namespace hvdlite
