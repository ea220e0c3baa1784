#include "support/openmp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvdlite::support {
namespace {

using ::testing::ElementsAre;

TEST(OpenMpTest, RuntimesAreRecognizedByTheirLibraries) {
  EXPECT_THAT(OpenMpRuntimesOf({{"libomp.so.5", ""},
                                {"libiomp5.so", ""},
                                {"libgomp-a34b3233.so.1", ""},
                                {"libompi.so", ""},
                                {"libgomp.so.1", ""},
                                {"libfjomp.so", ""}}),
              ElementsAre(OpenMpRuntime::kLlvm, OpenMpRuntime::kIntel,
                          OpenMpRuntime::kGnu, OpenMpRuntime::kFujitsu));
  EXPECT_THAT(OpenMpRuntimesOf({{"libm.so.6", ""}}), ElementsAre());
}

TEST(OpenMpTest, NamesRoundTrip) {
  for (const OpenMpRuntime runtime :
       {OpenMpRuntime::kNone, OpenMpRuntime::kGnu, OpenMpRuntime::kUnknown}) {
    const auto parsed = ParseOpenMpRuntime(OpenMpRuntimeName(runtime));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, runtime);
  }
  EXPECT_FALSE(ParseOpenMpRuntime("libomq").ok());
}

}  // namespace
}  // namespace hvdlite::support
