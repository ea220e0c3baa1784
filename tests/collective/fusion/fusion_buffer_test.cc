#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "collective/fusion/fusion.h"

namespace hvdlite::collective {
namespace {

TEST(FusionBufferTest, IsAlignedAndRoundedUpToACacheLine) {
  for (const size_t bytes : {0, 1, 63, 64, 65, 1 << 20}) {
    FusionBuffer buffer(bytes);
    EXPECT_GE(buffer.bytes().size(), bytes);
    EXPECT_GE(buffer.bytes().size(), 64u);
    EXPECT_EQ(buffer.bytes().size() % 64, 0u);
    EXPECT_LT(buffer.bytes().size(), bytes + 65);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.bytes().data()) %
                  FusionBuffer::kAlignment,
              0u);
    std::memset(buffer.bytes().data(), 1, buffer.bytes().size());
  }
}

TEST(FusionBufferTest, ScratchMemoryIsKeptUntilMoreIsNeeded) {
  FusionBuffer buffer(64);
  const absl::Span<std::byte> first = buffer.Scratch(1000);
  EXPECT_GE(first.size(), 1000u);
  for (const size_t bytes : {1000, 1, 0, 1000}) {
    EXPECT_EQ(buffer.Scratch(bytes), first);
  }
  const absl::Span<std::byte> second = buffer.Scratch(5000);
  EXPECT_GE(second.size(), 5000u);
  EXPECT_EQ(buffer.Scratch(1000), second);
}

}  // namespace
}  // namespace hvdlite::collective
