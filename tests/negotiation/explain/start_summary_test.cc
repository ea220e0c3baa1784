#include "negotiation/explain/start_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/in_process/in_process.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::internal {
namespace {

using ::hvdlite::testing::RunRanks;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kVersions[] = "hvdlite 1.0.0, LibTorch 1.13.1, Open MPI v4.1.4";

const ProcessFacts kUsual = {.versions = kVersions,
                             .cpus = 2,
                             .threads = 2,
                             .coordinator_has_core = false};

collective::Topology TwoHosts() {
  return collective::MakeTopology(0, {0, 0, 2, 2},
                                  {"n01", "n01", "n02", "n02"});
}

std::string Summary(const Config& config,
                    const std::vector<ProcessFacts>& of_rank,
                    const collective::Topology& topology = TwoHosts()) {
  return SummariseStart({.topology = topology,
                         .config = config,
                         .tensors_by = "shared memory and MPI",
                         .control_by = "SHM+UCX",
                         .cpu_list = "0-1",
                         .of_rank = of_rank});
}

TEST(StartSummaryTest, ListsRanksTransportsVersionsAndCpus) {
  EXPECT_EQ(Summary({}, {kUsual, kUsual, kUsual, kUsual}),
            "4 ranks on 2 hosts (n01: ranks 0-1, n02: ranks 2-3); tensors by "
            "shared memory and MPI, control messages by SHM+UCX\n"
            "  hvdlite 1.0.0, LibTorch 1.13.1, Open MPI v4.1.4\n"
            "  each rank: 2 CPUs (rank 0: 0-1), 2 threads, no CPU reserved for "
            "the background thread");
}

TEST(StartSummaryTest, SingleRankHasNoTransports) {
  const std::string text =
      Summary({}, {kUsual}, collective::MakeTopology(0, {0}, {"n01"}));
  EXPECT_THAT(text, HasSubstr("1 rank on 1 host (n01)\n"));
  EXPECT_THAT(text, HasSubstr("\n  2 CPUs (0-1), 2 threads"));
}

TEST(StartSummaryTest, ManyHostsAreCounted) {
  std::vector<int> lowest;
  std::vector<std::string> hosts;
  for (int rank = 0; rank < 6; ++rank) {
    lowest.push_back(rank);
    hosts.push_back("n0" + std::to_string(rank));
  }
  EXPECT_THAT(Summary({}, std::vector<ProcessFacts>(6, kUsual),
                      collective::MakeTopology(0, lowest, hosts)),
              HasSubstr("6 ranks on 6 hosts (n00: rank 0, n01: rank 1, "
                        "n02: rank 2, n03: rank 3, 2 more);"));
}

TEST(StartSummaryTest, VirtualNodesAreNotHosts) {
  const auto topology = collective::WithVirtualNodes(
      collective::MakeTopology(0, {0, 0, 0, 0}, {"n01", "n01", "n01", "n01"}),
      "2,1");
  ASSERT_TRUE(topology.ok()) << topology.status();
  Config config;
  config.virtual_nodes = "2,1";
  EXPECT_THAT(Summary(config, {kUsual, kUsual, kUsual, kUsual}, *topology),
              HasSubstr("4 ranks on 1 host (n01), split into 3 virtual nodes "
                        "(ranks 0-1, rank 2, rank 3); "));
}

TEST(StartSummaryTest, ChangedSettingsHaveTheirSource) {
  Config config;
  config.chunk_bytes = 65536;
  config.values_from_environment["chunk_bytes"] = "65536";
  config.deterministic = true;
  EXPECT_THAT(Summary(config, {kUsual, kUsual, kUsual, kUsual}),
              EndsWith("\n  settings: chunk_bytes=65536 (HVDLITE_CHUNK_BYTES), "
                       "deterministic=true (program)"));
}

TEST(StartSummaryTest, DifferingRanksAreListedWithTheDifference) {
  ProcessFacts other = kUsual;
  other.versions = "hvdlite 1.0.0, LibTorch 2.6.0, Open MPI v4.1.4";
  other.threads = 4;
  const std::string text = Summary({}, {kUsual, kUsual, other, other});
  EXPECT_THAT(text,
              EndsWith("\n  ranks 2-3 differ: LibTorch 2.6.0; 4 threads"));
  EXPECT_THAT(text, Not(HasSubstr("4 CPUs")));
}

TEST(ThreadsThatWaitTest, ThreadsOfOneRank) {
  EXPECT_EQ(DescribeThreadsThatWait(2, 2, 1), "");
  EXPECT_EQ(DescribeThreadsThatWait(4, 0, 1), "");  // not known
  EXPECT_THAT(DescribeThreadsThatWait(8, 1, 1),
              AllOf(HasSubstr("a rank of this host computes with 8 threads on "
                              "1 CPU,"),
                    HasSubstr("export OMP_NUM_THREADS=1,")));
}

TEST(ThreadsThatWaitTest, ThreadsOfRanksThatShareCpus) {
  EXPECT_EQ(DescribeThreadsThatWait(2, 4, 2), "");
  EXPECT_EQ(DescribeThreadsThatWait(1, 4, 9), "");  // no remedy
  EXPECT_THAT(DescribeThreadsThatWait(4, 4, 2),
              AllOf(HasSubstr("2 ranks of this host compute with 4 threads "
                              "each on 4 CPUs,"),
                    HasSubstr("export OMP_NUM_THREADS=2,")));
  EXPECT_THAT(DescribeThreadsThatWait(2, 2, 4),
              HasSubstr("export OMP_NUM_THREADS=1,"));
}

TEST(StartSummaryTest, VersionsComeFromTheBuild) {
  EXPECT_EQ(VersionsOf("hvdlite: 1.0.0\ncompiler: GCC 12.2.0, C++11 ABI: yes\n"
                       "MPI: Open MPI v4.1.4, built with 3.1\n"),
            "hvdlite 1.0.0, compiler GCC 12.2.0, MPI Open MPI v4.1.4");
}

TEST(ExchangeFactsTest, AllRanksGetTheFactsIfRankZeroWantsThem) {
  const auto world = collective::CreateInProcessWorld(3);
  RunRanks(3, [&](int rank) {
    const ProcessFacts own = {.versions = std::string(400, 'v'),
                              .cpus = rank,
                              .threads = 10 + rank,
                              .coordinator_has_core = rank == 1};
    const auto unwanted = ExchangeFacts(*world[rank], own, rank != 0);
    ASSERT_TRUE(unwanted.ok()) << unwanted.status();
    EXPECT_TRUE(unwanted->empty());
    const auto facts = ExchangeFacts(*world[rank], own, rank == 0);
    ASSERT_TRUE(facts.ok()) << facts.status();
    ASSERT_EQ(facts->size(), 3);
    EXPECT_EQ((*facts)[2].cpus, 2);
    EXPECT_EQ((*facts)[2].threads, 12);
    EXPECT_TRUE((*facts)[1].coordinator_has_core);
    EXPECT_FALSE((*facts)[2].coordinator_has_core);
    // A text that is too long is cut.
    EXPECT_EQ((*facts)[2].versions, std::string(251, 'v'));
  });
}

}  // namespace
}  // namespace hvdlite::internal
