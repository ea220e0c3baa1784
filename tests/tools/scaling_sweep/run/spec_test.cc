#include "tools/scaling_sweep/run/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/testing/fakes/sweep_folder.h"
#include "tools/scaling_sweep/run/configuration.h"

namespace hvdlite::scaling_sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kBase[] =
    "name: 't' command: ['prog', '--report', '{report}'] repeats: 3 "
    "scaling: STRONG ";

std::string ErrorOf(const std::string& text) {
  return std::string(ParseSpec(text, "s").status().message());
}

std::vector<std::string> Keys(const std::string& text) {
  const absl::StatusOr<Spec> spec = ParseSpec(text, "s");
  EXPECT_TRUE(spec.ok()) << spec.status();
  if (!spec.ok()) return {};
  std::vector<std::string> keys;
  const auto configurations = Configurations(*spec);
  for (const Configuration& c : *configurations) keys.push_back(Key(c));
  return keys;
}

std::vector<int64_t> BatchesAt12(const std::string& scaling,
                                 const std::string& batch) {
  const absl::StatusOr<Spec> spec =
      ParseSpec(absl::StrCat("command: ['p', '{report}', '{batch}'] repeats: 1 "
                             "ranks: [1, 2] scaling: ",
                             scaling, " batch {", batch, "}"),
                "s");
  EXPECT_TRUE(spec.ok()) << spec.status();
  const auto configurations = Configurations(*spec);
  return {configurations->at(0).batch, configurations->at(1).batch};
}

TEST(SpecTest, ConfigurationsAreTheProductInTheOrderWritten) {
  EXPECT_THAT(
      Keys(absl::StrCat(kBase,
                        "ranks: [1, 2] mapping: ['core', 'numa'] threads: 1 "
                        "setting { name: 'a' } setting { name: 'b' threads: "
                        "[1, 2] mapping: 'core' ranks: 1 }")),
      ElementsAre("nodes=1 ranks_per_node=1 threads=1 mapping=core setting=a",
                  "nodes=1 ranks_per_node=1 threads=1 mapping=numa setting=a",
                  "nodes=1 ranks_per_node=2 threads=1 mapping=core setting=a",
                  "nodes=1 ranks_per_node=2 threads=1 mapping=numa setting=a",
                  "nodes=1 ranks_per_node=1 threads=1 mapping=core setting=b",
                  "nodes=1 ranks_per_node=1 threads=2 mapping=core setting=b"));
}

TEST(SpecTest, SettingsAddToTheEnvironmentAndReplaceItsVariables) {
  const absl::StatusOr<Spec> spec = ParseSpec(
      absl::StrCat(kBase,
                   "ranks: 1 environment { name: 'A' value: '1' } environment "
                   "{ name: 'B' value: '1' } launcher_flag: '--x' setting { "
                   "name: 's' environment { name: 'A' value: '2' } "
                   "launcher_flag: '--y' argument: '--z' }"),
      "s");
  const auto configurations = Configurations(spec.value());
  const Configuration& only = configurations->front();
  EXPECT_EQ(only.environment, (Variables{{"A", "2"}, {"B", "1"}}));
  EXPECT_THAT(only.launcher_flags, ElementsAre("--x", "--y"));
  EXPECT_THAT(only.arguments, ElementsAre("--z"));
}

TEST(SpecTest, TheBatchFollowsTheScalingAndWhoseTheArgumentIs) {
  EXPECT_THAT(BatchesAt12("STRONG", "size: 20 argument: WORLD"),
              ElementsAre(20, 20));
  EXPECT_THAT(BatchesAt12("STRONG", "size: 20 argument: RANK"),
              ElementsAre(20, 10));
  EXPECT_THAT(BatchesAt12("WEAK", "size: 20 argument: WORLD"),
              ElementsAre(20, 40));
  EXPECT_THAT(BatchesAt12("WEAK", "size: 20 argument: RANK"),
              ElementsAre(20, 20));
  // As in the study of A64FX: an epoch is divided, a rank's batch is not.
  EXPECT_THAT(BatchesAt12("STRONG", "size: 20 argument: RANK fixed: RANK"),
              ElementsAre(20, 20));
}

TEST(SpecTest, WorldsOfSeveralNodesNeedAsManyHosts) {
  const Spec spec =
      ParseSpec(absl::StrCat(kBase,
                             "ranks: 3 world { nodes: 2 ranks_per_node: 1 } "
                             "world { nodes: 3 ranks_per_node: 1 }"),
                "s", {"a", "b"})
          .value();
  const auto configurations = Configurations(spec).value();
  EXPECT_TRUE(HasHosts(spec, configurations[0]));
  EXPECT_TRUE(HasHosts(spec, configurations[1]));
  EXPECT_FALSE(HasHosts(spec, configurations[2]));
  EXPECT_TRUE(CheckHosts(spec, configurations[1]).ok());
  EXPECT_THAT(std::string(CheckHosts(spec, configurations[2]).message()),
              HasSubstr("3 nodes need as many hosts; 2 are named"));
}

// ---- Mistakes.

TEST(SpecTest, MisspeltWordsGetAHint) {
  EXPECT_THAT(ErrorOf("comand: 'p'"), HasSubstr("did you mean command?"));
  EXPECT_THAT(ErrorOf("batch { sise: 2 }"), HasSubstr("did you mean size?"));
  EXPECT_THAT(ErrorOf("batch { xyz: 2 }"),
              HasSubstr("known are size, fixed, argument"));
  EXPECT_THAT(ErrorOf("scaling: STRNG"), HasSubstr("did you mean STRONG?"));
  EXPECT_THAT(ErrorOf("batch { fixed: RNK }"), HasSubstr("did you mean RANK?"));
}

TEST(SpecTest, ErrorsNameTheFieldAndWhatItMayHold) {
  EXPECT_THAT(ErrorOf("name: 5 x"), HasSubstr("s:1:7: Expected string"));
  EXPECT_THAT(ErrorOf("command: 'p' rank: 1"), HasSubstr("named \"rank\""));
  EXPECT_THAT(ErrorOf("ranks: 1 repeats: 1"), HasSubstr("names no program"));
  const auto with = [](const std::string& more) {
    return ErrorOf(absl::StrCat(kBase, more));
  };
  EXPECT_THAT(with(""), HasSubstr("ranks: none given"));
  EXPECT_THAT(with("ranks: 0"), HasSubstr("ranks: 0 is not at least 1"));
  EXPECT_THAT(with("ranks: 1 threads: -1"), HasSubstr("threads: -1"));
  EXPECT_THAT(with("ranks: 1 mapping: 'cpu'"),
              HasSubstr("'cpu' is none of node, socket, numa, core"));
  EXPECT_THAT(with("ranks: [1, 1]"), HasSubstr("comes twice"));
  EXPECT_THAT(with("ranks: 1 setting { name: 'a' } setting { name: 'a' }"),
              HasSubstr("two are called 'a'"));
  EXPECT_THAT(with("ranks: 1 setting { } setting { name: 'a' }"),
              HasSubstr("has no name"));
  EXPECT_THAT(with("ranks: 2 setting { name: 'a' alone: true }"),
              HasSubstr("has no launcher for 2 ranks"));
  EXPECT_THAT(
      with("ranks: 1 setting { name: 'a' alone: true launcher_flag: '-x' }"),
      HasSubstr("without the launcher"));
  EXPECT_THAT(with("ranks: 1 environment { name: 'A=B' }"),
              HasSubstr("'A=B' is no name of a variable"));
  EXPECT_THAT(with("ranks: 1 batch { size: 2 argument: RANK }"),
              HasSubstr("no {batch}"));
  EXPECT_THAT(with("ranks: 1 setting { name: 'a' argument: '{rank}' }"),
              HasSubstr("did you mean {ranks}?"));
  EXPECT_THAT(ErrorOf("command: 'p' repeats: 1 scaling: WEAK ranks: 1"),
              HasSubstr("no {report}"));
  EXPECT_THAT(ErrorOf("command: ['p', '{report}'] scaling: WEAK ranks: 1"),
              HasSubstr("repeats: 0"));
  EXPECT_THAT(ErrorOf("command: ['p', '{report}'] repeats: 1 ranks: 1"),
              HasSubstr("say STRONG"));
  EXPECT_THAT(ErrorOf("command: ['p', '{report}', '{batch}'] repeats: 1 "
                      "scaling: STRONG ranks: 3 batch { size: 20 argument: "
                      "RANK }"),
              HasSubstr("20 cannot be divided equally among 3 ranks"));
  EXPECT_THAT(with("ranks: 1 tune { dimension { name: 'd' option { name: 'a' "
                   "} } }"),
              HasSubstr("needs two options"));
}

TEST(SpecTest, HostsOfTheCommandLineReplaceThoseOfTheText) {
  const std::string two =
      absl::StrCat(kBase, "world { nodes: 2 ranks_per_node: 1 }");
  const auto spec = ParseSpec(two, "s", {"a", "b"});
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(spec->host(), ElementsAre("a", "b"));
  EXPECT_THAT(ParseSpec(two + " host: 'c'", "s", {"a", "b"})->host(),
              ElementsAre("a", "b"));
  EXPECT_THAT(ParseSpec(two, "s")->host(), ::testing::IsEmpty());
  const auto error = [&](const std::string& host) {
    return std::string(ParseSpec(two, "s", {"a", host}).status().message());
  };
  EXPECT_THAT(error(""), HasSubstr("host: '' is no name"));
  EXPECT_THAT(error("b:4"), HasSubstr("say 'b', since worlds say"));
  EXPECT_EQ(error("2001:db8::1"), "");
}

TEST(SpecTest, NumbersThatDoNotFitAreErrorsThatNameTheField) {
  const auto with = [](const std::string& more) {
    return ErrorOf(absl::StrCat(kBase, more));
  };
  EXPECT_THAT(with("ranks: 2147483647 threads: 2"),
              HasSubstr("s: ranks: 2147483647 is more than"));
  EXPECT_THAT(with("world { nodes: 65536 ranks_per_node: 65536 } host: 'a'"),
              HasSubstr("s: world: 65536 nodes of 65536 ranks are more than"));
  EXPECT_THAT(with("ranks: 1 threads: 2147483647"),
              HasSubstr("s: threads: 2147483647 is more than"));
  EXPECT_THAT(with("ranks: 9999999999"), HasSubstr("s:1:"));
  EXPECT_THAT(ErrorOf("command: ['p', '{report}', '{batch}'] repeats: 1 "
                      "scaling: WEAK ranks: 2 batch { size: "
                      "9223372036854775807 argument: WORLD }"),
              HasSubstr("s: batch: size 9223372036854775807 of each of 2 "
                        "ranks"));
  for (const char* limit : {"nan", "inf", "-inf", "-1", "1e999"}) {
    EXPECT_THAT(with(absl::StrCat("ranks: 1 time_limit_seconds: ", limit)),
                HasSubstr("time_limit_seconds: "))
        << limit;
  }
  EXPECT_THAT(ErrorOf("command: ['p', '{report}'] repeats: 2147483647 "
                      "scaling: WEAK ranks: 1"),
              HasSubstr("s: repeats: 2147483647 is more than"));
}

TEST(SpecTest, PlaceholdersAreCheckedWhereverTheyStand) {
  const auto with = [](const std::string& more) {
    return ErrorOf(absl::StrCat(kBase, "ranks: 1 ", more));
  };
  for (const char* place :
       {"launcher_flag: '%'", "environment { name: 'A' value: '%' }",
        "setting { name: 'a' argument: '%' }",
        "setting { name: 'a' launcher_flag: '%' }",
        "setting { name: 'a' environment { name: 'A' value: '%' } }",
        "tune { dimension { name: 'd' option { name: 'a' } option { name: 'b' "
        "argument: '%' } } }"}) {
    const auto at = [&](const char* text) {
      return with(absl::StrReplaceAll(place, {{"%", text}}));
    };
    EXPECT_THAT(at("{rank}"), HasSubstr("did you mean {ranks}?")) << place;
    EXPECT_THAT(at("{batch}"), HasSubstr("{batch} needs a batch")) << place;
    EXPECT_EQ(at("{ranks}"), "") << place;
  }
  EXPECT_EQ(with("batch { size: 2 argument: RANK } setting { name: 'a' "
                 "argument: '{batch}' }"),
            "");
}

TEST(SpecTest, TheSpecsFolderIsReplacedEverywhere) {
  const SweepFolder folder;
  std::ofstream(folder / "s.txt") << kBase << R"(
      ranks: 1 launcher_flag: "1={spec_dir}"
      environment { name: "A" value: "2={spec_dir}" }
      setting { name: "a" argument: "3={spec_dir}"
        launcher_flag: "4={spec_dir}"
        environment { name: "B" value: "5={spec_dir}" } }
      tune { dimension { name: "d" option { name: "x" } option { name: "y"
        launcher_flag: "6={spec_dir}"
        environment { name: "C" value: "7={spec_dir}" } } } })";
  const absl::StatusOr<Spec> spec = LoadSpec(folder / "s.txt");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const std::string text = Identity(*spec);
  EXPECT_THAT(text, ::testing::Not(HasSubstr("{spec_dir}")));
  for (int i = 1; i <= 7; ++i) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat(i, "=", folder.path(), "\"")));
  }
}

TEST(SpecTest, OtherBracesAreNoPlaceholders) {
  EXPECT_THAT(Keys(absl::StrCat(kBase,
                                "ranks: 1 setting { name: 'a' argument: "
                                "'{\"json\": {}}' }")),
              ::testing::SizeIs(1));
}

TEST(SpecTest, WorldsRepeatsTimeLimitAndHostsAreNoPartOfTheIdentity) {
  const auto identity = [](const std::string& more) {
    return Identity(*ParseSpec(absl::StrCat(kBase, more), "s"));
  };
  const std::string base = identity("ranks: 1");
  Spec more = *ParseSpec(absl::StrCat(kBase, "ranks: 1"), "s");
  more.set_repeats(9);
  more.set_time_limit_seconds(1);
  more.add_host("h");
  EXPECT_EQ(Identity(more), base);
  EXPECT_EQ(identity("ranks: 2"), base);
  EXPECT_EQ(identity("world { nodes: 1 ranks_per_node: 2 }"), base);
  EXPECT_NE(identity("ranks: 1 threads: 2"), base);
  EXPECT_NE(identity("ranks: 1 tune {}"), identity("ranks: 2 tune {}"));
}

TEST(RunOrderTest, EveryRepeatGoesThroughAllAndDirectionsAlternate) {
  EXPECT_EQ(RunOrder(3, 3), (std::vector<PlannedRun>{{0, 0},
                                                     {1, 0},
                                                     {2, 0},
                                                     {2, 1},
                                                     {1, 1},
                                                     {0, 1},
                                                     {0, 2},
                                                     {1, 2},
                                                     {2, 2}}));
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
