#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/doctor/checks/finding_matchers.h"
#include "tools/doctor/checks/software_checks.h"

namespace hvdlite::doctor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const support::Library kNoTorch = {"libm.so.6", "/nowhere/libm.so.6"};
const support::Library kWheelsC10 = {"libc10.so", "/venv/torch/lib/libc10.so"};
const support::Library kWheelsTorch = {"libtorch_cpu.so",
                                       "/venv/torch/lib/libtorch_cpu.so"};
const support::Library kDebiansC10 = {"libc10.so.1.13",
                                      "/nowhere/libc10.so.1.13"};
const support::Library kDebiansTorch = {"libtorch_cpu.so.1.13",
                                        "/nowhere/libtorch_cpu.so.1.13"};

TEST(LibTorchTest, OneLibTorchIsOk) {
  EXPECT_THAT(JudgeLibTorch({kNoTorch, kWheelsTorch, kWheelsC10}, "prog"),
              ElementsAre(IsOk("prog has one LibTorch, in /venv/torch/lib")));
  EXPECT_THAT(JudgeLibTorch({kDebiansC10, kDebiansTorch}, "prog"),
              ElementsAre(IsOk("in /nowhere")));
}

TEST(LibTorchTest, LibrariesOfTwoAreAProblem) {
  EXPECT_THAT(
      JudgeLibTorch({kWheelsTorch, kNoTorch, kWheelsC10, kDebiansC10}, "prog"),
      ElementsAre(AllOf(Says(Verdict::kProblem, "/nowhere/libc10.so.1.13 and ",
                             "-DCMAKE_PREFIX_PATH="),
                        Field(&Finding::seen,
                              HasSubstr("/venv/torch/lib/libtorch_cpu.so")))));
}

TEST(LibTorchTest, LibrariesOfOneNameFromTwoDirectoriesAreAProblem) {
  const support::Library other = {"libc10.so", "/opt/libtorch/lib/libc10.so"};
  EXPECT_THAT(JudgeLibTorch({kWheelsTorch, other}, "prog"),
              ElementsAre(Says(Verdict::kProblem, "2 LibTorchs",
                               "unset LD_LIBRARY_PATH")));
}

TEST(LibTorchTest, OtherLibrariesWithSuchNamesDoNotCount) {
  EXPECT_THAT(JudgeLibTorch({kWheelsC10,
                             {"libc100.so", "/nowhere/libc100.so"},
                             {"libtorchvision.so", "/nowhere/libtorchvision.so"},
                             {"libtorch.so", ""}},
                            "prog"),
              ElementsAre(IsOk("one LibTorch")));
}

TEST(LibTorchTest, WithoutLibTorchOrProgramNothingIsSaid) {
  EXPECT_THAT(JudgeLibTorch({kNoTorch}, "prog"), IsEmpty());
  EXPECT_THAT(JudgeLibTorch({kWheelsC10, kDebiansC10}, ""), IsEmpty());
}

}  // namespace
}  // namespace hvdlite::doctor
