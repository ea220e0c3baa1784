#include "negotiation/explain/start_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace hvdlite::internal {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A start whose time is set by the test. The watch's own thread checks, too,
// and finds that no time has passed.
class StartWatchTest : public ::testing::Test {
 protected:
  StartWatch::Reactions Reactions() {
    return {.warn = [this](const std::string& text) { Add("warn: ", text); },
            .end = [this](const std::string& text) { Add("end: ", text); }};
  }
  // Time passes for the watch.
  void Pass(StartWatch& watch, absl::Duration time) {
    for (; time > absl::ZeroDuration(); time -= absl::Seconds(1)) {
      clock_.Advance(absl::Seconds(1));
      watch.Check();
    }
  }
  std::vector<std::string> said() {
    base::MutexLock lock(&mutex_);
    return said_;
  }

  base::FakeClock clock_;

 private:
  void Add(const std::string& what, const std::string& text) {
    base::MutexLock lock(&mutex_);
    said_.push_back(absl::StrCat(what, text));
  }

  base::Mutex mutex_;
  std::vector<std::string> said_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(StartWatchTest, WarnsAfterHalfTheLimitAndEndsAfterIt) {
  StartWatch watch(clock_, absl::Seconds(300), "rank 3 (node1)", Reactions());
  watch.Enter("the bootstrap", "rank 25");
  Pass(watch, absl::Seconds(149));
  EXPECT_THAT(said(), IsEmpty());
  Pass(watch, absl::Seconds(1));
  const auto warning =
      AllOf(HasSubstr("warn: rank 3 (node1)"), HasSubstr("for 2m30s"),
            HasSubstr("is in the bootstrap"), HasSubstr("waits for rank 25"),
            HasSubstr("HVDLITE_START_TIMEOUT_SECONDS"));
  EXPECT_THAT(said(), ElementsAre(warning));
  Pass(watch, absl::Seconds(149));
  EXPECT_THAT(said(), ElementsAre(warning));

  // The time is that of the whole start, not of one stage.
  watch.Enter("adding up");
  Pass(watch, absl::Seconds(100));
  EXPECT_THAT(
      said(),
      ElementsAre(warning, AllOf(HasSubstr("end: rank 3"), HasSubstr("for 5m"),
                                 HasSubstr("is in adding up"),
                                 HasSubstr("died or been stopped since"))));
}

TEST_F(StartWatchTest, TimeInWhichTheProcessWasStoppedDoesNotCount) {
  StartWatch watch(clock_, absl::Seconds(300), "rank 0", Reactions());
  clock_.Advance(absl::Hours(1));
  watch.Check();
  EXPECT_THAT(said(), IsEmpty());
  Pass(watch, absl::Seconds(147));
  EXPECT_THAT(said(), IsEmpty());
  Pass(watch, absl::Seconds(1));
  EXPECT_THAT(said(), ElementsAre(HasSubstr("warn: ")));
}

TEST_F(StartWatchTest, ProcessEndsEvenWithoutMemoryForTheWarning) {
  StartWatch::Reactions reactions = Reactions();
  reactions.warn = [](const std::string&) { throw std::bad_alloc(); };
  StartWatch watch(clock_, absl::Seconds(300), "rank 3 (node1)", reactions);
  Pass(watch, absl::Seconds(300));
  EXPECT_THAT(said(), ElementsAre(StartsWith("end: rank 3 (node1) has been")));
}

TEST_F(StartWatchTest, NothingIsLoggedWithoutALimit) {
  StartWatch watch(clock_, absl::InfiniteDuration(), "rank 0", Reactions());
  Pass(watch, absl::Hours(1));
  EXPECT_THAT(said(), IsEmpty());
}

}  // namespace
}  // namespace hvdlite::internal
