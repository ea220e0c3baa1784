#include "negotiation/world/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/end_note.h"
#include "base/mutex.h"
#include "negotiation/world/backend.h"
#include "negotiation/world/current_world.h"
#include "tests/testing/fakes/fake_communicator.h"
#include "tests/testing/fakes/sum_operation.h"
#include "tests/testing/worlds/run_ranks.h"
#include "timeline/diagnose/step_report.h"

namespace hvdlite::internal {
namespace {

using ::hvdlite::testing::RunRanks;
using ::hvdlite::testing::Sum;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kRanks = 2;

// Backends of `size` ranks in this process; each rank is a node of its own.
std::vector<std::unique_ptr<Backend>> CreateBackends(int size) {
  auto communicators = collective::CreateInProcessWorld(size);
  auto channels = negotiation::CreateInProcessChannels(size).value();
  std::vector<std::string> hosts;
  std::vector<int> nodes;
  for (int rank = 0; rank < size; ++rank) {
    hosts.push_back(absl::StrCat("host", rank));
    nodes.push_back(rank);
  }
  std::vector<std::unique_ptr<Backend>> backends;
  for (int rank = 0; rank < size; ++rank) {
    backends.push_back(CreateLocalBackend(
        collective::MakeTopology(rank, nodes, hosts),
        std::move(communicators[rank]), std::move(channels[rank])));
  }
  return backends;
}

// Starts a world of two ranks and calls body(world) on a thread of each.
void RunWorld(const std::function<void(World&)>& body) {
  Config config;
  config.coordinator_core = "none";
  auto backends = CreateBackends(kRanks);
  RunRanks(kRanks, [&](int rank) {
    const auto world = World::Start(config, std::move(backends[rank]));
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

TEST(WorldTest, AllreduceAddsTheRanksValues) {
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

TEST(WorldTest, ClosedWorldRefusesNewAndHasFinishedOldOperations) {
  RunWorld([](World& world) {
    std::vector<float> values = {1};
    const auto before = world.coordinator().Submit(Sum("before", values));
    ASSERT_TRUE(before.ok()) << before.status();
    EXPECT_TRUE(world.coordinator().Wait(**before).ok());
    EXPECT_TRUE(CloseInGoodOrder(world).ok());

    EXPECT_TRUE(world.coordinator().Wait(**before).ok());
    EXPECT_TRUE(world.coordinator().WaitFor(**before, absl::ZeroDuration()));
    world.coordinator().Leave("the world is closed");
    EXPECT_EQ(world.recorder(), nullptr);
    const std::vector<absl::Status> refusals = {
        world.coordinator().Submit(Sum("after", values)).status(),
        world.coordinator().MakePersistent(Sum("after", values)).status(),
        world.coordinator().SubmitPersistent({}, /*caller_waits=*/false),
        world.coordinator().AllocateTensors(64).status()};
    for (const absl::Status& refusal : refusals) {
      EXPECT_EQ(refusal.code(), absl::StatusCode::kUnavailable);
      EXPECT_THAT(std::string(refusal.message()),
                  HasSubstr("hvdlite::shutdown() has been called"));
    }
    EXPECT_THAT(values, Each(kRanks));
  });
}

// For hvdliterun --report, sums of steps are written into a pipe, also next to
// a timeline.
TEST(WorldTest, StepsAreReportedThroughThePipe) {
  absl::StatusOr<timeline::StepReportEnds> pipe =
      timeline::MakeStepReportPipe();
  ASSERT_TRUE(pipe.ok()) << pipe.status();
  setenv(base::kStepReportVariable, std::to_string(pipe->write.get()).c_str(),
         1);
  const auto world = World::Start(OfThisProcessAlone());
  unsetenv(base::kStepReportVariable);
  ASSERT_TRUE(world.ok()) << world.status();
  EXPECT_FALSE((*world)->is_recording());
  ASSERT_NE((*world)->recorder(), nullptr);
  (*world)->recorder()->StepOver((*world)->clock().NowNanos(), {});
  EXPECT_TRUE(CloseInGoodOrder(**world).ok());
  EXPECT_EQ((*world)->recorder(), nullptr);
  std::string text(4096, '\0');
  const ssize_t size = read(pipe->read.get(), text.data(), text.size());
  ASSERT_GT(size, 0);
  text.resize(static_cast<size_t>(size));
  const std::optional<timeline::StepReport> report =
      timeline::DecodeStepReport(text);
  ASSERT_TRUE(report.has_value()) << text;
  EXPECT_EQ(report->steps, 1);
  EXPECT_GT(timeline::NumberOf(report->facts, "cpus", 0), 0);
}

TEST(WorldTest, WaitingThreadLearnsThatTheWorldCloses) {
  // If a rank has left, the submissions of others are refused.
  std::latch submitted(kRanks);
  RunWorld([&](World& world) {
    // Only this rank submits it, so that it never runs.
    std::vector<float> values = {1};
    const auto lonely = world.coordinator().Submit(
        Sum(absl::StrCat("of_rank_", world.topology().rank), values));
    submitted.arrive_and_wait();
    ASSERT_TRUE(lonely.ok()) << lonely.status();
    absl::Status heard;
    std::thread waiting([&] { heard = world.coordinator().Wait(**lonely); });
    EXPECT_TRUE(CloseInGoodOrder(world).ok());
    waiting.join();
    EXPECT_EQ(heard.code(), absl::StatusCode::kUnavailable) << heard;
  });
}

// A thread is inside the communicator while the world closes.
class SlowCommunicator final
    : public hvdlite::testing::UnimplementedCommunicator {
 public:
  absl::StatusOr<collective::TensorMemory> AllocateTensors(size_t) override {
    entered.count_down();
    const auto closed = [this] {
      return absl::IsUnavailable(
          world->coordinator().SubmitPersistent({}, /*caller_waits=*/false));
    };
    while (!closed()) sched_yield();
    for (int look = 0; look < 1000 && !ended; ++look) sched_yield();
    ended_too_early = ended;
    return absl::UnimplementedError("there is no memory");
  }
  absl::Status Allgather(absl::Span<std::byte>,
                         absl::Span<const size_t>) override {
    return absl::OkStatus();  // there is one rank
  }
  // This is the first call of Close() after all threads have left.
  absl::Status Barrier() override {
    ended = true;
    return absl::OkStatus();
  }

  World* world = nullptr;
  std::latch entered{1};
  std::atomic<bool> ended{false};
  bool ended_too_early = false;
};

class SlowBackend final : public Backend {
 public:
  explicit SlowBackend(SlowCommunicator& communicator)
      : inner_(std::move(CreateBackends(1).front())),
        communicator_(communicator) {}
  const collective::Topology& topology() const override {
    return inner_->topology();
  }
  collective::Communicator& communicator() override { return communicator_; }
  negotiation::ControlChannel& channel() override { return inner_->channel(); }
  const std::vector<std::string>& warnings() const override {
    return inner_->warnings();
  }
  absl::Status Close() override { return inner_->Close(); }
  bool only_once() const override { return false; }
  void Abandon() override {}
  bool can_be_replaced() const override { return false; }

 private:
  const std::unique_ptr<Backend> inner_;
  SlowCommunicator& communicator_;
};

TEST(WorldTest, CloseWaitsForThreadsThatAreInside) {
  SlowCommunicator communicator;
  const auto world = World::Start(OfThisProcessAlone(),
                                  std::make_unique<SlowBackend>(communicator))
                         .value();
  communicator.world = world.get();
  std::thread inside([&] { (void)world->coordinator().AllocateTensors(64); });
  communicator.entered.wait();
  EXPECT_TRUE(CloseInGoodOrder(*world).ok());
  inside.join();
  EXPECT_TRUE(communicator.ended);
  EXPECT_FALSE(communicator.ended_too_early);
}

TEST(WorldTest, NumbersStartAgainAfterAJoin) {
  RunWorld([](World& world) {
    EXPECT_EQ(world.NextName("optimizer", 0), "optimizer.noname.0");
    EXPECT_EQ(world.NextName("optimizer", 0), "optimizer.noname.1");
    EXPECT_EQ(world.NextName("optimizer", /*process_set=*/1),
              "optimizer.noname.0");
    EXPECT_EQ(world.NextNumber("allreduce", 0), 0);
    EXPECT_EQ(world.NextNumber("allreduce", 0), 1);
    world.ForgetNumbers(1);
    EXPECT_EQ(world.NextNumber("optimizer", 0), 2);
    EXPECT_EQ(world.NextNumber("optimizer", 1), 0);
    world.CountJoin();
    EXPECT_EQ(world.NextName("optimizer", 0), "optimizer.noname.1.0");
    EXPECT_EQ(world.NextNumber("allreduce", 0), 0);
    EXPECT_TRUE(CloseInGoodOrder(world).ok());
  });
}

TEST(WorldTest, CompanionIsMadeOnceAndDestroyedWithTheWorld) {
  base::Mutex mutex;
  std::vector<std::weak_ptr<int>> companions;  // one per rank
  RunWorld([&](World& world) {
    const auto make = [&]() -> std::shared_ptr<void> {
      auto companion = std::make_shared<int>(0);
      base::MutexLock lock(&mutex);
      companions.push_back(companion);
      return companion;
    };
    void* const first = world.Companion(make);
    EXPECT_NE(first, nullptr);
    EXPECT_EQ(world.Companion(make), first);
    EXPECT_TRUE(CloseInGoodOrder(world).ok());
  });
  EXPECT_EQ(companions.size(), size_t{kRanks});
  for (const auto& companion : companions) EXPECT_TRUE(companion.expired());
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
    EXPECT_FALSE(world->abandoned());
  }
}

// The end of a process that has a world, or whose parent has one. Both are
// forked processes, since this process continues.
class ExitTest : public ::testing::Test {
 protected:
  // Returns how a forked process ends: by exit(0) after `body`, or with another
  // status if there is a world at the very end.
  static int StatusAfter(const std::function<void()>& body) {
    const pid_t process = fork();
    if (process == 0) {
      body();
      std::exit(0);
    }
    int status = -1;
    waitpid(process, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // Call this before the world starts: handlers run in reverse order.
  static void LookAtTheEnd() {
    on_exit(
        [](int, void*) {
          _exit(CurrentWorldOrNull() == nullptr ? kNoWorld : kWorld);
        },
        nullptr);
  }
  static constexpr int kNoWorld = 10;
  static constexpr int kWorld = 11;
};

TEST_F(ExitTest, ProcessLeavesItsWorldAtExit) {
  EXPECT_EQ(StatusAfter([] {
              LookAtTheEnd();
              if (!StartCurrentWorld(OfThisProcessAlone()).ok()) _exit(1);
            }),
            kNoWorld);
}

TEST_F(ExitTest, ChildThatExitsDoesNotAffectItsParentsWorld) {
  EXPECT_EQ(StatusAfter([] {
              LookAtTheEnd();
              if (!StartCurrentWorld(OfThisProcessAlone()).ok()) _exit(1);
              const int of_child = StatusAfter([] {
                if (CheckNotForked().ok()) _exit(3);
              });
              const auto world = TakeCurrentWorld();
              if (!CloseWorld(world, "over", absl::InfiniteDuration()).ok()) {
                _exit(2);
              }
              _exit(of_child);
            }),
            kNoWorld);
}

TEST_F(ExitTest, ChildOfARankIsNotARank) {
  EXPECT_EQ(StatusAfter([] {
              if (!CheckNotForked().ok()) _exit(2);
              if (!StartCurrentWorld(OfThisProcessAlone()).ok()) _exit(3);
              const auto starts_world = [] {
                const absl::Status started =
                    StartCurrentWorld(OfThisProcessAlone());
                if (started.ok()) _exit(1);
                _exit(absl::StrContains(started.message(), "was forked from")
                          ? 0
                          : 2);
              };
              if (StatusAfter(starts_world) != 0) _exit(4);
              const auto world = TakeCurrentWorld();
              if (!CloseWorld(world, "over", absl::InfiniteDuration()).ok()) {
                _exit(5);
              }
              if (StatusAfter(starts_world) != 1) _exit(6);
            }),
            0);
}

TEST(WorldTest, TimelineIsMergedAtItsPathAfterChdir) {
  const std::filesystem::path before = std::filesystem::current_path();
  const std::filesystem::path directory =
      std::filesystem::path(::testing::TempDir()) /
      absl::StrCat("world_test_", getpid());
  std::filesystem::create_directory(directory);
  std::filesystem::current_path(directory);
  Config config = OfThisProcessAlone();
  config.timeline = "trace.json";
  const auto world = World::Start(config);
  ASSERT_TRUE(world.ok()) << world.status();
  std::filesystem::current_path("/");
  EXPECT_TRUE(CloseInGoodOrder(**world).ok());
  EXPECT_TRUE(std::filesystem::exists(directory / "trace.json"));
  EXPECT_FALSE(std::filesystem::exists(directory / "trace.json.rank00000"));
  std::filesystem::current_path(before);
  std::filesystem::remove_all(directory);
}

TEST(WorldTest, WorldOfOneChecksUnusedSettings) {
  Config nodes = OfThisProcessAlone();
  nodes.virtual_nodes = "2,2";
  EXPECT_THAT(std::string(World::Start(nodes).status().message()),
              HasSubstr("virtual nodes '2,2'"));
  Config table = OfThisProcessAlone();
  table.allreduce_table = "/nonexistent/table";
  EXPECT_THAT(std::string(World::Start(table).status().message()),
              HasSubstr("HVDLITE_ALLREDUCE_TABLE=/nonexistent/table: rank 0 "
                        "cannot read it"));
}

TEST(WorldTest, TableThatIsNotAFileIsAnError) {
  const std::string pipe =
      absl::StrCat(::testing::TempDir(), "/table_pipe_", getpid());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path :
       {std::string("/"), std::string("/dev/zero"), pipe}) {
    Config table = OfThisProcessAlone();
    table.allreduce_table = path;
    EXPECT_THAT(std::string(World::Start(table).status().message()),
                HasSubstr(absl::StrCat("HVDLITE_ALLREDUCE_TABLE=", path,
                                       ": rank 0 cannot read it: ")));
  }
  unlink(pipe.c_str());
}

}  // namespace
}  // namespace hvdlite::internal
