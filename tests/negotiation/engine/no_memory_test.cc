// A world that runs short of memory: allocations of one thread fail, either
// each one once, or all from some point on. Nothing may hang, and nothing may
// end the process.
#include <array>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/logging.h"
#include "base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/engine/coordinator.h"
#include "negotiation/engine/watchdog.h"
#include "tests/testing/fakes/fake_communicator.h"
#include "tests/testing/fakes/forwarding_channel.h"
#include "tests/testing/fakes/sum_operation.h"
#include "tests/testing/unless_sanitized.h"
#include "tests/testing/worlds/run_ranks.h"

namespace {

// Which allocations fail, counted over the threads that use it.
struct Shortage {
  std::atomic<int64_t> left = 0;  // allocations that succeed before
  bool lasts = false;             // more than the next one fails
  std::atomic<int64_t> failed = 0;

  bool Fails() {
    const int64_t before = left.fetch_sub(1);
    if (before > 0 || (before < 0 && !lasts)) return false;
    ++failed;
    return true;
  }
};
thread_local Shortage* shortage = nullptr;

// While an object exists, this thread has memory.
class WithMemory {
 public:
  WithMemory() = default;
  ~WithMemory() { shortage = before_; }
  WithMemory(const WithMemory&) = delete;
  WithMemory& operator=(const WithMemory&) = delete;

 private:
  Shortage* const before_ = std::exchange(shortage, nullptr);
};

void* Allocate(size_t bytes) {
  if (shortage != nullptr && shortage->Fails()) throw std::bad_alloc();
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes); }
void* operator new[](size_t bytes) { return Allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

// A broken world does not destroy its progress loop, so leaks are expected.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

// After an exception, a coordinator keeps what may be damaged for ever.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:hvdlite::negotiation::Coordinator::Coordinator\n";
}

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::RunRanks;
using hvdlite::testing::Sum;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kRanks = 3;

// Where the ranks add. Like shared memory, it allocates nothing, and ranks that
// wait there learn that the world has broken.
class Meeting {
 public:
  absl::Status Add(absl::Span<float> values) {
    base::MutexLock lock(&mutex_);
    if (arrived_ == 0) sums_.fill(0);
    for (size_t i = 0; i < values.size(); ++i) sums_[i] += values[i];
    const int round = round_;
    if (++arrived_ == kRanks) {
      arrived_ = 0;
      ++round_;
      changed_.NotifyAll();
    }
    while (round_ == round && !ended_) changed_.Wait(&mutex_);
    if (round_ == round) return broken_;
    for (size_t i = 0; i < values.size(); ++i) values[i] = sums_[i];
    return absl::OkStatus();
  }

  void End() {
    base::MutexLock lock(&mutex_);
    ended_ = true;
    changed_.NotifyAll();
  }

 private:
  const absl::Status broken_ = absl::UnavailableError("a rank is lost");
  base::Mutex mutex_;
  base::CondVar changed_;
  std::array<float, 64> sums_ ABSL_GUARDED_BY(mutex_) = {};
  int arrived_ ABSL_GUARDED_BY(mutex_) = 0;
  int round_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

class MeetingCommunicator final
    : public hvdlite::testing::UnimplementedCommunicator {
 public:
  MeetingCommunicator(int rank, Meeting& meeting)
      : UnimplementedCommunicator(rank, kRanks), meeting_(meeting) {}
  absl::Status Allreduce(absl::Span<std::byte> buffer, collective::DataType,
                         collective::ReduceOp) override {
    return meeting_.Add({reinterpret_cast<float*>(buffer.data()),
                         buffer.size() / sizeof(float)});
  }

 private:
  Meeting& meeting_;
};

// Sends without allocating, like a ring in shared memory.
class RingChannel final : public hvdlite::testing::ForwardingChannel {
 public:
  using ForwardingChannel::ForwardingChannel;
  absl::Status Send(int to, std::string bytes) override {
    const WithMemory memory;
    return ForwardingChannel::Send(to, std::move(bytes));
  }
};

enum class Coordinates { kApplication, kBackground };
thread_local bool is_application = false;

// Three ranks in a row. One of them runs short of memory, in the thread that
// holds its progress lock.
class ShortWorld {
 public:
  ShortWorld(int short_rank, Coordinates coordinates, int64_t left, bool lasts)
      : short_rank_(short_rank), coordinates_(coordinates) {
    shortage_.left = left;
    shortage_.lasts = lasts;
    CoordinatorOptions options;
    options.config.tree_arity = 1;
    options.config.watchdog_seconds = 0;
    options.config.min_batch_bytes =
        coordinates == Coordinates::kBackground ? 0 : 1 << 20;
    auto channels = CreateInProcessChannels(kRanks).value();
    for (int rank = 0; rank < kRanks; ++rank) {
      auto state = std::make_unique<Rank>(rank, meeting_);
      state->channel = std::make_unique<RingChannel>(std::move(channels[rank]));
      state->topology.rank = rank;
      state->topology.size = kRanks;
      state->topology.host_of_rank = {"host0", "host1", "host2"};
      state->topology.cross_rank_of_rank = {0, 1, 2};
      state->coordinator = std::make_unique<Coordinator>(
          options, CoordinatorEnvironment{
                       .channel = *state->channel,
                       .communicator = state->communicator,
                       .topology = state->topology,
                       .clock = clock_,
                       .logger = logger_,
                       .stuck = {},
                       .ended = [this](const absl::Status&) { meeting_.End(); },
                       .sample = [this, rank] { MakeShort(rank); }});
      ranks_.push_back(std::move(state));
    }
  }

  // All ranks run the same program, up to its first error, and shut down.
  void Run() {
    RunRanks(kRanks, [this](int rank) {
      is_application = true;
      RunRank(rank);
    });
  }

  int64_t failed() const { return shortage_.failed.load(); }
  // The results of the rank: what its program got, and what its shutdown
  // returned.
  std::vector<absl::Status>& statuses(int rank) {
    return ranks_[rank]->statuses;
  }
  const absl::Status& shutdown(int rank) const {
    return ranks_[rank]->shutdown;
  }

 private:
  struct Rank {
    Rank(int rank, Meeting& meeting) : communicator(rank, meeting) {
      statuses.reserve(64);
    }
    MeetingCommunicator communicator;
    std::unique_ptr<ControlChannel> channel;
    collective::Topology topology;
    std::unique_ptr<Coordinator> coordinator;
    std::vector<absl::Status> statuses;
    absl::Status shutdown;
  };

  // Called by the thread that holds the progress lock, before it takes anything
  // in.
  void MakeShort(int rank) {
    if (rank != short_rank_ || !short_.load()) return;
    if (is_application == (coordinates_ == Coordinates::kApplication)) {
      shortage = &shortage_;
    }
  }

  // Submits all `names`, then waits for all. Returns false after an error.
  bool Step(int rank, const std::vector<std::string>& names) {
    Rank& state = *ranks_[rank];
    Coordinator& coordinator = *state.coordinator;
    std::array<std::vector<float>, 4> values;
    std::array<std::shared_ptr<const Completion>, 4> completions;
    try {
      for (size_t i = 0; i < names.size(); ++i) {
        values[i].assign(names[i] == "one whose shape differs" ? 1 + rank : 3,
                         1);
        Operation operation = Sum(names[i], values[i]);
        operation.caller_waits = coordinates_ == Coordinates::kApplication;
        auto completion = coordinator.Submit(std::move(operation));
        if (!completion.ok()) {
          state.statuses.push_back(completion.status());
          break;
        }
        completions[i] = *std::move(completion);
      }
    } catch (const std::bad_alloc&) {
      const WithMemory memory;
      submission_threw_ = true;
      coordinator.Leave("its program has no memory left");
    }
    bool ok = !submission_threw_ || rank != short_rank_;
    for (const auto& completion : completions) {
      if (completion == nullptr) continue;
      while (coordinates_ == Coordinates::kBackground && !completion->done()) {
        std::this_thread::yield();
      }
      state.statuses.push_back(coordinator.Wait(*completion));
      ok = ok && !absl::IsUnavailable(state.statuses.back());
    }
    return ok;
  }

  void RunRank(int rank) {
    using Names = std::vector<std::string>;
    const Names several = {
        "the weights of the first layer", "the weights of the second layer",
        "the weights of the third layer", "the weights of the fourth layer"};
    // Names are announced first, then registered, then known.
    const std::vector<Names> steps = {
        several, several, several, Names{"one whose shape differs"},
        Names{"two of one name", "two of one name"}};
    Step(rank, {"what is there before memory is short"});
    everybody_.arrive_and_wait();
    if (rank == short_rank_) short_ = true;
    everybody_.arrive_and_wait();
    for (const Names& names : steps) {
      if (!Step(rank, names)) break;
    }
    shortage = nullptr;
    ranks_[rank]->shutdown = ranks_[rank]->coordinator->Shutdown(
        "shutdown", absl::InfiniteDuration(), {});
    shortage = nullptr;
  }

  const int short_rank_;
  const Coordinates coordinates_;
  const base::SteadyClock clock_;
  const base::Logger logger_{base::Severity::kWarning, -1,
                             [](absl::string_view) {}};
  Shortage shortage_;
  std::atomic<bool> short_{false};
  std::atomic<bool> submission_threw_{false};
  std::barrier<> everybody_{kRanks};
  Meeting meeting_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

// Each allocation fails in turn; under a sanitizer one in five, with different
// ones on each rank.
constexpr int64_t kFailsEvery = hvdlite::testing::UnlessSanitized(1, 5);

class NoMemoryTest
    : public ::testing::TestWithParam<std::tuple<Coordinates, int, bool>> {};

TEST_P(NoMemoryTest, EveryRankEndsWhicheverAllocationFails) {
  const auto [coordinates, rank, lasts] = GetParam();
  int64_t broken = 0;
  for (int64_t left = rank % kFailsEvery;; left += kFailsEvery) {
    ShortWorld world(rank, coordinates, left, lasts);
    world.Run();
    const std::string who =
        absl::StrCat("rank ", rank, " (host", rank, ") has no memory left");
    if (!world.shutdown(rank).ok()) {
      ++broken;
      EXPECT_THAT(world.shutdown(rank).message(), HasSubstr(who));
    }
    for (int other = 0; other < kRanks; ++other) {
      SCOPED_TRACE(absl::StrCat("allocation ", left, ", rank ", other));
      const absl::Status& shutdown = world.shutdown(other);
      if (world.failed() == 0) {
        EXPECT_EQ(shutdown, absl::OkStatus());
      }
      if (!shutdown.ok()) {
        EXPECT_TRUE(absl::IsUnavailable(shutdown)) << shutdown;
        EXPECT_THAT(shutdown.message(),
                    AnyOf(HasSubstr(who), HasSubstr("a rank is lost")));
      }
      for (const absl::Status& status : world.statuses(other)) {
        if (status.ok() || absl::IsInvalidArgument(status)) continue;
        EXPECT_TRUE(absl::IsUnavailable(status)) << status;
        EXPECT_GT(world.failed(), 0);
      }
    }
    if (world.failed() == 0 || HasFailure()) break;
  }
  // Otherwise nothing was tested.
  EXPECT_GT(broken, 20 / kFailsEvery);
}

INSTANTIATE_TEST_SUITE_P(
    Ranks, NoMemoryTest,
    ::testing::Combine(::testing::Values(Coordinates::kApplication,
                                         Coordinates::kBackground),
                       ::testing::Range(0, kRanks), ::testing::Bool()),
    [](const auto& info) {
      return absl::StrCat(std::get<0>(info.param) == Coordinates::kApplication
                              ? "Application"
                              : "Background",
                          "Rank", std::get<1>(info.param),
                          std::get<2>(info.param) ? "FromThenOn" : "Once");
    });

TEST(NoMemoryWatchdogTest, StuckCallIsReported) {
  base::FakeClock clock;
  std::string told;
  told.reserve(100);
  Shortage all{.left = 0, .lasts = true};
  Watchdog watchdog(
      clock, absl::Hours(1), [&](const std::string& what) { told = what; },
      {.after = absl::Seconds(1), .tell = [](const std::string&) {}});
  const Watched watched(watchdog,
                        {.what = "allreduce of a gradient with a name",
                         .bytes = 1'000'000,
                         .chunk_bytes = 1000});
  shortage = &all;
  clock.Advance(absl::Seconds(2));
  watchdog.Check();
  clock.Advance(absl::Hours(2));
  watchdog.Check();
  shortage = nullptr;
  watchdog.End();
  EXPECT_EQ(told, "allreduce of a gradient with a name");
  EXPECT_GT(all.failed, 0);
}

TEST(NoMemoryLoggerTest, OnlyTheTextIsWritten) {
  static std::array<char, 256> written = {};
  static size_t bytes = 0;
  const base::Logger logger(
      base::Severity::kWarning, 3, [](absl::string_view text) {
        bytes += text.copy(&written[bytes], written.size() - bytes);
      });
  Shortage all{.left = 0, .lasts = true};
  shortage = &all;
  logger.Error("the world has broken");
  shortage = nullptr;
  EXPECT_EQ(absl::string_view(written.data(), bytes), "the world has broken\n");
}

}  // namespace
}  // namespace hvdlite::negotiation
