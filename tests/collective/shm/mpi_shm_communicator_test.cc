// Ranks that are processes, on nodes from MPI or from the test.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "collective/mpi/mpi_communicator.h"
#include "collective/shm/shm_communicator.h"
#include "tests/collective/shm/shm_ranks.h"
#include "tests/collective/shm/zero_copy_tensors.h"
#include "tests/testing/conformance/communicator_conformance.h"

namespace hvdlite::testing {
namespace {

using collective::AllreduceTable;

int WorldSize() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

std::vector<int> OneNode() { return std::vector<int>(WorldSize(), 0); }

// Ranks 0, 2, 4, ... on one node, the others on another.
std::vector<int> Alternating() {
  std::vector<int> nodes;
  for (int rank = 0; rank < WorldSize(); ++rank) nodes.push_back(rank % 2);
  return nodes;
}

// The last rank on its own node.
std::vector<int> Unequal() {
  std::vector<int> nodes = OneNode();
  nodes.back() = 1;
  return nodes;
}

// The first and the last rank on one node, the ranks between them on another.
std::vector<int> OneAroundAnother() {
  std::vector<int> nodes(WorldSize(), 1);
  nodes.front() = nodes.back() = 0;
  return nodes;
}

std::vector<int> RealNodes() {
  auto session = collective::MpiSession::Start();
  EXPECT_TRUE(session.ok()) << session.status();
  return (*session)->topology().cross_rank_of_rank;
}

// Shared memory if nodes have several ranks, otherwise only MPI.
void RunOn(const std::vector<int>& node_of_rank,
           const std::function<void(Communicator&)>& body) {
  auto flat =
      collective::CreateMpiCommunicator({.ring_from_bytes = 1,
                                         .segment_bytes = 192,
                                         .segments_within_nodes = true});
  ASSERT_TRUE(flat.ok()) << flat.status();
  auto communicator = collective::CreateShmCommunicator(
      *flat, node_of_rank, *AllreduceTable::Parse(kMixedTable));
  if (absl::IsFailedPrecondition(communicator.status())) {
    // Every node has one rank.
    for (const int node : node_of_rank) {
      EXPECT_EQ(std::count(node_of_rank.begin(), node_of_rank.end(), node), 1);
    }
    communicator = *std::move(flat);
  }
  ASSERT_TRUE(communicator.ok()) << communicator.status();
  body(**communicator);
  EXPECT_TRUE((*communicator)->Barrier().ok());
}

ConformanceBackend BackendOn(std::string name, std::vector<int> (*nodes)()) {
  return {.name = std::move(name),
          .run_ranks = [nodes](const std::function<void(Communicator&)>& body) {
            RunOn(nodes(), body);
          }};
}

INSTANTIATE_TEST_SUITE_P(MpiShm, CommunicatorConformance,
                         ::testing::Values(BackendOn("OneNode", OneNode),
                                           BackendOn("TwoNodes", Alternating),
                                           BackendOn("Unequal", Unequal),
                                           BackendOn("OneAroundAnother",
                                                     OneAroundAnother),
                                           BackendOn("RealNodes", RealNodes)),
                         BackendName);

class MpiShmCommunicatorTest
    : public ::testing::TestWithParam<std::vector<int> (*)()> {};

TEST_P(MpiShmCommunicatorTest, ZeroCopyTensorsAreReduced) {
  const std::vector<int> nodes = GetParam()();
  RunOn(nodes, [&](Communicator& communicator) {
    ZeroCopyTensors zero_copy =
        MakeZeroCopyTensors(communicator, kZeroCopyCounts);
    for (int step = 0; step < 5; ++step) {
      const Averaged averaged = CheckAverage(communicator, zero_copy);
      const bool one_node = std::count(nodes.begin(), nodes.end(), nodes[0]) ==
                            communicator.size();
      if (one_node) {
        EXPECT_EQ(averaged.packs, step == 0) << "step " << step;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(MpiShm, MpiShmCommunicatorTest,
                         ::testing::Values(OneNode, Alternating, Unequal,
                                           OneAroundAnother, RealNodes));

}  // namespace
}  // namespace hvdlite::testing
