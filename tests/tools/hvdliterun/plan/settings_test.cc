// Settings for each OpenMP runtime. job_test.cc tests the variables of jobs.
#include "tools/hvdliterun/plan/settings.h"

#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/openmp.h"
#include "tests/tools/hvdliterun/plan/machines.h"

namespace hvdlite::launch {
namespace {

TEST(KmpTest, KmpIsTranslatedForLibgomp) {
  struct Translated {
    const char* name;
    const char* value;
    const char* variables;  // "NAME=VALUE|NAME=VALUE"
  };
  constexpr Translated kAll[] = {
      {"KMP_AFFINITY", "granularity=fine,compact",
       "OMP_PROC_BIND=close|OMP_PLACES=cores"},
      {"KMP_AFFINITY", "granularity=fine,verbose,Scatter",
       "OMP_PROC_BIND=spread|OMP_PLACES=cores"},
      {"KMP_AFFINITY", "none", "OMP_PROC_BIND=false"},
      {"KMP_AFFINITY", "explicit,proclist=[0,3,5-6]",
       "GOMP_CPU_AFFINITY=0 3 5-6"},
      {"KMP_AFFINITY", "verbose", ""},
      {"KMP_BLOCKTIME", "1", "GOMP_SPINCOUNT=100000"},
      {"KMP_BLOCKTIME", "50us", "GOMP_SPINCOUNT=5000"},
      {"KMP_BLOCKTIME", "0", "OMP_WAIT_POLICY=passive|GOMP_SPINCOUNT=0"},
      {"KMP_BLOCKTIME", "infinite", "OMP_WAIT_POLICY=active"},
      {"KMP_BLOCKTIME", "soon", ""},
      {"KMP_STACKSIZE", "2097152", "OMP_STACKSIZE=2097152B"},
      {"KMP_STACKSIZE", "2m", "OMP_STACKSIZE=2m"},
      {"KMP_HW_SUBSET", "1t", ""},
  };
  for (const auto& [name, value, variables] : kAll) {
    EXPECT_EQ(absl::StrJoin(support::TranslateKmp(name, value).variables, "|",
                            absl::PairFormatter("=")),
              variables)
        << name << "=" << value;
  }
  EXPECT_NE(support::TranslateKmp("KMP_HW_SUBSET", "1t").remark, "");
}

// The variables of a rank of `preset` that may share its cores with others.
std::string ProcBindOf(const Machine& machine, const RankPlan& plan,
                       const Preset& preset, support::OpenMpRuntime runtime) {
  Variables variables(base::FakeEnvironment({}));
  Flags flags;
  flags.preset = preset.name;
  flags.oversubscribe = true;
  EXPECT_TRUE(
      AddJobVariables(flags, {.openmp = {runtime}}, {}, variables).ok());
  AddRankVariables(machine, plan, {.openmp = runtime}, variables);
  EXPECT_EQ(variables.Has("OMP_PLACES"), !plan.oversubscribed);
  return variables.Get("OMP_PROC_BIND").value_or("");
}

TEST(RankVariablesTest, PresetRanksThatShareCoresUseAllOfThem) {
  for (const char* const topology :
       {"core:2 pu:1", "pack:2 core:2 pu:1", "pack:1 numa:4 core:3 pu:1"}) {
    const Machine machine = MachineFrom(topology);
    const size_t cores = machine.cores.size();
    for (const Preset& preset : Presets()) {
      for (const size_t ranks : {cores, cores + 1, 2 * cores, 4 * cores}) {
        SCOPED_TRACE(absl::StrCat(topology, ", --preset ", preset.name, ", ",
                                  ranks, " ranks"));
        const auto plans =
            PlanHost(machine, static_cast<int>(ranks),
                     {.domain = preset.domain, .oversubscribe = true});
        ASSERT_TRUE(plans.ok()) << plans.status();
        std::set<int> cpus;
        for (const RankPlan& plan : *plans) {
          cpus.insert(plan.cpus.begin(), plan.cpus.end());
          for (const auto runtime :
               {support::OpenMpRuntime::kGnu, support::OpenMpRuntime::kLlvm}) {
            EXPECT_EQ(ProcBindOf(machine, plan, preset, runtime),
                      plan.oversubscribed ? "false" : "close");
          }
        }
        EXPECT_EQ(cpus.size(), cores);
      }
    }
  }
}

}  // namespace
}  // namespace hvdlite::launch
