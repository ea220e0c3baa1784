#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/tools/doctor/checks/finding_matchers.h"
#include "tools/doctor/checks/clocks_check.h"
#include "tools/doctor/checks/links_check.h"
#include "tools/doctor/checks/versions_check.h"

namespace hvdlite::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

}  // namespace
}  // namespace hvdlite::doctor
