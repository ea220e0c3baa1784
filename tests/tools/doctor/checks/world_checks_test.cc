#include "tools/doctor/checks/world_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <utility>

#include "tests/tools/doctor/checks/finding_matchers.h"

namespace hvdlite::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const MpiFacts kOpenMpi = {.library = "Open MPI v4.1.4",
                           .thread_level = "MPI_THREAD_MULTIPLE"};

TEST(MpiTest, TellsLibraryAndThreadLevel) {
  EXPECT_THAT(
      JudgeMpi(kOpenMpi, 2, absl::OkStatus(), absl::OkStatus()),
      ElementsAre(IsOk("Open MPI v4.1.4, up to MPI_THREAD_MULTIPLE, 2 ranks")));
  EXPECT_THAT(JudgeMpi(std::nullopt, 1, absl::OkStatus(), absl::OkStatus()),
              ElementsAre(HasVerdict(Verdict::kNote)));
}

TEST(SharedMemoryTest, RanksOfAHostThatCannotAreAWarning) {
  const collective::Topology two =
      collective::MakeTopology(0, std::vector<int>{0, 0, 2}, {"a", "a", "b"});
  EXPECT_THAT(JudgeSharedMemory(two, true, absl::OkStatus()),
              IsOk("ranks of a host can share memory"));
  EXPECT_THAT(JudgeSharedMemory(two, false, absl::OkStatus()),
              Says(Verdict::kNote, "has MPI reduce everything",
                   "unset HVDLITE_SHARED_MEMORY"));
  EXPECT_THAT(
      JudgeSharedMemory(two, true, absl::UnavailableError("Permission denied")),
      Says(Verdict::kWarning, "Permission denied",
           "one container and user namespace"));
}

TEST(SharedMemoryTest, RanksAloneOnTheirHostsNeedNone) {
  const collective::Topology apart =
      collective::MakeTopology(0, std::vector<int>{0, 1}, {"a", "b"});
  EXPECT_THAT(JudgeSharedMemory(apart, false, absl::OkStatus()),
              IsOk("one rank on each host"));
}

TEST(MpiTest, WhatKeepsInitFromWorkingIsAProblem) {
  EXPECT_THAT(JudgeMpi(MpiFacts{.library = "X MPI",
                                .thread_level = "MPI_THREAD_SINGLE",
                                .error = "it offers MPI_THREAD_SINGLE"},
                       1, absl::OkStatus(), absl::OkStatus()),
              ElementsAre(Says(Verdict::kProblem, "MPI_THREAD_SINGLE",
                               "thread support")));
  EXPECT_THAT(
      JudgeMpi(kOpenMpi, 1, absl::FailedPreconditionError("started 4"),
               absl::OkStatus()),
      ElementsAre(HasVerdict(Verdict::kOk),
                  Says(Verdict::kProblem, "started 4", "mpirun of that MPI")));
  EXPECT_THAT(JudgeMpi(kOpenMpi, 2, absl::OkStatus(),
                       absl::InvalidArgumentError("configurations differ")),
              ElementsAre(HasVerdict(Verdict::kOk),
                          Says(Verdict::kProblem, "differ", "mpirun -x")));
}

TEST(MpiTest, CraysMpiThatIsHeldBackByItsVariableIsToldSo) {
  MpiFacts cray = {.library = "MPI VERSION    : CRAY MPICH version 8.1.25",
                   .thread_level = "MPI_THREAD_SERIALIZED"};
  const auto judged = [&](const std::optional<std::string>& variable) {
    return JudgeMpi(cray, 2, absl::OkStatus(), absl::OkStatus(), variable);
  };
  const auto held_back =
      Says(Verdict::kNote, "MPICH_MAX_THREAD_SAFETY is not set",
           "export MPICH_MAX_THREAD_SAFETY=multiple");
  EXPECT_THAT(judged(std::nullopt),
              ElementsAre(HasVerdict(Verdict::kOk), held_back));
  EXPECT_THAT(judged("serialized"), ElementsAre(HasVerdict(Verdict::kOk)));
  cray.thread_level = "MPI_THREAD_MULTIPLE";
  EXPECT_THAT(judged(std::nullopt), ElementsAre(HasVerdict(Verdict::kOk)));
  cray.error = "it offers MPI_THREAD_SINGLE";
  EXPECT_THAT(judged("single"),
              ElementsAre(Says(Verdict::kProblem, "SINGLE",
                               "MPICH_MAX_THREAD_SAFETY=multiple")));
}

TEST(TransportsTest, ReadsThemFromTheComponentsThatStayLoaded) {
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
  EXPECT_THAT(JudgeTransports(facts),
              Says(Verdict::kProblem, "mlx5_0:1", "--mca pml ucx"));
  facts.hosts = 1;
  EXPECT_THAT(JudgeTransports(facts),
              IsOk("by ob1 (pml), over vader, tcp (btl)"));
  facts.hosts = 2;
  facts.fast_devices.clear();
  EXPECT_THAT(JudgeTransports(facts), HasVerdict(Verdict::kOk));
  facts.fast_devices = {"mlx5_0:1"};
  facts.pml = {"ucx"};
  EXPECT_THAT(JudgeTransports(facts), IsOk("by ucx (pml), over the devices"));
  facts.pml.clear();
  EXPECT_THAT(JudgeTransports(facts), HasVerdict(Verdict::kNote));
}

TEST(UcxTest, ListsDevicesWithTheirTransports) {
  const UcxDevice ethernet = {.transport = "tcp", .device = "eth0"};
  const UcxDevice reliable = {
      .transport = "rc_mlx5", .device = "mlx5_0:1", .fast = true};
  const UcxDevice dynamic = {
      .transport = "dc_mlx5", .device = "mlx5_0:1", .fast = true};
  EXPECT_THAT(JudgeUcx(std::vector<UcxDevice>{reliable, ethernet, dynamic}, 2),
              IsOk("UCX finds eth0 (tcp), mlx5_0:1 (rc_mlx5, dc_mlx5)"));
  EXPECT_THAT(JudgeUcx(std::vector<UcxDevice>{ethernet}, 2),
              IsOk("UCX finds eth0 (tcp): no network faster than Ethernet"));
}

TEST(UcxTest, ItsAbsenceMattersBetweenHosts) {
  EXPECT_THAT(JudgeUcx(std::nullopt, 2),
              Says(Verdict::kWarning, "without UCX", "libucx-dev"));
  EXPECT_THAT(JudgeUcx(std::nullopt, 1), HasVerdict(Verdict::kNote));
  EXPECT_THAT(JudgeUcx(std::vector<UcxDevice>(), 2),
              Says(Verdict::kWarning, "no network device", "ucx_info"));
}

TEST(ClocksTest, HostsThatAgreeAreOk) {
  EXPECT_THAT(
      JudgeClocks(std::vector<int64_t>{0, 40'000, -90'000}, {"a", "b", "c"}),
      ElementsAre(IsOk("3 hosts differ by 90 us at most")));
  EXPECT_THAT(JudgeClocks(std::vector<int64_t>{0, 0}, {"a", "a"}),
              ElementsAre(IsOk("one host")));
}

TEST(ClocksTest, AHostThatIsOffIsNamed) {
  const std::vector<Finding> findings = JudgeClocks(
      {0, 50'000'000, 50'000'000, -3'000'000'000}, {"a", "b", "b", "c"});
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_THAT(findings[0],
              Says(Verdict::kNote, "of b is 50 ms behind that of a",
                   "ssh b chronyc makestep"));
  EXPECT_THAT(findings[0].ranks, ElementsAre(1, 2));
  EXPECT_THAT(findings[1],
              Says(Verdict::kWarning, "of c is 3 s ahead of that of a", "c"));
}

TEST(VersionsTest, TheMinorityIsNamed) {
  const Versions usual = {{"kernel", "6.1"}, {"MPI", "Open MPI v4.1.4"}};
  Versions other = usual;
  other["MPI"] = "Open MPI v4.1.2";
  const std::vector<Finding> findings =
      JudgeVersions({usual, other, usual}, {"a", "b", "c"});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0],
              Says(Verdict::kProblem, "MPI is Open MPI v4.1.2 on b",
                   "install the same on b"));
  EXPECT_THAT(findings[0].seen, HasSubstr("v4.1.4 on most"));
  EXPECT_THAT(findings[0].ranks, ElementsAre(1));
}

TEST(VersionsTest, KernelsMayDiffer) {
  EXPECT_THAT(
      JudgeVersions({{{"kernel", "6.1"}}, {{"kernel", "5.10"}}}, {"a", "b"}),
      ElementsAre(Says(Verdict::kNote, "kernel is 5.10 on b", "")));
}

TEST(VersionsTest, EqualOnesAreOk) {
  EXPECT_THAT(
      JudgeVersions({{{"kernel", "6.1"}}, {{"kernel", "6.1"}}}, {"a", "b"}),
      ElementsAre(IsOk("kernel")));
}

// Links of ranks, which are alike but for those of `slow`.
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

TEST(LinksTest, LinksThatAreAlikeAreOk) {
  EXPECT_THAT(
      JudgeLinks(Links(4, [](int, int) { return false; }),
                 {"a", "a", "b", "b"}),
      ElementsAre(IsOk("links within hosts: median 10 us, 1.2 GB/s each way of "
                       "2 pairs (10 to 10 us, 1.2 to 1.2 GB/s)"),
                  IsOk("links between hosts: median 10 us, 1.2 GB/s each way "
                       "of 4 pairs")));
  EXPECT_THAT(
      JudgeLinks(Links(2, [](int, int) { return false; }), {"a", "b"}),
      ElementsAre(IsOk("between hosts: 10 us, 1.2 GB/s each way (1 pair)")));
  EXPECT_THAT(JudgeLinks(Links(1, [](int, int) { return false; }), {"a"}),
              ElementsAre(IsOk("one rank")));
}

TEST(LinksTest, AHostWithSlowLinksIsBlamedAndItsPeersAreNot) {
  const std::vector<Finding> findings = JudgeLinks(
      Links(8, [](int a, int b) { return a == 5 || b == 5; }), kEightHosts);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_THAT(findings[0],
              Says(Verdict::kWarning, "links between hosts of f: 7 of 7",
                   "ssh f ethtool"));
  EXPECT_THAT(findings[0].ranks, ElementsAre(5));
}

TEST(LinksTest, ASlowPairIsNamed) {
  const std::vector<Finding> findings = JudgeLinks(
      Links(8, [](int a,
                  int b) { return (a == 2 && b == 6) || (a == 6 && b == 2); }),
      kEightHosts);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_THAT(findings[0],
              Says(Verdict::kWarning, "ranks 2 (c) and 6 (g): 80 us", ""));
  EXPECT_THAT(findings[0].ranks, ElementsAre(2, 6));
}

TEST(LinksTest, AFewMicrosecondsMoreAreNothing) {
  std::vector<LinkFacts> facts = Links(4, [](int, int) { return false; });
  for (LinkFacts& links : facts) {
    links.latency_us.assign(4, 1);
  }
  facts[0].latency_us[1] = 6;
  EXPECT_THAT(JudgeLinks(facts, {"a", "b", "c", "d"}),
              ElementsAre(HasVerdict(Verdict::kOk)));
  facts[0].latency_us[1] = 8;
  EXPECT_EQ(JudgeLinks(facts, {"a", "b", "c", "d"}).front().verdict,
            Verdict::kWarning);
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
