// The control channel over MPI, and coordinators that use it with the MPI data
// plane; one rank per process.
#include <mpi.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collective/mpi/mpi_communicator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/engine/coordinator.h"
#include "tests/testing/conformance/control_channel_conformance.h"

namespace hvdlite::negotiation {
namespace {

using ::testing::Each;

using hvdlite::testing::ControlChannelCheck;

class MpiChannelTest : public ::testing::TestWithParam<ControlChannelCheck> {};

TEST_P(MpiChannelTest, Conforms) {
  auto channel = CreateMpiChannel().value();
  GetParam().run(*channel, [] { MPI_Barrier(MPI_COMM_WORLD); });
}

INSTANTIATE_TEST_SUITE_P(
    All, MpiChannelTest,
    ::testing::ValuesIn(hvdlite::testing::kControlChannelChecks),
    [](const auto& info) { return std::string(info.param.name); });

class MpiCoordinatorTest : public ::testing::Test {
 protected:
  void Start(const CoordinatorOptions& options) {
    session_ = collective::MpiSession::Start().value();
    communicator_ = collective::CreateMpiCommunicator().value();
    channel_ = CreateMpiChannel().value();
    coordinator_ = std::make_unique<Coordinator>(
        options,
        CoordinatorEnvironment{*channel_, *communicator_, session_->topology(),
                               clock_, logger_, [](const absl::Status&) {}});
  }

  void TearDown() override {
    ASSERT_TRUE(
        coordinator_->Shutdown("the test is over", absl::InfiniteDuration(), {})
            .ok());
    coordinator_.reset();
  }

  int rank() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }

  std::shared_ptr<const Completion> Sum(const std::string& name,
                                        std::vector<float>& values) {
    Operation operation;
    operation.request.name = name;
    operation.request.tensors = {
        {.shape = {static_cast<int64_t>(values.size())}}};
    const auto bytes =
        absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()),
                       values.size() * sizeof(float));
    operation.inputs = {bytes};
    operation.outputs = {bytes};
    auto completion = coordinator_->Submit(std::move(operation));
    EXPECT_TRUE(completion.ok()) << completion.status();
    return *completion;
  }

  base::SteadyClock clock_;
  base::Logger logger_{base::Severity::kWarning, -1};
  std::unique_ptr<collective::MpiSession> session_;
  std::unique_ptr<collective::Communicator> communicator_;
  std::unique_ptr<ControlChannel> channel_;
  std::unique_ptr<Coordinator> coordinator_;
};

TEST_F(MpiCoordinatorTest, ManyTensorsInShuffledOrdersAreAllReduced) {
  CoordinatorOptions options;
  options.config.min_batch_bytes = 20'000;
  options.config.fusion_threshold_bytes = 100'000;
  options.config.chunk_bytes = 16'384;
  Start(options);
  std::mt19937 random(rank());
  for (int step = 0; step < 5; ++step) {
    std::vector<std::vector<float>> values;
    std::vector<int> order;
    for (int i = 0; i < 50; ++i) {
      values.emplace_back(i * 100, static_cast<float>(i + step));
      order.push_back(i);
    }
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::shared_ptr<const Completion>> completions;
    for (const int i : order) {
      completions.push_back(Sum(absl::StrCat("t", i), values[i]));
    }
    for (auto c = completions.rbegin(); c != completions.rend(); ++c) {
      ASSERT_TRUE(coordinator_->Wait(**c).ok());
    }
    for (int i = 0; i < 50; ++i) {
      ASSERT_THAT(values[i], Each(static_cast<float>((i + step) * size())));
    }
  }
}

TEST_F(MpiCoordinatorTest, BackgroundThreadReducesWhileNobodyWaits) {
  CoordinatorOptions options;
  options.config.min_batch_bytes = 0;
  Start(options);
  std::vector<float> values(1000, 1);
  const auto completion = Sum("x", values);
  while (!completion->done()) sched_yield();
  EXPECT_THAT(values, Each(static_cast<float>(size())));
}

}  // namespace
}  // namespace hvdlite::negotiation
