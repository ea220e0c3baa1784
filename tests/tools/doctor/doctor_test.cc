#include "tools/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "tests/testing/fakes/machine_files.h"
#include "tests/testing/worlds/run_ranks.h"
#include "tests/tools/doctor/checks/expect_findings.h"
#include "tools/doctor/report.h"

namespace hvdlite::doctor {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Changes the session of one rank.
using Prepare = std::function<void(int rank, testing::MachineFiles& tree,
                                   Session& session)>;

// The doctor's findings on ranks that are threads, by rank. Rank r may use only
// CPU r; its environment and files are empty except for what `prepare` adds.
// CPUs 2n and 2n + 1 share a core.
std::vector<Findings> Examined(const std::vector<std::string>& hosts,
                               const std::vector<std::string>& checks,
                               const Prepare& prepare = nullptr) {
  testing::MachineFiles tree;
  for (int cpu = 0; cpu < 8; ++cpu) {
    const int core = cpu / 2 * 2;
    tree.Write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                   "/topology/thread_siblings_list",
               std::to_string(core) + "-" + std::to_string(core + 1));
  }
  const int size = static_cast<int>(hosts.size());
  std::vector<Findings> found(size);
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
                       .environment = base::FakeEnvironment({}),
                       .files = tree.files(),
                       .allowed_cpus = {rank}};
    if (prepare) prepare(rank, tree, session);
    auto findings = RunChecks(ChosenChecks(checks, false), session);
    ASSERT_TRUE(findings.ok()) << findings.status();
    found[rank] = *std::move(findings);
  });
  return found;
}

// Sets these variables on every rank.
Prepare WithVariables(
    std::vector<std::pair<std::string, std::string>> variables,
    std::vector<int> cpus = {}) {
  return [=](int, testing::MachineFiles&, Session& session) {
    session.environment = base::FakeEnvironment(variables);
    if (!cpus.empty()) session.allowed_cpus = cpus;
  };
}

TEST(DoctorTest, FindingsOfAllRanksAreMergedOnEveryRank) {
  const auto found =
      Examined({"a", "a", "b"}, {"variables"},
               [](int rank, testing::MachineFiles&, Session& session) {
                 if (rank == 1) return;
                 session.environment =
                     base::FakeEnvironment({{"HOROVOD_CYCLE_TIME", "1"}});
               });
  for (const Findings& findings : found) {
    ExpectFindings(findings, "warning ok");
  }
}

TEST(DoctorTest, ThreadsOfAllRanksAreCompared) {
  const auto found = Examined(
      {"a", "b"}, {"oversubscription"},
      [](int rank, testing::MachineFiles&, Session& session) {
        session.environment =
            base::FakeEnvironment({{"OMP_NUM_THREADS", rank == 0 ? "1" : "4"}});
      });
  ExpectFindings(found[0], "problem ok");
}

TEST(DoctorTest, RanksThatStartAtTheSameCoreAreFound) {
  const auto bound = [](const std::vector<int>& cpus) {
    return WithVariables({{"OMP_NUM_THREADS", "2"},
                          {"OMP_PLACES", "cores"},
                          {"OMP_PROC_BIND", "close"}},
                         cpus);
  };
  const Prepare all = bound({0, 1, 2, 3, 4, 5, 6, 7});
  const Prepare halves = [&](int rank, testing::MachineFiles& tree,
                             Session& session) {
    const int first = 4 * rank;
    bound({first, first + 1, first + 2, first + 3})(rank, tree, session);
  };
  const std::vector<std::string> checks = {"oversubscription", "smt"};
  ExpectFindings(Examined({"a", "a"}, checks, all)[0], "warning note");
  ExpectFindings(Examined({"a", "a"}, checks, halves)[0], "ok ok");
  ExpectFindings(Examined({"a", "b"}, checks, all)[0], "ok ok");
}

TEST(DoctorTest, RanksMeasureTheirLinks) {
  const auto found = Examined({"a", "a", "b", "b", "c"}, {"links"});
  for (const char* pairs : {"2 pairs", "8 pairs"}) {
    EXPECT_THAT(found[0], Contains(Field(&Finding::seen, HasSubstr(pairs))));
  }
}

TEST(DoctorTest, DifferentSettingsAreFound) {
  const auto found =
      Examined({"a", "b"}, {"mpi"},
               [](int rank, testing::MachineFiles&, Session& session) {
                 session.environment = base::FakeEnvironment(
                     {{"HVDLITE_CHUNK_BYTES", rank == 0 ? "1M" : "2M"}});
               });
  ExpectFindings(found[1], "note problem");
}

// The findings of `check` on one rank.
Findings FoundAlone(const std::string& check, const Prepare& prepare) {
  return Examined({"a"}, {check}, prepare)[0];
}

TEST(DoctorTest, ProcessorsAreReadFromTheirFiles) {
  ExpectFindings(
      FoundAlone("blas",
                 [](int, testing::MachineFiles& tree, Session& session) {
                   tree.Write("/proc/cpuinfo",
                              "Features : asimd sve\nCPU implementer : 0x46");
                   session.blas.facts = {.file = "/l/libopenblas.so.0",
                                         .kind = "OpenBLAS",
                                         .core = "armv8"};
                 }),
      "problem");
  ExpectFindings(FoundAlone("frequency",
                            [](int, testing::MachineFiles& tree, Session&) {
                              tree.Write(
                                  "/sys/devices/system/cpu/cpu0/cpufreq/"
                                  "scaling_governor",
                                  "powersave");
                            }),
                 "problem");
}

TEST(DoctorTest, ThreadsAreJudgedByFilesAndEnvironment) {
  ExpectFindings(FoundAlone("smt", WithVariables({}, {0, 1})), "warning");
  for (const auto& [places, verdicts] :
       {std::pair("cores", "ok"), {"{2}", "note warning"}}) {
    ExpectFindings(FoundAlone("smt", WithVariables({{"OMP_NUM_THREADS", "1"},
                                                    {"OMP_PLACES", places}},
                                                   {0, 1})),
                   verdicts);
  }
  ExpectFindings(
      FoundAlone("oversubscription",
                 [](int, testing::MachineFiles& tree, Session& session) {
                   tree.Write("/proc/self/cgroup", "0::/");
                   tree.Write("/sys/fs/cgroup/cpu.max", "50000 100000");
                   session.environment =
                       base::FakeEnvironment({{"OMP_NUM_THREADS", "1"}});
                 }),
      "problem ok");
}

TEST(DoctorTest, LargePageLibraryIsSearchedInTheProgram) {
  const support::Library large_pages = {"libmpg.so.1", "/l/libmpg.so.1"};
  ExpectFindings(FoundAlone("huge_pages",
                            [&](int, testing::MachineFiles&, Session& session) {
                              session.libraries = {large_pages};
                            }),
                 "ok");
  for (const bool linked : {false, true}) {
    ExpectFindings(
        FoundAlone("variables",
                   [&](int, testing::MachineFiles&, Session& session) {
                     session.program = "prog";
                     if (linked) session.libraries = {large_pages};
                     session.environment = base::FakeEnvironment(
                         {{"XOS_MMM_L_HPAGE_TYPE", "hugetlbfs"}});
                   }),
        linked ? "ok" : "warning");
  }
}

TEST(DoctorTest, EveryCheckRunsWithoutSystemFiles) {
  for (const Check& check : AllChecks()) {
    // UCX must not be queried by several threads at once.
    const std::vector<std::string> hosts =
        check.name == "ucx" ? std::vector<std::string>{"a"}
                            : std::vector<std::string>{"a", "b"};
    // Texts of the environment and of /proc may be invalid UTF-8.
    const auto found = Examined(
        hosts, {check.name}, WithVariables({{"HOROVOD_CYCLE_TIME", "\xff"}}));
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
