#include "tools/scaling_sweep/run/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/testing/fakes/sweep_directory.h"
#include "tests/testing/golden.h"
#include "tools/scaling_sweep/run/configuration.h"

namespace hvdlite::scaling_sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kBase[] =
    "name: 't' command: ['prog', '--report', '{report}'] repeats: 3 "
    "scaling: STRONG ";

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

TEST(SpecTest, ConfigurationsAreTheProductInWrittenOrder) {
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

TEST(SpecTest, BatchDependsOnScalingAndArgument) {
  EXPECT_THAT(BatchesAt12("STRONG", "size: 20 argument: WORLD"),
              ElementsAre(20, 20));
  EXPECT_THAT(BatchesAt12("STRONG", "size: 20 argument: RANK"),
              ElementsAre(20, 10));
  EXPECT_THAT(BatchesAt12("WEAK", "size: 20 argument: WORLD"),
              ElementsAre(20, 40));
  EXPECT_THAT(BatchesAt12("WEAK", "size: 20 argument: RANK"),
              ElementsAre(20, 20));
  // As in the A64FX study: the ranks share an epoch, but each keeps its batch
  // size.
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
  EXPECT_TRUE(CheckHosts(spec, configurations[0]).ok());
  EXPECT_TRUE(CheckHosts(spec, configurations[1]).ok());
  const absl::Status few = CheckHosts(spec, configurations[2]);
  EXPECT_EQ(few.code(), absl::StatusCode::kInvalidArgument);
  testing::ExpectGolden(std::string(few.message()));
}

TEST(SpecTest, HostsOfTheCommandLineReplaceThoseOfTheText) {
  const std::string two =
      absl::StrCat(kBase, "world { nodes: 2 ranks_per_node: 1 }");
  EXPECT_THAT(ParseSpec(two, "s", {"a", "2001:db8::1"}).value().host(),
              ElementsAre("a", "2001:db8::1"));
  EXPECT_THAT(ParseSpec(two + " host: 'c'", "s", {"a", "b"})->host(),
              ElementsAre("a", "b"));
  EXPECT_THAT(ParseSpec(two, "s")->host(), ::testing::IsEmpty());
}

// ---- Errors.

// The messages of Protobuf's parser depend on its version.
TEST(SpecTest, SyntaxErrorHasItsPlaceAndAHint) {
  const std::pair<const char*, const char*> cases[] = {
      {"name: 5 x", "s:1:7: Expected string"},
      {"ranks: 9999999999", "s:1:"},
      {"command: 'p' rank: 1", "named \"rank\""},
      {"comand: 'p'", "did you mean command?"},
      {"batch { sise: 2 }", "did you mean size?"},
      {"batch { xyz: 2 }", "known are size, fixed, argument"},
      {"scaling: STRNG", "did you mean STRONG?"},
      {"batch { fixed: RNK }", "did you mean RANK?"}};
  for (const auto& [text, told] : cases) {
    const absl::Status status = ParseSpec(text, "s").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(told)) << text;
  }
}

// Each of `texts` makes the spec `common` invalid. The messages are golden
// texts.
void ExpectErrors(const std::string& common,
                  const std::vector<std::string>& added) {
  std::string texts;
  for (const std::string& more : added) {
    const absl::Status status =
        ParseSpec(absl::StrCat(common, more), "s").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << more;
    absl::StrAppend(&texts, more, "\n  ", status.message(), "\n");
  }
  testing::ExpectGolden(texts);
}

TEST(SpecTest, ErrorsNameTheFieldAndItsAllowedValues) {
  ExpectErrors("", {"ranks: 1 repeats: 1",
                    "command: 'p' repeats: 1 scaling: WEAK ranks: 1",
                    "command: ['p', '{report}'] scaling: WEAK ranks: 1",
                    "command: ['p', '{report}'] repeats: 1 ranks: 1",
                    "command: ['p', '{report}'] repeats: 2147483647 "
                    "scaling: WEAK ranks: 1"});
  ExpectErrors(kBase,
               {"threads: 1", "ranks: 0", "ranks: [1, 1]",
                "ranks: 2147483647 threads: 2",
                "world { nodes: 65536 ranks_per_node: 65536 } host: 'a'",
                "world { nodes: -1 ranks_per_node: 1 }", "world { nodes: 1 }"});
  ExpectErrors(
      absl::StrCat(kBase, "ranks: 1 "),
      {"threads: -1", "threads: 2147483647", "mapping: 'cpu'",
       "setting { name: 'a' } setting { name: 'a' }",
       "setting { } setting { name: 'a' }",
       "setting { name: 'a' alone: true ranks: 2 }",
       "setting { name: 'a' alone: true launcher_flag: '-x' }",
       "environment { name: 'A=B' }", "batch { size: 2 argument: RANK }",
       "tune { dimension { name: 'd' option { name: 'a' } } }",
       "tune { candidates: -1 }", "warmup_intervals: -1", "host: ''",
       "host: 'b:4'", "time_limit_seconds: nan", "time_limit_seconds: inf",
       "time_limit_seconds: -inf", "time_limit_seconds: -1",
       "time_limit_seconds: 1e999"});
  ExpectErrors(
      "command: ['p', '{report}', '{batch}'] repeats: 1 scaling: ",
      {"STRONG ranks: 3 batch { size: 20 argument: RANK }",
       "WEAK ranks: 2 batch { size: 9223372036854775807 argument: WORLD }",
       "WEAK ranks: 2 batch { argument: WORLD }",
       "WEAK ranks: 2 batch { size: 1 }"});
}

TEST(SpecTest, PlaceholdersAreCheckedInAllTexts) {
  const std::string base = absl::StrCat(kBase, "ranks: 1 ");
  std::vector<std::string> wrong;
  for (const char* place :
       {"launcher_flag: '%'", "environment { name: 'A' value: '%' }",
        "setting { name: 'a' argument: '%' }",
        "setting { name: 'a' launcher_flag: '%' }",
        "setting { name: 'a' environment { name: 'A' value: '%' } }",
        "tune { dimension { name: 'd' option { name: 'a' } option { name: 'b' "
        "argument: '%' } } }"}) {
    const auto at = [&](const char* text) {
      return absl::StrReplaceAll(place, {{"%", text}});
    };
    wrong.insert(wrong.end(), {at("{rank}"), at("{batch}")});
    EXPECT_TRUE(ParseSpec(base + at("{ranks}"), "s").ok()) << place;
  }
  ExpectErrors(base, wrong);
  EXPECT_TRUE(ParseSpec(base + "batch { size: 2 argument: RANK } setting { "
                               "name: 'a' argument: '{batch}' }",
                        "s")
                  .ok());
}

TEST(SpecTest, SpecDirIsReplacedEverywhere) {
  const SweepDirectory directory;
  std::ofstream(directory / "s.txt") << kBase << R"(
      ranks: 1 launcher_flag: "1={spec_dir}"
      environment { name: "A" value: "2={spec_dir}" }
      setting { name: "a" argument: "3={spec_dir}"
        launcher_flag: "4={spec_dir}"
        environment { name: "B" value: "5={spec_dir}" } }
      tune { dimension { name: "d" option { name: "x" } option { name: "y"
        launcher_flag: "6={spec_dir}"
        environment { name: "C" value: "7={spec_dir}" } } } })";
  const absl::StatusOr<Spec> spec = LoadSpec(directory / "s.txt");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const std::string text = Identity(*spec);
  EXPECT_THAT(text, ::testing::Not(HasSubstr("{spec_dir}")));
  for (int i = 1; i <= 7; ++i) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat(i, "=", directory.path(), "\"")));
  }
}

TEST(SpecTest, OtherBracesAreNotPlaceholders) {
  EXPECT_THAT(Keys(absl::StrCat(kBase,
                                "ranks: 1 setting { name: 'a' argument: "
                                "'{\"json\": {}}' }")),
              ::testing::SizeIs(1));
}

TEST(SpecTest, WorldsRepeatsTimeLimitAndHostsMayChange) {
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

TEST(RunOrderTest, EveryRepeatRunsAllInAlternatingDirection) {
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
