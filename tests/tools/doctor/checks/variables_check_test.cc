#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/doctor/checks/finding_matchers.h"
#include "tools/doctor/checks/software_checks.h"

namespace hvdlite::doctor {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using VariableList = std::vector<std::pair<std::string, std::string>>;

std::vector<Finding> JudgedVariables(const VariableList& variables,
                                     const Readers& readers) {
  return JudgeVariables(base::FakeEnvironment(variables), readers);
}

const Readers kGnuReaders = {
    .openmp = {"GNU"}, .openblas = true, .program = "prog"};
const Readers kLlvmReaders = {
    .openmp = {"LLVM"}, .openblas = true, .program = "prog"};

TEST(VariablesTest, KmpVariablesDoNothingUnderLibgomp) {
  EXPECT_THAT(
      JudgedVariables({{"KMP_AFFINITY", "granularity=fine,compact,1,0"}},
                      kGnuReaders),
      ElementsAre(Says(Verdict::kWarning,
                       "KMP_AFFINITY=granularity=fine,compact,1,0 does nothing",
                       "unset KMP_AFFINITY; export OMP_PROC_BIND=close "
                       "OMP_PLACES=cores")));
  EXPECT_THAT(
      JudgedVariables({{"KMP_BLOCKTIME", "0"}, {"KMP_FOO", "1"}}, kGnuReaders),
      AllOf(SizeIs(2), Each(HasVerdict(Verdict::kWarning))));
  EXPECT_THAT(JudgedVariables({{"KMP_AFFINITY", "compact"}}, kLlvmReaders),
              ElementsAre(IsOk("none")));
}

TEST(VariablesTest, WithoutARuntimeNothingIsSaidOfItsVariables) {
  EXPECT_THAT(JudgedVariables(
                  {{"KMP_AFFINITY", "compact"}, {"GOMP_SPINCOUNT", "0"}}, {}),
              ElementsAre(IsOk("none")));
}

TEST(VariablesTest, TranslatesKmpForGnu) {
  EXPECT_EQ(GnuInsteadOfKmp("KMP_AFFINITY", "scatter"),
            "export OMP_PROC_BIND=spread OMP_PLACES=cores");
  EXPECT_EQ(GnuInsteadOfKmp("KMP_AFFINITY", "disabled"),
            "export OMP_PROC_BIND=false");
  EXPECT_EQ(GnuInsteadOfKmp("KMP_BLOCKTIME", "0"),
            "export OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=0");
  EXPECT_EQ(GnuInsteadOfKmp("KMP_BLOCKTIME", "1"),
            "export GOMP_SPINCOUNT=100000");
  EXPECT_EQ(GnuInsteadOfKmp("KMP_STACKSIZE", "4000000"),
            "export OMP_STACKSIZE=4000000B");
  EXPECT_EQ(GnuInsteadOfKmp("KMP_AFFINITY", "explicit,proclist=[0,3,5-6]"),
            "export GOMP_CPU_AFFINITY='0 3 5-6'");
  EXPECT_EQ(GnuInsteadOfKmp("KMP_ALL_THREADS", "8"),
            "export OMP_THREAD_LIMIT=8");
  EXPECT_EQ(GnuInsteadOfKmp("KMP_BLOCKTIME", "infinite"),
            "export OMP_WAIT_POLICY=active");
  EXPECT_EQ(GnuInsteadOfKmp("KMP_FOO", "1"), "");
}

TEST(VariablesTest, GompVariablesDoNothingUnderLlvmButTwo) {
  EXPECT_THAT(JudgedVariables({{"GOMP_SPINCOUNT", "0"}}, kLlvmReaders),
              ElementsAre(Says(Verdict::kWarning, "GOMP_SPINCOUNT",
                               "export KMP_BLOCKTIME=0")));
  EXPECT_THAT(JudgedVariables({{"GOMP_CPU_AFFINITY", "0-3"}}, kLlvmReaders),
              ElementsAre(IsOk("none")));
  EXPECT_THAT(JudgedVariables({{"GOMP_SPINCOUNT", "0"}}, kGnuReaders),
              ElementsAre(IsOk("none")));
}

TEST(VariablesTest, CpusOfGompBecomeOnePlaceEach) {
  const Readers fujitsu = {.openmp = {"Fujitsu"}, .program = "prog"};
  const auto says = [](const char* places) {
    return ElementsAre(
        Says(Verdict::kWarning, "GOMP_CPU_AFFINITY",
             std::string("OMP_PROC_BIND=true OMP_PLACES='") + places + "'"));
  };
  EXPECT_THAT(JudgedVariables({{"GOMP_CPU_AFFINITY", "0 1"}}, fujitsu),
              says("{0},{1}"));
  EXPECT_THAT(
      JudgedVariables({{"GOMP_CPU_AFFINITY", "2,4-10:2 12-15"}}, fujitsu),
      says("{2},{4}:4:2,{12}:4"));
  EXPECT_THAT(JudgedVariables({{"GOMP_CPU_AFFINITY", "all"}}, fujitsu),
              ElementsAre(Says(Verdict::kWarning, "GOMP_CPU_AFFINITY",
                               "unset GOMP_CPU_AFFINITY")));
}

TEST(VariablesTest, VariablesOfLibrariesThatAreNotThereDoNothing) {
  EXPECT_THAT(JudgedVariables({{"MKL_NUM_THREADS", "4"}}, kGnuReaders),
              ElementsAre(Says(Verdict::kWarning, "MKL is not there",
                               "export OMP_NUM_THREADS=4")));
  EXPECT_THAT(JudgedVariables({{"MKL_NUM_THREADS", "4"}},
                              {.mkl = true, .program = "prog"}),
              ElementsAre(IsOk("none")));
  EXPECT_THAT(JudgedVariables({{"OPENBLAS_NUM_THREADS", "4"}},
                              {.mkl = true, .program = "prog"}),
              ElementsAre(Says(Verdict::kWarning, "not OpenBLAS",
                               "export OMP_NUM_THREADS=4")));
  EXPECT_THAT(JudgedVariables({{"MALLOC_CONF", "narenas:1"}}, kGnuReaders),
              ElementsAre(Says(Verdict::kWarning, "it is for jemalloc",
                               "LD_PRELOAD=libjemalloc.so.2")));
  EXPECT_THAT(JudgedVariables({{"MALLOC_TRIM_THRESHOLD_", "1"}},
                              {.allocator = "tcmalloc", .program = "prog"}),
              ElementsAre(HasVerdict(Verdict::kWarning)));
  EXPECT_THAT(
      JudgedVariables({{"XOS_MMM_L_PAGING_POLICY", "demand"}}, kGnuReaders),
      ElementsAre(Says(Verdict::kWarning, "libmpg, which is not linked",
                       "LD_PRELOAD=/opt/FJSVxos")));
  EXPECT_THAT(
      JudgedVariables(
          {{"XOS_MMM_L_PAGING_POLICY", "demand"}},
          {.allocator = "jemalloc", .large_pages = true, .program = "prog"}),
      ElementsAre(IsOk("none")));
}

TEST(VariablesTest, WhatOnlyTheDoctorDoesNotReadIsANoteThatAsksForTheProgram) {
  Readers own = kGnuReaders;
  own.program.clear();
  for (const char* name :
       {"KMP_AFFINITY", "MKL_NUM_THREADS", "MALLOC_CONF", "XOS_MMM_L_A"}) {
    EXPECT_THAT(JudgedVariables({{name, "1"}}, own),
                ElementsAre(Says(Verdict::kNote,
                                 "does nothing in hvdlite_doctor itself: ",
                                 "--program YOUR_PROGRAM")))
        << name;
  }
  EXPECT_THAT(JudgedVariables({{"HOROVOD_CYCLE_TIME", "1"}}, own),
              ElementsAre(HasVerdict(Verdict::kWarning)));
}

TEST(VariablesTest, HorovodsVariablesHaveOthersHere) {
  EXPECT_THAT(
      JudgedVariables({{"HOROVOD_FUSION_THRESHOLD", "1048576"}}, kGnuReaders),
      ElementsAre(Says(Verdict::kWarning, "not Horovod",
                       "export HVDLITE_FUSION_THRESHOLD_BYTES=1048576")));
  EXPECT_THAT(JudgedVariables({{"HOROVOD_CYCLE_TIME", "1"}}, kGnuReaders),
              ElementsAre(Says(Verdict::kWarning, "HOROVOD_CYCLE_TIME",
                               "unset HOROVOD_CYCLE_TIME")));
}

TEST(VariablesTest, MisspeltNamesGetTheNearestOne) {
  EXPECT_THAT(JudgedVariables({{"HVDLITE_CHUNK_BYTE", "1M"}}, kGnuReaders),
              ElementsAre(Says(Verdict::kWarning,
                               "did you mean HVDLITE_CHUNK_BYTES?", "rename")));
}

TEST(VariablesTest, ValuesThatInitRefusesAreAProblem) {
  EXPECT_THAT(JudgedVariables({{"HVDLITE_TREE_ARITY", "many"}}, kGnuReaders),
              ElementsAre(Says(Verdict::kProblem, "HVDLITE_TREE_ARITY=many",
                               "init() fails")));
}

}  // namespace
}  // namespace hvdlite::doctor
