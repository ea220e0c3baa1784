#include "tools/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/testing/fakes/file_tree.h"
#include "tests/testing/worlds/run_ranks.h"
#include "tests/tools/doctor/checks/expect_findings.h"
#include "tools/doctor/report.h"

namespace hvdlite::doctor {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<int> CpuOfItsOwn(int rank) { return {rank}; }

// What the doctor finds on ranks that are threads, by rank. Rank r has
// `environment(r)`, and may use `cpus(r)`; CPUs 2n and 2n + 1 are a core.
std::vector<std::vector<Finding>> Examined(
    const std::vector<std::string>& hosts,
    const std::vector<std::string>& checks,
    const std::function<base::Environment(int)>& environment,
    const std::function<std::vector<int>(int)>& cpus = &CpuOfItsOwn) {
  FileTree tree;
  for (int cpu = 0; cpu < 8; ++cpu) {
    const int core = cpu / 2 * 2;
    tree.Write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                   "/topology/thread_siblings_list",
               std::to_string(core) + "-" + std::to_string(core + 1));
  }
  const int size = static_cast<int>(hosts.size());
  std::vector<std::vector<Finding>> found(size);
  testing::RunInProcessRanks(size, [&](collective::Communicator& communicator) {
    const int rank = communicator.rank();
    std::vector<int> lowest(size);
    for (int other = 0; other < size; ++other) {
      lowest[other] = static_cast<int>(
          std::find(hosts.begin(), hosts.end(), hosts[other]) - hosts.begin());
    }
    const collective::Topology topology =
        collective::MakeTopology(rank, lowest, hosts);
    Session session = {.communicator = communicator,
                       .topology = topology,
                       .environment = environment(rank),
                       .files = tree.files(),
                       .allowed_cpus = cpus(rank)};
    auto findings = RunChecks(ChosenChecks(checks, false), session);
    ASSERT_TRUE(findings.ok()) << findings.status();
    found[rank] = *std::move(findings);
  });
  return found;
}

base::Environment Nothing(int) { return base::FakeEnvironment({}); }

TEST(DoctorTest, FindingsOfAllRanksAreMergedOnEveryRank) {
  const auto found = Examined({"a", "a", "b"}, {"variables"}, [](int rank) {
    return base::FakeEnvironment(
        rank == 1 ? std::vector<std::pair<std::string, std::string>>{}
                  : std::vector<std::pair<std::string, std::string>>{
                        {"HOROVOD_CYCLE_TIME", "1"}});
  });
  for (const std::vector<Finding>& findings : found) {
    ExpectFindings(findings, "warning ok");
  }
}

TEST(DoctorTest, ThreadsOfAllRanksAreCompared) {
  const auto found = Examined({"a", "b"}, {"oversubscription"}, [](int rank) {
    return base::FakeEnvironment({{"OMP_NUM_THREADS", rank == 0 ? "1" : "4"}});
  });
  ExpectFindings(found[0], "problem ok");
}

TEST(DoctorTest, RanksThatStartAtTheSameCoreAreFound) {
  const auto bound = [](int) {
    return base::FakeEnvironment({{"OMP_NUM_THREADS", "2"},
                                  {"OMP_PLACES", "cores"},
                                  {"OMP_PROC_BIND", "close"}});
  };
  const auto all = [](int) { return std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}; };
  ExpectFindings(
      Examined({"a", "a"}, {"oversubscription", "smt"}, bound, all)[0],
      "warning note");
  const auto halves = [](int rank) {
    return rank == 0 ? std::vector<int>{0, 1, 2, 3}
                     : std::vector<int>{4, 5, 6, 7};
  };
  for (const auto& found :
       {Examined({"a", "a"}, {"oversubscription", "smt"}, bound, halves),
        Examined({"a", "b"}, {"oversubscription", "smt"}, bound, all)}) {
    ExpectFindings(found[0], "ok ok");
  }
}

TEST(DoctorTest, RanksMeasureTheirLinks) {
  const auto found = Examined({"a", "a", "b", "b", "c"}, {"links"}, &Nothing);
  EXPECT_THAT(found[0],
              Contains(Field(&Finding::seen, ::testing::HasSubstr("2 pairs"))));
  EXPECT_THAT(found[0],
              Contains(Field(&Finding::seen, ::testing::HasSubstr("8 pairs"))));
}

TEST(DoctorTest, SettingsThatDifferAreFound) {
  const auto found = Examined({"a", "b"}, {"mpi"}, [](int rank) {
    return base::FakeEnvironment(
        {{"HVDLITE_CHUNK_BYTES", rank == 0 ? "1M" : "2M"}});
  });
  ExpectFindings(found[1], "note problem");
}

// What `check` finds on one rank, CPU 0 of a machine that `prepare` describes.
std::vector<Finding> FoundAlone(
    const std::string& check,
    const std::function<void(FileTree&, Session&)>& prepare) {
  std::vector<Finding> found;
  FileTree tree;
  testing::RunInProcessRanks(1, [&](collective::Communicator& communicator) {
    const collective::Topology topology = collective::MakeTopology(
        0, std::vector<int>{0}, std::vector<std::string>{"a"});
    Session session = {.communicator = communicator,
                       .topology = topology,
                       .environment = base::FakeEnvironment({}),
                       .files = tree.files(),
                       .allowed_cpus = {0}};
    prepare(tree, session);
    auto findings = RunChecks(ChosenChecks({check}, false), session);
    ASSERT_TRUE(findings.ok()) << findings.status();
    found = *std::move(findings);
  });
  return found;
}

const support::Library kFujitsusLargePages = {"libmpg.so.1", "/l/libmpg.so.1"};

TEST(DoctorTest, ProcessorsAreReadFromTheirFiles) {
  ExpectFindings(
      FoundAlone("blas",
                 [](FileTree& tree, Session& session) {
                   tree.Write("/proc/cpuinfo",
                              "Features : asimd sve\nCPU implementer : 0x46");
                   session.blas.facts = {.file = "/l/libopenblas.so.0",
                                         .kind = "OpenBLAS",
                                         .core = "armv8"};
                 }),
      "problem");
  ExpectFindings(FoundAlone("frequency",
                            [](FileTree& tree, Session&) {
                              tree.Write(
                                  "/sys/devices/system/cpu/cpu0/cpufreq/"
                                  "scaling_governor",
                                  "powersave");
                            }),
                 "problem");
}

TEST(DoctorTest, ThreadsAreJudgedByFilesAndEnvironment) {
  const auto two_threads_on_a_core = [](FileTree& tree, Session& session) {
    for (const char* cpu : {"0", "1"}) {
      tree.Write(std::string("/sys/devices/system/cpu/cpu") + cpu +
                     "/topology/thread_siblings_list",
                 "0-1");
    }
    session.allowed_cpus = {0, 1};
  };
  ExpectFindings(FoundAlone("smt", two_threads_on_a_core), "warning");
  ExpectFindings(
      FoundAlone("smt",
                 [&](FileTree& tree, Session& session) {
                   two_threads_on_a_core(tree, session);
                   session.environment = base::FakeEnvironment(
                       {{"OMP_NUM_THREADS", "1"}, {"OMP_PLACES", "cores"}});
                 }),
      "ok");
  ExpectFindings(
      FoundAlone("smt",
                 [&](FileTree& tree, Session& session) {
                   two_threads_on_a_core(tree, session);
                   session.environment = base::FakeEnvironment(
                       {{"OMP_NUM_THREADS", "1"}, {"OMP_PLACES", "{2}"}});
                 }),
      "note warning");
  ExpectFindings(
      FoundAlone("oversubscription",
                 [](FileTree& tree, Session& session) {
                   tree.Write("/proc/self/cgroup", "0::/");
                   tree.Write("/sys/fs/cgroup/cpu.max", "50000 100000");
                   session.environment =
                       base::FakeEnvironment({{"OMP_NUM_THREADS", "1"}});
                 }),
      "problem ok");
}

TEST(DoctorTest, LargePagesAreThoseOfTheProgramsLibraries) {
  ExpectFindings(FoundAlone("huge_pages",
                            [](FileTree&, Session& session) {
                              session.libraries = {kFujitsusLargePages};
                            }),
                 "ok");
  for (const bool linked : {false, true}) {
    ExpectFindings(FoundAlone("variables",
                              [&](FileTree&, Session& session) {
                                session.program = "prog";
                                if (linked)
                                  session.libraries = {kFujitsusLargePages};
                                session.environment = base::FakeEnvironment(
                                    {{"XOS_MMM_L_HPAGE_TYPE", "hugetlbfs"}});
                              }),
                   linked ? "ok" : "warning");
  }
}

TEST(DoctorTest, EveryCheckRunsWhereNothingIsKnown) {
  for (const Check& check : AllChecks()) {
    // UCX is not asked by several threads at once.
    const std::vector<std::string> hosts =
        check.name == "ucx" ? std::vector<std::string>{"a"}
                            : std::vector<std::string>{"a", "b"};
    const auto found = Examined(hosts, {check.name}, &Nothing);
    EXPECT_THAT(found[0], Not(IsEmpty())) << check.name;
    for (const Finding& finding : found[0]) {
      EXPECT_EQ(finding.check, check.name);
      EXPECT_FALSE(finding.seen.empty());
      EXPECT_FALSE(finding.ranks.empty());
    }
  }
}

}  // namespace
}  // namespace hvdlite::doctor
