#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/doctor/checks/finding_matchers.h"
#include "tools/doctor/checks/software_checks.h"

namespace hvdlite::doctor {
namespace {

using ::testing::ElementsAre;

const support::Library kGnuOpenMp = {"libgomp.so.1", "/nowhere/libgomp.so.1"};
const support::Library kPipOpenMp = {"libgomp-a34b3233.so.1",
                                     "/pip/libgomp-a34b3233.so.1"};
const support::Library kLlvmOpenMp = {"libomp.so.5", "/nowhere/libomp.so.5"};
const support::Library kIntelOpenMp = {"libiomp5.so", "/nowhere/libiomp5.so"};
const support::Library kMathsLibrary = {"libm.so.6", "/nowhere/libm.so.6"};

TEST(OpenMpTest, OneRuntimeIsOk) {
  EXPECT_THAT(JudgeOpenMp({kMathsLibrary, kGnuOpenMp, kGnuOpenMp}, "prog"),
              ElementsAre(IsOk("prog has one: GNU (/nowhere/libgomp.so.1)")));
}

TEST(OpenMpTest, TwoRuntimesAreAProblem) {
  EXPECT_THAT(JudgeOpenMp({kGnuOpenMp, kMathsLibrary, kLlvmOpenMp}, "prog"),
              ElementsAre(Says(Verdict::kProblem, "prog has 2: GNU",
                               "LD_PRELOAD=/nowhere/libomp.so.5")));
}

TEST(OpenMpTest, TwoCopiesOfOneRuntimeAreAProblem) {
  EXPECT_THAT(JudgeOpenMp({kLlvmOpenMp, kIntelOpenMp}, "prog"),
              ElementsAre(HasVerdict(Verdict::kProblem)));
  EXPECT_THAT(JudgeOpenMp({kGnuOpenMp, kPipOpenMp}, "prog"),
              ElementsAre(HasVerdict(Verdict::kProblem)));
}

TEST(OpenMpTest, NoRuntimeIsANote) {
  EXPECT_THAT(JudgeOpenMp({kMathsLibrary}, "prog"),
              ElementsAre(Says(Verdict::kNote, "prog links no OpenMP", "")));
}

TEST(OpenMpTest, TheDoctorsOwnRuntimesAreANoteThatAsksForTheProgram) {
  for (const std::vector<support::Library>& own :
       {std::vector<support::Library>{kMathsLibrary},
        {kGnuOpenMp},
        {kGnuOpenMp, kLlvmOpenMp}}) {
    EXPECT_THAT(JudgeOpenMp(own, ""),
                ElementsAre(Says(Verdict::kNote, "hvdlite_doctor itself has",
                                 "--program YOUR_PROGRAM")));
  }
}

TEST(OpenMpTest, LibrariesThatAreMissingAreAProblem) {
  EXPECT_THAT(JudgeOpenMp({{"libgone.so.1", ""}, kGnuOpenMp}, "prog"),
              ElementsAre(Says(Verdict::kProblem, "does not find libgone.so.1",
                               "LD_LIBRARY_PATH"),
                          HasVerdict(Verdict::kOk)));
}

}  // namespace
}  // namespace hvdlite::doctor
