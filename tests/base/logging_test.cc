#include "base/logging.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "absl/time/civil_time.h"
#include "base/environment.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvdlite::base {
namespace {

using ::testing::HasSubstr;

LogOrigin OriginOfRank(int rank) {
  return {.host = "n01", .rank = rank, .pid = 4711};
}

absl::Time Noon() {
  return absl::FromCivil(absl::CivilSecond(2026, 11, 25, 12, 0, 0),
                         absl::LocalTimeZone()) +
         absl::Milliseconds(7);
}

class LoggerTest : public ::testing::Test {
 protected:
  Logger Make(Severity minimum, LogOrigin origin) {
    return Logger(
        minimum, std::move(origin),
        [this](absl::string_view line) { out_ += std::string(line); }, Noon);
  }

  std::string out_;
};

TEST_F(LoggerTest, LinesBelowTheMinimumAreLeftOut) {
  const Logger logger = Make(Severity::kWarning, OriginOfRank(3));
  logger.Info("quiet");
  logger.Warning("one");
  logger.Error("two");
  EXPECT_EQ(out_,
            "[2026-11-25 12:00:00.007 n01 rank 3 pid 4711 hvdlite warning] "
            "one\n"
            "[2026-11-25 12:00:00.007 n01 rank 3 pid 4711 hvdlite error] "
            "two\n");
}

TEST_F(LoggerTest, FurtherLinesOfAMessageHaveNoPrefix) {
  Make(Severity::kInfo, OriginOfRank(0)).Info("what:\n  more");
  EXPECT_EQ(out_,
            "[2026-11-25 12:00:00.007 n01 rank 0 pid 4711 hvdlite info] "
            "what:\n  more\n");
}

TEST_F(LoggerTest, ThisProcessIsNamedByHostAndPid) {
  Make(Severity::kInfo, OriginHere(-1, "hvdliterun")).Warning("x");
  EXPECT_EQ(out_, "[2026-11-25 12:00:00.007 " + HostName() + " pid " +
                      std::to_string(getpid()) + " hvdliterun warning] x\n");
}

TEST_F(LoggerTest, OffSilencesEverything) {
  Make(Severity::kOff, OriginOfRank(0)).Error("boom");
  EXPECT_EQ(out_, "");
}

TEST_F(LoggerTest, UnknownRankIsLeftOut) {
  Make(Severity::kDebug, OriginOfRank(-1)).Debug("x");
  EXPECT_EQ(out_, "[2026-11-25 12:00:00.007 n01 pid 4711 hvdlite debug] x\n");
}

TEST(ParseSeverityTest, NamesRoundTripAndOtherTextIsRefused) {
  for (const Severity severity :
       {Severity::kDebug, Severity::kInfo, Severity::kWarning, Severity::kError,
        Severity::kOff}) {
    EXPECT_EQ(ParseSeverity(SeverityName(severity)).value(), severity);
  }
  EXPECT_THAT(std::string(ParseSeverity("loud").status().message()),
              HasSubstr("debug, info, warning, error or off"));
}

}  // namespace
}  // namespace hvdlite::base
