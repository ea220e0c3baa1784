#include "tools/scale_sim/simulation.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/protocol/messages.pb.h"
#include "tools/scale_sim/network.h"
#include "tools/scale_sim/report.h"
#include "tools/scale_sim/workload.h"

namespace hvdlite::scale_sim {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Round numbers whose sums show which parameters they contain.
LinkParameters Link() {
  return {.latency_us = 1000, .overhead_us = 10, .gap_us = 1, .ns_per_byte = 0};
}

SimulationOptions OneTensorOn(int ranks) {
  SimulationOptions options;
  options.ranks = ranks;
  options.network.within_node = options.network.between_nodes = Link();
  options.workload = OneTensor();
  return options;
}

SimulationOptions TrainingOn(int ranks) {
  SimulationOptions options = OneTensorOn(ranks);
  options.network.between_nodes = *LinkPreset("infiniband");
  options.workload = Training(40);
  return options;
}

SimulationResult Simulated(const SimulationOptions& options) {
  absl::StatusOr<SimulationResult> result = Simulate(options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : SimulationResult();
}

double LatencyOn(int ranks) {
  return DistributionOf(Simulated(OneTensorOn(ranks)).bucket_latency_us).max;
}

TEST(NetworkTest, MessageTakesTheSumOfItsLogGpParameters) {
  NetworkParameters parameters;
  parameters.between_nodes = {
      .latency_us = 100, .overhead_us = 10, .gap_us = 1, .ns_per_byte = 2};
  Network network(parameters, 2);
  const Network::Departure departure = network.Send(0, 1, 51, 5000);
  EXPECT_EQ(departure.sent_ns, 5000 + 10'000);
  EXPECT_EQ(departure.arrival_ns, 5000 + 10'000 + 100'000 + 50 * 2);
  EXPECT_EQ(network.Receive(0, 1, 51, departure.arrival_ns),
            departure.arrival_ns + 10'000);
}

TEST(NetworkTest, PortHasAGapBetweenMessagesAndIsBusyWithTheirBytes) {
  NetworkParameters parameters;
  parameters.between_nodes = {
      .latency_us = 100, .overhead_us = 1, .gap_us = 30, .ns_per_byte = 2};
  Network network(parameters, 3);
  EXPECT_EQ(network.Send(0, 1, 51, 0).sent_ns, 1000);
  EXPECT_EQ(network.Send(0, 2, 1, 1000).sent_ns, 30'000 + 50 * 2 + 1000);
  EXPECT_EQ(network.Receive(1, 0, 1, 500'000), 500'000 + 1000);
  EXPECT_EQ(network.Receive(2, 0, 51, 501'000), 530'000 + 50 * 2 + 1000);
}

TEST(NetworkTest, RanksOfANodeUseTheLinkWithinIt) {
  NetworkParameters parameters;
  parameters.within_node = {.latency_us = 1};
  parameters.between_nodes = {.latency_us = 100};
  parameters.ranks_per_node = 2;
  Network network(parameters, 4);
  EXPECT_EQ(network.Send(2, 3, 1, 0).arrival_ns, 1000);
  EXPECT_EQ(network.Send(1, 2, 1, 0).arrival_ns, 100'000);
}

TEST(NetworkTest, JitterDelaysMessagesButKeepsTheirOrder) {
  NetworkParameters parameters;
  parameters.between_nodes = {.latency_us = 100};
  parameters.jitter = 0.5;
  Network network(parameters, 2);
  int64_t last_ns = 0;
  int delayed = 0;
  for (int64_t now_ns = 0; now_ns < 1000; ++now_ns) {
    const int64_t arrival_ns = network.Send(0, 1, 1, now_ns).arrival_ns;
    EXPECT_GE(arrival_ns, last_ns);
    EXPECT_GE(arrival_ns, now_ns + 100'000);
    if (arrival_ns > now_ns + 100'000) ++delayed;
    last_ns = arrival_ns;
  }
  EXPECT_GT(delayed, 900);
}

TEST(NetworkTest, ExponentialDrawsHaveTheGivenMean) {
  std::mt19937_64 random(1);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) sum += DrawExponential(0.25, random);
  EXPECT_NEAR(sum / 10000, 0.25, 0.01);
}

TEST(WorkloadTest, TrainingHasResnet50sGradientsSpreadOverBackward) {
  const Workload workload = Training(161);
  ASSERT_THAT(workload.requests, SizeIs(161));
  int64_t bytes = 0;
  for (const auto& request : workload.requests) bytes += request.size_bytes();
  EXPECT_EQ(bytes, 4 * 25'557'032);
  EXPECT_DOUBLE_EQ(workload.ready_fraction.front(), 1.0 / 161);
  EXPECT_DOUBLE_EQ(workload.ready_fraction.back(), 1);
}

// The bytes of a directive that only asks for reports.
double BytesOfAsking() {
  negotiation::wire::Message message;
  message.mutable_directive()->set_awaits_reports(true);
  return static_cast<double>(message.ByteSizeLong());
}

TEST(SimulationTest, TwoRanksStartAfterOneReportOneDirectiveAndTheGate) {
  SimulationOptions options = OneTensorOn(2);
  options.network.between_nodes.ns_per_byte = 100;
  const SimulationResult result = Simulated(options);
  // Rank 1 sends a report, and a few bytes when it is at the gate.
  constexpr double kGateBytes = 4;
  const double report_bytes =
      result.steady.bytes[1] / options.steps - kGateBytes;
  // The root waits first and has asked for the report, which is on its way.
  const double directive_bytes =
      result.steady.bytes[0] / options.steps - BytesOfAsking();
  const Distribution latency = DistributionOf(result.bucket_latency_us);
  const double up = 10 + 1000 + (report_bytes - 1) * 0.1 + 10;
  const double down = 10 + 1000 + (directive_bytes - 1) * 0.1 + 10;
  const double gate = 10 + 1000 + (kGateBytes - 1) * 0.1 + 10;
  // The directive also says that the root is at the gate. Rank 1 starts at
  // once, and the root when rank 1's message arrives. Tolerance: a few bytes.
  EXPECT_NEAR(latency.max, up + down + gate, 1);
  const auto first = *std::min_element(result.bucket_latency_us.begin(),
                                       result.bucket_latency_us.end());
  EXPECT_NEAR(first, up + down + 10, 1);
}

TEST(SimulationTest, LatencyGrowsByTheSameAmountPerLevelOfTheTree) {
  // Full trees of 2, 3 and 4 levels below the root, 8 children each.
  const double two = LatencyOn(1 + 8 + 64);
  const double three = LatencyOn(1 + 8 + 64 + 512);
  const double four = LatencyOn(1 + 8 + 64 + 512 + 4096);
  EXPECT_NEAR(four - three, three - two, 1e-2);
  // One more message up and one down, which queue behind those of 7 siblings.
  // The same for the gate, but messages on their way up do not queue.
  EXPECT_NEAR(
      four - three,
      2 * (1000 + 10 + 8 * 10) + (1000 + 10 + 10) + (1000 + 10 + 8 * 10), 1e-2);
}

TEST(SimulationTest, RootReceivesArityMessagesPerDecisionWhenSteady) {
  for (const int arity : {2, 8, 31}) {
    for (const int ranks : {64, 1024}) {
      SimulationOptions options = OneTensorOn(ranks);
      options.tree_arity = arity;
      options.network.jitter = 0.5;
      options.compute_jitter = 0.01;
      const SimulationResult result = Simulated(options);
      EXPECT_EQ(result.root_children, arity);
      EXPECT_EQ(result.steady.decisions, options.steps);
      // A report, and a message that the ranks below are at the gate.
      EXPECT_EQ(result.steady.root_received, 2 * arity * options.steps);
      // It asks each child for its report, and sends the decision and a message
      // that the others are at the gate.
      EXPECT_LE(result.steady.messages[0], 3 * arity * options.steps);
    }
  }
}

TEST(SimulationTest, BytesOfARankDoNotDependOnTheSizeOfTheWorld) {
  const SimulationOptions few = OneTensorOn(73);
  const SimulationOptions many = OneTensorOn(4681);
  const SimulationResult with_few = Simulated(few);
  const SimulationResult with_many = Simulated(many);
  // Numbers of ranks take one byte more; a step has nine messages of rank 1.
  EXPECT_NEAR(static_cast<double>(with_many.steady.bytes[1]),
              static_cast<double>(with_few.steady.bytes[1]), 9 * few.steps);
  // The same is true while names are announced.
  EXPECT_NEAR(static_cast<double>(with_many.warmup.bytes[1]),
              static_cast<double>(with_few.warmup.bytes[1]),
              9 * few.warmup_steps);
}

TEST(SimulationTest, StragglerDelaysTheStepButNotTheNegotiation) {
  SimulationOptions options = OneTensorOn(64);
  const SimulationResult punctual = Simulated(options);
  options.stragglers = 1;
  options.straggler_delay_ms = 500;
  const SimulationResult late = Simulated(options);
  ASSERT_EQ(late.step_ms.size(), punctual.step_ms.size());
  for (size_t i = 0; i < late.step_ms.size(); ++i) {
    EXPECT_NEAR(late.step_ms[i], punctual.step_ms[i] + 500, 5);
  }
  EXPECT_THAT(punctual.lateness_us, Each(0));
  EXPECT_THAT(late.lateness_us, Each(500'000));
  // The others have reported before, so only the straggler's path remains.
  EXPECT_LE(DistributionOf(late.bucket_latency_us).max,
            DistributionOf(punctual.bucket_latency_us).max);
}

TEST(SimulationTest, EveryTensorOfTrainingStartsOnceOnEveryRank) {
  SimulationOptions options = TrainingOn(30);
  options.network.ranks_per_node = 4;
  options.compute_jitter = 0.1;
  options.network.jitter = 1;
  options.cost.bucket_us = 2000;
  const SimulationResult result = Simulated(options);
  EXPECT_THAT(result.tensor_latency_us,
              AllOf(SizeIs(30 * 40 * options.steps), Each(Gt(0))));
  EXPECT_THAT(result.bucket_latency_us,
              SizeIs(30 * static_cast<size_t>(result.steady.decisions)));
  EXPECT_THAT(result.step_ms, SizeIs(options.steps));
}

TEST(SimulationTest, BucketsTakeTheTimeOfTheCostModel) {
  SimulationOptions options = OneTensorOn(8);
  const double free_ms = Simulated(options).step_ms.front();
  options.cost.bucket_us = 7000;
  EXPECT_NEAR(Simulated(options).step_ms.front(), free_ms + 7, 1e-3);
}

TEST(SimulationTest, ReportsWaitUntilTheyFillABucket) {
  SimulationOptions options = TrainingOn(64);
  const Traffic steady = Simulated(options).steady;
  // Two messages of each child per bucket (a report and its gate), and urgent
  // marks of ranks that wait.
  EXPECT_LE(steady.root_received,
            options.tree_arity * (2 * steady.decisions + options.steps));
  options.min_batch_bytes = 1;
  EXPECT_GT(Simulated(options).steady.messages[63], 2 * steady.messages[63]);
}

TEST(SimulationTest, SubmissionsOfAStragglerAreCollected) {
  SimulationOptions options = TrainingOn(8);
  options.seed = 2;  // the straggler is not the root
  options.stragglers = 1;
  options.straggler_delay_ms = 500;
  const auto messages = [&] {
    const Traffic steady = Simulated(options).steady;
    return std::accumulate(steady.messages.begin(), steady.messages.end(),
                           int64_t{0});
  };
  options.gather_us = 0;
  const int64_t apart = messages();
  options.gather_us = 10'000;  // four gradients
  EXPECT_LT(messages(), apart);
}

TEST(SimulationTest, SameSeedGivesTheSameResultAndOtherSeedsDoNot) {
  SimulationOptions options = TrainingOn(50);
  options.network.jitter = 0.5;
  options.compute_jitter = 0.1;
  options.stragglers = 3;
  options.straggler_delay_ms = 20;
  const SimulationResult first = Simulated(options);
  const SimulationResult second = Simulated(options);
  EXPECT_EQ(first.tensor_latency_us, second.tensor_latency_us);
  EXPECT_EQ(first.steady.bytes, second.steady.bytes);
  EXPECT_EQ(first.bucket_latency_us, second.bucket_latency_us);
  SimulationOptions other = options;
  other.seed = 2;
  EXPECT_NE(Simulated(other).lateness_us, first.lateness_us);
  other = options;
  other.network.seed = 2;
  EXPECT_NE(Simulated(other).bucket_latency_us, first.bucket_latency_us);
}

TEST(ReportTest, DistributionHasMedianPercentileAndMaximum) {
  std::vector<float> samples;
  for (int i = 1000; i >= 0; --i) samples.push_back(static_cast<float>(i));
  const Distribution distribution = DistributionOf(samples);
  EXPECT_EQ(distribution.median, 500);
  EXPECT_EQ(distribution.p99, 990);
  EXPECT_EQ(distribution.max, 1000);
}

TEST(ReportTest, LoadIsPerRankStepAndDecision) {
  const Traffic traffic = {.messages = {8, 4},
                           .bytes = {100, 20},
                           .root_received = 12,
                           .root_received_bytes = 60,
                           .decisions = 4};
  const Load load = LoadOf(traffic, 2);
  EXPECT_EQ(load.mean_messages, 3);
  EXPECT_EQ(load.max_messages, 4);
  EXPECT_EQ(load.mean_bytes, 30);
  EXPECT_EQ(load.max_bytes, 50);
  EXPECT_EQ(load.root_received_per_decision, 3);
  EXPECT_EQ(load.root_sent_per_decision, 2);
  EXPECT_EQ(load.root_received_bytes, 30);
  EXPECT_EQ(load.decisions, 2);
}

TEST(ReportTest, TableAndJsonHaveARowPerWorld) {
  const SimulationOptions options = OneTensorOn(2);
  const std::vector<Row> rows = {RowOf(options, Simulated(options))};
  std::ostringstream table;
  PrintTable(rows, table);
  EXPECT_THAT(table.str(), HasSubstr("\n    2      8       1  "));
  const auto json = nlohmann::json::parse(ToJson(options, rows));
  EXPECT_EQ(json["worlds"].size(), 1u);
  EXPECT_EQ(json["worlds"][0]["ranks"], 2);
  EXPECT_EQ(json["worlds"][0]["steady"]["root_received_per_decision"], 2);
  EXPECT_NEAR(json["worlds"][0]["bucket_latency_us"]["max"].get<double>(), 3060,
              1e-3);
}

TEST(ProgressTest, AllGradientsOfAllStepsAreReported) {
  SimulationOptions options = TrainingOn(4);
  int told = 0;
  options.on_progress = [&](int tensors) { told += tensors; };
  ASSERT_TRUE(Simulate(options).ok());
  EXPECT_EQ(told, 40 * (options.warmup_steps + options.steps));
}

}  // namespace
}  // namespace hvdlite::scale_sim
