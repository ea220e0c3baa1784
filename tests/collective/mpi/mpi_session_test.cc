#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include "collective/mpi/mpi_communicator.h"
#include "collective/mpi/mpi_library.h"

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

TEST(MpiLibraryTest, ItsNameIsALine) {
  EXPECT_EQ(MpiLibraryNameIn("Open MPI v4.1.4, package: Debian, ident: 4.1.4"),
            "Open MPI v4.1.4");
  EXPECT_EQ(MpiLibraryNameIn("MPICH Version:\t4.0.2\n"
                             "MPICH Release date:\tThu Apr  7 12:34:45 2022\n"
                             "MPICH Device:\tch4:ucx\nMPICH configure:\t-a\n"),
            "MPICH 4.0.2 (ch4:ucx)");
  EXPECT_EQ(MpiLibraryNameIn("MVAPICH2 Version      :\t2.3.7\n"
                             "MVAPICH2 Device       :\tch3:mrail\n"),
            "MVAPICH2 2.3.7 (ch3:mrail)");
  EXPECT_EQ(MpiLibraryNameIn("Intel(R) MPI Library 2021.4 for Linux* OS\n\n"),
            "Intel(R) MPI Library 2021.4 for Linux* OS");
}

TEST(MpiLibraryTest, WhoseEndNeedsQuiet) {
  EXPECT_TRUE(FinalizeNeedsQuiet("MPICH 4.0.2 (ch4:ucx)"));
  EXPECT_FALSE(FinalizeNeedsQuiet("MPICH 4.2.1 (ch4:ucx)"));
  EXPECT_FALSE(FinalizeNeedsQuiet("MPICH 4.0.2 (ch4:ofi)"));
  EXPECT_FALSE(FinalizeNeedsQuiet("Open MPI v4.1.4"));
}

}  // namespace
}  // namespace hvdlite::collective
