#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include "collective/mpi/mpi_communicator.h"

namespace hvdlite::collective {
namespace {

TEST(MpiSessionTest, TopologyDescribesTheWorld) {
  int rank = -1;
  int size = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto session = MpiSession::Start();
  ASSERT_TRUE(session.ok()) << session.status();
  const Topology& topology = (*session)->topology();
  EXPECT_EQ(topology.rank, rank);
  EXPECT_EQ(topology.size, size);
  // mpirun starts the tests on one host.
  EXPECT_EQ(topology.local_rank, rank);
  EXPECT_EQ(topology.local_size, size);
  EXPECT_EQ(topology.cross_rank, 0);
  EXPECT_EQ(topology.cross_size, 1);
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  MPI_Get_processor_name(name, &length);
  EXPECT_THAT(topology.host_of_rank, ::testing::SizeIs(size));
  EXPECT_THAT(topology.host_of_rank, ::testing::Each(std::string(name)));
  EXPECT_THAT(topology.cross_rank_of_rank, ::testing::SizeIs(size));
  EXPECT_THAT(topology.cross_rank_of_rank, ::testing::Each(0));
}

TEST(MpiSessionTest, MpiOfTheApplicationIsNotFinalized) {
  const auto session = MpiSession::Start();
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE((*session)->application_owns_mpi());
  EXPECT_TRUE((*session)->Finalize().ok());
  int finalized = 1;
  MPI_Finalized(&finalized);
  EXPECT_EQ(finalized, 0);
}

}  // namespace
}  // namespace hvdlite::collective
