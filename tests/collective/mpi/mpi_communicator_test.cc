#include "collective/mpi/mpi_communicator.h"

#include <mpi.h>

#include <climits>
#include <memory>

#include "tests/testing/conformance/communicator_conformance.h"

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
                      MpiBackend("SplitCounts", {.max_count_per_call = 997}),
                      MpiBackend("Segments", {.ring_from_bytes = 1,
                                              .segment_bytes = 192,
                                              .segments_within_nodes = true})),
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
  CheckRandomOperations(*communicator, /*seed=*/1, /*count=*/20);
}

TEST(MpiCommunicatorTest, AlltoallIsOfPairsWhereOneRankAloneHasALargeBuffer) {
  const auto communicator = NewCommunicator({.ring_from_bytes = 101,
                                             .segment_bytes = 64,
                                             .segments_within_nodes = true});
  const int size = communicator->size();
  // Only rank 0 sends, and only the last one receives, so much.
  std::vector<std::vector<size_t>> bytes(size, std::vector<size_t>(size, 2));
  bytes.front().back() = 101;
  CheckAlltoall(*communicator, bytes);
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

TEST(MpiCommunicatorTest, CallsAreToldOnceAlsoThoseOfSubgroups) {
  const auto communicator = NewCommunicator();
  EXPECT_FALSE(communicator->TakeCalls());
  std::byte byte{};
  ASSERT_TRUE(communicator->Broadcast({&byte, 1}, 0).ok());
  EXPECT_TRUE(communicator->TakeCalls());
  communicator->MakeProgress();
  EXPECT_FALSE(communicator->TakeCalls());
  const auto alone =
      communicator->CreateSubgroup({communicator->rank()}, /*tag=*/0);
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_TRUE(communicator->TakeCalls());
  ASSERT_TRUE((*alone)->Broadcast({&byte, 1}, 0).ok());
  EXPECT_TRUE(communicator->TakeCalls());
}

TEST(MpiCommunicatorTest, ExchangeThatGetsTooLittleSaysSo) {
  const auto communicator = NewCommunicator();
  if (communicator->size() < 2 || communicator->rank() > 1) return;
  // Ranks that differ: outside the contract.
  std::byte bytes[8] = {};
  std::byte received[8] = {};
  const bool is_short = communicator->rank() == 1;
  const absl::Status status = communicator->Exchange(
      1 - communicator->rank(), absl::MakeConstSpan(bytes, is_short ? 4 : 8),
      absl::MakeSpan(received));
  if (is_short) {
    ExpectOk(status);
  } else {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(std::string(status.message()),
              "MPI_Irecv on rank 0 received 4 bytes where 8 were expected");
    EXPECT_EQ(communicator->Barrier(), status);
  }
}

// Of two ranks, one fails.
void CheckThatErrorsOfMpiStay(Communicator& communicator) {
  // Ranks that differ in size: outside the contract, but it makes MPI fail, at
  // the one that receives more than it has room for.
  const int rank = communicator.rank();
  std::vector<std::byte> bytes(rank == 0 ? 64 : 8);
  const absl::Status status = communicator.Broadcast(absl::MakeSpan(bytes), 0);
  if (rank != 0 && !status.ok()) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(
        std::string(status.message()),
        HasSubstr("MPI_Bcast failed on rank " + std::to_string(rank) + ": "));
    EXPECT_EQ(communicator.Barrier(), status);
  }
  int reported = rank != 0 && !status.ok() ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &reported, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_GT(reported, 0);
}

TEST(MpiCommunicatorTest, ErrorsOfMpiAreReturnedAndStay) {
  const auto communicator = NewCommunicator();
  if (communicator->size() != 2) {
    GTEST_SKIP() << "with more ranks, those below the failing one would wait";
  }
  const auto subgroup = NewSubgroup(*communicator, {0, 1});
  CheckThatErrorsOfMpiStay(*subgroup);
  // The world is another communicator.
  CheckAllreduce(*communicator, DataType::kFloat32, ReduceOp::kSum, 10);
  CheckThatErrorsOfMpiStay(*communicator);
}

}  // namespace
}  // namespace hvdlite::testing
