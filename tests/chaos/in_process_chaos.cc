// Runs trials: a random program on a few ranks in one process, with a random
// fault at a random point. Every submitted operation must end once; successful
// operations have correct results, and errors name the rank with the fault.
//   in_process_chaos [--first=SEED] [--trials=COUNT] [--json]
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "tests/chaos/faulty_world.h"
#include "tests/testing/conformance/program.h"
#include "tests/testing/conformance/program_runner.h"
#include "tests/testing/unless_sanitized.h"
#include "tests/testing/worlds/coordinated_world.h"

// After an exception, a coordinator never frees memory that may be damaged.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:hvdlite::negotiation::Coordinator::Coordinator\n";
}

namespace hvdlite::testing {
namespace {

constexpr int kTrials = UnlessSanitized(60, 27);
uint64_t first_seed = 1;
int trials = kTrials;
bool json = false;

// Limit of virtual time. The longest wait is that of the watchdog.
constexpr absl::Duration kLongest = absl::Seconds(60);
// A trial that hangs without virtual time passing ends the program; its name is
// printed.
constexpr int kPatienceSeconds = 120;
std::array<char, 512> running;
void OnHang(int) {
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, running.data(), strlen(running.data()));
  _exit(1);
}

struct Sum {
  int trials = 0;
  int fired = 0;     // trials that reached the point of the fault
  int lost = 0;      // trials that lost the world
  int indirect = 0;  // trials in which a rank saw only a consequence
  int longest_ticks = 0;
};

struct Trial {
  explicit Trial(uint64_t number)
      : seed(number),
        size(2 + static_cast<int>(number % 3)),
        fault(RandomFault(number, size)) {}
  std::string Name() const {
    return absl::StrCat("seed ", seed, ": ", size, " ranks; ", Describe(fault));
  }
  const uint64_t seed;
  const int size;
  const Fault fault;
};

// Checks the status of ranks that have lost their world: does it name a cause?
class Causes {
 public:
  Causes(const Trial& trial, const FaultyWorld& world)
      : trial_(trial), world_(world) {}

  void Look(int rank, const std::string& label, const absl::Status& status) {
    lost_ = true;
    const Fault& fault = trial_.fault;
    if (fault.recovers() || !world_.fired()) {
      ADD_FAILURE() << trial_.Name() << ": " << label << ": " << status;
      return;
    }
    if (rank == fault.rank || Names(status, fault.rank)) return;
    if (fault.kind == Fault::Kind::kCut &&
        (rank == fault.peer || Names(status, fault.peer))) {
      return;
    }
    // A rank that was inside the data plane when others ended does not know the
    // cause. The others may report that rank itself as missing.
    indirect_ = true;
    const bool takes_time =
        fault.kind == Fault::Kind::kStops || fault.kind == Fault::Kind::kCut;
    const bool said =
        absl::StrContains(status.message(), "is gone") ||
        (takes_time &&
         (absl::StrContains(status.message(), "has not come back from") ||
          absl::StrContains(status.message(), "has given no sign of life")));
    EXPECT_TRUE(said) << trial_.Name() << ": " << label << ": " << status;
  }

  bool lost() const { return lost_; }
  bool indirect() const { return indirect_; }

 private:
  static bool Names(const absl::Status& status, int rank) {
    return absl::StrContains(status.message(),
                             absl::StrCat("rank ", rank, " (host", rank, ")"));
  }

  const Trial& trial_;
  const FaultyWorld& world_;
  std::atomic<bool> lost_{false};
  std::atomic<bool> indirect_{false};
};

void RunTrial(const Trial& trial, Sum& sum) {
  Program program = ProgramGenerator(trial.seed, trial.size).Generate();
  Config& config = program.options.config;
  config.stall_warning_seconds = 0;
  config.stall_failure_seconds = 0;
  config.heartbeat_seconds = absl::ToDoubleSeconds(FaultyWorld::kHeartbeat);
  // While a slow rank pauses, time also passes for ranks inside the data plane,
  // which cannot answer.
  if (trial.fault.kind == Fault::Kind::kSlow) config.heartbeat_seconds *= 10;
  config.watchdog_seconds = absl::ToDoubleSeconds(FaultyWorld::kWatchdog);

  FaultyWorld faulty(trial.fault, trial.size,
                     static_cast<int>(config.tree_arity));
  Causes causes(trial, faulty);
  {
    CoordinatedWorld world(
        trial.size, program.options, &faulty.clock(),
        [&](int rank, auto inner) {
          return faulty.Wrap(rank, std::move(inner));
        },
        [&](int rank, auto inner) {
          return faulty.WrapChannel(rank, std::move(inner));
        });
    std::thread time([&] {
      while (faulty.Step(
          [&](int rank) { return !world[rank].world_status().ok(); })) {
        if (faulty.ticks() * FaultyWorld::kTick > kLongest) OnHang(0);
      }
    });
    world.OnEveryRank([&](int rank) {
      ProgramRunner(
          program, world[rank], rank,
          {.lost =
               [&](const std::string& label, const absl::Status& status) {
                 causes.Look(rank, label, status);
               },
           .adjust =
               [&](negotiation::Operation& operation) {
                 faulty.Adjust(rank, operation);
               }})
          .Run();
      faulty.OnShutdown(rank);
      const absl::Status end = world.Shutdown(rank);
      if (!end.ok()) causes.Look(rank, "shutdown", end);
      world[rank].Close();
      faulty.OnOver(rank);
    });
    time.join();
  }
  ++sum.trials;
  sum.fired += faulty.fired() ? 1 : 0;
  sum.lost += causes.lost() ? 1 : 0;
  sum.indirect += causes.indirect() ? 1 : 0;
  sum.longest_ticks = std::max(sum.longest_ticks, faulty.ticks());
}

int64_t CountIn(const char* directory) {
  return std::distance(std::filesystem::directory_iterator(directory), {});
}
// A joined thread can be visible in /proc for a moment.
bool ThreadsAre(int64_t count) {
  for (int i = 0; i < 100'000; ++i) {
    if (CountIn("/proc/self/task") == count) return true;
    std::this_thread::yield();
  }
  return false;
}

TEST(InProcessChaos, EveryRankEndsOrContinuesAndErrorsNameTheRank) {
  signal(SIGALRM, OnHang);
  std::array<Sum, Fault::kKinds> sums;
  std::thread([] {}).join();  // a sanitizer starts its own thread now
  const int64_t threads = CountIn("/proc/self/task");
  const int64_t descriptors = CountIn("/proc/self/fd");
  for (int i = 0; i < trials; ++i) {
    const Trial trial(first_seed + i);
    absl::SNPrintF(running.data(), running.size(), "this trial hangs: %s\n",
                   trial.Name());
    alarm(kPatienceSeconds);
    RunTrial(trial, sums[static_cast<int>(trial.fault.kind)]);
    alarm(0);
    EXPECT_TRUE(ThreadsAre(threads)) << "a thread has not ended";
    EXPECT_EQ(CountIn("/proc/self/fd"), descriptors);
    ASSERT_FALSE(HasFailure()) << trial.Name() << "\nrepeat: in_process_chaos "
                               << "--trials=1 --first=" << trial.seed;
  }
  int fired = 0;
  if (!json) {
    absl::PrintF("%-18s %7s %7s %7s %9s %10s\n", "fault", "trials", "fired",
                 "lost", "indirect", "longest");
  }
  for (int kind = 0; kind < Fault::kKinds; ++kind) {
    const Sum& sum = sums[kind];
    fired += sum.fired;
    const auto print = [&](const absl::FormatSpec<absl::string_view, int, int,
                                                  int, int, int64_t>& format) {
      absl::PrintF(
          format, NameOf(static_cast<Fault::Kind>(kind)), sum.trials, sum.fired,
          sum.lost, sum.indirect,
          absl::ToInt64Milliseconds(sum.longest_ticks * FaultyWorld::kTick));
    };
    if (json) {
      print(
          "{\"fault\": \"%s\", \"trials\": %d, \"came\": %d, \"lost\": %d,"
          " \"indirect\": %d, \"longest_ms\": %d}\n");
    } else {
      print("%-18s %7d %7d %7d %9d %7d ms\n");
    }
  }
  // With fewer faults, the trials would prove little.
  EXPECT_GT(fired * 2, trials);
}

}  // namespace
}  // namespace hvdlite::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    absl::string_view flag = argv[i];
    bool known = true;
    if (absl::ConsumePrefix(&flag, "--first=")) {
      known = absl::SimpleAtoi(flag, &hvdlite::testing::first_seed);
    } else if (absl::ConsumePrefix(&flag, "--trials=")) {
      known = absl::SimpleAtoi(flag, &hvdlite::testing::trials) &&
              hvdlite::testing::trials > 0;
    } else {
      known = hvdlite::testing::json = flag == "--json";
    }
    if (!known) {
      std::fprintf(stderr,
                   "usage: in_process_chaos [--first=SEED] [--trials=COUNT] "
                   "[--json]\n");
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
