// The control channel over MPI, and coordinators that use it with the MPI data
// plane; one rank per process.
#include <mpi.h>
#include <sched.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/logging.h"
#include "collective/mpi/mpi_communicator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/engine/coordinator.h"
#include "tests/testing/conformance/control_channel_conformance.h"
#include "tests/testing/conformance/program.h"
#include "tests/testing/conformance/program_coverage.h"
#include "tests/testing/conformance/program_runner.h"
#include "tests/testing/fakes/sum_operation.h"

namespace hvdlite::testing {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;

class MpiChannelTest : public ::testing::TestWithParam<ControlChannelCheck> {};

TEST_P(MpiChannelTest, Conforms) {
  auto channel = negotiation::CreateMpiChannel().value();
  GetParam().run(*channel, [] { MPI_Barrier(MPI_COMM_WORLD); });
}

INSTANTIATE_TEST_SUITE_P(All, MpiChannelTest,
                         ::testing::ValuesIn(kControlChannelChecks),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

// This rank in a new world.
struct MpiRank {
  explicit MpiRank(const negotiation::CoordinatorOptions& options)
      : coordinator(options, {*channel, *communicator, session->topology(),
                              clock, logger, [](const absl::Status&) {}}) {}
  ~MpiRank() {
    const absl::Status status =
        coordinator.Shutdown("the test is over", absl::InfiniteDuration(), {});
    EXPECT_TRUE(status.ok()) << status;
  }

  const base::SteadyClock clock;
  const base::Logger logger{base::Severity::kWarning, -1};
  const std::unique_ptr<collective::MpiSession> session =
      collective::MpiSession::Start().value();
  const std::unique_ptr<collective::Communicator> communicator =
      collective::CreateMpiCommunicator().value();
  const std::unique_ptr<negotiation::ControlChannel> channel =
      negotiation::CreateMpiChannel().value();
  negotiation::Coordinator coordinator;
};

// A failure prints its seed; to repeat it, make it the first seed. These seeds
// contain everything that ProgramCoverage requires; not every small range does.
constexpr uint64_t kFirstSeed = 39;
constexpr uint64_t kEndSeed = kFirstSeed + 25;

TEST(MpiCoordinatorTest, RandomProgramsGiveTheExpectedResults) {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (uint64_t seed = kFirstSeed; seed < kEndSeed; ++seed) {
    const Program program = ProgramGenerator(seed, size).Generate();
    MpiRank rank(program.options);
    ProgramRunner(program, rank.coordinator, rank.communicator->rank()).Run();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(MpiCoordinatorTest, ProgramsOfAllSizesHaveEveryTypeOpCompressionAndFault) {
  ProgramCoverage coverage;
  for (const int size : {1, 2, 3, 4}) {  // as in CMakeLists.txt
    for (uint64_t seed = kFirstSeed; seed < kEndSeed; ++seed) {
      coverage.Add(ProgramGenerator(seed, size).Generate());
    }
  }
  EXPECT_THAT(coverage.Missing(), IsEmpty());
}

TEST(MpiCoordinatorTest, BackgroundThreadReducesWhileNoThreadWaits) {
  negotiation::CoordinatorOptions options;
  options.config.min_batch_bytes = 0;
  MpiRank rank(options);
  std::vector<float> values(1000, 1);
  const auto completion = rank.coordinator.Submit(Sum("x", values)).value();
  while (!completion->done()) sched_yield();
  EXPECT_THAT(values, Each(static_cast<float>(rank.communicator->size())));
}

}  // namespace
}  // namespace hvdlite::testing
