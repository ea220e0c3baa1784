#include <gtest/gtest.h>

#include "tests/tools/doctor/checks/expect_findings.h"
#include "tools/doctor/checks/software_checks.h"

namespace hvdlite::doctor {
namespace {

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
  ExpectFindings(
      JudgedVariables({{"KMP_AFFINITY", "granularity=fine,compact,1,0"}},
                      kGnuReaders),
      "warning");
  ExpectFindings(
      JudgedVariables({{"KMP_BLOCKTIME", "0"}, {"KMP_FOO", "1"}}, kGnuReaders),
      "warning warning");
  ExpectFindings(JudgedVariables({{"KMP_AFFINITY", "compact"}}, kLlvmReaders),
                 "ok");
}

TEST(VariablesTest, WithoutARuntimeNothingIsSaidOfItsVariables) {
  ExpectFindings(
      JudgedVariables({{"KMP_AFFINITY", "compact"}, {"GOMP_SPINCOUNT", "0"}},
                      {}),
      "ok");
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
  ExpectFindings(JudgedVariables({{"GOMP_SPINCOUNT", "0"}}, kLlvmReaders),
                 "warning");
  ExpectFindings(JudgedVariables({{"GOMP_CPU_AFFINITY", "0-3"}}, kLlvmReaders),
                 "ok");
  ExpectFindings(JudgedVariables({{"GOMP_SPINCOUNT", "0"}}, kGnuReaders), "ok");
}

TEST(VariablesTest, CpusOfGompBecomeOnePlaceEach) {
  const Readers fujitsu = {.openmp = {"Fujitsu"}, .program = "prog"};
  for (const char* cpus : {"0 1", "2,4-10:2 12-15", "all"}) {
    ExpectFindings(JudgedVariables({{"GOMP_CPU_AFFINITY", cpus}}, fujitsu),
                   "warning");
  }
}

TEST(VariablesTest, VariablesOfLibrariesThatAreNotThereDoNothing) {
  ExpectFindings(JudgedVariables({{"MKL_NUM_THREADS", "4"}}, kGnuReaders),
                 "warning");
  ExpectFindings(JudgedVariables({{"MKL_NUM_THREADS", "4"}},
                                 {.mkl = true, .program = "prog"}),
                 "ok");
  ExpectFindings(JudgedVariables({{"OPENBLAS_NUM_THREADS", "4"}},
                                 {.mkl = true, .program = "prog"}),
                 "warning");
  ExpectFindings(JudgedVariables({{"MALLOC_CONF", "narenas:1"}}, kGnuReaders),
                 "warning");
  ExpectFindings(JudgedVariables({{"MALLOC_TRIM_THRESHOLD_", "1"}},
                                 {.allocator = "tcmalloc", .program = "prog"}),
                 "warning");
  ExpectFindings(
      JudgedVariables({{"XOS_MMM_L_PAGING_POLICY", "demand"}}, kGnuReaders),
      "warning");
  ExpectFindings(
      JudgedVariables(
          {{"XOS_MMM_L_PAGING_POLICY", "demand"}},
          {.allocator = "jemalloc", .large_pages = true, .program = "prog"}),
      "ok");
}

TEST(VariablesTest, WhatOnlyTheDoctorDoesNotReadIsANoteThatAsksForTheProgram) {
  Readers own = kGnuReaders;
  own.program.clear();
  for (const char* name :
       {"KMP_AFFINITY", "MKL_NUM_THREADS", "MALLOC_CONF", "XOS_MMM_L_A"}) {
    ExpectFindings(JudgedVariables({{name, "1"}}, own), "note");
  }
  ExpectFindings(JudgedVariables({{"HOROVOD_CYCLE_TIME", "1"}}, own),
                 "warning");
}

TEST(VariablesTest, HorovodsVariablesHaveOthersHere) {
  ExpectFindings(
      JudgedVariables({{"HOROVOD_FUSION_THRESHOLD", "1048576"}}, kGnuReaders),
      "warning");
  ExpectFindings(JudgedVariables({{"HOROVOD_CYCLE_TIME", "1"}}, kGnuReaders),
                 "warning");
}

TEST(VariablesTest, MisspeltNamesGetTheNearestOne) {
  ExpectFindings(JudgedVariables({{"HVDLITE_CHUNK_BYTE", "1M"}}, kGnuReaders),
                 "warning");
}

TEST(VariablesTest, ValuesThatInitRefusesAreAProblem) {
  ExpectFindings(JudgedVariables({{"HVDLITE_TREE_ARITY", "many"}}, kGnuReaders),
                 "problem");
}

}  // namespace
}  // namespace hvdlite::doctor
