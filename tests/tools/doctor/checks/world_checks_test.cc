#include "tools/doctor/checks/world_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <utility>

#include "tests/tools/doctor/checks/expect_findings.h"

namespace hvdlite::doctor {
namespace {

using ::testing::ElementsAre;

const MpiFacts kOpenMpi = {.library = "Open MPI v4.1.4",
                           .thread_level = "MPI_THREAD_MULTIPLE"};

TEST(MpiTest, ReportsLibraryAndThreadLevel) {
  ExpectFindings(JudgeMpi(kOpenMpi, 2, absl::OkStatus(), absl::OkStatus()),
                 "ok");
  ExpectFindings(JudgeMpi(std::nullopt, 1, absl::OkStatus(), absl::OkStatus()),
                 "note");
}

TEST(SharedMemoryTest, RanksThatCannotShareMemoryAreAWarning) {
  const collective::Topology two =
      collective::MakeTopology(0, std::vector<int>{0, 0, 2}, {"a", "a", "b"});
  ExpectFindings(JudgeSharedMemory(two, true, absl::OkStatus()), "ok");
  ExpectFindings(JudgeSharedMemory(two, false, absl::OkStatus()), "note");
  ExpectFindings(
      JudgeSharedMemory(two, true, absl::UnavailableError("Permission denied")),
      "warning");
}

TEST(SharedMemoryTest, OneRankPerHostNeedsNoSharedMemory) {
  const collective::Topology apart =
      collective::MakeTopology(0, std::vector<int>{0, 1}, {"a", "b"});
  ExpectFindings(JudgeSharedMemory(apart, false, absl::OkStatus()), "ok");
}

TEST(MpiTest, CausesOfFailingInitAreProblems) {
  ExpectFindings(JudgeMpi(MpiFacts{.library = "X MPI",
                                   .thread_level = "MPI_THREAD_SINGLE",
                                   .error = "it offers MPI_THREAD_SINGLE"},
                          1, absl::OkStatus(), absl::OkStatus()),
                 "problem");
  ExpectFindings(
      JudgeMpi(kOpenMpi, 1, absl::FailedPreconditionError("started 4"),
               absl::OkStatus()),
      "ok problem");
  ExpectFindings(JudgeMpi(kOpenMpi, 2, absl::OkStatus(),
                          absl::InvalidArgumentError("configurations differ")),
                 "ok problem");
}

TEST(MpiTest, CrayMpiWithoutItsVariableIsANote) {
  MpiFacts cray = {.library = "MPI VERSION    : CRAY MPICH version 8.1.25",
                   .thread_level = "MPI_THREAD_SERIALIZED"};
  const auto judged = [&](const std::optional<std::string>& variable) {
    return JudgeMpi(cray, 2, absl::OkStatus(), absl::OkStatus(), variable);
  };
  ExpectFindings(judged(std::nullopt), "ok note");
  ExpectFindings(judged("serialized"), "ok");
  cray.thread_level = "MPI_THREAD_MULTIPLE";
  ExpectFindings(judged(std::nullopt), "ok");
  cray.error = "it offers MPI_THREAD_SINGLE";
  ExpectFindings(judged("single"), "problem");
}

TEST(TransportsTest, ReadsTransportsFromLoadedComponents) {
  const TransportFacts facts = TransportsIn({{"mca_pml_ob1.so", "/m"},
                                             {"mca_btl_vader.so", "/m"},
                                             {"mca_btl_tcp.so", "/m"},
                                             {"mca_coll_tuned.so", "/m"},
                                             {"libmpi.so.40", "/l"}});
  EXPECT_THAT(facts.pml, ElementsAre("ob1"));
  EXPECT_THAT(facts.btl, ElementsAre("vader", "tcp"));
  EXPECT_TRUE(facts.mtl.empty());
}

TEST(TransportsTest, TcpBesideAFastNetworkIsAProblem) {
  TransportFacts facts = {.mpi_library = "Open MPI v4.1.4",
                          .pml = {"ob1"},
                          .btl = {"vader", "tcp"},
                          .mtl = {},
                          .hosts = 2,
                          .fast_devices = {"mlx5_0:1"}};
  ExpectFindings(JudgeTransports(facts), "problem");
  facts.hosts = 1;
  ExpectFindings(JudgeTransports(facts), "ok");
  facts.hosts = 2;
  facts.fast_devices.clear();
  ExpectFindings(JudgeTransports(facts), "ok");
  facts.fast_devices = {"mlx5_0:1"};
  facts.pml = {"ucx"};
  ExpectFindings(JudgeTransports(facts), "ok");
  facts.pml.clear();
  ExpectFindings(JudgeTransports(facts), "note");
}

TEST(UcxTest, ListsDevicesWithTheirTransports) {
  const UcxDevice ethernet = {.transport = "tcp", .device = "eth0"};
  const UcxDevice reliable = {
      .transport = "rc_mlx5", .device = "mlx5_0:1", .fast = true};
  const UcxDevice dynamic = {
      .transport = "dc_mlx5", .device = "mlx5_0:1", .fast = true};
  ExpectFindings(
      JudgeUcx(std::vector<UcxDevice>{reliable, ethernet, dynamic}, 2), "ok");
  ExpectFindings(JudgeUcx(std::vector<UcxDevice>{ethernet}, 2), "ok");
}

TEST(UcxTest, MissingUcxIsAWarningBetweenHosts) {
  ExpectFindings(JudgeUcx(std::nullopt, 2), "warning");
  ExpectFindings(JudgeUcx(std::nullopt, 1), "note");
  ExpectFindings(JudgeUcx(std::vector<UcxDevice>(), 2), "warning");
}

TEST(ClocksTest, EqualClocksAreOk) {
  ExpectFindings(
      JudgeClocks(std::vector<int64_t>{0, 40'000, -90'000}, {"a", "b", "c"}),
      "ok");
  ExpectFindings(JudgeClocks(std::vector<int64_t>{0, 0}, {"a", "a"}), "ok");
}

TEST(ClocksTest, HostWithWrongClockIsNamed) {
  ExpectFindings(JudgeClocks({0, 50'000'000, 50'000'000, -3'000'000'000},
                             {"a", "b", "b", "c"}),
                 "note warning");
}

TEST(VersionsTest, HostsWithTheRarerVersionAreNamed) {
  const Versions usual = {{"kernel", "6.1"}, {"MPI", "Open MPI v4.1.4"}};
  Versions other = usual;
  other["MPI"] = "Open MPI v4.1.2";
  ExpectFindings(JudgeVersions({usual, other, usual}, {"a", "b", "c"}),
                 "problem");
}

TEST(VersionsTest, KernelsMayDiffer) {
  ExpectFindings(
      JudgeVersions({{{"kernel", "6.1"}}, {{"kernel", "5.10"}}}, {"a", "b"}),
      "note");
}

TEST(VersionsTest, EqualVersionsAreOk) {
  ExpectFindings(
      JudgeVersions({{{"kernel", "6.1"}}, {{"kernel", "6.1"}}}, {"a", "b"}),
      "ok");
}

// Links between ranks. All are equal except those selected by `slow`.
std::vector<LinkFacts> Links(int ranks,
                             const std::function<bool(int, int)>& slow) {
  std::vector<LinkFacts> facts(ranks);
  for (int a = 0; a < ranks; ++a) {
    for (int b = 0; b < ranks; ++b) {
      facts[a].latency_us.push_back(slow(a, b) ? 80 : 10);
      facts[a].gb_per_second.push_back(slow(a, b) ? 0.2 : 1.2);
    }
  }
  return facts;
}

const std::vector<std::string> kEightHosts = {"a", "b", "c", "d",
                                              "e", "f", "g", "h"};

TEST(LinksTest, EqualLinksAreOk) {
  ExpectFindings(JudgeLinks(Links(4, [](int, int) { return false; }),
                            {"a", "a", "b", "b"}),
                 "ok ok");
  ExpectFindings(
      JudgeLinks(Links(2, [](int, int) { return false; }), {"a", "b"}), "ok");
  ExpectFindings(JudgeLinks(Links(1, [](int, int) { return false; }), {"a"}),
                 "ok");
}

TEST(LinksTest, HostWithSlowLinksIsNamedWithoutItsPeers) {
  ExpectFindings(
      JudgeLinks(Links(8, [](int a, int b) { return a == 5 || b == 5; }),
                 kEightHosts),
      "warning ok");
}

TEST(LinksTest, ASlowPairIsNamed) {
  ExpectFindings(JudgeLinks(Links(8,
                                  [](int a, int b) {
                                    return (a == 2 && b == 6) ||
                                           (a == 6 && b == 2);
                                  }),
                            kEightHosts),
                 "warning ok");
}

TEST(LinksTest, SmallDifferencesInLatencyAreOk) {
  std::vector<LinkFacts> facts = Links(4, [](int, int) { return false; });
  for (LinkFacts& links : facts) {
    links.latency_us.assign(4, 1);
  }
  facts[0].latency_us[1] = 6;
  ExpectFindings(JudgeLinks(facts, {"a", "b", "c", "d"}), "ok");
  facts[0].latency_us[1] = 8;
  ExpectFindings(JudgeLinks(facts, {"a", "b", "c", "d"}), "warning ok");
}

TEST(TournamentTest, EveryTwoRanksMeetOnceInDisjointPairs) {
  for (int size = 1; size <= 17; ++size) {
    std::set<std::pair<int, int>> met;
    for (int round = 0; round < TournamentRounds(size); ++round) {
      for (int rank = 0; rank < size; ++rank) {
        const int partner = PartnerInRound(size, rank, round);
        if (partner < 0) continue;
        ASSERT_NE(partner, rank);
        ASSERT_LT(partner, size);
        EXPECT_EQ(PartnerInRound(size, partner, round), rank);
        if (rank < partner) {
          EXPECT_TRUE(met.insert({rank, partner}).second)
              << rank << " and " << partner << " of " << size;
        }
      }
    }
    EXPECT_EQ(met.size(), static_cast<size_t>(size * (size - 1) / 2)) << size;
  }
}

TEST(TournamentTest, TakesAsManyRoundsAsThereAreRanks) {
  EXPECT_EQ(TournamentRounds(1), 0);
  EXPECT_EQ(TournamentRounds(2), 1);
  EXPECT_EQ(TournamentRounds(64), 63);
  EXPECT_EQ(TournamentRounds(7), 7);
}

}  // namespace
}  // namespace hvdlite::doctor
