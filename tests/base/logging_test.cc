#include "base/logging.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvdlite::base {
namespace {

using ::testing::HasSubstr;

TEST(LoggerTest, LinesBelowTheMinimumAreLeftOut) {
  std::string out;
  const Logger logger(Severity::kWarning, 3, [&](absl::string_view line) {
    out += std::string(line);
  });
  logger.Info("quiet");
  logger.Warning("one");
  logger.Error("two");
  EXPECT_EQ(out, "[hvdlite rank 3 warning] one\n[hvdlite rank 3 error] two\n");
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
  const Logger logger(Severity::kDebug, -1, [&](absl::string_view line) {
    out += std::string(line);
  });
  logger.Debug("x");
  EXPECT_EQ(out, "[hvdlite debug] x\n");
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
