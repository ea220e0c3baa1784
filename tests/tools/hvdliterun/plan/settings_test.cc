// Variables: who wins, and what goes with which OpenMP runtime and malloc.
#include "tools/hvdliterun/plan/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/libraries.h"
#include "support/openmp.h"
#include "tests/testing/golden.h"
#include "tests/tools/hvdliterun/plan/machines.h"

namespace hvdlite::launch {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

using Pairs = std::vector<std::pair<std::string, std::string>>;

Variables Of(const Pairs& user) {
  return Variables(base::FakeEnvironment(user));
}

std::string Notes(const Variables& variables) {
  return absl::StrJoin(variables.notes(), "\n");
}

std::string SourceOf(const Variables& variables, const std::string& name) {
  for (const Variable& variable : variables.list()) {
    if (variable.name == name) return variable.source;
  }
  return "";
}

TEST(VariablesTest, FlagsWinOverTheEnvironmentAndSaySo) {
  Variables variables = Of({{"A", "1"}});
  variables.Set("A", "2", "--a");
  EXPECT_FALSE(variables.Offer("A", "3", "default"));
  EXPECT_EQ(variables.Get("A"), "2");
  testing::ExpectGolden(Notes(variables));
}

TEST(VariablesTest, TheEnvironmentWinsOverOffersAndThatIsSaid) {
  Variables variables = Of({{"A", "1"}});
  EXPECT_FALSE(variables.Offer("A", "2", "--preset p"));
  EXPECT_EQ(variables.Get("A"), "1");
  EXPECT_EQ(SourceOf(variables, "A"), "environment");
  testing::ExpectGolden(Notes(variables));
  EXPECT_THAT(variables.changes(), IsEmpty());
}

TEST(VariablesTest, TheFirstOfferStays) {
  Variables variables = Of({});
  EXPECT_TRUE(variables.Offer("A", "1", "first"));
  EXPECT_FALSE(variables.Offer("A", "2", "second"));
  EXPECT_THAT(variables.changes(), ElementsAre(Variable{"A", "1", "first"}));
}

Pairs Translated(const char* name, const char* value) {
  return support::TranslateKmp(name, value).variables;
}

TEST(KmpTest, AffinityBecomesProcBindAndPlaces) {
  EXPECT_THAT(
      Translated("KMP_AFFINITY", "granularity=fine,compact"),
      ElementsAre(Pair("OMP_PROC_BIND", "close"), Pair("OMP_PLACES", "cores")));
  EXPECT_THAT(Translated("KMP_AFFINITY", "granularity=fine,verbose,Scatter"),
              Contains(Pair("OMP_PROC_BIND", "spread")));
  EXPECT_THAT(Translated("KMP_AFFINITY", "none"),
              ElementsAre(Pair("OMP_PROC_BIND", "false")));
  EXPECT_THAT(Translated("KMP_AFFINITY", "explicit,proclist=[0,3,5-6]"),
              ElementsAre(Pair("GOMP_CPU_AFFINITY", "0 3 5-6")));
  EXPECT_THAT(Translated("KMP_AFFINITY", "verbose"), IsEmpty());
}

TEST(KmpTest, BlocktimeBecomesSpinCount) {
  EXPECT_THAT(Translated("KMP_BLOCKTIME", "1"),
              ElementsAre(Pair("GOMP_SPINCOUNT", "100000")));
  EXPECT_THAT(Translated("KMP_BLOCKTIME", "50us"),
              ElementsAre(Pair("GOMP_SPINCOUNT", "5000")));
  EXPECT_THAT(Translated("KMP_BLOCKTIME", "0"),
              ElementsAre(Pair("OMP_WAIT_POLICY", "passive"),
                          Pair("GOMP_SPINCOUNT", "0")));
  EXPECT_THAT(Translated("KMP_BLOCKTIME", "infinite"),
              ElementsAre(Pair("OMP_WAIT_POLICY", "active")));
  EXPECT_THAT(Translated("KMP_BLOCKTIME", "soon"), IsEmpty());
}

TEST(KmpTest, StackSizesWithoutUnitAreBytes) {
  EXPECT_THAT(Translated("KMP_STACKSIZE", "2097152"),
              ElementsAre(Pair("OMP_STACKSIZE", "2097152B")));
  EXPECT_THAT(Translated("KMP_STACKSIZE", "2m"),
              ElementsAre(Pair("OMP_STACKSIZE", "2m")));
}

TEST(KmpTest, WhatHasNoCounterpartIsSaid) {
  EXPECT_THAT(support::TranslateKmp("KMP_HW_SUBSET", "1t").remark,
              HasSubstr("nothing of the kind"));
}

Variables JobVariables(const JobChoices& choices, const Pairs& user = {}) {
  Variables variables = Of(user);
  AddJobVariables(choices, variables);
  return variables;
}

TEST(JobVariablesTest, KmpOfAPresetIsTranslatedForLibgomp) {
  const Variables variables =
      JobVariables({.preset = FindPreset("xeon-socket"),
                    .openmp = {support::OpenMpRuntime::kGnu}});
  EXPECT_EQ(variables.Get("OMP_PROC_BIND"), "close");
  EXPECT_EQ(variables.Get("GOMP_SPINCOUNT"), "100000");
  EXPECT_FALSE(variables.Has("KMP_BLOCKTIME"));
  EXPECT_FALSE(variables.Has("OMP_PLACES")) << "each rank gets its own";
  testing::ExpectGolden(Notes(variables));
}

TEST(JobVariablesTest, KmpOfTheUserIsTranslatedForLibgomp) {
  const Variables variables =
      JobVariables({.openmp = {support::OpenMpRuntime::kGnu}},
                   {{"KMP_AFFINITY", "granularity=fine,scatter"},
                    {"KMP_BLOCKTIME", "0"},
                    {"OMP_WAIT_POLICY", "active"}});
  EXPECT_EQ(variables.Get("OMP_PROC_BIND"), "spread");
  EXPECT_EQ(variables.Get("OMP_WAIT_POLICY"), "active") << "his own wins";
  testing::ExpectGolden(Notes(variables));
}

TEST(JobVariablesTest, OtherRuntimesGetKmpAsItIs) {
  for (const support::OpenMpRuntime runtime :
       {support::OpenMpRuntime::kLlvm, support::OpenMpRuntime::kIntel}) {
    const Variables variables = JobVariables(
        {.preset = FindPreset("xeon-socket"), .openmp = {runtime}});
    EXPECT_EQ(variables.Get("KMP_BLOCKTIME"), "1");
    EXPECT_EQ(variables.Get("OMP_PROC_BIND"), "close");
    EXPECT_FALSE(variables.Has("GOMP_SPINCOUNT"));
  }
}

TEST(JobVariablesTest, TwoRuntimesAreWarnedAbout) {
  const std::vector<support::OpenMpRuntime> both = {
      support::OpenMpRuntime::kGnu, support::OpenMpRuntime::kLlvm};
  testing::ExpectGolden(Notes(JobVariables({.openmp = both})));
  EXPECT_EQ(RuntimeOf(both), support::OpenMpRuntime::kUnknown);
  EXPECT_EQ(RuntimeOf({}), support::OpenMpRuntime::kNone);
}

TEST(JobVariablesTest, PresetsOfA64fxHaveLargePages) {
  for (const char* name : {"a64fx-numa", "a64fx-node"}) {
    const Variables variables =
        JobVariables({.preset = FindPreset(name), .openmp = {}});
    EXPECT_EQ(variables.Get("XOS_MMM_L_PAGING_POLICY"), "demand:demand:demand");
    EXPECT_EQ(SourceOf(variables, "XOS_MMM_L_HPAGE_TYPE"),
              std::string("--preset ") + name);
  }
  EXPECT_EQ(FindPreset("nonesuch"), nullptr);
}

TEST(JobVariablesTest, LargePagesWithoutTheirLibraryDoNothingAndThatIsSaid) {
  const auto notes = [](const Preset* preset, bool lacks, const Pairs& user) {
    return Notes(JobVariables(
        {.preset = preset, .openmp = {}, .lacks_large_page_library = lacks},
        user));
  };
  const Preset* preset = FindPreset("a64fx-numa");
  testing::ExpectGolden(notes(preset, true, {}));
  testing::ExpectGolden(
      notes(nullptr, true, {{"XOS_MMM_L_HPAGE_TYPE", "hugetlbfs"}}));
  EXPECT_EQ(notes(preset, false, {}), "");
  EXPECT_EQ(notes(nullptr, true, {}), "");
  EXPECT_EQ(notes(preset, true, {{"LD_PRELOAD", "/opt/libmpg.so.1"}}), "");
  testing::ExpectGolden(
      notes(preset, true, {{"XOS_MMM_L_HPAGE_TYPE", "none"}}));
  testing::ExpectGolden(
      notes(nullptr, true, {{"XOS_MMM_L_PAGING_POLICY", "demand:demand"}}));
}

TEST(JobVariablesTest, OtherMpisDoNotBindOnceMore) {
  const Variables variables = JobVariables({.openmp = {}});
  EXPECT_EQ(variables.Get("MV2_ENABLE_AFFINITY"), "0");
  EXPECT_EQ(variables.Get("I_MPI_PIN"), "0");
  EXPECT_EQ(JobVariables({.openmp = {}}, {{"I_MPI_PIN", "1"}}).Get("I_MPI_PIN"),
            "1");
}

TEST(JobVariablesTest, SetWinsOverPresetAndEnvironment) {
  const Variables variables =
      JobVariables({.preset = FindPreset("a64fx-numa"),
                    .flags = {{"XOS_MMM_L_HPAGE_TYPE", "none", "--set"}},
                    .openmp = {}},
                   {{"XOS_MMM_L_HPAGE_TYPE", "thp"}});
  EXPECT_EQ(variables.Get("XOS_MMM_L_HPAGE_TYPE"), "none");
}

TEST(AllocatorTest, GlibcKeepsWhatIsFreed) {
  const Variables variables = JobVariables({.openmp = {}});
  EXPECT_EQ(variables.Get("MALLOC_TRIM_THRESHOLD_"), "-1");
  EXPECT_EQ(variables.Get("MALLOC_MMAP_MAX_"), "0");
  EXPECT_FALSE(variables.Has("MALLOC_MMAP_THRESHOLD_"))
      << "glibc before 2.35 refuses large ones";
  EXPECT_FALSE(variables.Has("GLIBC_TUNABLES"));
  EXPECT_EQ(
      JobVariables({.openmp = {}, .huge_pages = true}).Get("GLIBC_TUNABLES"),
      "glibc.malloc.hugetlb=1");
}

TEST(AllocatorTest, JemallocIsLoadedBehindWhatTheUserLoads) {
  const Variables variables =
      JobVariables({.openmp = {},
                    .allocator = Allocator::kJemalloc,
                    .allocator_library = "/l/libjemalloc.so.2",
                    .huge_pages = true},
                   {{"LD_PRELOAD", "mine.so"}});
  EXPECT_EQ(variables.Get("LD_PRELOAD"), "mine.so:/l/libjemalloc.so.2");
  EXPECT_THAT(*variables.Get("MALLOC_CONF"),
              HasSubstr("dirty_decay_ms:9000000000"));
  EXPECT_THAT(*variables.Get("MALLOC_CONF"), HasSubstr("thp:always"));
  EXPECT_FALSE(variables.Has("MALLOC_TRIM_THRESHOLD_"));
}

TEST(AllocatorTest, JemallocIsLoadedBehindWhatSetLoads) {
  const auto preload = [](const std::string& set) {
    return JobVariables({.flags = {{"LD_PRELOAD", set, "--set"}},
                         .openmp = {},
                         .allocator = Allocator::kJemalloc,
                         .allocator_library = "/l/libjemalloc.so.2"},
                        {{"LD_PRELOAD", "mine.so"}});
  };
  EXPECT_EQ(preload("x.so").Get("LD_PRELOAD"), "x.so:/l/libjemalloc.so.2");
  EXPECT_EQ(SourceOf(preload("x.so"), "LD_PRELOAD"), "--set, --alloc");
  EXPECT_EQ(preload("").Get("LD_PRELOAD"), "/l/libjemalloc.so.2");
}

TEST(AllocatorTest, TcmallocHasNoHugePagesOfItsOwn) {
  const Variables variables = JobVariables(
      {.openmp = {}, .allocator = Allocator::kTcmalloc, .huge_pages = true});
  EXPECT_TRUE(variables.Has("TCMALLOC_RELEASE_RATE"));
  testing::ExpectGolden(Notes(variables));
}

TEST(AllocatorTest, IsLookedForInTheUsersFoldersFirst) {
  const auto find = [](const std::string& present) {
    return FindAllocator(
        Allocator::kJemalloc,
        base::FakeEnvironment({{"LD_LIBRARY_PATH", "/opt/a:/opt/b"}}),
        [&](const std::string& path) {
          return path == present || path == "/usr/lib64/libjemalloc.so.2";
        });
  };
  EXPECT_EQ(*find("/opt/b/libjemalloc.so.2"), "/opt/b/libjemalloc.so.2");
  EXPECT_EQ(*find(""), "/usr/lib64/libjemalloc.so.2");
  const auto none =
      FindAllocator(Allocator::kTcmalloc, base::FakeEnvironment({}),
                    [](const std::string&) { return false; });
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
}

Variables RankVariables(const PlanOptions& options, const RankChoices& choices,
                        const Pairs& user) {
  Variables variables = Of(user);
  const Machine machine = MachineFrom("core:8 pu:1");
  const auto plans = PlanHost(machine, options.oversubscribe ? 9 : 1, options);
  EXPECT_TRUE(plans.ok()) << plans.status();
  AddRankVariables(machine, plans->front(), choices, variables);
  return variables;
}

TEST(RankVariablesTest, FollowTheCores) {
  const Variables variables = RankVariables({}, {}, {});
  EXPECT_EQ(variables.Get("OMP_NUM_THREADS"), "7");
  EXPECT_EQ(variables.Get("OMP_PROC_BIND"), "close");
  EXPECT_EQ(variables.Get("OMP_PLACES"), "{0},{1},{2},{3},{4},{5},{6}");
  EXPECT_EQ(variables.Get("HVDLITE_COORDINATOR_CORE"), "7");
}

TEST(RankVariablesTest, FlagsWinOverTheEnvironment) {
  const Pairs user = {{"OMP_NUM_THREADS", "2"},
                      {"HVDLITE_COORDINATOR_CORE", "none"}};
  const Variables kept = RankVariables({}, {}, user);
  EXPECT_EQ(kept.Get("OMP_NUM_THREADS"), "2");
  EXPECT_EQ(kept.Get("HVDLITE_COORDINATOR_CORE"), "none");
  const Variables flags = RankVariables(
      {.threads = 3}, {.threads_given = true, .comm_core_given = true}, user);
  EXPECT_EQ(flags.Get("OMP_NUM_THREADS"), "3");
  EXPECT_EQ(flags.Get("HVDLITE_COORDINATOR_CORE"), "7");
}

TEST(RankVariablesTest, OwnArrangementsOfTheRightRuntimeAreLeftAlone) {
  const auto places = [](support::OpenMpRuntime openmp, const char* name) {
    return RankVariables({}, {.openmp = openmp}, {{name, "0-3"}})
        .Has("OMP_PLACES");
  };
  EXPECT_FALSE(places(support::OpenMpRuntime::kGnu, "GOMP_CPU_AFFINITY"));
  EXPECT_TRUE(places(support::OpenMpRuntime::kLlvm, "GOMP_CPU_AFFINITY"));
  EXPECT_FALSE(places(support::OpenMpRuntime::kLlvm, "KMP_AFFINITY"));
  EXPECT_TRUE(places(support::OpenMpRuntime::kGnu, "KMP_AFFINITY"));
}

// OMP_PROC_BIND of the first and the last of `ranks` ranks, and CPUs of all.
struct Bound {
  std::vector<std::string> binds;
  std::set<int> cpus;
};

Bound BindRanks(const Machine& machine, const Preset& preset, int ranks,
                support::OpenMpRuntime runtime) {
  Bound bound;
  const auto plans = PlanHost(machine, ranks,
                              {.domain = preset.domain, .oversubscribe = true});
  EXPECT_TRUE(plans.ok()) << plans.status();
  if (!plans.ok()) return bound;
  for (const RankPlan& plan : *plans) {
    Variables variables = JobVariables(
        {.preset = &preset, .openmp = {runtime}, .may_share_cores = true});
    AddRankVariables(machine, plan, {.openmp = runtime}, variables);
    bound.binds.push_back(variables.Get("OMP_PROC_BIND").value_or(""));
    bound.cpus.insert(plan.cpus.begin(), plan.cpus.end());
    EXPECT_EQ(variables.Has("OMP_PLACES"), !plan.oversubscribed);
    EXPECT_EQ(bound.binds.back(), plan.oversubscribed ? "false" : "close");
  }
  return bound;
}

TEST(RankVariablesTest, RanksOfAPresetThatShareCoresUseAllOfThem) {
  for (const char* const topology :
       {"core:2 pu:1", "pack:2 core:2 pu:1", "pack:1 numa:4 core:3 pu:1"}) {
    const Machine machine = MachineFrom(topology);
    const int cores = static_cast<int>(machine.cores.size());
    for (const Preset& preset : Presets()) {
      for (const support::OpenMpRuntime runtime :
           {support::OpenMpRuntime::kGnu, support::OpenMpRuntime::kLlvm}) {
        for (const int ranks : {cores, cores + 1, 2 * cores, 4 * cores}) {
          SCOPED_TRACE(absl::StrCat(topology, ", --preset ", preset.name, ", ",
                                    ranks, " ranks"));
          const Bound bound = BindRanks(machine, preset, ranks, runtime);
          EXPECT_EQ(static_cast<int>(bound.cpus.size()), cores);
        }
      }
    }
  }
}

TEST(RankVariablesTest, NothingIsPinnedWhereRanksShareCores) {
  const Variables variables = RankVariables({.oversubscribe = true}, {}, {});
  EXPECT_EQ(variables.Get("OMP_PROC_BIND"), "false");
  EXPECT_FALSE(variables.Has("OMP_PLACES"));
}

}  // namespace
}  // namespace hvdlite::launch
