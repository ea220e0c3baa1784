#include "tools/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/testing/run_ranks.h"
#include "tests/tools/doctor/finding_matchers.h"
#include "tools/doctor/report.h"

namespace hvdlite::doctor {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Not;

// What the doctor finds on ranks that are threads, by rank. Rank r has
// `environment(r)`, and may use CPU r only.
std::vector<std::vector<Finding>> Examined(
    const std::vector<std::string>& hosts,
    const std::vector<std::string>& checks,
    const std::function<base::Environment(int)>& environment) {
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
                       .files = SystemFiles("/nonexistent"),
                       .allowed_cpus = {rank}};
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
    ASSERT_EQ(findings.size(), 2U);
    EXPECT_THAT(findings[0], HasVerdict(Verdict::kWarning));
    EXPECT_THAT(findings[0].ranks, ElementsAre(0, 2));
    EXPECT_THAT(findings[1].ranks, ElementsAre(1));
  }
}

TEST(DoctorTest, ThreadsOfAllRanksAreCompared) {
  const auto found = Examined({"a", "b"}, {"oversubscription"}, [](int rank) {
    return base::FakeEnvironment({{"OMP_NUM_THREADS", rank == 0 ? "1" : "4"}});
  });
  EXPECT_THAT(found[0],
              Contains(AllOf(Says(Verdict::kProblem, "1 rank on b", ""),
                             Field(&Finding::ranks, ElementsAre(1)))));
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
  EXPECT_THAT(found[1], Contains(Says(Verdict::kProblem, "chunk_bytes", "")));
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
