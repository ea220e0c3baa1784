#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/doctor/checks/finding_matchers.h"
#include "tools/doctor/checks/software_checks.h"

namespace hvdlite::doctor {
namespace {

using ::testing::ElementsAre;

const support::Library kGnu = {"libgomp.so.1", "/nowhere/libgomp.so.1"};
const support::Library kPip = {"libgomp-a34b3233.so.1",
                               "/pip/libgomp-a34b3233.so.1"};
const support::Library kLlvm = {"libomp.so.5", "/nowhere/libomp.so.5"};
const support::Library kIntel = {"libiomp5.so", "/nowhere/libiomp5.so"};
const support::Library kMaths = {"libm.so.6", "/nowhere/libm.so.6"};

TEST(OpenMpTest, OneRuntimeIsOk) {
  EXPECT_THAT(JudgeOpenMp({kMaths, kGnu, kGnu}, "prog"),
              ElementsAre(IsOk("prog has one: GNU (/nowhere/libgomp.so.1)")));
}

TEST(OpenMpTest, TwoRuntimesAreAProblem) {
  EXPECT_THAT(JudgeOpenMp({kGnu, kMaths, kLlvm}, "prog"),
              ElementsAre(Says(Verdict::kProblem, "prog has 2: GNU",
                               "LD_PRELOAD=/nowhere/libomp.so.5")));
}

TEST(OpenMpTest, TwoCopiesOfOneRuntimeAreAProblem) {
  EXPECT_THAT(JudgeOpenMp({kLlvm, kIntel}, "prog"),
              ElementsAre(HasVerdict(Verdict::kProblem)));
  EXPECT_THAT(JudgeOpenMp({kGnu, kPip}, "prog"),
              ElementsAre(HasVerdict(Verdict::kProblem)));
}

TEST(OpenMpTest, NoRuntimeIsANote) {
  EXPECT_THAT(JudgeOpenMp({kMaths}, "prog"),
              ElementsAre(Says(Verdict::kNote, "prog links no OpenMP", "")));
}

TEST(OpenMpTest, TheDoctorsOwnRuntimesAreANoteThatAsksForTheProgram) {
  for (const std::vector<support::Library>& own :
       {std::vector<support::Library>{kMaths}, {kGnu}, {kGnu, kLlvm}}) {
    EXPECT_THAT(JudgeOpenMp(own, ""),
                ElementsAre(Says(Verdict::kNote, "hvdlite_doctor itself has",
                                 "--program YOUR_PROGRAM")));
  }
}

TEST(OpenMpTest, LibrariesThatAreMissingAreAProblem) {
  EXPECT_THAT(JudgeOpenMp({{"libgone.so.1", ""}, kGnu}, "prog"),
              ElementsAre(Says(Verdict::kProblem, "does not find libgone.so.1",
                               "LD_LIBRARY_PATH"),
                          HasVerdict(Verdict::kOk)));
}

}  // namespace
}  // namespace hvdlite::doctor
