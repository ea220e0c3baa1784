// For tests: ranks that are threads, on nodes whose memory they share.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "collective/communicator.h"
#include "collective/shm/allreduce_table.h"
#include "collective/shm/shm_communicator.h"
#include "tests/testing/in_process/in_process.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::testing {

using ShmRankBody = std::function<void(collective::Communicator&)>;

// Every algorithm is used for some sizes.
inline constexpr char kMixedTable[] = R"(
1   2-  100   one-shot     8K  cached
1   2-  1K    slices      64  cached
1   2-  20K   slices      4K  cached
1   2-  100K  slices      16K streaming
1   2-  inf   slices      64K streaming
2-  2-  100   flat        0   cached
2-  2-  2K    hierarchical  128 cached
2-  2-  inf   hierarchical  64K streaming
)";
// Many rounds through few slots.
inline constexpr char kTinyChunks[] = R"(
1   2-  inf   slices      64 cached
2-  2-  inf   hierarchical  64 streaming
)";

// Runs the body on ranks that are threads, on the given nodes.
inline void RunOnNodes(const std::vector<int>& node_of_rank, const char* table,
                       const ShmRankBody& body,
                       bool all_meet_in_the_end = true) {
  const int size = static_cast<int>(node_of_rank.size());
  auto flat = collective::CreateInProcessWorld(size);
  const collective::AllreduceTable parsed =
      *collective::AllreduceTable::Parse(table);
  RunRanks(size, [&](int rank) {
    auto communicator =
        collective::CreateShmCommunicator(flat[rank], node_of_rank, parsed);
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    body(**communicator);
    // No rank leaves while others still use its memory.
    if (all_meet_in_the_end) {
      EXPECT_TRUE((*communicator)->Barrier().ok());
    }
  });
}

// Nodes with different numbers of ranks, or with alternating ranks.
inline const std::vector<std::vector<int>> kAwkwardNodes = {
    {0, 0, 1},    {0, 0, 0, 1},       {0, 0, 1, 2},      {0, 1, 1},
    {0, 1, 1, 0}, {0, 1, 2, 2, 1, 0}, {0, 1, 0, 2, 0, 1}};

}  // namespace hvdlite::testing
