#include "collective/mpi/mpi_communicator.h"

#include <mpi.h>

#include <climits>
#include <memory>

#include "tests/testing/communicator_conformance.h"

namespace hvdlite::testing {
namespace {

using collective::CreateMpiCommunicator;
using collective::MpiCommunicatorOptions;
using ::testing::HasSubstr;

std::unique_ptr<Communicator> NewCommunicator(
    MpiCommunicatorOptions options = {}) {
  auto communicator = CreateMpiCommunicator(options);
  EXPECT_TRUE(communicator.ok()) << communicator.status();
  return *std::move(communicator);
}

ConformanceBackend MpiBackend(const std::string& name,
                              MpiCommunicatorOptions options) {
  return {
      .name = name,
      .run_ranks = [options](const std::function<void(Communicator&)>& body) {
        body(*NewCommunicator(options));
      }};
}

INSTANTIATE_TEST_SUITE_P(
    Mpi, CommunicatorConformance,
    ::testing::Values(MpiBackend("WholeCounts", {}),
                      MpiBackend("SplitCounts", {.max_count_per_call = 997})),
    BackendName);

TEST(MpiCommunicatorTest, RankAndSizeAreThoseOfTheWorld) {
  int rank = -1;
  int size = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto communicator = NewCommunicator();
  EXPECT_EQ(communicator->rank(), rank);
  EXPECT_EQ(communicator->size(), size);
  EXPECT_EQ(std::string(communicator->name()), "MPI");
}

TEST(MpiCommunicatorTest, CountOfOnePerCallIsEnough) {
  const auto communicator = NewCommunicator({.max_count_per_call = 1});
  CheckAllreduce(*communicator, DataType::kFloat16, ReduceOp::kSum, 13);
  CheckBroadcast(*communicator, 0, 13);
}

TEST(MpiCommunicatorTest, CountsThatMpiCannotTakeAreRefused) {
  for (const int64_t count : {int64_t{0}, int64_t{-1}, int64_t{INT_MAX} + 1}) {
    const auto communicator =
        CreateMpiCommunicator({.max_count_per_call = count});
    EXPECT_EQ(communicator.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(communicator.status().message()),
                HasSubstr("max_count_per_call"));
  }
}

TEST(MpiCommunicatorTest, SeveralCommunicatorsDoNotDisturbEachOther) {
  const auto first = NewCommunicator();
  const auto second = NewCommunicator();
  CheckAllreduce(*first, DataType::kInt32, ReduceOp::kSum, 100);
  CheckAllreduce(*second, DataType::kInt64, ReduceOp::kMax, 7);
  CheckBroadcast(*first, 0, 5);
}

TEST(MpiCommunicatorTest, MissedDeadlineBreaksTheCommunicator) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) GTEST_SKIP() << "nobody to wait for";
  // Rank 0 does not wait at all; the others enter the barrier only once rank 0
  // has given it up.
  const auto communicator =
      NewCommunicator({.deadline = rank == 0 ? absl::ZeroDuration()
                                             : absl::InfiniteDuration()});
  if (rank == 0) {
    const absl::Status status = communicator->Barrier();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("some did not arrive within 0"));
    EXPECT_EQ(communicator->Barrier(), status);
    std::byte bytes[4] = {};
    EXPECT_EQ(communicator->Broadcast(absl::MakeSpan(bytes), 0), status);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 0) {
    const absl::Status status = communicator->Barrier();
    EXPECT_TRUE(status.ok()) << status;
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(MpiCommunicatorTest, ErrorsOfMpiAreReturnedAndStay) {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) {
    GTEST_SKIP() << "with more ranks, those below the failing one would wait";
  }
  const auto communicator = NewCommunicator();
  // Ranks that differ in size: outside the contract, but it makes MPI fail, at
  // the one that receives more than it has room for.
  std::vector<std::byte> bytes(communicator->rank() == 0 ? 64 : 8);
  const absl::Status status = communicator->Broadcast(absl::MakeSpan(bytes), 0);
  if (communicator->rank() != 0 && !status.ok()) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("MPI_Bcast failed on rank " +
                          std::to_string(communicator->rank()) + ": "));
    EXPECT_EQ(communicator->Barrier(), status);
  }
  int reported = communicator->rank() != 0 && !status.ok() ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &reported, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_GT(reported, 0);
}

}  // namespace
}  // namespace hvdlite::testing
