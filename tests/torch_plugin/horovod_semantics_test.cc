// What users of Horovod rely on: values and gradients; tests/horovod_parity.md
// tells which of Horovod's test cases is covered where.
#include <ATen/Context.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>

#include <functional>
#include <vector>

#include "tests/torch_plugin/horovod_sets.h"
#include "tests/torch_plugin/rank_values.h"

namespace hvdlite {
namespace {

constexpr at::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kHalf,
                                     at::kInt, at::kLong};
constexpr at::ScalarType kFloats[] = {at::kFloat, at::kDouble, at::kHalf,
                                      at::kBFloat16};

// {rows}, {rows, 5} or {rows, 5, 3}.
std::vector<int64_t> ShapeOf(int64_t rows, size_t dimensions) {
  std::vector<int64_t> shape = {rows, 5, 3};
  shape.resize(dimensions);
  return shape;
}

// Integers from -100 to 100, so that sums over up to ten ranks are exact in
// every type. `rank` and `salt` choose them.
at::Tensor RandomValues(int rank, at::IntArrayRef shape, at::ScalarType type,
                        int salt = 0) {
  at::manual_seed(static_cast<uint64_t>(1000 * salt + rank));
  return at::randint(-100, 101, shape, at::kLong).to(type);
}

// Those of all members.
std::vector<at::Tensor> MembersValues(const ProcessSet& set,
                                      at::IntArrayRef shape,
                                      at::ScalarType type, int salt = 0) {
  std::vector<at::Tensor> values;
  for (const int member : set.ranks()) {
    values.push_back(RandomValues(member, shape, type, salt));
  }
  return values;
}

// The rows of `tensor` that reducescatter() leaves with the set's member.
at::Tensor PartOf(const at::Tensor& tensor, const ProcessSet& set) {
  return tensor.tensor_split(set.size())[static_cast<size_t>(set.rank())];
}

// `tolerance`: of floats; others are exact. Not given: as Close().
void ExpectEachClose(const std::vector<at::Tensor>& actual,
                     const std::vector<at::Tensor>& expected,
                     double tolerance = 0) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].scalar_type(), expected[i].scalar_type());
    ASSERT_EQ(actual[i].sizes(), expected[i].sizes());
    const bool is_close =
        tolerance > 0 && actual[i].is_floating_point()
            ? at::allclose(actual[i].to(at::kDouble),
                           expected[i].to(at::kDouble), 0, tolerance)
            : Close(actual[i], expected[i]);
    EXPECT_TRUE(is_close) << "tensor " << i << "\n"
                          << actual[i] << "\ninstead of\n"
                          << expected[i];
  }
}

// Calls run(set, type, dimensions).
template <typename Run>
void ForEverySetTypeAndDimension(Run run) {
  ForAllRanksAndByParity([&](const ProcessSet& set) {
    for (const at::ScalarType type : kTypes) {
      for (const size_t dimensions : {1U, 2U, 3U}) {
        SCOPED_TRACE(::testing::Message() << set.size() << " ranks, " << type
                                          << ", dimensions " << dimensions);
        run(set, type, dimensions);
      }
    }
  });
}

TEST(HorovodSemanticsTest, RandomTensorsOfOneToThreeDimensionsAreReduced) {
  ForEverySetTypeAndDimension([](const ProcessSet& set, at::ScalarType type,
                                 size_t dimensions) {
    const std::vector<int64_t> shape = ShapeOf(17, dimensions);
    for (const ReduceOp op : kOps) {
      // Products leave the range of float16.
      if (op == ReduceOp::Product && type == at::kHalf) continue;
      const auto options = AllreduceOptions().op(op).process_set(set);
      std::vector<at::Tensor> mine;
      std::vector<at::Tensor> expected;
      for (int salt = 0; salt < 5; ++salt) {
        mine.push_back(RandomValues(rank(), shape, type, salt));
        expected.push_back(Reduced(MembersValues(set, shape, type, salt), op));
      }
      EXPECT_TRUE(Close(allreduce(mine[0], options), expected[0]));
      ExpectEachClose(grouped_allreduce(mine, options), expected);
      grouped_allreduce_(mine, options);
      ExpectEachClose(mine, expected);
    }
  });
}

TEST(HorovodSemanticsTest, RandomTensorsOfOneToThreeDimensionsAreScattered) {
  ForEverySetTypeAndDimension(
      [](const ProcessSet& set, at::ScalarType type, size_t dimensions) {
        const std::vector<int64_t> shape = ShapeOf(4 * set.size(), dimensions);
        for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Average}) {
          const auto options = ReducescatterOptions().op(op).process_set(set);
          std::vector<at::Tensor> mine;
          std::vector<at::Tensor> expected;
          for (int salt = 0; salt < 5; ++salt) {
            mine.push_back(RandomValues(rank(), shape, type, salt));
            expected.push_back(PartOf(
                Reduced(MembersValues(set, shape, type, salt), op), set));
          }
          EXPECT_TRUE(Close(reducescatter(mine[0], options), expected[0]));
          ExpectEachClose(grouped_reducescatter(mine, options), expected);
        }
      });
}

TEST(HorovodSemanticsTest, RandomTensorsOfOneToThreeDimensionsAreMoved) {
  ForEverySetTypeAndDimension([](const ProcessSet& set, at::ScalarType type,
                                 size_t dimensions) {
    // Unequal rows.
    std::vector<at::Tensor> parts;
    for (const int member : set.ranks()) {
      parts.push_back(
          RandomValues(member, ShapeOf(3 + 2 * member, dimensions), type));
    }
    const at::Tensor mine = parts[static_cast<size_t>(set.rank())];
    const auto gathering = AllgatherOptions().process_set(set);
    EXPECT_TRUE(allgather(mine, gathering).equal(at::cat(parts)));
    ExpectEachClose(grouped_allgather({mine, mine, mine}, gathering),
                    std::vector<at::Tensor>(3, at::cat(parts)));

    const std::vector<int64_t> shape = ShapeOf(17, dimensions);
    for (const int root : set.ranks()) {
      const at::Tensor input = RandomValues(rank(), shape, type);
      EXPECT_TRUE(broadcast(input, root, BroadcastOptions().process_set(set))
                      .equal(RandomValues(root, shape, type)));
      EXPECT_TRUE(input.equal(RandomValues(rank(), shape, type)));
    }

    // Each member sends its global rank + 1 rows to each member, with splits
    // and without, where they are equal anyway.
    std::vector<at::Tensor> received;
    std::vector<int64_t> received_splits;
    for (const int member : set.ranks()) {
      const int64_t rows = member + 1;
      received_splits.push_back(rows);
      received.push_back(
          RandomValues(member, ShapeOf(rows * set.size(), dimensions), type)
              .slice(0, rows * set.rank(), rows * (set.rank() + 1)));
    }
    const int64_t rows = rank() + 1;
    const at::Tensor sent =
        RandomValues(rank(), ShapeOf(rows * set.size(), dimensions), type);
    for (const at::Tensor& splits :
         {at::full({set.size()}, rows, at::kInt), at::Tensor()}) {
      const auto [output, output_splits] =
          alltoall(sent, splits, AlltoallOptions().process_set(set));
      EXPECT_TRUE(output.equal(at::cat(received)));
      EXPECT_TRUE(output_splits.equal(
          at::tensor(received_splits, at::kLong).to(at::kInt)));
    }
  });
}

// `factor` times the tensor: integers in float64, truncated toward zero.
at::Tensor Scaled(const at::Tensor& tensor, double factor) {
  const at::Tensor product = tensor.to(at::kDouble) * factor;
  return (tensor.is_floating_point() ? product : product.trunc())
      .to(tensor.scalar_type());
}

TEST(HorovodSemanticsTest, AnyFactorScalesBeforeAndAfterInEveryType) {
  constexpr double kFactor = 0.1915194503788923;
  ForEverySetTypeAndDimension([](const ProcessSet& set, at::ScalarType type,
                                 size_t dimensions) {
    // Numbers up to 100 are rounded in each of several steps.
    const double tolerance = type == at::kHalf    ? 0.2
                             : type == at::kFloat ? 1e-4
                                                  : 1e-12;
    const std::vector<int64_t> shape = ShapeOf(4 * set.size(), dimensions);
    const at::Tensor mine = RandomValues(rank(), shape, type);
    std::vector<at::Tensor> values = MembersValues(set, shape, type);
    const at::Tensor after = Scaled(Reduced(values, ReduceOp::Sum), kFactor);
    for (at::Tensor& value : values) value = Scaled(value, kFactor);
    const at::Tensor before = Reduced(values, ReduceOp::Sum);
    for (const bool is_before : {true, false}) {
      const double prescale = is_before ? kFactor : 1;
      const double postscale = is_before ? 1 : kFactor;
      const at::Tensor expected = is_before ? before : after;
      const auto reducing = AllreduceOptions()
                                .op(ReduceOp::Sum)
                                .prescale_factor(prescale)
                                .postscale_factor(postscale)
                                .process_set(set);
      const auto scattering = ReducescatterOptions()
                                  .op(ReduceOp::Sum)
                                  .prescale_factor(prescale)
                                  .postscale_factor(postscale)
                                  .process_set(set);
      const at::Tensor part = PartOf(expected, set);
      ExpectEachClose(
          {allreduce(mine, reducing), reducescatter(mine, scattering)},
          {expected, part}, tolerance);
      ExpectEachClose(grouped_allreduce({mine, mine}, reducing),
                      {expected, expected}, tolerance);
      ExpectEachClose(grouped_reducescatter({mine, mine}, scattering),
                      {part, part}, tolerance);
    }
  });
}

// Of the sum of all ranks' outputs. Horovod's are the same for allreduce and
// alltoall; it divides those of allgather and broadcast by the number of ranks,
// and multiplies those of reducescatter by it.
TEST(HorovodSemanticsTest, GradientsHaveTheirExactValuesInEveryFloatType) {
  ForAllRanksAndByParity([](const ProcessSet& set) {
    for (const at::ScalarType type : kFloats) {
      for (const size_t dimensions : {1U, 2U, 3U}) {
        const std::vector<int64_t> shape = ShapeOf(4 * set.size(), dimensions);
        const auto leaf = [&] {
          return RandomValues(rank(), shape, type).requires_grad_();
        };
        using Function =
            std::function<std::vector<at::Tensor>(const at::Tensor&)>;
        // All outputs' gradients are ones.
        const auto expect = [&](double expected, const Function& function) {
          const at::Tensor input = leaf();
          for (const at::Tensor& output : function(input)) {
            output.backward(at::ones_like(output), /*retain_graph=*/true);
          }
          EXPECT_TRUE(Close(input.grad(), at::full(shape, expected, type)))
              << set.size() << " ranks, " << type << "\n"
              << input.grad() << "\ninstead of " << expected;
        };
        const double ranks = set.size();
        for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Average}) {
          const bool sums = op == ReduceOp::Sum;
          const auto reducing = AllreduceOptions().op(op).process_set(set);
          expect(sums ? ranks : 1, [&](const at::Tensor& input) {
            return std::vector<at::Tensor>{allreduce(input, reducing)};
          });
          // As the sum of both outputs' gradients.
          expect(sums ? 2 * ranks : 2, [&](const at::Tensor& input) {
            return grouped_allreduce({input, input}, reducing);
          });
          const auto scattering =
              ReducescatterOptions().op(op).process_set(set);
          expect(sums ? 1 : 1 / ranks, [&](const at::Tensor& input) {
            return std::vector<at::Tensor>{reducescatter(input, scattering)};
          });
          expect(sums ? 2 : 2 / ranks, [&](const at::Tensor& input) {
            return grouped_reducescatter({input, input}, scattering);
          });
        }
        const auto gathering = AllgatherOptions().process_set(set);
        expect(ranks, [&](const at::Tensor& input) {
          return std::vector<at::Tensor>{allgather(input, gathering)};
        });
        expect(2 * ranks, [&](const at::Tensor& input) {
          return grouped_allgather({input, input}, gathering);
        });
        for (const int root : set.ranks()) {
          expect(rank() == root ? ranks : 0, [&](const at::Tensor& input) {
            return std::vector<at::Tensor>{
                broadcast(input, root, BroadcastOptions().process_set(set))};
          });
        }
        expect(1, [&](const at::Tensor& input) {
          return std::vector<at::Tensor>{std::get<0>(
              alltoall(input, {}, AlltoallOptions().process_set(set)))};
        });
      }
    }
  });
}

}  // namespace
}  // namespace hvdlite
