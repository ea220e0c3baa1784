#include "negotiation/world/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "collective/in_process/in_process_communicator.h"
#include "tests/testing/fakes/sum_operation.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::internal {
namespace {

using ::hvdlite::testing::RunRanks;
using ::hvdlite::testing::Sum;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kRanks = 2;

// A rank that is a thread.
class ThreadBackend final : public Backend {
 public:
  ThreadBackend(int rank,
                std::unique_ptr<collective::Communicator> communicator,
                std::unique_ptr<negotiation::ControlChannel> channel)
      : communicator_(std::move(communicator)), channel_(std::move(channel)) {
    topology_.rank = rank;
    topology_.size = kRanks;
    topology_.host_of_rank = {"host0", "host1"};
    topology_.cross_rank_of_rank = {0, 1};
  }

  const collective::Topology& topology() const override { return topology_; }
  collective::Communicator& communicator() override { return *communicator_; }
  negotiation::ControlChannel& channel() override { return *channel_; }
  const std::vector<std::string>& warnings() const override {
    return warnings_;
  }
  absl::Status Close() override {
    channel_.reset();
    communicator_.reset();
    return absl::OkStatus();
  }
  bool only_once() const override { return false; }

 private:
  const std::vector<std::string> warnings_;
  collective::Topology topology_;
  std::unique_ptr<collective::Communicator> communicator_;
  std::unique_ptr<negotiation::ControlChannel> channel_;
};

// Starts a world of two ranks and calls body(world) on a thread of each.
void RunWorld(const std::function<void(World&)>& body) {
  Config config;
  config.coordinator_core = "none";
  auto communicators = collective::CreateInProcessWorld(kRanks);
  auto channels = negotiation::CreateInProcessChannels(kRanks).value();
  RunRanks(kRanks, [&](int rank) {
    const auto world = World::Start(
        config,
        std::make_unique<ThreadBackend>(rank, std::move(communicators[rank]),
                                        std::move(channels[rank])));
    ASSERT_TRUE(world.ok()) << world.status();
    body(**world);
  });
}

absl::Status CloseInGoodOrder(World& world) {
  return world.Close("the test is over", absl::InfiniteDuration());
}

Config OfThisProcessAlone() {
  Config config;
  config.backend = "single";
  config.coordinator_core = "none";
  return config;
}

TEST(WorldTest, RanksAddUpWhatTheySubmit) {
  RunWorld([](World& world) {
    std::vector<float> values = {1, 10};
    const auto sum = world.coordinator().Submit(Sum("sum", values));
    ASSERT_TRUE(sum.ok()) << sum.status();
    EXPECT_TRUE(world.coordinator().Wait(**sum).ok());
    EXPECT_THAT(values, ElementsAre(2, 20));
    EXPECT_TRUE(CloseInGoodOrder(world).ok());
    EXPECT_FALSE(world.abandoned());
  });
}

TEST(WorldTest, ClosedWorldRefusesWhatIsNewAndHasDoneWhatIsOld) {
  RunWorld([](World& world) {
    std::vector<float> values = {1};
    const auto before = world.coordinator().Submit(Sum("before", values));
    ASSERT_TRUE(before.ok()) << before.status();
    EXPECT_TRUE(world.coordinator().Wait(**before).ok());
    EXPECT_TRUE(CloseInGoodOrder(world).ok());

    EXPECT_TRUE(world.coordinator().Wait(**before).ok());
    EXPECT_TRUE(world.coordinator().WaitFor(**before, absl::ZeroDuration()));
    world.coordinator().Leave("nobody is there to hear it");
    EXPECT_EQ(world.recorder(), nullptr);
    const std::vector<absl::Status> refusals = {
        world.coordinator().Submit(Sum("after", values)).status(),
        world.coordinator().Prepare(Sum("after", values)).status(),
        world.coordinator().SubmitPrepared({}, /*caller_waits=*/false),
        world.coordinator().AllocateTensors(64).status()};
    for (const absl::Status& refusal : refusals) {
      EXPECT_EQ(refusal.code(), absl::StatusCode::kUnavailable);
      EXPECT_THAT(std::string(refusal.message()),
                  HasSubstr("hvdlite::shutdown() has been called"));
    }
    EXPECT_THAT(values, Each(kRanks));
  });
}

TEST(WorldTest, ThreadThatWaitsHearsThatTheWorldCloses) {
  RunWorld([](World& world) {
    // Of this rank alone, so that it never runs.
    std::vector<float> values = {1};
    const auto lonely = world.coordinator().Submit(
        Sum(absl::StrCat("of_rank_", world.topology().rank), values));
    ASSERT_TRUE(lonely.ok()) << lonely.status();
    absl::Status heard;
    std::thread waiting([&] { heard = world.coordinator().Wait(**lonely); });
    EXPECT_TRUE(CloseInGoodOrder(world).ok());
    waiting.join();
    EXPECT_EQ(heard.code(), absl::StatusCode::kUnavailable) << heard;
  });
}

TEST(WorldTest, NamesAreCountedAnewAfterJoins) {
  RunWorld([](World& world) {
    EXPECT_EQ(world.NextName("allreduce"), "allreduce.noname.0");
    EXPECT_EQ(world.NextName("allreduce"), "allreduce.noname.1");
    EXPECT_EQ(world.NextName("allreduce", /*process_set=*/1),
              "allreduce.noname.0");
    world.CountJoin();
    EXPECT_EQ(world.NextName("allreduce"), "allreduce.noname.1.0");
    EXPECT_TRUE(CloseInGoodOrder(world).ok());
  });
}

TEST(CurrentWorldTest, ProcessHasOneWorldAtATime) {
  EXPECT_EQ(CurrentWorldOrNull(), nullptr);
  for (int life = 0; life < 2; ++life) {
    ASSERT_TRUE(StartCurrentWorld(OfThisProcessAlone()).ok());
    const absl::Status second = StartCurrentWorld(OfThisProcessAlone());
    EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(second.message()), HasSubstr("called twice"));
    const std::shared_ptr<World> world = TakeCurrentWorld();
    ASSERT_NE(world, nullptr);
    EXPECT_EQ(CurrentWorldOrNull(), nullptr);
    EXPECT_TRUE(
        CloseWorld(world, "the test is over", absl::InfiniteDuration()).ok());
    EXPECT_FALSE(HasAbandonedWorld());
  }
}

}  // namespace
}  // namespace hvdlite::internal
