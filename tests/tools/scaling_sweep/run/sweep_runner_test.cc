#include "tools/scaling_sweep/run/sweep_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/fakes/sweep_directory.h"
#include "tools/scaling_sweep/report/scaling_table.h"
#include "tools/scaling_sweep/run/spec.h"

namespace hvdlite::scaling_sweep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Returns the output of hvdliterun --dry-run=json for two ranks on these hosts.
std::string PlanOn(const std::string& hosts) {
  return absl::StrCat(R"({"format":1,"openmp":"none","environment":[],)",
                      R"("openblas_core_here":"","hosts":[)", hosts, "]}");
}

std::string Planned(const std::string& names) {
  return absl::StrCat(R"({"planned":true,"names":[)", names,
                      R"(],"ranks":[{"threads":2,"oversubscribed":false,)",
                      R"("environment":[]}]})");
}

class SweepRunnerTest : public ::testing::Test {
 protected:
  void LauncherIs(const std::string& script) {
    launcher_ = directory_ / "launcher";
    std::ofstream(launcher_) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(launcher_, std::filesystem::perms::owner_all);
  }
  // Makes a launcher that always prints `plan`.
  void PlanIs(const std::string& plan) {
    LauncherIs(absl::StrCat("cat <<'END'\n", plan, "\nEND"));
  }
  void Use(const std::string& more) {
    const absl::StatusOr<Spec> spec = ParseSpec(
        absl::StrCat("name: 't' command: ['/bin/sh', '-c', 'echo \"$1\" > "
                     "\"$0\"', '{report}', '{\"items_per_second\": 1, "
                     "\"threads_per_rank\": 4",
                     reported_, "}'] repeats: 1 scaling: STRONG traces: NONE ",
                     more),
        "s");
    ASSERT_TRUE(spec.ok()) << spec.status();
    spec_ = *spec;
    configurations_ = Configurations(spec_).value();
    results_ = ResultsFile::Open(directory_ / "out", spec_).value();
    runner_.emplace(
        RunnerOptions{.spec = spec_,
                      .launcher = launcher_,
                      .machine = {.host = "here.site", .cores = 2, .cpus = 4},
                      .environment = base::FakeEnvironment({}),
                      .cpu_seconds = [this] { return cpu_seconds_(); }},
        *results_, stop_, out_);
  }
  absl::StatusOr<std::optional<LaunchPlan>> Plan(size_t configuration) {
    return runner_->PlanFor(configurations_.at(configuration));
  }
  // Runs all configurations.
  std::vector<Sample> Samples() {
    EXPECT_TRUE(
        runner_->RunAll(configurations_, RunOrder(configurations_.size(), 1))
            .ok());
    return results_->samples();
  }

  SweepDirectory directory_;
  std::string launcher_;
  std::string reported_;  // what the program reports besides speed and threads
  std::function<support::CpuSeconds()> cpu_seconds_ = [] {
    return support::CpuSeconds();
  };
  Spec spec_;
  std::vector<Configuration> configurations_;
  std::optional<ResultsFile> results_;
  support::SignalPipe stop_;
  std::ostringstream out_;
  std::optional<SweepRunner> runner_;
};

TEST_F(SweepRunnerTest, RanksOnMoreHostsThanNodesAreAnError) {
  // This also holds without a plan for the ranks.
  for (const std::string& hosts :
       {Planned(R"("a","b")"),
        std::string(R"({"planned":false,"names":["a","b"]})")}) {
    PlanIs(PlanOn(hosts));
    Use("ranks: 2");
    const absl::Status status = Plan(0).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr("2 ranks, on 2 hosts, not on 1; in a batch job"),
              HasSubstr("--hosts n1,n2")));
    EXPECT_EQ(runner_->RunAll(configurations_, {{0, 0}}), status);
    EXPECT_TRUE(results_->samples().empty());
    results_.reset();
  }
}

TEST_F(SweepRunnerTest, RanksOnAsManyHostsAsNodesAreAccepted) {
  PlanIs(PlanOn(Planned(R"("here","there")")));
  Use("world { nodes: 2 ranks_per_node: 1 } host: ['here', 'there']");
  const auto plan = Plan(0);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(plan->has_value());
  EXPECT_EQ((*plan)->threads, 2);
}

TEST_F(SweepRunnerTest, PlanIsCheckedOnlyForTheHostsInUse) {
  PlanIs(PlanOn(Planned(R"("here","there")")));
  Use("world { nodes: 1 ranks_per_node: 1 } world { nodes: 2 ranks_per_node: 1 "
      "} host: ['there', 'here']");
  EXPECT_FALSE(Plan(0).value().has_value());
  EXPECT_TRUE(Plan(1).value().has_value());
}

TEST_F(SweepRunnerTest, InterruptedSweepContinuesOnOtherHosts) {
  // The stop signal comes while the second run is under way.
  launcher_ = directory_ / "launcher";
  std::ofstream(launcher_) << "#!/bin/sh\n"
                              "echo \"$*\" >> '"
                           << (directory_ / "calls") << "'\n"
                           << "if [ $(wc -l < '" << (directory_ / "calls")
                           << "') = 2 ]; then\n"
                           << "  kill -TERM " << getpid()
                           << "; exec tail -f /dev/null\n"
                           << "fi\n"
                              "while [ \"$1\" != /bin/sh ]; do shift; done\n"
                              "exec \"$@\"\n";
  std::filesystem::permissions(launcher_, std::filesystem::perms::owner_all);
  const std::string worlds =
      "world { nodes: 1 ranks_per_node: 1 } world { nodes: 2 ranks_per_node: 1 "
      "} world { nodes: 2 ranks_per_node: 2 } host: ";
  Use(worlds + "['a', 'b']");
  const std::vector<PlannedRun> all = {{0, 0}, {1, 0}, {2, 0}};
  EXPECT_TRUE(absl::IsCancelled(runner_->RunAll(configurations_, all)));
  EXPECT_EQ(results_->samples().size(), 1u);
  runner_.reset();
  results_.reset();

  Use(worlds + "['c', 'd', 'e']");
  ASSERT_TRUE(runner_->RunAll(configurations_, all).ok());
  results_.reset();
  std::vector<std::string> hosts;
  const Results results = ReadResults(directory_ / "out").value();
  for (const Sample& sample : results.samples) {
    EXPECT_TRUE(sample.items_per_second.has_value()) << sample.failure;
    hosts.push_back(sample.command.at(4));
  }
  EXPECT_THAT(hosts, ::testing::ElementsAre("a:1", "c:1,d:1", "c:2,d:2"));
  const auto table = MakeTable(results, ReadSharesBelow(directory_ / "out"));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->rows.size(), 3u);
}

TEST_F(SweepRunnerTest, DefaultThreadsWithoutLauncherMayUseHardwareThreads) {
  Use("ranks: 1 setting { name: 'own' alone: true } "
      "setting { name: 'asked' alone: true threads: 4 }");
  const std::vector<Sample> samples = Samples();
  ASSERT_EQ(samples.size(), 2u);
  for (const Sample& sample : samples) {
    EXPECT_EQ(sample.failure, "");
    EXPECT_EQ(sample.threads_used, 4);
    EXPECT_EQ(sample.oversubscribed, sample.setting == "asked");
  }
}

TEST_F(SweepRunnerTest, FactsOfThisMachineCompleteTheReport) {
  const auto machine_of = [&](const std::string& host) {
    reported_ = absl::StrCat(", \"machine\": {\"host\": \"", host,
                             "\", \"kernel\": \"K\", \"LibTorch\": \"9\"}");
    Use("ranks: 1 setting { name: 'own' alone: true }");
    return Samples().at(0).machine;
  };
  const auto words = support::DescribeMachine();
  std::map<std::string, std::string> here(words.begin(), words.end());
  here["kernel"] = "K";
  here["LibTorch"] = "9";
  EXPECT_EQ(machine_of(here.at("host")), here);
  std::filesystem::remove_all(directory_ / "out");
  EXPECT_EQ(machine_of("another"),
            (std::map<std::string, std::string>{
                {"host", "another"}, {"kernel", "K"}, {"LibTorch", "9"}}));
}

TEST_F(SweepRunnerTest, TimeOfOtherProgramsExcludesTheRun) {
  // In each run the machine uses 1000 s of CPU time, the run itself `run`.
  const auto told_of = [&](double run, const std::string& worlds) {
    cpu_seconds_ = [run, looks = 1]() mutable {
      const int look = looks++;
      return support::CpuSeconds{.machine = 1000.0 * look,
                                 .children = run * look};
    };
    Use(worlds);
    const std::vector<Sample> samples = Samples();
    results_.reset();
    std::filesystem::remove_all(directory_ / "out");
    return samples.at(0).machine;
  };
  const std::string alone = "ranks: 1 setting { name: 'own' alone: true }";
  EXPECT_EQ(
      told_of(1000, alone).at("other programs"),
      absl::StrCat("0.00 of ", support::OnlineCpus().size(), " CPUs: quiet"));
  EXPECT_THAT(told_of(0, alone).at("other programs"), HasSubstr("busy"));
  // On another host the time of this machine does not count.
  LauncherIs("while [ \"$1\" != /bin/sh ]; do shift; done\nexec \"$@\"");
  EXPECT_EQ(told_of(0, "ranks: 1 host: 'there'").count("other programs"), 0u);
  reported_ = R"(, "machine": {"host": "another"})";
  EXPECT_EQ(told_of(0, alone).count("other programs"), 0u);
}

TEST_F(SweepRunnerTest, SpecLimitsTheCores) {
  Use("ranks: 1 cores_per_node: 2 setting { name: 'own' alone: true }");
  EXPECT_TRUE(Samples().at(0).oversubscribed);
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
