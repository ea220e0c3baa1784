#include <gtest/gtest.h>

#include "tests/tools/doctor/checks/expect_findings.h"
#include "tools/doctor/checks/software_checks.h"

namespace hvdlite::doctor {
namespace {

const support::Library kNoTorch = {"libm.so.6", "/nowhere/libm.so.6"};
const support::Library kWheelsC10 = {"libc10.so", "/venv/torch/lib/libc10.so"};
const support::Library kWheelsTorch = {"libtorch_cpu.so",
                                       "/venv/torch/lib/libtorch_cpu.so"};
const support::Library kDebiansC10 = {"libc10.so.1.13",
                                      "/nowhere/libc10.so.1.13"};
const support::Library kDebiansTorch = {"libtorch_cpu.so.1.13",
                                        "/nowhere/libtorch_cpu.so.1.13"};

TEST(LibTorchTest, OneLibTorchIsOk) {
  ExpectFindings(JudgeLibTorch({kNoTorch, kWheelsTorch, kWheelsC10}, "prog"),
                 "ok");
  ExpectFindings(JudgeLibTorch({kDebiansC10, kDebiansTorch}, "prog"), "ok");
}

TEST(LibTorchTest, TwoLibTorchsAreAProblem) {
  ExpectFindings(
      JudgeLibTorch({kWheelsTorch, kNoTorch, kWheelsC10, kDebiansC10}, "prog"),
      "problem");
}

TEST(LibTorchTest, SameLibraryInTwoDirectoriesIsAProblem) {
  const support::Library other = {"libc10.so", "/opt/libtorch/lib/libc10.so"};
  ExpectFindings(JudgeLibTorch({kWheelsTorch, other}, "prog"), "problem");
}

TEST(LibTorchTest, LibrariesWithSimilarNamesDoNotCount) {
  ExpectFindings(
      JudgeLibTorch({kWheelsC10,
                     {"libc100.so", "/nowhere/libc100.so"},
                     {"libtorchvision.so", "/nowhere/libtorchvision.so"},
                     {"libtorch.so", ""}},
                    "prog"),
      "ok");
}

TEST(LibTorchTest, WithoutLibTorchOrProgramThereAreNoFindings) {
  ExpectFindings(JudgeLibTorch({kNoTorch}, "prog"), "");
  ExpectFindings(JudgeLibTorch({kWheelsC10, kDebiansC10}, ""), "");
}

}  // namespace
}  // namespace hvdlite::doctor
