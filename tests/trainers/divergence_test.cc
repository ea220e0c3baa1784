#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "trainers/step.h"

namespace hvdlite::trainers {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(RequireFiniteTest, NanAndInfinityAreDivergence) {
  RequireFinite(-1e30, "training loss");
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double loss : {std::nan(""), infinity, -infinity}) {
    EXPECT_THAT([&] { RequireFinite(loss, "training loss"); },
                ThrowsMessage<SharedError>(
                    HasSubstr("the training loss is not finite")));
  }
}

}  // namespace
}  // namespace hvdlite::trainers
