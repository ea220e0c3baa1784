#include "base/logging.h"

#include <unistd.h>

#include <string>

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

TEST(LoggerTest, LinesBelowTheMinimumAreLeftOut) {
  std::string out;
  const Logger logger(
      Severity::kWarning, OriginOfRank(3),
      [&](absl::string_view line) { out += std::string(line); }, Noon);
  logger.Info("quiet");
  logger.Warning("one");
  logger.Error("two");
  EXPECT_EQ(out,
            "[2026-11-25 12:00:00.007 n01 rank 3 pid 4711 hvdlite warning] "
            "one\n"
            "[2026-11-25 12:00:00.007 n01 rank 3 pid 4711 hvdlite error] "
            "two\n");
}

TEST(LoggerTest, FurtherLinesOfAMessageHaveNothingBeforeThem) {
  std::string out;
  const Logger logger(
      Severity::kInfo, OriginOfRank(0),
      [&](absl::string_view line) { out += std::string(line); }, Noon);
  logger.Info("what:\n  more");
  EXPECT_EQ(out,
            "[2026-11-25 12:00:00.007 n01 rank 0 pid 4711 hvdlite info] "
            "what:\n  more\n");
}

TEST(LoggerTest, ThisProcessIsNamedByItsHostAndNumber) {
  std::string out;
  const Logger logger(
      Severity::kInfo, OriginHere(-1, "hvdliterun"),
      [&](absl::string_view line) { out += std::string(line); }, Noon);
  logger.Warning("x");
  EXPECT_EQ(out, "[2026-11-25 12:00:00.007 " + HostName() + " pid " +
                     std::to_string(getpid()) + " hvdliterun warning] x\n");
}

TEST(LoggerTest, OffSilencesEverything) {
  std::string out;
  const Logger logger(Severity::kOff, -1, [&](absl::string_view line) {
    out += std::string(line);
  });
  logger.Error("boom");
  EXPECT_EQ(out, "");
}

TEST(LoggerTest, UnknownRankIsLeftOut) {
  std::string out;
  const Logger logger(
      Severity::kDebug, OriginOfRank(-1),
      [&](absl::string_view line) { out += std::string(line); }, Noon);
  logger.Debug("x");
  EXPECT_EQ(out, "[2026-11-25 12:00:00.007 n01 pid 4711 hvdlite debug] x\n");
}

TEST(ParseSeverityTest, NamesRoundTripAndOthersAreRefused) {
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
