// What cannot be done fails on all ranks, with one text, and nothing waits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tests/torch_plugin/rank_values.h"
#include "tests/torch_plugin/same_error.h"

namespace hvdlite {
namespace {

using ::testing::HasSubstr;

// Errors because of the last rank alone.
at::Tensor LastRanks(const at::Tensor& bad) {
  return IsLast() ? bad : at::ones({2, 2});
}

TEST(LocalErrorTest, AnErrorThatReturnsUnderOneNameFailsEachTime) {
  const at::Tensor bad = LastRanks(at::empty({2, 2}, at::kComplexHalf));
  for (int call = 0; call < 3; ++call) {
    ExpectSameError(
        [&] { allreduce_(bad, AllreduceOptions().name("returns")); },
        "dtype ComplexHalf");
  }
}

TEST(LocalErrorTest, TensorsThatAreNotSupportedNameTheirRank) {
  const at::Tensor meta =
      at::empty({2, 2}, at::TensorOptions().device(at::kMeta));
  const struct {
    at::Tensor tensor;
    std::string part;
  } cases[] = {{at::Tensor(), "undefined"},
               {at::ones({2, 2}).to_sparse(), "sparse"},
               {meta, "meta"},
               {at::empty({2, 2}, at::kComplexHalf), "dtype ComplexHalf"},
               {at::empty({2, 2}, at::kComplexHalf), "int16"}};
  at::Tensor splits = at::zeros({size()}, at::kInt);
  splits[0] = 2;
  for (const auto& [bad, part] : cases) {
    const at::Tensor tensor = LastRanks(bad);
    const std::string who = "rank " + std::to_string(size() - 1) + ":";
    const auto expect = [&, part = part](auto statement) {
      ExpectSameError(statement, part);
      ExpectSameError(statement, who);
    };
    expect([&] { allreduce(tensor); });
    expect([&] { allreduce_(tensor); });
    expect([&] { allreduce_async(tensor).wait(); });
    expect([&] { allreduce_async_(tensor).wait(); });
    expect([&] { grouped_allreduce({at::ones({1}), tensor}); });
    expect([&] { grouped_allreduce_async_({tensor}).wait(); });
    expect([&] { allgather(tensor); });
    expect([&] { allgather_async(tensor).wait(); });
    expect([&] { grouped_allgather({at::ones({1}), tensor}); });
    expect([&] { broadcast(tensor, 0); });
    expect([&] { broadcast_async_(tensor, 0).wait(); });
    expect([&] { reducescatter(tensor); });
    expect([&] { grouped_reducescatter_async({tensor}).wait(); });
    expect([&] { alltoall(tensor, splits); });
    expect([&] { alltoall_async(tensor, splits).wait(); });
  }
}

TEST(LocalErrorTest, AGroupNamesTheTensorsPlace) {
  ExpectSameError(
      [] {
        grouped_allreduce({at::ones({1}), LastRanks(at::Tensor())});
      },
      "tensor 1 of 2");
}

TEST(LocalErrorTest, AnUndefinedTensorAmongThoseThatRequireAGradient) {
  const at::Tensor weight = at::ones({2}).requires_grad_();
  const at::Tensor other = IsLast() ? at::Tensor() : weight;
  ExpectSameError([&] { grouped_allreduce({weight, other}); }, "undefined");
  ExpectSameError([&] { grouped_allgather({weight, other}); }, "undefined");
  ExpectSameError([&] { grouped_reducescatter({weight, other}); }, "undefined");
}

TEST(LocalErrorTest, TensorsWithoutDimensionsHaveNoRows) {
  const at::Tensor scalar = LastRanks(at::ones({}));
  ExpectSameError([&] { allgather(scalar); }, "unsqueeze(0)");
  ExpectSameError([&] { reducescatter(scalar); }, "unsqueeze(0)");
  at::Tensor splits = at::zeros({size()}, at::kInt);
  splits[0] = 2;
  ExpectSameError([&] { alltoall(scalar, splits); }, "unsqueeze(0)");
}

TEST(LocalErrorTest, OpsThatDoNotFitTheDtypeOrTheOperation) {
  const at::Tensor flags = at::ones({2}, at::kBool);
  ExpectSameError([&] { allreduce(flags); }, "no Average");
  ExpectSameError([&] { reducescatter(flags); }, "no Average");
  ExpectSameError(
      [&] { allreduce(at::ones({2}, at::kInt), With(ReduceOp::Adasum)); },
      "floating-point");
  const at::Tensor complex = at::ones({2}, at::kComplexFloat);
  for (const auto& [op, part] :
       {std::pair(ReduceOp::Min, "complex64 tensors have no min"),
        std::pair(ReduceOp::Max, "complex64 tensors have no max"),
        std::pair(ReduceOp::Product, "complex64 tensors have no product"),
        std::pair(ReduceOp::Adasum,
                  "Adasum is for floating-point tensors, but the dtype is "
                  "complex64")}) {
    ExpectSameError([&, op = op] { allreduce(complex, With(op)); }, part);
    ExpectSameError(
        [&, op = op] {
          grouped_allreduce({at::ones({2}), LastRanks(complex)}, With(op));
        },
        std::string("tensor 1 of 2: ") + part);
    if (op == ReduceOp::Adasum) continue;
    ExpectSameError(
        [&, op = op] { reducescatter(complex, ReducescatterOptions().op(op)); },
        part);
  }
  ExpectSameError(
      [] {
        reducescatter(at::ones({2}),
                      ReducescatterOptions().op(ReduceOp::Adasum));
      },
      "no Adasum");
  ExpectSameError(
      [] { allreduce(at::ones({2}), With(static_cast<ReduceOp>(99))); },
      "unknown ReduceOp 99");
  ExpectSameError(
      [] {
        allreduce(at::ones({2}),
                  AllreduceOptions().compression(static_cast<Compression>(99)));
      },
      "unknown Compression 99");
}

TEST(LocalErrorTest, ScalesMustBeFinite) {
  for (const double bad : {std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    const double scale = IsLast() ? bad : 1.0;
    ExpectSameError(
        [&] {
          allreduce(at::ones({2}), AllreduceOptions().prescale_factor(scale));
        },
        "finite");
    ExpectSameError(
        [&] {
          reducescatter(at::ones({2}),
                        ReducescatterOptions().postscale_factor(scale));
        },
        "finite");
  }
}

TEST(LocalErrorTest, RootMustBeInTheProcessSet) {
  for (const int root : {-1, size()}) {
    ExpectSameError([&] { broadcast(at::ones({1}), root); }, "root_rank");
    ExpectSameError([&] { broadcast_object("", root); }, "root_rank");
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
  const auto expect = [&](const at::Tensor& splits, const std::string& part) {
    const at::Tensor good = at::ones({size()}, at::kInt);
    if (!IsLast()) good[0] = 2;
    ExpectSameError([&] { alltoall(rows, IsLast() ? splits : good); }, part);
  };
  at::Tensor negative = at::ones({size()}, at::kLong);
  negative[0] = -1;
  const at::Tensor huge =
      at::full({size()}, std::numeric_limits<int64_t>::max(), at::kLong);
  expect(negative, "negative");
  expect(huge, "add up");
  expect(at::ones({size()}, at::kLong), "add up");
  expect(at::ones({size()}), "int32 or int64");
  expect(at::ones({size() + 1}, at::kInt), "one element per rank");
  expect(at::ones({size(), 1}, at::kInt), "one dimension");
  if (size() > 1) {
    ExpectSameError([&] { alltoall(rows); }, "cannot be split equally");
  }
}

TEST(LocalErrorTest, OpsWithoutAGradientRefuseATensorThatRequiresOne) {
  const at::Tensor tensor = at::ones({2}).requires_grad_();
  for (const ReduceOp op :
       {ReduceOp::Min, ReduceOp::Max, ReduceOp::Product, ReduceOp::Adasum}) {
    ExpectSameError([&] { allreduce(tensor, With(op)); }, "has no gradient");
    ExpectSameError([&] { grouped_allreduce({tensor}, With(op)); },
                    "has no gradient");
    if (op == ReduceOp::Adasum) continue;
    ExpectSameError(
        [&] { reducescatter(tensor, ReducescatterOptions().op(op)); },
        "has no gradient");
  }
}

TEST(LocalErrorTest, TensorsThatOverlapAreNotWrittenInPlace) {
  const at::Tensor tensor = at::ones({4});
  const at::Tensor expanded = IsLast() ? at::ones({1}).expand({4}) : tensor;
  ExpectSameError([&] { allreduce_(expanded); }, "overlap");
  ExpectSameError([&] { allreduce_async_(expanded).wait(); }, "overlap");
  ExpectSameError([&] { broadcast_(expanded, 0); }, "overlap");
  ExpectSameError(
      [&] {
        grouped_allreduce_({tensor, IsLast() ? tensor : tensor.clone()});
      },
      "overlap");
  const at::Tensor part = tensor.slice(0, 2, 4);
  ExpectSameError(
      [&] {
        grouped_allreduce_({IsLast() ? part : part.clone(), tensor});
      },
      "overlap");
  const at::Tensor matrix = at::ones({3, 3});
  ExpectSameError(
      [&] {
        grouped_allreduce_({matrix.select(1, 1), matrix.select(0, 2)});
      },
      "overlap");
  EXPECT_TRUE(tensor.eq(1).all().item<bool>());
}

TEST(LocalErrorTest, SparseTensorsThatCannotBeReduced) {
  const at::Tensor coo = at::ones({4}).to_sparse();
  ExpectSameError([&] { sparse_allreduce(IsLast() ? at::ones({4}) : coo); },
                  "not a sparse COO tensor");
  ExpectSameError([&] { sparse_allreduce(IsLast() ? at::Tensor() : coo); },
                  "undefined");
  ExpectSameError([&] { sparse_allreduce(coo, With(ReduceOp::Max)); },
                  "sparse tensors have no Max");
  const at::Tensor half = at::sparse_coo_tensor(
      at::zeros({1, 1}, at::kLong), at::empty({1}, at::kComplexHalf), {4});
  ExpectSameError([&] { sparse_allreduce(IsLast() ? half : coo); },
                  "dtype ComplexHalf");
  if (size() == 1) return;
  ExpectSameError(
      [&] {
        sparse_allreduce(at::ones({IsLast() ? 5 : 4}).to_sparse(),
                         AllreduceOptions().name("ragged"));
      },
      "the shape of 'ragged'");
  ExpectSameError(
      [&] { sparse_allreduce(coo.to(IsLast() ? at::kDouble : at::kFloat)); },
      "the dtype of");
  ExpectSameError(
      [&] {
        sparse_allreduce(at::ones({2, 2}).to_sparse(IsLast() ? 1 : 2));
      },
      "the shape of");
  ExpectSameError(
      [&] {
        sparse_allreduce(coo,
                         With(IsLast() ? ReduceOp::Sum : ReduceOp::Average));
      },
      "the op of");
}

TEST(MismatchTest, RanksThatDisagreeAllGetTheSameError) {
  if (size() == 1) GTEST_SKIP() << "nobody to disagree with";
  const at::Tensor ones = at::ones({4, 4});
  ExpectSameError(
      [&] {
        allreduce(at::ones({IsLast() ? 4 : 3}),
                  AllreduceOptions().name("ragged"));
      },
      "the shape of 'ragged'");
  ExpectSameError(
      [&] { allreduce(ones.to(IsLast() ? at::kDouble : at::kFloat)); },
      "the dtype of");
  ExpectSameError(
      [&] { allreduce(ones, With(IsLast() ? ReduceOp::Max : ReduceOp::Sum)); },
      "the op of");
  ExpectSameError(
      [&] {
        allreduce(ones, AllreduceOptions().prescale_factor(IsLast() ? 2 : 1));
      },
      "the prescale factor of");
  ExpectSameError(
      [&] {
        allreduce(ones, AllreduceOptions().compression(
                            IsLast() ? Compression::FP16 : Compression::None));
      },
      "compression");
  ExpectSameError([&] { broadcast(ones, IsLast() ? 1 : 0); },
                  "the root rank of");
  ExpectSameError(
      [&] {
        allgather(at::ones({2, IsLast() ? 3 : 4}));
      },
      "the shape of");
  ExpectSameError(
      [&] {
        alltoall(at::ones({size(), IsLast() ? 3 : 4}));
      },
      "the shape of");
  ExpectSameError([&] { reducescatter(at::ones({IsLast() ? 3 : 4})); },
                  "the shape of");
  ExpectSameError(
      [&] {
        grouped_allreduce(std::vector<at::Tensor>(IsLast() ? 2 : 3, ones));
      },
      "'grouped_allreduce");
  ExpectSameError(
      [&] {
        if (IsLast()) {
          allgather(ones, AllgatherOptions().name("which"));
        } else {
          allreduce(ones, AllreduceOptions().name("which"));
        }
      },
      "the operation of 'which'");
}

TEST(MismatchTest, GroupThatIsEmptyOnOneRank) {
  if (size() == 1) GTEST_SKIP() << "nobody to disagree with";
  const std::vector<at::Tensor> mine(IsLast() ? 0 : 2, at::ones({1}));
  ExpectSameError([&] { grouped_allreduce(mine); }, "number of tensors");
  ExpectSameError([&] { grouped_allgather(mine); }, "number of tensors");
  ExpectSameError([&] { grouped_reducescatter(mine); }, "number of tensors");
  // Names that are given automatically still agree.
  EXPECT_EQ(
      grouped_allreduce({at::ones({1})}, With(ReduceOp::Sum))[0].item<int>(),
      size());
}

TEST(MismatchTest, RanksThatDisagreeAboutGradientsAllGetTheSameError) {
  if (size() == 1) GTEST_SKIP() << "nobody to disagree with";
  const at::Tensor tensor = at::ones({4}).requires_grad_(IsLast());
  ExpectSameError([&] { allreduce(tensor); }, "gradient");
  ExpectSameError([&] { grouped_allreduce({tensor, tensor}); }, "gradient");
  ExpectSameError([&] { allgather(tensor); }, "gradient");
  ExpectSameError([&] { broadcast(tensor, 0); }, "gradient");
  ExpectSameError([&] { reducescatter(tensor); }, "gradient");
  ExpectSameError(
      [&] { alltoall(at::ones({size()}).requires_grad_(IsLast())); },
      "gradient");
}

TEST(NameTest, NameInFlightIsUsedAgainInTheOrderOfSubmissions) {
  const auto options = With(ReduceOp::Sum).name("again");
  // Nothing is complete before rank 0 has submitted.
  if (rank() == 0 && size() > 1) barrier();
  std::vector<Work> works;
  for (int k = 1; k <= 3; ++k) {
    works.push_back(allreduce_async(at::full({k}, k), options));
  }
  works.push_back(
      allgather_async(at::ones({1}), AllgatherOptions().name("again")));
  if (rank() != 0) barrier();
  EXPECT_EQ(works[3].wait().numel(), size());
  for (int k = 3; k >= 1; --k) {
    EXPECT_TRUE(works[k - 1].wait().equal(at::full({k}, k * size())));
  }
}

TEST(NameTest, ReservedNamesAreRefusedAtOnce) {
  EXPECT_THAT(ErrorText([] {
                allreduce(at::ones({1}),
                          AllreduceOptions().name("a@process_set.1"));
              }),
              HasSubstr("reserved"));
}

// The automatic name of the operation that fails with this text.
std::string AutomaticName(const std::string& text) {
  const size_t begin = text.find('\'') + 1;
  const std::string name = text.substr(begin, text.find('\'', begin) - begin);
  EXPECT_THAT(name, HasSubstr(".noname.")) << text;
  return name;
}

// Each takes as many names in turn, however many calls there are; so every name
// becomes known to all ranks, and travels as an id.
TEST(NameTest, AutomaticNamesReturn) {
  constexpr int kNames = 60;
  const at::Tensor none;
  const std::vector<std::function<void()>> operations = {
      [&] { allreduce(none); },
      [&] { allreduce_async(none).wait(); },
      [&] { grouped_allreduce({none}); },
      [&] { allgather(none); },
      [&] { grouped_allgather({none}); },
      [&] { broadcast_(none, 0); },
      [&] { alltoall(none); },
      [&] { reducescatter(none); },
      [&] { sparse_allreduce(none); },
      [&] { broadcast_object("", -1); }};
  for (const auto& operation : operations) {
    std::vector<std::string> names;
    for (int i = 0; i < 2 * kNames; ++i) {
      names.push_back(AutomaticName(ErrorText(operation)));
      if (i >= kNames) {
        EXPECT_EQ(names[i], names[i - kNames]);
      }
    }
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(),
              size_t{kNames});
  }
}

// Names follow from the order of calls alone.
TEST(NameTest, RanksThatWaitAtOtherMomentsHaveTheSameAutomaticNames) {
  constexpr int kCalls = 150;
  std::vector<Work> later;
  for (int i = 0; i < kCalls; ++i) {
    const at::Tensor mine = at::full({1}, i, at::kInt);
    switch ((rank() + i) % 4) {
      case 0:
        EXPECT_EQ(allreduce(mine, With(ReduceOp::Sum)).item<int>(), i * size());
        break;
      case 1:
        EXPECT_EQ(
            allreduce_async(mine, With(ReduceOp::Sum)).wait().item<int>(),
            i * size());
        break;
      case 2:
        later.push_back(allreduce_async(mine, With(ReduceOp::Sum)));
        break;
      case 3:
        (void)allreduce_async(mine, With(ReduceOp::Sum));
        break;
    }
  }
  while (!later.empty()) {
    EXPECT_EQ(later.back().wait().item<int>() % size(), 0);
    later.pop_back();
  }
}

TEST(NameTest, NamesAreInMessages) {
  EXPECT_THAT(ErrorText([] {
                allgather(at::Tensor(), AllgatherOptions().name("my_rows"));
              }),
              HasSubstr("'my_rows'"));
  EXPECT_THAT(ErrorText([] { broadcast(at::Tensor(), 0); }),
              HasSubstr("'broadcast.noname."));
}

}  // namespace
}  // namespace hvdlite
