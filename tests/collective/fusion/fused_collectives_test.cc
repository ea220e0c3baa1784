// Tests that apply to all fused collectives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "collective/fusion/fusion.h"
#include "tests/collective/fusion/fused_cases.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::testing {
namespace {

using collective::Communicator;
using collective::DataType;
using collective::FusedAdasum;
using collective::FusedAllgather;
using collective::FusedAllreduce;
using collective::FusedAlltoall;
using collective::FusedBroadcast;
using collective::FusedReduceScatter;
using collective::FusedTensor;
using collective::FusionHooks;
using collective::FusionResources;
using collective::PartitionedTensor;
using ::testing::Each;
using ::testing::IsEmpty;

// One rank's bucket: `count` tensors that are all `input`, with equal parts for
// all ranks.
struct EqualTensors {
  size_t count;
  absl::Span<const std::byte> input;
  absl::Span<std::byte> output;

  std::vector<FusedTensor> Whole() const {
    return std::vector<FusedTensor>(count, {input, output});
  }
  // `of_input`, `of_output`: whether it is the whole tensor or this rank's
  // part.
  std::vector<PartitionedTensor> InParts(Communicator& communicator,
                                         bool of_input, bool of_output) const {
    const auto size = static_cast<size_t>(communicator.size());
    const size_t part = input.size() / size;
    const std::vector<size_t> parts(size, part);
    return std::vector<PartitionedTensor>(
        count, {of_input ? input : input.first(part),
                of_output ? output : output.first(part), parts, parts});
  }
};

struct Collective {
  std::string name;
  absl::Status (*run)(const FusionResources& resources,
                      const EqualTensors& tensors, const FusionHooks& hooks);
  // Whether ranks must communicate to find out that a bucket is empty.
  bool agrees_first = false;
};

const Collective kCollectives[] = {
    {"Allreduce",
     [](const auto& resources, const auto& tensors, const auto& hooks) {
       return FusedAllreduce(resources, {}, tensors.Whole(), hooks);
     }},
    {"Adasum",
     [](const auto& resources, const auto& tensors, const auto& hooks) {
       return FusedAdasum(resources, {}, tensors.Whole(), hooks);
     }},
    {"Broadcast",
     [](const auto& resources, const auto& tensors, const auto& hooks) {
       return FusedBroadcast(resources, 0, tensors.Whole(), hooks);
     }},
    {"Allgather",
     [](const auto& resources, const auto& tensors, const auto& hooks) {
       return FusedAllgather(
           resources, tensors.InParts(resources.communicator, false, true),
           hooks);
     }},
    {"ReduceScatter",
     [](const auto& resources, const auto& tensors, const auto& hooks) {
       return FusedReduceScatter(
           resources, {}, tensors.InParts(resources.communicator, true, false),
           hooks);
     }},
    {"Alltoall",
     [](const auto& resources, const auto& tensors, const auto& hooks) {
       return FusedAlltoall(resources,
                            tensors.InParts(resources.communicator, true, true),
                            hooks);
     },
     true}};

class FusedCollectives : public ::testing::TestWithParam<Collective> {
 protected:
  absl::Status Run(Communicator& communicator, size_t count,
                   const FusionHooks& hooks) {
    return GetParam().run(own_.With(communicator),
                          {count, input_, absl::MakeSpan(output_)}, hooks);
  }

  RankResources own_{64};
  Bytes input_ = Bytes(256, std::byte{3});
  Bytes output_ = Bytes(256);
  HookRecord record_;
};

TEST_P(FusedCollectives, EmptyBucketNeedsNoCommunication) {
  UnimplementedCommunicator three(0, 3);
  EXPECT_TRUE(Run(three, 0, record_.Hooks()).ok());
  input_.clear();
  output_.clear();
  EXPECT_EQ(Run(three, 2, record_.Hooks()).ok(), !GetParam().agrees_first);
  EXPECT_THAT(record_.phases, IsEmpty());
}

TEST_P(FusedCollectives, WorldOfOneUsesNoBufferCommunicatorOrHooks) {
  UnimplementedCommunicator one(0, 1);
  std::memset(own_.buffer.bytes().data(), 0x11, own_.buffer.bytes().size());
  EXPECT_TRUE(Run(one, 1, record_.Hooks()).ok());
  EXPECT_EQ(output_, input_);
  EXPECT_THAT(own_.buffer.bytes(), Each(std::byte{0x11}));
  EXPECT_THAT(record_.phases, IsEmpty());
}

TEST_P(FusedCollectives, FirstErrorOfTheCommunicatorEndsTheBucket) {
  UnimplementedCommunicator two(0, 2);
  EXPECT_TRUE(absl::IsUnimplemented(Run(two, 1, record_.Hooks())));
  EXPECT_EQ(record_.num_pauses, 0);
}

TEST_P(FusedCollectives, ErrorBetweenChunksEndsTheBucket) {
  RunInProcessRanks(2, [&](Communicator& communicator) {
    RankResources own(64);
    Bytes output(input_.size());
    int num_pauses = 0;
    EXPECT_EQ(GetParam().run(own.With(communicator),
                             {2, input_, absl::MakeSpan(output)},
                             {.between_chunks =
                                  [&] {
                                    ++num_pauses;
                                    return absl::AbortedError("enough");
                                  }}),
              absl::AbortedError("enough"));
    EXPECT_EQ(num_pauses, 1);
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, FusedCollectives, ::testing::ValuesIn(kCollectives),
    [](const ::testing::TestParamInfo<Collective>& collective) {
      return collective.param.name;
    });

TEST(FusedCollectivesTest, TensorsOfWrongSizesAreRefused) {
  UnimplementedCommunicator communicator(1, 2);
  RankResources own(64);
  const FusionResources resources = own.With(communicator);
  Bytes small(8);
  Bytes large(20);
  const FusedTensor grows = {small, absl::MakeSpan(large)};
  const auto in_parts = [&](std::vector<size_t> input,
                            std::vector<size_t> output) {
    return std::vector<PartitionedTensor>{
        {large, absl::MakeSpan(small), std::move(input), std::move(output)}};
  };
  const auto gather = [&](std::vector<size_t> parts) {
    return FusedAllgather(resources,
                          {{small, absl::MakeSpan(large), {}, parts}}, {});
  };
  const auto reduce_scatter = [&](std::vector<size_t> parts) {
    return FusedReduceScatter(resources, {}, in_parts(std::move(parts), {}),
                              {});
  };
  const auto swap = [&](std::vector<size_t> given, std::vector<size_t> taken) {
    return FusedAlltoall(resources,
                         in_parts(std::move(given), std::move(taken)), {});
  };
  const std::pair<absl::Status, std::string> refused[] = {
      {FusedAllreduce(resources, {}, {FusedTensor{}, grows}, {}),
       "tensor 1 of the bucket has 8 bytes of input, but 20 of output"},
      {FusedAdasum(resources, {}, {grows}, {}),
       "tensor 0 of the bucket has 8 bytes of input, but 20 of output"},
      {FusedAllreduce(resources, {.dtype = DataType::kFloat64},
                      {InPlace(large)}, {}),
       "tensor 0 of the bucket has 20 bytes, not a whole number of elements of "
       "8 bytes"},
      {FusedAllreduce(resources, {.dtype = static_cast<DataType>(77)}, {}, {}),
       "the bucket has the unknown data type 77"},
      {FusedAdasum(resources, {.dtype = DataType::kInt64}, {}, {}),
       "Adasum needs tensors of floating-point numbers, not int64; use another "
       "reduction for them"},
      {gather({20}),
       "tensor 0 of the bucket has a partition of its output for 1 ranks, not "
       "for 2"},
      {gather({10, 8}),
       "tensor 0 of the bucket has 20 bytes of output, but a partition of 18"},
      {gather({8, 12}),
       "tensor 0 of the bucket has 8 bytes of input, but rank 1 has a part of "
       "12"},
      {reduce_scatter({20}),
       "tensor 0 of the bucket has a partition of its input for 1 ranks, not "
       "for 2"},
      {reduce_scatter({10, 10}),
       "tensor 0 of the bucket has 10 bytes of input for rank 0, not a whole "
       "number of elements of 4 bytes"},
      {reduce_scatter({12, 4}),
       "tensor 0 of the bucket has 20 bytes of input, but a partition of 16"},
      {reduce_scatter({8, 12}),
       "tensor 0 of the bucket has 8 bytes of output, but rank 1 has a part of "
       "12"},
      {swap({20, 1}, {4, 4}),
       "tensor 0 of the bucket has 20 bytes of input, but a partition of 21"},
      {swap({16, 4}, {4, 3}),
       "tensor 0 of the bucket has 8 bytes of output, but a partition of 7"},
      {swap({16, 4}, {8, 0}),
       "tensor 0 of the bucket: rank 1 sends itself 4 bytes, but expects 0"}};
  for (const auto& [status, message] : refused) {
    EXPECT_EQ(status, absl::InvalidArgumentError(message));
  }
}

}  // namespace
}  // namespace hvdlite::testing
