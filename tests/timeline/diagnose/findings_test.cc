#include "timeline/diagnose/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/fakes/fake_training.h"

namespace hvdlite::timeline {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Counters = std::vector<std::pair<std::string, std::vector<TraceArg>>>;

std::vector<Finding> Find(const FakeTraining& training) {
  const Trace trace = MakeTrace(training);
  return FindCauses(trace, AnalyzeSteps(trace));
}

// First() checks that the first finding has this cause. Only() also checks that
// there is no other finding.
Finding First(const FakeTraining& training, const std::string& cause) {
  const std::vector<Finding> findings = Find(training);
  EXPECT_FALSE(findings.empty()) << cause;
  if (findings.empty()) return {};
  EXPECT_EQ(findings[0].cause, cause);
  return findings[0];
}
Finding Only(const FakeTraining& training, const std::string& cause) {
  EXPECT_THAT(Find(training), SizeIs(1)) << cause;
  return First(training, cause);
}

auto OfRank(int64_t slow, int64_t own, int64_t others) {
  return [=](int64_t rank, int64_t) { return rank == slow ? own : others; };
}

auto Always(int64_t value) {
  return [=](int64_t, int64_t) { return value; };
}

// Resource use of the threads per second.
struct Use {
  double main_cpu = 0.9;
  double main_delay = 0;
  double progress_cpu = 0.02;
  double progress_delay = 0;
  int64_t threads = 1;
  int64_t minor_faults = 100;
  int64_t major_faults = 0;
  double system_cpu = 0.02;
};

Counters CountersOf(const Use& use) {
  const auto us = [](double seconds) {
    return static_cast<int64_t>(seconds * 1e6);
  };
  return {{"PROGRESS_THREAD",
           {{"cpu_us", us(use.progress_cpu)},
            {"delay_us", us(use.progress_delay)},
            {"involuntary", int64_t{1}}}},
          {"MAIN_THREAD",
           {{"cpu_us", us(use.main_cpu)}, {"delay_us", us(use.main_delay)}}},
          {"COMPUTE_THREADS",
           {{"cpu_us", us(use.main_cpu)},
            {"delay_us", us(use.main_delay)},
            {"threads", use.threads}}},
          {"MEMORY",
           {{"minor_faults", use.minor_faults},
            {"major_faults", use.major_faults},
            {"system_cpu_us", us(use.system_cpu)}}}};
}

auto AllUse(const Use& use) {
  return [use](int64_t) { return CountersOf(use); };
}

TEST(FindingsTest, HealthyTrainingHasNoFindings) {
  FakeTraining training;
  training.counters = AllUse({});
  EXPECT_THAT(Find(training), IsEmpty());
}

TEST(FindingsTest, ASlowRankIsAStraggler) {
  FakeTraining training;
  training.ranks = 4;
  training.host = [](int64_t rank) { return "node" + std::to_string(rank); };
  training.computing_us = OfRank(2, 14'000, 10'000);
  training.counters = AllUse({});
  const Finding found = Only(training, "straggler");
  EXPECT_EQ(found.rank, 2);
  EXPECT_THAT(found.title, HasSubstr("Rank 2 (node2)"));
  EXPECT_NEAR(found.share, 4'000.0 / 14'260, 0.001);
  EXPECT_THAT(found.evidence.back(), HasSubstr("more to compute"));
}

TEST(FindingsTest, WithTwoRanksOnlyTheFasterRanksWaitCounts) {
  FakeTraining training;
  training.computing_us = [](int64_t rank, int64_t step) {
    return rank == 1 && step != 5 ? 11'500 : 10'000;
  };
  const Finding found = Only(training, "straggler");
  EXPECT_EQ(found.rank, 1);
  EXPECT_NEAR(found.share, 0.12, 0.01);
}

TEST(FindingsTest, FewLongStepsDoNotMakeAStraggler) {
  FakeTraining training;
  training.computing_us = [](int64_t rank, int64_t step) {
    return rank == 1 && step % 8 == 0 ? 18'000 : 10'000;
  };
  EXPECT_THAT(Find(training), IsEmpty());
  // The same delay in turns does not make one either.
  training.computing_us = [](int64_t rank, int64_t step) {
    return step % 2 == rank ? 11'500 : 10'000;
  };
  EXPECT_THAT(Find(training), IsEmpty());
}

TEST(FindingsTest, SleepingRankIsDistinguishedFromComputingRank) {
  FakeTraining training;
  training.computing_us = OfRank(1, 20'000, 10'000);
  training.counters = AllUse({.main_cpu = 0.5});
  const Finding found = Only(training, "straggler");
  EXPECT_THAT(found.evidence.back(), HasSubstr("it sleeps"));
}

// In such a step this rank computes 4 ms longer. Ranks are late in turns.
bool IsLate(int64_t rank, int64_t step) {
  return (step * 7 + rank * 3) % 5 < 2;
}

FakeTraining TrainingInTurns() {
  FakeTraining training;
  training.computing_us = [](int64_t rank, int64_t step) {
    return IsLate(rank, step) ? 14'000 : 10'000;
  };
  training.counters = AllUse({});
  return training;
}

TEST(FindingsTest, LatenessInTurnsWithoutEvidenceNamesBothCauses) {
  const FakeTraining training = TrainingInTurns();
  const Finding found = Only(training, "late-in-turns");
  EXPECT_EQ(found.rank, -1);
  EXPECT_THAT(found.title, HasSubstr("the work of their mini-batches"));
  EXPECT_THAT(found.title, HasSubstr("the speed of their cores"));
  EXPECT_THAT(found.remedy, HasSubstr("hvdlite::add_step_work"));
}

TEST(FindingsTest, UnequalWorkIsUnevenData) {
  FakeTraining training = TrainingInTurns();
  training.work = [](int64_t rank, int64_t step) {
    return IsLate(rank, step) ? 1'400 : 1'000;
  };
  training.cpu_us = training.computing_us;
  const Finding found = Only(training, "uneven-data");
  EXPECT_THAT(found.title, HasSubstr("mini-batches differ in work"));
  EXPECT_THAT(found.remedy, HasSubstr("group samples by length"));
}

TEST(FindingsTest, EqualWorkExcludesUnevenData) {
  FakeTraining training = TrainingInTurns();
  training.work = Always(1'000);
  // Without the CPU time, cores or other programs can be the cause.
  Finding found = Only(training, "late-in-turns");
  EXPECT_THAT(found.title, Not(HasSubstr("buckets")));
  // More CPU time for the same work: slower cores.
  training.ranks = 3;
  training.cpu_us = [](int64_t rank, int64_t step) {
    return (IsLate(rank, step) ? 14'000 : 10'000) + (rank == 2 ? 500 : 0);
  };
  found = Only(training, "uneven-cores");
  EXPECT_THAT(found.evidence.back(),
              HasSubstr("median rank = 1: rank 2 (node0, CPUs 2) 1.0"));
  EXPECT_THAT(found.remedy, HasSubstr("physical core of its own"));
}

TEST(FindingsTest, EqualCpuTimeExcludesWorkAndCores) {
  FakeTraining training = TrainingInTurns();
  training.cpu_us = Always(9'900);
  // The threads could run, but had no core.
  training.counters = AllUse({.main_cpu = 0.7, .main_delay = 0.07});
  Finding found = Only(training, "starved-threads");
  EXPECT_THAT(found.title, HasSubstr("wait for a core"));
  // The threads had a core, so they sleep.
  training.counters = AllUse({.main_cpu = 0.7});
  found = Only(training, "late-in-turns");
  EXPECT_THAT(found.title, HasSubstr("do not compute all the time"));
}

TEST(FindingsTest, LoadingInTurnsIsSlowInput) {
  FakeTraining training;
  training.input_us = [](int64_t rank, int64_t step) {
    return IsLate(rank, step) ? 4'000 : 0;
  };
  training.work = Always(1'000);
  const Finding found = First(training, "slow-input");
  EXPECT_THAT(found.title, HasSubstr("late in different steps"));
}

TEST(FindingsTest, RankThatIsLateMostOftenIsNamed) {
  FakeTraining training;
  training.steps = 21;
  training.computing_us = [](int64_t rank, int64_t step) {
    return (step % 10 < 7) == (rank == 1) ? 14'000 : 10'000;
  };
  const Finding found = Only(training, "late-in-turns");
  EXPECT_THAT(found.title, HasSubstr("rank 1 most often"));
}

TEST(FindingsTest, WorkDistinguishesLargerBucketsFromSlowerCores) {
  FakeTraining training;
  training.computing_us = OfRank(1, 14'000, 10'000);
  training.cpu_us = training.computing_us;
  training.work = OfRank(1, 1'400, 1'000);
  Finding found = Only(training, "uneven-data");
  EXPECT_EQ(found.rank, 1);
  EXPECT_THAT(found.title, HasSubstr("larger mini-batches"));
  training.work = Always(1'000);
  found = Only(training, "straggler");
  EXPECT_EQ(found.rank, 1);
  EXPECT_THAT(found.evidence.back(), HasSubstr("CPU time"));
  EXPECT_THAT(found.remedy, Not(HasSubstr("equal work")));
}

TEST(FindingsTest, CauseCostsAtMostTheTimeThatItExplains) {
  FakeTraining training;
  training.input_us = OfRank(1, 5'000, 0);
  training.computing_us = OfRank(1, 14'000, 10'000);
  const Finding found = Only(training, "slow-input");
  // Rank 0 waits 9 ms; loading explains 5 ms.
  EXPECT_NEAR(found.share, 5'000.0 / 19'260, 0.005);
}

TEST(FindingsTest, ProfileReportsInputAndCollectives) {
  TraceMaker maker;
  for (int64_t step = 0; step < 3; ++step) {
    const int64_t start_us = step * 1'000;
    maker.AddSlice(9, 1, "ProfilerStep#" + std::to_string(step), start_us,
                   start_us + 1'000);
    maker.AddSlice(9, 1, "enumerate(DataLoader)#_Iter.__next__", start_us,
                   start_us + 100);
    maker.AddSlice(9, 2, "gloo:all_reduce", start_us + 500, start_us + 900);
  }
  const std::vector<Finding> findings =
      FindCauses(maker.trace, AnalyzeSteps(maker.trace));
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_EQ(findings[0].cause, "profiled-collectives");
  EXPECT_NEAR(findings[0].share, 0.4, 0.001);
  EXPECT_EQ(findings[1].cause, "slow-input");
  EXPECT_NEAR(findings[1].share, 0.1, 0.001);
}

TEST(FindingsTest, SlowInputOfOneRankAndOfAll) {
  FakeTraining training;
  training.input_us = OfRank(1, 5'000, 100);
  Finding found = First(training, "slow-input");
  EXPECT_EQ(found.rank, 1);
  training.input_us = Always(5'000);
  found = Only(training, "slow-input");
  EXPECT_EQ(found.rank, -1);
}

TEST(FindingsTest, PageFaultsOfTheSlowRankAreItsCause) {
  FakeTraining training;
  training.computing_us = OfRank(1, 15'000, 10'000);
  training.counters = [](int64_t rank) {
    return rank == 1 ? CountersOf({.minor_faults = 90'000, .system_cpu = 0.4})
                     : CountersOf({});
  };
  const Finding found = First(training, "page-faults");
  EXPECT_EQ(found.rank, 1);
}

TEST(FindingsTest, FewPageFaultsDoNotExplainASlowRank) {
  FakeTraining training;
  training.computing_us = OfRank(1, 20'000, 10'000);
  // The kernel is busy with something else.
  training.counters = [](int64_t rank) {
    return rank == 1 ? CountersOf({.minor_faults = 3'500, .system_cpu = 0.3})
                     : CountersOf({});
  };
  First(training, "straggler");
  // A thread that always computes does not wait for the disk.
  training.counters = [](int64_t rank) {
    return rank == 1 ? CountersOf({.main_cpu = 1, .major_faults = 40})
                     : CountersOf({});
  };
  First(training, "straggler");
}

TEST(FindingsTest, BackgroundThreadWithoutACoreIsStarved) {
  FakeTraining training;
  training.progress_us = 3'000;
  training.counters = [](int64_t rank) {
    return rank == 1
               ? CountersOf(
                     {.main_delay = 0.1, .progress_delay = 0.2, .threads = 3})
               : CountersOf({});
  };
  const Finding found = First(training, "starved-threads");
  EXPECT_EQ(found.rank, 1);
  EXPECT_THAT(found.remedy, HasSubstr("OMP_WAIT_POLICY=passive"));
}

TEST(FindingsTest, WaitingRankLosesNothingWithoutACore) {
  FakeTraining training;
  training.input_us = OfRank(0, 5'000, 100);
  training.counters = [](int64_t rank) {
    return CountersOf({.main_delay = rank == 1 ? 0.3 : 0.0});
  };
  const Finding found = Only(training, "slow-input");
  EXPECT_EQ(found.rank, 0);
}

TEST(FindingsTest, MoreRanksThanCoresAreOversubscription) {
  FakeTraining training;
  training.ranks = 4;
  training.cpu_list = [](int64_t) { return "0-1"; };
  training.computing_us = [](int64_t rank, int64_t step) {
    return 10'000 + (rank * 31 + step * 17) % 7 * 1'000;
  };
  training.counters = AllUse({.main_cpu = 0.5, .main_delay = 0.45});
  const Finding found = First(training, "oversubscribed");
  EXPECT_THAT(found.title, HasSubstr("4 ranks share 2 cores"));
}

TEST(FindingsTest, RanksThatShareCoresWithoutNeedingThemAreNotOversubscribed) {
  FakeTraining training;
  training.ranks = 4;
  training.cpu_list = [](int64_t) { return "0-1"; };
  training.computing_us = OfRank(1, 14'000, 10'000);
  training.counters = AllUse({.main_cpu = 0.3});
  Only(training, "straggler");
}

TEST(FindingsTest, ManySmallBucketsAreReportedWithTheSetting) {
  FakeTraining training;
  training.buckets = 40;
  training.bucket_us = 60;
  training.bucket_bytes = 32 << 10;
  training.facts = {{"fusion_threshold_bytes", int64_t{32} << 10}};
  const Finding found = First(training, "small-buckets");
  EXPECT_THAT(found.remedy, HasSubstr("HVDLITE_FUSION_THRESHOLD"));
}

TEST(FindingsTest, SlowNetworkIsDistinguishedFromASlowNode) {
  FakeTraining training;
  training.bucket_us = 8'000;
  Finding found = Only(training, "slow-data-plane");
  EXPECT_THAT(found.title, HasSubstr("Reducing"));
  training.host = [](int64_t rank) { return "node" + std::to_string(rank); };
  found = Only(training, "slow-data-plane");
  EXPECT_THAT(found.title, HasSubstr("network"));
  training.algorithm = "shared memory, hierarchical";
  EXPECT_THAT(Find(training).at(0).title, HasSubstr("network"));
  training.algorithm = "shared memory, two-shot";
  EXPECT_THAT(Find(training).at(0).title, HasSubstr("Reducing"));
}

TEST(FindingsTest, BackgroundThreadsWithoutACoreExcludeASlowNetwork) {
  FakeTraining training;
  training.bucket_us = 8'000;
  training.host = [](int64_t rank) { return "node" + std::to_string(rank); };
  training.counters = AllUse({.progress_cpu = 0.02, .progress_delay = 0.02});
  const Finding found = Only(training, "slow-data-plane");
  EXPECT_THAT(found.title, Not(HasSubstr("network")));
  EXPECT_THAT(found.remedy, HasSubstr("leave a core"));
}

TEST(FindingsTest, BucketsThatCollectTooLongStartLate) {
  FakeTraining training;
  training.bucket_us = 4'000;
  training.facts = {{"min_batch_bytes", int64_t{4} << 20}};
  Only(training, "late-buckets");
}

TEST(FindingsTest, StartIsReportedLastAsAPartOfTheRun) {
  FakeTraining training;
  training.steps = 5;
  training.computing_us = [](int64_t rank, int64_t step) {
    return step == 1 ? 100'000 : rank == 1 ? 14'000 : 10'000;
  };
  const std::vector<Finding> findings = Find(training);
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_EQ(findings[0].cause, "straggler");
  EXPECT_EQ(findings[1].cause, "start-up");
  EXPECT_TRUE(findings[1].of_run);
}

// A timeline of Horovod: a process is a tensor, and ticks mark when a rank was
// ready.
Trace HorovodTrace(int64_t first_tick_us, int64_t last_tick_us) {
  TraceMaker maker;
  for (int64_t i = 0; i < 10; ++i) {
    const int64_t start_us = i * 1'000;
    maker.AddSlice(1, 0, "NEGOTIATE_ALLREDUCE", start_us, start_us + 800);
    maker.AddSlice(1, 0, "0", start_us + first_tick_us,
                   start_us + first_tick_us);
    maker.AddSlice(1, 0, "1", start_us + last_tick_us, start_us + last_tick_us);
    maker.AddSlice(1, 0, "ALLREDUCE", start_us + 800, start_us + 1'000);
  }
  return maker.trace;
}

TEST(FindingsTest, HorovodsTicksDistinguishALateRankFromLateThreads) {
  Trace trace = HorovodTrace(10, 700);
  std::vector<Finding> findings = FindCauses(trace, AnalyzeSteps(trace));
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].cause, "negotiation");
  EXPECT_EQ(findings[0].title, "Rank 1 is ready later than the others");
  EXPECT_NEAR(findings[0].share, 0.8, 1e-9);
  trace = HorovodTrace(10, 30);
  findings = FindCauses(trace, AnalyzeSteps(trace));
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_THAT(findings[0].title, HasSubstr("background threads are late"));
}

TEST(FindingsTest, TraceWithoutStepsHasNoFindings) {
  TraceMaker maker;
  maker.AddSlice(0, 0, "ALLREDUCE", 0, 100);
  EXPECT_THAT(FindCauses(maker.trace, AnalyzeSteps(maker.trace)), IsEmpty());
  EXPECT_THAT(FindCauses(Trace(), AnalyzeSteps(Trace())), IsEmpty());
}

}  // namespace
}  // namespace hvdlite::timeline
