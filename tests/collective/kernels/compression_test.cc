#include <gtest/gtest.h>

#include <string>

#include "collective/kernels/data_type.h"
#include "tests/testing/conformance/reduction_reference.h"

namespace hvdlite::testing {
namespace {

using collective::Compression;

TEST(CompressionTest, WideFloatsTravelIn16BitsAndEverythingElseAsItIs) {
  for (const DataType dtype : AllDataTypes()) {
    const bool is_wide =
        dtype == DataType::kFloat32 || dtype == DataType::kFloat64;
    EXPECT_EQ(WireType(dtype, Compression::kNone), dtype);
    EXPECT_EQ(WireType(dtype, Compression::kFloat16),
              is_wide ? DataType::kFloat16 : dtype);
    EXPECT_EQ(WireType(dtype, Compression::kBFloat16),
              is_wide ? DataType::kBFloat16 : dtype);
  }
}

TEST(CompressionTest, EveryCompressionHasAName) {
  EXPECT_EQ(std::string(NameOf(Compression::kNone)), "none");
  EXPECT_EQ(std::string(NameOf(Compression::kFloat16)), "fp16");
  EXPECT_EQ(std::string(NameOf(Compression::kBFloat16)), "bf16");
}

}  // namespace
}  // namespace hvdlite::testing
