#include <gtest/gtest.h>

#include "tests/tools/doctor/checks/expect_findings.h"
#include "tools/doctor/checks/software_checks.h"

namespace hvdlite::doctor {
namespace {

const Readers kGnu = {.openmp = {"GNU"}, .openblas = true, .program = "prog"};
const Readers kLlvm = {.openmp = {"LLVM"}, .openblas = true, .program = "prog"};
const Readers kFujitsu = {.openmp = {"Fujitsu"}, .program = "prog"};
const Readers kMkl = {.mkl = true, .program = "prog"};

struct Judged {
  const char* name;
  const char* value;
  Readers readers;
  const char* verdict;
};

void ExpectVerdicts(const std::vector<Judged>& variables) {
  for (const Judged& one : variables) {
    SCOPED_TRACE(one.name);
    ExpectFindings(
        JudgeVariables(base::FakeEnvironment({{one.name, one.value}}),
                       one.readers),
        one.verdict);
  }
}

TEST(VariablesTest, VariablesOfAnotherOpenMpRuntimeDoNothing) {
  ExpectVerdicts({
      {"KMP_AFFINITY", "granularity=fine,compact,1,0", kGnu, "warning"},
      {"KMP_BLOCKTIME", "0", kGnu, "warning"},
      {"KMP_FOO", "1", kGnu, "warning"},
      {"KMP_AFFINITY", "compact", kLlvm, "ok"},
      {"GOMP_SPINCOUNT", "0", kLlvm, "warning"},
      {"GOMP_CPU_AFFINITY", "0-3", kLlvm, "ok"},
      {"GOMP_SPINCOUNT", "0", kGnu, "ok"},
      // Each CPU becomes a place.
      {"GOMP_CPU_AFFINITY", "0 1", kFujitsu, "warning"},
      {"GOMP_CPU_AFFINITY", "2,4-10:2 12-15", kFujitsu, "warning"},
      {"GOMP_CPU_AFFINITY", "all", kFujitsu, "warning"},
      // No runtime is known.
      {"KMP_AFFINITY", "compact", {}, "ok"},
      {"GOMP_SPINCOUNT", "0", {}, "ok"},
  });
}

TEST(VariablesTest, VariablesOfMissingLibrariesDoNothing) {
  ExpectVerdicts({
      {"MKL_NUM_THREADS", "4", kGnu, "warning"},
      {"MKL_NUM_THREADS", "4", kMkl, "ok"},
      {"OPENBLAS_NUM_THREADS", "4", kMkl, "warning"},
      {"MALLOC_CONF", "narenas:1", kGnu, "warning"},
      {"MALLOC_TRIM_THRESHOLD_",
       "1",
       {.allocator = "tcmalloc", .program = "prog"},
       "warning"},
      {"XOS_MMM_L_PAGING_POLICY", "demand", kGnu, "warning"},
      {"XOS_MMM_L_PAGING_POLICY",
       "demand",
       {.allocator = "jemalloc", .large_pages = true, .program = "prog"},
       "ok"},
  });
}

TEST(VariablesTest, UnusedByDoctorOnlyIsANote) {
  Readers own = kGnu;
  own.program.clear();
  ExpectVerdicts({{"KMP_AFFINITY", "1", own, "note"},
                  {"MKL_NUM_THREADS", "1", own, "note"},
                  {"MALLOC_CONF", "1", own, "note"},
                  {"XOS_MMM_L_A", "1", own, "note"},
                  {"HOROVOD_CYCLE_TIME", "1", own, "warning"}});
}

TEST(VariablesTest, HorovodAndMisspeltVariablesGetReplacements) {
  ExpectVerdicts({{"HOROVOD_FUSION_THRESHOLD", "1048576", kGnu, "warning"},
                  {"HVDLITE_CHUNK_BYTE", "1M", kGnu, "warning"},
                  // init() refuses it.
                  {"HVDLITE_TREE_ARITY", "many", kGnu, "problem"}});
}

TEST(VariablesTest, EachVariableThatDoesNothingIsNamed) {
  ExpectFindings(
      JudgeVariables(base::FakeEnvironment(
                         {{"HOROVOD_CYCLE_TIME", "1"}, {"KMP_FOO", "1"}}),
                     kGnu),
      "warning warning");
}

TEST(VariablesTest, TranslatesKmpForGnu) {
  const std::string kTranslations[][3] = {
      {"KMP_AFFINITY", "scatter",
       "export OMP_PROC_BIND=spread OMP_PLACES=cores"},
      {"KMP_AFFINITY", "disabled", "export OMP_PROC_BIND=false"},
      {"KMP_AFFINITY", "explicit,proclist=[0,3,5-6]",
       "export GOMP_CPU_AFFINITY='0 3 5-6'"},
      {"KMP_BLOCKTIME", "0", "export OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=0"},
      {"KMP_BLOCKTIME", "1", "export GOMP_SPINCOUNT=100000"},
      {"KMP_BLOCKTIME", "infinite", "export OMP_WAIT_POLICY=active"},
      {"KMP_STACKSIZE", "4000000", "export OMP_STACKSIZE=4000000B"},
      {"KMP_ALL_THREADS", "8", "export OMP_THREAD_LIMIT=8"},
      {"KMP_FOO", "1", ""},
  };
  for (const auto& [name, value, setting] : kTranslations) {
    EXPECT_EQ(GnuInsteadOfKmp(name, value), setting) << name << "=" << value;
  }
}

}  // namespace
}  // namespace hvdlite::doctor
