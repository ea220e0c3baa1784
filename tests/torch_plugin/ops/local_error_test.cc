// Invalid operations fail on all ranks with the same text, and no rank waits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/torch_plugin/rank_values.h"
#include "tests/torch_plugin/same_error.h"

namespace hvdlite {
namespace {

using ::testing::HasSubstr;

using Run = std::function<void(const at::Tensor&)>;

// All operations on a tensor whose rows can be split, by name. They block.
const std::vector<std::pair<const char*, Run>> kOperations = {
    {"allreduce", [](auto& one) { allreduce(one, With(ReduceOp::Sum)); }},
    {"grouped_allreduce",
     [](auto& one) { grouped_allreduce({one}, With(ReduceOp::Sum)); }},
    {"allgather", [](auto& one) { allgather(one); }},
    {"grouped_allgather", [](auto& one) { grouped_allgather({one}); }},
    {"broadcast", [](auto& one) { broadcast(one, 0); }},
    {"alltoall", [](auto& one) { alltoall(one); }},
    {"reducescatter", [](auto& one) { reducescatter(one); }},
    {"grouped_reducescatter", [](auto& one) { grouped_reducescatter({one}); }},
};

// The operations that work in place or return a Work.
const std::vector<std::pair<const char*, Run>> kOtherForms = {
    {"allreduce_", [](auto& one) { allreduce_(one); }},
    {"allreduce_async", [](auto& one) { allreduce_async(one).wait(); }},
    {"allreduce_async_", [](auto& one) { allreduce_async_(one).wait(); }},
    {"grouped_allreduce_async_",
     [](auto& one) { grouped_allreduce_async_({one}).wait(); }},
    {"allgather_async", [](auto& one) { allgather_async(one).wait(); }},
    {"broadcast_async_", [](auto& one) { broadcast_async_(one, 0).wait(); }},
    {"grouped_reducescatter_async",
     [](auto& one) { grouped_reducescatter_async({one}).wait(); }},
    {"alltoall_async", [](auto& one) { alltoall_async(one).wait(); }},
};

// Runs all `operations` on `tensor`.
void ExpectEachFails(const std::vector<std::pair<const char*, Run>>& operations,
                     const at::Tensor& tensor, const std::string& part) {
  for (const auto& [name, run] : operations) {
    SCOPED_TRACE(name);
    ExpectSameError([&, run = run] { run(tensor); }, part);
  }
}

// Errors that only the last rank causes.
at::Tensor LastRanks(const at::Tensor& bad) {
  return IsLast() ? bad : at::ones({2 * size(), 2});
}

TEST(LocalErrorTest, RepeatedErrorUnderOneNameFailsEachTime) {
  const at::Tensor bad = LastRanks(at::empty({2, 2}, at::kComplexHalf));
  for (int call = 0; call < 3; ++call) {
    ExpectSameError(
        [&] { allreduce_(bad, AllreduceOptions().name("returns")); },
        "dtype ComplexHalf");
  }
}

TEST(LocalErrorTest, UnsupportedTensorErrorNamesTheRank) {
  const at::Tensor meta =
      at::empty({2, 2}, at::TensorOptions().device(at::kMeta));
  const std::pair<at::Tensor, std::string> cases[] = {
      {at::Tensor(), "undefined"},
      {at::ones({2, 2}).to_sparse(), "sparse"},
      {meta, "meta"},
      {at::empty({2, 2}, at::kComplexHalf), "dtype ComplexHalf"},
      {at::empty({2, 2}, at::kComplexHalf), "int16"}};
  const std::string who = "rank " + std::to_string(size() - 1) + ":";
  for (const auto& [bad, part] : cases) {
    for (const std::string& text : {part, who}) {
      ExpectEachFails(kOperations, LastRanks(bad), text);
      ExpectEachFails(kOtherForms, LastRanks(bad), text);
    }
  }
}

TEST(LocalErrorTest, GroupErrorNamesTheTensorsIndex) {
  const at::Tensor ones = at::ones({1});
  const at::Tensor none = LastRanks(at::Tensor());
  const at::Tensor scalar = LastRanks(at::ones({}));
  const at::Tensor weight = at::ones({2}).requires_grad_();
  const at::Tensor other = IsLast() ? at::Tensor() : weight;
  ExpectSameErrors({
      {[&] {
         grouped_allreduce({ones, none});
       },
       "tensor 1 of 2"},
      {[&] {
         grouped_reducescatter({ones, scalar});
       },
       "tensor 1 of 2"},
      {[&] {
         grouped_allgather({ones, scalar});
       },
       "tensor 1 of 2"},
      // One of the tensors that require a gradient.
      {[&] {
         grouped_allreduce({weight, other});
       },
       "undefined"},
      {[&] {
         grouped_allgather({weight, other});
       },
       "undefined"},
      {[&] {
         grouped_reducescatter({weight, other});
       },
       "undefined"},
  });
}

TEST(LocalErrorTest, TensorsWithoutDimensionsHaveNoRows) {
  const at::Tensor scalar = LastRanks(at::ones({}));
  ExpectSameErrors({{[&] { allgather(scalar); }, "unsqueeze(0)"},
                    {[&] { reducescatter(scalar); }, "unsqueeze(0)"},
                    {[&] { alltoall(scalar); }, "unsqueeze(0)"}});
}

TEST(LocalErrorTest, OpsNotSupportedForDtypeOrOperation) {
  const auto scatter = [](const at::Tensor& tensor, ReduceOp op) {
    reducescatter(tensor, ReducescatterOptions().op(op));
  };
  const at::Tensor ones = at::ones({2});
  const at::Tensor flags = at::ones({2}, at::kBool);
  const at::Tensor whole = at::ones({2}, at::kInt);
  ExpectSameErrors({
      {[&] { allreduce(flags); }, "do not support Average"},
      {[&] { scatter(flags, ReduceOp::Average); }, "do not support Average"},
      {[&] { allreduce(whole, With(ReduceOp::Adasum)); }, "floating-point"},
      {[&] { allreduce(ones, With(static_cast<ReduceOp>(99))); },
       "unknown ReduceOp 99"},
      {[&] {
         allreduce(ones, AllreduceOptions().compression(
                             static_cast<Compression>(99)));
       },
       "unknown Compression 99"},
  });
  for (const at::ScalarType type : kDtypes) {
    ExpectSameError(
        [&] { scatter(at::ones({4 * size()}, type), ReduceOp::Adasum); },
        "does not support Adasum");
  }
  const at::Tensor complex = at::ones({2}, at::kComplexFloat);
  for (const auto& [op, part] :
       {std::pair(ReduceOp::Min, "complex64 tensors do not support min"),
        std::pair(ReduceOp::Max, "complex64 tensors do not support max"),
        std::pair(ReduceOp::Product,
                  "complex64 tensors do not support product"),
        std::pair(
            ReduceOp::Adasum,
            "Adasum supports floating-point tensors only, but the dtype is "
            "complex64")}) {
    ExpectSameError([&, op = op] { allreduce(complex, With(op)); }, part);
    ExpectSameError(
        [&, op = op] {
          grouped_allreduce({ones, IsLast() ? complex : ones}, With(op));
        },
        std::string("tensor 1 of 2: ") + part);
    if (op == ReduceOp::Adasum) continue;
    ExpectSameError([&, op = op] { scatter(complex, op); }, part);
  }
}

TEST(LocalErrorTest, OpsWithoutAGradientRejectATensorThatRequiresOne) {
  const at::Tensor tensor = at::ones({2}).requires_grad_();
  for (const ReduceOp op :
       {ReduceOp::Min, ReduceOp::Max, ReduceOp::Product, ReduceOp::Adasum}) {
    ExpectSameErrors(
        {{[&] { allreduce(tensor, With(op)); }, "has no gradient"},
         {[&] { grouped_allreduce({tensor}, With(op)); }, "has no gradient"}});
    if (op == ReduceOp::Adasum) continue;
    ExpectSameError(
        [&] { reducescatter(tensor, ReducescatterOptions().op(op)); },
        "has no gradient");
  }
}

TEST(LocalErrorTest, ScalesMustBeFinite) {
  for (const double bad : {std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    const double scale = IsLast() ? bad : 1.0;
    const at::Tensor ones = at::ones({2});
    ExpectSameErrors(
        {{[&] { allreduce(ones, AllreduceOptions().prescale_factor(scale)); },
          "finite"},
         {[&] {
            reducescatter(ones, ReducescatterOptions().postscale_factor(scale));
          },
          "finite"}});
  }
}

TEST(LocalErrorTest, RootMustBeInTheProcessSet) {
  for (const int root : {-1, size()}) {
    ExpectSameErrors({{[&] { broadcast(at::ones({1}), root); }, "root_rank"},
                      {[&] { broadcast_object("", root); }, "root_rank"}});
  }
  if (size() < 2) return;
  const ProcessSet set = add_process_set({1});
  if (set.included()) {
    ExpectSameError(
        [&] {
          broadcast(at::ones({1}), 0, BroadcastOptions().process_set(set));
        },
        "root_rank 0 is not one of", set);
  }
  remove_process_set(set);
}

TEST(LocalErrorTest, SplitsThatDoNotFitTheTensor) {
  const at::Tensor rows = at::ones({size() + 1, 2});
  at::Tensor good = at::ones({size()}, at::kInt);
  good[0] = 2;
  at::Tensor negative = at::ones({size()}, at::kLong);
  negative[0] = -1;
  const at::Tensor huge =
      at::full({size()}, std::numeric_limits<int64_t>::max(), at::kLong);
  const std::pair<at::Tensor, std::string> cases[] = {
      {negative, "negative"},
      {huge, "add up"},
      {at::ones({size()}, at::kLong), "add up"},
      {at::ones({size()}), "int32 or int64"},
      {at::ones({size() + 1}, at::kInt), "one element per rank"},
      {at::ones({size(), 1}, at::kInt), "one dimension"}};
  for (const auto& [bad, part] : cases) {
    const at::Tensor splits = IsLast() ? bad : good;
    ExpectSameError([&] { alltoall(rows, splits); }, part);
  }
  if (size() > 1) {
    ExpectSameError([&] { alltoall(rows); }, "cannot be split equally");
  }
}

TEST(LocalErrorTest, OverlappingTensorsAreNotWrittenInPlace) {
  const at::Tensor tensor = at::ones({4});
  const at::Tensor part = tensor.slice(0, 2, 4);
  const at::Tensor matrix = at::ones({3, 3});
  const auto last_ranks = [](const at::Tensor& one) {
    return IsLast() ? one : one.clone();
  };
  const at::Tensor expanded = last_ranks(at::ones({1}).expand({4}));
  ExpectSameErrors({
      {[&] { allreduce_(expanded); }, "overlap"},
      {[&] { allreduce_async_(expanded).wait(); }, "overlap"},
      {[&] { broadcast_(expanded, 0); }, "overlap"},
      {[&] {
         grouped_allreduce_({tensor, last_ranks(tensor)});
       },
       "overlap"},
      {[&] {
         grouped_allreduce_({last_ranks(part), tensor});
       },
       "overlap"},
      {[&] {
         grouped_allreduce_({matrix.select(1, 1), matrix.select(0, 2)});
       },
       "overlap"},
  });
  EXPECT_TRUE(tensor.eq(1).all().item<bool>());
}

TEST(LocalErrorTest, SparseTensorsThatCannotBeReduced) {
  const at::Tensor coo = at::ones({4}).to_sparse();
  const auto last_ranks = [&](const at::Tensor& bad) {
    return IsLast() ? bad : coo;
  };
  const at::Tensor half = at::sparse_coo_tensor(
      at::zeros({1, 1}, at::kLong), at::empty({1}, at::kComplexHalf), {4});
  ExpectSameErrors({
      {[&] { sparse_allreduce(last_ranks(at::ones({4}))); },
       "not a sparse COO tensor"},
      {[&] { sparse_allreduce(last_ranks(at::Tensor())); }, "undefined"},
      {[&] { sparse_allreduce(coo, With(ReduceOp::Max)); },
       "sparse tensors do not support Max"},
      {[&] { sparse_allreduce(last_ranks(half)); }, "dtype ComplexHalf"},
  });
  for (const at::ScalarType type :
       {internal::kUint16, internal::kUint32, internal::kUint64}) {
    if (type == at::ScalarType::Undefined) continue;
    const at::Tensor wide = at::_sparse_coo_tensor_unsafe(
        at::zeros({1, 1}, at::kLong), Values(rank(), {1}, type), {4});
    ExpectSameError([&] { sparse_allreduce(wide); },
                    "cannot add sparse tensors of uint");
  }
  if (size() == 1) return;
  const at::Tensor ragged = last_ranks(at::ones({5}).to_sparse());
  const at::Tensor typed = last_ranks(coo.to(at::kDouble));
  const at::Tensor matrix = at::ones({2, 2}).to_sparse(IsLast() ? 1 : 2);
  const ReduceOp op = IsLast() ? ReduceOp::Sum : ReduceOp::Average;
  ExpectSameErrors({
      {[&] { sparse_allreduce(ragged, AllreduceOptions().name("ragged")); },
       "the shape of 'ragged'"},
      {[&] { sparse_allreduce(typed); }, "the dtype of"},
      {[&] { sparse_allreduce(matrix); }, "the shape of"},
      {[&] { sparse_allreduce(coo, With(op)); }, "the op of"},
  });
}

class MismatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (size() == 1) GTEST_SKIP() << "needs two ranks";
  }
};

TEST_F(MismatchTest, DtypesShapesAndGradientsOfEveryOperation) {
  const int64_t rows = 2 * size();
  const at::Tensor typed =
      at::ones({rows, 3}, rank() % 2 == 0 ? at::kInt : at::kFloat);
  ExpectEachFails(kOperations, typed, "the dtype of");
  // The same number of elements in another shape.
  const at::Tensor folded =
      rank() == 0 ? at::ones({rows, 6}) : at::ones({rows, 2, 3});
  ExpectEachFails(kOperations, folded, "the shape of");
  // A different second dimension on each rank.
  const at::Tensor ragged = at::ones({rows, 10 * (rank() + 1), 2});
  ExpectEachFails(kOperations, ragged, "the shape of");
  const at::Tensor tensor = at::ones({rows}).requires_grad_(IsLast());
  ExpectEachFails(kOperations, tensor, "gradient");
}

TEST_F(MismatchTest, OptionsAndKindsOfOperations) {
  const at::Tensor ones = at::ones({4, 4});
  const bool last = IsLast();
  const auto named = [](auto options) { return options.name("which"); };
  ExpectSameErrors({
      {[&] {
         allreduce(ones.slice(0, last ? 1 : 0), named(AllreduceOptions()));
       },
       "the shape of 'which'"},
      {[&] { allreduce(ones, With(last ? ReduceOp::Max : ReduceOp::Sum)); },
       "the op of"},
      {[&] {
         allreduce(ones, AllreduceOptions().prescale_factor(last ? 2 : 1));
       },
       "the prescale factor of"},
      {[&] {
         allreduce(ones, AllreduceOptions().compression(
                             last ? Compression::FP16 : Compression::None));
       },
       "compression"},
      // Each rank names itself as the root.
      {[&] { broadcast(ones, rank()); }, "the root rank of"},
      {[&] { grouped_allreduce(std::vector<at::Tensor>(last ? 2 : 3, ones)); },
       "'grouped_allreduce"},
      {[&] {
         if (last) {
           allgather(ones, named(AllgatherOptions()));
         } else {
           allreduce(ones, named(AllreduceOptions()));
         }
       },
       "the operation of 'which'"},
  });
}

TEST_F(MismatchTest, GroupThatIsEmptyOnOneRank) {
  const std::vector<at::Tensor> mine(IsLast() ? 0 : 2, at::ones({1}));
  ExpectSameErrors({
      {[&] { grouped_allreduce(mine); }, "number of tensors"},
      {[&] { grouped_allgather(mine); }, "number of tensors"},
      {[&] { grouped_reducescatter(mine); }, "number of tensors"},
  });
  // Automatic names still agree.
  EXPECT_EQ(
      grouped_allreduce({at::ones({1})}, With(ReduceOp::Sum))[0].item<int>(),
      size());
}

}  // namespace
}  // namespace hvdlite
