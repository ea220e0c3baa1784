// The control channel through shared memory, one rank per process.
#include <mpi.h>

#include <memory>
#include <string>

#include "collective/mpi/mpi_communicator.h"
#include "gtest/gtest.h"
#include "negotiation/channel/shm/shm_channel.h"
#include "tests/testing/conformance/control_channel_conformance.h"

namespace hvdlite::negotiation {
namespace {

using hvdlite::testing::ControlChannelCheck;

class MpiShmChannelTest : public ::testing::TestWithParam<ControlChannelCheck> {
};

TEST_P(MpiShmChannelTest, Conforms) {
  const auto node = collective::CreateMpiCommunicator().value();
  auto channel = CreateShmChannel(*node);
  ASSERT_TRUE(channel.ok()) << channel.status();
  EXPECT_EQ((*channel)->rank(), node->rank());
  EXPECT_EQ((*channel)->size(), node->size());
  GetParam().run(**channel, [] { MPI_Barrier(MPI_COMM_WORLD); });
  // A process that ends while another one still uses the channel counts as
  // dead.
  MPI_Barrier(MPI_COMM_WORLD);
}

INSTANTIATE_TEST_SUITE_P(
    All, MpiShmChannelTest,
    ::testing::ValuesIn(hvdlite::testing::kControlChannelChecks),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hvdlite::negotiation
