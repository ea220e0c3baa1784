// Sums with the same bits, however tensors become ready and buckets are formed;
// one rank per process.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collective/communicator.h"
#include "collective/mpi/mpi_communicator.h"
#include "collective/shm/shm_communicator.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/engine/coordinator.h"
#include "tests/testing/fakes/sum_operation.h"

namespace hvdlite::negotiation {
namespace {

constexpr int kRuns = 20;
constexpr size_t kElements[] = {1, 7, 64, 1000, 4097, 30000, 250, 3};

std::vector<float> ValuesOf(int rank, size_t tensor) {
  std::mt19937 random(static_cast<uint32_t>(rank) * 100 +
                      static_cast<uint32_t>(tensor));
  std::vector<float> values(kElements[tensor]);
  for (float& value : values) {
    value = static_cast<float>(random()) / 4e9f - 0.5f;
  }
  return values;
}

// The sum of all ranks' values, nodes first. With this many elements, adding in
// any other order gives other bits somewhere.
std::vector<float> Expected(const std::vector<int>& node_of_rank,
                            size_t tensor) {
  std::map<int, std::vector<float>> of_node;
  for (size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    const std::vector<float> values = ValuesOf(static_cast<int>(rank), tensor);
    std::vector<float>& sums = of_node[node_of_rank[rank]];
    if (sums.empty()) {
      sums = values;
      continue;
    }
    for (size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
  }
  std::vector<float> total = of_node.begin()->second;
  for (auto node = std::next(of_node.begin()); node != of_node.end(); ++node) {
    for (size_t i = 0; i < total.size(); ++i) total[i] += node->second[i];
  }
  return total;
}

struct World {
  std::unique_ptr<collective::MpiSession> session;
  std::unique_ptr<collective::Communicator> communicator;
  collective::Topology topology;
};

// A world that adds in rank order, with shared memory inside the nodes of
// `node_of_rank`; without shared memory if it is empty.
World MakeWorld(const std::vector<int>& node_of_rank) {
  World world;
  world.session = collective::MpiSession::Start().value();
  world.topology = world.session->topology();
  world.communicator = collective::CreateRankOrderCommunicator(
      collective::CreateMpiCommunicator().value());
  if (node_of_rank.empty()) return world;
  auto shared = collective::CreateShmCommunicator(
      world.communicator, node_of_rank,
      collective::AllreduceTable::BuiltIn().WithOneOrder());
  EXPECT_TRUE(shared.ok()) << shared.status();
  world.communicator = *std::move(shared);
  return world;
}

// One run: the order of tensors depends on rank and run, the size of buckets on
// the run.
std::vector<std::vector<float>> Sums(World& world, int run) {
  const base::SteadyClock clock;
  const base::Logger logger(base::Severity::kWarning, -1);
  const auto channel = CreateMpiChannel().value();
  CoordinatorOptions options;
  options.config.min_batch_bytes = 1 << (run % 17);
  options.config.fusion_threshold_bytes = 100 << (run % 12);
  options.config.chunk_bytes = 64 << (run % 10);
  const auto coordinator = std::make_unique<Coordinator>(
      options,
      CoordinatorEnvironment{*channel, *world.communicator, world.topology,
                             clock, logger, [](const absl::Status&) {}});
  std::vector<std::vector<float>> values;
  std::vector<size_t> order(std::size(kElements));
  std::iota(order.begin(), order.end(), 0);
  for (const size_t tensor : order) {
    values.push_back(ValuesOf(world.communicator->rank(), tensor));
  }
  std::shuffle(order.begin(), order.end(),
               std::mt19937(static_cast<uint32_t>(run * 100 +
                                                  world.communicator->rank())));
  std::vector<std::shared_ptr<const Completion>> completions;
  for (const size_t tensor : order) {
    completions.push_back(coordinator
                              ->Submit(hvdlite::testing::Sum(
                                  absl::StrCat("t", tensor), values[tensor]))
                              .value());
  }
  for (const auto& completion : completions) {
    EXPECT_TRUE(coordinator->Wait(*completion).ok());
  }
  EXPECT_TRUE(
      coordinator->Shutdown("the run is over", absl::InfiniteDuration(), {})
          .ok());
  return values;
}

void ExpectSameBitsInEveryRun(const std::vector<int>& node_of_rank) {
  World world = MakeWorld(node_of_rank);
  const std::vector<int> nodes = node_of_rank.empty()
                                     ? std::vector<int>(world.topology.size, 0)
                                     : node_of_rank;
  for (int run = 0; run < kRuns; ++run) {
    const std::vector<std::vector<float>> sums = Sums(world, run);
    for (size_t tensor = 0; tensor < sums.size(); ++tensor) {
      ASSERT_EQ(sums[tensor], Expected(nodes, tensor))
          << "tensor " << tensor << " in run " << run;
    }
  }
}

int WorldSize() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

TEST(MpiDeterministicTest, ThroughMpiAlone) { ExpectSameBitsInEveryRun({}); }

TEST(MpiDeterministicTest, ThroughSharedMemory) {
  ExpectSameBitsInEveryRun(std::vector<int>(WorldSize(), 0));
}

TEST(MpiDeterministicTest, ThroughSharedMemoryAndMpi) {
  if (WorldSize() != 4) GTEST_SKIP() << "needs two nodes of two ranks";
  ExpectSameBitsInEveryRun({0, 0, 1, 1});
}

}  // namespace
}  // namespace hvdlite::negotiation
