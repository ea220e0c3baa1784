// Operations on tensors, on any number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/torch_plugin/error_text.h"

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr at::ScalarType kNumbers[] = {at::kFloat,    at::kDouble, at::kHalf,
                                       at::kBFloat16, at::kInt,    at::kLong,
                                       at::kByte,     at::kChar};

// 1 + 2 + ... + size()
int64_t SumOfRanksPlusOne() { return size() * (size() + 1) / 2; }

at::Tensor RankPlusOne(at::IntArrayRef shape, at::ScalarType type) {
  return at::full(shape, rank() + 1, type);
}

AllreduceOptions With(ReduceOp op) { return AllreduceOptions().op(op); }

TEST(AllreduceTest, ReducesEveryDtypeWithEveryOp) {
  int64_t product = 1;
  for (int i = 1; i <= size(); ++i) product *= i;
  for (const at::ScalarType type : kNumbers) {
    const at::Tensor input = RankPlusOne({3, 5}, type);
    const auto expect = [&](ReduceOp op, int64_t value) {
      const at::Tensor output = allreduce(input, With(op));
      EXPECT_EQ(output.scalar_type(), type);
      EXPECT_TRUE(output.equal(at::full({3, 5}, value, type)))
          << type << " " << static_cast<int>(op) << "\n"
          << output;
    };
    expect(ReduceOp::Sum, SumOfRanksPlusOne());
    expect(ReduceOp::Min, 1);
    expect(ReduceOp::Max, size());
    expect(ReduceOp::Product, product);
    EXPECT_TRUE(input.equal(RankPlusOne({3, 5}, type)));
  }
}

TEST(AllreduceTest, BoolIsReducedLogically) {
  const at::Tensor mine = at::full({4}, rank() == 0, at::kBool);
  EXPECT_TRUE(allreduce(mine, With(ReduceOp::Sum)).all().item<bool>());
  EXPECT_EQ(allreduce(mine, With(ReduceOp::Min)).any().item<bool>(),
            size() == 1);
  EXPECT_THAT(ErrorText([&] { allreduce(mine); }), HasSubstr("Average"));
}

TEST(AllreduceTest, AverageOfIntegersIsTruncated) {
  EXPECT_EQ(allreduce(RankPlusOne({1}, at::kInt)).item<int>(),
            SumOfRanksPlusOne() / size());
  EXPECT_FLOAT_EQ(
      allreduce(RankPlusOne({1}, at::kFloat)).item<float>(),
      static_cast<float>(SumOfRanksPlusOne()) / static_cast<float>(size()));
}

TEST(AllreduceTest, ScalesBeforeAndAfter) {
  const at::Tensor output =
      allreduce(RankPlusOne({2}, at::kDouble),
                With(ReduceOp::Sum).prescale_factor(0.5).postscale_factor(3.0));
  EXPECT_DOUBLE_EQ(output[0].item<double>(),
                   1.5 * static_cast<double>(SumOfRanksPlusOne()));
}

TEST(AllreduceTest, InPlaceReturnsTheTensorItself) {
  at::Tensor tensor = RankPlusOne({7}, at::kFloat);
  const at::Tensor returned = allreduce_(tensor, With(ReduceOp::Sum));
  EXPECT_TRUE(returned.is_same(tensor));
  EXPECT_EQ(tensor[6].item<int64_t>(), SumOfRanksPlusOne());
}

TEST(AllreduceTest, NonContiguousTensorsAreReducedInPlaceHoweverWaitedFor) {
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

TEST(AllreduceTest, TakesScalarsAndEmptyTensors) {
  EXPECT_EQ(
      allreduce(at::scalar_tensor(rank() + 1, at::kLong), With(ReduceOp::Sum))
          .item<int64_t>(),
      SumOfRanksPlusOne());
  EXPECT_EQ(allreduce(at::empty({0, 3})).numel(), 0);
}

TEST(AllreduceTest, LargerThanAChunkAndAThreshold) {
  const at::Tensor tensor = at::full({20'000'000}, 1.0F);
  allreduce_(tensor, With(ReduceOp::Sum));
  EXPECT_TRUE(tensor.eq(size()).all().item<bool>());
}

TEST(AllreduceTest, ManyInFlightInAnyOrder) {
  std::vector<Work> works;
  constexpr int kCount = 50;
  for (int i = 0; i < kCount; ++i) {
    const int tensor = (i * 7 + rank() * 13) % kCount;
    works.push_back(allreduce_async(
        at::full({100}, tensor),
        With(ReduceOp::Sum).name("many." + std::to_string(tensor))));
  }
  for (int i = 0; i < kCount; ++i) {
    const int tensor = (i * 7 + rank() * 13) % kCount;
    EXPECT_EQ(works[static_cast<size_t>(i)].wait()[99].item<int64_t>(),
              tensor * size());
  }
}

TEST(AllreduceTest, GradientIsTheSameReductionOfTheGradient) {
  at::Tensor input = RankPlusOne({2}, at::kDouble).requires_grad_();
  at::Tensor output = allreduce(input);
  ASSERT_TRUE(output.requires_grad());
  (output * (rank() + 1)).sum().backward();
  EXPECT_DOUBLE_EQ(input.grad()[0].item<double>(),
                   static_cast<double>(SumOfRanksPlusOne()) / size());
  EXPECT_THAT(ErrorText([&] { allreduce(input, With(ReduceOp::Max)); }),
              HasSubstr("Max has no gradient"));
}

TEST(AllreduceTest, LeafThatRequiresAGradientIsReducedInPlace) {
  const at::Tensor leaf = RankPlusOne({2}, at::kFloat).requires_grad_();
  allreduce_(leaf, With(ReduceOp::Sum));
  EXPECT_EQ(leaf[1].item<int64_t>(), SumOfRanksPlusOne());
  EXPECT_TRUE(leaf.is_leaf());
}

TEST(AllreduceTest, WhatIsNotAvailableIsRefused) {
  const at::Tensor tensor = at::ones({2});
  EXPECT_THAT(ErrorText([&] { allreduce(tensor, With(ReduceOp::Adasum)); }),
              HasSubstr("Adasum is not available"));
  EXPECT_THAT(ErrorText([&] {
                allreduce(tensor,
                          AllreduceOptions().compression(Compression::FP16));
              }),
              HasSubstr("FP16 is not available"));
  EXPECT_THAT(ErrorText([&] { allreduce(tensor.to_sparse()); }),
              HasSubstr("sparse"));
  EXPECT_THAT(ErrorText([&] { allreduce(tensor.to(at::kComplexFloat)); }),
              HasSubstr("dtype ComplexFloat"));
  EXPECT_THAT(ErrorText([&] { allreduce(at::Tensor()); }),
              HasSubstr("undefined"));
}

// Fails on every rank, with one text; afterwards everything works.
template <typename Submit>
void ExpectTheSameErrorEverywhere(Submit submit, const std::string& name) {
  const std::string text = ErrorText(submit);
  if (size() == 1) {
    EXPECT_EQ(text, "nothing was thrown");
    return;
  }
  EXPECT_THAT(text, HasSubstr(name));
  EXPECT_EQ(text, broadcast_object(text, 0));
  EXPECT_EQ(allreduce(at::ones({1}), With(ReduceOp::Sum)).item<int>(), size());
}

bool IsLast() { return rank() == size() - 1; }

TEST(MismatchTest, ShapeFailsOnEveryRank) {
  const int64_t length = IsLast() && size() > 1 ? 4 : 3;
  ExpectTheSameErrorEverywhere(
      [&] { allreduce(at::ones({length}), AllreduceOptions().name("ragged")); },
      "ragged");
}

TEST(MismatchTest, DtypeFailsOnEveryRank) {
  ExpectTheSameErrorEverywhere(
      [&] {
        allreduce(at::ones({3}, IsLast() ? at::kDouble : at::kFloat),
                  AllreduceOptions().name("mixed"));
      },
      "mixed");
}

TEST(MismatchTest, OpFailsOnEveryRank) {
  ExpectTheSameErrorEverywhere(
      [&] {
        allreduce(at::ones({3}),
                  With(IsLast() ? ReduceOp::Max : ReduceOp::Sum).name("ops"));
      },
      "ops");
}

TEST(MismatchTest, RootFailsOnEveryRank) {
  ExpectTheSameErrorEverywhere(
      [&] {
        broadcast(at::ones({3}), IsLast() ? size() - 1 : 0,
                  BroadcastOptions().name("roots"));
      },
      "roots");
}

TEST(MismatchTest, WaitThrowsEachTimeAndInEachCopy) {
  const Work work = allreduce_async(at::ones({IsLast() ? 2 : 1}),
                                    AllreduceOptions().name("again"));
  const Work copy = work;
  const std::string first = ErrorText([&] { work.wait(); });
  EXPECT_EQ(first, ErrorText([&] { copy.wait(); }));
  EXPECT_TRUE(work.is_completed());
  EXPECT_TRUE(work.wait_for(std::chrono::milliseconds(0)));
}

TEST(NameTest, NameInFlightIsRefused) {
  const auto options = With(ReduceOp::Sum).name("twice");
  if (size() == 1) GTEST_SKIP() << "nothing stays in flight";
  // Nothing is complete before rank 0 has submitted.
  if (rank() == 0) barrier();
  const Work first = allreduce_async(at::ones({1}), options);
  if (rank() != 0) {
    EXPECT_THAT(
        ErrorText([&] { (void)allreduce_async(at::ones({1}), options); }),
        HasSubstr("twice"));
    barrier();
  }
  EXPECT_EQ(first.wait().item<int>(), size());
}

TEST(BroadcastTest, EveryDtypeFromEveryRoot) {
  for (int root = 0; root < size(); ++root) {
    for (const at::ScalarType type : kNumbers) {
      const at::Tensor mine = RankPlusOne({2, 3}, type);
      EXPECT_TRUE(
          broadcast(mine, root).equal(at::full({2, 3}, root + 1, type)));
      EXPECT_TRUE(mine.equal(RankPlusOne({2, 3}, type)));
      EXPECT_TRUE(broadcast_(mine, root).is_same(mine));
      EXPECT_TRUE(mine.equal(at::full({2, 3}, root + 1, type)));
    }
  }
  EXPECT_THAT(ErrorText([&] { broadcast(at::ones({1}), size()); }),
              AllOf(HasSubstr("root_rank"), HasSubstr("not a rank")));
}

TEST(BroadcastTest, GradientGathersAtTheRoot) {
  at::Tensor input = RankPlusOne({2}, at::kDouble).requires_grad_();
  broadcast(input, size() - 1).sum().backward();
  EXPECT_DOUBLE_EQ(input.grad()[0].item<double>(), IsLast() ? size() : 0);
}

TEST(BroadcastTest, ObjectsOfAnyLengthArrive) {
  const std::string text(100, 'x');
  EXPECT_EQ(broadcast_object(rank() == 0 ? text : "", 0), text);
  EXPECT_EQ(broadcast_object(rank() == 0 ? "" : "ignored", 0), "");
}

TEST(ProcessSetTest, DefaultIsAllRanks) {
  const ProcessSet all;
  EXPECT_EQ(all.size(), size());
  EXPECT_EQ(all.rank(), rank());
  EXPECT_TRUE(all.included());
  EXPECT_EQ(all.ranks().size(), static_cast<size_t>(size()));
  EXPECT_EQ(all.ranks().back(), size() - 1);
}

TEST(TimelineTest, RecordsFromStartToStopAndMerges) {
  const std::string path = broadcast_object(
      testing::TempDir() + "hvdlite_" + std::to_string(getpid()) + ".json", 0);
  start_timeline(path);
  EXPECT_THAT(ErrorText([&] { start_timeline(path); }),
              HasSubstr("stop_timeline()"));
  {
    const TraceSpan span("OWN_SPAN");
    allreduce(at::ones({3}), AllreduceOptions().name("traced"));
  }
  stop_timeline();
  stop_timeline();
  if (rank() != 0) return;
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_THAT(text.str(), AllOf(HasSubstr("OWN_SPAN"), HasSubstr("traced"),
                                HasSubstr("NEGOTIATE_ALLREDUCE")));
  std::remove(path.c_str());
}

TEST(WorldTest, SecondInitIsRefused) {
  EXPECT_TRUE(is_initialized());
  EXPECT_THAT(ErrorText([] { init(); }), HasSubstr("called twice"));
}

}  // namespace
}  // namespace hvdlite
