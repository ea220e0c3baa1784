#include <gtest/gtest.h>

#include "tests/tools/doctor/checks/expect_findings.h"
#include "tools/doctor/checks/software_checks.h"

namespace hvdlite::doctor {
namespace {

const support::Library kGnuOpenMp = {"libgomp.so.1", "/nowhere/libgomp.so.1"};
const support::Library kPipOpenMp = {"libgomp-a34b3233.so.1",
                                     "/pip/libgomp-a34b3233.so.1"};
const support::Library kLlvmOpenMp = {"libomp.so.5", "/nowhere/libomp.so.5"};
const support::Library kIntelOpenMp = {"libiomp5.so", "/nowhere/libiomp5.so"};
const support::Library kMathsLibrary = {"libm.so.6", "/nowhere/libm.so.6"};

TEST(OpenMpTest, OneRuntimeIsOk) {
  ExpectFindings(JudgeOpenMp({kMathsLibrary, kGnuOpenMp, kGnuOpenMp}, "prog"),
                 "ok");
}

TEST(OpenMpTest, TwoRuntimesAreAProblem) {
  ExpectFindings(JudgeOpenMp({kGnuOpenMp, kMathsLibrary, kLlvmOpenMp}, "prog"),
                 "problem");
}

TEST(OpenMpTest, TwoCopiesOfOneRuntimeAreAProblem) {
  ExpectFindings(JudgeOpenMp({kLlvmOpenMp, kIntelOpenMp}, "prog"), "problem");
  ExpectFindings(JudgeOpenMp({kGnuOpenMp, kPipOpenMp}, "prog"), "problem");
}

TEST(OpenMpTest, NoRuntimeIsANote) {
  ExpectFindings(JudgeOpenMp({kMathsLibrary}, "prog"), "note");
}

TEST(OpenMpTest, WithoutAProgramOwnRuntimesAreANote) {
  for (const std::vector<support::Library>& own :
       {std::vector<support::Library>{kMathsLibrary},
        {kGnuOpenMp},
        {kGnuOpenMp, kLlvmOpenMp}}) {
    ExpectFindings(JudgeOpenMp(own, ""), "note");
  }
}

TEST(OpenMpTest, MissingLibrariesAreAProblem) {
  ExpectFindings(JudgeOpenMp({{"libgone.so.1", ""}, kGnuOpenMp}, "prog"),
                 "problem ok");
}

}  // namespace
}  // namespace hvdlite::doctor
