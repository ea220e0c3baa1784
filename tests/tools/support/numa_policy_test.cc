#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/support/processor.h"

namespace hvdlite::base {
namespace {

TEST(NumaPolicyTest, NamesAreThoseOfNumactl) {
  EXPECT_EQ(NumaPolicyName({.mode = MPOL_DEFAULT}), "default");
  EXPECT_EQ(NumaPolicyName({.mode = MPOL_LOCAL}), "local");
  EXPECT_EQ(NumaPolicyName({.mode = MPOL_BIND, .nodes = {0}}), "bind");
  EXPECT_EQ(NumaPolicyName({.mode = MPOL_INTERLEAVE, .nodes = {0, 1}}),
            "interleave");
  EXPECT_EQ(NumaPolicyName({.mode = 9}), "number 9");
}

TEST(NumaPolicyTest, OlderKernelsTellOfLocalMemoryAsOfAnyPreferredNode) {
  EXPECT_EQ(NumaPolicyName({.mode = MPOL_PREFERRED}), "local");
  EXPECT_EQ(NumaPolicyName({.mode = MPOL_PREFERRED, .nodes = {1}}),
            "preferred");
}

TEST(NumaPolicyTest, IsReadFromTheKernel) {
  const unsigned long first_node = 1;
  if (syscall(SYS_set_mempolicy, MPOL_BIND, &first_node, 64UL) != 0) {
    GTEST_SKIP() << "set_mempolicy is forbidden";
  }
  const absl::StatusOr<NumaPolicy> bound = ThisThreadsNumaPolicy();
  ASSERT_EQ(syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0UL), 0);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->mode, MPOL_BIND);
  EXPECT_THAT(bound->nodes, ::testing::ElementsAre(0));
  EXPECT_EQ(ThisThreadsNumaPolicy()->mode, MPOL_DEFAULT);
}

}  // namespace
}  // namespace hvdlite::base
